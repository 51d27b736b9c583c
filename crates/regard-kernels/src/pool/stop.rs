//! Cancellation of running tasks, when another task of the region has panicked or the caller was
//! interrupted.
//!
//! A cancelled task unwinds with a distinct payload, so that all loops end and all buffers are
//! freed, without an incomplete result.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::null;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Interval at which the caller is polled. Polling may be slow (Python's GIL), and a delay of this
/// length after Ctrl-C goes unnoticed.
const POLL: Duration = Duration::from_millis(50);

/// The call was interrupted before it was done; its output is incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("interrupted")
    }
}
impl std::error::Error for Interrupted {}

/// Panic payload of cancelled tasks.
struct Stopped;

thread_local! {
    /// Stop flag of the region that this thread works in. Null outside of regions.
    static REGION: Cell<*const AtomicBool> = const { Cell::new(null()) };
    /// The interruptible call made by this thread. Null if there is none.
    static CALL: Cell<*const Call<'static>> = const { Cell::new(null()) };
}

struct Call<'a> {
    poll: &'a dyn Fn() -> bool,
    last: Cell<Instant>,
    interrupted: Cell<bool>,
    /// A panic of `poll`, which must not unwind from within a region in which other threads still
    /// work.
    panic: Cell<Option<Box<dyn Any + Send>>>,
}

impl Call<'_> {
    /// Polls the caller, if the interval has passed.
    fn interrupted(&self) -> bool {
        if !self.interrupted.get() && self.last.get().elapsed() >= POLL {
            let answer = catch_unwind(AssertUnwindSafe(self.poll));
            self.last.set(Instant::now());
            self.interrupted.set(*answer.as_ref().unwrap_or(&true));
            self.panic.set(answer.err());
        }
        self.interrupted.get()
    }
}

/// Restores a thread-local value when dropped.
struct Restore<T: Copy + 'static>(&'static std::thread::LocalKey<Cell<T>>, T);

impl<T: Copy> Drop for Restore<T> {
    fn drop(&mut self) {
        self.0.set(self.1);
    }
}

/// Runs `run`, and meanwhile calls `poll` on this thread about every 50 ms. When `poll` returns
/// true, the kernels that `run` has called give up within milliseconds, and this returns
/// [`Interrupted`].
///
/// Panics of `run` and of `poll` are passed on to the caller. Calls may nest.
pub fn interruptible<R>(
    poll: &dyn Fn() -> bool,
    run: impl FnOnce() -> R,
) -> Result<R, Interrupted> {
    let call = Call {
        poll,
        last: Cell::new(Instant::now()),
        interrupted: Cell::new(false),
        panic: Cell::new(None),
    };
    let result = {
        // A call from within `poll` is independent of the region that is polled for.
        let _region = Restore(&REGION, REGION.replace(null()));
        let erased = (&raw const call).cast::<Call<'static>>();
        let _call = Restore(&CALL, CALL.replace(erased));
        catch_unwind(AssertUnwindSafe(run))
    };
    if let Some(payload) = call.panic.take() {
        resume_unwind(payload);
    }
    match result {
        // `poll` may have recorded a reason, which must not be lost because the last task was done.
        _ if call.interrupted.get() => Err(Interrupted),
        Ok(result) => Ok(result),
        Err(payload) => resume_unwind(payload),
    }
}

/// Until the guard is dropped, this thread's checkpoints check `stop`.
///
/// # Safety
/// `stop` must outlive the guard.
pub(super) unsafe fn enter(stop: &AtomicBool) -> impl Drop {
    Restore(&REGION, REGION.replace(stop))
}

/// Whether this thread should continue its work.
#[inline]
pub(super) fn wanted() -> bool {
    let (region, call) = (REGION.get(), CALL.get());
    // SAFETY: whoever set the pointers keeps what they point to until it has reset them.
    unsafe {
        if !region.is_null() && (*region).load(Ordering::Relaxed) {
            return false;
        }
        if call.is_null() || !(*call).interrupted() {
            return true;
        }
        if !region.is_null() {
            (*region).store(true, Ordering::Relaxed);
        }
        false
    }
}

/// Unwinds if this thread's work is cancelled. Call it in loops whose iterations take longer than a
/// microsecond and shorter than some milliseconds.
#[inline]
pub(crate) fn checkpoint() {
    if !wanted() {
        give_up();
    }
}

/// Unwinds without a message.
#[cold]
pub(super) fn give_up() -> ! {
    resume_unwind(Box::new(Stopped))
}

/// Whether a panic is a cancellation.
pub(super) fn gave_up(payload: &(dyn Any + Send)) -> bool {
    payload.is::<Stopped>()
}

#[cfg(test)]
mod tests {
    use super::super::parallel;
    use super::*;

    /// Tasks of a millisecond each, far more than there is time for.
    fn endless() {
        parallel(1 << 20, &|_| std::thread::sleep(Duration::from_millis(1)));
    }

    #[test]
    fn an_interruption_ends_the_call_and_the_next_one_works() {
        let started = Instant::now();
        assert_eq!(interruptible(&|| true, endless), Err(Interrupted));
        assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
        assert_eq!(interruptible(&|| false, || parallel(9, &|_| {})), Ok(()));
    }

    #[test]
    fn a_panic_while_polling_reaches_the_caller() {
        let poll = || panic!("while polling");
        let caught = catch_unwind(AssertUnwindSafe(|| interruptible(&poll, endless)));
        assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"while polling"));
    }

    #[test]
    fn a_call_from_within_a_poll_is_a_call_of_its_own() {
        let inner = Cell::new(None);
        let poll = || {
            inner.set(Some(interruptible(&|| false, || parallel(9, &|_| {}))));
            true
        };
        assert_eq!(interruptible(&poll, endless), Err(Interrupted));
        assert_eq!(inner.get(), Some(Ok(())));
    }

    #[test]
    fn what_is_done_after_the_interruption_is_still_interrupted() {
        let late = || {
            std::thread::sleep(2 * POLL);
            let _ = wanted();
        };
        assert_eq!(interruptible(&|| true, late), Err(Interrupted));
    }
}
