//! Allocations whose size depends on the caller's shapes.
//!
//! A failed allocation of a `Vec` aborts the process. Shapes that need more memory than there is
//! are an error of the caller, who may continue: here it is a panic with a message that begins with
//! [`REFUSED`], which the caller may catch.

use std::alloc::{Layout, alloc_zeroed};

/// Prefix of the panic message when an allocation fails.
pub const REFUSED: &str = "out of memory: ";

#[cold]
fn refuse(sizes: &[usize], each: usize) -> ! {
    let bytes = sizes.iter().fold(each as f64, |bytes, n| bytes * *n as f64);
    panic!("{REFUSED}{sizes:?} elements of {each} bytes are {:.1} GiB", bytes / f64::from(1 << 30));
}

/// Product of sizes; panics if its size in bytes overflows.
fn count<T>(sizes: &[usize]) -> usize {
    let n = sizes.iter().try_fold(1usize, |n, size| n.checked_mul(*size));
    let fits = |n: &usize| Layout::array::<T>(*n).is_ok();
    n.filter(fits).unwrap_or_else(|| refuse(sizes, size_of::<T>()))
}

/// Zeros, as many as the product of `sizes`.
pub(crate) fn zeros(sizes: &[usize]) -> Vec<f32> {
    let n = count::<f32>(sizes);
    if n == 0 {
        return vec![];
    }
    let layout = Layout::array::<f32>(n).expect("counted");
    // SAFETY: the layout has a size. Zeroed memory is zeros, and a `Vec` of this layout may own it.
    unsafe {
        let memory = alloc_zeroed(layout).cast::<f32>();
        if memory.is_null() {
            refuse(sizes, size_of::<f32>());
        }
        Vec::from_raw_parts(memory, n, n)
    }
}

/// Empty vector with capacity for the product of `sizes`.
pub(crate) fn room<T>(sizes: &[usize]) -> Vec<T> {
    let mut out = vec![];
    if out.try_reserve_exact(count::<T>(sizes)).is_err() {
        refuse(sizes, size_of::<T>());
    }
    out
}

/// Copies of a value, as many as the product of `sizes`.
pub(crate) fn filled<T: Clone>(value: T, sizes: &[usize]) -> Vec<T> {
    let mut out = room(sizes);
    out.resize(count::<T>(sizes), value);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    #[test]
    fn what_cannot_be_had_is_a_panic_that_says_so() {
        for sizes in [[1 << 20, 1 << 20, 1 << 10], [usize::MAX, 2, 1], [usize::MAX / 4, 1, 1]] {
            let of_zeros = catch_unwind(|| drop(zeros(&sizes)));
            let of_others = catch_unwind(|| drop(filled(-1i32, &sizes)));
            for payload in [of_zeros.unwrap_err(), of_others.unwrap_err()] {
                let message = payload.downcast_ref::<String>().unwrap();
                assert!(message.starts_with(REFUSED), "{message}");
            }
        }
    }

    #[test]
    fn what_can_be_had_is_as_asked() {
        assert_eq!(zeros(&[2, 3]), [0.0; 6]);
        assert_eq!(zeros(&[2, 0]), [0.0; 0]);
        assert_eq!(filled(-1i32, &[3, 1]), [-1; 3]);
    }
}
