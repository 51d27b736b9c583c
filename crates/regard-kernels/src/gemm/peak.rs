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
