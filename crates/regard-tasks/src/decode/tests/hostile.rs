//! The search ends whatever the model returns, and invalid options are errors.

use super::model::{Formula, IDS, Model, hash, run, sentences};
use crate::decode::{DecodeInput, EarlyStopping, Hypothesis, Options, decode};

const V: usize = 12;
const NAN: f32 = f32::NAN;
const INF: f32 = f32::INFINITY;

fn kinds() -> Vec<Options> {
    let base = Options { max_length: 12, ..Options::default() };
    let beam = Options { num_beams: 3, num_return_sequences: 3, ..base.clone() };
    vec![
        base.clone(),
        Options { repetition_penalty: 2.0, ..base.clone() },
        Options { do_sample: true, num_return_sequences: 4, ..base.clone() },
        Options { do_sample: true, top_k: 0, top_p: 0.5, min_p: 0.1, ..base },
        beam.clone(),
        Options { early_stopping: EarlyStopping::Never, length_penalty: -2.0, ..beam.clone() },
        Options { repetition_penalty: 2.0, no_repeat_ngram_size: 1, ..beam.clone() },
        Options { do_sample: true, top_k: 0, ..beam },
    ]
}

fn check(formula: &Formula, mut right: impl FnMut(&Hypothesis) -> bool) {
    for options in kinds() {
        for found in run(V, &sentences(3), &options, formula) {
            assert!(!found.is_empty(), "{options:?}");
            assert!(found.iter().all(&mut right), "{options:?}: {found:?}");
            for found in &found {
                assert_eq!(
                    found.token_log_probs.len(),
                    found.tokens.len() + usize::from(found.finished)
                );
                assert!(!found.log_prob.is_nan() && !found.score.is_nan(), "{options:?}");
            }
        }
    }
}

#[test]
fn a_model_that_says_nothing_writes_nothing() {
    check(&|_, _| vec![-INF; V], |found| found.tokens.is_empty() && !found.finished);
}

/// NaN and +∞ logits are an error in every kind of search.
fn refused(formula: &Formula) {
    let all = sentences(3);
    for options in kinds() {
        let mut model = Model::new(V, &all, formula);
        let error = decode(&mut model, &all, &options, &IDS).unwrap_err().to_string();
        assert!(error.contains("need finite numbers"), "{options:?}: {error}");
    }
}

#[test]
fn a_model_that_stops_making_sense_is_an_error() {
    let formula = |sentence: usize, text: &[u32]| -> Vec<f32> {
        let row = (0..V).map(|token| if token == 1 { -INF } else { hash(sentence, text, token) });
        if text.len() < 4 { row.collect() } else { vec![NAN; V] }
    };
    refused(&formula);
}

#[test]
fn one_logit_that_is_no_number_is_an_error() {
    let formula = |sentence: usize, text: &[u32]| -> Vec<f32> {
        let odd =
            |token: usize| if token.is_multiple_of(2) { NAN } else { hash(sentence, text, token) };
        (0..V).map(odd).collect()
    };
    refused(&formula);
}

#[test]
fn infinite_logits_are_an_error() {
    refused(&|_, text| {
        (0..V).map(|token| if token == text.len() + 1 { INF } else { 0.0 }).collect()
    });
    refused(&|_, _| vec![INF; V]);
    refused(&|_, _| vec![NAN; V]);
    check(&|_, _| (0..V).map(|t| [f32::MAX, f32::MIN, -INF][t % 3]).collect(), |_| true);
}

#[test]
fn attention_that_is_not_a_number_costs_the_score_only() {
    let all: Vec<DecodeInput> =
        sentences(2).into_iter().map(|s| DecodeInput { source: 3, ..s }).collect();
    for options in kinds() {
        let options = Options { coverage_penalty: 0.5, ..options };
        let formula = super::model::hashed(V);
        let mut model = Model::new(V, &all, &formula).looking(3, &|_, _| vec![NAN; 3]);
        for found in decode(&mut model, &all, &options, &IDS).unwrap() {
            assert!(!found.is_empty() && found.iter().all(|h| h.score == -INF && h.log_prob < 0.0));
        }
    }
}

#[test]
fn equal_logits_give_the_lowest_token() {
    let options = Options { max_length: 5, ..Options::default() };
    assert_eq!(run(V, &sentences(1), &options, &|_, _| vec![3.0; V])[0][0].tokens, [0; 4]);
}

#[test]
fn nothing_to_decode_gives_nothing() {
    for options in kinds() {
        let mut model = Model::new(V, &[], &|_, _| panic!("no step"));
        assert!(decode(&mut model, &[], &options, &IDS).unwrap().is_empty());
        assert!(model.widths.is_empty() && model.reorders == 0);
    }
}

#[test]
fn without_an_end_only_the_length_stops() {
    let ids = crate::decode::Ids { eos: vec![], ..IDS.clone() };
    for options in kinds().into_iter().filter(|options| options.no_repeat_ngram_size == 0) {
        let all = sentences(2);
        let formula = super::model::hashed(V);
        let mut model = Model::new(V, &all, &formula);
        for found in decode(&mut model, &all, &options, &ids).unwrap().iter().flatten() {
            assert_eq!((found.tokens.len(), found.finished), (11, false));
        }
    }
}

#[test]
fn padding_is_never_written() {
    let ids = crate::decode::Ids { pad: Some(4), ..IDS.clone() };
    let all = sentences(2);
    let likes_padding = |_: usize, _: &[u32]| (0..V).map(|t| f32::from(t == 4) * 9.0).collect();
    for options in kinds() {
        let mut model = Model::new(V, &all, &likes_padding as &Formula);
        for found in decode(&mut model, &all, &options, &ids).unwrap().iter().flatten() {
            assert!(!found.tokens.contains(&4));
        }
    }
}

#[test]
fn what_cannot_be_asked_for_is_told() {
    let none = Options::default;
    let check = |options: Options, message: &str| {
        let all = [DecodeInput { prompt: vec![2; 8], ..DecodeInput::default() }];
        let formula = super::model::hashed(V);
        let mut model = Model::new(V, &all, &formula);
        let error = decode(&mut model, &all, &options, &IDS).unwrap_err().to_string();
        assert_eq!(error, message);
    };
    check(Options { num_beams: 0, ..none() }, "num_beams: got 0, need 1 to 1024");
    check(Options { temperature: 0.0, ..none() }, "temperature: got 0, need a number above 0");
    check(Options { temperature: NAN, ..none() }, "temperature: got NaN, need a number above 0");
    check(Options { top_p: 1.5, ..none() }, "top_p: got 1.5, need a number from 0 to 1");
    check(Options { patience: -1.0, ..none() }, "patience: got -1, need a number above 0");
    check(
        Options { length_penalty: INF, ..none() },
        "length_penalty: got inf, need a finite number",
    );
    check(
        Options { num_return_sequences: 2, ..none() },
        "num_return_sequences: got 2, need at most num_beams, unless do_sample is on and \
         num_beams is 1",
    );
    check(
        Options { max_length: 8, ..none() },
        "max_length: got 8, but sentence 0 begins with 8 tokens already; raise max_length, or \
         give max_new_tokens",
    );
    check(
        Options { coverage_penalty: 0.2, ..none() },
        "coverage_penalty: got 0.2, but this model returns no attention weights; leave it at 0",
    );
}

#[test]
fn options_are_read_as_they_are_known() {
    let text = r#"{"num_beams": 4, "early_stopping": "never", "length_penalty": 0.6}"#;
    let options: Options = serde_json::from_str(text).unwrap();
    assert_eq!((options.num_beams, options.early_stopping), (4, EarlyStopping::Never));
    assert_eq!((options.top_k, options.max_length), (50, 256));
    for stop in [EarlyStopping::False, EarlyStopping::True, EarlyStopping::Never] {
        let options = Options { early_stopping: stop, ..Options::default() };
        let text = toml::to_string(&options).unwrap();
        assert_eq!(toml::from_str::<Options>(&text).unwrap(), options);
    }
    for (text, message) in [
        (r#"{"early_stopping": "often"}"#, "need false, true or \"never\""),
        (r#"{"beam_size": 4}"#, "unknown field `beam_size`"),
    ] {
        let error = serde_json::from_str::<Options>(text).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}
