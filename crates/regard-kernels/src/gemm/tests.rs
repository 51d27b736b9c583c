//! Products against a plain loop, on every instruction set, and their invariances bit for bit.

use super::*;
use crate::ops::activation::Activation;
use crate::rng::Stream;
use crate::storage::{StorageType, Stored, tests::matrix};

fn random(site: u64, n: usize) -> Vec<f32> {
    let stream = Stream::new(7, 0, site);
    (0..n).map(|i| stream.uniform(i as u64) * 2.0 - 1.0).collect()
}

fn each_isa(check: impl Fn(Isa)) {
    Isa::ALL.into_iter().filter(|i| i.available()).for_each(check);
}

/// `[rows, cols]` in one of several layouts: the data and the strides.
fn layout(kind: usize, rows: usize, cols: usize) -> (usize, [isize; 2]) {
    let (r, c) = (rows as isize, cols as isize);
    match kind {
        0 => (rows * cols, [c, 1]),
        1 => (rows * cols, [1, r]),
        2 => (rows * (cols + 3), [c + 3, 1]),
        _ => (2 * rows * cols, [2 * c, 2]),
    }
}

fn check(isa: Isa, [m, n, k]: [usize; 3], kinds: [usize; 3], accumulate: bool) {
    let ((a_len, a_strides), (b_len, b_strides)) = (layout(kinds[0], m, k), layout(kinds[1], k, n));
    let (a_data, b_data) = (random(1, a_len), random(2, b_len));
    let a = Matrix::strided(&a_data, [m, k], a_strides, 0).unwrap();
    let b = Matrix::strided(&b_data, [k, n], b_strides, 0).unwrap();
    let (c_len, c_strides) = layout(kinds[2], m, n);
    let before = random(3, c_len);
    let mut c_data = before.clone();
    let c = MatrixMut::strided(&mut c_data, [m, n], c_strides, 0).unwrap();
    product_on(isa, a, b.into(), c, Epilogue { accumulate, ..Default::default() }).unwrap();
    let mut touched = vec![false; c_len];
    for i in 0..m {
        for j in 0..n {
            let at = (i as isize * c_strides[0] + j as isize * c_strides[1]) as usize;
            touched[at] = true;
            let start = if accumulate { f64::from(before[at]) } else { 0.0 };
            let sum = (0..k).map(|k| f64::from(a.get(i, k)) * f64::from(b.get(k, j))).sum::<f64>();
            let (got, want) = (f64::from(c_data[at]), start + sum);
            let limit = 1e-6 * (k as f64).max(1.0).sqrt() * 2.0;
            let name = isa.name();
            assert!((got - want).abs() < limit, "{name} {m} {n} {k} {kinds:?}: {got} {want}");
        }
    }
    for (i, touched) in touched.iter().enumerate() {
        assert!(touched | (c_data[i] == before[i]), "wrote outside of the result");
    }
}

#[test]
fn products_of_every_shape_and_layout() {
    each_isa(|isa| {
        for m in [1, 2, 3, 7, 8, 17, 70, 130] {
            for n in [1, 2, 15, 16, 17, 33, 65, 150] {
                for k in [0, 1, 7, 16, 65, 300] {
                    let kinds = [(m + n) % 4, (n + k) % 4, (m + k) % 3];
                    check(isa, [m, n, k], kinds, (m + n + k) % 2 == 0);
                }
            }
        }
        for kinds in [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0], [3, 3, 2], [0, 1, 1]] {
            check(isa, [37, 41, 29], kinds, false);
            check(isa, [137, 97, 600], kinds, true);
        }
        check(isa, [300, 70, 2300], [0, 1, 0], false);
        // Few rows, with enough passes and columns for several tasks.
        for (m, kinds) in [(1, [0, 0, 0]), (5, [0, 1, 0]), (16, [2, 2, 2])] {
            check(isa, [m, 1111, 900], kinds, m == 5);
        }
        // Contiguous columns that one task reads from end to end, and ranges of at least a page.
        check(isa, [3, 4133, 390], [0, 1, 0], false);
        check(isa, [16, 300, 200], [0, 1, 0], true);
        check(isa, [2, 5000, 400], [0, 0, 0], false);
    });
}

#[test]
fn bias_activation_and_what_the_backward_needs() {
    let (m, n, k) = (19, 45, 33);
    let (a, b, bias) = (random(1, m * k), random(2, k * n), random(3, n));
    let (a, b) = (Matrix::new(&a, m, k).unwrap(), Matrix::new(&b, k, n).unwrap());
    let mut plain = vec![0f32; m * n];
    product(a, b, MatrixMut::new(&mut plain, m, n).unwrap(), Epilogue::default()).unwrap();
    for activation in Activation::ALL {
        let (mut c, mut pre, mut want) = (plain.clone(), plain.clone(), plain.clone());
        let epilogue = Epilogue {
            bias: Some(&bias),
            activation,
            pre: Some(MatrixMut::new(&mut pre, m, n).unwrap()),
            ..Default::default()
        };
        product(a, b, MatrixMut::new(&mut c, m, n).unwrap(), epilogue).unwrap();
        let sums: Vec<f32> = (0..m * n).map(|i| plain[i] + bias[i % n]).collect();
        activation.forward(&sums, &mut want).unwrap();
        assert_eq!(pre, sums);
        assert_eq!(c, want, "{activation:?}");
    }
}

/// A row's result must not depend on the number of rows, nor on the threads, nor on whether the
/// right operand was packed before.
#[test]
fn a_row_is_alone_bit_for_bit() {
    for [m, n, k] in [[200, 161, 700], [165, 50, 3300]] {
        rows_are_alone(m, n, k);
    }
}

fn rows_are_alone(m: usize, n: usize, k: usize) {
    let (a_data, b_data) = (random(1, m * k), random(2, k * n));
    let a = Matrix::new(&a_data, m, k).unwrap();
    let transposed: Vec<f32> = (0..n * k).map(|i| b_data[i % k * n + i / k]).collect();
    let b = Matrix::new(&b_data, k, n).unwrap();
    let bt = Matrix::new(&transposed, n, k).unwrap().t();
    each_isa(|isa| {
        let run = |from: usize, to: usize, b: RightOperand| {
            let mut c = vec![0f32; (to - from) * n];
            let out = MatrixMut::new(&mut c, to - from, n).unwrap();
            product_on(isa, a.slice_rows(from, to), b, out, Epilogue::default()).unwrap();
            c
        };
        let all = run(0, m, b.into());
        let packed = Packed::on(isa, Right::Matrix(b));
        for (from, to) in [(0, 1), (5, 8), (13, 29), (100, 164), (0, m)] {
            let want = &all[from * n..to * n];
            assert_eq!(run(from, to, b.into()), want, "{} {from}..{to}", isa.name());
            assert_eq!(run(from, to, bt.into()), want, "{} {from}..{to}", isa.name());
            assert_eq!(run(from, to, (&packed).into()), want, "{} {from}..{to}", isa.name());
        }
    });
}

/// A right operand in any storage type gives the same result as the same values in floats, bit for
/// bit: in both layouts, for few rows and many, whole and in parts, packed before or not.
#[test]
fn storage_changes_no_bit() {
    let shapes =
        [[1, 1, 1], [1, 37, 29], [2, 48, 16], [5, 131, 400], [16, 97, 385], [17, 50, 3300]];
    for [m, n, k] in shapes.into_iter().chain([[40, 100, 33], [130, 161, 700], [9, 1111, 390]]) {
        let a_data = random(1, m * k);
        let a = Matrix::new(&a_data, m, k).unwrap();
        for kind in StorageType::ALL {
            let (bytes, numbers) = matrix(kind, &random(2, k * n));
            // The same memory as [K, N], and as the transpose of [N, K].
            let rows = Stored::new(kind, &bytes, [k, n]).unwrap();
            let columns = Stored::new(kind, &bytes, [n, k]).unwrap().t();
            let [plain, turned] = [(k, n), (n, k)].map(|(r, c)| Matrix::new(&numbers, r, c));
            each_isa(|isa| {
                let run = |b: RightOperand, accumulate: bool| {
                    let mut c = random(3, m * n);
                    let out = MatrixMut::new(&mut c, m, n).unwrap();
                    let epilogue = Epilogue { accumulate, ..Default::default() };
                    product_on(isa, a, b, out, epilogue).unwrap();
                    c
                };
                for (b, stored) in
                    [(plain.clone().unwrap(), rows), (turned.clone().unwrap().t(), columns)]
                {
                    let packed = Packed::on(isa, stored.into());
                    for accumulate in [false, true] {
                        let want = run(b.into(), accumulate);
                        let case = format!("{} {kind:?} {m} {n} {k}", isa.name());
                        assert!(run(stored.into(), accumulate) == want, "{case}");
                        assert!(run((&packed).into(), accumulate) == want, "{case} packed");
                    }
                }
            });
            // Columns in several parts.
            let all = columns.t();
            let cuts = [0, n / 3, n / 2, n];
            let parts: Vec<Stored> = cuts.windows(2).map(|w| all.part(w[0]..w[1], 0..k)).collect();
            let mut whole = vec![0f32; m * n];
            let packed = Packed::of_columns(&parts).unwrap();
            let to = MatrixMut::new(&mut whole, m, n).unwrap();
            product(a, &packed, to, Epilogue::default()).unwrap();
            let mut want = vec![0f32; m * n];
            let to = MatrixMut::new(&mut want, m, n).unwrap();
            product(a, columns, to, Epilogue::default()).unwrap();
            assert!(whole == want, "{kind:?} {m} {n} {k} in parts");
        }
    }
}

/// Zeros on the left are skipped, without changing a bit of the result; unless they are multiplied
/// by a value that is not finite, or there are too few of them somewhere.
#[test]
fn zeros_are_skipped_bit_for_bit() {
    let [m, n, k] = [801, 70, 900];
    let (numbers, places, b, before) =
        (random(1, m * k), random(2, m * k), random(3, k * n), random(4, m * n));
    let sparse: Vec<f32> =
        numbers.iter().zip(&places).map(|(x, at)| if *at > 0.97 { *x } else { 0.0 }).collect();
    let mut dense_rows = sparse.clone();
    dense_rows[100 * k..110 * k].copy_from_slice(&numbers[100 * k..110 * k]);
    let mut not_finite = sparse.clone();
    not_finite[5 * k + 7] = f32::NAN;
    let mut bad_b = b.clone();
    bad_b[3] = f32::INFINITY;
    // Whether zeros are skipped, by rows and by columns.
    let rows = [
        (&sparse, &b, [true, true]),
        (&dense_rows, &b, [false, true]),
        (&numbers, &b, [false, false]),
        (&not_finite, &b, [true, true]),
        (&sparse, &bad_b, [false, false]),
    ];
    each_isa(|isa| {
        for (at, (a, b, skipped)) in rows.iter().enumerate() {
            let turned: Vec<f32> = (0..m * k).map(|i| a[i % m * k + i / m]).collect();
            let b = Matrix::new(b, k, n).unwrap();
            for a in [Matrix::new(a, m, k).unwrap(), Matrix::new(&turned, k, m).unwrap().t()] {
                for accumulate in [false, true] {
                    let (mut got, mut dense) = (before.clone(), before.clone());
                    let epilogue = || Epilogue { accumulate, ..Default::default() };
                    let c = MatrixMut::new(&mut got, m, n).unwrap();
                    let did = sparse::product(isa, a, b, &c, &epilogue());
                    let want = skipped[usize::from(a.col != 1)];
                    assert_eq!(did, want, "{} case {at}, by rows {}", isa.name(), a.col == 1);
                    let c = MatrixMut::new(&mut dense, m, n).unwrap();
                    let (tile, epilogue) = (tile(isa), epilogue());
                    run(&Job { isa, tile, a, b: b.into(), c: &c, epilogue: &epilogue });
                    let same = |(x, y): (&f32, &f32)| x == y || (x.is_nan() && y.is_nan());
                    let same = got.iter().zip(&dense).all(same);
                    assert!(same || !did, "{} case {at}", isa.name());
                }
            }
        }
    });
}

#[test]
fn shapes_that_do_not_fit_are_told() {
    let (a, b) = ([0f32; 6], [0f32; 8]);
    let mut c = [0f32; 8];
    let a = Matrix::new(&a, 2, 3).unwrap();
    let b = Matrix::new(&b, 2, 4).unwrap();
    let c = MatrixMut::new(&mut c, 2, 4).unwrap();
    let error = product(a, b, c, Epilogue::default()).unwrap_err();
    assert_eq!(error.0, "product: [2, 3] times [2, 4] into [2, 4]");
}

#[test]
fn the_peak_is_measured() {
    assert!(peak_gflops() > 0.1);
    assert!(read_seconds(&[1.0; 100_000]) < 1.0);
}
