//! Ctrl-C: it stops an answer; without one, and where nobody types, it ends the program.

use crate::cli::INTERRUPTED;
use crate::cli::train::signals::is_ignored;
use anyhow::{Context, Result};
use regard_tasks::batching::Cancel;
use signal_hook::consts::SIGINT;
use signal_hook::flag;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Time between two looks at whether Ctrl-C was pressed.
const POLL: Duration = Duration::from_millis(20);

/// Time after an answer in which Ctrl-C was meant for it.
const LATE: Duration = Duration::from_millis(500);

/// Time after which a second Ctrl-C, while the same answer goes on, ends the program.
const AGAIN: Duration = Duration::from_secs(1);

/// What the program is doing.
enum Now {
    /// It answers; when it was asked to stop.
    Answers(Cancel, Option<Instant>),
    /// It waits for a line.
    Waits,
    /// Something short.
    Works,
}

/// What Ctrl-C depends on.
struct State {
    /// Whether somebody types, or a script gives commands: Ctrl-C is for the answer first.
    interactive: bool,
    now: Now,
    /// End of the last answer.
    answered: Option<Instant>,
    /// Whether the program is to end after what it is doing.
    ends: bool,
    /// Whether something failed that the exit code is to tell.
    failed: bool,
}

impl State {
    /// Does what Ctrl-C is for; returns the exit code if the program is to end now.
    fn press(&mut self, at: Instant) -> Option<u8> {
        match &mut self.now {
            Now::Answers(_, Some(asked)) => {
                (at.duration_since(*asked) >= AGAIN).then_some(INTERRUPTED)
            }
            Now::Answers(cancel, asked) => {
                cancel.cancel();
                *asked = Some(at);
                self.ends = !self.interactive;
                None
            }
            Now::Works => {
                self.ends = !self.interactive;
                None
            }
            Now::Waits if !self.interactive => Some(INTERRUPTED),
            Now::Waits => match self.answered {
                Some(answered) if at.duration_since(answered) < LATE => None,
                _ => Some(u8::from(self.failed)),
            },
        }
    }
}

/// Listens for Ctrl-C.
pub struct Interrupt(Arc<Mutex<State>>);

impl Interrupt {
    /// Begins to listen. Where the parent process set Ctrl-C to be ignored, it is.
    pub fn listen(interactive: bool) -> Result<Interrupt> {
        let state =
            State { interactive, now: Now::Works, answered: None, ends: false, failed: false };
        let interrupt = Interrupt(Arc::new(Mutex::new(state)));
        if is_ignored(SIGINT) {
            return Ok(interrupt);
        }
        let pressed = Arc::new(AtomicBool::new(false));
        flag::register(SIGINT, pressed.clone()).context("cannot listen for Ctrl-C")?;
        let state = interrupt.0.clone();
        thread::spawn(move || {
            loop {
                thread::sleep(POLL);
                if !pressed.swap(false, SeqCst) {
                    continue;
                }
                let mut state = lock(&state);
                if let Some(code) = state.press(Instant::now()) {
                    // After the mark `^C` of a terminal.
                    let _ = writeln!(std::io::stderr());
                    std::process::exit(code.into());
                }
            }
        });
        Ok(interrupt)
    }

    /// Begins an answer; returns what Ctrl-C cancels.
    pub fn answering(&self) -> Cancel {
        let cancel = Cancel::new();
        self.lock().now = Now::Answers(cancel.clone(), None);
        cancel
    }

    /// Ends an answer.
    pub fn answered(&self) {
        let mut state = self.lock();
        state.now = Now::Works;
        state.answered = Some(Instant::now());
    }

    /// Waits for a line.
    pub fn waiting<T>(&self, read: impl FnOnce() -> T) -> T {
        self.lock().now = Now::Waits;
        let line = read();
        self.lock().now = Now::Works;
        line
    }

    /// Whether Ctrl-C ended the program.
    pub fn ends(&self) -> bool {
        self.lock().ends
    }

    /// Notes that something failed that the exit code is to tell.
    pub fn fail(&self) {
        self.lock().failed = true;
    }

    /// Whether something failed.
    pub fn failed(&self) -> bool {
        self.lock().failed
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(interactive: bool, now: Now) -> State {
        State { interactive, now, answered: None, ends: false, failed: false }
    }

    #[test]
    fn ctrl_c_is_for_the_answer_first() {
        let cancel = Cancel::new();
        let mut state = state(true, Now::Answers(cancel.clone(), None));
        let start = Instant::now();
        assert_eq!(state.press(start), None);
        assert!(cancel.is_cancelled() && !state.ends);
        // A second one that comes at once is the same; later it ends the program.
        assert_eq!(state.press(start + AGAIN / 2), None);
        assert_eq!(state.press(start + AGAIN), Some(INTERRUPTED));
        (state.now, state.answered) = (Now::Waits, Some(start));
        assert_eq!(state.press(start + LATE / 2), None);
        assert_eq!(state.press(start + LATE), Some(0));
        state.failed = true;
        assert_eq!(state.press(start + LATE), Some(1));
    }

    #[test]
    fn where_nobody_types_it_ends_the_program() {
        let cancel = Cancel::new();
        let mut answers = state(false, Now::Answers(cancel.clone(), None));
        assert_eq!(answers.press(Instant::now()), None);
        assert!(cancel.is_cancelled() && answers.ends);
        let mut works = state(false, Now::Works);
        assert_eq!(works.press(Instant::now()), None);
        assert!(works.ends);
        let mut waits = state(false, Now::Waits);
        waits.answered = Some(Instant::now());
        assert_eq!(waits.press(Instant::now()), Some(INTERRUPTED));
    }
}
