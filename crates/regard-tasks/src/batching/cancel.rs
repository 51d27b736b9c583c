//! Cancellation of sessions.

use crate::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends the requests of sessions from any thread: what a session reads or feeds fails before the
/// next step, its pages are free then, and the room that it reserved when it is dropped. Clones are
/// one and the same.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Creates one that is not cancelled.
    pub fn new() -> Cancel {
        Cancel::default()
    }

    /// Cancels, for good.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether it is cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    pub(super) fn error(doing: &str) -> Error {
        Error::invalid(format!("cancelled while {doing}"))
    }
}
