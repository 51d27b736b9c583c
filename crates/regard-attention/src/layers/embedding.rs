//! Embedding tables for tokens, positions or segments.

use super::Weight;
use crate::init::Init;
use burn::module::Module;
use burn::tensor::{Int, Tensor};

/// Configuration of [`Embedding`].
#[derive(Clone, Debug)]
pub struct EmbeddingConfig {
    /// `V`, the number of embeddings.
    pub entries: usize,
    /// `M`, the width of an embedding.
    pub width: usize,
    /// Padding id, whose embedding is initialised to 0 and receives no gradient.
    pub padding: Option<i64>,
    /// Standard deviation of the initial values. Default 1, as in PyTorch.
    pub deviation: f32,
}

/// Embedding lookup, `y = W[id]`.
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
    /// Embedding table `[V, M]`.
    pub table: Weight,
    /// Padding id, whose embedding receives no gradient.
    #[module(skip)]
    pub padding: Option<i64>,
}

impl EmbeddingConfig {
    /// Creates a configuration without a padding id, and with a standard deviation of 1.
    pub fn new(entries: usize, width: usize) -> EmbeddingConfig {
        EmbeddingConfig { entries, width, padding: None, deviation: 1.0 }
    }

    /// Initialises the embedding table.
    ///
    /// # Panics
    /// If the padding id is not in `0..V`.
    pub fn init(&self, init: &mut Init) -> Embedding {
        let EmbeddingConfig { entries, width, padding, deviation } = *self;
        if let Some(id) = padding {
            let known = (0..entries as i64).contains(&id);
            assert!(known, "embedding: got padding id {id}, need one below {entries}");
        }
        let table = init.fill([entries, width], |stream, i| {
            let padded = padding == Some((i / width as u64) as i64);
            if padded { 0.0 } else { stream.normal(i) * deviation }
        });
        Embedding { table: table.into(), padding }
    }
}

impl Embedding {
    /// Looks up the embeddings of `ids`.
    ///
    /// # Shapes
    /// `ids: [B, T]` → `[B, T, M]`
    pub fn forward(&self, ids: Tensor<2, Int>) -> Tensor<3> {
        self.table.rows(ids, self.padding)
    }
}
