//! Positional encodings: added to embeddings, or as biases of attention scores.

use crate::attention::{Attention, bias};
use crate::init::Init;
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};

/// Returns the sinusoidal positional encoding of Vaswani et al. 2017: `sin(p/10000^(2i/M))` in even
/// columns and the cosine in odd columns.
///
/// # Shapes
/// `[length, M]`
///
/// ```
/// use burn::tensor::Device;
/// let table = regard_attention::layers::sinusoidal(3, 4, &Device::flex());
/// assert_eq!(table.to_data().try_to_vec::<f32>().unwrap()[..4], [0.0, 1.0, 0.0, 1.0]);
/// ```
pub fn sinusoidal(length: usize, width: usize, device: &Device) -> Tensor<2> {
    let number = |at: usize| {
        let (position, column) = ((at / width) as f64, at % width);
        let angle = position / 10000f64.powf((column - column % 2) as f64 / width as f64);
        if column % 2 == 0 { angle.sin() as f32 } else { angle.cos() as f32 }
    };
    let values: Vec<f32> = (0..length * width).map(number).collect();
    Tensor::from_data(TensorData::new(values, [length, width]), device)
}

/// Learned absolute positional embeddings.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use regard_attention::{Init, layers::LearnedPositions};
///
/// let places = LearnedPositions::new(10, 4, 0.02, &mut Init::new(0, &Device::flex()));
/// let x = Tensor::<3>::zeros([2, 3, 4], &Device::flex());
/// assert_eq!(places.forward(x, 5).dims(), [2, 3, 4]);
/// ```
#[derive(Module, Debug)]
pub struct LearnedPositions {
    /// Embedding table `[length, M]`.
    pub table: Param<Tensor<2>>,
}

impl LearnedPositions {
    /// Creates embeddings for `length` positions with normal initial values of this standard
    /// deviation.
    pub fn new(length: usize, width: usize, deviation: f32, init: &mut Init) -> LearnedPositions {
        LearnedPositions { table: init.normal([length, width], deviation) }
    }

    /// Adds the embeddings of positions `first..first + T`.
    ///
    /// # Panics
    /// If there are fewer positions than `first + T`.
    ///
    /// # Shapes
    /// `x: [B, T, M]` → the same
    pub fn forward(&self, x: Tensor<3>, first: usize) -> Tensor<3> {
        let ([_, t, m], [length, _]) = (x.dims(), self.table.dims());
        let last = first + t;
        assert!(last <= length, "positions: got {last}, need at most {length}");
        let table = self.table.val();
        let rows = if t == length { table } else { table.slice([first..last, 0..m]) };
        x + rows.unsqueeze()
    }
}

/// Returns the slopes of ALiBi (Press et al. 2022), for [`Attention::alibi`].
///
/// # Shapes
/// `[H]`
///
/// ```
/// use burn::tensor::Device;
/// let slopes = regard_attention::layers::alibi_slopes(8, &Device::flex());
/// assert_eq!(slopes.to_data().try_to_vec::<f32>().unwrap()[..2], [0.5, 0.25]);
/// ```
pub fn alibi_slopes(heads: usize, device: &Device) -> Tensor<1> {
    Tensor::from_data(TensorData::new(bias::Alibi::slopes(heads), [heads]), device)
}

/// Learned relative position bias: a scalar per head and distance, with distances clipped to
/// `±reach` (Shaw et al. 2018; Raffel et al. 2020).
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use regard_attention::{Attention, Init, layers::RelativeTable};
///
/// let table = RelativeTable::new(2, 4, &mut Init::new(0, &Device::flex()));
/// let x = Tensor::<4>::ones([1, 2, 3, 8], &Device::flex());
/// let out = table.forward(Attention::dot()).attend(x.clone(), x.clone(), x);
/// assert_eq!(out.dims(), [1, 2, 3, 8]);
/// ```
#[derive(Module, Debug)]
pub struct RelativeTable {
    /// Bias per head and distance, `[H, 2·reach + 1]`.
    pub table: Param<Tensor<2>>,
}

impl RelativeTable {
    /// Creates a bias table for distances in `−reach..=reach`, initialised to 0.
    pub fn new(heads: usize, reach: usize, init: &mut Init) -> RelativeTable {
        RelativeTable { table: init.constant([heads, 2 * reach + 1], 0.0) }
    }

    /// Returns the attention with this bias added to its scores.
    pub fn forward(&self, attention: Attention) -> Attention {
        attention.table(self.table.val())
    }
}
