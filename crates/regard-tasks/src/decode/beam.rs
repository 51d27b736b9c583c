//! Beam search, as `generate` does it.
//!
//! Of all continuations of all rows the best `2·num_beams` are looked at. Those among the first
//! `num_beams` that end are finished; the best that do not end go on. The score of a finished one
//! is its sum of log-probabilities divided by a power of its length, and the best of those ever
//! finished are returned.

use super::sample::noise;
use super::search::{Live, Progress, Rows, Search};
use super::tree::{Done, Node};
use super::{EarlyStopping, Options};
use crate::Result;

/// A continuation of a row.
#[derive(Clone, Copy)]
struct Candidate {
    /// What it is chosen by: the score, with noise if it is drawn.
    key: f32,
    score: f32,
    row: usize,
    token: u32,
    log_prob: f32,
}

/// How many continuations are looked at: at most one of a row ends, so that half of them go on.
pub(super) fn width(options: &Options) -> usize {
    options.num_beams.saturating_mul(2)
}

/// Writes one token to the rows of a sentence.
pub(super) fn advance(progress: &mut Progress, rows: Rows, search: &Search) -> Result<()> {
    let options = search.options;
    let candidates = best(progress, rows, search);
    if candidates.is_empty() {
        // Nothing can come next. What is finished is the result; else what there is, as it is.
        let live = std::mem::take(&mut progress.live);
        let nothing = progress.done.is_empty();
        return live.iter().filter(|_| nothing).try_for_each(|live| progress.stop(live, search));
    }
    let last = progress.length + 1 >= progress.limit;
    let before = std::mem::take(&mut progress.live);
    let mut going = Vec::with_capacity(options.num_beams);
    for (rank, candidate) in candidates.iter().enumerate() {
        let ended = search.is_end(candidate.token);
        if !ended && !last {
            going.push(*candidate);
        } else if rank < options.num_beams {
            let node = progress.tree.push(node(candidate, &before));
            let length = progress.generated() + 1;
            let score = progress.tree.score(node, candidate.score, length, options)?;
            progress.keep(Done { node, score, ended }, options.kept());
        }
    }
    if options.do_sample {
        going.sort_by(|a, b| b.score.total_cmp(&a.score));
    }
    for candidate in going.iter().take(options.num_beams) {
        let node = progress.tree.push(node(candidate, &before));
        let Candidate { score, token, row: origin, .. } = *candidate;
        progress.live.push(Live { node, score, token, origin, ..Live::default() });
    }
    progress.length += 1;
    if !may_improve(progress, options) {
        progress.live.clear();
    }
    Ok(())
}

/// The best continuations of all rows, best first.
fn best(progress: &Progress, rows: Rows, search: &Search) -> Vec<Candidate> {
    let options = search.options;
    let stream = search.stream(progress);
    let mut candidates = Vec::new();
    for (row, (live, work)) in progress.live.iter().zip(rows).enumerate() {
        let work = work.get_mut().expect("no panic in another row");
        candidates.extend(work.choices.iter().map(|choice| {
            let score = live.score + choice.value;
            let drawn = if options.do_sample { noise(stream, row, choice.token) } else { 0.0 };
            let (token, log_prob) = (choice.token, choice.log_prob);
            Candidate { key: score + drawn, score, row, token, log_prob }
        }));
    }
    candidates.retain(|candidate| candidate.score > f32::NEG_INFINITY);
    let order = |a: &Candidate, b: &Candidate| {
        b.key.total_cmp(&a.key).then((a.row, a.token).cmp(&(b.row, b.token)))
    };
    let wanted = width(options);
    if wanted < candidates.len() {
        candidates.select_nth_unstable_by(wanted, order);
        candidates.truncate(wanted);
    }
    candidates.sort_unstable_by(order);
    candidates
}

fn node(candidate: &Candidate, before: &[Live]) -> Node {
    let Live { node: parent, look, .. } = before[candidate.row];
    Node { parent, token: candidate.token, log_prob: candidate.log_prob, look }
}

/// Whether what is running could still change the result, by the rule that was asked for.
fn may_improve(progress: &Progress, options: &Options) -> bool {
    let (Some(best), Some(worst)) = (progress.live.first(), progress.done.last()) else {
        return !progress.live.is_empty();
    };
    if progress.done.len() < options.kept() {
        return true;
    }
    let length = match options.early_stopping {
        EarlyStopping::True => return false,
        EarlyStopping::Never if options.length_penalty > 0.0 => progress.limit - progress.start,
        _ => progress.generated(),
    };
    best.score / options.divisor(length) > worst.score
}
