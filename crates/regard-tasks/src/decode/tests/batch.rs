//! A sentence gets the same result in a batch as alone, with the right scores and attention.

use super::model::{Formula, IDS, Model, hash, hashed, log_softmax, run, sentences};
use crate::decode::{DecodeInput, EarlyStopping, Hypothesis, Options, decode};

const V: usize = 40;

/// Sentences end at different lengths: the end token is certain after a length set by the sentence.
fn logits(sentence: usize, text: &[u32]) -> Vec<f32> {
    let mut row: Vec<f32> = (0..V).map(|token| hash(sentence, text, token)).collect();
    row[1] += if text.len() > 2 + sentence % 7 { 9.0 } else { -3.0 };
    row
}

fn source(sentence: usize) -> usize {
    3 + sentence * 5 % 7
}

fn attention(sentence: usize, text: &[u32]) -> Vec<f32> {
    let scores: Vec<f32> = (0..source(sentence)).map(|j| hash(sentence + 99, text, j)).collect();
    log_softmax(&scores).iter().map(|x| x.exp() as f32).collect()
}

fn search(sentences: &[DecodeInput], options: &Options) -> (Vec<Vec<Hypothesis>>, Vec<usize>) {
    let keys = sentences.iter().map(|s| s.source).max().unwrap_or(0);
    let mut model = Model::new(V, sentences, &logits as &Formula).looking(keys, &attention);
    let results = decode(&mut model, sentences, options, &IDS).unwrap();
    (results, model.widths)
}

fn many() -> Vec<DecodeInput> {
    let mut all = sentences(9);
    for (i, sentence) in all.iter_mut().enumerate() {
        sentence.source = source(i);
        sentence.target_prefix = (0..i as u32 % 3).map(|t| 5 + t).collect();
        if i % 4 == 3 {
            sentence.prompt = vec![0, 7, 8];
        }
    }
    all
}

fn kinds() -> Vec<Options> {
    let base = Options { max_length: 20, ..Options::default() };
    let beam = Options { num_beams: 4, num_return_sequences: 3, ..base.clone() };
    let sample = Options { do_sample: true, seed: 7, ..base.clone() };
    vec![
        base.clone(),
        Options { repetition_penalty: 1.4, no_repeat_ngram_size: 2, ..base.clone() },
        beam.clone(),
        Options { early_stopping: EarlyStopping::True, length_penalty: 0.2, ..beam.clone() },
        Options { early_stopping: EarlyStopping::Never, ..beam.clone() },
        Options { patience: 2.0, coverage_penalty: 0.3, ..beam.clone() },
        Options { repetition_penalty: 1.4, min_length: 9, ..beam.clone() },
        Options { max_len_a: 1.0, max_len_b: 3, ..beam.clone() },
        Options { do_sample: true, temperature: 0.7, ..beam },
        sample.clone(),
        Options { num_return_sequences: 3, top_p: 0.8, top_k: 0, ..sample.clone() },
        Options { num_return_sequences: 2, min_p: 0.1, max_new_tokens: Some(4), ..sample },
    ]
}

#[test]
fn a_batch_gives_what_each_sentence_gives_alone() {
    for options in kinds() {
        let all = many();
        let (together, _) = search(&all, &options);
        for (sentence, want) in all.iter().zip(&together) {
            let (alone, _) = search(std::slice::from_ref(sentence), &options);
            assert_eq!(&alone[0], want, "sentence {} by {options:?}", sentence.index);
        }
        let backwards: Vec<DecodeInput> = all.iter().rev().cloned().collect();
        let (mut results, _) = search(&backwards, &options);
        results.reverse();
        assert_eq!(results, together, "{options:?}");
    }
}

#[test]
fn threads_change_nothing() {
    // Together the rows are enough to use several threads, alone they are not.
    let v = 20_001;
    let all = sentences(5);
    for num_beams in [1, 3] {
        let options = Options { num_beams, max_length: 6, ..Options::default() };
        let together = run(v, &all, &options, &hashed(v));
        for (sentence, want) in all.iter().zip(&together) {
            let alone = run(v, std::slice::from_ref(sentence), &options, &hashed(v));
            assert_eq!(&alone[0], want);
        }
    }
}

#[test]
fn hypotheses_say_what_the_model_said() {
    for options in kinds() {
        let all = many();
        let (results, _) = search(&all, &options);
        for (sentence, hypotheses) in all.iter().zip(&results) {
            assert!(!hypotheses.is_empty() && hypotheses.len() <= options.num_return_sequences);
            assert!(hypotheses.is_sorted_by(|a, b| a.score >= b.score));
            for found in hypotheses {
                check(sentence, found, &options);
            }
        }
    }
}

/// Recomputes the hypotheses from the formulas.
fn check(sentence: &DecodeInput, found: &Hypothesis, options: &Options) {
    let index = sentence.index as usize;
    let mut text = if sentence.prompt.is_empty() { vec![0] } else { sentence.prompt.clone() };
    let mut written = found.tokens.clone();
    written.extend(found.finished.then_some(1));
    assert!(found.tokens.starts_with(&sentence.target_prefix));
    assert_eq!(found.token_log_probs.len(), written.len());
    assert_eq!(found.attention.len(), written.len());
    for (t, token) in written.iter().enumerate() {
        let want = log_softmax(&logits(index, &text))[*token as usize];
        let want = if t < sentence.target_prefix.len() { 0.0 } else { want };
        assert!((f64::from(found.token_log_probs[t]) - want).abs() < 1e-5, "{options:?}");
        assert_eq!(found.attention[t], attention(index, &text), "{options:?}");
        text.push(*token);
    }
    let plain = options.repetition_penalty == 1.0 && options.temperature == 1.0;
    if plain && options.coverage_penalty == 0.0 {
        let length = (written.len() - sentence.target_prefix.len()) as f32;
        let want = found.log_prob / length.powf(options.length_penalty);
        assert!((found.score - want).abs() < 1e-5, "{options:?}");
    }
    if options.coverage_penalty != 0.0 {
        let covered = |j: usize| found.attention.iter().map(|row| row[j]).sum::<f32>().min(1.0);
        let penalty: f32 = (0..sentence.source).map(|j| covered(j).ln()).sum();
        let length = (written.len() - sentence.target_prefix.len()) as f32;
        let want = found.log_prob / length + options.coverage_penalty * penalty;
        assert!((found.score - want).abs() < 1e-4, "{} for {want}", found.score);
    }
}

#[test]
fn finished_sentences_leave_the_batch() {
    for options in kinds() {
        let (results, widths) = search(&many(), &options);
        let rows = options.num_beams.max(if options.do_sample { 3 } else { 1 });
        assert_eq!(widths[0], 9);
        assert!(widths.iter().all(|width| *width <= 9 * rows));
        assert!(widths[widths.len() - 1] < widths[3], "{widths:?}");
        let longest = results.iter().flatten().map(|h| h.token_log_probs.len()).max().unwrap();
        assert!(widths.len() >= longest);
    }
    // Greedy search feeds each sentence exactly as often as it has tokens.
    let (results, widths) = search(&many(), &kinds()[0]);
    let fed: usize = results.iter().map(|found| found[0].token_log_probs.len()).sum();
    assert_eq!(widths.iter().sum::<usize>(), fed);
}

#[test]
fn lengths_are_counted_as_they_say() {
    let endless = |_: usize, text: &[u32]| {
        let mut row = logits(0, text);
        row[1] = -50.0;
        row
    };
    let none = Options::default;
    let check = |options: Options, sentence: DecodeInput, length: usize| {
        for num_beams in [1, 3] {
            let options = Options { num_beams, ..options.clone() };
            let mut model = Model::new(V, std::slice::from_ref(&sentence), &endless as &Formula);
            let found = decode(&mut model, std::slice::from_ref(&sentence), &options, &IDS);
            let found = &found.unwrap()[0][0];
            assert_eq!((found.tokens.len(), found.finished), (length, false), "{options:?}");
        }
    };
    let plain = DecodeInput { source: 6, ..DecodeInput::default() };
    let prompted = DecodeInput { prompt: vec![0, 2, 3], ..plain.clone() };
    let forced = DecodeInput { target_prefix: vec![2, 3], ..plain.clone() };
    let (ten, new) = (Options { max_length: 10, ..none() }, Some(4));
    check(ten.clone(), plain.clone(), 9);
    check(ten.clone(), prompted.clone(), 7);
    check(ten.clone(), forced.clone(), 9);
    check(Options { max_new_tokens: new, ..ten.clone() }, prompted, 4);
    check(Options { max_new_tokens: new, ..ten.clone() }, forced, 6);
    check(Options { max_len_a: 1.1, max_len_b: 2, ..none() }, plain.clone(), 8);
    check(Options { max_len_a: 9.0, ..ten.clone() }, plain.clone(), 9);
    check(Options { max_len_b: 1, ..ten }, plain, 1);
}
