//! Convolution over sequences, `y_i = f(W·[x_{i−a} … x_{i+b}] + b)` with zero padding at the ends
//! (Waibel et al. 1989; over words Kim 2014, arXiv:1408.5882), and over images.

use super::{Linear, LinearConfig, Sequences};
use crate::init::{Init, WeightInit};
use crate::ops::{self, Activation, Windows};
use burn::module::Module;
use burn::tensor::{Int, Tensor, TensorData};

/// Configuration of [`Convolution`].
#[derive(Clone, Debug)]
pub struct ConvolutionConfig {
    /// `I`, the number of input channels.
    pub inputs: usize,
    /// `O`, the number of output channels.
    pub outputs: usize,
    /// Kernel size, in rows. At least 1.
    pub width: usize,
    /// `f`, applied to the output.
    pub activation: Activation,
}

/// One-dimensional convolution over sequences without padding between them.
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
    /// Weight `[width·I, O]`, the first row of a window first, with bias and `f`.
    pub linear: Linear,
    /// Kernel size, in rows.
    #[module(skip)]
    pub width: usize,
}

impl ConvolutionConfig {
    /// Initialises the layer as PyTorch does.
    pub fn init(&self, init: &mut Init) -> Convolution {
        let ConvolutionConfig { inputs, outputs, width, activation } = *self;
        assert!(width > 0, "convolution: got windows of 0 rows, need at least 1");
        let linear = LinearConfig { activation, ..LinearConfig::new(width * inputs, outputs) };
        Convolution { linear: linear.init(init), width }
    }
}

impl Convolution {
    /// Applies the convolution with stride 1; the output has as many rows as the input.
    ///
    /// # Shapes
    /// `x: [N, I]` → `[N, O]`
    pub fn forward(&self, x: Tensor<2>, sequences: &Sequences) -> Tensor<2> {
        self.linear.forward(sequences.windows(x, self.width))
    }

    /// Applies the convolution with a stride. Also returns the sequences with their new lengths.
    ///
    /// # Shapes
    /// `x: [N, I]` → `[N′, O]`
    pub fn forward_apart(
        &self,
        x: Tensor<2>,
        sequences: &Sequences,
        stride: usize,
    ) -> (Tensor<2>, Sequences) {
        let (windows, sequences) = sequences.windows_apart(x, self.width, stride);
        (self.linear.forward(windows), sequences)
    }

    /// Applies the convolution with a stride to one sequence that arrives in parts. Returns the
    /// output rows that `x` completes, and with `last` all that remain. Concatenated, they equal
    /// the output of [`Convolution::forward_apart`].
    ///
    /// # Shapes
    /// `x: [n, I]` → `[n′, O]`; `None` for no rows
    pub fn forward_streamed(
        &self,
        x: Option<Tensor<2>>,
        stride: usize,
        past: &mut ConvolutionState,
        last: bool,
    ) -> Option<Tensor<2>> {
        past.seen += x.as_ref().map_or(0, |x| x.dims()[0]);
        let rows: Vec<Tensor<2>> = past.rows.take().into_iter().chain(x).collect();
        if rows.is_empty() {
            return None;
        }
        let rows = Tensor::cat(rows, 0);
        let [_, inputs] = rows.dims();
        let nothing = |n: usize| Tensor::zeros([n, inputs], (&rows.device(), rows.dtype()));
        let before = (self.width - 1) / 2;
        let rows = match past.begun {
            false if before > 0 => Tensor::cat(vec![nothing(before), rows.clone()], 0),
            _ => rows.clone(),
        };
        past.begun = true;
        let there = rows.dims()[0];
        let ready = match last {
            true => past.seen.div_ceil(stride) - past.given,
            false => (there + stride).saturating_sub(self.width) / stride,
        };
        let needed = if ready == 0 { 0 } else { (ready - 1) * stride + self.width };
        let rows = match needed > there {
            true => Tensor::cat(vec![rows, nothing(needed - there)], 0),
            false => rows,
        };
        past.given += ready;
        let [all, _] = rows.dims();
        let passed = (ready * stride).min(all);
        past.rows = (!last && passed < all).then(|| rows.clone().slice([passed..all, 0..inputs]));
        if ready == 0 {
            return None;
        }
        let place = |at: usize| (at / self.width * stride + at % self.width) as i64;
        let ids: Vec<i64> = (0..ready * self.width).map(place).collect();
        let ids = TensorData::new(ids, [ready, self.width]);
        let ids = Tensor::<2, Int>::from_data(ids, &rows.device());
        let windows = ops::embedding(rows, ids, None).reshape([ready, self.width * inputs]);
        Some(self.linear.forward(windows))
    }
}

/// State of [`Convolution::forward_streamed`] between the parts of a sequence.
#[derive(Clone, Debug, Default)]
pub struct ConvolutionState {
    /// Input rows from the next window on, with the zero padding before the first row.
    rows: Option<Tensor<2>>,
    /// Whether that padding has been added.
    begun: bool,
    /// Number of input rows received.
    seen: usize,
    /// Number of output rows returned.
    given: usize,
}

/// Configuration of [`ImageConvolution`].
#[derive(Clone, Debug)]
pub struct ImageConvolutionConfig {
    /// `I`, the number of input channels.
    pub inputs: usize,
    /// `O`, the number of output channels.
    pub outputs: usize,
    /// Kernel size, stride and padding.
    pub windows: Windows,
    /// `f`, applied to the output.
    pub activation: Activation,
    /// Initialisation of the weight.
    pub weights: WeightInit,
}

/// Two-dimensional convolution over images in `[B, H, W, C]` layout.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use regard_attention::layers::ImageConvolutionConfig;
/// use regard_attention::ops::{Activation, Windows};
/// use regard_attention::{Init, WeightInit};
///
/// let windows = Windows { size: [3, 3], stride: [2, 2], padding: [1, 1] };
/// let (activation, weights) = (Activation::Relu, WeightInit::Uniform);
/// let config = ImageConvolutionConfig { inputs: 3, outputs: 8, windows, activation, weights };
/// let layer = config.init(&mut Init::new(0, &Device::flex()));
/// let x = Tensor::<4>::ones([1, 6, 4, 3], &Device::flex());
/// assert_eq!(layer.forward(x).dims(), [1, 3, 2, 8]);
/// ```
#[derive(Module, Debug)]
pub struct ImageConvolution {
    /// Weight `[rows·columns·I, O]`, the pixels of a window row by row with channels last, with
    /// bias and `f`.
    pub linear: Linear,
    /// Kernel size, stride and padding.
    #[module(skip)]
    pub windows: Windows,
}

impl ImageConvolutionConfig {
    /// Initialises the layer.
    pub fn init(&self, init: &mut Init) -> ImageConvolution {
        let ImageConvolutionConfig { inputs, outputs, windows, activation, weights } = *self;
        let wide = windows.size[0] * windows.size[1] * inputs;
        let linear = LinearConfig { activation, weights, ..LinearConfig::new(wide, outputs) };
        ImageConvolution { linear: linear.init(init), windows }
    }
}

impl ImageConvolution {
    /// Applies the convolution.
    ///
    /// # Shapes
    /// `x: [B, H, W, I]` → `[B, H', W', O]`
    pub fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let alone = Windows { size: [1, 1], stride: [1, 1], padding: [0, 0] };
        // Windows of one pixel are the pixels.
        let x = if self.windows == alone { x } else { ops::unfold(x, self.windows) };
        self.linear.forward(x)
    }
}
