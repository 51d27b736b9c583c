//! Luong's general score: `s = scale · qᵀ W k`.

use super::*;
use crate::gemm::micro::Product;
use crate::gemm::{Epilogue, Matrix, MatrixMut, product};
use crate::memory::zeros;

pub(super) const ROW: Row<dyn Score> = Row {
    about: Variant {
        name: "general",
        params: &[("w", "[H,Dq,Dk]")],
        settings: &[],
        formula: "scale · qᵀ W k, scale = 1 unless given",
        paper: "Luong et al. 2015, arXiv:1508.04025",
    },
    new: |_| Ok(Arc::new(General)),
    trials: DEFAULTS,
};

/// General score `s = scale · qᵀ W k`, with a matrix for each head; queries and keys may differ in
/// width.
#[derive(Clone, Copy, Debug)]
pub struct General;

impl Score for General {
    fn params(&self, dims: &Dims) -> Vec<Param> {
        vec![Param::new("w", [1, dims.h, dims.d, dims.dk], "1HRD")]
    }
    fn check(&self, _: &Grid) -> Result<(), Error> {
        Ok(())
    }
    fn formula(&self) -> Option<Expr> {
        Some(scale() * queries().times(param(0)).dot(keys()))
    }
}

impl Lower for General {
    fn lower<'a>(&'a self, grid: &'a Grid, x: ScoreOperands<'a>, scale: f32) -> Lowered<'a> {
        let Dims { b, h, t, dk, .. } = grid.dims;
        // q′ = qᵀ W is linear in T, so it is computed once.
        let mut q = zeros(&[b, h, t, dk]);
        for run in Run::all(&grid.dims, &x.q) {
            let (given, w) = (run.given(&x.q), of_head(&x.params[0], run.h));
            multiply(given, w, run.made_mut(&mut q, &grid.dims, dk), Epilogue::default());
        }
        let (q, k) = (Operand::Made(q, [b, h, t, dk]), Operand::Given(x.k));
        Lowered { pair: Box::new(Product), q, k, scale, weights: vec![], map: None, terms: vec![] }
    }
    fn raise(&self, grid: &Grid, x: ScoreOperands, _: f32, grads: Raise) -> Vec<Vec<f32>> {
        let Dims { h, d, dk, .. } = grid.dims;
        let mut dw = zeros(&[h, d, dk]);
        let mut dq = vec![];
        for run in Run::all(&grid.dims, &x.q) {
            // forward: q′ = q · w
            let made = run.made(&grads.q, &grid.dims, dk);
            let sum = MatrixMut::new(&mut dw[run.h * d * dk..][..d * dk], d, dk);
            let sum = sum.expect("a head's part of the gradient");
            multiply(run.given(&x.q).t(), made, sum, Epilogue::accumulate());
            dq.resize(run.rows * d, 0.0);
            let out = MatrixMut::new(&mut dq, run.rows, d).expect("just made");
            multiply(made, of_head(&x.params[0], run.h).t(), out, Epilogue::default());
            for (row, dq) in dq.chunks_exact(d.max(1)).enumerate() {
                let (b, i) = run.place(row, &grid.dims);
                for (c, dq) in dq.iter().enumerate() {
                    // SAFETY: the index is inside the view's shape, and this thread owns it.
                    unsafe { *grads.dq.at(b, run.h, i, c) = *dq };
                }
            }
        }
        vec![dw]
    }
}

/// Rows of one head that are evenly spaced both in the given and in the computed queries.
struct Run {
    b: usize,
    h: usize,
    rows: usize,
    /// Stride between rows of the given queries.
    step: isize,
}

impl Run {
    /// All rows: the whole batch of a head at once where its rows are evenly spaced, as in a
    /// decoder's step, otherwise one sequence at a time.
    fn all(&Dims { b, h, t, .. }: &Dims, q: &View) -> Vec<Run> {
        let [batch, _, row, _] = q.strides;
        let whole = t == 1 || (h == 1 && batch == row * t as isize);
        let (runs, rows) = if whole { (1, b * t) } else { (b, t) };
        let step = if t == 1 { batch } else { row };
        (0..runs * h).map(|i| Run { b: i / h, h: i % h, rows, step }).collect()
    }

    /// Its rows of the given queries.
    fn given<'a>(&self, q: &View<'a>) -> Matrix<'a> {
        let (shape, strides) = ([self.rows, q.shape[3]], [self.step, q.strides[3]]);
        // SAFETY: these are rows of the view, evenly spaced.
        unsafe { Matrix::from_raw(q.at(self.b, self.h, 0, 0), shape, strides) }
    }

    /// Offset and stride of its rows in the computed queries.
    fn layout(&self, &Dims { h, t, .. }: &Dims, width: usize) -> (usize, isize) {
        let step = if t == 1 { h * width } else { width };
        ((self.b * h + self.h) * t * width, step as isize)
    }

    /// Its rows of the computed queries.
    fn made<'a>(&self, all: &'a [f32], dims: &Dims, width: usize) -> Matrix<'a> {
        let (first, step) = self.layout(dims, width);
        Matrix::strided(all, [self.rows, width], [step, 1], first).expect("made to its shape")
    }

    /// Its rows of the computed queries, mutable.
    fn made_mut<'a>(&self, all: &'a mut [f32], dims: &Dims, width: usize) -> MatrixMut<'a> {
        let (first, step) = self.layout(dims, width);
        MatrixMut::strided(all, [self.rows, width], [step, 1], first).expect("made to its shape")
    }

    /// Batch row and query of a row.
    fn place(&self, row: usize, &Dims { t, .. }: &Dims) -> (usize, usize) {
        (self.b + row / t, row % t)
    }
}

/// A head's `[Dq, Dk]`.
fn of_head<'a>(w: &View<'a>, h: usize) -> Matrix<'a> {
    let ([_, _, d, dk], [_, _, row, col]) = (w.shape, w.strides);
    // SAFETY: a part of the view.
    unsafe { Matrix::from_raw(w.at(0, h, 0, 0), [d, dk], [row, col]) }
}

fn multiply(a: Matrix, b: Matrix, c: MatrixMut, epilogue: Epilogue) {
    product(a, b, c, epilogue).expect("shapes that the grid has checked");
}
