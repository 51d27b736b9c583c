//! The steps of all sessions.

use super::engine::BatchEngine;
use super::prompts::{WORTH, common};
use super::state::{Answer, Part, Request, Scores, State};
use regard_attention::ops::{Scan, all_below_infinity};
use regard_attention::plan::{Chunk, SequenceCache, Work};
use regard_attention::pool::parallel;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Rows whose logits are computed at once to score them: a vocabulary of 50,000 takes 13 MB.
const SCORED: usize = 64;

/// Time without a generated token after which prompts need not care for the pace of generation.
const QUIET: Duration = Duration::from_millis(250);

/// What a step computes.
struct Computed {
    /// Logits of all tokens that were fed to rows.
    logits: Vec<f32>,
    /// Log-probabilities of prompts, in the order of the parts.
    logprobs: Vec<f64>,
}

/// Requests of a step, by session.
type Batch = Vec<(u64, Part)>;

impl BatchEngine {
    /// Computes one step of all requests. Whatever panics in it, the others do not wait for ever:
    /// sessions whose requests were lost get an error.
    pub(super) fn step<'s>(&'s self, mut state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        state.busy = true;
        let mut batch = vec![];
        let mut problem = caught(|| self.batch(&mut state, &mut batch)).err();
        if problem.is_some() {
            // What is wrong may be any of them, and would be taken again.
            state.requests.clear();
            batch.clear();
        }
        // Those that do not come for this step are not waited for again.
        state.expected.clear();
        let mut work = state.work.take().unwrap_or_default();
        drop(state);
        let (fed, read) = (fed(&batch), batch.iter().map(|(_, part)| part.now).sum());
        let began = Instant::now();
        let (computed, failed) = self.attempt(batch, &mut work);
        let time = began.elapsed();
        let mut state = self.lock();
        // A step that failed was computed in parts.
        if failed.is_none() {
            state.pace.note(fed, read, time);
        }
        problem = problem.or(failed);
        state.last_step = Some(Instant::now());
        state.count.steps += 1;
        state.count.most_cache_bytes = state.count.most_cache_bytes.max(self.plan.cache_bytes());
        state.work = Some(work);
        for (batch, computed) in computed {
            problem = problem.or(caught(|| self.answer(&mut state, batch, &computed)).err());
        }
        if let Some(problem) = problem {
            state.fail_lost(&format!("a decoding step: {problem}"));
        }
        state.busy = false;
        self.changed.notify_all();
        state
    }

    /// Runs the model. If it panics, each request is tried by itself, because one may be the cause.
    /// Returns what was computed, and the message of the last panic of one by itself.
    fn attempt(
        &self,
        mut batch: Batch,
        work: &mut Work,
    ) -> (Vec<(Batch, Computed)>, Option<String>) {
        let lengths: Vec<Vec<usize>> = batch.iter_mut().map(|(_, part)| part.lengths()).collect();
        let mut problem = match caught(|| self.compute(&mut batch, work)) {
            Ok(computed) => return (vec![(batch, computed)], None),
            Err(problem) => problem,
        };
        let (alone, mut done) = (batch.len() == 1, vec![]);
        for ((number, mut part), lengths) in batch.into_iter().zip(lengths) {
            *work = Work::default();
            if alone || !part.shorten(&lengths) {
                continue;
            }
            let mut one = vec![(number, part)];
            match caught(|| self.compute(&mut one, work)) {
                Ok(computed) => done.push((one, computed)),
                Err(of_one) => problem = of_one,
            }
        }
        (done, Some(problem))
    }

    /// Takes the requests of the next step.
    fn batch(&self, state: &mut State, batch: &mut Batch) {
        let feeds = |request: &Request| matches!(request, Request::Tokens { .. });
        let feeding: Vec<u64> = state
            .requests
            .iter()
            .filter(|(_, request)| feeds(request))
            .map(|(number, _)| *number)
            .collect();
        // Sessions that generate may be late for this step, and would wait for the end of it.
        let late =
            !state.expected.is_empty() && state.last_fed.is_some_and(|last| last.elapsed() < QUIET);
        let mut room = if feeding.is_empty() && !late {
            self.limits.prompt_tokens.max(1)
        } else if feeding.is_empty() || state.pace.reads() {
            self.limits.prompt_tokens_beside.max(1)
        } else {
            0
        };
        for number in feeding {
            let request = state.requests.remove(&number).expect("it was just there");
            batch.push((number, Part { request, now: 0 }));
        }
        self.add_prompts(state, &mut room, batch);
    }

    /// Adds prompts in the order in which they came. One that begins as another does waits until the
    /// common beginning is read. The first one leaves half of the room to those behind it, which are
    /// often shorter.
    fn add_prompts(&self, state: &mut State, room: &mut usize, batch: &mut Batch) {
        let order: Vec<u64> = state.order.iter().copied().collect();
        let rest = |request: &Request| match request {
            Request::Prompt { tokens, read, .. } => tokens.len() - read,
            Request::Tokens { .. } => 0,
        };
        let mut behind: usize = state.requests.values().map(rest).sum();
        for number in order {
            let Some(Request::Prompt { tokens, read, row, scores }) = state.requests.get(&number)
            else {
                continue;
            };
            if *room == 0 {
                break;
            }
            behind -= tokens.len() - read;
            let mut known = None;
            if scores.is_none() && *read == 0 && row.is_empty() {
                known = state.prompts.find(tokens);
                match beside(batch, tokens, known.as_ref().map_or(0, SequenceCache::len)) {
                    Beside::Soon => continue,
                    Beside::Read(row) => known = Some(row),
                    Beside::Nothing => {}
                }
            }
            let Some(Request::Prompt { mut row, tokens, mut read, scores }) =
                state.requests.remove(&number)
            else {
                continue;
            };
            if let Some(known) = known {
                read = known.len();
                state.count.shared_tokens += read as u64;
                row = known;
            }
            let left = if batch.iter().any(|(_, part)| part.now > 0) { 0 } else { *room / 2 };
            let now = (*room - left.min(behind)).min(tokens.len() - read);
            *room -= now;
            batch.push((
                number,
                Part { request: Request::Prompt { row, tokens, read, scores }, now },
            ));
        }
    }

    fn compute(&self, batch: &mut [(u64, Part)], work: &mut Work) -> Computed {
        let next: Vec<u32> = batch.iter().flat_map(|(_, part)| part.scored()).copied().collect();
        let (mut chunks, mut fed) = (vec![], 0);
        for (_, part) in batch {
            let scored = part.scored().len();
            let now = part.now;
            match &mut part.request {
                Request::Tokens { rows, tokens } => {
                    fed += tokens.iter().map(Vec::len).sum::<usize>();
                    let rows = rows.iter_mut().zip(&*tokens);
                    chunks.extend(rows.map(|(cache, tokens)| Chunk {
                        cache,
                        tokens,
                        prompt: false,
                        wanted: tokens.len(),
                    }));
                }
                // All of it was known.
                Request::Prompt { .. } if now == 0 => {}
                Request::Prompt { row, tokens, read, .. } => {
                    let tokens = &tokens[*read..*read + now];
                    chunks.push(Chunk { cache: row, tokens, prompt: true, wanted: scored });
                }
            }
        }
        let (mut logits, mut logprobs) = (vec![], vec![]);
        if !chunks.is_empty() {
            let hidden = self.plan.hidden(&mut chunks, work);
            // Tokens come before prompts.
            let (of_tokens, of_prompts) = hidden.split_at(fed * self.plan.width());
            self.plan.logits(of_tokens, &mut logits);
            logprobs = self.score(of_prompts, &next);
        }
        Computed { logits, logprobs }
    }

    /// Log-probabilities of tokens after hidden states.
    fn score(&self, hidden: &[f32], next: &[u32]) -> Vec<f64> {
        let (m, v) = (self.plan.width(), self.plan.vocabulary());
        let (mut all, mut logits) = (Vec::with_capacity(next.len()), vec![]);
        for (hidden, next) in hidden.chunks(SCORED * m).zip(next.chunks(SCORED)) {
            self.plan.logits(hidden, &mut logits);
            let bits: Vec<AtomicU64> = next.iter().map(|_| AtomicU64::new(0)).collect();
            parallel(next.len(), &|i| {
                let logprob = logprob(&logits[i * v..(i + 1) * v], next[i]);
                bits[i].store(logprob.to_bits(), Ordering::Relaxed);
            });
            all.extend(bits.into_iter().map(|bits| f64::from_bits(bits.into_inner())));
        }
        all
    }

    /// Hands out the results of a step.
    fn answer(&self, state: &mut State, batch: Batch, computed: &Computed) {
        let (mut logits, mut logprobs) = (&computed.logits[..], &computed.logprobs[..]);
        for (number, part) in batch {
            let scored = part.scored().len();
            let answer = match part.request {
                Request::Tokens { rows, tokens } => {
                    let fed: usize = tokens.iter().map(Vec::len).sum();
                    state.count.fed_tokens += fed as u64;
                    let (mine, after) = logits.split_at(fed * self.plan.vocabulary());
                    logits = after;
                    state.expected.push(number);
                    state.last_fed = state.last_step;
                    Answer { rows, logits: mine.to_vec(), ..Answer::default() }
                }
                Request::Prompt { row, tokens, read, mut scores } => {
                    let read = read + part.now;
                    state.count.prompt_tokens += part.now as u64;
                    let (mine, after) = logprobs.split_at(scored);
                    logprobs = after;
                    if let Some(scores) = &mut scores {
                        scores.logprobs.extend_from_slice(mine);
                    }
                    if read < tokens.len() {
                        let request = Request::Prompt { row, tokens, read, scores };
                        state.requests.insert(number, request);
                        continue;
                    }
                    match scores {
                        // Nothing follows.
                        Some(Scores { logprobs, .. }) => Answer { logprobs, ..Answer::default() },
                        None => {
                            let most = self.limits.cache_bytes.saturating_sub(state.reserved);
                            state.prompts.keep(&tokens, &row, self.bytes(tokens.len()), most);
                            Answer { rows: vec![row], ..Answer::default() }
                        }
                    }
                }
            };
            state.order.retain(|waiting| *waiting != number);
            state.answers.insert(number, Ok(answer));
        }
    }
}

/// Number of tokens that a step feeds to rows.
fn fed(batch: &Batch) -> usize {
    let tokens = |part: &Part| match &part.request {
        Request::Tokens { tokens, .. } => tokens.iter().map(Vec::len).sum(),
        Request::Prompt { .. } => 0,
    };
    batch.iter().map(|(_, part)| tokens(part)).sum()
}

/// Natural logarithm of a token's probability; NaN if a logit is NaN or +∞.
fn logprob(logits: &[f32], token: u32) -> f64 {
    if !all_below_infinity(logits) {
        return f64::NAN;
    }
    let mut scan = Scan::default();
    scan.row(logits, 0);
    f64::from(logits[token as usize]) - f64::from(scan.largest) - scan.sum.ln()
}

/// Runs something that may panic; returns the message of the panic.
fn caught<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
        let message = panic.downcast_ref::<String>().cloned();
        let message = message.or(panic.downcast_ref::<&str>().map(|x| x.to_string()));
        message.unwrap_or_else(|| "it failed".into())
    })
}

/// What the prompts of a step have in common with another one.
enum Beside {
    /// No more than is known anyway.
    Nothing,
    /// A row that holds what is common.
    Read(SequenceCache),
    /// More than is known now, which one of them reads next.
    Soon,
}

/// Finds a beginning of `prompt`, longer than the `known` tokens, among the prompts of a step.
fn beside(batch: &Batch, prompt: &[u32], known: usize) -> Beside {
    let (mut best, mut found) = (known, Beside::Nothing);
    for (_, part) in batch {
        let Request::Prompt { row, tokens, read, scores: None } = &part.request else { continue };
        let common = common(tokens, prompt);
        if common < WORTH.max(best + 1) {
            continue;
        }
        if *read < common {
            (best, found) = (common, Beside::Soon);
        } else if row.can_truncate(common) {
            let mut row = row.clone();
            row.truncate(common);
            (best, found) = (common, Beside::Read(row));
        }
    }
    found
}
