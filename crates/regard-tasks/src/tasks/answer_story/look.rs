//! Which sentences a model looked at.

use super::book::Book;
use super::{Listener, Tales};
use burn::tensor::Tensor;
use regard_attention::backend;
use regard_models::Result;
use serde::Serialize;

/// A sentence that got as much of a look, as the mean of the heads, was looked at.
const ENOUGH: f64 = 0.25;

/// How much the question looked at each sentence: the most that it got at any time, as the mean of
/// the heads.
pub(super) fn weights(looks: &[Tensor<3>], sentences: usize) -> Vec<f64> {
    let mut most = vec![0.0; sentences];
    let mut numbers: Vec<f32> = vec![];
    for look in looks {
        let [heads, from, to] = look.dims();
        backend::numbers(look.clone(), &mut numbers);
        for (sentence, most) in most.iter_mut().enumerate() {
            // The question is the last that looks.
            let of = |head: usize| f64::from(numbers[(head * from + from - 1) * to + sentence]);
            *most = f64::max(*most, (0..heads).map(of).sum::<f64>() / heads as f64);
        }
    }
    most
}

/// The sentences that were looked at, in their order.
pub(super) fn chosen(weights: &[f64]) -> impl Iterator<Item = usize> {
    weights.iter().enumerate().filter(|(_, weight)| **weight >= ENOUGH).map(|(at, _)| at)
}

/// How what a model looked at agrees with what the data name as the sentences that say the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Agreement {
    /// Percent of what was looked at that is named.
    pub precision: f64,
    /// Percent of what is named that was looked at.
    pub recall: f64,
}

/// Compares what a model looks at with what the data name, over questions of some stories that are
/// at most so many.
pub fn agreement(listener: &Listener, tales: &[Tales], questions: usize) -> Result<Agreement> {
    let model = listener.model();
    let book = Book::new(tales, listener.words(), &model.limits())?;
    let (mut both, mut looked, mut named) = (0, 0, 0);
    let step = book.questions.len().div_ceil(questions.max(1)).max(1);
    for asked in book.questions.iter().step_by(step) {
        let story = book.stories(std::iter::once(asked));
        let weights = weights(&model.look_inside(&story).1, story.longest());
        let found: Vec<usize> = chosen(&weights).collect();
        both += asked.support.iter().filter(|at| found.contains(at)).count();
        looked += found.len();
        named += asked.support.len();
    }
    let share = |of: usize| 100.0 * f64::from(both as u32) / of.max(1) as f64;
    Ok(Agreement { precision: share(looked), recall: share(named) })
}
