//! Peak rates of this machine, for comparison.

use anyhow::Result;
use regard_kernels::gemm::{Epilogue, Matrix, MatrixMut, peak_gflops, product};
use regard_kernels::pool::{set_threads, threads};
use std::time::Instant;

/// Peak rates in GFLOP/s.
pub struct PeakRates {
    /// Multiply-adds in registers, on all threads.
    pub peak: f64,
    /// Multiply-adds in registers, on one thread. If `peak` is much less than this times the number
    /// of threads, the machine is busy or threads share a core, and rates are unreliable.
    pub peak_of_one: f64,
    /// Product of square matrices, on all threads.
    pub gemm: f64,
}

/// Rows and columns of the matrices; large enough that overheads are negligible.
const SIDE: usize = 1024;

/// Measures the peak rates: the best of several runs, since other load only slows a run down.
pub fn measure() -> Result<PeakRates> {
    let a: Vec<f32> = (0..SIDE * SIDE).map(|i| (i % 17) as f32 - 8.0).collect();
    let mut c = vec![0.0; SIDE * SIDE];
    let (mut peak, mut peak_of_one, mut gemm) = (0.0, 0.0, 0f64);
    let all = threads();
    for _ in 0..8 {
        set_threads(1);
        peak_of_one = peak_gflops().max(peak_of_one);
        set_threads(all);
        peak = peak_gflops().max(peak);
        let (left, right) = (Matrix::new(&a, SIDE, SIDE)?, Matrix::new(&a, SIDE, SIDE)?);
        let result = MatrixMut::new(&mut c, SIDE, SIDE)?;
        let start = Instant::now();
        product(left, right, result, Epilogue::default())?;
        gemm = gemm.max(2.0 * (SIDE as f64).powi(3) / start.elapsed().as_secs_f64() / 1e9);
    }
    Ok(PeakRates { peak, peak_of_one, gemm })
}
