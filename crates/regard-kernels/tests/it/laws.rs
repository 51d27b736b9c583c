//! The laws of the engine that are not plain agreement with the reference.

use super::problem::*;
use regard_kernels::attention::{Attention, AttentionInputs, BLOCK, Dims, mask::*};
use regard_kernels::view::{View, ViewMut};

fn plain(shape: Shape, mask: Mask) -> Problem {
    Problem::new(shape, scores(shape)[0].clone(), ("a mask", mask), normalizers()[0].clone())
}

/// Law 1: a fully masked row gives exact zeros and gets no gradient.
#[test]
fn empty_rows_are_zero() {
    let shape = [2, 2, 1, 5, 7, 4, 3];
    let Dims { t, s, d, .. } = plain(shape, full()).dims;
    for score in scores(shape) {
        for norm in normalizers() {
            // Row 2 of the second batch row sees nothing; neither do key 6's column.
            let lens: Vec<i64> = (0..10).map(|row| if row == 7 { 0 } else { 6 }).collect();
            let mask = ("lengths", lengths_per_query(&lens));
            let problem = Problem::new(shape, score.clone(), mask, norm);
            let e = problem.dims.e;
            let (out, saved) = problem.forward();
            let (grads, _) = problem.backward(&out, &saved);
            let weights = problem.weights(&saved);
            for h in 0..2 {
                let row = (2 + h) * t + 2;
                assert!(out[row * e..(row + 1) * e].iter().all(|x| *x == 0.0), "{}", problem.name);
                assert!(
                    weights[row * s..(row + 1) * s].iter().all(|x| *x == 0.0),
                    "{}",
                    problem.name
                );
                assert!(
                    grads[0][row * d..(row + 1) * d].iter().all(|x| *x == 0.0),
                    "{}",
                    problem.name
                );
            }
            let (dk, last) = (problem.dims.dk, 6);
            assert!(
                grads[1][last * dk..(last + 1) * dk].iter().all(|x| *x == 0.0),
                "{}",
                problem.name
            );
            assert!(
                grads[2][last * e..(last + 1) * e].iter().all(|x| *x == 0.0),
                "{}",
                problem.name
            );
        }
    }
}

/// Law 2: a row does not depend on its batch neighbours, nor on how far keys are padded.
#[test]
fn neighbours_and_padding_do_not_matter() {
    for (t, s) in [(5, 7), (70, 150), (33, 140)] {
        let (h, d, e) = (2, 20, 9);
        let base =
            plain([3, h, 2, t, s, d, e], lengths(&[s as i64, 3, s as i64 / 2]) & window(90, 40));
        let (out, saved) = base.forward();
        let (grads, _) = base.backward(&out, &saved);
        // The third batch row alone, with 61 more keys of padding.
        let longer = s + 61;
        let mut alone =
            plain([1, h, 2, t, longer, d, e], lengths(&[s as i64 / 2]) & window(90, 40));
        alone.fast.positions =
            regard_kernels::attention::Positions::Offsets(vec![s as i64 - t as i64]);
        let take = |x: &[f32], per_head: usize| x[2 * h * per_head..].to_vec();
        alone.q = take(&base.q, t * d);
        alone.dout = take(&base.dout, t * e);
        for (to, from, width) in [(&mut alone.k, &base.k, d), (&mut alone.v, &base.v, e)] {
            for head in 0..h {
                let from = &take(from, s * width)[head * s * width..][..s * width];
                to[head * longer * width..][..s * width].copy_from_slice(from);
            }
        }
        let (alone_out, saved) = alone.forward();
        assert_eq!(alone_out, take(&out, t * e), "out at {t} × {s}");
        let (alone_grads, _) = alone.backward(&alone_out, &saved);
        assert_eq!(alone_grads[0], take(&grads[0], t * d), "dq at {t} × {s}");
        for (which, width) in [(1, d), (2, e)] {
            for head in 0..h {
                let got = &alone_grads[which][head * longer * width..][..s * width];
                let want = &take(&grads[which], s * width)[head * s * width..][..s * width];
                assert_eq!(got, want, "gradient {which} of head {head} at {t} × {s}");
            }
        }
    }
}

/// Law 2, for segments of a row: each is what it is alone, if blocks of keys do not cut it
/// otherwise than alone.
#[test]
fn segments_between_blocks_do_not_see_each_other() {
    let (h, d, e, s) = (2, 20, 9, 4 * BLOCK);
    let segment = |j: usize| [7, 30, 64, 70, 71, 128, 230].iter().filter(|end| j >= **end).count();
    let ids: Vec<i64> = (0..s).map(|j| segment(j) as i64).collect();
    let row = plain([1, h, h, s, s, d, e], segments(&ids));
    let (out, saved) = row.forward();
    let (grads, _) = row.backward(&out, &saved);
    assert!(saved.pairs < 4 * count(&row.fast.mask, &row.grid()) * h as u64);
    for id in 0..8 {
        let places: Vec<usize> = (0..s).filter(|j| ids[*j] == id).collect();
        let (from, n) = (places[0], places.len());
        let take = |x: &[f32], width: usize| -> Vec<f32> {
            (0..h).flat_map(|head| x[(head * s + from) * width..][..n * width].to_vec()).collect()
        };
        let mut alone = plain([1, h, h, n, n, d, e], full());
        (alone.q, alone.k, alone.v) = (take(&row.q, d), take(&row.k, d), take(&row.v, e));
        alone.dout = take(&row.dout, e);
        let (alone_out, saved) = alone.forward();
        assert_eq!(alone_out, take(&out, e), "segment {id} of {n}");
        let (alone_grads, _) = alone.backward(&alone_out, &saved);
        for (which, width) in [d, d, e].into_iter().enumerate() {
            let wanted = take(&grads[which], width);
            assert_eq!(alone_grads[which], wanted, "gradient {which} of segment {id}");
        }
    }
}

/// Law 5: what is masked costs nothing.
#[test]
fn masked_pairs_are_not_scored() {
    for (t, width) in [(1000, 63), (1000, 128), (513, 64), (2048, 100)] {
        for (left, right) in [(width, 0), (width / 2, width - width / 2)] {
            let problem = plain([1, 1, 1, t, t, 8, 8], window(left, right));
            let grid = problem.grid();
            let allowed = count(&problem.fast.mask, &grid);
            let (out, saved) = problem.forward();
            let (_, grads) = problem.backward(&out, &saved);
            assert!(
                saved.pairs <= 2 * allowed,
                "{} of {allowed}, T {t}, window {width}",
                saved.pairs
            );
            assert_eq!(saved.pairs, grads.pairs);
        }
    }
    let (indptr, indices) = graph(100, 120);
    for mask in [edges(&indptr, &indices), expanded(5, 3, 7), expanded(5, 3, 7) & causal()] {
        let problem = plain([1, 2, 1, 100, 120, 8, 8], mask);
        let allowed = 2 * count(&problem.fast.mask, &problem.grid());
        let (out, saved) = problem.forward();
        let (_, grads) = problem.backward(&out, &saved);
        assert_eq!((saved.pairs, grads.pairs), (allowed, allowed));
    }
    let problem =
        plain([1, 1, 1, 600, 600, 8, 8], segments(&(0..600).map(|i| i / 150).collect::<Vec<_>>()));
    let (_, saved) = problem.forward();
    assert!(saved.pairs < 600 * 600 / 2, "{} pairs", saved.pairs);
}

fn count(mask: &Mask, grid: &regard_kernels::attention::Grid) -> u64 {
    let (t, s) = (grid.dims.t, grid.dims.s);
    (0..t * s).filter(|c| mask.allows(grid, 0, 0, c / s, c % s)).count() as u64
}

/// Law 6: rows of weights sum to 1, and weights · V is the output.
#[test]
fn weights_are_exact() {
    for shape in [[1, 2, 1, 70, 200, 16, 8], [1, 1, 1, 3, 1000, 64, 5]] as [Shape; 2] {
        let [_, h, hk, t, s, _, e] = shape;
        let mut problem = plain(shape, full());
        // Large scores, where a log-sum-exp in one float would lose digits.
        problem.q.iter_mut().for_each(|x| *x *= 12.0);
        let (out, saved) = problem.forward();
        let weights = problem.weights(&saved);
        for (row, w) in weights.chunks_exact(s).enumerate() {
            let sum: f64 = w.iter().map(|x| f64::from(*x)).sum();
            assert!((sum - 1.0).abs() < 1e-6, "row {row} sums to {sum}");
            let head = row / t / (h / hk);
            for c in 0..e {
                let mixed: f64 = (0..s)
                    .map(|j| f64::from(w[j]) * f64::from(problem.v[(head * s + j) * e + c]))
                    .sum();
                assert!((mixed - f64::from(out[row * e + c])).abs() < 2e-5);
            }
        }
        // Some heads and rows only, in the order asked for.
        let (heads, rows) = ([h - 1], [t - 1, 0]);
        let mut some = vec![0.0; 2 * s];
        let asked = regard_kernels::attention::Selection { heads: Some(&heads), rows: Some(&rows) };
        let view = ViewMut::new(&mut some, [1, 1, 2, s]).unwrap();
        problem.fast.weights(&problem.inputs(), &saved, asked, &view).unwrap();
        let row = |i: usize| &weights[((h - 1) * t + i) * s..][..s];
        assert_eq!((&some[..s], &some[s..]), (row(t - 1), row(0)));
    }
}

/// Law 6: reductions of the weights that never build the matrix.
#[test]
fn summaries_agree_with_the_weights() {
    let shape = [1, 2, 1, 70, 140, 8, 8];
    for (name, mask) in masks(shape) {
        let problem = plain(shape, mask);
        let (_, saved) = problem.forward();
        let weights = problem.weights(&saved);
        let summary = problem.fast.summarize(&problem.inputs(), &saved, 3).unwrap();
        let mut mass = vec![0f64; 2 * 140];
        for (row, w) in weights.chunks_exact(140).enumerate() {
            let mut order: Vec<usize> = (0..140).filter(|j| w[*j] > 0.0).collect();
            order.sort_by(|x, y| w[*y].total_cmp(&w[*x]).then(x.cmp(y)));
            for rank in 0..3 {
                let want = order.get(rank).map_or((-1, 0.0), |j| (*j as i32, w[*j]));
                let at = row * 3 + rank;
                assert_eq!(
                    (summary.top_keys[at], summary.top_weights[at]),
                    want,
                    "{name}, row {row}"
                );
            }
            let entropy: f64 =
                w.iter().filter(|p| **p > 0.0).map(|p| -f64::from(*p) * f64::from(*p).ln()).sum();
            assert!((entropy - f64::from(summary.entropy[row])).abs() < 1e-4, "{name}, row {row}");
            w.iter().enumerate().for_each(|(j, p)| mass[row / 70 * 140 + j] += f64::from(*p));
        }
        close(name, "column mass", &summary.column_mass, &mass, 1e-5);
    }
}

/// Law 8: what is not finite and masked stays out; unmasked, it reaches exactly those who attend.
#[test]
fn masked_nan_stays_out() {
    for shape in [[1, 2, 1, 6, 9, 4, 3], [1, 1, 1, 70, 150, 8, 16]] as [Shape; 2] {
        let [_, h, hk, t, s, d, e] = shape;
        for (name, mask) in masks(shape) {
            for bad in [f32::NAN, f32::INFINITY] {
                let clean = plain(shape, mask.clone());
                let mut dirty = plain(shape, mask.clone());
                // Key and value s − 2 of the first key head.
                // (An infinite key may score −∞, a weight of 0: that is not attending to it.)
                if bad.is_nan() {
                    dirty.k[(s - 2) * d] = bad;
                }
                dirty.v[(s - 2) * e] = bad;
                let (want, saved) = clean.forward();
                let (want_grads, _) = clean.backward(&want, &saved);
                let (out, saved) = dirty.forward();
                let (grads, _) = dirty.backward(&out, &saved);
                let grid = clean.grid();
                let seen = |row: usize| {
                    let (head, i) = (row / t, row % t);
                    head < h / hk && mask.allows(&grid, 0, head, i, s - 2)
                };
                let any = (0..h * t).any(seen);
                for row in 0..h * t {
                    let (got, want) = (&out[row * e..][..e], &want[row * e..][..e]);
                    let (dq, want_dq) = (&grads[0][row * d..][..d], &want_grads[0][row * d..][..d]);
                    if seen(row) {
                        assert!(
                            got.iter().any(|x| !x.is_finite()),
                            "{name}: row {row} attends to it"
                        );
                    } else {
                        assert_eq!(got, want, "{name}: row {row} does not attend to it");
                        assert_eq!(dq, want_dq, "{name}: dq of row {row}");
                    }
                }
                if !any {
                    assert_eq!(grads[1], want_grads[1], "{name}: dk");
                    assert_eq!(grads[2], want_grads[2], "{name}: dv");
                }
            }
        }
    }
}

/// Law 8 for every score and normaliser: a key that nobody may see holds NaN, infinity or a number
/// whose square overflows.
#[test]
fn what_nobody_sees_does_not_matter() {
    for shape in [[1, 2, 1, 4, 6, 2, 3], [1, 1, 1, 70, 150, 4, 4]] as [Shape; 2] {
        let [_, _, _, t, s, ..] = shape;
        // The last key but one is masked for all, and another cell for one query.
        let allowed: Vec<bool> = (0..t * s).map(|c| c % s != s - 2 && c != 1).collect();
        let list = |i: usize| (0..s).filter(move |j| *j != s - 2 && (i, *j) != (0, 1));
        let indices: Vec<i64> = (0..t).flat_map(|i| list(i).map(|j| j as i64)).collect();
        let ends =
            (0..=t).map(|i| (0..i).map(|i| list(i).count() as i64).sum()).collect::<Vec<_>>();
        for score in scores(shape) {
            for norm in normalizers() {
                for mask in [dense(allowed.clone()), edges(&ends, &indices)] {
                    let clean =
                        Problem::new(shape, score.clone(), ("mask", mask.clone()), norm.clone());
                    let (want, saved) = clean.forward();
                    let (want_grads, _) = clean.backward(&want, &saved);
                    for bad in [f32::NAN, f32::NEG_INFINITY, 3e38] {
                        let mut dirty = Problem::new(
                            shape,
                            score.clone(),
                            ("mask", mask.clone()),
                            norm.clone(),
                        );
                        let (dk, e) = (dirty.dims.dk, dirty.dims.e);
                        dirty.k[(s - 2) * dk..(s - 1) * dk].fill(bad);
                        dirty.v[(s - 2) * e..(s - 1) * e].fill(bad);
                        let (out, saved) = dirty.forward();
                        // Additive rows beyond ±20 take another form of the same function.
                        if score.0 == "additive" {
                            let want: Vec<f64> = want.iter().map(|x| f64::from(*x)).collect();
                            close(&dirty.name, "out", &out, &want, 2e-5);
                        } else {
                            assert_eq!(out, want, "{} with {bad}", dirty.name);
                        }
                        let (grads, _) = dirty.backward(&out, &saved);
                        for (which, (got, want)) in grads.iter().zip(&want_grads).enumerate() {
                            let want: Vec<f64> = want.iter().map(|x| f64::from(*x)).collect();
                            close(
                                &dirty.name,
                                &format!("gradient {which} with {bad}"),
                                got,
                                &want,
                                2e-5,
                            );
                        }
                    }
                }
            }
        }
    }
}

/// Any strides: heads inside, reversed rows, and an output with heads inside.
#[test]
fn strides_do_not_matter() {
    let (b, h, t, s, d, e) = (2, 3, 70, 75, 17, 16);
    let problem = plain([b, h, h, t, s, d, e], causal());
    let (want, _) = problem.forward();
    // Memory [B, N, H, W], rows in reverse.
    let inside = |x: &[f32], n: usize, w: usize| -> Vec<f32> {
        let mut to = vec![0.0; x.len()];
        for (at, x) in x.iter().enumerate() {
            let (b, head, i, c) = (at / (h * n * w), at / (n * w) % h, at / w % n, at % w);
            to[((b * n + (n - 1 - i)) * h + head) * w + c] = *x;
        }
        to
    };
    let (q, k, v) = (inside(&problem.q, t, d), inside(&problem.k, s, d), inside(&problem.v, s, e));
    let view = |data: &'static [f32], n: usize, w: usize| {
        let strides = [n * h * w, w, 0, 1].map(|x| x as isize);
        let strides = [strides[0], strides[1], -((h * w) as isize), 1];
        View::strided(data, [b, h, n, w], strides, (n - 1) * h * w).unwrap()
    };
    let leak = |x: Vec<f32>| -> &'static [f32] { Box::leak(x.into_boxed_slice()) };
    let inputs =
        AttentionInputs::new(view(leak(q), t, d), view(leak(k), s, d), view(leak(v), s, e));
    let mut out = vec![0.0; want.len()];
    let strides = [t * h * e, e, h * e, 1].map(|x| x as isize);
    let to = ViewMut::strided(&mut out, [b, h, t, e], strides).unwrap();
    Attention::dot().mask(causal()).forward(&inputs, &to).unwrap();
    let out = View::strided(&out, [b, h, t, e], strides, 0).unwrap();
    assert_eq!(out.to_vec(), want);
    // The last axis strided too.
    let wide: Vec<f32> = problem.q.iter().flat_map(|x| [*x, 9.0]).collect();
    let q = View::strided(
        &wide,
        [b, h, t, d],
        [h * t * d * 2, t * d * 2, d * 2, 2].map(|x| x as isize),
        0,
    );
    let inputs = AttentionInputs { q: q.unwrap(), ..problem.inputs() };
    let mut again = vec![0.0; want.len()];
    problem.fast.forward(&inputs, &ViewMut::new(&mut again, [b, h, t, e]).unwrap()).unwrap();
    assert_eq!(again, want);
}

#[test]
fn bad_input_is_named() {
    let data = vec![0.0; 4096];
    let view = |shape: [usize; 4]| View::new(&data, shape).unwrap();
    let try_it = |q: [usize; 4], k: [usize; 4], v: [usize; 4], attention: Attention| {
        attention.check(&AttentionInputs::new(view(q), view(k), view(v))).unwrap_err().0
    };
    let dot = Attention::dot;
    let rows = [
        (
            try_it([1, 3, 4, 8], [1, 2, 4, 8], [1, 2, 4, 8], dot()),
            "k: got Hk = 2 heads, need a divisor of the queries' H = 3",
        ),
        (
            try_it([1, 0, 4, 8], [1, 1, 4, 8], [1, 1, 4, 8], dot()),
            "q, k: got 0 and 1 heads, need at least one of each",
        ),
        (
            try_it([2, 1, 4, 8], [1, 1, 4, 8], [1, 1, 4, 8], dot()),
            "k: got batch 1, need the queries' B = 2",
        ),
        (
            try_it([1, 1, 4, 8], [1, 1, 5, 8], [1, 1, 4, 8], dot()),
            "v: got [1,1,4,E], need the keys' [1,1,5,E]",
        ),
        (
            try_it([1, 1, 4, 8], [1, 1, 4, 7], [1, 1, 4, 8], dot()),
            "k: got width 7, need the queries' D = 8 (only `general` differs)",
        ),
        (
            try_it([1, 1, 4, 8], [1, 1, 4, 8], [1, 1, 4, 8], dot().scale(f32::NAN)),
            "scale: got NaN, need a finite number",
        ),
        (
            try_it(
                [1, 1, 4, 8],
                [1, 1, 4, 8],
                [1, 1, 4, 8],
                dot().dropout(1.0, regard_kernels::rng::Stream::new(0, 0, 0)),
            ),
            "dropout: got 1, need at least 0 and below 1",
        ),
        (
            try_it(
                [1, 1, 4, 8],
                [1, 1, 4, 8],
                [1, 1, 4, 8],
                Attention::with_score(regard_kernels::attention::score::Additive),
            ),
            "params: got 0, need 1: v",
        ),
    ];
    for (got, want) in rows {
        assert_eq!(got, want);
    }
    assert!(View::new(&data, [1, 1, 4096, 2]).is_err());
    assert!(ViewMut::strided(&mut data.clone(), [1, 1, 4, 4], [0, 0, 1, 1]).is_err());
}

/// Every gradient has its shape and is zeros, written where there was something else before.
#[test]
fn sizes_of_zero_work() {
    let shapes: [Shape; 5] = [
        [1, 2, 1, 0, 5, 4, 4],
        [0, 2, 1, 3, 5, 4, 4],
        [2, 2, 1, 3, 0, 4, 4],
        [2, 2, 2, 0, 0, 4, 4],
        [0, 1, 1, 0, 0, 4, 4],
    ];
    for shape in shapes {
        let [_, _, _, t, s, ..] = shape;
        let masks = [("full", full()), ("causal", causal()), ("dense", dense(vec![true; t * s]))];
        for score in scores(shape) {
            // Relative positions want their queries to stand at keys.
            if score.0.starts_with("relative") && t > s {
                continue;
            }
            for (mask, norm) in
                masks.iter().flat_map(|m| normalizers().into_iter().map(move |n| (m, n)))
            {
                let problem = Problem::new(shape, score.clone(), mask.clone(), norm);
                let (out, saved) = problem.forward();
                let (grads, given) = problem.backward(&out, &saved);
                let lengths: Vec<_> = problem.params.iter().map(|(data, _)| data.len()).collect();
                let got: Vec<_> = given.params.iter().map(Vec::len).collect();
                assert_eq!(got, lengths, "{}", problem.name);
                let zero = |all: &[f32]| all.iter().all(|x| *x == 0.0);
                assert!(zero(&out), "{}", problem.name);
                assert!(grads.iter().all(|grad| zero(grad)), "{}", problem.name);
            }
        }
    }
}
