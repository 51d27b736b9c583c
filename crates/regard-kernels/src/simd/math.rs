//! Elementary functions on vectors. Each is tested against `f64` over its whole range.

use super::Simd;

/// `eˣ` to about one unit in the last place: exactly 1 at 0, exactly 0 below −87.33 (subnormal
/// results would cost a hundred cycles each), NaN for NaN.
///
/// `x = n·ln 2 + r` with `n` an integer and `|r| ≤ ln 2 / 2`; a polynomial of degree 6 with a
/// relative error of 1.9e-9 gives `eʳ`, and `2ⁿ` goes into the exponent.
#[inline(always)]
pub fn exp<S: Simd>(s: S, x: S::V) -> S::V {
    let x = s.min(s.splat(88.722), x);
    // At n = 128 the power of two alone would be infinite; one less, and twice the polynomial.
    exp_of(s, x, |n| s.min(s.splat(127.0), n))
}

/// `eˣ` for arguments that are not positive, as in a softmax.
#[inline(always)]
pub fn exp_nonpositive<S: Simd>(s: S, x: S::V) -> S::V {
    exp_of(s, x, |n| n)
}

#[inline(always)]
fn exp_of<S: Simd>(s: S, x: S::V, limit: impl Fn(S::V) -> S::V) -> S::V {
    const LN2_HIGH: f32 = 0.693_359_4; // 9 significant bits: n · LN2_HIGH is exact
    const LN2_LOW: f32 = -2.121_944_4e-4;
    const C: [f32; 5] = [0.001_383_684_6, 0.008_374_816, 0.041_668_225, 0.166_664_2, 0.499_999_9];
    const LEAST: f32 = -87.33;
    let nothing = s.lt(x, s.splat(LEAST));
    let x = s.max(s.splat(LEAST), x);
    let n = limit(s.round(s.mul(x, s.splat(std::f32::consts::LOG2_E))));
    let r = s.fnma(n, s.splat(LN2_HIGH), x);
    let r = s.fnma(n, s.splat(LN2_LOW), r);
    let mut p = s.splat(C[0]);
    for c in &C[1..] {
        p = s.fma(p, r, s.splat(*c));
    }
    p = s.fma(p, r, s.splat(1.0));
    p = s.fma(p, r, s.splat(1.0));
    s.select(nothing, s.splat(0.0), s.scale2(p, n))
}

/// `tanh x` to about two units in the last place.
#[inline(always)]
pub fn tanh<S: Simd>(s: S, x: S::V) -> S::V {
    // Near 0 the quotient below would cancel: x + x³·P(x²), relative error 3e-10 up to 0.65.
    const C: [f32; 6] = TANH_NEAR_ZERO;
    let x2 = s.mul(x, x);
    let mut p = s.splat(C[5]);
    for c in C[..5].iter().rev() {
        p = s.fma(p, x2, s.splat(*c));
    }
    let near = s.fma(s.mul(x2, p), x, x);
    // tanh|x| = 1 − 2/(e^{2|x|} + 1)
    let e = exp(s, s.mul(s.abs(x), s.splat(2.0)));
    let far = s.fnma(s.splat(2.0), s.recip(s.add(e, s.splat(1.0))), s.splat(1.0));
    let far = s.select(s.lt(x, s.splat(0.0)), s.sub(s.splat(0.0), far), far);
    // `le` is false for NaN: the near branch, which keeps it, must be the one taken.
    s.select(s.lt(s.splat(0.65), s.abs(x)), far, near)
}

const TANH_NEAR_ZERO: [f32; 6] =
    [-0.333_333_28, 0.133_331_52, -0.053_939_94, 0.021_663_403, -0.008_085_625, 0.002_059_58];

/// `1 / (1 + e⁻ˣ)`
#[inline(always)]
pub fn sigmoid<S: Simd>(s: S, x: S::V) -> S::V {
    let e = exp(s, s.sub(s.splat(0.0), x));
    s.div(s.splat(1.0), s.add(s.splat(1.0), e))
}

#[cfg(test)]
mod tests {
    use crate::simd::{Isa, Kernel, Simd, dispatch_on};

    struct Map<'a>(&'a [f32], fn(f64) -> f64, Function);
    #[derive(Clone, Copy)]
    enum Function {
        Exp,
        Tanh,
        Sigmoid,
    }

    /// The largest relative error over the points, in units of 2⁻²⁴.
    impl Kernel for Map<'_> {
        type Out = f64;
        #[inline(always)]
        fn run<S: Simd>(self, s: S) -> f64 {
            let mut worst = 0f64;
            for x in self.0 {
                let y = match self.2 {
                    Function::Exp => super::exp(s, s.splat(*x)),
                    Function::Tanh => super::tanh(s, s.splat(*x)),
                    Function::Sigmoid => super::sigmoid(s, s.splat(*x)),
                };
                let (y, want) = (f64::from(s.largest(y)), (self.1)(f64::from(*x)));
                // Subnormal results may be flushed to 0.
                if want.abs() > 1.3e-38 || y > want.abs() {
                    worst = worst.max((y - want).abs() / want.abs() * 16_777_216.0);
                }
            }
            worst
        }
    }

    #[test]
    fn elementary_functions_are_accurate_on_every_instruction_set() {
        let points: Vec<f32> = (-800_000..800_000).map(|i| i as f32 * 1.1e-4).collect();
        for isa in Isa::ALL.into_iter().filter(|i| i.available()) {
            let check = |function, truth: fn(f64) -> f64, limit: f64| {
                let worst = dispatch_on(isa, Map(&points, truth, function));
                assert!(worst < limit, "{}: {worst} units", isa.name());
            };
            check(Function::Exp, f64::exp, 3.0);
            check(Function::Tanh, f64::tanh, 4.0);
            check(Function::Sigmoid, |x| 1.0 / (1.0 + (-x).exp()), 4.0);
        }
    }

    struct Edge(f32);
    impl Kernel for Edge {
        type Out = f32;
        #[inline(always)]
        fn run<S: Simd>(self, s: S) -> f32 {
            let y = super::exp(s, s.splat(self.0));
            let mut out = [0f32; 16];
            // SAFETY: sixteen floats hold the widest vector.
            unsafe { s.store(out.as_mut_ptr(), y) };
            out[0]
        }
    }

    #[test]
    fn exp_at_its_edges() {
        for isa in Isa::ALL.into_iter().filter(|i| i.available()) {
            assert_eq!(dispatch_on(isa, Edge(f32::NEG_INFINITY)), 0.0, "{}", isa.name());
            assert_eq!(dispatch_on(isa, Edge(0.0)), 1.0, "{}", isa.name());
            assert_eq!(dispatch_on(isa, Edge(-200.0)), 0.0, "{}", isa.name());
            assert!(dispatch_on(isa, Edge(f32::NAN)).is_nan(), "{}", isa.name());
        }
    }
}
