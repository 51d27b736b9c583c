//! One pass over a row of logits: the sum of their exponentials, and the top `k`.
//!
//! The row is read once, a block at a time: first the block's maximum, then, while it is in the
//! first-level cache, its sum, and only if the maximum could be among the top `k`, its candidates.
//! A NaN counts as −∞, and +∞ as the largest float, so that callers need not handle them. It is for
//! decoding, which has no gradient.

use super::lanes::{get, get_or, put};
use crate::simd::{Kernel, Simd, dispatch, exp_nonpositive};

/// Logits per block: 2 KiB.
const BLOCK: usize = 512;
/// Logits that are checked individually if one of them is among the top `k`.
const FEW: usize = 64;
/// Vectors in flight, so that one need not wait for the previous one.
const AT_ONCE: usize = 4;

/// Maximum, sum of exponentials and top `k` of a row.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    /// Largest logit; −∞ if there is none.
    pub largest: f32,
    /// `Σ e^{x − largest}`; 0 if there is no logit above −∞.
    pub sum: f64,
    /// The `k` largest logits above −∞ with their indices, unordered; of equal logits those with
    /// the lowest index.
    pub top: Vec<(f32, u32)>,
}

impl Scan {
    /// Scans a row of logits and keeps its `k` largest.
    ///
    /// # Shapes
    /// `row: [V]`
    pub fn row(&mut self, row: &[f32], k: usize) {
        dispatch(Pass { row, k, into: self });
    }
}

/// Replaces each `x` by `e^{x − largest}`, NaN by 0.
///
/// # Shapes
/// `x: [V]`, none above `largest`.
pub fn exponentials(x: &mut [f32], largest: f32) {
    dispatch(Exponentials { x, largest });
}

/// Returns whether every value is below +∞, and none is NaN.
pub fn all_below_infinity(x: &[f32]) -> bool {
    dispatch(Below(x))
}

struct Below<'a>(&'a [f32]);

impl Kernel for Below<'_> {
    type Out = bool;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> bool {
        // Several at once, and one decision for each block.
        self.0.chunks(BLOCK).all(|block| {
            let bound = s.splat(f32::INFINITY);
            let mut fine = [s.lt(s.splat(0.0), bound); AT_ONCE];
            for chunk in block.chunks(AT_ONCE * S::LANES) {
                for (i, fine) in (0..chunk.len()).step_by(S::LANES).zip(&mut fine) {
                    *fine = s.both(*fine, s.lt(get(s, chunk, i), bound));
                }
            }
            let one = |fine| s.select(fine, s.splat(0.0), s.splat(1.0));
            let mut bad = s.splat(0.0);
            for fine in fine {
                bad = s.add(bad, one(fine));
            }
            s.largest(bad) == 0.0
        })
    }
}

struct Exponentials<'a> {
    x: &'a mut [f32],
    largest: f32,
}

impl Kernel for Exponentials<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let largest = s.splat(self.largest);
        for i in (0..self.x.len()).step_by(S::LANES) {
            let e = exp_below(s, get(s, self.x, i), largest);
            put(s, self.x, i, e);
        }
    }
}

struct Pass<'a> {
    row: &'a [f32],
    k: usize,
    into: &'a mut Scan,
}

impl Kernel for Pass<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Pass { row, k, into } = self;
        let (mut largest, mut sum) = (f32::NEG_INFINITY, 0f64);
        let mut best = Best { k, top: &mut into.top, bar: f32::NEG_INFINITY };
        best.top.clear();
        for (number, block) in row.chunks(BLOCK).enumerate() {
            let peak = peak_of(s, block);
            if peak == f32::NEG_INFINITY {
                continue;
            }
            if peak > largest {
                sum *= f64::from(largest - peak).exp();
                largest = peak;
            }
            sum += sum_of(s, block, largest);
            if peak > best.bar {
                best.look(s, block, number * BLOCK);
            }
        }
        best.cut();
        into.largest = largest;
        into.sum = sum;
    }
}

/// Replaces +∞ by the largest float. NaN is unchanged.
#[inline(always)]
fn tame(x: f32) -> f32 {
    if x > f32::MAX { f32::MAX } else { x }
}

/// The maximum of a block.
#[inline(always)]
fn peak_of<S: Simd>(s: S, block: &[f32]) -> f32 {
    let mut peaks = [s.splat(f32::NEG_INFINITY); AT_ONCE];
    for chunk in block.chunks(AT_ONCE * S::LANES) {
        for (i, peak) in (0..chunk.len()).step_by(S::LANES).zip(&mut peaks) {
            // If one operand is NaN, `max` returns the second: never the NaN.
            *peak = s.max(get_or(s, chunk, i, f32::NEG_INFINITY), *peak);
        }
    }
    tame(s.largest(peaks.into_iter().fold(peaks[0], |a, b| s.max(a, b))))
}

/// `Σ e^{x − largest}` over a block.
#[inline(always)]
fn sum_of<S: Simd>(s: S, block: &[f32], largest: f32) -> f64 {
    let largest = s.splat(largest);
    let mut sums = [s.splat(0.0); AT_ONCE];
    for chunk in block.chunks(AT_ONCE * S::LANES) {
        for (i, sum) in (0..chunk.len()).step_by(S::LANES).zip(&mut sums) {
            let x = get_or(s, chunk, i, f32::NEG_INFINITY);
            *sum = s.add(*sum, exp_below(s, x, largest));
        }
    }
    // In double precision from here on: rounding errors here would affect every probability of the
    // row.
    let mut lanes = [0f32; 16];
    let mut total = 0.0;
    for sum in sums {
        put(s, &mut lanes[..S::LANES], 0, sum);
        total += lanes[..S::LANES].iter().map(|x| f64::from(*x)).sum::<f64>();
    }
    total
}

/// `e^{x − largest}`, 0 for a NaN.
#[inline(always)]
fn exp_below<S: Simd>(s: S, x: S::V, largest: S::V) -> S::V {
    // Far below all arguments whose exponential is not 0.
    const NOTHING: f32 = -200.0;
    let x = s.sub(s.min(s.splat(f32::MAX), x), largest);
    exp_nonpositive(s, s.max(x, s.splat(NOTHING)))
}

/// The top `k` so far. More than `k` are collected before they are pruned, so that most candidates
/// cost one comparison and one write.
struct Best<'a> {
    k: usize,
    top: &'a mut Vec<(f32, u32)>,
    /// The smallest of the top `k`, once there are `k`: later equal logits are not taken.
    bar: f32,
}

impl Best<'_> {
    /// Takes the logits above the bar. Most of a block is not, so that checking the maximum of a
    /// group saves checking each: 36 instead of 42 µs for a row of 32,000 and its top 8.
    #[inline(always)]
    fn look<S: Simd>(&mut self, s: S, block: &[f32], start: usize) {
        for (number, few) in block.chunks(FEW).enumerate() {
            if peak_of(s, few) > self.bar {
                for (i, x) in few.iter().enumerate() {
                    if tame(*x) > self.bar {
                        self.add(tame(*x), (start + number * FEW + i) as u32);
                    }
                }
            }
        }
    }

    fn add(&mut self, logit: f32, place: u32) {
        self.top.push((logit, place));
        if self.top.len() >= self.k.saturating_mul(4).max(64) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        if self.k == 0 {
            self.top.clear();
            self.bar = f32::INFINITY;
        } else if self.top.len() >= self.k {
            let (_, last, _) = self
                .top
                .select_nth_unstable_by(self.k - 1, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            self.bar = last.0;
            self.top.truncate(self.k);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;
    use crate::simd::{Isa, dispatch_on};

    #[test]
    fn a_value_that_is_not_below_infinity_is_found_anywhere() {
        for isa in Isa::ALL.into_iter().filter(|isa| isa.available()) {
            for len in [0, 1, 15, 16, 17, 511, 512, 513, 1300] {
                let mut x = vec![f32::NEG_INFINITY; len];
                assert!(dispatch_on(isa, Below(&x)), "{len}");
                for at in (0..len).step_by(7).chain(len.checked_sub(1)) {
                    for bad in [f32::NAN, f32::INFINITY] {
                        x[at] = bad;
                        assert!(!dispatch_on(isa, Below(&x)), "{bad} at {at} of {len}");
                    }
                    x[at] = f32::MAX;
                }
            }
        }
    }

    /// Reference: everything sorted, in double precision.
    fn reference(row: &[f32], k: usize) -> (f64, Vec<(f32, u32)>) {
        let seen = row.iter().map(|x| tame(*x)).zip(0u32..);
        let mut all: Vec<(f32, u32)> = seen.filter(|x| x.0 > f32::NEG_INFINITY).collect();
        all.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let largest = all.first().map_or(0.0, |x| f64::from(x.0));
        let sum = all.iter().map(|x| (f64::from(x.0) - largest).exp()).sum();
        all.truncate(k);
        (sum, all)
    }

    fn check(row: &[f32], k: usize) {
        let (sum, top) = reference(row, k);
        for isa in Isa::ALL.into_iter().filter(|isa| isa.available()) {
            let mut got = Scan::default();
            dispatch_on(isa, Pass { row, k, into: &mut got });
            got.top.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            let (v, name) = (row.len(), isa.name());
            assert_eq!(got.top, top, "{name}: V = {v}, k = {k}");
            assert!((got.sum - sum).abs() <= 1e-6 * sum, "{name}: V = {v}: {} for {sum}", got.sum);
        }
    }

    #[test]
    fn equals_sorting_in_double_precision() {
        for v in [1, 5, 16, 17, 511, 512, 513, 4000, 33_000] {
            let stream = Stream::new(v as u64, 0, 0);
            for scale in [0.1, 1.0, 8.0, 60.0] {
                // Integers have many ties.
                let smooth: Vec<f32> = (0..v).map(|i| stream.normal(i as u64) * scale).collect();
                let coarse: Vec<f32> = smooth.iter().map(|x| x.round()).collect();
                let rising: Vec<f32> = (0..v).map(|i| i as f32 * scale * 0.01).collect();
                for k in [0, 1, 2, 8, 50, v] {
                    check(&smooth, k);
                    check(&coarse, k);
                    check(&rising, k);
                }
            }
        }
    }

    #[test]
    fn what_is_not_finite_does_no_harm() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        let rows: [&[f32]; 8] = [
            &[],
            &[nan, nan],
            &[-inf; 700],
            &[nan, 1.0, -inf, 2.0],
            &[inf, 1.0, inf],
            &[f32::MAX, -f32::MAX, 0.0],
            &[-inf, -f32::MAX],
            &[nan, inf],
        ];
        for row in rows {
            check(row, 3);
        }
    }

    #[test]
    fn exponentials_are_those_of_the_library() {
        let below: Vec<f32> = (0..=870_000).map(|i| i as f32 * -1e-4).collect();
        for isa in Isa::ALL.into_iter().filter(|isa| isa.available()) {
            let mut got: Vec<f32> = below.iter().map(|x| x + 3.0).chain([f32::NAN]).collect();
            let from = got.clone();
            dispatch_on(isa, Exponentials { x: &mut got, largest: 3.0 });
            assert_eq!(got.pop(), Some(0.0));
            for (got, x) in got.iter().zip(from) {
                let want = f64::from(x - 3.0).exp();
                let got = f64::from(*got);
                assert!((got / want - 1.0).abs() < 2.4e-7, "{}: {got} for {want}", isa.name());
            }
        }
    }
}
