//! Convolution over sequences: `y_i = f(W·[x_{i−a} … x_{i+b}] + b)`, zeros beyond the ends
//! (Waibel et al. 1989; over words Kim 2014, arXiv:1408.5882).

use super::{Linear, LinearConfig, Sequences};
use crate::init::Init;
use crate::ops::Activation;
use burn::module::Module;
use burn::tensor::Tensor;

/// Of a [`Convolution`].
#[derive(Clone, Debug)]
pub struct ConvolutionConfig {
    /// `I`
    pub inputs: usize,
    /// `O`
    pub outputs: usize,
    /// Rows in a window.
    pub width: usize,
    /// `f`
    pub activation: Activation,
}

/// One number of each output for each row, from the window around it.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use regard_attention::ops::Activation;
/// use regard_attention::{Init, layers::{ConvolutionConfig, Sequences}};
///
/// let activation = Activation::Relu;
/// let config = ConvolutionConfig { inputs: 4, outputs: 6, width: 3, activation };
/// let layer = config.init(&mut Init::new(0, &Device::flex()));
/// let x = Tensor::<2>::ones([5, 4], &Device::flex());
/// assert_eq!(layer.forward(x, &Sequences::new(&[3, 2])).dims(), [5, 6]);
/// ```
#[derive(Module, Debug)]
pub struct Convolution {
    /// `[width·I, O]`, the first row of a window first.
    pub linear: Linear,
    /// Rows in a window.
    #[module(skip)]
    pub width: usize,
}

impl ConvolutionConfig {
    /// The layer with its first values, as PyTorch's.
    pub fn init(&self, init: &mut Init) -> Convolution {
        let ConvolutionConfig { inputs, outputs, width, activation } = *self;
        assert!(width > 0, "convolution: got windows of 0 rows, need at least 1");
        let linear = LinearConfig { activation, ..LinearConfig::new(width * inputs, outputs) };
        Convolution { linear: linear.init(init), width }
    }
}

impl Convolution {
    /// # Shapes
    /// `x: [N, I]` → `[N, O]`
    pub fn forward(&self, x: Tensor<2>, sequences: &Sequences) -> Tensor<2> {
        self.linear.forward(sequences.windows(x, self.width))
    }
}
