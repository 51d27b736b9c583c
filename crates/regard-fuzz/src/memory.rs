//! Allocator that counts the memory of each thread, and stops a reader that needs far too much.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counting allocator. A fuzz binary makes it its `#[global_allocator]`.
pub struct Counting;

thread_local! {
    /// Bytes allocated by this thread. Negative if it freed memory that another thread had
    /// allocated.
    static NOW: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
    /// Number of bytes above which the process ends.
    static CAP: Cell<isize> = const { Cell::new(isize::MAX) };
}

/// Returns the bytes that this thread holds, if [`Counting`] is the allocator.
pub fn held() -> isize {
    NOW.get()
}

/// Runs `work` and returns its peak memory, in bytes above the current. Ends the process if it
/// needs more than `cap` bytes.
pub fn peak_of<T>(cap: usize, work: impl FnOnce() -> T) -> (T, usize) {
    let before = NOW.get();
    PEAK.set(before);
    CAP.set(before.saturating_add_unsigned(cap));
    let done = work();
    CAP.set(isize::MAX);
    (done, usize::try_from(PEAK.get() - before).unwrap_or(0))
}

/// Counts a change, before it is made.
fn count(change: isize) {
    // A thread that is ending has no counters any more.
    let _ = NOW.try_with(|now| {
        now.set(now.get() + change);
        let held = now.get();
        if held > PEAK.get() {
            PEAK.set(held);
            if held > CAP.get() {
                CAP.set(isize::MAX);
                crate::guard::end_process(change);
            }
        }
    });
}

// SAFETY: it only counts what it passes on to the system's allocator, with the same arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: passed on.
        unsafe { System.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: passed on.
        unsafe { System.dealloc(old, layout) }
    }
}
