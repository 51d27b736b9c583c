//! One pass over the logits of a row: the sum of their exponentials, and the largest of them.
//!
//! The row is read once, a block at a time: its largest logit, then, while it is in the nearest
//! cache, its sum, and only if the largest could be among the best so far, those that are.
//! A NaN counts as −∞, and +∞ as the largest float, so that nothing behind this has to care.

use regard_kernels::simd::{Kernel, Simd, dispatch};

/// Logits in a block: 2 KiB.
const BLOCK: usize = 512;
/// Logits that are looked at one by one if one of them is among the best.
const FEW: usize = 64;
/// Accumulators; the widest vectors have as many lanes.
const LANES: usize = 16;

/// What is known of a row.
#[derive(Clone, Debug, Default)]
pub(super) struct Scan {
    /// The largest logit, −∞ if there is none.
    pub largest: f32,
    /// `Σ e^{x − largest}`, 0 if there is none.
    pub sum: f64,
    /// The `k` largest logits above −∞, in no order; of equal ones those with the lowest tokens.
    pub top: Vec<(f32, u32)>,
}

/// Looks at a row, and keeps its `k` largest logits.
pub(super) fn scan(row: &[f32], k: usize, into: &mut Scan) {
    dispatch(Pass { row, k, into });
}

struct Pass<'a> {
    row: &'a [f32],
    k: usize,
    into: &'a mut Scan,
}

impl Kernel for Pass<'_> {
    type Out = ();
    // The loops are plain ones: here they are compiled for the vectors that `S` stands for.
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Pass { row, k, into } = self;
        let (mut largest, mut sum) = (f32::NEG_INFINITY, 0f64);
        let mut best = Best { k, top: &mut into.top, bar: f32::NEG_INFINITY };
        best.top.clear();
        for (number, block) in row.chunks(BLOCK).enumerate() {
            let peak = peak_of(block);
            if peak == f32::NEG_INFINITY {
                continue;
            }
            if peak > largest {
                sum *= f64::from(largest - peak).exp();
                largest = peak;
            }
            sum += sum_of(block, largest);
            if peak > best.bar {
                best.look(block, number * BLOCK);
            }
        }
        best.cut();
        into.largest = largest;
        into.sum = sum;
    }
}

/// Not +∞. A NaN stays one.
#[inline(always)]
fn tame(x: f32) -> f32 {
    if x > f32::MAX { f32::MAX } else { x }
}

/// The largest of a block.
#[inline(always)]
fn peak_of(block: &[f32]) -> f32 {
    let mut peaks = [f32::NEG_INFINITY; LANES];
    let (whole, rest) = block.as_chunks::<LANES>();
    for x in whole {
        for i in 0..LANES {
            // A comparison with a NaN is false.
            peaks[i] = if x[i] > peaks[i] { x[i] } else { peaks[i] };
        }
    }
    let all = peaks.iter().chain(rest);
    tame(all.fold(f32::NEG_INFINITY, |a, b| if *b > a { *b } else { a }))
}

/// `Σ e^{x − largest}` over a block.
#[inline(always)]
fn sum_of(block: &[f32], largest: f32) -> f64 {
    let mut sums = [0f32; LANES];
    let (whole, rest) = block.as_chunks::<LANES>();
    for x in whole {
        for i in 0..LANES {
            sums[i] += exp_below_zero(tame(x[i]) - largest);
        }
    }
    // Apart from the accumulators, which an index that is not known would keep out of registers.
    let rest = rest.iter().map(|x| exp_below_zero(tame(*x) - largest));
    rest.chain(sums).map(f64::from).sum()
}

/// `e^x` for `x ≤ 0` to within 2 units in the last place; 1.2e-38 for NaN and all below −87.3.
///
/// `e^x = 2^n·e^r` with `n` the integer next to `x/ln 2`, and `e^r` by its series for
/// `|r| ≤ ln 2 / 2`, where what is left out is below 6e-9.
#[inline(always)]
pub(super) fn exp_below_zero(x: f32) -> f32 {
    const LOWEST: f32 = -87.336_55;
    // Adding it leaves an integer in the low bits of the sum.
    const ROUND: f32 = 12_582_912.0;
    let x = if x > LOWEST { x } else { LOWEST };
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    // ln 2 in two parts, the first with few bits, so that n times it is exact.
    let r = (x - n * 0.693_359_4) + n * 2.121_944_4e-4;
    let mut series = 1.0 / 5040.0;
    for factor in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        series = series * r + factor;
    }
    let power = f32::from_bits((shifted.to_bits() << 23).wrapping_add(0x3f80_0000));
    series * power
}

/// The best so far. More than `k` are collected before they are cut, so that most of those that
/// pass the bar cost one comparison and one write.
struct Best<'a> {
    k: usize,
    top: &'a mut Vec<(f32, u32)>,
    /// The smallest of the best, once there are `k`: what equals it comes too late.
    bar: f32,
}

impl Best<'_> {
    /// Takes what is above the bar. Most of a block is not, so that looking at the largest of some
    /// saves looking at each: 36 rather than 42 µs for a row of 32,000 and its best 8.
    #[inline(always)]
    fn look(&mut self, block: &[f32], start: usize) {
        for (number, few) in block.chunks(FEW).enumerate() {
            if peak_of(few) > self.bar {
                for (i, x) in few.iter().enumerate() {
                    if tame(*x) > self.bar {
                        self.add(tame(*x), (start + number * FEW + i) as u32);
                    }
                }
            }
        }
    }

    fn add(&mut self, logit: f32, token: u32) {
        self.top.push((logit, token));
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
    use regard_kernels::rng::Stream;

    /// The slow truth: everything sorted, in double precision.
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
        let mut got = Scan::default();
        scan(row, k, &mut got);
        got.top.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let (sum, top) = reference(row, k);
        assert_eq!(got.top, top, "V = {}, k = {k}", row.len());
        assert!((got.sum - sum).abs() <= 1e-6 * sum, "V = {}: {} for {sum}", row.len(), got.sum);
    }

    #[test]
    fn equals_sorting_in_double_precision() {
        for v in [1, 5, 16, 17, 511, 512, 513, 4000, 33_000] {
            let stream = Stream::new(v as u64, 0, 0);
            for scale in [0.1, 1.0, 8.0, 60.0] {
                // Whole numbers have many ties.
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
        for i in 0..=870_000 {
            let x = i as f32 * -1e-4;
            let (got, want) = (f64::from(exp_below_zero(x)), f64::from(x).exp());
            assert!((got / want - 1.0).abs() < 2.4e-7, "e^{x}: {got} for {want}");
        }
    }
}
