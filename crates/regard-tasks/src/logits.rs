//! Converts logits to probabilities and ranked labels.

use regard_models::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A label with its probability.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Label {
    /// Name of the label.
    pub label: String,
    /// Probability, from 0 to 1.
    pub score: f64,
}

/// Returns all labels with their softmax probabilities, the likeliest first.
///
/// # Errors
/// If a logit is NaN or infinite: the input is too large, or the weights are damaged.
pub(crate) fn ranked(scores: &[f32], name: impl Fn(usize) -> String) -> Result<Vec<Label>> {
    finite(scores)?;
    let each = softmax(scores).into_iter().enumerate();
    let mut all: Vec<Label> = each.map(|(i, score)| Label { label: name(i), score }).collect();
    all.sort_by(|a, b| b.score.total_cmp(&a.score));
    Ok(all)
}

/// Returns an error if a score is NaN or infinite.
pub(crate) fn finite(scores: &[f32]) -> Result<()> {
    match scores.iter().find(|score| !score.is_finite()) {
        None => Ok(()),
        Some(score) => Err(not_finite(*score)),
    }
}

/// Builds the error for a model output that is NaN or infinite.
pub(crate) fn not_finite(score: f32) -> Error {
    Error::invalid(format!(
        "the model output is {score}, need finite numbers: the input is too large, or the \
         weights are damaged"
    ))
}

/// Computes softmax in f64.
pub(crate) fn softmax(logits: &[f32]) -> Vec<f64> {
    let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let powers: Vec<f64> = logits.iter().map(|x| f64::from(x - most).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.into_iter().map(|x| x / sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_ranked_and_scores_that_are_no_numbers_are_no_answer() {
        let name = |label: usize| label.to_string();
        let ranked_of = |scores: &[f32]| ranked(scores, name);
        let all = ranked_of(&[0.0, 2.0, 1.0]).unwrap();
        let order: Vec<&str> = all.iter().map(|label| label.label.as_str()).collect();
        assert_eq!(order, ["1", "2", "0"]);
        assert!((all.iter().map(|label| label.score).sum::<f64>() - 1.0).abs() < 1e-12);
        for wrong in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let error = ranked_of(&[0.0, wrong]).unwrap_err().to_string();
            assert!(error.contains("too large"), "{error}");
        }
    }
}
