//! The steps of all sessions.

use super::lookup::Lookup;
use super::prompts::Prompts;
use super::session::Session;
use crate::{Error, Result};
use regard_attention::plan::{CacheType, Chunk, SequenceCache, Work};
use regard_models::text::DecoderPlan;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Limits of a [`BatchEngine`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchLimits {
    /// Positions that the caches of all sessions may hold together. A session that needs more than
    /// is left waits until others end.
    pub tokens: usize,
    /// Tokens of prompts in a step in which nobody generates.
    pub prompt_tokens: usize,
    /// Tokens of prompts in a step in which sessions also generate: their pace slows with it.
    pub prompt_tokens_beside: usize,
    /// Storage type of cached keys and values.
    pub cache: CacheType,
    /// Guesses of the next tokens, for sessions of one row.
    pub lookup: Lookup,
}

impl Default for BatchLimits {
    fn default() -> BatchLimits {
        BatchLimits {
            tokens: 1 << 16,
            prompt_tokens: 512,
            prompt_tokens_beside: 32,
            cache: CacheType::F32,
            lookup: Lookup::default(),
        }
    }
}

/// What an engine is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchUse {
    /// Sessions.
    pub sessions: usize,
    /// Sessions that wait for room.
    pub waiting: usize,
    /// Positions that sessions have reserved.
    pub tokens: usize,
    /// Bytes of all caches, those of kept prompts included.
    pub cache_bytes: usize,
    /// Steps so far.
    pub steps: u64,
    /// Tokens of prompts that were computed.
    pub prompt_tokens: u64,
    /// Tokens of prompts that were known from earlier ones.
    pub shared_tokens: u64,
    /// Tokens that were fed to rows.
    pub fed_tokens: u64,
}

/// Longest wait for sessions that generated in the last step and have not asked for the next one: a
/// step without them would leave them behind, and compute the weights' products twice.
const GRACE: Duration = Duration::from_millis(2);

/// One model that several threads generate with.
pub struct BatchEngine {
    plan: DecoderPlan,
    limits: BatchLimits,
    state: Mutex<State>,
    changed: Condvar,
}

/// What a session asks for.
pub(super) enum Request {
    /// To read a prompt: row, tokens, and how many of them are read.
    Prompt { row: SequenceCache, tokens: Vec<u32>, read: usize },
    /// To feed tokens to rows, one or several each; logits of all of them are returned.
    Tokens { rows: Vec<SequenceCache>, tokens: Vec<Vec<u32>> },
}

/// What it gets.
#[derive(Default)]
pub(super) struct Answer {
    pub rows: Vec<SequenceCache>,
    pub logits: Vec<f32>,
}

#[derive(Default)]
struct State {
    /// Sessions that wait for room, in order.
    queue: VecDeque<u64>,
    next: u64,
    sessions: usize,
    /// Positions reserved by sessions.
    reserved: usize,
    /// Requests by session, prompts in the order of `order`.
    requests: BTreeMap<u64, Request>,
    order: VecDeque<u64>,
    answers: BTreeMap<u64, std::result::Result<Answer, String>>,
    /// Sessions that generated in the last step and have not asked again.
    expected: Vec<u64>,
    /// Whether a thread computes a step.
    busy: bool,
    last_step: Option<Instant>,
    prompts: Prompts,
    work: Option<Work>,
    count: BatchUse,
}

impl BatchEngine {
    /// Creates an engine for a planned model.
    pub fn new(plan: DecoderPlan, limits: BatchLimits) -> BatchEngine {
        BatchEngine { plan, limits, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Returns the model.
    pub fn plan(&self) -> &DecoderPlan {
        &self.plan
    }

    /// Returns the limits.
    pub fn limits(&self) -> &BatchLimits {
        &self.limits
    }

    /// Returns what the engine is doing.
    pub fn usage(&self) -> BatchUse {
        let state = self.lock();
        BatchUse {
            sessions: state.sessions,
            waiting: state.queue.len(),
            tokens: state.reserved,
            cache_bytes: self.plan.cache_bytes(),
            ..state.count
        }
    }

    /// Begins a session for `rows` sequences of at most `length` tokens each. It waits until there is
    /// room for them; `cancelled` is asked meanwhile, about every 50 ms.
    ///
    /// # Errors
    /// If they exceed the limit of the engine, or the wait was cancelled.
    pub fn session(
        &self,
        rows: usize,
        length: usize,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Session<'_>> {
        let reserved = rows.saturating_mul(length);
        if reserved > self.limits.tokens {
            return Err(Error::invalid(format!(
                "{rows} sequences of up to {length} tokens need {reserved} positions in the KV \
                 cache, the limit is {}",
                self.limits.tokens
            )));
        }
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        state.queue.push_back(number);
        loop {
            let first = state.queue.front() == Some(&number);
            if first && state.reserved + reserved <= self.limits.tokens {
                state.queue.pop_front();
                state.reserved += reserved;
                state.sessions += 1;
                // Prompts are kept only while nobody needs their room.
                while state.reserved + state.prompts.tokens() > self.limits.tokens
                    && state.prompts.drop_one()
                {}
                self.changed.notify_all();
                return Ok(Session::new(self, number, reserved));
            }
            if cancelled() {
                state.queue.retain(|waiting| *waiting != number);
                self.changed.notify_all();
                return Err(Error::invalid("cancelled while it waited for room"));
            }
            let poll = Duration::from_millis(50);
            state =
                self.changed.wait_timeout(state, poll).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ends a session.
    pub(super) fn end(&self, number: u64, reserved: usize) {
        let mut state = self.lock();
        state.reserved -= reserved;
        state.sessions -= 1;
        state.expected.retain(|expected| *expected != number);
        state.answers.remove(&number);
        drop(state);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the answer to a request. The calling thread computes steps if nobody else does.
    pub(super) fn ask(&self, number: u64, request: Request) -> Result<Answer> {
        let mut state = self.lock();
        state.expected.retain(|expected| *expected != number);
        state.requests.insert(number, request);
        state.order.push_back(number);
        self.changed.notify_all();
        loop {
            if let Some(answer) = state.answers.remove(&number) {
                return answer.map_err(Error::Invalid);
            }
            if state.busy {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let waited = state.last_step.map_or(GRACE, |last| last.elapsed());
            if !state.expected.is_empty() && waited < GRACE {
                let rest = GRACE - waited;
                state = self
                    .changed
                    .wait_timeout(state, rest)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0;
                continue;
            }
            state = self.step(state);
        }
    }

    /// Computes one step of all requests.
    fn step<'s>(&'s self, mut state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        state.busy = true;
        let mut batch = self.batch(&mut state);
        let mut work = state.work.take().unwrap_or_default();
        drop(state);
        // Whatever happens, the others must not wait for ever.
        let computed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            self.compute(&mut batch, &mut work)
        }));
        let mut state = self.lock();
        state.busy = false;
        state.last_step = Some(Instant::now());
        state.count.steps += 1;
        match computed {
            Ok(logits) => {
                state.work = Some(work);
                self.answer(&mut state, batch, logits);
            }
            Err(panic) => {
                let message = panic.downcast_ref::<String>().cloned();
                let message = message.or(panic.downcast_ref::<&str>().map(|x| x.to_string()));
                let message = message.unwrap_or_else(|| "the step failed".into());
                for (number, _) in batch {
                    state.order.retain(|waiting| *waiting != number);
                    state.answers.insert(number, Err(format!("a decoding step: {message}")));
                }
            }
        }
        self.changed.notify_all();
        state
    }

    /// Takes the requests of the next step.
    fn batch(&self, state: &mut State) -> Vec<(u64, Part)> {
        let mut batch = vec![];
        let feeds = |request: &Request| matches!(request, Request::Tokens { .. });
        let feeding: Vec<u64> = state
            .requests
            .iter()
            .filter(|(_, request)| feeds(request))
            .map(|(number, _)| *number)
            .collect();
        let room = match feeding.is_empty() {
            true => self.limits.prompt_tokens,
            false => self.limits.prompt_tokens_beside,
        };
        let mut room = room.max(1);
        for number in feeding {
            let request = state.requests.remove(&number).expect("it was just there");
            batch.push((number, Part { request, now: 0 }));
        }
        // Prompts in the order in which they came. One that begins as another does waits for it.
        let order: Vec<u64> = state.order.iter().copied().collect();
        let mut begun: Vec<Vec<u32>> = vec![];
        for number in order {
            let Some(Request::Prompt { tokens, read, .. }) = state.requests.get(&number) else {
                continue;
            };
            if room == 0 {
                break;
            }
            if *read == 0 && begun.iter().any(|other| Prompts::alike(other, tokens)) {
                continue;
            }
            let Some(Request::Prompt { mut row, tokens, mut read }) =
                state.requests.remove(&number)
            else {
                continue;
            };
            if read == 0
                && row.is_empty()
                && let Some(known) = state.prompts.find(&tokens)
            {
                read = known.len();
                state.count.shared_tokens += read as u64;
                row = known;
            }
            begun.push(tokens.clone());
            let now = room.min(tokens.len() - read);
            room -= now;
            batch.push((number, Part { request: Request::Prompt { row, tokens, read }, now }));
        }
        batch
    }

    /// Runs the model, and returns the logits of all rows that are fed.
    fn compute(&self, batch: &mut [(u64, Part)], work: &mut Work) -> Vec<f32> {
        let mut chunks = vec![];
        for (_, Part { request, now }) in batch {
            match request {
                Request::Tokens { rows, tokens } => {
                    let rows = rows.iter_mut().zip(&*tokens);
                    chunks.extend(rows.map(|(cache, tokens)| Chunk {
                        cache,
                        tokens,
                        prompt: false,
                        wanted: tokens.len(),
                    }));
                }
                // All of it was known.
                Request::Prompt { .. } if *now == 0 => {}
                Request::Prompt { row, tokens, read } => {
                    let tokens = &tokens[*read..*read + *now];
                    chunks.push(Chunk { cache: row, tokens, prompt: true, wanted: 0 });
                }
            }
        }
        let mut logits = vec![];
        if !chunks.is_empty() {
            self.plan.forward(&mut chunks, work, &mut logits);
        }
        logits
    }

    /// Hands out the results of a step.
    fn answer(&self, state: &mut State, batch: Vec<(u64, Part)>, logits: Vec<f32>) {
        let mut rest = &logits[..];
        for (number, Part { request, now }) in batch {
            match request {
                Request::Tokens { rows, tokens } => {
                    let fed: usize = tokens.iter().map(Vec::len).sum();
                    state.count.fed_tokens += fed as u64;
                    let (mine, after) = rest.split_at(fed * self.plan.vocabulary());
                    rest = after;
                    let answer = Answer { rows, logits: mine.to_vec() };
                    state.answers.insert(number, Ok(answer));
                    state.order.retain(|waiting| *waiting != number);
                    state.expected.push(number);
                }
                Request::Prompt { row, tokens, read } => {
                    let read = read + now;
                    state.count.prompt_tokens += now as u64;
                    if read < tokens.len() {
                        state.requests.insert(number, Request::Prompt { row, tokens, read });
                        continue;
                    }
                    let most = self.limits.tokens.saturating_sub(state.reserved);
                    state.prompts.keep(&tokens, &row, most);
                    let answer = Answer { rows: vec![row], logits: vec![] };
                    state.answers.insert(number, Ok(answer));
                    state.order.retain(|waiting| *waiting != number);
                }
            }
        }
    }
}

/// A request in a step.
struct Part {
    request: Request,
    /// Tokens of a prompt to read now.
    now: usize,
}
