//! Working memory that threads keep: taken, used, given back, never returned to the system.
//!
//! A fresh allocation is cleared page by page by the operating system on first touch, which
//! was 16 % of a training step when every operation allocated anew.

use crate::memory::filled;
use std::cell::RefCell;

/// Floats to a cache line.
const LINE: usize = 16;

/// Pieces that a thread keeps. More than any operation holds at once on one thread; what one
/// thread takes and another gives back must not pile up there.
const KEPT: usize = 32;

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; LINE]);

thread_local! {
    static FREE: RefCell<Vec<Vec<Line>>> = const { RefCell::new(Vec::new()) };
}

/// Memory of its own, aligned to 64 bytes, all zeros at first.
#[derive(Default)]
pub(crate) struct Aligned {
    lines: Vec<Line>,
    len: usize,
}

impl Aligned {
    pub fn new(len: usize) -> Aligned {
        Aligned { lines: vec![Line([0.0; LINE]); len.div_ceil(LINE)], len }
    }
}

/// A piece of this thread's working memory, aligned to 64 bytes; its contents are arbitrary
/// floats left by earlier use.
pub struct Scratch(Aligned);

impl Scratch {
    /// Takes room for `len` floats.
    pub fn new(len: usize) -> Scratch {
        let wanted = len.div_ceil(LINE);
        if wanted == 0 {
            return Scratch(Aligned { lines: vec![], len });
        }
        let mut lines = FREE.with_borrow_mut(|free| {
            // The smallest that is large enough, else the largest to grow.
            let fits = (0..free.len()).filter(|i| free[*i].len() >= wanted);
            match fits.min_by_key(|i| free[*i].len()) {
                Some(i) => free.swap_remove(i),
                None => free.pop().unwrap_or_default(),
            }
        });
        if lines.len() < wanted {
            // Given back first: what is in it is not needed, and memory may be short.
            drop(lines);
            lines = filled(Line([0.0; LINE]), &[wanted]);
        }
        Scratch(Aligned { lines, len })
    }

    /// As [`Scratch::new`], all zeros.
    pub fn zeroed(len: usize) -> Scratch {
        let mut scratch = Scratch::new(len);
        scratch.fill(0.0);
        scratch
    }
}

impl std::ops::Deref for Aligned {
    type Target = [f32];
    fn deref(&self) -> &[f32] {
        // SAFETY: a `Line` is sixteen floats without padding, and there are enough of them.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

impl std::ops::DerefMut for Aligned {
    fn deref_mut(&mut self) -> &mut [f32] {
        // SAFETY: as in `deref`; the borrow is unique.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}

impl std::ops::Deref for Scratch {
    type Target = [f32];
    fn deref(&self) -> &[f32] {
        &self.0
    }
}

impl std::ops::DerefMut for Scratch {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let Aligned { lines, .. } = std::mem::take(&mut self.0);
        // The thread may be ending; then the memory goes back to the system after all.
        let _ = FREE.try_with(|free| {
            let mut free = free.borrow_mut();
            if !lines.is_empty() && free.len() < KEPT {
                free.push(lines);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_reused_and_aligned() {
        let first = Scratch::new(1000);
        let address = first.as_ptr();
        assert_eq!(address as usize % 64, 0);
        drop(first);
        assert_eq!(Scratch::new(900).as_ptr(), address);
        assert!(Scratch::zeroed(17).iter().all(|x| *x == 0.0));
    }
}
