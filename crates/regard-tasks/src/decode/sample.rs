//! Greedy search and sampling.

use super::row::{Choice, best_first, keep_best};
use super::search::{Live, Progress, Rows, Search};
use super::{Options, tree};
use crate::Result;
use regard_attention::Stream;
use regard_attention::ops::exponentials;

/// Appends one token to each row of a sentence.
pub(super) fn advance(progress: &mut Progress, rows: Rows, search: &Search) -> Result<()> {
    let options = search.options;
    let stream = search.stream(progress);
    let before = std::mem::take(&mut progress.live);
    // Samples diverge at the first drawn token.
    let parts = options.samples() && progress.generated() == 0;
    let samples = if parts { options.num_return_sequences } else { 1 };
    for (origin, (live, row)) in before.iter().zip(rows).enumerate() {
        let row = row.get_mut().expect("no panic in another row");
        for sample in 0..samples as u64 {
            let sample = if parts { sample } else { live.sample };
            let chosen = if options.do_sample {
                draw(&row.choices, stream.uniform(sample))
            } else {
                row.choices.iter().min_by(|a, b| best_first(a, b)).copied()
            };
            match chosen {
                Some(choice) => {
                    let score = live.score + choice.log_prob;
                    progress.write(Live { sample, score, origin, ..*live }, choice, search)?;
                }
                // No token is possible.
                None => progress.stop(live, search)?,
            }
        }
    }
    progress.length += 1;
    Ok(())
}

impl Progress<'_> {
    /// Appends a token, which may be the last one.
    fn write(&mut self, live: Live, choice: Choice, search: &Search) -> Result<()> {
        let node = self.tree.push(tree::Node {
            parent: live.node,
            token: choice.token,
            log_prob: choice.log_prob,
            look: live.look,
        });
        let ended = search.is_end(choice.token);
        if ended || self.length + 1 >= self.limit {
            let length = self.generated() + 1;
            let score = self.tree.score(node, live.score, length, search.options)?;
            self.keep(tree::Done { node, score, ended }, usize::MAX);
        } else {
            self.live.push(Live { node, token: choice.token, ..live });
        }
        Ok(())
    }
}

/// Applies temperature, then `top_k`, `top_p` and `min_p`, but keeps at least `least` tokens.
pub(super) fn warp(choices: &mut Vec<Choice>, options: &Options, least: usize) {
    let Options { temperature, top_k, top_p, min_p, .. } = *options;
    choices.iter_mut().for_each(|choice| choice.value /= temperature);
    choices.retain(|choice| choice.value.is_finite());
    if top_k > 0 {
        keep_best(choices, top_k.max(least));
    }
    if top_p < 1.0 {
        keep_mass(choices, f64::from(top_p), least);
    }
    if min_p > 0.0 {
        // p ≥ min_p·p_best, as logits.
        let bar = largest(choices) + min_p.ln();
        let passing = choices.iter().filter(|choice| choice.value >= bar).count();
        keep_best(choices, passing.max(least));
    }
    if top_k > 0 || top_p < 1.0 || min_p > 0.0 {
        // The sample depends on the order, which selection leaves undefined.
        choices.sort_unstable_by(best_first);
    }
}

/// Keeps the most likely tokens with total probability `p`.
fn keep_mass(choices: &mut Vec<Choice>, p: f64, least: usize) {
    let largest = largest(choices);
    let enough = p * weights(choices, largest).iter().map(|w| f64::from(*w)).sum::<f64>();
    // A few are usually enough, so not all are sorted: the best 64, then four times as many.
    let mut looked = 64;
    loop {
        looked = looked.min(choices.len());
        if looked < choices.len() {
            choices.select_nth_unstable_by(looked, best_first);
        }
        choices[..looked].sort_unstable_by(best_first);
        let mut before = 0.0;
        let sorted = weights(&choices[..looked], largest);
        let kept = sorted.iter().take_while(|weight| {
            let within = before < enough;
            before += f64::from(**weight);
            within
        });
        let kept = kept.count();
        if kept < looked || looked == choices.len() {
            return choices.truncate(kept.max(least));
        }
        looked *= 4;
    }
}

fn largest(choices: &[Choice]) -> f32 {
    choices.iter().fold(f32::NEG_INFINITY, |a, choice| a.max(choice.value))
}

/// Returns the token at `u` of the cumulative distribution, `0 ≤ u < 1`.
fn draw(choices: &[Choice], u: f32) -> Option<Choice> {
    let weights = weights(choices, largest(choices));
    let mut rest = f64::from(u) * weights.iter().map(|w| f64::from(*w)).sum::<f64>();
    let chosen = weights.iter().position(|weight| {
        rest -= f64::from(*weight);
        rest < 0.0
    });
    // Rounding may leave a remainder; then take the last token with a non-zero probability.
    chosen.or_else(|| weights.iter().rposition(|weight| *weight > 0.0)).map(|at| choices[at])
}

/// Unnormalised probabilities of choices: `e^{x − largest}`.
fn weights(choices: &[Choice], largest: f32) -> Vec<f32> {
    let mut weights: Vec<f32> = choices.iter().map(|choice| choice.value).collect();
    exponentials(&mut weights, largest);
    weights
}

/// Gumbel noise, with which the largest `log p + noise` are a sample without replacement (Kool et
/// al. 2019).
pub(super) fn noise(stream: Stream, row: usize, token: u32) -> f32 {
    stream.gumbel((row as u64) << 32 | u64::from(token))
}
