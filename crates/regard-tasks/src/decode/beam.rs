//! Beam search, as in Hugging Face `generate`.
//!
//! At each step the best `2·num_beams` continuations of all rows are considered. Those among the
//! first `num_beams` that end are finished; the best that do not end continue. The score of a
//! finished hypothesis is its sum of log-probabilities divided by a power of its length, and the
//! best of all finished ones are returned.

use super::sample::noise;
use super::search::{Ends, Live, Progress, Rows, Search};
use super::tree::{Done, End, Node};
use super::{EarlyStopping, Options};
use crate::Result;

/// A continuation of a row.
#[derive(Clone, Copy)]
struct Candidate {
    /// Sort key: the score, plus Gumbel noise if sampling.
    key: f32,
    score: f32,
    row: usize,
    token: u32,
    log_prob: f32,
}

/// Number of continuations to consider. Of a row at most `ends` continuations end it, so that at
/// least `num_beams` go on.
pub(super) fn width(options: &Options, ends: usize) -> usize {
    options.num_beams.saturating_mul((1 + ends).max(2))
}

/// Appends one token to each row of a sentence.
pub(super) fn advance(
    progress: &mut Progress,
    rows: Rows,
    search: &Search,
    ends: &mut Ends,
) -> Result<()> {
    let options = search.options;
    let candidates = best(progress, rows, search);
    if candidates.is_empty() {
        // No token is possible. Return the finished hypotheses, or the unfinished ones if there are
        // none.
        let live = std::mem::take(&mut progress.live);
        let nothing = progress.done.is_empty();
        return live.iter().filter(|_| nothing).try_for_each(|live| progress.stop(live, search));
    }
    let last = progress.length + 1 >= progress.limit;
    let before = std::mem::take(&mut progress.live);
    let mut going = Vec::with_capacity(options.num_beams);
    for (rank, candidate) in candidates.iter().enumerate() {
        let end = search.end(candidate.token, candidate.row, ends);
        let end = end.or(last.then_some(End::LENGTH));
        let Some(end) = end else {
            going.push(*candidate);
            continue;
        };
        if rank < options.num_beams {
            let node = progress.tree.push(node(candidate, &before));
            let length = progress.generated() + 1;
            let score = progress.tree.score(node, candidate.score, length, options)?;
            progress.keep(Done { node, score, end }, options.kept());
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

/// Returns the best continuations of all rows, best first.
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
    let wanted = width(options, search.ends());
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

/// Whether a running hypothesis could still change the result, by the rule of `early_stopping`.
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
