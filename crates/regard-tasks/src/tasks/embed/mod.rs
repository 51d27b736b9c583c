//! Embeddings: a vector for each text.

mod pipeline;
pub mod sentence;

pub use pipeline::{Embedder, Parameters, Response};
pub use sentence::SentenceSettings;

use crate::reader::{TextEncoder, numbers};
use regard_models::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Pooling of the token vectors into one vector per text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SentencePooling {
    /// Mean over all tokens, special tokens included, as in sentence-transformers.
    #[default]
    Mean,
    /// Vector of the first token.
    Cls,
    /// Maximum of each column.
    Max,
}

impl TextEncoder {
    /// Returns an embedding for each text, of Euclidean norm 1 if `normalize`. A text longer than
    /// the model's maximum length is encoded in parts, whose vectors are averaged.
    pub fn embed(
        &self,
        texts: &[&str],
        pooling: SentencePooling,
        normalize: bool,
    ) -> Result<Vec<Vec<f32>>> {
        let mut windows = vec![];
        let mut of = vec![];
        for (i, text) in texts.iter().enumerate() {
            let parts = self.tokenizer.windows(text, None, self.longest(), 0)?;
            of.extend(parts.iter().map(|_| i));
            windows.extend(parts);
        }
        let mut sums: Vec<(Vec<f64>, usize)> = vec![(vec![], 0); texts.len()];
        self.read(&windows, |first, part, said| {
            let [_, width] = said.hidden.dims();
            let hidden = numbers(said.hidden)?;
            let mut row = 0;
            for (i, encoding) in part.iter().enumerate() {
                let (sum, count) = &mut sums[of[first + i]];
                sum.resize(width, 0.0);
                let taken = if pooling == SentencePooling::Cls { 1 } else { encoding.len() };
                let vectors = hidden[row * width..].chunks_exact(width).take(taken);
                match pooling {
                    SentencePooling::Mean | SentencePooling::Cls => {
                        vectors.for_each(|vector| add(sum, vector));
                        *count += taken;
                    }
                    SentencePooling::Max => {
                        let most = vectors.map(<[f32]>::to_vec).reduce(largest);
                        add(sum, &most.unwrap_or_default());
                        *count += 1;
                    }
                }
                row += encoding.len();
            }
            Ok(())
        })?;
        let finish = |(sum, count): (Vec<f64>, usize)| {
            let mean = sum.iter().map(|x| x / count.max(1) as f64);
            let length = if normalize {
                mean.clone().map(|x| x * x).sum::<f64>().sqrt().max(1e-12)
            } else {
                1.0
            };
            mean.map(|x| (x / length) as f32).collect()
        };
        Ok(sums.into_iter().map(finish).collect())
    }
}

fn add(sum: &mut [f64], vector: &[f32]) {
    sum.iter_mut().zip(vector).for_each(|(sum, x)| *sum += f64::from(*x));
}

/// Returns the elementwise maximum.
fn largest(mut one: Vec<f32>, other: Vec<f32>) -> Vec<f32> {
    one.iter_mut().zip(other).for_each(|(a, b)| *a = a.max(b));
    one
}
