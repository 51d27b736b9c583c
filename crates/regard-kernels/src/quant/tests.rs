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

/// The values of a group of an output, and their scale.
fn group(w: &QuantizedMatrix, o: usize, g: usize) -> (Vec<i32>, f32) {
    let k = w.shape()[1];
    let at = o * k.div_ceil(GROUP) + g;
    if let Some((values, scales)) = w.to_int8_groups() {
        let row = &values[o * k..(o + 1) * k][g * GROUP..];
        return (row.iter().take(GROUP).map(|x| i32::from(*x)).collect(), scales[at].single());
    }
    let (values, scales) = w.to_int4().unwrap();
    let bytes = &values[at * 16..at * 16 + 16];
    let low = bytes.iter().map(|b| i32::from(b & 15) - 8);
    let high = bytes.iter().map(|b| i32::from(b >> 4) - 8);
    (low.chain(high).collect(), scales[at].single())
}

/// The definition, one element at a time, in the order of the module's documentation.
fn reference(x: &Activations, w: &QuantizedMatrix, bias: &[f32]) -> Vec<f32> {
    let ([m, k], [n, _]) = (x.shape(), w.shape());
    if w.bits() == Bits::Bf16 {
        let weights = floats_of(w);
        let mut y = vec![];
        for (r, o) in (0..m).flat_map(|r| (0..n).map(move |o| (r, o))) {
            let x: Vec<f32> = x.halves(r).iter().map(|x| x.single()).collect();
            let pairs = x.chunks(2).zip(weights[o * k..(o + 1) * k].chunks(2));
            let sum = pairs.fold(0f32, |sum, (x, w)| {
                let sum = if x.len() == 2 { sum + x[1] * w[1] } else { sum };
                sum + x[0] * w[0]
            });
            y.push(sum + bias[o]);
        }
        return y;
    }
    let dot = |r: usize, q: &[i32]| -> i32 {
        x.values(r).iter().zip(q).map(|(x, w)| i32::from(*x) * w).sum()
    };
    let mut y = vec![];
    for r in 0..m {
        for o in 0..n {
            let sum = match w.bits() {
                Bits::Bf16 => unreachable!("see above"),
                Bits::Int8 => {
                    let (values, scales) = w.to_int8().unwrap();
                    let q: Vec<i32> =
                        values[o * k..(o + 1) * k].iter().map(|x| i32::from(*x)).collect();
                    dot(r, &q) as f32 * scales[o]
                }
                Bits::Int8Groups | Bits::Int4 => {
                    let groups = k.div_ceil(GROUP);
                    let mut total = 0f32;
                    for g in 0..groups {
                        let (q, scale) = group(w, o, g);
                        let from = g * GROUP;
                        let x = &x.values(r)[from..(from + GROUP).min(k)];
                        let sum: i32 = x.iter().zip(&q).map(|(x, w)| i32::from(*x) * w).sum();
                        total += sum as f32 * scale;
                    }
                    total
                }
            };
            y.push(sum * x.scale(r) + bias[o]);
        }
    }
    y
}

/// All weights, row by row.
fn floats_of(w: &QuantizedMatrix) -> Vec<f32> {
    let [n, k] = w.shape();
    let mut all = vec![f32::NAN; n * k];
    w.rows(&(0..n).collect::<Vec<_>>(), &mut all);
    all
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
            let x = Activations::of(bits, Matrix::new(&x, m, k).unwrap()).unwrap();
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

/// −128 is in no matrix that is quantised here, but may be in a file.
#[test]
fn the_lowest_value_of_a_group_is_exact_everywhere() {
    let (n, k) = (19, 70);
    let half = F16::from_single(-0.5);
    for value in [-128i8, 127] {
        let w = QuantizedMatrix::from_int8_groups([n, k], &vec![value; n * k], &vec![half; n * 3])
            .unwrap();
        for sign in [1.0, -1.0] {
            for m in [1, 3, 9] {
                let x = Activations::new(Matrix::new(&vec![sign; m * k], m, k).unwrap()).unwrap();
                let want = bits_of(&reference(&x, &w, &vec![0.0; n]));
                for isa in IntIsa::ALL.into_iter().filter(|isa| isa.available()) {
                    let mut y = vec![f32::NAN; m * n];
                    let c = MatrixMut::new(&mut y, m, n).unwrap();
                    product_on(isa, &x, &w, c, Epilogue::default()).unwrap();
                    assert!(bits_of(&y) == want, "{value} {sign} {m} {}", isa.name());
                    let near = f32::from(value) * -0.5 * sign * k as f32;
                    assert!((y[0] - near).abs() < 1e-3 * near.abs(), "{} {near}", y[0]);
                }
            }
        }
    }
}

#[test]
fn a_product_is_near_that_of_floats() {
    let bounds = [(Bits::Bf16, 0.005), (Bits::Int8, 0.02), (Bits::Int8Groups, 0.015)];
    for (bits, bound) in bounds.into_iter().chain([(Bits::Int4, 0.15)]) {
        let (m, n, k) = (5, 40, 256);
        let (w, quantized) = matrix(bits, [n, k], 3);
        let x = floats(4, m * k);
        let a = Activations::of(bits, Matrix::new(&x, m, k).unwrap()).unwrap();
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
            let a = Activations::of(bits, Matrix::new(x, m, k).unwrap()).unwrap();
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
    let (_, w8) = matrix(Bits::Int8Groups, shape, 1);
    let (bytes, halves8) = w8.to_int8_groups().unwrap();
    let again8 = QuantizedMatrix::from_int8_groups(shape, &bytes, &halves8).unwrap();
    assert_eq!(again8.to_int8_groups(), Some((bytes, halves8)));
    let (_, w4) = matrix(Bits::Int4, shape, 1);
    let (nibbles, halves) = w4.to_int4().unwrap();
    let again4 = QuantizedMatrix::from_int4(shape, &nibbles, &halves).unwrap();
    for (a, b) in [(&w, &again), (&w8, &again8), (&w4, &again4)] {
        assert_eq!(floats_of(a), floats_of(b));
        let kinds = (a.to_int8().is_some(), a.to_int8_groups().is_some(), a.to_int4().is_some());
        let is = |bits| a.bits() == bits;
        assert_eq!(kinds, (is(Bits::Int8), is(Bits::Int8Groups), is(Bits::Int4)));
    }
    let scale = 1.0 / 3.0;
    let row = |x: &[i8]| QuantizedMatrix::from_int8([1, 2], x, &[scale]);
    assert!(row(&[1, -128]).is_err() && row(&[1]).is_err());
    assert!(QuantizedMatrix::from_int8([1, 1], &[1], &[f32::NAN]).is_err());
    assert!(QuantizedMatrix::new(Bits::Int8, [1, 2], &|_, to| to.fill(f32::NAN)).is_err());
    assert!(QuantizedMatrix::new(Bits::Int4, [1, MOST_INPUTS + 1], &|_, _| {}).is_err());
    let half = F16::from_single(0.5);
    let groups = |x: &[i8], s: &[F16]| QuantizedMatrix::from_int8_groups([1, 33], x, s);
    assert!(groups(&[-128; 33], &[half; 2]).is_ok());
    assert!(groups(&[1; 33], &[half]).is_err() && groups(&[1; 32], &[half; 2]).is_err());
    let infinite = F16::from_single(f32::INFINITY);
    let error = groups(&[1; 33], &[half, infinite]).unwrap_err().to_string();
    assert!(error.contains("a scale of int8-groups is inf"), "{error}");
}

#[test]
fn a_matrix_takes_as_many_bits_a_weight_as_it_says() {
    let count = 768 * 768;
    let bytes = |bits| matrix(bits, [768, 768], 1).1.bytes();
    assert_eq!(bytes(Bits::Bf16), count * 2);
    assert_eq!(bytes(Bits::Int8), count + 768 * 4);
    assert_eq!(bytes(Bits::Int8Groups), count + count / 32 * 2);
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

#[test]
fn parts_and_joined_matrices_have_the_outputs_of_the_whole() {
    for bits in Bits::ALL {
        let k = 45;
        let (_, whole) = matrix(bits, [50, k], 3);
        let all = floats_of(&whole);
        let parts = [0..16, 16..16, 16..33, 33..50].map(|rows: std::ops::Range<usize>| {
            let part = whole.part(rows.clone());
            assert_eq!((part.bits(), part.shape()), (bits, [rows.len(), k]));
            assert_eq!(floats_of(&part), all[rows.start * k..rows.end * k], "{bits:?} {rows:?}");
            part
        });
        let joined = QuantizedMatrix::concat(&parts.each_ref()).unwrap();
        assert_eq!(joined.shape(), [50, k]);
        assert_eq!(floats_of(&joined), all, "{bits:?}");
        let (_, other) = matrix(bits, [2, k + 1], 3);
        assert!(QuantizedMatrix::concat(&[&whole, &other]).is_err());
        assert!(QuantizedMatrix::concat(&[]).is_err());
    }
    let (_, one) = matrix(Bits::Int8, [2, 32], 3);
    let (_, other) = matrix(Bits::Int8Groups, [2, 32], 3);
    assert!(QuantizedMatrix::concat(&[&one, &other]).is_err());
}

/// Blocks of GGUF, written by hand: a scale of 0.5, values from its description.
#[test]
fn blocks_hold_what_gguf_says() {
    let mut q8 = vec![0x00, 0x38];
    q8.extend((0..32).map(|i| (i * 8 - 128) as i8 as u8));
    let mut q4 = vec![0x00, 0x38];
    q4.extend((0..16).map(|i| i | (15 - i) << 4));
    let want8: Vec<f32> = (0..32).map(|i| 0.5 * (i as f32 * 8.0 - 128.0)).collect();
    let low = (0..16).map(|i| 0.5 * (i as f32 - 8.0));
    let want4: Vec<f32> = low.chain((0..16).map(|i| 0.5 * (7.0 - i as f32))).collect();
    for (bits, block, want) in [(Bits::Int8Groups, q8, want8), (Bits::Int4, q4, want4)] {
        let w = QuantizedMatrix::from_blocks(bits, [1, 32], &|_| &block).unwrap();
        assert_eq!(floats_of(&w), want, "{bits:?}");
        let mut back = vec![0; w.row_block_bytes().unwrap()];
        w.row_blocks(0, &mut back);
        assert_eq!(back, block, "{bits:?}");
    }
}

#[test]
fn blocks_go_in_and_out_unchanged() {
    for bits in [Bits::Int8Groups, Bits::Int4] {
        let each = bits.block_bytes().unwrap();
        for [n, groups] in [[1, 1], [16, 2], [17, 3], [40, 1]] {
            // Any bytes, of which those of scales are finite.
            let mut bytes: Vec<u8> =
                floats(9, n * groups * each).iter().map(|x| (x.abs() * 1e6) as u32 as u8).collect();
            bytes.chunks_mut(each).for_each(|block| block[1] &= 0xbf);
            // Rows in another order, as a reader of permuted ones asks for them.
            let row = |o: usize| &bytes[(n - 1 - o) * groups * each..][..groups * each];
            let w = QuantizedMatrix::from_blocks(bits, [n, groups * 32], &row).unwrap();
            for o in 0..n {
                let mut back = vec![0; groups * each];
                w.row_blocks(o, &mut back);
                assert_eq!(back, row(o), "{bits:?} {n} {groups} {o}");
            }
        }
    }
}

#[test]
fn blocks_that_do_not_fit_are_refused() {
    let zeros = [0u8; 68];
    let make = |bits, shape, bytes: usize| {
        QuantizedMatrix::from_blocks(bits, shape, &|_| &zeros[..bytes])
            .map_err(|error| error.to_string())
    };
    assert!(make(Bits::Int8Groups, [2, 64], 68).is_ok());
    for (bits, shape, bytes, what) in [
        (Bits::Int8Groups, [2, 64], 67, "output 0 of 64 inputs has 67 bytes"),
        (Bits::Int4, [2, 64], 34, "need 36"),
        (Bits::Int8Groups, [2, 33], 68, "blocks of 32 inputs"),
        (Bits::Int8, [2, 64], 64, "blocks of 32 inputs"),
        (Bits::Int4, [2, 0], 0, "1 to 65536 inputs"),
    ] {
        let error = make(bits, shape, bytes).unwrap_err();
        assert!(error.contains(what), "{error}");
    }
    for scale in [0x7c00u16, 0xfc00, 0x7e00] {
        for bits in [Bits::Int8Groups, Bits::Int4] {
            let mut block = vec![0; bits.block_bytes().unwrap()];
            block[..2].copy_from_slice(&scale.to_le_bytes());
            let error = QuantizedMatrix::from_blocks(bits, [1, 32], &|_| &block).unwrap_err();
            assert!(error.to_string().contains("a scale of output 0"), "{error}");
        }
    }
    let (_, odd) = matrix(Bits::Int4, [2, 33], 1);
    let (_, whole) = matrix(Bits::Int8, [2, 32], 1);
    assert_eq!((odd.row_block_bytes(), whole.row_block_bytes()), (None, None));
}

/// Scales in half precision have few digits when small, and an end when large.
#[test]
fn groups_of_any_size_are_quantised_to_the_nearest() {
    for exponent in -20..=22 {
        for fraction in [1.0, 1.3, 1.9] {
            let size = 2f32.powi(exponent) * fraction;
            let row = |_: usize, to: &mut [f32]| {
                to.iter_mut().enumerate().for_each(|(i, x)| *x = size * (i as f32 / 31.0 - 0.4));
            };
            let w = QuantizedMatrix::new(Bits::Int8Groups, [1, 32], &row).unwrap();
            let (mut want, got) = (vec![0.0; 32], floats_of(&w));
            row(0, &mut want);
            let scale = w.to_int8_groups().unwrap().1[0].single();
            assert!(scale >= 0.6 * size / 127.6, "{size:e}: {scale:e}");
            let step = scale.max(2f32.powi(-24));
            let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 0.501 * step;
            assert!(want.iter().zip(&got).all(near), "{size:e}: {got:?}");
        }
    }
    let of = |bits, x: f32| QuantizedMatrix::new(bits, [1, 32], &|_, to: &mut [f32]| to.fill(x));
    for (bits, largest) in [(Bits::Int8Groups, 127.0 * 65_504.0), (Bits::Int4, 8.0 * 65_504.0)] {
        assert_eq!(floats_of(&of(bits, -largest).unwrap())[0], -largest, "{bits:?}");
        let error = of(bits, largest * 1.01).unwrap_err().to_string();
        assert!(error.contains(bits.name()) && error.contains("row 0"), "{error}");
        assert_eq!(floats_of(&of(bits, 1e-30).unwrap())[0], 0.0);
    }
}

#[test]
fn numbers_are_rounded_to_16_bits_as_they_should() {
    let of = |x: f32| bf16::round(x).single();
    for x in [0.0, -0.0, 1.0, -1.5, f32::INFINITY, f32::NEG_INFINITY, bf16::LARGEST] {
        assert_eq!(of(x).to_bits(), x.to_bits(), "{x}");
    }
    assert!(of(f32::NAN).is_nan() && of(f32::from_bits(0x7f80_0001)).is_nan());
    // Halfway, to the even one; a little more, up.
    assert_eq!(of(1.0 + 1.0 / 256.0), 1.0);
    assert_eq!(of(1.0 + 3.0 / 256.0), 1.0 + 4.0 / 256.0);
    assert_eq!(of(1.0 + 1.001 / 256.0), 1.0 + 2.0 / 256.0);
    assert_eq!(of(f32::MAX), f32::INFINITY);
    // The smallest normal number, and one below it.
    assert_eq!(of(f32::MIN_POSITIVE), f32::MIN_POSITIVE);
    assert_eq!(of(-f32::MIN_POSITIVE / 2.0).to_bits(), (-0f32).to_bits());
    for x in floats(5, 10_000) {
        assert!((of(x) - x).abs() <= x.abs() / 256.0 && of(of(x)) == of(x), "{x}");
    }
}

/// Sums that are rounded at every step, with cancellation, many magnitudes and many inputs.
#[test]
fn sums_of_16_bits_are_those_of_the_definition() {
    let (m, n, k) = (10, 33, 3001);
    let spread = |seed: u32, count: usize| -> Vec<f32> {
        let (x, e) = (floats(seed, count), floats(seed + 1, count));
        x.iter().zip(e).map(|(x, e)| x * 2f32.powi((e * 12.0) as i32)).collect()
    };
    let (x, weights) = (spread(1, m * k), spread(3, n * k));
    let rows = |o: usize, to: &mut [f32]| to.copy_from_slice(&weights[o * k..(o + 1) * k]);
    let w = QuantizedMatrix::new(Bits::Bf16, [n, k], &rows).unwrap();
    let x = Activations::of(Bits::Bf16, Matrix::new(&x, m, k).unwrap()).unwrap();
    let want = bits_of(&reference(&x, &w, &vec![0.0; n]));
    for isa in IntIsa::ALL.into_iter().filter(|isa| isa.available()) {
        let mut y = vec![f32::NAN; m * n];
        let c = MatrixMut::new(&mut y, m, n).unwrap();
        product_on(isa, &x, &w, c, Epilogue::default()).unwrap();
        assert!(bits_of(&y) == want, "{}", isa.name());
    }
}

#[test]
fn activations_of_another_kind_are_refused() {
    let x = [1.0; 8];
    for bits in Bits::ALL {
        let (_, w) = matrix(bits, [3, 8], 1);
        let other = if bits == Bits::Bf16 { Bits::Int8 } else { Bits::Bf16 };
        let x = Activations::of(other, Matrix::new(&x, 1, 8).unwrap()).unwrap();
        let mut y = [0.0; 3];
        let c = MatrixMut::new(&mut y, 1, 3).unwrap();
        let error = product(&x, &w, c, Epilogue::default()).unwrap_err().to_string();
        assert!(error.contains(bits.name()), "{error}");
    }
}

/// Times of products of many rows with weights of 16 bits: `--ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn time_products_of_16_bits() {
    use crate::gemm;
    use crate::storage::{Bytes, StorageType, Stored};
    use std::time::Instant;
    for m in [1, 8, 128, 512] {
        for [n, k] in [[768, 768], [3072, 768], [768, 3072]] {
            let (w, x) = (floats(1, n * k), floats(2, m * k));
            let kinds = [Bits::Bf16, Bits::Int8].map(|bits| {
                let rows = |o: usize, to: &mut [f32]| to.copy_from_slice(&w[o * k..(o + 1) * k]);
                QuantizedMatrix::new(bits, [n, k], &rows).unwrap()
            });
            let bytes: Vec<u8> = w.iter().flat_map(|x| bf16::round(*x).0.to_le_bytes()).collect();
            let bytes = Bytes::from(bytes);
            let stored = Stored::new(StorageType::Bf16, &bytes, [n, k]).unwrap();
            let x = Matrix::new(&x, m, k).unwrap();
            let mut y = vec![0.0; m * n];
            let packed = gemm::Packed::of_columns(&[stored]).unwrap();
            let mut best = [f64::INFINITY; 4];
            let times = (200_000_000 / (m * n * k)).clamp(3, 100);
            for _ in 0..7 {
                for (way, best) in best.iter_mut().enumerate() {
                    let start = Instant::now();
                    for _ in 0..times {
                        let c = MatrixMut::new(&mut y, m, n).unwrap();
                        match way {
                            0 => gemm::product(x, &packed, c, Epilogue::default()).unwrap(),
                            3 => gemm::product(x, stored.t(), c, Epilogue::default()).unwrap(),
                            _ => {
                                let w = &kinds[way - 1];
                                let a = Activations::of(w.bits(), x).unwrap();
                                product(&a, w, c, Epilogue::default()).unwrap();
                            }
                        }
                    }
                    *best = best.min(start.elapsed().as_secs_f64() / times as f64);
                }
            }
            let rate = |s: f64| (m * n * k) as f64 / s / 1e9;
            let part = |s: f64| format!("{:.0} ({:.2}x)", rate(s), best[0] / s);
            println!(
                "{m} x [{n}, {k}], Gmac/s: f32, packed before, {}; widened {}; bf16 {}; int8 {}",
                part(best[0]),
                part(best[3]),
                part(best[1]),
                part(best[2])
            );
        }
    }
}

/// The largest products of a group, in every arrangement of signs.
#[test]
fn the_largest_sums_of_4_bits_are_exact_everywhere() {
    let (n, k) = (16, 64);
    let half = F16::from_single(0.5);
    let signs: [fn(usize) -> bool; 6] =
        [|_| true, |_| false, |i| i % 2 == 0, |i| i % 4 < 2, |i| i % 32 < 16, |i| i % 8 < 4];
    for (a, of_x) in signs.iter().enumerate() {
        for (b, of_w) in signs.iter().enumerate() {
            let nibble = |i: usize| if of_w(i) { 15 } else { 0 };
            let byte =
                |i: usize| nibble(i / 16 * 32 + i % 16) | nibble(i / 16 * 32 + i % 16 + 16) << 4;
            let row: Vec<u8> = (0..k / 2).map(byte).collect();
            let w = QuantizedMatrix::from_int4([n, k], &row.repeat(n), &[half; 32]).unwrap();
            let x: Vec<f32> = (0..3 * k).map(|i| if of_x(i) { 1.0 } else { -1.0 }).collect();
            for m in [1, 3] {
                let x = Matrix::new(&x[..m * k], m, k).unwrap();
                let x = Activations::new(x).unwrap();
                let want = bits_of(&reference(&x, &w, &[0.0; 16]));
                for isa in IntIsa::ALL.into_iter().filter(|isa| isa.available()) {
                    let mut y = vec![f32::NAN; m * n];
                    let c = MatrixMut::new(&mut y, m, n).unwrap();
                    product_on(isa, &x, &w, c, Epilogue::default()).unwrap();
                    assert!(bits_of(&y) == want, "signs {a} {b}, {m} rows, {}", isa.name());
                }
            }
        }
    }
}
