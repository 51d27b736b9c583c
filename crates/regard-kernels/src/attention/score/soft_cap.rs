//! Dot products with a soft limit (Gemma 2): `s = cap · tanh(scale · (q·k) / cap)`.

use super::*;
use crate::attention::formula::number;
use crate::gemm::micro::Product;
use crate::simd::{Kernel, Simd, dispatch, tanh};

pub(super) const ROW: Row<dyn Score> = Row {
    about: Variant {
        name: "soft_cap",
        params: &[],
        settings: &[Setting::Number("cap", 50.0)],
        formula: "cap · tanh(scale · (q · k) / cap), scale = 1/√D unless given",
        paper: "Gemma Team 2024, arXiv:2408.00118",
    },
    new: |settings| match settings.of("cap") {
        cap if cap > 0.0 && cap.is_finite() => Ok(Arc::new(SoftCap { cap })),
        cap => bail!("cap: got {cap}, need a positive number"),
    },
    trials: &[&[], &[("cap", 1.5)]],
};

/// Score `s = cap · tanh(scale · (q·k) / cap)`, which stays within ±cap.
#[derive(Clone, Copy, Debug)]
pub struct SoftCap {
    /// Limit of the scores.
    pub cap: f32,
}

impl Score for SoftCap {
    fn default_scale(&self, dims: &Dims) -> f32 {
        Dot.default_scale(dims)
    }
    fn formula(&self) -> Option<Expr> {
        let cap = f64::from(self.cap);
        Some(number(cap) * (Dot.formula()? * number(1.0 / cap)).tanh())
    }
}

impl Lower for SoftCap {
    fn lower<'a>(&'a self, _: &'a Grid, x: ScoreOperands<'a>, scale: f32) -> Lowered<'a> {
        let (q, k) = (Operand::Given(x.q), Operand::Given(x.k));
        let map: Option<Box<dyn Map>> = Some(Box::new(*self));
        Lowered { pair: Box::new(Product), q, k, scale, weights: vec![], map, terms: vec![] }
    }
}

impl Map for SoftCap {
    fn apply(&self, _: &At, tile: &mut Tile) {
        let n = tile.keys * tile.lanes;
        dispatch(Cap { cap: self.cap, scores: &mut tile.data[..n] });
    }

    fn gradient(&self, _: &At, before: &Tile, ds: &mut Tile, _: &mut f32) {
        let n = ds.keys * ds.lanes;
        dispatch(Slope { cap: self.cap, scores: &before.data[..n], ds: &mut ds.data[..n] });
    }
}

/// `s ← cap · tanh(s/cap)`
struct Cap<'a> {
    cap: f32,
    /// Whole vectors.
    scores: &'a mut [f32],
}

impl Kernel for Cap<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let (cap, by) = (s.splat(self.cap), s.splat(1.0 / self.cap));
        let lowest = s.splat(f32::NEG_INFINITY);
        for at in (0..self.scores.len()).step_by(S::LANES) {
            let p = self.scores[at..at + S::LANES].as_mut_ptr();
            // SAFETY: a whole vector from `at` on was just sliced.
            unsafe {
                let x = s.load(p);
                let y = s.mul(cap, tanh(s, s.mul(x, by)));
                // −∞ marks a cell without a key. (A NaN is not above it, and stays NaN.)
                let above = s.lt(lowest, x);
                s.store(p, s.select(above, y, x));
            }
        }
    }
}

/// `ds ← ds · (1 − tanh²(s/cap))`
struct Slope<'a> {
    cap: f32,
    /// Scores before the limit, whole vectors.
    scores: &'a [f32],
    ds: &'a mut [f32],
}

impl Kernel for Slope<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let (by, one, zero) = (s.splat(1.0 / self.cap), s.splat(1.0), s.splat(0.0));
        for at in (0..self.ds.len()).step_by(S::LANES) {
            let p = self.ds[at..at + S::LANES].as_mut_ptr();
            // SAFETY: whole vectors from `at` on were just sliced.
            unsafe {
                let t = tanh(s, s.mul(s.load(self.scores[at..at + S::LANES].as_ptr()), by));
                let ds = s.load(p);
                // forward: y = cap · tanh(s/cap)
                let slope = s.mul(ds, s.fnma(t, t, one));
                // A masked cell has no gradient, whatever its score.
                s.store(p, s.select(s.lt(zero, s.abs(ds)), slope, ds));
            }
        }
    }
}
