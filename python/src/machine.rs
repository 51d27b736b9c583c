//! Threads, instruction set, and what the machine can do at most.

use crate::array::value_error;
use pyo3::prelude::*;
use regard_kernels::pool;
use regard_kernels::simd::{Kernel, Simd, dispatch, isa as chosen};
use std::hint::black_box;
use std::time::Instant;

/// Sets how many threads kernels use. Results do not depend on it, not even in the last bit.
#[pyfunction]
fn set_threads(n: i64) -> PyResult<()> {
    if n < 1 {
        return Err(value_error(format!("n: got {n}, need at least 1")));
    }
    pool::set_threads(n as usize);
    Ok(())
}

/// How many threads kernels use.
#[pyfunction]
fn threads() -> usize {
    pool::threads()
}

/// The instruction set that kernels run on: avx512, avx2, neon or portable.
#[pyfunction]
fn isa() -> &'static str {
    chosen().name()
}

/// Chains of multiply-adds that do not wait for each other.
struct Chains {
    steps: usize,
}

/// More than latency times throughput of any CPU in use (Zen 3: 4 cycles × 2), and few enough
/// for sixteen registers.
const CHAINS: usize = 12;

impl Kernel for Chains {
    type Out = (f32, f64);
    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> (f32, f64) {
        // Numbers that the compiler does not know, and that differ, or it would do less.
        let (by, add) = (s.splat(black_box(0.999)), s.splat(black_box(0.5)));
        let mut sums = [s.splat(0.0); CHAINS];
        for (at, sum) in sums.iter_mut().enumerate() {
            *sum = s.splat(black_box(at as f32));
        }
        for _ in 0..self.steps {
            for sum in &mut sums {
                *sum = s.fma(*sum, by, add);
            }
        }
        let total = sums.into_iter().map(|sum| s.sum(sum)).sum();
        (total, (2 * S::LANES * CHAINS * self.steps) as f64)
    }
}

/// The rate of multiply-adds that never leave the registers, over all threads, in GFLOP/s: what
/// no kernel can exceed. The best of what fits into 80 ms.
#[pyfunction]
fn peak_gflops(py: Python<'_>) -> f64 {
    // To be replaced by the kernels' own measurement once they have one.
    py.detach(|| {
        let threads = pool::threads();
        let once = || {
            let started = Instant::now();
            let flops = std::sync::Mutex::new(0.0);
            pool::parallel(threads, &|_| {
                let (total, done) = dispatch(Chains { steps: 1_000_000 });
                black_box(total);
                *flops.lock().unwrap() += done;
            });
            flops.into_inner().unwrap() / started.elapsed().as_secs_f64() / 1e9
        };
        let (started, mut best) = (Instant::now(), 0.0);
        while best == 0.0 || started.elapsed().as_millis() < 80 {
            best = f64::max(best, once());
        }
        best
    })
}

pub fn register(module: &Bound<PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(set_threads, module)?)?;
    module.add_function(wrap_pyfunction!(threads, module)?)?;
    module.add_function(wrap_pyfunction!(isa, module)?)?;
    module.add_function(wrap_pyfunction!(peak_gflops, module)?)
}
