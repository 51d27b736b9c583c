//! Contiguous lines of a stored matrix, read a vector at a time.

use super::Plain;
use crate::simd::Simd;
use std::marker::PhantomData;

/// Lines of a matrix in some storage type: contiguous elements are read as a vector of floats.
pub(crate) trait Lines: Copy + Send + Sync {
    /// Elements `at..at + LANES` of a line.
    ///
    /// # Safety
    /// They must exist.
    unsafe fn load<S: Simd>(self, s: S, line: usize, at: usize) -> S::V;

    /// Elements `at..at + n` of a line, then zeros.
    ///
    /// # Safety
    /// They must exist, and `n ≤ LANES`.
    unsafe fn load_part<S: Simd>(self, s: S, line: usize, at: usize, n: usize) -> S::V;

    /// Address of an element, which may be out of bounds, for prefetching.
    fn place(self, line: usize, at: usize) -> *const f32;
}

/// Element of a storage type that is converted independently of its neighbours.
pub(crate) trait Element: Plain + Default {
    /// Converts one element.
    fn single(self) -> f32;

    /// Loads a vector of elements.
    ///
    /// # Safety
    /// `LANES` of them must be readable at `p`.
    unsafe fn load<S: Simd>(s: S, p: *const Self) -> S::V;

    /// Loads the first `n` elements, then zeros.
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
    fn single(self) -> f32 {
        self
    }
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

impl Element for i8 {
    fn single(self) -> f32 {
        f32::from(self)
    }
    #[inline(always)]
    unsafe fn load<S: Simd>(s: S, p: *const i8) -> S::V {
        // SAFETY: the caller's promise is this.
        unsafe { s.load_i8(p) }
    }
}

/// Equally spaced lines of elements.
#[derive(Clone, Copy)]
pub(crate) struct Dense<'a, T> {
    start: *const T,
    /// Stride between lines, in elements.
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

    /// Callers that load from it are responsible for the memory.
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
