//! Against a slow recurrence in double precision, and numerical derivatives.

use super::*;
use crate::ops::testing::{close, numeric, random, wave, wide};

/// All inputs of a layer, in double precision: x, h, c, W_ih, W_hh, b_ih, b_hh.
type All = [Vec<f64>; 7];

struct Case {
    cell: Cell,
    shape: Shape,
    lengths: Option<Vec<usize>>,
    reverse: bool,
}

fn sigma(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// y, then h, then c.
fn reference(case: &Case, all: &All) -> Vec<f64> {
    let Shape { batch, steps, input, hidden } = case.shape;
    let [x, h0, c0, wi, wh, bi, bh] = all;
    let gh = case.cell.gates() * hidden;
    let mut y = vec![0.0; batch * steps * hidden];
    let (mut h_end, mut c_end) = (h0.clone(), c0.clone());
    for b in 0..batch {
        let len = case.lengths.as_ref().map_or(steps, |l| l[b]);
        let h = &mut h_end[b * hidden..(b + 1) * hidden];
        let c = &mut c_end[b * hidden..(b + 1) * hidden];
        for step in 0..len {
            let t = if case.reverse { len - 1 - step } else { step };
            let row = &x[(b * steps + t) * input..][..input];
            let dot = |w: &[f64], v: &[f64]| w.iter().zip(v).map(|(w, v)| w * v).sum::<f64>();
            let a: Vec<f64> =
                (0..gh).map(|g| dot(&wi[g * input..][..input], row) + bi[g]).collect();
            let r: Vec<f64> =
                (0..gh).map(|g| dot(&wh[g * hidden..][..hidden], h) + bh[g]).collect();
            for i in 0..hidden {
                let gate = |k: usize| a[k * hidden + i] + r[k * hidden + i];
                match case.cell {
                    Cell::Rnn => h[i] = gate(0).tanh(),
                    Cell::Gru => {
                        let (reset, z) = (sigma(gate(0)), sigma(gate(1)));
                        let n = (a[2 * hidden + i] + reset * r[2 * hidden + i]).tanh();
                        h[i] = (1.0 - z) * n + z * h[i];
                    }
                    Cell::Lstm => {
                        c[i] = sigma(gate(1)) * c[i] + sigma(gate(0)) * gate(2).tanh();
                        h[i] = sigma(gate(3)) * c[i].tanh();
                    }
                }
            }
            y[(b * steps + t) * hidden..][..hidden].copy_from_slice(h);
        }
    }
    if case.cell != Cell::Lstm {
        c_end.fill(0.0);
    }
    [y, h_end, c_end].concat()
}

fn check(case: Case) {
    let Shape { batch, steps, input, hidden } = case.shape;
    let gh = case.cell.gates() * hidden;
    let sizes =
        [batch * steps * input, batch * hidden, batch * hidden, gh * input, gh * hidden, gh, gh];
    let all: [Vec<f32>; 7] = std::array::from_fn(|i| random(i as u64, sizes[i]));
    let [x, h0, c0, wi, wh, bi, bh] = &all;
    let layer = Recurrent {
        cell: case.cell,
        weights: CellWeights { input: wi, hidden: wh, input_bias: Some(bi), hidden_bias: Some(bh) },
        shape: case.shape,
        lengths: case.lengths.as_deref(),
        reverse: case.reverse,
    };
    let lstm = case.cell == Cell::Lstm;
    let start = State { h: Some(h0), c: lstm.then_some(&c0[..]) };
    let rows = batch * steps;
    // The second half of each row of 2·H belongs to another direction and must not change.
    let mut y = vec![9f32; rows * 2 * hidden];
    let (mut h, mut c) = (vec![0f32; batch * hidden], vec![0f32; batch * hidden]);
    let mut tape = Tape::default();
    let strides = [2 * hidden as isize, 1];
    let out = MatrixMut::strided(&mut y, [rows, hidden], strides, 0).unwrap();
    let end = StateMut { h: Some(&mut h), c: lstm.then_some(&mut c[..]) };
    layer.forward(x, start, out, end, &mut tape).unwrap();
    assert!(y.chunks(2 * hidden).all(|row| row[hidden..].iter().all(|v| *v == 9.0)));
    let y: Vec<f32> = y.chunks(2 * hidden).flat_map(|row| row[..hidden].to_vec()).collect();
    let wide_all: All = std::array::from_fn(|i| wide(&all[i]));
    let name = format!("{:?} {:?} {:?} {}", case.cell, case.shape, case.lengths, case.reverse);
    close(&name, &[y.clone(), h, c].concat(), &reference(&case, &wide_all), 1e-5);

    let d = wave(rows * hidden + 2 * batch * hidden);
    let (dy, rest) = d.split_at(rows * hidden);
    let (dh, dc) = rest.split_at(batch * hidden);
    let mut grads: [Vec<f32>; 7] = std::array::from_fn(|i| vec![7f32; sizes[i]]);
    let [gx, gh0, gc0, gwi, gwh, gbi, gbh] = &mut grads;
    let to = RecurrentGradients {
        x: Some(gx),
        input: Some(gwi),
        hidden: Some(gwh),
        input_bias: Some(gbi),
        hidden_bias: Some(gbh),
        start: StateMut { h: Some(gh0), c: lstm.then_some(gc0) },
    };
    let dend = State { h: Some(dh), c: lstm.then_some(dc) };
    let dy = Matrix::new(dy, rows, hidden).unwrap();
    layer.backward(SavedRecurrent { x, start, tape: &tape }, Some(dy), dend, to).unwrap();
    for which in 0..7 {
        if which == 2 && !lstm {
            continue;
        }
        let want = numeric(&wide_all[which], &d, |v| {
            let mut all = wide_all.clone();
            all[which] = v.to_vec();
            reference(&case, &all)
        });
        close(&format!("{name} gradient {which}"), &grads[which], &want, 1e-4);
    }
}

#[test]
fn all_cells_in_both_directions_agree_with_double_precision() {
    for cell in [Cell::Rnn, Cell::Gru, Cell::Lstm] {
        for reverse in [false, true] {
            let shape = |batch, steps, input, hidden| Shape { batch, steps, input, hidden };
            let small = shape(3, 4, 3, 5);
            check(Case { cell, shape: small, lengths: None, reverse });
            check(Case { cell, shape: small, lengths: Some(vec![4, 1, 2]), reverse });
            check(Case { cell, shape: small, lengths: Some(vec![0, 3, 0]), reverse });
            check(Case { cell, shape: shape(1, 2, 1, 1), lengths: None, reverse });
            check(Case { cell, shape: shape(2, 2, 2, 17), lengths: None, reverse });
        }
    }
}

/// A row's result must not depend on its neighbours or on what is in the padding.
#[test]
fn a_row_is_alone_bit_for_bit() {
    let shape = Shape { batch: 40, steps: 5, input: 6, hidden: 20 };
    for cell in [Cell::Rnn, Cell::Gru, Cell::Lstm] {
        let gh = cell.gates() * shape.hidden;
        let (wi, wh) = (random(1, gh * 6), random(2, gh * 20));
        let mut x = random(3, 40 * 5 * 6);
        let lengths: Vec<usize> = (0..40).map(|b| b % 6).collect();
        for (b, len) in lengths.iter().enumerate() {
            x[(b * 5 + len) * 6..(b + 1) * 5 * 6].fill(f32::NAN);
        }
        let weights = CellWeights { input: &wi, hidden: &wh, input_bias: None, hidden_bias: None };
        let run = |from: usize, to: usize| {
            let shape = Shape { batch: to - from, ..shape };
            let lengths = Some(&lengths[from..to]);
            let layer = Recurrent { cell, weights, shape, lengths, reverse: false };
            let (mut y, mut tape) = (vec![0f32; (to - from) * 5 * 20], Tape::default());
            let out = MatrixMut::new(&mut y, (to - from) * 5, 20).unwrap();
            let x = &x[from * 30..to * 30];
            let (start, end) = (State::default(), StateMut::default());
            layer.forward(x, start, out, end, &mut tape).unwrap();
            let mut dx = vec![0f32; x.len()];
            let mut dw = vec![0f32; gh * 6];
            let grads = RecurrentGradients {
                x: Some(&mut dx),
                input: Some(&mut dw),
                ..RecurrentGradients::default()
            };
            let dy = Matrix::new(&y, (to - from) * 5, 20).unwrap();
            layer
                .backward(
                    SavedRecurrent { x, start, tape: &tape },
                    Some(dy),
                    State::default(),
                    grads,
                )
                .unwrap();
            assert!(dw.iter().all(|d| d.is_finite()));
            [y, dx].concat()
        };
        let (all, some) = (run(0, 40), run(13, 17));
        assert_eq!(some[..400], all[13 * 100..17 * 100]);
        assert_eq!(some[400..], all[4000 + 13 * 30..4000 + 17 * 30]);
    }
}

#[test]
fn shapes_that_do_not_fit_are_told() {
    let weights =
        CellWeights { input: &[0.0; 8], hidden: &[0.0; 16], input_bias: None, hidden_bias: None };
    let shape = Shape { batch: 1, steps: 2, input: 2, hidden: 2 };
    let layer = Recurrent { cell: Cell::Gru, weights, shape, lengths: None, reverse: false };
    let mut y = [0f32; 4];
    let mut run = |layer: Recurrent| {
        let out = MatrixMut::new(&mut y, 2, 2).unwrap();
        let (start, end) = (State::default(), StateMut::default());
        layer.forward(&[0.0; 4], start, out, end, &mut Tape::default())
    };
    assert!(run(layer).unwrap_err().0.contains("[6, 2]"));
    let weights = CellWeights { input: &[0.0; 16], ..weights };
    let layer = Recurrent { cell: Cell::Lstm, weights, lengths: Some(&[3]), ..layer };
    assert_eq!(run(layer).unwrap_err().0, "recurrent: row 0 has length 3, but there are 2 steps");
}

/// Steps of rows, with the products beside, against the forward of whole sequences, bit for bit.
#[test]
fn steps_of_rows_are_those_of_the_sequences() {
    for cell in [Cell::Rnn, Cell::Gru, Cell::Lstm] {
        for (batch, hidden) in [(1, 1), (3, 7), (5, 33), (40, 129)] {
            let (steps, input, gh) = (4, 5, cell.gates() * hidden);
            let [x, w_input, w_hidden, b_input, b_hidden] = [
                random(1, batch * steps * input),
                random(2, gh * input),
                random(3, gh * hidden),
                random(4, gh),
                random(5, gh),
            ];
            let layer = Recurrent {
                cell,
                weights: CellWeights {
                    input: &w_input,
                    hidden: &w_hidden,
                    input_bias: Some(&b_input),
                    hidden_bias: Some(&b_hidden),
                },
                shape: Shape { batch, steps, input, hidden },
                lengths: None,
                reverse: false,
            };
            let mut want = vec![0.0; batch * steps * hidden];
            let room = MatrixMut::new(&mut want, batch * steps, hidden).unwrap();
            let mut tape = Tape::default();
            layer.forward(&x, State::default(), room, StateMut::default(), &mut tape).unwrap();
            let mut h = vec![0.0; batch * hidden];
            let mut c = vec![0.0; if cell == Cell::Lstm { batch * hidden } else { 0 }];
            for at in 0..steps {
                let now: Vec<f32> = (0..batch)
                    .flat_map(|row| x[(row * steps + at) * input..][..input].to_vec())
                    .collect();
                let gates = |x: &[f32], width, weight: &[f32], bias: &[f32]| {
                    let mut y = vec![0.0; batch * gh];
                    let weight = Matrix::new(weight, gh, width).unwrap().t();
                    let to = MatrixMut::new(&mut y, batch, gh).unwrap();
                    let rest = Epilogue { bias: Some(bias), ..Epilogue::default() };
                    product(Matrix::new(x, batch, width).unwrap(), weight, to, rest).unwrap();
                    y
                };
                let mut of_input = gates(&now, input, &w_input, &b_input);
                let of_state = gates(&h, hidden, &w_hidden, &b_hidden);
                step(cell, hidden, &mut of_input, &of_state, &mut h, &mut c).unwrap();
                for row in 0..batch {
                    let want = &want[(row * steps + at) * hidden..][..hidden];
                    let got = &h[row * hidden..][..hidden];
                    let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                    assert_eq!(bits(got), bits(want), "{cell:?} {batch} {hidden} {row} {at}");
                }
            }
            let told = step(cell, hidden, &mut [], &[], &mut h, &mut c).unwrap_err().to_string();
            assert!(told.contains("gates of 0 and 0 floats"), "{told}");
        }
    }
}
