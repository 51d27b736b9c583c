//! Details of an evaluation: metrics of each label, the confusion matrix, and the worst examples.

use crate::data::split::hash;
use crate::import::Places;
use crate::metrics::PrecisionRecall;
use crate::say;
use serde::Serialize;

/// Largest number of worst examples.
const KEPT: usize = 10;
/// Largest number of labels with a confusion matrix, whose size is the square of it.
const MOST_CONFUSED: usize = 200;
/// Number of characters that texts are shortened to.
const LONGEST: usize = 300;

/// Details of an evaluation: which labels are confused, and which examples are most wrong.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Details {
    /// Metrics of each label; empty for a task without labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<LabelMetrics>,
    /// Confusion matrix in the order of `labels`: a row for each true label, with the number of
    /// examples predicted as each label. Empty without labels or with more than 200.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub confusion: Vec<Vec<u64>>,
    /// Measure that `worst` is ordered by.
    pub worst_by: &'static str,
    /// Worst examples, at most ten, the worst first.
    pub worst: Vec<WorstExample>,
    /// Predictions for all examples with labels, in their order.
    #[serde(skip)]
    pub predictions: Vec<Prediction>,
}

/// Prediction for an example, with indices into the labels of the details.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// True label.
    pub right: usize,
    /// Predicted label; `None` if there was no prediction.
    pub said: Option<usize>,
    /// Hash of its whole input as it is shown, which tells whether two models saw the same example.
    pub input: u64,
    /// Input of a wrong prediction, shortened.
    pub text: Option<String>,
    /// Number of the example in the data, from 1, if it is known.
    pub number: Option<usize>,
}

/// Metrics of one label.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LabelMetrics {
    /// Name of the label.
    pub label: String,
    /// Percentage of its predictions that are right.
    pub precision: f64,
    /// Percentage of its examples that were predicted as it.
    pub recall: f64,
    /// Harmonic mean of precision and recall, percent.
    pub f1: f64,
    /// Number of examples with this label.
    pub support: u64,
    /// Number of examples predicted as this label.
    pub predicted: u64,
    /// Number of examples with this label for which the model made no prediction.
    pub missed: u64,
}

/// An example that the model got wrong, or nearly so.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum WorstExample {
    /// An example with a label.
    Label(WorstLabel),
    /// An example whose output is a text.
    Text(WorstText),
}

/// An example whose true label the model considers improbable.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorstLabel {
    /// Number of the example in the data, from 1; `None` if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<usize>,
    /// File and line of the user's data, as `FILE:LINE`, if they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Input, shortened: its text, or the name of a file, image or node.
    pub text: String,
    /// True label.
    pub label: String,
    /// Probability of the true label, 0 to 1.
    pub probability: f64,
    /// Predicted label.
    pub predicted: String,
    /// Probability of the predicted label, 0 to 1.
    pub predicted_probability: f64,
}

/// An example whose output differs from its reference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorstText {
    /// Number of the example in the data, from 1; `None` if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<usize>,
    /// Input, shortened: source, text, question or query.
    pub text: String,
    /// Reference, shortened; several are separated by ` | `.
    pub reference: String,
    /// Output of the model, shortened.
    pub hypothesis: String,
    /// Value of the measure that the examples are ordered by.
    pub score: f64,
}

/// Result of one example with one label.
pub(crate) struct JudgedLabel {
    /// Index of the true label.
    pub right: usize,
    /// Index of the predicted label and its probability; `None` if there was no prediction.
    pub said: Option<(usize, f64)>,
    /// Negative log-likelihood of the true label; infinite if the model does not have it.
    pub loss: f64,
}

impl JudgedLabel {
    /// Computes the probabilities from the logits of all labels.
    pub fn new(logits: &[f32], said: usize, right: usize) -> JudgedLabel {
        let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f64 = logits.iter().map(|x| f64::from(x - most).exp()).sum();
        let log = |label: usize| logits.get(label).map(|x| f64::from(x - most) - sum.ln());
        let said = log(said).map(|log| (said, log.exp()));
        JudgedLabel { right, said, loss: log(right).map_or(f64::INFINITY, |log| -log) }
    }

    /// Returns the result of an example without a prediction.
    pub fn missed(right: usize) -> JudgedLabel {
        JudgedLabel { right, said: None, loss: f64::INFINITY }
    }
}

/// Input of an example, as it is shown.
pub(crate) struct ShownInput {
    pub number: Option<usize>,
    pub text: String,
}

/// Output of a model for one example, as it is shown.
pub(crate) struct ShownOutput {
    pub input: ShownInput,
    pub reference: String,
    pub hypothesis: String,
}

impl Details {
    /// Counts the labels of all examples. `names` are those of all labels by index, `show` returns
    /// the input of an example by index.
    pub(crate) fn of_labels(
        names: &[String],
        all: &[JudgedLabel],
        show: impl Fn(usize) -> ShownInput,
    ) -> Details {
        // A configuration need not name every label of its model.
        let seen = |judged: &JudgedLabel| judged.right.max(judged.said.map_or(0, |(at, _)| at)) + 1;
        let most = all.iter().map(seen).max().unwrap_or(0).max(names.len());
        let rest = (names.len()..most).map(|label| format!("LABEL_{label}"));
        let names: Vec<String> = names.iter().cloned().chain(rest).collect();
        let count = || vec![0u64; names.len()];
        let (mut both, mut predicted, mut support, mut missed) =
            (count(), count(), count(), count());
        let mut confusion = match names.len() {
            0..=MOST_CONFUSED => vec![count(); names.len()],
            _ => vec![],
        };
        for JudgedLabel { right, said, .. } in all {
            support[*right] += 1;
            let Some((said, _)) = said else {
                missed[*right] += 1;
                continue;
            };
            predicted[*said] += 1;
            both[*right] += u64::from(said == right);
            if let Some(row) = confusion.get_mut(*right) {
                row[*said] += 1;
            }
        }
        let of_label = |(at, name): (usize, &String)| {
            let PrecisionRecall { precision, recall, f1 } =
                PrecisionRecall::of(both[at], predicted[at], support[at]);
            LabelMetrics {
                label: name.clone(),
                precision: 100.0 * precision,
                recall: 100.0 * recall,
                f1: 100.0 * f1,
                support: support[at],
                predicted: predicted[at],
                missed: missed[at],
            }
        };
        let labels = names.iter().enumerate().map(of_label).collect();
        // Examples without a prediction, or with a label that the model does not have, are counted
        // above; there is nothing to learn from their inputs.
        let mut worst: Vec<usize> = (0..all.len())
            .filter(|at| all[*at].said.is_some() && !all[*at].loss.is_infinite())
            .collect();
        worst.sort_by(|a, b| all[*b].loss.total_cmp(&all[*a].loss));
        worst.truncate(KEPT);
        let shown = |at: usize| {
            let JudgedLabel { right, said, loss } = &all[at];
            let (said, predicted_probability) = said.expect("others were left out");
            let ShownInput { number, text } = show(at);
            WorstExample::Label(WorstLabel {
                number,
                place: None,
                text: say::short(&text, LONGEST),
                label: names[*right].clone(),
                probability: (-loss).exp(),
                predicted: names[said].clone(),
                predicted_probability,
            })
        };
        let worst = worst.into_iter().map(shown).collect();
        let prediction = |(at, judged): (usize, &JudgedLabel)| {
            let (right, said) = (judged.right, judged.said.map(|(said, _)| said));
            let ShownInput { number, text } = show(at);
            let input = hash(&text);
            // Only wrong ones are shown to the user.
            let text = (said != Some(right)).then(|| say::short(&text, LONGEST));
            Prediction { right, said, input, text, number }
        };
        let predictions = all.iter().enumerate().map(prediction).collect();
        Details { labels, confusion, worst_by: "loss of the true label", worst, predictions }
    }

    /// Sets the places of the worst examples in the user's files, by their numbers.
    pub fn locate(&mut self, places: &Places) {
        for example in &mut self.worst {
            if let WorstExample::Label(worst) = example {
                worst.place = worst.number.and_then(|number| places.get(number));
            }
        }
    }

    /// Orders examples by their distance from the `perfect` score; those that have it are left out.
    /// `show` returns the input and output of an example by index.
    pub(crate) fn of_texts(
        worst_by: &'static str,
        perfect: f64,
        scores: &[f64],
        show: impl Fn(usize) -> ShownOutput,
    ) -> Details {
        let distance = |at: usize| (perfect - scores[at]).abs();
        // Scores of perfect outputs differ from the perfect score by rounding.
        let mut worst: Vec<usize> =
            (0..scores.len()).filter(|at| distance(*at) > 1e-9 * perfect.max(1.0)).collect();
        worst.sort_by(|a, b| distance(*b).total_cmp(&distance(*a)));
        worst.truncate(KEPT);
        let shown = |at: usize| {
            let ShownOutput { input: ShownInput { number, text }, reference, hypothesis } =
                show(at);
            WorstExample::Text(WorstText {
                number,
                text: say::short(&text, LONGEST),
                reference: say::short(&reference, LONGEST),
                hypothesis: say::short(&hypothesis, LONGEST),
                score: scores[at],
            })
        };
        let worst = worst.into_iter().map(shown).collect();
        Details { worst_by, worst, ..Details::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[&str]) -> Vec<String> {
        all.iter().map(|name| name.to_string()).collect()
    }

    fn shown(at: usize) -> ShownInput {
        ShownInput { number: Some(at + 1), text: format!("text {at}") }
    }

    fn texts(details: &Details) -> Vec<String> {
        let text = |worst: &WorstExample| match worst {
            WorstExample::Label(label) => label.text.clone(),
            WorstExample::Text(text) => text.text.clone(),
        };
        details.worst.iter().map(text).collect()
    }

    #[test]
    fn confusions_by_hand() {
        // True and predicted: a a, a b, b b, b b, c none, and d, which the model does not have.
        let judged = [
            JudgedLabel::new(&[2.0, 0.0, 0.0], 0, 0),
            JudgedLabel::new(&[0.0, 3.0, 0.0], 1, 0),
            JudgedLabel::new(&[0.0, 1.0, 0.0], 1, 1),
            JudgedLabel::new(&[0.0, 9.0, 0.0], 1, 1),
            JudgedLabel::missed(2),
            JudgedLabel::new(&[0.0, 9.0, 0.0], 1, 3),
        ];
        let details = Details::of_labels(&names(&["a", "b", "c", "d"]), &judged, shown);
        let rows = [[1, 1, 0, 0], [0, 2, 0, 0], [0, 0, 0, 0], [0, 1, 0, 0]];
        assert_eq!(details.confusion, rows.map(|row| row.to_vec()));
        let of = |at: usize| &details.labels[at];
        let (a, b) = (of(0), of(1));
        assert_eq!((a.precision, a.recall, a.support, a.predicted), (100.0, 50.0, 2, 1));
        assert!((a.f1 - 200.0 / 3.0).abs() < 1e-12);
        assert_eq!((b.precision, b.recall, b.support, b.predicted), (50.0, 100.0, 2, 4));
        assert_eq!((of(2).support, of(2).missed, of(2).f1), (1, 1, 0.0));
        assert_eq!((of(3).support, of(3).missed, of(3).recall), (1, 0, 0.0));
        // The losses: 0.24, 3.09, 0.55 and 0.00; the last two have none.
        assert_eq!(texts(&details), ["text 1", "text 2", "text 0", "text 3"]);
        let WorstExample::Label(worst) = &details.worst[0] else { panic!("a label") };
        let sum = 2.0 + 3f64.exp();
        assert!((worst.probability - 1.0 / sum).abs() < 1e-12, "{worst:?}");
        assert!((worst.predicted_probability - 3f64.exp() / sum).abs() < 1e-12, "{worst:?}");
        let named = (worst.number, &*worst.label, &*worst.predicted);
        assert_eq!(named, (Some(2), "a", "b"));
    }

    #[test]
    fn predictions_know_their_inputs() {
        let judged = [JudgedLabel::new(&[2.0, 0.0], 0, 0), JudgedLabel::new(&[0.0, 3.0], 1, 0)];
        let of = |end: &str| {
            let long = "x".repeat(2 * LONGEST);
            let show = |at: usize| ShownInput { number: None, text: format!("{at} {long} {end}") };
            Details::of_labels(&names(&["a", "b"]), &judged, show).predictions
        };
        let (one, same, other) = (of("end"), of("end"), of("another end"));
        assert_eq!(one, same);
        assert_ne!(one[0].input, one[1].input);
        // Of a right prediction too, and beyond what is shown.
        assert!(one.iter().zip(&other).all(|(one, other)| one.input != other.input));
        assert_eq!((one[0].text.clone(), one[1].text.clone()), (None, other[1].text.clone()));
    }

    #[test]
    fn lists_stay_short() {
        let label = |at: usize| JudgedLabel::new(&[at as f32, 0.0], usize::from(at == 0), 1);
        let judged: Vec<JudgedLabel> = (0..25).map(label).collect();
        let long =
            |at: usize| ShownInput { number: None, text: format!("{at} {}", "x".repeat(999)) };
        let details = Details::of_labels(&names(&["a", "b"]), &judged, long);
        assert_eq!(details.worst.len(), 10);
        assert!(texts(&details)[0].starts_with("24 x") && texts(&details)[9].starts_with("15 x"));
        assert!(texts(&details).iter().all(|text| text.chars().count() <= LONGEST + 1));
        let many: Vec<String> = (0..300).map(|label| label.to_string()).collect();
        let details = Details::of_labels(&many, &judged, shown);
        assert_eq!((details.labels.len(), details.confusion.len()), (300, 0));
        assert_eq!(Details::of_labels(&[], &[], shown).worst, []);
    }

    #[test]
    fn texts_are_ordered_by_their_distance_from_a_perfect_score() {
        let show = |at: usize| ShownOutput {
            input: shown(at),
            reference: "reference".into(),
            hypothesis: "hypothesis".into(),
        };
        let higher = Details::of_texts("chrF", 100.0, &[50.0, 100.0, 10.0, 99.0], show);
        assert_eq!(texts(&higher), ["text 2", "text 0", "text 3"]);
        let lower = Details::of_texts("error rate", 0.0, &[50.0, 0.0, f64::INFINITY, 120.0], show);
        assert_eq!(texts(&lower), ["text 2", "text 3", "text 0"]);
        let WorstExample::Text(worst) = &higher.worst[0] else { panic!("a text") };
        assert_eq!((worst.score, worst.number), (10.0, Some(3)));
        assert!(higher.labels.is_empty() && higher.confusion.is_empty());
    }

    #[test]
    fn as_json() {
        let judged = [JudgedLabel::new(&[0.0, 0.0], 1, 0)];
        let details = Details::of_labels(&names(&["a", "b"]), &judged, shown);
        let json = serde_json::to_value(&details).unwrap();
        assert_eq!(json["confusion"], serde_json::json!([[0, 1], [0, 0]]));
        assert_eq!(json["labels"][0]["label"], "a");
        assert_eq!(json["worst"][0]["probability"], 0.5);
        assert_eq!(json["worst"][0]["text"], "text 0");
    }
}
