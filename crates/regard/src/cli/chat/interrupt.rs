//! Ctrl-C: it stops an answer, and without one the program.

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

/// What Ctrl-C ends now.
enum Now {
    /// An answer.
    Answer(Cancel),
    /// The program; since then.
    Program(Instant),
}

/// Listens for Ctrl-C.
pub struct Interrupt(Arc<Mutex<Now>>);

impl Interrupt {
    /// Begins to listen, without an answer.
    pub fn listen() -> Result<Interrupt> {
        let pressed = Arc::new(AtomicBool::new(false));
        flag::register(SIGINT, pressed.clone()).context("cannot listen for Ctrl-C")?;
        let long_ago = Instant::now().checked_sub(LATE).unwrap_or_else(Instant::now);
        let interrupt = Interrupt(Arc::new(Mutex::new(Now::Program(long_ago))));
        let now = interrupt.0.clone();
        thread::spawn(move || {
            loop {
                thread::sleep(POLL);
                if !pressed.swap(false, SeqCst) {
                    continue;
                }
                match &*lock(&now) {
                    Now::Answer(cancel) => cancel.cancel(),
                    Now::Program(since) if since.elapsed() < LATE => {}
                    Now::Program(_) => {
                        let _ = writeln!(std::io::stderr());
                        std::process::exit(0);
                    }
                }
            }
        });
        Ok(interrupt)
    }

    /// Begins an answer; returns what Ctrl-C cancels.
    pub fn answering(&self) -> Cancel {
        let cancel = Cancel::new();
        *lock(&self.0) = Now::Answer(cancel.clone());
        cancel
    }

    /// Ends an answer.
    pub fn answered(&self) {
        *lock(&self.0) = Now::Program(Instant::now());
    }
}

fn lock(now: &Mutex<Now>) -> MutexGuard<'_, Now> {
    now.lock().unwrap_or_else(PoisonError::into_inner)
}
