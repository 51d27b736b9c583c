//! Working memory that each thread reuses and never returns to the system.
//!
//! The operating system clears a fresh allocation page by page on first touch, which was 16 % of a
//! training step when every operation allocated anew.

use crate::memory::filled;
use std::cell::RefCell;

/// Floats per cache line.
const LINE: usize = 16;

/// Maximum number of buffers that a thread keeps. It exceeds what any operation uses at once on one
/// thread; buffers taken by one thread and released by another must not accumulate.
const KEPT: usize = 32;

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; LINE]);

thread_local! {
    static FREE: RefCell<Vec<Vec<Line>>> = const { RefCell::new(Vec::new()) };
}

/// Owned memory, aligned to 64 bytes, initially zeros.
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

/// Buffer of this thread's working memory, aligned to 64 bytes. It holds stale floats of earlier
/// use.
pub struct Scratch(Aligned);

impl Scratch {
    /// Takes a buffer for `len` floats.
    pub fn new(len: usize) -> Scratch {
        let wanted = len.div_ceil(LINE);
        if wanted == 0 {
            return Scratch(Aligned { lines: vec![], len });
        }
        let mut lines = FREE.with_borrow_mut(|free| {
            // The smallest that is large enough, otherwise the largest to grow.
            let fits = (0..free.len()).filter(|i| free[*i].len() >= wanted);
            match fits.min_by_key(|i| free[*i].len()) {
                Some(i) => free.swap_remove(i),
                None => free.pop().unwrap_or_default(),
            }
        });
        if lines.len() < wanted {
            // Freed first: its contents are not needed, and memory may be short.
            drop(lines);
            lines = filled(Line([0.0; LINE]), &[wanted]);
        }
        Scratch(Aligned { lines, len })
    }

    /// Takes a buffer of zeros for `len` floats.
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
        // The thread may be ending; then the memory is returned to the system.
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
