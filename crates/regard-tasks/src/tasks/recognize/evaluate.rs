//! Error rates of a model.

use super::names::BLANK;
use super::{Clip, Corpus, Names, Recognizer};
use crate::audio::{FrontEnd, Sound};
use crate::decode::ctc::PrefixBeam;
use crate::evaluation::{DetailedMarks, Details, Metric};
use crate::metrics::error_rate::ErrorRate;
use crate::recipe::details::{JudgedLabel, ShownInput, ShownOutput};
use burn::tensor::activation::log_softmax;
use regard_attention::ops::{Ctc, CtcTargets, ctc_loss};
use regard_attention::{Mode, backend};
use regard_models::speech::{Sounds, Speech, SpeechHead, SpeechLogits};

/// Beam width of the CTC prefix search.
pub(super) const BEAMS: usize = 16;

/// Recordings per evaluation batch.
const AT_ONCE: usize = 32;

/// Prediction for a recording.
struct Heard {
    text: String,
    /// Negative log-likelihood of the reference; `None` if it cannot be represented.
    cost: Option<f64>,
    /// Index of the predicted label and its log-probability; `None` for a transcript.
    label: Option<(usize, f32)>,
}

/// Evaluates a model; the first metric is the model selection metric. Also returns a sample.
pub(super) fn marks(
    model: &Speech,
    front: &FrontEnd,
    names: &Names,
    corpus: &Corpus,
) -> (Vec<Metric>, Option<String>) {
    let all = hear_all(model, front, names, corpus);
    marks_of(&all, corpus, names)
}

/// As [`marks`], with details. `files` names the file of each recording, if there is one for each.
pub(super) fn marks_in_detail(
    recognizer: &Recognizer,
    corpus: &Corpus,
    files: &[String],
) -> DetailedMarks {
    let names = recognizer.names();
    let all = hear_all(recognizer.model(), recognizer.front(), names, corpus);
    let input = |at: usize| {
        let file = files.get(at).filter(|_| files.len() == corpus.clips.len());
        let number = file.is_none().then_some(at + 1);
        ShownInput { number, text: file.cloned().unwrap_or_default() }
    };
    let details = match names.head() {
        SpeechHead::Labels => {
            let mut known = names.all().to_vec();
            let judged: Vec<JudgedLabel> = all
                .iter()
                .zip(corpus.texts())
                .map(|(heard, text)| {
                    // Labels that the model does not have come after its own.
                    let right = known.iter().position(|name| name == text).unwrap_or_else(|| {
                        known.push(text.to_string());
                        known.len() - 1
                    });
                    let said = heard.label.map(|(label, log)| (label, f64::from(log).exp()));
                    JudgedLabel { right, said, loss: heard.cost.unwrap_or(f64::INFINITY) }
                })
                .collect();
            Details::of_labels(&known, &judged, input)
        }
        SpeechHead::Ctc => {
            let rate = |(heard, text): (&Heard, &str)| {
                let mut letters = ErrorRate::new();
                let [said, right] =
                    [heard.text.as_str(), text].map(|text| text.chars().collect::<Vec<_>>());
                letters.add(&said, &[right]);
                100.0 * letters.rate()
            };
            let rates: Vec<f64> = all.iter().zip(corpus.texts()).map(rate).collect();
            let show = |at: usize| ShownOutput {
                input: input(at),
                reference: corpus.clips[at].text.clone(),
                hypothesis: all[at].text.clone(),
            };
            Details::of_texts("character error rate, percent", 0.0, &rates, show)
        }
    };
    (marks_of(&all, corpus, names).0, Some(details))
}

fn hear_all(model: &Speech, front: &FrontEnd, names: &Names, corpus: &Corpus) -> Vec<Heard> {
    corpus.clips.chunks(AT_ONCE).flat_map(|clips| hear(model, front, names, clips)).collect()
}

/// Computes the metrics of the predictions.
fn marks_of(all: &[Heard], corpus: &Corpus, names: &Names) -> (Vec<Metric>, Option<String>) {
    let pairs = || all.iter().map(|heard| heard.text.as_str()).zip(corpus.texts());
    let share = 100.0 / all.len().max(1) as f64;
    let wrong = pairs().filter(|(said, right)| said != right).count() as f64 * share;
    let costs: Vec<f64> = all.iter().filter_map(|heard| heard.cost).collect();
    let loss = costs.iter().sum::<f64>() / costs.len().max(1) as f64;
    let loss = Metric { name: "loss", value: loss, unit: "nats per recording" };
    let sample = pairs().find(|(said, right)| said != right).or(pairs().next());
    let sample = sample.map(|(said, right)| format!("{right} → {said}"));
    let marks = match names.head() {
        SpeechHead::Labels => {
            let accuracy =
                Metric { name: "accuracy", value: 100.0 - wrong, unit: "% of recordings" };
            vec![accuracy, loss]
        }
        SpeechHead::Ctc => {
            let (mut words, mut letters) = (ErrorRate::new(), ErrorRate::new());
            for (said, right) in pairs() {
                words.add_line(said, &[right]);
                let [said, right] = [said, right].map(|text| text.chars().collect::<Vec<_>>());
                letters.add(&said, &[right]);
            }
            vec![
                Metric { name: "wer", value: 100.0 * words.rate(), unit: "% of words" },
                Metric { name: "cer", value: 100.0 * letters.rate(), unit: "% of characters" },
                Metric { name: "wrong", value: wrong, unit: "% of recordings" },
                loss,
            ]
        }
    };
    (marks, sample)
}

fn hear(model: &Speech, front: &FrontEnd, names: &Names, clips: &[Clip]) -> Vec<Heard> {
    let mut sounds = Sounds::new(front.width());
    let rate = front.preprocessor().sampling_rate;
    for clip in clips {
        sounds.push(&front.rows(&Sound { samples: clip.samples.clone(), rate }));
    }
    let SpeechLogits { logits, lengths } = model.forward(&sounds, Mode::Eval);
    let [_, classes] = logits.dims();
    let right: Vec<Option<Vec<i64>>> = clips.iter().map(|clip| names.encode(&clip.text)).collect();
    let logs = log_softmax(logits.clone(), 1);
    let mut rows = vec![];
    backend::numbers(logs, &mut rows);
    let rows: Vec<&[f32]> = rows.chunks_exact(classes).collect();
    match model.settings().head {
        SpeechHead::Labels => {
            let judge = |(row, right): (&&[f32], &Option<Vec<i64>>)| {
                let best = (0..classes).rev().max_by(|a, b| row[*a].total_cmp(&row[*b]));
                Heard {
                    text: names.label(best.unwrap_or(0)).to_string(),
                    cost: right.as_ref().map(|right| -f64::from(row[right[0] as usize])),
                    label: best.map(|best| (best, row[best])),
                }
            };
            rows.iter().zip(&right).map(judge).collect()
        }
        SpeechHead::Ctc => {
            let mut said = CtcTargets::new();
            for (rows, letters) in lengths.iter().zip(&right) {
                said.push(*rows, letters.as_deref().unwrap_or_default());
            }
            let options = Ctc { blank: BLANK, zero_infinity: false };
            let mut costs = vec![];
            backend::numbers(ctc_loss(logits, said, options), &mut costs);
            let mut next = 0;
            let judge = |((count, cost), right): ((&usize, f32), &Option<Vec<i64>>)| {
                let mut beam = PrefixBeam::new(BEAMS, BLANK);
                rows[next..next + count].iter().for_each(|row| beam.push(row));
                next += count;
                // A reference with more characters than rows has an infinite loss, which is left
                // out of the mean.
                let cost = right.as_ref().map(|_| f64::from(cost)).filter(|cost| cost.is_finite());
                Heard { text: names.text(&beam.best(1)[0].0), cost, label: None }
            };
            lengths.iter().zip(costs).zip(&right).map(judge).collect()
        }
    }
}
