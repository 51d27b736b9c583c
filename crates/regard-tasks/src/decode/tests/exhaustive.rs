//! A beam that holds everything finds what exhaustive search finds.

use super::model::{Formula, IDS, Model, hashed, log_softmax, run, sentences};
use crate::decode::{EarlyStopping, Options, decode};

const V: usize = 5;
const EOS: u32 = 1;

/// All sentences of at most `most` tokens after `text`, with their sums of log-probabilities; those
/// without an end token have exactly `most`.
fn enumerate(
    text: &mut Vec<u32>,
    (sum, most): (f64, usize),
    logits: &dyn Fn(&[u32]) -> Vec<f32>,
    found: &mut Vec<(Vec<u32>, f64)>,
) {
    for (token, log_prob) in log_softmax(&logits(text)).into_iter().enumerate() {
        text.push(token as u32);
        if token as u32 == EOS || most == 1 {
            found.push((text[1..].to_vec(), sum + log_prob));
        } else {
            enumerate(text, (sum + log_prob, most - 1), logits, found);
        }
        text.pop();
    }
}

fn check(sentence: usize, most: usize, length_penalty: f32, early_stopping: EarlyStopping) {
    let formula = hashed(V);
    let formula: &Formula = &formula;
    let mut found = Vec::new();
    enumerate(&mut vec![0], (0.0, most), &|text| formula(sentence, text), &mut found);
    let score = |(tokens, sum): &(Vec<u32>, f64)| {
        sum / (tokens.len() as f64).powf(f64::from(length_penalty))
    };
    found.sort_by(|a, b| score(b).total_cmp(&score(a)));
    let options = Options {
        num_beams: 400,
        num_return_sequences: 30,
        max_length: most + 1,
        length_penalty,
        early_stopping,
        ..Options::default()
    };
    let results = run(V, &sentences(sentence + 1)[sentence..], &options, formula);
    assert_eq!(results[0].len(), found.len().min(30));
    for (got, want) in results[0].iter().zip(&found) {
        let mut written = got.tokens.clone();
        written.extend(got.finished.then_some(EOS));
        assert_eq!(written, want.0, "sentence {sentence}, length penalty {length_penalty}");
        assert!((f64::from(got.log_prob) - want.1).abs() < 1e-5);
        assert!((f64::from(got.score) - score(want)).abs() < 1e-5);
    }
}

#[test]
fn a_beam_that_holds_everything_finds_the_best() {
    for sentence in 0..8 {
        for length_penalty in [0.0, 0.6, 1.0, 2.0, -1.0] {
            check(sentence, 4, length_penalty, EarlyStopping::Never);
            check(sentence, 3, length_penalty, EarlyStopping::False);
            check(sentence, 1, length_penalty, EarlyStopping::True);
        }
    }
}

#[test]
fn a_patient_search_is_longer_and_never_worse() {
    // With early stopping "true", patience only changes when the search stops, so that a patient
    // search has finished all that an impatient one has, and more.
    let mut better = 0;
    for sentence in 0..40 {
        let one = &sentences(sentence + 1)[sentence..];
        let search = |patience| {
            let options = Options {
                num_beams: 3,
                patience,
                max_length: 12,
                length_penalty: 2.0,
                early_stopping: EarlyStopping::True,
                ..Options::default()
            };
            let formula = hashed(V);
            let mut model = Model::new(V, one, &formula);
            let found = decode(&mut model, one, &options, &IDS).unwrap();
            (found[0][0].score, model.widths.len())
        };
        let (some, more, most) = (search(1.0), search(2.0), search(4.0));
        assert!(some.0 <= more.0 && more.0 <= most.0);
        assert!(some.1 <= more.1 && more.1 <= most.1);
        better += usize::from(some.0 < most.0 && some.1 < most.1);
    }
    assert!(better > 0, "patience never helped");
}
