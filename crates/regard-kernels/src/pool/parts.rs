//! A slice that tasks share, each using its own range.

use std::marker::PhantomData;

/// Slice that is shared by tasks which use disjoint ranges.
pub struct Parts<'a, T> {
    start: *mut T,
    len: usize,
    owner: PhantomData<&'a mut [T]>,
}

// SAFETY: `Parts` is a unique borrow; tasks that share it use different pieces.
unsafe impl<T: Send> Send for Parts<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Parts<'_, T> {}

impl<'a, T> Parts<'a, T> {
    pub fn new(slice: &'a mut [T]) -> Parts<'a, T> {
        Parts { start: slice.as_mut_ptr(), len: slice.len(), owner: PhantomData }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the elements `from..to`.
    ///
    /// # Safety
    /// No other range in use may overlap it.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn slice(&self, from: usize, to: usize) -> &mut [T] {
        assert!(from <= to && to <= self.len, "piece {from}..{to} of {}", self.len);
        // SAFETY: inside the slice; the caller vouches that the piece is alone.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(from), to - from) }
    }

    /// Returns `len` elements from `from` on.
    ///
    /// # Safety
    /// As [`Parts::slice`].
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn part(&self, from: usize, len: usize) -> &mut [T] {
        // SAFETY: passed on.
        unsafe { self.slice(from, from + len) }
    }
}
