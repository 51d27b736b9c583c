//! A table of vectors for words, positions or segments.

use super::Weight;
use crate::init::Init;
use burn::module::Module;
use burn::tensor::{Int, Tensor};

/// Of an [`Embedding`].
#[derive(Clone, Debug)]
pub struct EmbeddingConfig {
    /// `V`
    pub entries: usize,
    /// `M`
    pub width: usize,
    /// An id whose vector is 0 and stays so.
    pub padding: Option<i64>,
    /// The deviation of the first values.
    pub deviation: f32,
}

/// `y = W[id]`
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use regard_attention::{Init, layers::EmbeddingConfig};
///
/// let words = EmbeddingConfig::new(100, 8).init(&mut Init::new(0, &Device::flex()));
/// let y = words.forward(Tensor::<2, Int>::from_ints([[1, 2, 3]], &Device::flex()));
/// assert_eq!(y.dims(), [1, 3, 8]);
/// ```
#[derive(Module, Debug)]
pub struct Embedding {
    /// `[V, M]`
    pub table: Weight,
    /// The id whose row gets no gradient.
    #[module(skip)]
    pub padding: Option<i64>,
}

impl EmbeddingConfig {
    /// Without padding; first values of deviation 1, as PyTorch's.
    pub fn new(entries: usize, width: usize) -> EmbeddingConfig {
        EmbeddingConfig { entries, width, padding: None, deviation: 1.0 }
    }

    /// The table with its first values.
    pub fn init(&self, init: &mut Init) -> Embedding {
        let EmbeddingConfig { entries, width, padding, deviation } = *self;
        if let Some(id) = padding {
            let known = (0..entries as i64).contains(&id);
            assert!(known, "embedding: the padding id {id} is not one of {entries} entries");
        }
        let table = init.fill([entries, width], |stream, i| {
            let padded = padding == Some((i / width as u64) as i64);
            if padded { 0.0 } else { stream.normal(i) * deviation }
        });
        Embedding { table: table.into(), padding }
    }
}

impl Embedding {
    /// # Shapes
    /// `ids: [B, T]` → `[B, T, M]`
    pub fn forward(&self, ids: Tensor<2, Int>) -> Tensor<3> {
        self.table.rows(ids, self.padding)
    }
}
