//! Lines of numbers in memory, read a vector at a time.

use super::Plain;
use crate::simd::Simd;
use std::marker::PhantomData;

/// The lines of a matrix in some storage type: numbers that follow each other in memory are read
/// as a vector of floats.
pub(crate) trait Lines: Copy + Send + Sync {
    /// Numbers `at..at + LANES` of a line.
    ///
    /// # Safety
    /// They must exist.
    unsafe fn load<S: Simd>(self, s: S, line: usize, at: usize) -> S::V;

    /// Numbers `at..at + n` of a line, zeros behind.
    ///
    /// # Safety
    /// They must exist, and `n ≤ LANES`.
    unsafe fn load_part<S: Simd>(self, s: S, line: usize, at: usize, n: usize) -> S::V;

    /// The address of a number, which need not exist: what may be fetched ahead.
    fn place(self, line: usize, at: usize) -> *const f32;
}

/// A number of a storage type in which each number stands for itself.
pub(crate) trait Element: Plain + Default {
    /// A vector of them.
    ///
    /// # Safety
    /// `LANES` of them must be readable at `p`.
    unsafe fn load<S: Simd>(s: S, p: *const Self) -> S::V;

    /// The first `n`, zeros behind.
    ///
    /// # Safety
    /// `n ≤ LANES` of them must be readable at `p`.
    #[inline(always)]
    unsafe fn load_part<S: Simd>(s: S, p: *const Self, n: usize) -> S::V {
        let mut buffer = [Self::default(); 16];
        // SAFETY: the caller vouches for `n` numbers; the buffer holds the widest vector.
        unsafe {
            std::ptr::copy_nonoverlapping(p, buffer.as_mut_ptr(), n);
            Self::load(s, buffer.as_ptr())
        }
    }
}

impl Element for f32 {
    #[inline(always)]
    unsafe fn load<S: Simd>(s: S, p: *const f32) -> S::V {
        // SAFETY: the caller's promise is this.
        unsafe { s.load(p) }
    }
    #[inline(always)]
    unsafe fn load_part<S: Simd>(s: S, p: *const f32, n: usize) -> S::V {
        // SAFETY: the caller's promise is this.
        unsafe { s.load_part(p, n) }
    }
}

/// Lines of numbers that each stand for themselves, at equal distances.
#[derive(Clone, Copy)]
pub(crate) struct Dense<'a, T> {
    start: *const T,
    /// From line to line.
    step: isize,
    owner: PhantomData<&'a [T]>,
}

// SAFETY: a `Dense` is a shared borrow of numbers.
unsafe impl<T: Plain> Send for Dense<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Plain> Sync for Dense<'_, T> {}

impl<'a, T> Dense<'a, T> {
    pub fn new(all: &'a [T], from: usize, step: usize) -> Dense<'a, T> {
        Dense::from_raw(all.as_ptr().wrapping_add(from), step as isize)
    }

    /// Whoever loads from it vouches for the memory.
    pub fn from_raw(start: *const T, step: isize) -> Dense<'a, T> {
        Dense { start, step, owner: PhantomData }
    }

    #[inline(always)]
    fn at(self, line: usize, at: usize) -> *const T {
        self.start.wrapping_offset(line as isize * self.step).wrapping_add(at)
    }
}

impl<T: Element> Lines for Dense<'_, T> {
    #[inline(always)]
    unsafe fn load<S: Simd>(self, s: S, line: usize, at: usize) -> S::V {
        // SAFETY: the caller's promise is this.
        unsafe { T::load(s, self.at(line, at)) }
    }

    #[inline(always)]
    unsafe fn load_part<S: Simd>(self, s: S, line: usize, at: usize, n: usize) -> S::V {
        // SAFETY: the caller's promise is this.
        unsafe { T::load_part(s, self.at(line, at), n) }
    }

    #[inline(always)]
    fn place(self, line: usize, at: usize) -> *const f32 {
        self.at(line, at).cast()
    }
}
