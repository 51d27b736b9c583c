//! What this machine can do at best: the yardstick of every rate.

use crate::pool::{parallel, threads};
use crate::simd::{Kernel, Simd, dispatch};
use std::time::Instant;

/// The measured peak of all pool threads in GFLOP/s: independent chains of multiply-adds that
/// never leave the registers. Takes about 10 ms.
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

/// The seconds in which all pool threads together read `data` once, from end to end: less than that
/// a product with one row on its left cannot take.
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
