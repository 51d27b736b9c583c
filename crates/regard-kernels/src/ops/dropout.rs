//! Dropout (Srivastava et al. 2014): `y_i = x_i·m_i/(1 − p)`, with `m_i = 1` where the stream's
//! uniform value `i` is at least `p`.
//!
//! The mask is a function of the stream and the index, so nothing is stored: the backward
//! recomputes it.

use super::{PIECE, Parts};
use crate::pool::parallel_ranges;
use crate::rng::Stream;
use crate::simd::{Kernel, Simd, dispatch};
use crate::view::{Error, bail};

/// Probability and random stream of dropout.
#[derive(Clone, Copy, Debug)]
pub struct Dropout {
    /// Probability that an element is dropped, in `0..=1`.
    pub p: f32,
    /// Random stream of the mask.
    pub stream: Stream,
}

impl Dropout {
    /// Computes `y = x·m/(1 − p)`.
    ///
    /// # Errors
    /// If the lengths differ, or if `p` is not in `0..=1`.
    pub fn forward(&self, x: &[f32], y: &mut [f32]) -> Result<(), Error> {
        if x.len() != y.len() {
            bail!("dropout: got {} inputs and {} outputs, need as many", x.len(), y.len());
        }
        if !(0.0..=1.0).contains(&self.p) {
            bail!("dropout: a probability of {} is not in 0..=1", self.p);
        }
        let y = Parts::new(y);
        parallel_ranges(x.len(), PIECE, &|from, to| {
            // SAFETY: pieces do not overlap.
            let y = unsafe { y.slice(from, to) };
            dispatch(Mask { dropout: *self, first: from as u64, x: &x[from..to], y });
        });
        Ok(())
    }

    /// Computes `dx = dy·m/(1 − p)` with the same mask: the operation is its own derivative.
    pub fn backward(&self, dy: &[f32], dx: &mut [f32]) -> Result<(), Error> {
        self.forward(dy, dx)
    }
}

struct Mask<'a> {
    dropout: Dropout,
    first: u64,
    x: &'a [f32],
    y: &'a mut [f32],
}

impl Kernel for Mask<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Mask { dropout: Dropout { p, stream }, first, x, y } = self;
        let scale = if p < 1.0 { 1.0 / (1.0 - p) } else { 0.0 };
        // Integer arithmetic that the compiler vectorises.
        for (i, (x, y)) in x.iter().zip(y).enumerate() {
            let keep = stream.uniform(first + i as u64) >= p;
            *y = if keep { x * scale } else { 0.0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::random;

    #[test]
    fn the_mask_is_the_streams_and_the_backward_repeats_it() {
        for n in [0, 1, 7, 33, 40_000] {
            let x = random(1, n);
            let dropout = Dropout { p: 0.3, stream: Stream::new(1, 2, 3) };
            let (mut y, mut dx) = (vec![0f32; n], vec![0f32; n]);
            dropout.forward(&x, &mut y).unwrap();
            dropout.backward(&vec![1.0; n], &mut dx).unwrap();
            for i in 0..n {
                let keep = dropout.stream.uniform(i as u64) >= 0.3;
                let scale = if keep { 1.0 / 0.7 } else { 0.0 };
                assert_eq!(y[i], x[i] * scale);
                assert_eq!(dx[i], scale);
            }
            let kept = dx.iter().filter(|d| **d != 0.0).count() as f64;
            assert!(n < 1000 || (kept / n as f64 - 0.7).abs() < 0.01);
        }
    }

    #[test]
    fn nothing_and_everything_can_be_dropped() {
        let stream = Stream::new(0, 0, 0);
        let (x, mut y) = ([1.0, f32::NAN, 3.0], [9f32; 3]);
        Dropout { p: 1.0, stream }.forward(&x, &mut y).unwrap();
        assert_eq!(y, [0.0; 3]);
        Dropout { p: 0.0, stream }.forward(&x[2..], &mut y[2..]).unwrap();
        assert_eq!(y[2], 3.0);
        assert!(Dropout { p: 1.5, stream }.forward(&x, &mut y).is_err());
    }
}
