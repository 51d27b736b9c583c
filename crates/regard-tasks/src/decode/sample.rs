//! Greedy search and sampling.

use super::row::{Choice, best_first, keep_best};
use super::search::{Ends, Live, Progress, Rows, Search};
use super::tree::End;
use super::{Options, tree};
use crate::Result;
use regard_attention::Stream;
use regard_attention::ops::exponentials;

/// Appends one token to each row of a sentence.
pub(super) fn advance(
    progress: &mut Progress,
    rows: Rows,
    search: &Search,
    ends: &mut Ends,
) -> Result<()> {
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
                    let end = search.end(choice.token, origin, ends);
                    let live = Live { sample, score, origin, ..*live };
                    progress.write(live, choice, end, search)?;
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
    fn write(
        &mut self,
        live: Live,
        choice: Choice,
        end: Option<End>,
        search: &Search,
    ) -> Result<()> {
        let node = self.tree.push(tree::Node {
            parent: live.node,
            token: choice.token,
            log_prob: choice.log_prob,
            look: live.look,
        });
        let end = end.or((self.length + 1 >= self.limit).then_some(End::LENGTH));
        if let Some(end) = end {
            let length = self.generated() + 1;
            let score = self.tree.score(node, live.score, length, search.options)?;
            self.keep(tree::Done { node, score, end }, usize::MAX);
        } else {
            self.live.push(Live { node, token: choice.token, ..live });
        }
        Ok(())
    }
}

/// Applies temperature, then `top_k`, `top_p`, `min_p` and `typical_p`, but keeps at least `least`
/// tokens.
pub(super) fn warp(choices: &mut Vec<Choice>, options: &Options, least: usize) {
    let Options { temperature, top_k, top_p, min_p, typical_p, .. } = *options;
    // The quotient of the largest may be beyond the numbers; differences are all that counts.
    let most = largest(choices);
    let shift = if (most / temperature).is_finite() { 0.0 } else { most };
    choices.iter_mut().for_each(|choice| choice.value = (choice.value - shift) / temperature);
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
    if typical_p < 1.0 {
        keep_typical(choices, f64::from(typical_p), least);
    }
    if top_k > 0 || top_p < 1.0 || min_p > 0.0 || typical_p < 1.0 {
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

/// Keeps tokens with total probability `p` whose `−ln p` is nearest to the entropy.
fn keep_typical(choices: &mut Vec<Choice>, p: f64, least: usize) {
    let best = f64::from(largest(choices));
    let log_sum =
        choices.iter().map(|choice| (f64::from(choice.value) - best).exp()).sum::<f64>().ln();
    let log_probs: Vec<f64> =
        choices.iter().map(|choice| f64::from(choice.value) - best - log_sum).collect();
    let entropy = -log_probs.iter().map(|log_p| log_p * log_p.exp()).sum::<f64>();
    // Distance from the entropy, probability, and the choice.
    let mut sorted: Vec<(f64, f64, Choice)> = log_probs
        .iter()
        .zip(choices.iter())
        .map(|(log_p, choice)| ((-log_p - entropy).abs(), log_p.exp(), *choice))
        .collect();
    sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(best_first(&a.2, &b.2)));
    let mut mass = 0.0;
    let below = sorted.iter().take_while(|(_, probability, _)| {
        mass += probability;
        mass < p
    });
    let last = below.count().min(sorted.len().saturating_sub(1));
    // Of those as far as the last one all are kept.
    let Some(bar) = sorted.get(last).map(|one| one.0) else { return };
    let kept = sorted.iter().filter(|one| one.0 <= bar).count().max(least);
    choices.clear();
    choices.extend(sorted.iter().take(kept).map(|one| one.2));
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
