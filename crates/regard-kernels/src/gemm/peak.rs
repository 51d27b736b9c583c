//! Measured limits of this machine, for comparison with the kernels' rates.

use crate::pool::{parallel, threads};
use crate::simd::{Kernel, Simd, dispatch, exp_nonpositive};
use std::time::Instant;

/// Measures the peak of all pool threads in GFLOP/s: independent chains of multiply-adds that stay
/// in registers. Takes about 10 ms.
pub fn peak_gflops() -> f64 {
    let threads = threads();
    let rounds = 200_000;
    let mut best = 0f64;
    for _ in 0..4 {
        let start = Instant::now();
        parallel(threads, &|_| {
            std::hint::black_box(dispatch(Chains { rounds }));
        });
        let flops = 2.0 * (CHAINS * crate::simd::isa().lanes() * rounds * threads) as f64;
        best = best.max(flops / start.elapsed().as_secs_f64() / 1e9);
    }
    best
}

/// Enough to hide a latency of five cycles on two ports, few enough for sixteen registers.
const CHAINS: usize = 12;

struct Chains {
    rounds: usize,
}

impl Kernel for Chains {
    type Out = f32;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> f32 {
        let (x, y) = (std::hint::black_box(0.999_f32), std::hint::black_box(0.001_f32));
        let (x, y) = (s.splat(x), s.splat(y));
        let mut chains = [s.splat(1.0); CHAINS];
        for _ in 0..self.rounds {
            for c in &mut chains {
                *c = s.fma(*c, x, y);
            }
        }
        s.sum(chains.into_iter().reduce(|a, b| s.add(a, b)).expect("there are chains"))
    }
}

/// Measures the seconds in which all pool threads together read `data` once: a lower bound for a
/// product with a single row on its left.
pub fn read_seconds(data: &[f32]) -> f64 {
    let piece = data.len().div_ceil(8 * threads()).max(1);
    let start = Instant::now();
    parallel(data.len().div_ceil(piece), &|task| {
        let from = task * piece;
        let part = &data[from..(from + piece).min(data.len())];
        std::hint::black_box(dispatch(Sum(part)));
    });
    start.elapsed().as_secs_f64()
}

struct Sum<'a>(&'a [f32]);

impl Kernel for Sum<'_> {
    type Out = f32;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> f32 {
        let mut sums = [s.splat(0.0); 8];
        for block in self.0.chunks_exact(8 * S::LANES) {
            for (i, sum) in sums.iter_mut().enumerate() {
                *sum = s.add(*sum, crate::ops::lanes::get(s, block, i * S::LANES));
            }
        }
        s.sum(sums.into_iter().reduce(|a, b| s.add(a, b)).expect("there are sums"))
    }
}

/// Measures the seconds in which all pool threads together compute `count` exponentials of
/// nonpositive values, from one part of their first-level caches to another: a lower bound for a
/// softmax over as many pairs.
pub fn exp_seconds(count: u64) -> f64 {
    let tasks = 8 * threads();
    let rounds = count.div_ceil((tasks * EXPONENTS) as u64);
    let start = Instant::now();
    parallel(tasks, &|_| {
        let from: Vec<f32> = (0..EXPONENTS).map(|i| -(i as f32) / 64.0).collect();
        let mut to = vec![0.0; EXPONENTS];
        for _ in 0..rounds {
            dispatch(Exponentials { from: std::hint::black_box(&from), to: &mut to });
            std::hint::black_box(&to);
        }
    });
    let done = rounds * (tasks * EXPONENTS) as u64;
    start.elapsed().as_secs_f64() * count as f64 / done as f64
}

/// Twice as many floats fill half of a first-level cache of 32 kB.
const EXPONENTS: usize = 2048;

struct Exponentials<'a> {
    from: &'a [f32],
    to: &'a mut [f32],
}

impl Kernel for Exponentials<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let blocks = self.from.chunks_exact(4 * S::LANES);
        for (from, to) in blocks.zip(self.to.chunks_exact_mut(4 * S::LANES)) {
            for i in 0..4 {
                // SAFETY: both blocks are four vectors.
                unsafe {
                    let x = s.load(from.as_ptr().add(i * S::LANES));
                    s.store(to.as_mut_ptr().add(i * S::LANES), exp_nonpositive(s, x));
                }
            }
        }
    }
}
