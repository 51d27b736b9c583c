//! What this machine can do at best: what every rate is held against.

use anyhow::Result;
use regard_kernels::gemm::{Epilogue, Matrix, MatrixMut, peak_gflops, product};
use regard_kernels::pool::{set_threads, threads};
use std::time::Instant;

/// Rates in GFLOP/s, on all threads unless it says otherwise.
pub struct Yardstick {
    /// Multiply-adds that never leave the registers.
    pub peak: f64,
    /// The same on one thread. Where all together reach much less than their number times this,
    /// the cores had other work, or threads share a core: no rate of that run means much.
    pub peak_of_one: f64,
    /// A product of square matrices.
    pub gemm: f64,
}

/// Rows and columns of the product: large enough that nothing but the product is measured.
const SIDE: usize = 1024;

/// Measures them. The best of some runs, because other programs only ever make a run slower.
pub fn measure() -> Result<Yardstick> {
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
    Ok(Yardstick { peak, peak_of_one, gemm })
}
