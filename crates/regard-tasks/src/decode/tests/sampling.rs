//! Samples have the right distribution, and depend only on seed, sentence and step.

use super::model::{hash, log_softmax, run, sentences};
use crate::decode::Options;

const V: usize = 9;

fn logits(_: usize, text: &[u32]) -> Vec<f32> {
    (0..V).map(|token| hash(3, text, token) * 0.5).collect()
}

/// Counts are within five standard deviations of what is expected.
fn check(counts: &[usize], draws: usize, want: &[f64]) {
    for (token, (count, p)) in counts.iter().zip(want).enumerate() {
        let (mean, deviation) = (draws as f64 * p, (draws as f64 * p * (1.0 - p)).sqrt());
        let error = (*count as f64 - mean).abs();
        assert!(error <= 5.0 * deviation + 1e-9, "token {token}: {count} for {mean:.1}");
    }
}

fn first_tokens(options: &Options, draws: usize) -> Vec<usize> {
    let mut counts = vec![0; V];
    for found in run(V, &sentences(draws), options, &logits).iter().flatten() {
        counts[found.tokens.first().map_or(1, |token| *token as usize)] += 1;
    }
    counts
}

fn probabilities(temperature: f32) -> Vec<f64> {
    let scaled: Vec<f32> = logits(0, &[0]).iter().map(|x| x / temperature).collect();
    log_softmax(&scaled).iter().map(|x| x.exp()).collect()
}

#[test]
fn tokens_are_drawn_by_their_probability() {
    let one = Options { do_sample: true, max_length: 2, ..Options::default() };
    for temperature in [0.5, 1.0, 2.0] {
        let options = Options { temperature, ..one.clone() };
        check(&first_tokens(&options, 20_000), 20_000, &probabilities(temperature));
        // Samples of one sentence are as independent as those of different sentences.
        let options = Options { num_return_sequences: 20, top_k: 0, ..options };
        check(&first_tokens(&options, 1000), 20_000, &probabilities(temperature));
    }
    let options = Options { top_k: 3, ..one };
    let mut want = probabilities(1.0);
    let mut sorted = want.clone();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let kept: f64 = sorted[..3].iter().sum();
    want.iter_mut().for_each(|p| *p = if *p >= sorted[2] { *p / kept } else { 0.0 });
    check(&first_tokens(&options, 20_000), 20_000, &want);
}

#[test]
fn a_sampled_beam_is_drawn_without_replacement() {
    let options = Options {
        do_sample: true,
        max_length: 2,
        num_beams: 2,
        num_return_sequences: 2,
        ..Options::default()
    };
    let p = probabilities(1.0);
    // Drawn first, or second after another token.
    let second =
        |i: usize| (0..V).filter(|j| *j != i).map(|j| p[j] * p[i] / (1.0 - p[j])).sum::<f64>();
    let want: Vec<f64> = (0..V).map(|i| p[i] + second(i)).collect();
    check(&first_tokens(&options, 20_000), 20_000, &want);
}

#[test]
fn what_is_drawn_is_a_function_of_seed_sentence_and_sample() {
    let options = |seed, num_return_sequences| Options {
        do_sample: true,
        max_length: 30,
        seed,
        num_return_sequences,
        suppress_tokens: vec![1],
        ..Options::default()
    };
    let all = sentences(6);
    let first = run(V, &all, &options(1, 1), &logits);
    assert_eq!(run(V, &all, &options(1, 1), &logits), first);
    assert_eq!(run(V, &all[2..], &options(1, 1), &logits), first[2..]);
    assert_ne!(run(V, &all, &options(2, 1), &logits), first);
    // The model is the same for all sentences, but the samples differ.
    assert!((1..6).all(|i| first[i] != first[0]));
    // More samples do not change the earlier ones.
    let more = run(V, &all, &options(1, 4), &logits);
    assert!(more.iter().zip(&first).all(|(more, one)| more.len() == 4 && more.contains(&one[0])));
    assert!(more.iter().all(|more| more[0].tokens != more[1].tokens));
}

#[test]
fn the_smallest_temperatures_take_the_best_token() {
    let greedy = Options { max_length: 6, ..Options::default() };
    let want = run(V, &sentences(20), &greedy, &logits);
    for (temperature, sign) in [(1e-30, 1.0), (1e-39, 1.0), (1e-45, -1.0)] {
        let options = Options { do_sample: true, temperature, ..greedy.clone() };
        // All logits are above 0, or below.
        let far = move |at: usize, text: &[u32]| {
            logits(at, text).iter().map(|x| x + 50.0 * sign).collect::<Vec<f32>>()
        };
        let got = run(V, &sentences(20), &options, &far);
        for (got, want) in got.iter().flatten().zip(want.iter().flatten()) {
            assert_eq!(got.tokens, want.tokens, "{temperature}");
        }
    }
}
