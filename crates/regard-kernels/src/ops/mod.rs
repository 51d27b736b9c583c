//! The operations of a training step besides attention, each with its backward.
//!
//! All of them are deterministic: what a task computes depends on the shape alone, and sums over
//! rows are made of partial sums over chunks of rows that are added in order. The number of
//! threads changes nothing, bit for bit.

pub mod activation;
pub mod adamw;
mod chunks;
pub mod dropout;
pub mod embedding;
mod lanes;
pub mod linear;
pub mod loss;
pub mod norm;
pub mod recurrent;
#[cfg(test)]
mod testing;

use std::marker::PhantomData;

/// Floats to a task of an element-wise operation: 64 KiB, which takes a few microseconds, so
/// that handing out a task costs little and short arrays still spread.
pub(crate) const PIECE: usize = 16 * 1024;

/// A slice of which tasks write disjoint pieces.
pub(crate) struct Parts<'a> {
    start: *mut f32,
    len: usize,
    owner: PhantomData<&'a mut [f32]>,
}

// SAFETY: `Parts` is a unique borrow of floats; tasks that share it write different pieces.
unsafe impl Send for Parts<'_> {}
// SAFETY: as above.
unsafe impl Sync for Parts<'_> {}

impl<'a> Parts<'a> {
    pub fn new(slice: &'a mut [f32]) -> Parts<'a> {
        Parts { start: slice.as_mut_ptr(), len: slice.len(), owner: PhantomData }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Elements `from..to`.
    ///
    /// # Safety
    /// While the piece is in use no other that overlaps it may be.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn slice(&self, from: usize, to: usize) -> &mut [f32] {
        assert!(from <= to && to <= self.len, "piece {from}..{to} of {}", self.len);
        // SAFETY: inside the slice; the caller vouches that the piece is alone.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(from), to - from) }
    }
}
