//! Dropout (Srivastava et al. 2014).

use crate::init::{Init, Mode};
use crate::ops;
use burn::module::Module;
use burn::tensor::Tensor;

/// In training, sets a fraction `p` of the elements to 0 and scales the others by `1/(1 − p)`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use regard_attention::{Init, Mode, layers::Dropout};
///
/// let layer = Dropout::new(0.1, &mut Init::new(0, &Device::flex()));
/// let x = Tensor::<2>::ones([2, 3], &Device::flex());
/// let y = layer.forward(x.clone(), Mode::Eval);
/// assert_eq!(y.to_data(), x.to_data());
/// ```
#[derive(Module, Debug)]
pub struct Dropout {
    /// Probability that an element is dropped, in `0..1`.
    #[module(skip)]
    pub p: f32,
    /// Site of the random stream.
    #[module(skip)]
    pub site: u64,
}

impl Dropout {
    /// Creates a layer with its own random stream.
    ///
    /// # Panics
    /// If `p` is not in `0..1`.
    pub fn new(p: f32, init: &mut Init) -> Dropout {
        assert!((0.0..1.0).contains(&p), "dropout: got p = {p}, need at least 0 and below 1");
        Dropout { p, site: init.site() }
    }

    /// Applies dropout in training; returns `x` unchanged in evaluation.
    ///
    /// # Shapes
    /// any → the same
    pub fn forward<const D: usize>(&self, x: Tensor<D>, mode: Mode) -> Tensor<D> {
        match mode.stream(self.site) {
            Some(stream) => ops::dropout(x, self.p, stream),
            None => x,
        }
    }
}
