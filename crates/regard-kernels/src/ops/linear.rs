//! Linear layer with a fused activation: `y = f(x·W + b)`.
//!
//! The weight is a view, so both `[in, out]` memory (Burn) and `[out, in]` memory (PyTorch, with
//! [`Matrix::t`]) work, for the gradient too.

use super::activation::{Activation, Function, with_function};
use super::chunks::sum_over_rows;
use super::{Parts, lanes};
use crate::gemm::{Epilogue, Matrix, MatrixMut, product};
use crate::scratch::Scratch;
use crate::simd::{Kernel, Simd, dispatch};
use crate::view::{Error, bail};
use std::marker::PhantomData;

/// Parameters of a linear layer.
///
/// # Shapes
/// `weight: [I, O]`, `bias: [O]`.
#[derive(Clone, Copy)]
pub struct Linear<'a> {
    /// Weight `W`.
    pub weight: Matrix<'a>,
    /// Bias `b`; `None` for none.
    pub bias: Option<&'a [f32]>,
    /// Activation `f`.
    pub activation: Activation,
}

/// Values saved by the forward for the backward.
#[derive(Clone, Copy)]
pub struct SavedLinear<'a> {
    /// Input, `[N, I]`.
    pub x: Matrix<'a>,
    /// Pre-activation values `x·W + b`, `[N, O]`, row-major; not needed for the identity.
    pub pre: Option<Matrix<'a>>,
}

/// Outputs of the backward, overwritten; gradients that are `None` are not computed.
#[derive(Default)]
pub struct LinearGradients<'a> {
    /// Gradient of `x`, `[N, I]`.
    pub x: Option<MatrixMut<'a>>,
    /// Gradient of `W`, `[I, O]`.
    pub weight: Option<MatrixMut<'a>>,
    /// Gradient of `b`, `[O]`.
    pub bias: Option<&'a mut [f32]>,
}

impl Linear<'_> {
    /// Computes `y = f(x·W + b)`; `pre`, if given, receives `x·W + b`.
    ///
    /// # Shapes
    /// `x: [N, I]`, `y, pre: [N, O]`, both row-major.
    pub fn forward(&self, x: Matrix, y: MatrixMut, pre: Option<MatrixMut>) -> Result<(), Error> {
        let Linear { weight, bias, activation } = *self;
        product(x, weight, y, Epilogue { bias, activation, pre, ..Epilogue::default() })
    }

    /// Computes the gradients for `dy`, `[N, O]`, row-major.
    pub fn backward(
        &self,
        saved: SavedLinear,
        dy: Matrix,
        to: LinearGradients,
    ) -> Result<(), Error> {
        let ([n, i], [i2, o]) = (saved.x.shape(), self.weight.shape());
        if i != i2 || dy.shape() != [n, o] || dy.col != 1 {
            bail!(
                "linear: x [{n}, {i}], a weight [{i2}, {o}] and a gradient {:?} (which must be \
                 row-major [{n}, {o}]) do not match",
                dy.shape()
            );
        }
        if let Some(db) = &to.bias
            && db.len() != o
        {
            bail!("linear: a bias gradient of {} floats for {o} outputs", db.len());
        }
        // y = f(u): du = dy·f′(u), and db = Σ_rows du in the same pass
        let mut room =
            Scratch::new(if self.activation == Activation::Identity { 0 } else { n * o });
        let du = if self.activation == Activation::Identity {
            if let Some(db) = to.bias {
                sum_rows(dy, db);
            }
            dy
        } else {
            let Some(pre) = saved.pre.filter(|p| p.shape() == [n, o] && p.col == 1) else {
                bail!("linear: {:?} needs the saved row-major `pre` [{n}, {o}]", self.activation);
            };
            let mut unused = Scratch::new(o);
            let db = to.bias.unwrap_or(&mut unused);
            let du = Parts::new(&mut room);
            sum_over_rows(n, db, &|rows, partial| {
                for row in rows {
                    // SAFETY: each row is one task's.
                    let du = unsafe { du.slice(row * o, (row + 1) * o) };
                    let (u, dy) = (row_of(&pre, row), row_of(&dy, row));
                    let at = (u, dy, du, &mut *partial);
                    with_function!(self.activation, F => dispatch(Row::<F>(at, PhantomData)));
                }
            });
            Matrix::new(&room, n, o)?
        };
        // u = x·W + b: dW = xᵀ·du, dx = du·Wᵀ
        if let Some(dw) = to.weight {
            product(saved.x.t(), du, dw, Epilogue::default())?;
        }
        if let Some(dx) = to.x {
            product(du, self.weight.t(), dx, Epilogue::default())?;
        }
        Ok(())
    }
}

fn row_of<'a>(x: &Matrix<'a>, row: usize) -> &'a [f32] {
    x.row(row).expect("rows are contiguous")
}

/// `out = Σ_rows x`, for a row-major `x`.
pub(crate) fn sum_rows(x: Matrix, out: &mut [f32]) {
    sum_over_rows(x.shape()[0], out, &|rows, partial| {
        for row in rows {
            dispatch(Add(row_of(&x, row), partial));
        }
    });
}

/// Computes a row of `du` from `u` and `dy`, and adds it to a sum.
struct Row<'a, F>((&'a [f32], &'a [f32], &'a mut [f32], &'a mut [f32]), PhantomData<F>);

impl<F: Function> Kernel for Row<'_, F> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Row((u, dy, du, sum), _) = self;
        assert!(u.len() == dy.len() && u.len() == du.len() && u.len() == sum.len());
        let mut i = 0;
        while i < u.len() {
            let d = s.mul(F::slope(s, lanes::get(s, u, i)), lanes::get(s, dy, i));
            lanes::put(s, du, i, d);
            let total = s.add(lanes::get(s, sum, i), d);
            lanes::put(s, sum, i, total);
            i += S::LANES;
        }
    }
}

struct Add<'a>(&'a [f32], &'a mut [f32]);

impl Kernel for Add<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        lanes::add_to(s, self.1, self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{close, numeric, random, wave, wide};

    fn reference(x: &[f64], w: &[f64], b: &[f64], f: Activation, n: usize) -> Vec<f64> {
        let (i, o) = (x.len() / n, b.len());
        let sum = |r: usize, c: usize| (0..i).map(|k| x[r * i + k] * w[k * o + c]).sum::<f64>();
        let value = |at: usize| sum(at / o, at % o) + b[at % o];
        (0..n * o).map(|at| crate::ops::activation::truth(f, value(at))).collect()
    }

    fn check(n: usize, i: usize, o: usize, f: Activation, transposed: bool) {
        let (x, w, b, dy) = (random(1, n * i), random(2, i * o), random(3, o), wave(n * o));
        // The same weight as [out, in] memory.
        let wt: Vec<f32> = (0..i * o).map(|at| w[at % i * o + at / i]).collect();
        let weight = if transposed {
            Matrix::new(&wt, o, i).unwrap().t()
        } else {
            Matrix::new(&w, i, o).unwrap()
        };
        let layer = Linear { weight, bias: Some(&b), activation: f };
        let (mut y, mut pre) = (vec![0f32; n * o], vec![0f32; n * o]);
        let mx = Matrix::new(&x, n, i).unwrap();
        let keep = Some(MatrixMut::new(&mut pre, n, o).unwrap());
        layer.forward(mx, MatrixMut::new(&mut y, n, o).unwrap(), keep).unwrap();
        let [x64, w64, b64] = [&x, &w, &b].map(|v| wide(v));
        let case = format!("{n} {i} {o} {f:?}");
        close(&case, &y, &reference(&x64, &w64, &b64, f, n), 2e-5);

        let (mut dx, mut dw, mut db) = (vec![0f32; n * i], vec![0f32; i * o], vec![0f32; o]);
        let dw_view = if transposed {
            MatrixMut::new(&mut dw, o, i).unwrap().t()
        } else {
            MatrixMut::new(&mut dw, i, o).unwrap()
        };
        let to = LinearGradients {
            x: Some(MatrixMut::new(&mut dx, n, i).unwrap()),
            weight: Some(dw_view),
            bias: Some(&mut db),
        };
        let saved = SavedLinear { x: mx, pre: Some(Matrix::new(&pre, n, o).unwrap()) };
        layer.backward(saved, Matrix::new(&dy, n, o).unwrap(), to).unwrap();
        if transposed {
            dw = (0..i * o).map(|at| dw[at % o * i + at / o]).collect();
        }
        close(&case, &dx, &numeric(&x64, &dy, |v| reference(v, &w64, &b64, f, n)), 2e-4);
        close(&case, &dw, &numeric(&w64, &dy, |v| reference(&x64, v, &b64, f, n)), 2e-4);
        close(&case, &db, &numeric(&b64, &dy, |v| reference(&x64, &w64, v, f, n)), 2e-4);
    }

    #[test]
    fn forward_and_backward_agree_with_double_precision() {
        for (n, i, o) in [(1, 1, 1), (3, 7, 16), (17, 5, 33), (1, 16, 7), (40, 3, 2)] {
            for f in Activation::ALL.into_iter().filter(|f| *f != Activation::Relu) {
                check(n, i, o, f, false);
                check(n, i, o, f, true);
            }
        }
    }

    #[test]
    fn shapes_that_do_not_fit_are_told() {
        let data = [0f32; 12];
        let m = |r, c| Matrix::new(&data[..r * c], r, c).unwrap();
        let layer = Linear { weight: m(3, 4), bias: None, activation: Activation::Gelu };
        let saved = SavedLinear { x: m(2, 3), pre: None };
        let error = layer.backward(saved, m(2, 4), LinearGradients::default()).unwrap_err();
        assert!(error.0.contains("pre"), "{error}");
        assert!(layer.backward(saved, m(3, 4), LinearGradients::default()).is_err());
    }
}
