//! Attention of recurrent decoders: one query for each row, over a range of the keys of its
//! sentence, by dot product or by an additive score.
//!
//! ```text
//! s_j = q·k_j,  or  v·tanh(q + k_j + coverage_j·w)
//! weights = softmax_j(s_j) · exp(−(j − c)²/(2σ²))
//! out = Σ_j weights_j · v_j
//! ```

use super::{Cell, MOST_LANES, Run, WORTH, softmax};
use crate::ops::lanes::get;
use crate::pool::{Parts, parallel_ranges};
use crate::scratch::Scratch;
use crate::simd::{Isa, Kernel, Simd, dispatch_on, isa, tanh};
use crate::view::{Error, bail};
use std::ops::Range;

/// Adding, `tanh` and multiplying take as long as this many multiply-adds.
const TANH: usize = 8;

/// A query, with the keys and values of its sentence.
#[derive(Clone, Debug)]
pub struct RowQuery<'a> {
    /// `[D]`
    pub q: &'a [f32],
    /// `[S, D]`
    pub k: &'a [f32],
    /// `[S, E]`
    pub v: &'a [f32],
    /// Keys that it attends to.
    pub keys: Range<usize>,
    /// `[S]`: coverage of each key, for an additive score that is given it.
    pub coverage: Option<&'a [f32]>,
    /// Centre and standard deviation of a Gaussian that multiplies the weights, as in Luong's local
    /// attention; they are not normalised again.
    pub gaussian: Option<[f32; 2]>,
}

/// Score of [`decode_rows`].
#[derive(Clone, Copy, Debug)]
pub enum RowScore<'a> {
    /// `q·k`, not scaled.
    Dot,
    /// `v·tanh(q + k + coverage·w)`
    Additive {
        /// `v`, `[D]`
        v: &'a [f32],
        /// `w`, `[D]`; `None` without coverage.
        covered: Option<&'a [f32]>,
    },
}

/// Computes the attention of some queries, and replaces the contents of `weights` by their attention
/// weights, if these are wanted. Without keys, a result is 0. The result of a query depends on its
/// own keys alone, and not on the number of queries or threads.
///
/// # Shapes
/// `[d, e]`: widths of keys and values → `out: [N, E]`, `weights: [N, S]`
///
/// # Errors
/// If sizes do not match.
pub fn decode_rows(
    queries: &[RowQuery],
    score: RowScore,
    widths: [usize; 2],
    out: &mut [f32],
    weights: Option<&mut [f32]>,
) -> Result<(), Error> {
    decode_rows_on(isa(), queries, score, widths, out, weights)
}

fn decode_rows_on(
    isa: Isa,
    queries: &[RowQuery],
    score: RowScore,
    [d, e]: [usize; 2],
    out: &mut [f32],
    weights: Option<&mut [f32]>,
) -> Result<(), Error> {
    let wanted = match score {
        RowScore::Dot => None,
        RowScore::Additive { v, covered } => {
            if v.len() != d || covered.is_some_and(|w| w.len() != d) {
                bail!("decode_rows: got an additive score of width {}, need {d}", v.len());
            }
            covered
        }
    };
    let n = queries.len();
    for RowQuery { q, k, v, keys, coverage, .. } in queries {
        let have = k.len().checked_div(d).unwrap_or(0);
        let fits = q.len() == d && k.len() == have * d && v.len() == have * e;
        if !fits || keys.start > keys.end || keys.end > have {
            let got = [q.len(), k.len(), v.len()];
            bail!("decode_rows: got {got:?} floats of q, k, v and keys {keys:?}, widths {d}, {e}");
        }
        if coverage.map(<[f32]>::len) != wanted.map(|_| have) {
            bail!(
                "decode_rows: a score with coverage needs it for each of {have} keys, and only it"
            );
        }
    }
    let each = weights.as_ref().map_or(0, |weights| weights.len().checked_div(n).unwrap_or(0));
    if let Some(weights) = &weights
        && (weights.len() != n * each || queries.iter().any(|x| x.keys.end > each))
    {
        bail!("decode_rows: got room for {} weights of {n} queries", weights.len());
    }
    if out.len() != n * e {
        bail!("decode_rows: got room for {} floats, need [{n}, {e}]", out.len());
    }
    let longest = queries.iter().map(|x| x.keys.len()).max().unwrap_or(0);
    let cost = if matches!(score, RowScore::Dot) { d } else { TANH * d };
    let work = (longest * (cost + e)).max(1);
    let wants = weights.is_some();
    let (out, kept) = (Parts::new(out), Parts::new(weights.unwrap_or_default()));
    parallel_ranges(n, (WORTH / work).max(1), &|from, to| {
        // Whole vectors, so that the softmax has no partial ones.
        let mut room = Scratch::new(longest.next_multiple_of(MOST_LANES));
        for (row, query) in (from..to).zip(&queries[from..to]) {
            // SAFETY: each row is one task's, and has its own parts of the results.
            let (out, kept) = unsafe { (out.part(row * e, e), kept.part(row * each, each)) };
            let kept = wants.then_some(kept);
            dispatch_on(isa, Row { query, score, widths: [d, e], out, kept, room: &mut room });
        }
    });
    Ok(())
}

/// One query.
struct Row<'a> {
    query: &'a RowQuery<'a>,
    score: RowScore<'a>,
    widths: [usize; 2],
    out: &'a mut [f32],
    /// Room for its weights.
    kept: Option<&'a mut [f32]>,
    room: &'a mut [f32],
}

impl Kernel for Row<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Row { query, score, widths: [d, e], out, kept, room } = self;
        let RowQuery { q, k, v, keys, coverage, gaussian } = query;
        let n = keys.len();
        let run = Run {
            k: (k[keys.start * d..].as_ptr(), d as isize),
            v: (v[keys.start * e..].as_ptr(), e as isize),
            scales: None,
            keys: n,
        };
        let runs = [run];
        let mut cell = Cell {
            q: q.as_ptr(),
            runs: &runs,
            out: out.as_mut_ptr(),
            widths: [d, e],
            scale: 1.0,
            cap: None,
            weights: room,
            keys: n,
        };
        match score {
            // SAFETY: `decode_rows` has checked what the contract of `Cell` asks for.
            RowScore::Dot => unsafe { cell.scores(s) },
            RowScore::Additive { v, covered } => {
                let keys = k[keys.start * d..keys.end * d].chunks_exact(d.max(1));
                for (at, (key, to)) in keys.zip(cell.weights.iter_mut()).enumerate() {
                    let more = coverage.zip(covered).map(|(c, w)| (c[query.keys.start + at], w));
                    *to = additive(s, [q, key, v], more);
                }
            }
        }
        // SAFETY: there is room for the weights of all keys in whole vectors.
        let sum = unsafe { softmax(s, cell.weights, n) };
        let factor = if sum == 0.0 { 0.0 } else { 1.0 / sum };
        if let Some([centre, deviation]) = gaussian {
            for (at, weight) in keys.clone().zip(cell.weights.iter_mut()) {
                let away = (at as f32 - centre) / deviation;
                *weight *= (-0.5 * away * away).exp();
            }
        }
        if let Some(kept) = kept {
            kept.fill(0.0);
            let to = kept[keys.clone()].iter_mut().zip(cell.weights.iter());
            to.for_each(|(to, weight)| *to = weight * factor);
        }
        // SAFETY: `decode_rows` has checked what the contract of `Cell` asks for.
        unsafe {
            if !cell.values(s, factor) {
                cell.careful_values(factor);
            }
        }
    }
}

/// `v·tanh(q + k + coverage·w)`
#[inline(always)]
fn additive<S: Simd>(s: S, [q, k, v]: [&[f32]; 3], more: Option<(f32, &[f32])>) -> f32 {
    let mut sum = s.splat(0.0);
    for i in (0..q.len()).step_by(S::LANES) {
        let mut x = s.add(get(s, q, i), get(s, k, i));
        if let Some((coverage, w)) = more {
            x = s.fma(s.splat(coverage), get(s, w, i), x);
        }
        sum = s.fma(get(s, v, i), tanh(s, x), sum);
    }
    s.sum(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    fn numbers(n: usize, seed: u64) -> Vec<f32> {
        let stream = Stream::new(seed, 0, 0);
        (0..n as u64).map(|i| stream.normal(i)).collect()
    }

    /// The formula in double precision: weights of all keys, then the result.
    fn reference(query: &RowQuery, score: RowScore, [d, e]: [usize; 2]) -> [Vec<f64>; 2] {
        let RowQuery { q, k, v, keys, coverage, gaussian } = query;
        let scores: Vec<f64> = keys
            .clone()
            .map(|j| {
                let pairs = (0..d).map(|i| (f64::from(q[i]), f64::from(k[j * d + i])));
                match score {
                    RowScore::Dot => pairs.map(|(q, k)| q * k).sum(),
                    RowScore::Additive { v, covered } => pairs
                        .enumerate()
                        .map(|(i, (q, k))| {
                            let more = covered
                                .map_or(0.0, |w| f64::from(w[i]) * f64::from(coverage.unwrap()[j]));
                            f64::from(v[i]) * (q + k + more).tanh()
                        })
                        .sum(),
                }
            })
            .collect();
        let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = scores.iter().map(|s| (s - most).exp()).sum();
        let mut weights = vec![0.0; v.len() / e];
        for (j, score) in keys.clone().zip(scores) {
            let near = gaussian.map_or(1.0, |[c, w]| {
                (-0.5 * ((j as f64 - f64::from(c)) / f64::from(w)).powi(2)).exp()
            });
            weights[j] = (score - most).exp() / sum * near;
        }
        let out = (0..e)
            .map(|i| weights.iter().enumerate().map(|(j, w)| w * f64::from(v[j * e + i])).sum());
        let out = out.collect();
        [weights, out]
    }

    struct Data {
        q: Vec<f32>,
        k: Vec<f32>,
        v: Vec<f32>,
        coverage: Vec<f32>,
        score: [Vec<f32>; 2],
    }

    const SIZES: [[usize; 3]; 5] = [[1, 1, 1], [3, 5, 7], [33, 17, 40], [16, 64, 65], [70, 130, 9]];

    fn data([s, d, e]: [usize; 3], rows: usize) -> Data {
        Data {
            q: numbers(rows * d, 1),
            k: numbers(s * d, 2),
            v: numbers(s * e, 3),
            coverage: numbers(s, 4),
            score: [numbers(d, 5), numbers(d, 6)],
        }
    }

    fn isas() -> impl Iterator<Item = Isa> {
        Isa::ALL.into_iter().filter(|isa| isa.available())
    }

    #[test]
    fn results_and_weights_are_those_of_the_formula() {
        for [s, d, e] in SIZES {
            let rows = 4;
            let Data { q, k, v, coverage, score: [score_v, score_w] } = data([s, d, e], rows);
            for kind in 0..3 {
                let score = match kind {
                    0 => RowScore::Dot,
                    1 => RowScore::Additive { v: &score_v, covered: None },
                    _ => RowScore::Additive { v: &score_v, covered: Some(&score_w) },
                };
                let query = |row: usize| RowQuery {
                    q: &q[row * d..(row + 1) * d],
                    k: &k,
                    v: &v,
                    keys: [0..s, 0..s.div_ceil(2), s / 3..s, s / 2..s / 2][row].clone(),
                    coverage: (kind == 2).then_some(&coverage[..]),
                    gaussian: (row == 2).then_some([s as f32 / 2.0 - 0.3, 1.5]),
                };
                let queries: Vec<RowQuery> = (0..rows).map(query).collect();
                for isa in isas() {
                    let mut out = vec![f32::NAN; rows * e];
                    let mut weights = vec![f32::NAN; rows * s];
                    let kept = Some(&mut weights[..]);
                    decode_rows_on(isa, &queries, score, [d, e], &mut out, kept).unwrap();
                    let mut plain = vec![f32::NAN; rows * e];
                    decode_rows_on(isa, &queries, score, [d, e], &mut plain, None).unwrap();
                    assert_eq!(plain, out);
                    for (row, query) in queries.iter().enumerate() {
                        let [want_weights, want] = reference(query, score, [d, e]);
                        let pairs = out[row * e..(row + 1) * e].iter().zip(&want);
                        let pairs = pairs.chain(weights[row * s..][..s].iter().zip(&want_weights));
                        for (got, want) in pairs {
                            let near = (f64::from(*got) - want).abs() <= 2e-5 * (1.0 + want.abs());
                            assert!(near, "{got} {want} {kind} {row} {s} {d} {e} {}", isa.name());
                        }
                        // The same bits alone.
                        let mut alone = vec![f32::NAN; e];
                        let one = std::slice::from_ref(query);
                        decode_rows_on(isa, one, score, [d, e], &mut alone, None).unwrap();
                        assert_eq!(alone, out[row * e..(row + 1) * e]);
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_not_attended_to_does_not_count() {
        let [s, d, e] = SIZES[2];
        let Data { q, mut k, mut v, score: [score_v, _], .. } = data([s, d, e], 1);
        let mut results = vec![];
        for _ in 0..2 {
            for score in [RowScore::Dot, RowScore::Additive { v: &score_v, covered: None }] {
                let keys = 2..s - 3;
                let query = RowQuery { q: &q, k: &k, v: &v, keys, coverage: None, gaussian: None };
                let mut out = vec![0.0; e];
                decode_rows(&[query], score, [d, e], &mut out, None).unwrap();
                results.push(out);
            }
            k[..2 * d].fill(f32::NAN);
            v[(s - 3) * e..].fill(f32::INFINITY);
        }
        assert_eq!(results[..2], results[2..]);
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        let floats = vec![0.0; 12];
        let query = RowQuery {
            q: &floats[..3],
            k: &floats,
            v: &floats[..8],
            keys: 0..4,
            coverage: None,
            gaussian: None,
        };
        let mut out = vec![0.0; 2];
        let dot = RowScore::Dot;
        let mut run = |query: RowQuery, score, room: Option<&mut [f32]>| {
            decode_rows(&[query], score, [3, 2], &mut out, room)
        };
        run(query.clone(), dot, None).unwrap();
        assert!(run(RowQuery { keys: 0..5, ..query.clone() }, dot, None).is_err());
        assert!(run(RowQuery { v: &floats, ..query.clone() }, dot, None).is_err());
        assert!(
            run(RowQuery { coverage: Some(&floats[..4]), ..query.clone() }, dot, None).is_err()
        );
        let narrow = RowScore::Additive { v: &floats[..2], covered: None };
        assert!(run(query.clone(), narrow, None).is_err());
        let covered = RowScore::Additive { v: &floats[..3], covered: Some(&floats[..3]) };
        assert!(run(query.clone(), covered, None).is_err());
        assert!(run(query, dot, Some(&mut [0.0; 3])).is_err());
    }
}
