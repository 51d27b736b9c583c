//! Dropout (Srivastava et al. 2014).

use crate::init::{Init, Mode};
use crate::ops;
use burn::module::Module;
use burn::tensor::Tensor;

/// Drops a share of the numbers in training.
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
    /// The share.
    #[module(skip)]
    pub p: f32,
    /// Where its randomness comes from.
    #[module(skip)]
    pub site: u64,
}

impl Dropout {
    /// A layer with a site of its own.
    pub fn new(p: f32, init: &mut Init) -> Dropout {
        assert!((0.0..1.0).contains(&p), "dropout: got p = {p}, need at least 0 and below 1");
        Dropout { p, site: init.site() }
    }

    /// # Shapes
    /// any → the same
    pub fn forward<const D: usize>(&self, x: Tensor<D>, mode: Mode) -> Tensor<D> {
        match mode.stream(self.site) {
            Some(stream) => ops::dropout(x, self.p, stream),
            None => x,
        }
    }
}
