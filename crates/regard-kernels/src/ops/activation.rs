//! Elementwise activation functions.
//!
//! | | `f(x)` | |
//! |---|---|---|
//! | [`Gelu`](Activation::Gelu) | `x·Φ(x)`, Φ the normal distribution | Hendrycks and Gimpel 2016 |
//! | [`GeluTanh`](Activation::GeluTanh) | `x·σ(2u)`, `u = √(2/π)·(x + 0.044715·x³)` | the same; GPT-2's |
//! | [`Silu`](Activation::Silu) | `x·σ(x)` | Elfwing et al. 2017 |
//! | [`Relu`](Activation::Relu) | `max(0, x)`, slope 0 at 0 | |
//! | [`Tanh`](Activation::Tanh) | `tanh x` | |
//! | [`Elu`](Activation::Elu) | `x` above 0, `e^x − 1` below | Clevert et al. 2016 |

use super::{PIECE, Parts, lanes};
use crate::pool::parallel_ranges;
use crate::simd::{Kernel, Simd, dispatch, exp, sigmoid, tanh};
use crate::view::{Error, bail};
use std::marker::PhantomData;

/// Elementwise activation function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Activation {
    /// `x`
    #[default]
    Identity,
    /// `x·Φ(x)`
    Gelu,
    /// `x·σ(2√(2/π)·(x + 0.044715·x³))`, which is `x/2·(1 + tanh(…))`
    GeluTanh,
    /// `max(0, x)`
    Relu,
    /// `x·σ(x)`
    Silu,
    /// `tanh x`
    Tanh,
    /// `x` above 0, `e^x − 1` below
    Elu,
}

/// An activation and its derivative on vectors.
pub(crate) trait Function: Copy + Send + Sync {
    /// `f(x)`
    fn value<S: Simd>(s: S, x: S::V) -> S::V;
    /// `f′(x)`
    fn slope<S: Simd>(s: S, x: S::V) -> S::V;
}

/// Declares a type for each function, and [`with_function`], which maps a value to its type.
macro_rules! functions {
    ($($name:ident: |$s:ident, $x:ident| $value:expr, $slope:expr;)*) => {
        $(
            #[derive(Clone, Copy)]
            pub(crate) struct $name;
            impl Function for $name {
                #[inline(always)]
                fn value<S: Simd>($s: S, $x: S::V) -> S::V {
                    let _ = ($s, $x);
                    $value
                }
                #[inline(always)]
                fn slope<S: Simd>($s: S, $x: S::V) -> S::V {
                    let _ = ($s, $x);
                    $slope
                }
            }
        )*

        /// Evaluates an expression with `F` bound to the activation's type.
        macro_rules! with_function {
            ($activation:expr, $f:ident => $e:expr) => {
                match $activation {
                    $($crate::ops::activation::Activation::$name => {
                        type $f = $crate::ops::activation::$name;
                        $e
                    })*
                }
            };
        }
        pub(crate) use with_function;
    };
}

functions! {
    Identity: |s, x| x, s.splat(1.0);
    Gelu: |s, x| s.mul(x, normal(s, x).0), {
        // f = x·Φ, so f′ = Φ + x·Φ′ with Φ′ = e^{−x²/2}/√(2π)
        let (phi, bell) = normal(s, x);
        s.fma(s.mul(x, s.splat(0.398_942_3)), bell, phi)
    };
    GeluTanh: |s, x| s.mul(x, sigmoid(s, cubic(s, x))), {
        // f = x·σ(g), so f′ = σ + x·g′·σ·(1 − σ); beyond ±20 σ is 0 or 1 and g′ would overflow
        let y = sigmoid(s, cubic(s, x));
        let x = s.max(s.splat(-20.0), s.min(s.splat(20.0), x));
        let g = s.fma(s.mul(x, x), s.splat(3.0 * CUBIC[1]), s.splat(CUBIC[0]));
        s.fma(s.mul(s.mul(x, g), y), s.sub(s.splat(1.0), y), y)
    };
    Relu: |s, x| s.max(s.splat(0.0), x),
        s.select(s.lt(s.splat(0.0), x), s.splat(1.0), s.splat(0.0));
    Silu: |s, x| s.mul(x, sigmoid(s, x)), {
        // f = x·σ, so f′ = σ + x·σ·(1 − σ); clamped, so that 0 is not multiplied by infinity
        let y = sigmoid(s, x);
        let x = s.max(s.splat(-100.0), s.min(s.splat(100.0), x));
        s.fma(s.mul(x, y), s.sub(s.splat(1.0), y), y)
    };
    Tanh: |s, x| tanh(s, x), {
        let y = tanh(s, x);
        s.fnma(y, y, s.splat(1.0))
    };
    Elu: |s, x| {
        // The exponential is taken of the smaller of x and 0, so that it cannot overflow.
        let below = s.sub(exp(s, s.min(s.splat(0.0), x)), s.splat(1.0));
        s.select(s.lt(s.splat(0.0), x), x, below)
    }, exp(s, s.min(s.splat(0.0), x));
}

/// `2√(2/π)·(x + 0.044715·x³)`: the factors of `x` and `x³`.
const CUBIC: [f32; 2] = [1.595_769, 0.071_354_81];

#[inline(always)]
fn cubic<S: Simd>(s: S, x: S::V) -> S::V {
    s.mul(x, s.fma(s.mul(x, x), s.splat(CUBIC[1]), s.splat(CUBIC[0])))
}

/// The normal cumulative distribution `Φ(x)` and `e^{−x²/2}`, both to about 1e-7.
///
/// For `x ≥ 0`, `1 − Φ(x) = e^{−x²/2}·P(q)` with `q = (x − 3)/(x + 3)`, which maps all `x ≥ 0` into
/// −1..1 (the substitution of Shepherd and Laframboise 1981); `P` of degree 8, fitted with the
/// weight `e^{−x²/2}`, has an absolute error of at most 4.3e-9.
#[inline(always)]
fn normal<S: Simd>(s: S, x: S::V) -> (S::V, S::V) {
    let bell = exp(s, s.mul(s.mul(x, x), s.splat(-0.5)));
    let a = s.abs(x);
    let q = s.div(s.sub(a, s.splat(3.0)), s.add(a, s.splat(3.0)));
    let mut p = s.splat(TAIL[8]);
    for c in TAIL[..8].iter().rev() {
        p = s.fma(p, q, s.splat(*c));
    }
    let tail = s.mul(bell, p);
    let phi = s.select(s.lt(x, s.splat(0.0)), tail, s.sub(s.splat(1.0), tail));
    (phi, bell)
}

const TAIL: [f32; 9] = [
    0.121_514_02,
    -0.206_402_24,
    0.123_222_87,
    -0.046_224_68,
    0.006_134_068_6,
    0.002_967_089,
    -0.000_926_533_9,
    -0.000_415_628_72,
    -1.988_953e-5,
];

impl Activation {
    /// All activation functions.
    pub const ALL: [Activation; 7] = [
        Activation::Identity,
        Activation::Gelu,
        Activation::GeluTanh,
        Activation::Relu,
        Activation::Silu,
        Activation::Tanh,
        Activation::Elu,
    ];

    /// Computes `y = f(x)`.
    ///
    /// # Errors
    /// If `y` does not have the length of `x`.
    pub fn forward(self, x: &[f32], y: &mut [f32]) -> Result<(), Error> {
        if x.len() != y.len() {
            bail!("activation: the output has {} floats, the input {}", y.len(), x.len());
        }
        let out = Parts::new(y);
        parallel_ranges(x.len(), PIECE, &|from, to| {
            // SAFETY: pieces do not overlap.
            let y = unsafe { out.slice(from, to) };
            with_function!(self, F => dispatch(Values::<F> { x: &x[from..to], y, f: PhantomData }));
        });
        Ok(())
    }

    /// Computes `dx = dy·f′(x)`, from `y = f(x)`.
    ///
    /// # Errors
    /// If the lengths differ.
    pub fn backward(self, x: &[f32], dy: &[f32], dx: &mut [f32]) -> Result<(), Error> {
        if x.len() != dx.len() || x.len() != dy.len() {
            let (dy, dx) = (dy.len(), dx.len());
            bail!("activation: x has {} floats, dy {dy}, dx {dx}: all must be equal", x.len());
        }
        let out = Parts::new(dx);
        parallel_ranges(x.len(), PIECE, &|from, to| {
            // SAFETY: pieces do not overlap.
            let dx = unsafe { out.slice(from, to) };
            let (x, dy) = (&x[from..to], &dy[from..to]);
            with_function!(self, F => dispatch(Slopes::<F> { x, dy, dx, f: PhantomData }));
        });
        Ok(())
    }
}

struct Values<'a, F> {
    x: &'a [f32],
    y: &'a mut [f32],
    f: PhantomData<F>,
}

impl<F: Function> Kernel for Values<'_, F> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Values { x, y, f: _ } = self;
        assert_eq!(x.len(), y.len());
        let mut i = 0;
        while i < x.len() {
            let v = F::value(s, lanes::get(s, x, i));
            lanes::put(s, y, i, v);
            i += S::LANES;
        }
    }
}

/// `dx = dy·f′(x)` over a range.
struct Slopes<'a, F> {
    x: &'a [f32],
    dy: &'a [f32],
    dx: &'a mut [f32],
    f: PhantomData<F>,
}

impl<F: Function> Kernel for Slopes<'_, F> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Slopes { x, dy, dx, f: _ } = self;
        assert!(x.len() == dy.len() && x.len() == dx.len());
        let mut i = 0;
        while i < x.len() {
            let slope = F::slope(s, lanes::get(s, x, i));
            let d = s.mul(slope, lanes::get(s, dy, i));
            lanes::put(s, dx, i, d);
            i += S::LANES;
        }
    }
}

/// Reference in double precision.
#[cfg(test)]
pub(crate) fn truth(f: Activation, x: f64) -> f64 {
    match f {
        Activation::Identity => x,
        Activation::Gelu => x * 0.5 * erfc(-x / std::f64::consts::SQRT_2),
        Activation::GeluTanh => {
            let u = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
            0.5 * x * (1.0 + u.tanh())
        }
        Activation::Relu => x.max(0.0),
        Activation::Silu => x / (1.0 + (-x).exp()),
        Activation::Tanh => x.tanh(),
        Activation::Elu => {
            if x > 0.0 {
                x
            } else {
                x.exp_m1()
            }
        }
    }
}

/// By its series near zero and its continued fraction elsewhere.
#[cfg(test)]
fn erfc(x: f64) -> f64 {
    if x < 0.0 {
        return 2.0 - erfc(-x);
    }
    if x < 2.5 {
        let (mut term, mut sum) = (x, x);
        for n in 1..200 {
            term *= -x * x / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        return 1.0 - sum * 2.0 / std::f64::consts::PI.sqrt();
    }
    let fraction = (1..80).rev().fold(x, |f, k| x + f64::from(k) / 2.0 / f);
    (-x * x).exp() / (fraction * std::f64::consts::PI.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_slopes_agree_with_double_precision() {
        let x: Vec<f32> = (-120_001..120_001).map(|i| i as f32 * 1e-4).collect();
        let mut y = vec![0f32; x.len()];
        let mut dx = vec![0f32; x.len()];
        let dy: Vec<f32> = x.iter().map(|x| 1.0 + 0.5 * x.sin()).collect();
        for f in Activation::ALL {
            f.forward(&x, &mut y).unwrap();
            f.backward(&x, &dy, &mut dx).unwrap();
            for i in 0..x.len() {
                let at = f64::from(x[i]);
                let want = truth(f, at);
                let limit = 2e-7 * at.abs().max(1.0);
                assert!((f64::from(y[i]) - want).abs() < limit, "{f:?}({at}): {} {want}", y[i]);
                let h = 1e-5;
                let kink = f == Activation::Relu && at.abs() < 1e-3;
                // The derivative has a kink there, so its difference quotient is off by h/4.
                if kink || f == Activation::Elu && at.abs() < h {
                    continue;
                }
                let slope = (truth(f, at + h) - truth(f, at - h)) / (2.0 * h) * f64::from(dy[i]);
                let error = (f64::from(dx[i]) - slope).abs();
                assert!(error < 2e-6, "{f:?}'({at}): {} {slope}", dx[i]);
            }
        }
    }

    #[test]
    fn far_out_there_is_no_nan_and_nan_stays() {
        for f in Activation::ALL {
            let x = [-1e30, -1e4, 1e4, 1e30, f32::NAN];
            let (mut y, mut dx) = ([0f32; 5], [0f32; 5]);
            f.forward(&x, &mut y).unwrap();
            f.backward(&x, &[1.0; 5], &mut dx).unwrap();
            assert!(y[..4].iter().chain(&dx[..4]).all(|v| !v.is_nan()), "{f:?} {y:?} {dx:?}");
            assert!(y[4].is_nan(), "{f:?}");
        }
    }
}
