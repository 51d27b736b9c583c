//! The engine: sessions begin, ask for steps and end.

use super::limits::{BatchLimits, BatchUse};
use super::session::Session;
use super::state::{Answer, Request, State};
use crate::{Error, Result};
use regard_models::text::DecoderPlan;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Longest wait for sessions that generated in the last step and have not asked for the next one: a
/// step without them would leave them behind, and compute the weights' products twice.
const GRACE: Duration = Duration::from_millis(2);

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

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
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
}
