//! The rows of a search: sequences of an engine, or those of a model that cannot be planned.

use crate::batching::{Guesses, Session};
use regard_models::text::TextModel;
use regard_models::{Decoding, Result};

/// The rows of a search.
pub(super) enum Rows<'a> {
    /// Processed together with the sequences of other threads.
    Batched(Session<'a>),
    /// By the model alone; `None` before the first prompt is read.
    Alone(&'a dyn TextModel, Option<Box<dyn Decoding + 'a>>),
}

impl Rows<'_> {
    /// Replaces all rows by these, which are of one length.
    pub fn read(&mut self, rows: &[&[u32]]) -> Result<()> {
        match self {
            Rows::Batched(session) => session.read(rows)?,
            Rows::Alone(model, decoding) => *decoding = model.decode(rows),
        }
        Ok(())
    }

    /// Feeds a token to each row.
    ///
    /// # Shapes
    /// `logits: [rows, V]`
    pub fn step(&mut self, tokens: &[u32], logits: &mut Vec<f32>) -> Result<()> {
        match self {
            Rows::Batched(session) => session.step(tokens, logits)?,
            Rows::Alone(_, decoding) => {
                let decoding = decoding.as_mut().expect("rows are read first");
                decoding.step_slices(tokens, logits);
            }
        }
        Ok(())
    }

    /// Guesses so far; `None` for a model by itself.
    pub fn guesses(&self) -> Option<Guesses> {
        match self {
            Rows::Batched(session) => Some(session.guesses()),
            Rows::Alone(..) => None,
        }
    }

    /// Makes row `i` continue from row `parents[i]`.
    pub fn reorder(&mut self, parents: &[usize]) {
        match self {
            Rows::Batched(session) => session.reorder(parents),
            Rows::Alone(_, Some(decoding)) => decoding.reorder(parents),
            Rows::Alone(_, None) => {}
        }
    }
}
