//! What another library said of some texts, recorded in a file, and how far a model is from it.
//!
//! The file is a safetensors file, as `fixtures/make/record.py` writes it with transformers:
//! the tokens (`ids` and `types` `[B, T]`, `lengths` `[B]`), what came out at tokens that are not
//! padding, one text after another (`hidden`, `pooled`, `logits`, `follows`), and what went on
//! inside with the first text alone (`layer.i`, `attention.i`).

use super::{Output, TextModel, Texts};
use crate::checkpoint::{self, Arrays};
use crate::{Error, Result};
use burn::tensor::Tensor;
use regard_attention::Mode;
use safetensors::Dtype;
use std::path::{Path, PathBuf};

/// A recording.
pub struct Recorded {
    path: PathBuf,
    /// Tokens and their types, text by text.
    rows: Vec<[Vec<u32>; 2]>,
    arrays: Arrays,
}

/// How far a model is from what was recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// `layer.0`, `attention.0`, …, `logits`.
    pub what: String,
    /// The largest difference of two numbers.
    pub largest: f32,
    /// The largest number that was recorded.
    pub scale: f32,
}

impl Difference {
    /// The difference as a share of the largest number.
    pub fn relative(&self) -> f32 {
        if self.largest == 0.0 { 0.0 } else { self.largest / self.scale }
    }
}

impl Recorded {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Recorded> {
        let arrays = checkpoint::read_arrays(path)?;
        let wrong = |message: String| Error::file(path, message);
        let integers = |name: &str| -> Result<Vec<u32>> {
            let array = arrays.get(name).ok_or_else(|| wrong(format!("{name} is missing")))?;
            let numbers = array.bytes().as_chunks().0.iter().map(|b| i64::from_le_bytes(*b));
            let numbers = numbers.map(u32::try_from).collect::<Result<Vec<_>, _>>();
            match (array.dtype(), numbers) {
                (Dtype::I64, Ok(numbers)) => Ok(numbers),
                (other, _) => Err(wrong(format!("{name}: got {other:?}, need small I64 numbers"))),
            }
        };
        let [ids, types, lengths] = [integers("ids")?, integers("types")?, integers("lengths")?];
        let wide = ids.len() / lengths.len().max(1);
        let fits = |n: &u32| (1..=wide).contains(&(*n as usize));
        let even = wide * lengths.len() == ids.len() && types.len() == ids.len();
        if lengths.is_empty() || !even || !lengths.iter().all(fits) {
            return Err(wrong("ids, types and lengths do not fit each other".into()));
        }
        let row = |(i, n): (usize, &u32)| {
            let range = i * wide..i * wide + *n as usize;
            [ids[range.clone()].to_vec(), types[range].to_vec()]
        };
        let rows = lengths.iter().enumerate().map(row).collect();
        Ok(Recorded { path: path.into(), rows, arrays })
    }

    /// How many texts there are.
    pub fn count(&self) -> usize {
        self.rows.len()
    }

    /// All texts.
    pub fn texts(&self) -> Texts {
        texts(&self.rows)
    }

    /// One of them.
    pub fn text(&self, row: usize) -> Texts {
        texts(&self.rows[row..=row])
    }

    /// What was recorded, by name.
    pub fn arrays(&self) -> &Arrays {
        &self.arrays
    }

    /// Runs the model over the texts, and compares layer by layer, then what comes out.
    pub fn compare(&self, model: &dyn TextModel) -> Result<Vec<Difference>> {
        self.check(model)?;
        let (_, inside) = model.look_inside(&self.text(0));
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
            true => Err(Error::file(&self.path, "holds nothing that this model says")),
            false => Ok(all),
        }
    }

    /// Whether the model can read these texts at all.
    fn check(&self, model: &dyn TextModel) -> Result<()> {
        let (words, longest) = (model.vocabulary(), self.texts().longest());
        if let Some(id) = self.texts().ids().iter().find(|id| **id as usize >= words) {
            let message = format!("ids: has token {id}, the model has {words} words");
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

    /// Nothing if nothing of this name was recorded.
    fn difference<const D: usize>(
        &self,
        what: String,
        got: &Tensor<D>,
    ) -> Result<Option<Difference>> {
        let Some(array) = self.arrays.get(&what) else { return Ok(None) };
        let (shape, data) = (&array.shape, array.floats().unwrap_or_default());
        let got: Vec<f32> = got.to_data().try_to_vec().expect("numbers are floats");
        if got.len() != data.len() {
            let message = format!("{what}: is {shape:?}, the model says {} numbers", got.len());
            return Err(Error::file(&self.path, message));
        }
        // A NaN is as far away as can be.
        let apart = |(x, y): (&f32, &f32)| (x - y).abs();
        let far = |most: f32, x: f32| if x <= most { most } else { x };
        let largest = got.iter().zip(&data[..]).map(apart).fold(0.0, far);
        let scale = data.iter().fold(0f32, |most, x| most.max(x.abs()));
        Ok(Some(Difference { what, largest, scale }))
    }
}

fn texts(rows: &[[Vec<u32>; 2]]) -> Texts {
    let mut texts = Texts::new();
    rows.iter().for_each(|[ids, types]| texts.push_typed(ids, types));
    texts
}

/// What a model said, by the names of recordings.
pub fn named(said: &Output) -> Vec<(&'static str, Tensor<2>)> {
    let all = [
        ("hidden", Some(said.hidden.clone())),
        ("pooled", said.pooled.clone()),
        ("logits", said.logits.clone()),
        ("follows", said.follows.clone()),
    ];
    all.into_iter().filter_map(|(name, x)| Some((name, x?))).collect()
}
