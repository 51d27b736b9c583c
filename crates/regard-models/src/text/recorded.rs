//! Outputs of another library for some texts, recorded in a file, to compare a model with.
//!
//! The file is a safetensors file, as `fixtures/make/record.py` writes it with transformers:
//! the tokens (`ids` and `types` `[B, T]`, `lengths` `[B]`), the outputs at tokens that are not
//! padding, the texts concatenated (`hidden`, `pooled`, `logits`, `follows`), and the internals for
//! the first text alone (`layer.i`, `attention.i`).

use super::{TextModel, TextOutput, Texts};
use crate::checkpoint::{self, Arrays};
use crate::{Error, Result};
use burn::tensor::Tensor;
use regard_attention::Mode;
use safetensors::Dtype;
use std::path::{Path, PathBuf};

/// A recording of texts and outputs.
pub struct Recorded {
    path: PathBuf,
    /// Token ids and types of each text.
    rows: Vec<[Vec<u32>; 2]>,
    arrays: Arrays,
}

/// Difference between a model's output and the recorded one.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedDifference {
    /// Name of the tensor: `layer.0`, `attention.0`, …, `logits`.
    pub what: String,
    /// Largest absolute difference of two elements.
    pub largest: f32,
    /// Largest absolute value that was recorded.
    pub scale: f32,
}

impl RecordedDifference {
    /// Difference divided by the largest recorded value.
    pub fn relative(&self) -> f32 {
        if self.largest == 0.0 { 0.0 } else { self.largest / self.scale }
    }
}

impl Recorded {
    /// Reads a recording.
    pub fn read(path: &Path) -> Result<Recorded> {
        let arrays = checkpoint::read_arrays(path)?;
        let wrong = |message: String| Error::file(path, message);
        let integers = |name: &str| -> Result<Vec<u32>> {
            let array = arrays.get(name).ok_or_else(|| wrong(format!("{name} is missing")))?;
            let numbers = array.bytes().as_chunks().0.iter().map(|b| i64::from_le_bytes(*b));
            let numbers = numbers.map(u32::try_from).collect::<Result<Vec<_>, _>>();
            match (array.dtype(), numbers) {
                (Dtype::I64, Ok(numbers)) => Ok(numbers),
                (other, _) => Err(wrong(format!("{name}: got {other:?}, need I64 within u32"))),
            }
        };
        let [ids, types, lengths] = [integers("ids")?, integers("types")?, integers("lengths")?];
        let wide = ids.len() / lengths.len().max(1);
        let fits = |n: &u32| (1..=wide).contains(&(*n as usize));
        let even = wide * lengths.len() == ids.len() && types.len() == ids.len();
        if lengths.is_empty() || !even || !lengths.iter().all(fits) {
            return Err(wrong(format!(
                "got {} ids, {} types and {} lengths, need ids and types of one shape [B, T], and \
                 B lengths from 1 to T",
                ids.len(),
                types.len(),
                lengths.len()
            )));
        }
        let row = |(i, n): (usize, &u32)| {
            let range = i * wide..i * wide + *n as usize;
            [ids[range.clone()].to_vec(), types[range].to_vec()]
        };
        let rows = lengths.iter().enumerate().map(row).collect();
        Ok(Recorded { path: path.into(), rows, arrays })
    }

    /// Number of texts.
    pub fn count(&self) -> usize {
        self.rows.len()
    }

    /// Returns all texts as a batch.
    pub fn texts(&self) -> Texts {
        texts(&self.rows)
    }

    /// Returns one text.
    pub fn text(&self, row: usize) -> Texts {
        texts(&self.rows[row..=row])
    }

    /// Recorded tensors, by name.
    pub fn arrays(&self) -> &Arrays {
        &self.arrays
    }

    /// Runs the model on the texts, and compares layer by layer, then the outputs.
    pub fn compare(&self, model: &dyn TextModel) -> Result<Vec<RecordedDifference>> {
        self.check(model)?;
        let (_, inside) = model.forward_with_attention(&self.text(0));
        let mut all = vec![];
        for (i, layer) in inside.hidden.iter().enumerate() {
            all.extend(self.difference(format!("layer.{i}"), layer)?);
            if let Some(weights) = inside.attention.get(i) {
                all.extend(self.difference(format!("attention.{i}"), weights)?);
            }
        }
        for (name, x) in named(&model.forward(&self.texts(), None, Mode::Eval)) {
            all.extend(self.difference(name.into(), &x)?);
        }
        match all.is_empty() {
            true => Err(Error::file(
                &self.path,
                "has no recorded output of this model: need one of layer.0, attention.0, …, \
                 hidden, pooled, logits, follows",
            )),
            false => Ok(all),
        }
    }

    /// Checks that the model can process these texts.
    fn check(&self, model: &dyn TextModel) -> Result<()> {
        let (words, longest) = (model.vocabulary(), self.texts().longest());
        if let Some(id) = self.texts().ids().iter().find(|id| **id as usize >= words) {
            let message = format!("ids: has token {id}, the vocabulary has {words}");
            return Err(Error::file(&self.path, message));
        }
        match model.longest().filter(|most| *most < longest) {
            Some(most) => {
                let message = format!("a text has {longest} tokens, the model can read {most}");
                Err(Error::file(&self.path, message))
            }
            None => Ok(()),
        }
    }

    /// Compares a tensor; `None` if there is no recording of this name.
    fn difference<const D: usize>(
        &self,
        what: String,
        got: &Tensor<D>,
    ) -> Result<Option<RecordedDifference>> {
        let Some(array) = self.arrays.get(&what) else { return Ok(None) };
        let (shape, data) = (&array.shape, array.floats().unwrap_or_default());
        let got: Vec<f32> = got.to_data().try_to_vec().expect("numbers are floats");
        if got.len() != data.len() {
            let message = format!("{what}: is {shape:?}, the model has {} elements", got.len());
            return Err(Error::file(&self.path, message));
        }
        // NaN counts as the largest difference.
        let apart = |(x, y): (&f32, &f32)| (x - y).abs();
        let far = |most: f32, x: f32| if x <= most { most } else { x };
        let largest = got.iter().zip(&data[..]).map(apart).fold(0.0, far);
        let scale = data.iter().fold(0f32, |most, x| most.max(x.abs()));
        Ok(Some(RecordedDifference { what, largest, scale }))
    }
}

fn texts(rows: &[[Vec<u32>; 2]]) -> Texts {
    let mut texts = Texts::new();
    rows.iter().for_each(|[ids, types]| texts.push_typed(ids, types));
    texts
}

/// Outputs of a model, by their names in recordings.
pub fn named(said: &TextOutput) -> Vec<(&'static str, Tensor<2>)> {
    let all = [
        ("hidden", Some(said.hidden.clone())),
        ("pooled", said.pooled.clone()),
        ("logits", said.logits.clone()),
        ("follows", said.follows.clone()),
    ];
    all.into_iter().filter_map(|(name, x)| Some((name, x?))).collect()
}
