//! Sentences that a model attended to.

use super::book::Book;
use super::{StoryAnswerer, Tales};
use burn::tensor::Tensor;
use regard_attention::backend;
use regard_models::Result;
use serde::Serialize;

/// Attention weight, averaged over heads, from which a sentence counts as attended.
const ENOUGH: f64 = 0.25;

/// Returns the attention of the question on each sentence: averaged over heads, maximum over
/// layers.
pub(super) fn weights(looks: &[Tensor<3>], sentences: usize) -> Vec<f64> {
    let mut most = vec![0.0; sentences];
    let mut numbers: Vec<f32> = vec![];
    for look in looks {
        let [heads, from, to] = look.dims();
        backend::numbers(look.clone(), &mut numbers);
        for (sentence, most) in most.iter_mut().enumerate() {
            // The question is the last query row.
            let of = |head: usize| f64::from(numbers[(head * from + from - 1) * to + sentence]);
            *most = f64::max(*most, (0..heads).map(of).sum::<f64>() / heads as f64);
        }
    }
    most
}

/// Returns the attended sentences, in story order.
pub(super) fn chosen(weights: &[f64]) -> impl Iterator<Item = usize> {
    weights.iter().enumerate().filter(|(_, weight)| **weight >= ENOUGH).map(|(at, _)| at)
}

/// Agreement of the attended sentences with the supporting sentences that the data name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SupportAgreement {
    /// Percentage of attended sentences that are supporting ones.
    pub precision: f64,
    /// Percentage of supporting sentences that were attended to.
    pub recall: f64,
}

/// Compares attended and supporting sentences over at most `questions` questions.
pub fn agreement(
    listener: &StoryAnswerer,
    tales: &[Tales],
    questions: usize,
) -> Result<SupportAgreement> {
    let model = listener.model();
    let book = Book::new(tales, listener.words(), &model.limits())?;
    let (mut both, mut looked, mut named) = (0, 0, 0);
    let step = book.questions.len().div_ceil(questions.max(1)).max(1);
    for asked in book.questions.iter().step_by(step) {
        let story = book.stories(std::iter::once(asked));
        let weights = weights(&model.forward_with_attention(&story).1, story.longest());
        let found: Vec<usize> = chosen(&weights).collect();
        both += asked.support.iter().filter(|at| found.contains(at)).count();
        looked += found.len();
        named += asked.support.len();
    }
    let share = |of: usize| 100.0 * f64::from(both as u32) / of.max(1) as f64;
    Ok(SupportAgreement { precision: share(looked), recall: share(named) })
}
