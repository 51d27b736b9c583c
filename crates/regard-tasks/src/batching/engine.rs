//! The engine: sessions begin, ask for steps and end.

use super::cancel::Cancel;
use super::limits::{BatchLimits, BatchUse, Guesses};
use super::session::Session;
use super::state::{Answer, Request, State};
use crate::{Error, Result};
use regard_models::text::DecoderPlan;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Longest wait for sessions that generated in the last step and have not asked for the next one: a
/// step without them would leave them behind, and compute the weights' products twice.
const GRACE: Duration = Duration::from_millis(2);

/// Time between two looks at whether a session that waits was cancelled.
const POLL: Duration = Duration::from_millis(20);

/// One model that several threads generate with.
pub struct BatchEngine {
    pub(super) plan: DecoderPlan,
    pub(super) limits: BatchLimits,
    state: Mutex<State>,
    pub(super) changed: Condvar,
}

impl BatchEngine {
    /// Creates an engine for a planned model.
    pub fn new(plan: DecoderPlan, limits: BatchLimits) -> BatchEngine {
        BatchEngine { plan, limits, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Replaces the limits, and forgets the prompts that were read.
    pub fn set_limits(&mut self, limits: BatchLimits) {
        self.limits = limits;
        self.lock().prompts = Default::default();
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
            reserved_bytes: state.reserved,
            cache_bytes: self.plan.cache_bytes(),
            ..state.count
        }
    }

    /// Most bytes that the cache of a sequence of `length` tokens takes.
    pub(crate) fn bytes(&self, length: usize) -> usize {
        self.plan.sequence_bytes(self.limits.cache, length, self.limits.chunk())
    }

    /// Begins a session for `rows` sequences of at most `length` tokens each. It waits, in the order
    /// of the calls, until there is room for them. A thread that keeps a session and waits for another
    /// one of the same engine may wait for itself. Once `cancel` is cancelled, this and all requests
    /// of the session fail.
    ///
    /// # Errors
    /// If they exceed the limit of the engine by themselves, or if it is cancelled.
    pub fn session(&self, rows: usize, length: usize, cancel: &Cancel) -> Result<Session<'_>> {
        let bytes = self.fitting(rows, length, self.limits.cache_bytes)?;
        self.reserve(bytes, [rows, length], cancel)
    }

    /// Returns the bytes that sequences of at most `length` tokens need.
    ///
    /// # Errors
    /// If they are above the limit.
    pub(crate) fn fitting(&self, rows: usize, length: usize, limit: usize) -> Result<usize> {
        let bytes = rows.saturating_mul(self.bytes(length));
        if bytes <= limit {
            return Ok(bytes);
        }
        let size = |bytes: usize| match bytes {
            0..10_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
            _ => format!("{:.1} MB", bytes as f64 / 1e6),
        };
        Err(Error::invalid(format!(
            "KV cache: {rows} sequences of up to {length} tokens need {} in {}, the limit is {}; \
             need fewer or shorter sequences, a smaller type, or a higher limit",
            size(bytes),
            self.limits.cache.name(),
            size(limit)
        )))
    }

    /// Begins a session with room for `most[0]` sequences of `most[1]` tokens, which reserves
    /// `bytes`, at most the limit.
    ///
    /// # Errors
    /// If it is cancelled while it waits.
    pub(crate) fn reserve(
        &self,
        bytes: usize,
        most: [usize; 2],
        cancel: &Cancel,
    ) -> Result<Session<'_>> {
        let limit = self.limits.cache_bytes;
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        state.queue.push_back(number);
        loop {
            let first = state.queue.front() == Some(&number);
            if first && state.reserved + bytes <= limit {
                state.queue.pop_front();
                state.reserved += bytes;
                state.sessions += 1;
                // Prompts are kept only while nobody needs their room.
                while state.reserved + state.prompts.bytes() > limit && state.prompts.drop_one() {}
                self.changed.notify_all();
                return Ok(Session::new(self, number, bytes, most, cancel));
            }
            if cancel.is_cancelled() {
                state.queue.retain(|waiting| *waiting != number);
                self.changed.notify_all();
                return Err(Cancel::error("it waited for room"));
            }
            state = self.wait(state, POLL);
        }
    }

    /// Ends a session.
    pub(super) fn end(&self, number: u64, reserved: usize, guesses: Guesses) {
        let mut state = self.lock();
        state.reserved -= reserved;
        state.sessions -= 1;
        state.count.guesses += guesses;
        state.expected.retain(|expected| *expected != number);
        state.answers.remove(&number);
        drop(state);
        self.changed.notify_all();
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a change, at most this long.
    fn wait<'s>(&self, state: MutexGuard<'s, State>, most: Duration) -> MutexGuard<'s, State> {
        self.changed.wait_timeout(state, most).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Waits for the answer to a request. The calling thread computes steps if nobody else does.
    pub(super) fn ask(&self, number: u64, request: Request, cancel: &Cancel) -> Result<Answer> {
        let mut state = self.lock();
        state.expected.retain(|expected| *expected != number);
        state.requests.insert(number, request);
        state.order.push_back(number);
        self.changed.notify_all();
        loop {
            if let Some(answer) = state.answers.remove(&number) {
                return answer.map_err(Error::Invalid);
            }
            // A request that is being computed is not there now, but may come back.
            if cancel.is_cancelled() && state.requests.remove(&number).is_some() {
                state.order.retain(|waiting| *waiting != number);
                self.changed.notify_all();
                return Err(Cancel::error("its tokens waited to be processed"));
            }
            if state.busy {
                state = self.wait(state, POLL);
                continue;
            }
            let waited = state.last_step.map_or(GRACE, |last| last.elapsed());
            if !state.expected.is_empty() && waited < GRACE {
                state = self.wait(state, GRACE - waited);
                continue;
            }
            state = self.step(state);
        }
    }
}
