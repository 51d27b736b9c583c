use super::*;
use crate::gemm::{Epilogue, Matrix, MatrixMut};
use crate::ops::activation::Activation;
use crate::simd::IntIsa;

/// Floats with some large ones, from a seed.
fn floats(seed: u32, count: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(747_796_405).wrapping_add(1);
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as f32 / u32::MAX as f32 * 2.0 - 1.0
    };
    (0..count).map(|i| if i % 37 == 5 { 4.0 * next() } else { next() }).collect()
}

fn matrix(bits: Bits, [n, k]: [usize; 2], seed: u32) -> (Vec<f32>, QuantizedMatrix) {
    let w = floats(seed, n * k);
    let rows = |o: usize, to: &mut [f32]| to.copy_from_slice(&w[o * k..(o + 1) * k]);
    let quantized = QuantizedMatrix::new(bits, [n, k], &rows).unwrap();
    (w, quantized)
}

/// The definition, one element at a time, in the order of the module's documentation.
fn reference(x: &Activations, w: &QuantizedMatrix, bias: &[f32]) -> Vec<f32> {
    let ([m, k], [n, _]) = (x.shape(), w.shape());
    let dot = |r: usize, q: &[i32]| -> i32 {
        x.values(r).iter().zip(q).map(|(x, w)| i32::from(*x) * w).sum()
    };
    let mut y = vec![];
    for r in 0..m {
        for o in 0..n {
            let sum = match w.bits() {
                Bits::Int8 => {
                    let (values, scales) = w.to_int8().unwrap();
                    let q: Vec<i32> =
                        values[o * k..(o + 1) * k].iter().map(|x| i32::from(*x)).collect();
                    dot(r, &q) as f32 * scales[o]
                }
                Bits::Int4 => {
                    let (values, scales) = w.to_int4().unwrap();
                    let groups = k.div_ceil(GROUP);
                    let mut total = 0f32;
                    for g in 0..groups {
                        let at = o * groups + g;
                        let bytes = &values[at * 16..at * 16 + 16];
                        let low = bytes.iter().map(|b| i32::from(b & 15) - 8);
                        let high = bytes.iter().map(|b| i32::from(b >> 4) - 8);
                        let q: Vec<i32> = low.chain(high).collect();
                        let from = g * GROUP;
                        let x = &x.values(r)[from..(from + GROUP).min(k)];
                        let sum: i32 = x.iter().zip(&q).map(|(x, w)| i32::from(*x) * w).sum();
                        total += sum as f32 * scales[at].single();
                    }
                    total
                }
            };
            y.push(sum * x.scale(r) + bias[o]);
        }
    }
    y
}

fn bits_of(y: &[f32]) -> Vec<u32> {
    y.iter().map(|y| y.to_bits()).collect()
}

#[test]
fn every_instruction_set_gives_the_bits_of_the_definition() {
    let sets: Vec<IntIsa> = IntIsa::ALL.into_iter().filter(|isa| isa.available()).collect();
    for bits in Bits::ALL {
        for (m, n, k) in [
            (1, 1, 1),
            (1, 16, 4),
            (2, 17, 31),
            (3, 33, 32),
            (4, 50, 65),
            (9, 31, 130),
            (21, 70, 96),
        ] {
            let (_, w) = matrix(bits, [n, k], (m * n * k) as u32);
            let (x, bias) = (floats(7, m * k), floats(8, n));
            let x = Activations::new(Matrix::new(&x, m, k).unwrap()).unwrap();
            let want = bits_of(&reference(&x, &w, &bias));
            for isa in &sets {
                let mut y = vec![f32::NAN; m * n];
                let epilogue = Epilogue { bias: Some(&bias), ..Epilogue::default() };
                let c = MatrixMut::new(&mut y, m, n).unwrap();
                product_on(*isa, &x, &w, c, epilogue).unwrap();
                assert!(bits_of(&y) == want, "{bits:?} {m} {n} {k} {}", isa.name());
            }
        }
    }
}

#[test]
fn the_largest_sums_do_not_overflow_or_saturate() {
    let (n, k) = (16, MOST_INPUTS);
    for sign in [1.0, -1.0] {
        let w = QuantizedMatrix::new(Bits::Int8, [n, k], &|_, to| to.fill(sign)).unwrap();
        let x = vec![2.0; k];
        let x = Activations::new(Matrix::new(&x, 1, k).unwrap()).unwrap();
        for isa in IntIsa::ALL.into_iter().filter(|isa| isa.available()) {
            let mut y = vec![0.0; n];
            let c = MatrixMut::new(&mut y, 1, n).unwrap();
            product_on(isa, &x, &w, c, Epilogue::default()).unwrap();
            let want = (127.0 * 127.0 * k as f32 * sign) * (1.0 / 127.0) * (2.0 / 127.0);
            assert!(y.iter().all(|y| *y == want), "{} {} {want}", isa.name(), y[0]);
        }
    }
}

#[test]
fn a_product_is_near_that_of_floats() {
    for (bits, bound) in [(Bits::Int8, 0.02), (Bits::Int4, 0.15)] {
        let (m, n, k) = (5, 40, 256);
        let (w, quantized) = matrix(bits, [n, k], 3);
        let x = floats(4, m * k);
        let a = Activations::new(Matrix::new(&x, m, k).unwrap()).unwrap();
        let mut y = vec![0.0; m * n];
        product(&a, &quantized, MatrixMut::new(&mut y, m, n).unwrap(), Epilogue::default())
            .unwrap();
        let (mut error, mut size) = (0f64, 0f64);
        for r in 0..m {
            for o in 0..n {
                let pair = |i: usize| f64::from(x[r * k + i]) * f64::from(w[o * k + i]);
                let want: f64 = (0..k).map(pair).sum();
                error += (f64::from(y[r * n + o]) - want).powi(2);
                size += want * want;
            }
        }
        assert!((error / size).sqrt() < bound, "{bits:?} {}", (error / size).sqrt());
    }
}

#[test]
fn rows_do_not_depend_on_their_neighbours() {
    for bits in Bits::ALL {
        let (n, k) = (100, 72);
        let (_, w) = matrix(bits, [n, k], 1);
        let mut x = floats(2, 40 * k);
        // One row that is not finite.
        x[3 * k + 5] = f32::NAN;
        x[9 * k] = f32::INFINITY;
        let run = |x: &[f32]| {
            let m = x.len() / k;
            let a = Activations::new(Matrix::new(x, m, k).unwrap()).unwrap();
            let mut y = vec![0.0; m * n];
            let epilogue = Epilogue { activation: Activation::Gelu, ..Epilogue::default() };
            product(&a, &w, MatrixMut::new(&mut y, m, n).unwrap(), epilogue).unwrap();
            y
        };
        let all = run(&x);
        for r in 0..40 {
            let alone = run(&x[r * k..(r + 1) * k]);
            let row = &all[r * n..(r + 1) * n];
            let bad = r == 3 || r == 9;
            assert!(row.iter().all(|y| y.is_nan() == bad), "{bits:?} row {r}");
            assert!(bad || bits_of(&alone) == bits_of(row), "{bits:?} row {r}");
        }
    }
}

#[test]
fn values_and_scales_go_out_and_in() {
    let shape = [37, 45];
    let (_, w) = matrix(Bits::Int8, shape, 1);
    let (values, scales) = w.to_int8().unwrap();
    let again = QuantizedMatrix::from_int8(shape, &values, &scales).unwrap();
    let (_, w4) = matrix(Bits::Int4, shape, 1);
    let (nibbles, halves) = w4.to_int4().unwrap();
    let again4 = QuantizedMatrix::from_int4(shape, &nibbles, &halves).unwrap();
    for (a, b) in [(&w, &again), (&w4, &again4)] {
        for o in 0..shape[0] {
            let (mut left, mut right) = (vec![0.0; shape[1]], vec![1.0; shape[1]]);
            a.row(o, &mut left);
            b.row(o, &mut right);
            assert_eq!(left, right);
        }
    }
    let scale = 1.0 / 3.0;
    let row = |x: &[i8]| QuantizedMatrix::from_int8([1, 2], x, &[scale]);
    assert!(row(&[1, -128]).is_err() && row(&[1]).is_err());
    assert!(QuantizedMatrix::from_int8([1, 1], &[1], &[f32::NAN]).is_err());
    assert!(QuantizedMatrix::new(Bits::Int8, [1, 2], &|_, to| to.fill(f32::NAN)).is_err());
    assert!(QuantizedMatrix::new(Bits::Int4, [1, MOST_INPUTS + 1], &|_, _| {}).is_err());
}

#[test]
fn a_matrix_takes_a_byte_or_four_and_a_half_bits_a_weight() {
    let count = 768 * 768;
    let bytes = |bits| matrix(bits, [768, 768], 1).1.bytes();
    assert_eq!(bytes(Bits::Int8), count + 768 * 4);
    assert_eq!(bytes(Bits::Int4), count / 2 + count / 32 * 2);
}

#[test]
fn many_rows_are_those_one_by_one() {
    for bits in Bits::ALL {
        for [outputs, inputs] in [[1, 1], [17, 33], [40, 70], [70, 512]] {
            let weight = |o: usize, i: usize| ((o * 31 + i * 7) % 23) as f32 - 11.0;
            let matrix = QuantizedMatrix::new(bits, [outputs, inputs], &|o, to: &mut [f32]| {
                to.iter_mut().enumerate().for_each(|(i, x)| *x = weight(o, i));
            })
            .unwrap();
            let ids: Vec<usize> = (0..3 * outputs).map(|i| i * 7 % outputs).collect();
            let mut all = vec![f32::NAN; ids.len() * inputs];
            matrix.rows(&ids, &mut all);
            for (id, got) in ids.iter().zip(all.chunks_exact(inputs)) {
                let mut want = vec![f32::NAN; inputs];
                matrix.row(*id, &mut want);
                assert_eq!(got, want, "{bits:?} {outputs} {inputs} {id}");
                // Up to 11 in absolute value, in steps of 11/127, or 11/8 from −8 to 7.
                let near = |(i, x): (usize, &f32)| (x - weight(*id, i)).abs() < 1.5;
                assert!(got.iter().enumerate().all(near), "{bits:?} {outputs} {inputs} {id}");
            }
        }
    }
}
