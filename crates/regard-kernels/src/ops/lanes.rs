//! Slices read and written a vector at a time; the last vector of a row may be partial.
//!
//! These check their bounds, so that the operations built on them need no unsafe code. The check is
//! the same comparison that separates whole vectors from partial ones.

use crate::simd::Simd;

/// Loads the lanes from `x[i]` on, zeros past the end.
#[inline(always)]
pub(crate) fn get<S: Simd>(s: S, x: &[f32], i: usize) -> S::V {
    let rest = &x[i..];
    // SAFETY: as many floats as are asked for are in `rest`.
    unsafe {
        if rest.len() >= S::LANES {
            s.load(rest.as_ptr())
        } else {
            s.load_part(rest.as_ptr(), rest.len())
        }
    }
}

/// Loads the lanes from `x[i]` on, `fill` past the end.
#[inline(always)]
pub(crate) fn get_or<S: Simd>(s: S, x: &[f32], i: usize, fill: f32) -> S::V {
    let rest = &x[i..];
    let mut buffer = [fill; 16];
    // SAFETY: a whole vector is in `rest`, or in the buffer, which holds the widest.
    unsafe {
        if rest.len() >= S::LANES {
            return s.load(rest.as_ptr());
        }
        std::ptr::copy_nonoverlapping(rest.as_ptr(), buffer.as_mut_ptr(), rest.len());
        s.load(buffer.as_ptr())
    }
}

/// Stores the lanes from `x[i]` on, up to the end of the slice.
#[inline(always)]
pub(crate) fn put<S: Simd>(s: S, x: &mut [f32], i: usize, v: S::V) {
    let rest = &mut x[i..];
    // SAFETY: as many floats as are written are in `rest`.
    unsafe {
        if rest.len() >= S::LANES {
            s.store(rest.as_mut_ptr(), v);
        } else {
            s.store_part(rest.as_mut_ptr(), rest.len(), v);
        }
    }
}

/// `x += y`
#[inline(always)]
pub(crate) fn add_to<S: Simd>(s: S, x: &mut [f32], y: &[f32]) {
    assert_eq!(x.len(), y.len());
    let mut i = 0;
    while i < x.len() {
        let sum = s.add(get(s, x, i), get(s, y, i));
        put(s, x, i, sum);
        i += S::LANES;
    }
}
