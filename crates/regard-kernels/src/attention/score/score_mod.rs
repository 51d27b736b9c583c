//! Custom score: a function of the dot product and the position, with its derivative.

use super::*;
use crate::attention::tile::each_cell;
use crate::gemm::micro::Product;
use std::sync::Arc;

pub(super) const ROW: Row<dyn Score> = Row {
    about: Variant {
        name: "score_mod",
        params: &[("apply", "fn(score, cell)"), ("derivative", "fn(score, cell)")],
        settings: &[],
        formula: "f(scale · (q · k), b, h, p, j), scale = 1/√D unless given",
        paper: "He et al. 2024 (FlexAttention), arXiv:2412.05496",
    },
    new: |_| bail!("`score_mod` is a custom function, available in Rust only"),
    trials: &[],
};

/// Location of a score in the score matrices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoreCell {
    /// Batch row.
    pub b: usize,
    /// Query head.
    pub h: usize,
    /// Position of the query among the keys.
    pub position: f32,
    /// Index of the key.
    pub key: usize,
}

/// Custom function of a score and its location, with its derivative by the score.
///
/// This trait is open to custom implementations. [`check_derivative`] compares the derivative with
/// finite differences of the function.
///
/// ```
/// use regard_kernels::attention::score::{ScoreCell, Modified, ScoreMod, check_derivative};
/// use regard_kernels::attention::{Attention, AttentionInputs};
/// use regard_kernels::view::{View, ViewMut};
/// use std::sync::Arc;
///
/// /// Soft-capped scores, as in Gemma 2: `cap · tanh(s / cap)`.
/// #[derive(Debug)]
/// struct SoftCap {
///     cap: f32,
/// }
///
/// impl ScoreMod for SoftCap {
///     fn apply(&self, score: f32, _: ScoreCell) -> f32 {
///         self.cap * (score / self.cap).tanh()
///     }
///     fn derivative(&self, score: f32, _: ScoreCell) -> f32 {
///         1.0 - (score / self.cap).tanh().powi(2)
///     }
/// }
///
/// check_derivative(&SoftCap { cap: 2.0 }).unwrap();
///
/// let (b, h, t, d) = (1, 2, 5, 4);
/// let x: Vec<f32> = (0..b * h * t * d).map(|i| (i as f32).sin()).collect();
/// let x = View::new(&x, [b, h, t, d]).unwrap();
/// let mut out = vec![0.0; b * h * t * d];
/// let attention = Attention::with_score(Modified(Arc::new(SoftCap { cap: 2.0 })));
/// let room = ViewMut::new(&mut out, [b, h, t, d]).unwrap();
/// attention.forward(&AttentionInputs::new(x, x, x), &room).unwrap();
/// ```
pub trait ScoreMod: Send + Sync + std::fmt::Debug {
    /// Returns the new score.
    fn apply(&self, score: f32, cell: ScoreCell) -> f32;
    /// Returns the derivative of [`Self::apply`] by `score`.
    fn derivative(&self, score: f32, cell: ScoreCell) -> f32;

    /// Returns the function as a formula of the scores, `[B, H, T, S, 1]`, if it can be expressed
    /// as one. Devices without kernels then evaluate it themselves; otherwise it is computed on the
    /// CPU, with copies there and back.
    fn formula(&self, _score: Expr) -> Option<Expr> {
        None
    }
}

/// Score `s = f(scale · (q · k), cell)`.
#[derive(Clone, Debug)]
pub struct Modified(pub Arc<dyn ScoreMod>);

impl Score for Modified {
    fn default_scale(&self, dims: &Dims) -> f32 {
        Dot.default_scale(dims)
    }
    fn formula(&self) -> Option<Expr> {
        self.0.formula(Dot.formula()?)
    }
}

impl Lower for Modified {
    fn lower<'a>(&'a self, _: &'a Grid, x: ScoreOperands<'a>, scale: f32) -> Lowered<'a> {
        let (q, k) = (Operand::Given(x.q), Operand::Given(x.k));
        let map: Option<Box<dyn Map>> = Some(Box::new(Apply(self.0.clone())));
        Lowered { pair: Box::new(Product), q, k, scale, weights: vec![], map, terms: vec![] }
    }
}

/// Compares [`ScoreMod::derivative`] with finite differences of [`ScoreMod::apply`], for scores
/// from −77 to 77 at several locations. Where the function has a kink, the derivative must lie
/// between the slopes on either side. Scores that become −∞ count as masked and have no derivative.
///
/// # Errors
/// If they disagree; the message gives the location.
///
/// ```
/// use regard_kernels::attention::score::{ScoreCell, ScoreMod, check_derivative};
///
/// #[derive(Debug)]
/// struct Squared;
/// impl ScoreMod for Squared {
///     fn apply(&self, score: f32, _: ScoreCell) -> f32 {
///         score * score
///     }
///     fn derivative(&self, score: f32, _: ScoreCell) -> f32 {
///         score // 2 · score would be right
///     }
/// }
/// assert!(check_derivative(&Squared).unwrap_err().to_string().contains("derivative"));
/// ```
pub fn check_derivative(f: &dyn ScoreMod) -> Result<(), Error> {
    let sizes = [0.0, 0.05, 0.17, 0.43, 0.9, 1.7, 3.1, 5.3, 8.7, 14.0, 23.0, 41.0, 77.0];
    let places =
        [(0, 0, 0.0, 0), (0, 1, 5.0, 3), (1, 3, 17.0, 12), (2, 0, 2.5, 40), (0, 7, 90.0, 90)];
    for (b, h, position, key) in places {
        let cell = ScoreCell { b, h, position, key };
        for score in sizes.iter().flat_map(|size| [*size, -size]) {
            check_at(f, score, cell)?;
        }
    }
    Ok(())
}

fn check_at(f: &dyn ScoreMod, score: f32, cell: ScoreCell) -> Result<(), Error> {
    // Rounding errors are divided by the step, curvature is multiplied by it: a compromise.
    let step = score.abs().max(1.0) / 1024.0;
    let (below, above) = (score - step, score + step);
    let values = [below, score, above].map(|score| f.apply(score, cell));
    if values.contains(&f32::NEG_INFINITY) {
        return Ok(());
    }
    if let Some(bad) = values.iter().find(|value| !value.is_finite()) {
        bail!("apply near score {score}, {cell:?}: got {bad}, need a finite number or −∞");
    }
    let got = f64::from(f.derivative(score, cell));
    let [y0, y1, y2] = values.map(f64::from);
    let [x0, x1, x2] = [below, score, above].map(f64::from);
    let (left, right) = ((y1 - y0) / (x1 - x0), (y2 - y1) / (x2 - x1));
    let largest = y0.abs().max(y1.abs()).max(y2.abs());
    let rounding = 4.0 * f64::from(f32::EPSILON) * largest / f64::from(step);
    let tolerance = 2e-3 * (1.0 + left.abs().max(right.abs())) + rounding;
    if got >= left.min(right) - tolerance && got <= left.max(right) + tolerance {
        return Ok(());
    }
    bail!(
        "derivative at score {score}, {cell:?}: got {got}, but the function's slope is {left} to \
         the left and {right} to the right"
    )
}

struct Apply(Arc<dyn ScoreMod>);

fn cell(at: &At, query: usize, key: usize) -> ScoreCell {
    ScoreCell { b: at.b, h: at.h, position: at.grid.position(at.b, query), key }
}

impl Map for Apply {
    fn apply(&self, at: &At, tile: &mut Tile) {
        each_cell(at, tile, |s, i, j| *s = self.0.apply(*s, cell(at, i, j)));
    }
    fn gradient(&self, at: &At, before: &Tile, ds: &mut Tile, _: &mut f32) {
        let (lanes, keys) = (ds.lanes, at.keys);
        for row in 0..ds.keys {
            for lane in 0..ds.queries {
                let Some(key) = keys.key(row, lane) else { continue };
                let ds = &mut ds.data[row * lanes + lane];
                // A masked cell has no gradient, whatever the function returns for its score.
                if *ds != 0.0 {
                    let cell = cell(at, at.i0 + lane, key);
                    *ds *= self.0.derivative(before.data[row * lanes + lane], cell);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `apply`, `derivative`
    struct By(fn(f32, ScoreCell) -> f32, fn(f32, ScoreCell) -> f32);
    impl std::fmt::Debug for By {
        fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
            f.write_str("By")
        }
    }
    impl ScoreMod for By {
        fn apply(&self, score: f32, cell: ScoreCell) -> f32 {
            self.0(score, cell)
        }
        fn derivative(&self, score: f32, cell: ScoreCell) -> f32 {
            self.1(score, cell)
        }
    }

    #[test]
    fn derivatives_are_checked() {
        let right = [
            By(|s, _| s, |_, _| 1.0),
            By(|s, _| s * s * 0.5, |s, _| s),
            By(|s, _| 30.0 * (s / 30.0).tanh(), |s, _| 1.0 - (s / 30.0).tanh().powi(2)),
            By(|s, _| s.max(0.0), |s, _| f32::from(u8::from(s > 0.0))),
            By(|s, cell| s - cell.position, |_, _| 1.0),
            By(|s, _| if s > 1.0 { f32::NEG_INFINITY } else { s }, |_, _| 1.0),
        ];
        for (at, f) in right.iter().enumerate() {
            check_derivative(f).unwrap_or_else(|error| panic!("{at}: {error}"));
        }
        let wrong = [
            By(|s, _| s, |_, _| 1.01),
            By(|s, _| s * s * 0.5, |s, _| -s),
            // Only far from 0, and only for one head.
            By(|s, _| s.clamp(-50.0, 50.0), |_, _| 1.0),
            By(|s, cell| if cell.h == 7 { 2.0 * s } else { s }, |_, _| 1.0),
            By(|s, _| s, |_, _| f32::NAN),
            By(|s, _| s.sqrt(), |s, _| 0.5 / s.sqrt()),
        ];
        for (at, f) in wrong.iter().enumerate() {
            assert!(check_derivative(f).is_err(), "{at}");
        }
    }
}
