//! Attention of decoding steps against the engine, on every instruction set of this CPU.

use super::super::mask::lengths;
use super::*;
use crate::rng::Stream;
use crate::view::View;

fn numbers(n: usize, seed: u64) -> Vec<f32> {
    let stream = Stream::new(seed, 0, 0);
    (0..n as u64).map(|i| 2.0 * stream.normal(i)).collect()
}

/// Sizes, and the number of valid keys in each batch row.
fn cases() -> Vec<(Dims, Vec<i64>)> {
    let dims = |[b, h, hk, t, s, d, e]: [usize; 7]| Dims { b, h, hk, t, s, d, dk: d, e };
    vec![
        (dims([3, 8, 8, 4, 10, 32, 32]), vec![10, 7, 1]),
        (dims([2, 4, 2, 1, 33, 5, 7]), vec![33, 0]),
        (dims([1, 3, 1, 2, 129, 64, 80]), vec![129]),
        (dims([4, 1, 1, 1, 3, 1, 1]), vec![3, 2, 1, 3]),
        (dims([1, 2, 2, 1, 16, 17, 65]), vec![15]),
    ]
}

/// Instruction sets of this CPU.
fn all_isas() -> impl Iterator<Item = Isa> {
    Isa::ALL.into_iter().filter(|isa| isa.available())
}

fn run(dims: Dims, x: [&[f32]; 3], valid: &[i64]) -> Vec<f32> {
    run_on(isa(), dims, x, valid)
}

fn run_on(isa: Isa, dims: Dims, [q, k, v]: [&[f32]; 3], valid: &[i64]) -> Vec<f32> {
    let Dims { b, h, hk, t, s, d, e, .. } = dims;
    let view = |x, shape| View::new(x, shape).unwrap();
    let inputs =
        AttentionInputs::new(view(q, [b, h, t, d]), view(k, [b, hk, s, d]), view(v, [b, hk, s, e]));
    let mut out = vec![f32::NAN; b * h * t * e];
    let room = ViewMut::new(&mut out, [b, h, t, e]).unwrap();
    decode_on(isa, &inputs, Some(valid), None, &room).unwrap();
    out
}

#[test]
fn a_step_gives_what_the_engine_gives() {
    for (dims, valid) in cases() {
        let Dims { b, h, hk, t, s, d, e, .. } = dims;
        let q = numbers(b * h * t * d, 1);
        let (k, v) = (numbers(b * hk * s * d, 2), numbers(b * hk * s * e, 3));
        let view = |x, shape| View::new(x, shape).unwrap();
        let inputs = AttentionInputs::new(
            view(&q, [b, h, t, d]),
            view(&k, [b, hk, s, d]),
            view(&v, [b, hk, s, e]),
        );
        let mut want = vec![0.0; b * h * t * e];
        let room = ViewMut::new(&mut want, [b, h, t, e]).unwrap();
        let attention = Attention::dot().mask(lengths(&valid));
        attention.forward(&inputs, &room).unwrap();
        for isa in all_isas() {
            let got = run_on(isa, dims, [&q, &k, &v], &valid);
            for (got, want) in got.iter().zip(&want) {
                let near = (got - want).abs() <= 1e-5 * (1.0 + want.abs());
                assert!(near, "{got} {want} {dims:?} {}", isa.name());
            }
        }
    }
}

#[test]
fn a_row_gives_the_same_bits_alone_and_with_garbage_behind_its_keys() {
    let (dims, valid) = cases().swap_remove(0);
    let Dims { b, h, hk, t, s, d, e, .. } = dims;
    let q = numbers(b * h * t * d, 1);
    let (mut k, mut v) = (numbers(b * hk * s * d, 2), numbers(b * hk * s * e, 3));
    let all = run(dims, [&q, &k, &v], &valid);
    for (row, n) in valid.iter().enumerate() {
        for head in 0..hk {
            for key in *n as usize..s {
                let at = ((row * hk + head) * s + key) * d;
                k[at..at + d].fill(f32::NAN);
                v[at..at + d].fill(f32::INFINITY);
            }
        }
    }
    for (row, n) in valid.iter().enumerate() {
        let part = |x: &[f32], n: usize| x[row * n..(row + 1) * n].to_vec();
        let one = Dims { b: 1, ..dims };
        let (q, k, v) = (part(&q, h * t * d), part(&k, hk * s * d), part(&v, hk * s * e));
        let got = run(one, [&q, &k, &v], &[*n]);
        let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&got), bits(&all[row * h * t * e..(row + 1) * h * t * e]), "row {row}");
    }
}

#[test]
fn a_nan_reaches_the_rows_that_attend_to_it_and_no_other() {
    let dims = Dims { b: 2, h: 1, hk: 1, t: 1, s: 5, d: 4, dk: 4, e: 4 };
    let (q, mut k, v) = (numbers(8, 1), numbers(40, 2), numbers(40, 3));
    k[2 * 4] = f32::NAN;
    let out = run(dims, [&q, &k, &v], &[5, 5]);
    assert!(out[..4].iter().all(|x| x.is_nan()) && out[4..].iter().all(|x| x.is_finite()));
    k[2 * 4] = f32::INFINITY;
    let out = run(dims, [&q, &k, &v], &[5, 5]);
    assert!(out[4..].iter().all(|x| x.is_finite()));
}

/// As in the engine: a value that is not finite counts only where its weight is not 0.
#[test]
fn a_value_without_weight_does_no_harm() {
    let dims = Dims { b: 1, h: 1, hk: 1, t: 1, s: 3, d: 1, dk: 1, e: 21 };
    let mut v = numbers(63, 3);
    for bad in [f32::NAN, f32::INFINITY] {
        v[21..42].fill(bad);
        for isa in all_isas() {
            // The second key is 200 below the others, so that its weight is exactly 0.
            let out = run_on(isa, dims, [&[1.0], &[100.0, -100.0, 100.0], &v], &[3]);
            for (c, got) in out.iter().enumerate() {
                let want = (v[c] + v[42 + c]) / 2.0;
                assert!((got - want).abs() < 1e-5, "{got} {want} {}", isa.name());
            }
            let out = run_on(isa, dims, [&[1.0], &[100.0, 100.0, 100.0], &v], &[3]);
            assert!(out.iter().all(|x| !x.is_finite()), "{out:?}");
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let x = numbers(24, 1);
    let view = |shape| View::new(&x, shape).unwrap();
    let inputs = AttentionInputs::new(view([2, 1, 1, 4]), view([2, 1, 3, 4]), view([2, 1, 3, 4]));
    let mut out = vec![0.0; 8];
    let room = ViewMut::new(&mut out, [2, 1, 1, 4]).unwrap();
    for bad in [vec![3], vec![3, 4], vec![-1, 3]] {
        assert!(decode(&inputs, Some(&bad), None, &room).is_err(), "{bad:?}");
    }
    assert!(decode(&inputs, Some(&[3, 0]), None, &room).is_ok());
}

/// Pages with keys and values, and the queries of a window over them, against the engine.
#[test]
fn pages_give_what_the_engine_gives() {
    use super::super::mask::{causal, window};
    use super::super::pages::{CacheType, KeyOrValue, Page, PageShape};
    use super::super::score::SoftCap;
    use super::paged::{PagedOptions, PagedQuery, decode_pages_on};
    for (heads, few, width, keys, last, cap) in [
        (4, 2, 16, 200, 200, None),
        (3, 1, 7, 65, 30, Some(1.5)),
        (6, 2, 64, 130, 70, None),
        (1, 1, 80, 5, 3, Some(4.0)),
    ] {
        let shape = PageShape { heads: few, width };
        let (q, both) = (numbers(heads * keys * width, 1), numbers(keys * shape.floats(), 2));
        for (kind, tolerance) in CacheType::ALL.into_iter().zip([1e-5, 1e-5, 1e-5]) {
            let mut pages = vec![];
            for (at, both) in both.chunks(shape.floats()).enumerate() {
                if at % Page::POSITIONS == 0 {
                    pages.push(Page::new(kind, shape));
                }
                pages.last_mut().unwrap().write(at % Page::POSITIONS, both).unwrap();
            }
            // The engine sees what the pages hold.
            let all = |which| {
                let mut x = vec![0.0; few * keys * width];
                for (head, x) in x.chunks_mut(keys * width).enumerate() {
                    let parts = x.chunks_mut(Page::POSITIONS * width).zip(&pages);
                    parts.for_each(|(x, page)| page.read(head, which, x).unwrap());
                }
                x
            };
            let (k, v) = (all(KeyOrValue::Key), all(KeyOrValue::Value));
            let strides = [keys * heads * width, width, heads * width, 1].map(|x| x as isize);
            let q4 = View::strided(&q, [1, heads, keys, width], strides, 0).unwrap();
            let kv = |x| View::new(x, [1, few, keys, width]).unwrap();
            let mut want = vec![0.0; heads * keys * width];
            let room = ViewMut::strided(&mut want, [1, heads, keys, width], strides).unwrap();
            let attention = match cap {
                Some(cap) => Attention::with_score(SoftCap { cap }),
                None => Attention::dot(),
            };
            let attention = Attention { mask: causal() & window(last - 1, 0), ..attention };
            attention.forward(&AttentionInputs::new(q4, kv(&k), kv(&v)), &room).unwrap();
            let pages: Vec<&Page> = pages.iter().collect();
            let query = |i: usize| PagedQuery {
                q: &q[i * heads * width..][..heads * width],
                pages: &pages,
                keys: (i + 1usize).saturating_sub(last)..i + 1,
            };
            let queries: Vec<PagedQuery> = (0..keys).map(query).collect();
            let options = PagedOptions { heads, scale: None, cap };
            for isa in all_isas() {
                let mut got = vec![f32::NAN; want.len()];
                decode_pages_on(isa, &queries, options, &mut got).unwrap();
                for (got, want) in got.iter().zip(&want) {
                    let near = (got - want).abs() <= tolerance * (1.0 + want.abs());
                    assert!(near, "{got} {want} {kind:?} {} {keys}", isa.name());
                }
                let mut one = vec![f32::NAN; heads * width];
                decode_pages_on(isa, &queries[keys - 1..], options, &mut one).unwrap();
                assert_eq!(one, got[(keys - 1) * heads * width..]);
            }
        }
    }
}
