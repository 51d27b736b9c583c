//! Gate of a feed-forward network: `y = f(a) ⊙ b` for rows `[a, b]` (Shazeer 2020).

use super::activation::{Activation, Function, with_function};
use crate::pool::{Parts, parallel_ranges};
use crate::simd::{Kernel, Simd, dispatch};
use crate::view::{Error, bail};
use std::marker::PhantomData;

/// Floats per task, some 10 µs.
const WORTH: usize = 16 * 1024;

/// Computes `f(a) ⊙ b`, which equals the activation of `a` times `b`, bit for bit. It has no backward:
/// training computes the two operations, which have.
///
/// # Shapes
/// `x: [N, 2·F]` with `a` before `b` → `y: [N, F]`
///
/// # Errors
/// If sizes do not match.
pub fn gated(activation: Activation, x: &[f32], width: usize, y: &mut [f32]) -> Result<(), Error> {
    let rows = y.len() / width.max(1);
    if rows * width != y.len() || x.len() != 2 * y.len() {
        bail!("gated: got {} and {} floats, need rows of {width}", x.len(), y.len());
    }
    let parts = Parts::new(y);
    parallel_ranges(rows, (WORTH / width.max(1)).max(1), &|from, to| {
        for row in from..to {
            let (a, b) = x[2 * row * width..2 * (row + 1) * width].split_at(width);
            // SAFETY: each row is one task's.
            let y = unsafe { parts.part(row * width, width) };
            with_function!(activation, F => dispatch(Gate::<F> { a, b, y, by: PhantomData }));
        }
    });
    Ok(())
}

/// One row.
struct Gate<'a, F> {
    a: &'a [f32],
    b: &'a [f32],
    y: &'a mut [f32],
    by: PhantomData<F>,
}

impl<F: Function> Kernel for Gate<'_, F> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let n = self.y.len();
        let (a, b, y) = (self.a.as_ptr(), self.b.as_ptr(), self.y.as_mut_ptr());
        let whole = n - n % S::LANES;
        // SAFETY: all three have `n` floats.
        unsafe {
            for at in (0..whole).step_by(S::LANES) {
                let gate = F::value(s, s.load(a.add(at)));
                s.store(y.add(at), s.mul(gate, s.load(b.add(at))));
            }
            if whole < n {
                let rest = n - whole;
                let gate = F::value(s, s.load_part(a.add(whole), rest));
                s.store_part(y.add(whole), rest, s.mul(gate, s.load_part(b.add(whole), rest)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_is_the_activation_times_the_other_half() {
        for (rows, width) in [(1, 1), (3, 7), (5, 64), (2, 131)] {
            let number = |i: usize| ((i * 37 % 101) as f32 - 50.0) / 13.0;
            let x: Vec<f32> = (0..rows * 2 * width).map(number).collect();
            for f in [Activation::Silu, Activation::GeluTanh, Activation::Relu] {
                let mut y = vec![0.0; rows * width];
                gated(f, &x, width, &mut y).unwrap();
                for (y, x) in y.chunks(width).zip(x.chunks(2 * width)) {
                    let mut want = vec![0.0; width];
                    f.forward(&x[..width], &mut want).unwrap();
                    want.iter_mut().zip(&x[width..]).for_each(|(y, b)| *y *= b);
                    assert_eq!(y, want, "{f:?} {rows} {width}");
                }
            }
        }
        assert!(gated(Activation::Silu, &[0.0; 4], 3, &mut [0.0; 3]).is_err());
    }
}
