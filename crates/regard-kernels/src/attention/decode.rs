//! Attention of decoding steps: few queries, each over all valid keys of its batch row.
//!
//! ```text
//! out_i = Σ_{j < n} softmax_j( scale · q_i·k_j ) · v_j
//! ```
//!
//! The engine of [`Attention::forward`](super::Attention::forward) processes blocks of queries. A
//! decoding step has one query for each row and head, so that the engine's work per block (walk,
//! packing, state for a backward) takes longer than the arithmetic. This is the walk of a single
//! row: scores are dot products along the memory of the keys, and nothing is kept for a backward,
//! which decoding does not have.
//!
//! The result of a query depends on its own keys alone: not on the batch, the other queries or the
//! number of threads.

mod paged;
mod rows;

pub use paged::{PagedOptions, PagedQuery, decode_pages};
pub use rows::{RowQuery, RowScore, decode_rows};

use super::{Attention, AttentionInputs, Dims};
use crate::pool::parallel_ranges;
use crate::scratch::Scratch;
use crate::simd::{Isa, Kernel, Simd, dispatch_on, exp_nonpositive, fetch, isa, tanh};
use crate::storage::Element;
use crate::view::{Error, ViewMut, bail};

/// Multiply-adds per task, so that waking another thread pays off. A layer of GPT-2 with 56 keys
/// takes 5.8 µs with four times as many, 4.3 with these.
const WORTH: usize = 1 << 15;

/// Keys whose dot products are computed at once.
const AT_ONCE: usize = 4;

/// Keys and values are fetched this many positions ahead: positions of a head are kilobytes apart,
/// too far for what a CPU fetches of its own accord.
const AHEAD: isize = 8;

/// No instruction set has more lanes.
const MOST_LANES: usize = 16;

/// Computes dot-product attention with softmax for a decoding step. Queries of batch row `b` attend
/// to the first `lengths[b]` keys; to all of them without `lengths`. Without keys, a result is 0.
///
/// # Shapes
/// `q: [B, H, T, D]`, `k: [B, Hk, S, D]`, `v: [B, Hk, S, E]` → `out: [B, H, T, E]`, all with
/// contiguous last axes; `lengths: [B]`
///
/// # Errors
/// If shapes do not match, there are parameters, or a last axis is not contiguous.
pub fn decode(
    inputs: &AttentionInputs,
    lengths: Option<&[i64]>,
    scale: Option<f32>,
    out: &ViewMut,
) -> Result<(), Error> {
    decode_on(isa(), inputs, lengths, scale, out)
}

fn decode_on(
    isa: Isa,
    inputs: &AttentionInputs,
    lengths: Option<&[i64]>,
    scale: Option<f32>,
    out: &ViewMut,
) -> Result<(), Error> {
    let AttentionInputs { q, k, v, params } = inputs;
    let dims = Attention::dims(q.shape, k.shape, v.shape)?;
    let Dims { b, h, hk, t, s, d, dk, e } = dims;
    if out.shape != [b, h, t, e] {
        bail!("out: got shape {:?}, need [B,H,T,E] = {:?}", out.shape, [b, h, t, e]);
    }
    if d != dk || !params.is_empty() {
        bail!("decode: needs queries and keys of one width, and no parameters");
    }
    let along = [q.strides[3], k.strides[3], v.strides[3], out.strides[3]];
    if along.iter().zip([d, d, e, e]).any(|(stride, n)| *stride != 1 && n > 1) {
        bail!("decode: needs contiguous last axes, got strides {along:?}");
    }
    if let Some(lengths) = lengths
        && (lengths.len() != b || lengths.iter().any(|n| !(0..=s as i64).contains(n)))
    {
        bail!("lengths: got {lengths:?}, need {b} of 0 to {s}");
    }
    let scale = scale.unwrap_or(1.0 / (d as f32).sqrt());
    let work = s.max(1) * (d + e);
    parallel_ranges(b * h * t, (WORTH / work).max(1), &|from, to| {
        // Whole vectors, so that the softmax has no partial ones.
        let mut weights = Scratch::new(s.next_multiple_of(MOST_LANES));
        for cell in from..to {
            let (b, h, i) = (cell / (h * t), cell / t % h, cell % t);
            let (head, keys) = (h / (dims.h / hk), lengths.map_or(s, |n| n[b] as usize));
            let run = Run {
                k: (k.at(b, head, 0, 0), k.strides[2]),
                v: (v.at(b, head, 0, 0), v.strides[2]),
                scales: None,
                keys,
            };
            let cell = Cell {
                q: q.at(b, h, i, 0),
                runs: &[run],
                out: out.at(b, h, i, 0),
                widths: [d, e],
                scale,
                cap: None,
                weights: &mut weights,
                keys,
            };
            dispatch_on(isa, cell);
        }
    });
    Ok(())
}

/// Equally spaced keys and values of one head.
///
/// # Safety
/// At each of the places of the `keys` keys there are `D` elements, at each of the values `E`, and
/// there are as many factors of each kind, if any. Nobody writes to them meanwhile.
struct Run<E> {
    /// First key, and the stride between keys.
    k: (*const E, isize),
    /// First value, and the stride between values.
    v: (*const E, isize),
    /// Factor of each key, and of each value.
    scales: Option<[*const f32; 2]>,
    keys: usize,
}

/// One query of one head.
///
/// # Safety
/// The query has `D` floats and the result room for `E`, which nobody else uses meanwhile. The
/// contract of [`Run`] holds for each run, and `weights` has room for the keys of all runs in whole
/// vectors.
struct Cell<'a, E> {
    q: *const f32,
    /// Keys and values, in this order.
    runs: &'a [Run<E>],
    out: *mut f32,
    /// `D` and `E`.
    widths: [usize; 2],
    scale: f32,
    /// Soft limit of the scores, `cap · tanh(s / cap)`.
    cap: Option<f32>,
    /// Room for the weight of each key, in whole vectors.
    weights: &'a mut [f32],
    /// Number of keys of all runs.
    keys: usize,
}

impl<E: Element> Kernel for Cell<'_, E> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        // SAFETY: whoever made the cell keeps its contract.
        unsafe {
            self.scores(s);
            if let Some(cap) = self.cap {
                soft_cap(s, self.weights, self.keys, cap);
            }
            let sum = softmax(s, self.weights, self.keys);
            let factor = if sum == 0.0 { 0.0 } else { 1.0 / sum };
            let mut first = 0;
            for run in self.runs {
                self.scaled(run.scales.map(|[_, values]| values), first..first + run.keys);
                first += run.keys;
            }
            if !self.values(s, factor) {
                self.careful_values(factor);
            }
        }
    }
}

impl<E: Element> Cell<'_, E> {
    /// Dot products of the query with all keys.
    ///
    /// # Safety
    /// The contract of [`Cell`] must hold.
    #[inline(always)]
    unsafe fn scores<S: Simd>(&mut self, s: S) {
        let mut first = 0;
        for run in self.runs {
            // SAFETY: by the contract of `Cell`, this is one of its runs.
            unsafe {
                self.run_scores(s, run, first);
                self.scaled(run.scales.map(|[keys, _]| keys), first..first + run.keys);
            }
            first += run.keys;
        }
    }

    /// Multiplies the weights of some keys by their factors.
    ///
    /// # Safety
    /// There must be a factor for each key.
    #[inline(always)]
    unsafe fn scaled(&mut self, factors: Option<*const f32>, keys: std::ops::Range<usize>) {
        let Some(factors) = factors else { return };
        for (i, weight) in self.weights[keys].iter_mut().enumerate() {
            // SAFETY: the caller vouches for the factors.
            *weight *= unsafe { *factors.add(i) };
        }
    }

    /// Dot products of the query with the keys of a run, the first of which is key `first`.
    ///
    /// # Safety
    /// The contract of [`Cell`] must hold, and `run` be one of its runs.
    #[inline(always)]
    unsafe fn run_scores<S: Simd>(&mut self, s: S, run: &Run<E>, first: usize) {
        let ([d, _], (k, stride)) = (self.widths, run.k);
        let n = run.keys;
        let mut j = 0;
        while j < n {
            let together = if n - j >= AT_ONCE { AT_ONCE } else { 1 };
            let mut sums = [s.splat(0.0); AT_ONCE];
            let mut c = 0;
            while c < d {
                let have = (d - c).min(S::LANES);
                // SAFETY: by the contracts of `Cell` and `Run`, the query and each key have `have`
                // features from `c` on.
                unsafe {
                    let q = part(s, self.q.add(c), have);
                    for (u, sum) in sums[..together].iter_mut().enumerate() {
                        let key = k.wrapping_offset((j + u) as isize * stride).add(c);
                        fetch(key.wrapping_offset(AHEAD * stride));
                        *sum = s.fma(q, part(s, key, have), *sum);
                    }
                }
                c += have;
            }
            for (u, sum) in sums[..together].iter().enumerate() {
                self.weights[first + j + u] = s.sum(*sum) * self.scale;
            }
            j += together;
        }
    }

    /// The sum of the weighted values, times `factor`: four vectors of a value at once, two or one
    /// at the end. Returns whether all results are finite.
    ///
    /// # Safety
    /// The contract of [`Cell`] must hold.
    #[inline(always)]
    unsafe fn values<S: Simd>(&self, s: S, factor: f32) -> bool {
        let [_, e] = self.widths;
        let (mut c, mut odd) = (0, s.splat(0.0));
        while c < e {
            let whole = (e - c) / S::LANES;
            // SAFETY: the caller keeps the contract, and these features are below `E`.
            let part = unsafe {
                match whole {
                    4.. => self.some::<S, 4>(s, c, S::LANES, factor),
                    2.. => self.some::<S, 2>(s, c, S::LANES, factor),
                    1 => self.some::<S, 1>(s, c, S::LANES, factor),
                    _ => self.some::<S, 1>(s, c, e - c, factor),
                }
            };
            odd = s.add(odd, part);
            c += S::LANES * if whole >= 4 { 4 } else { whole.clamp(1, 2) };
        }
        s.sum(odd) == 0.0
    }

    /// Sums the weighted values one by one: a value that is not finite counts only where its weight is
    /// not 0.
    ///
    /// # Safety
    /// The contract of [`Cell`] must hold.
    #[cold]
    unsafe fn careful_values(&self, factor: f32) {
        let [_, e] = self.widths;
        for c in 0..e {
            let (mut sum, mut first) = (0.0, 0);
            for Run { v: (v, stride), keys, .. } in self.runs {
                for (j, weight) in self.weights[first..first + keys].iter().enumerate() {
                    if *weight != 0.0 {
                        let value = v.wrapping_offset(j as isize * stride).wrapping_add(c);
                        // SAFETY: by the contract of `Run`, the value has this feature.
                        sum += weight * unsafe { *value }.single();
                    }
                }
                first += keys;
            }
            // SAFETY: by the contract of `Cell`, the result has this feature.
            unsafe { *self.out.add(c) = sum * factor };
        }
    }

    /// `W` vectors of the result from feature `c` on, `have` features of each. Even and odd keys
    /// are summed apart, so that an addition need not wait for the one before it. Returns zeros if
    /// all results are finite, otherwise NaN in some lane.
    ///
    /// # Safety
    /// The contract of [`Cell`] must hold, and these features be below `E`.
    #[inline(always)]
    unsafe fn some<S: Simd, const W: usize>(
        &self,
        s: S,
        c: usize,
        have: usize,
        factor: f32,
    ) -> S::V {
        let mut sums = [[s.splat(0.0); W]; 2];
        let mut first = 0;
        for Run { v: (v, stride), keys, .. } in self.runs {
            let weights = &self.weights[first..first + keys];
            let mut j = 0;
            while j < weights.len() {
                for sums in &mut sums {
                    if j == weights.len() {
                        break;
                    }
                    let weight = s.splat(weights[j]);
                    let value = v.wrapping_offset(j as isize * stride).wrapping_add(c);
                    for (u, sum) in sums.iter_mut().enumerate() {
                        let value = value.wrapping_add(u * S::LANES);
                        fetch(value.wrapping_offset(AHEAD * stride));
                        // SAFETY: by the contract of `Run`, the value has these features.
                        let value = unsafe { part(s, value, have) };
                        *sum = s.fma(weight, value, *sum);
                    }
                    j += 1;
                }
            }
            first += keys;
        }
        let mut odd = s.splat(0.0);
        let [even, uneven] = &sums;
        for (u, (a, b)) in even.iter().zip(uneven).enumerate() {
            let y = s.mul(s.add(*a, *b), s.splat(factor));
            odd = s.add(odd, s.mul(y, s.splat(0.0)));
            // SAFETY: by the contract of `Cell`, the result has these features.
            unsafe {
                let to = self.out.add(c + u * S::LANES);
                if have == S::LANES { s.store(to, y) } else { s.store_part(to, have, y) }
            }
        }
        odd
    }
}

/// Loads `n` elements.
///
/// # Safety
/// They must exist.
#[inline(always)]
unsafe fn part<S: Simd, E: Element>(s: S, p: *const E, n: usize) -> S::V {
    // SAFETY: the caller's promise is this.
    unsafe { if n == S::LANES { E::load(s, p) } else { E::load_part(s, p, n) } }
}

/// Limits the first `n` scores to ±`cap`.
///
/// # Safety
/// `x` must be as long as `n` in whole vectors.
#[inline(always)]
unsafe fn soft_cap<S: Simd>(s: S, x: &mut [f32], n: usize, cap: f32) {
    for i in (0..n).step_by(S::LANES) {
        // SAFETY: whole vectors are inside of `x`.
        unsafe {
            let at = x.as_mut_ptr().add(i);
            let score = tanh(s, s.mul(s.load(at), s.splat(1.0 / cap)));
            s.store(at, s.mul(s.splat(cap), score));
        }
    }
}

/// The number of each lane.
const LANE: [f32; MOST_LANES] =
    [0., 1., 2., 3., 4., 5., 6., 7., 8., 9., 10., 11., 12., 13., 14., 15.];

/// Replaces the first `n` scores by `e^{x − max}` and returns their sum; 0 without scores. Vectors
/// are whole; lanes past the end are left out.
///
/// # Safety
/// `x` must be as long as `n` in whole vectors.
#[inline(always)]
unsafe fn softmax<S: Simd>(s: S, x: &mut [f32], n: usize) -> f32 {
    let x = &mut x[..n.next_multiple_of(S::LANES)];
    // SAFETY: whole vectors are inside of `x`, and no instruction set has more lanes than `LANE`.
    unsafe {
        let lane = s.load(LANE.as_ptr());
        let (lowest, zero) = (s.splat(f32::NEG_INFINITY), s.splat(0.0));
        let (mut most, mut odd) = (lowest, zero);
        for i in (0..n).step_by(S::LANES) {
            let (valid, score) = (s.lt(lane, s.splat((n - i) as f32)), s.load(x.as_ptr().add(i)));
            most = s.max(s.select(valid, score, lowest), most);
            // 0 for finite scores, NaN for others.
            odd = s.add(odd, s.mul(s.select(valid, score, zero), zero));
        }
        let most = s.largest(most);
        if s.sum(odd) != 0.0 {
            // Rare, and as in the formula: a NaN or +∞ makes all weights NaN, −∞ has weight 0; if all
            // scores are −∞, they are NaN too.
            x[..n].iter_mut().for_each(|x| *x = (*x - most).exp());
            return x[..n].iter().sum();
        }
        let mut sum = zero;
        for i in (0..n).step_by(S::LANES) {
            let (valid, at) = (s.lt(lane, s.splat((n - i) as f32)), x.as_mut_ptr().add(i));
            let below = s.select(valid, s.sub(s.load(at), s.splat(most)), zero);
            let e = exp_nonpositive(s, below);
            sum = s.add(sum, s.select(valid, e, zero));
            s.store(at, e);
        }
        s.sum(sum)
    }
}

#[cfg(test)]
mod tests;
