//! Planned layers against the layers, bit for bit, for every storage and number of rows.

use super::*;
use crate::Init;
use crate::layers::{EmbeddingConfig, NormConfig};
use crate::ops::{QuantizedWeight, StoredMatrix, StoredRows};
use burn::tensor::{Device, Int, TensorData};
use regard_kernels::quant::Bits;
use regard_kernels::storage::StorageType;

const ROWS: [usize; 6] = [1, 2, 4, 9, 17, 1];

fn numbers(n: usize, seed: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 2654435761 + seed * 97) % 1000) as f32 / 500.0 - 1.0).collect()
}

fn tensor(rows: usize, width: usize, seed: usize) -> Tensor<2> {
    let data = TensorData::new(numbers(rows * width, seed), [rows, width]);
    Tensor::from_data(data, &Device::flex())
}

fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}

fn of(x: Tensor<2>) -> Vec<u32> {
    bits(&x.to_data().try_to_vec::<f32>().unwrap())
}

/// The weight `[i, o]` in each storage: `W` in memory is `[o, i]` but for the first.
fn weights([i, o]: [usize; 2]) -> Vec<(&'static str, Weight)> {
    let plain = Param::from_tensor(tensor(i, o, 1));
    let turned = tensor(o, i, 2);
    let half: Vec<u8> = numbers(o * i, 3)
        .iter()
        .flat_map(|x| burn::tensor::bf16::from_f32(*x).to_le_bytes())
        .collect();
    let half = StoredRows { kind: StorageType::Bf16, bytes: half.into(), rows: o };
    let stored = StoredMatrix::new(vec![half], i).unwrap().transpose();
    let quantized = |bits| QuantizedWeight::of_rows(bits, turned.clone()).unwrap();
    vec![
        ("f32", plain.into()),
        ("bf16", Weight::stored(stored)),
        ("int8", Weight::quantized(quantized(Bits::Int8).transpose())),
        ("bf16", Weight::quantized(quantized(Bits::Bf16).transpose())),
        ("int8-groups", Weight::quantized(quantized(Bits::Int8Groups).transpose())),
        ("int4", Weight::quantized(quantized(Bits::Int4).transpose())),
        (
            "int8 by inputs",
            Weight::quantized(
                QuantizedWeight::of_rows(Bits::Int8, turned.clone().transpose()).unwrap(),
            ),
        ),
    ]
}

#[test]
fn linear_layers_are_planned_bit_for_bit() {
    for shape in [[7, 5], [64, 96], [385, 49]] {
        for (name, weight) in weights(shape) {
            let bias = Some(Param::from_tensor(tensor(1, shape[1], 5).reshape([shape[1]])));
            let layer = Linear::new(weight, bias, Activation::Gelu);
            let plan = PlannedLinear::new(&layer);
            let mut y = Floats::new();
            for rows in ROWS {
                let x = numbers(rows * shape[0], rows);
                plan.forward(&x, &mut y);
                let data = TensorData::new(x, [rows, shape[0]]);
                let want = layer.forward(Tensor::<2>::from_data(data, &Device::flex()));
                assert_eq!(bits(&y), of(want), "{name} {shape:?} {rows}");
            }
        }
    }
}

#[test]
fn tables_and_their_scores_are_planned_bit_for_bit() {
    let ([v, m], device) = ([70, 48], Device::flex());
    let int8 = QuantizedWeight::of_rows(Bits::Int8, tensor(v, m, 4)).unwrap();
    let half: Vec<u8> = numbers(v * m, 3)
        .iter()
        .flat_map(|x| burn::tensor::f16::from_f32(*x).to_le_bytes())
        .collect();
    let parts = [0..30, 30..v].map(|rows| StoredRows {
        kind: StorageType::F16,
        bytes: half[rows.start * m * 2..rows.end * m * 2].to_vec().into(),
        rows: rows.len(),
    });
    let halves = StoredMatrix::new(parts.into(), m).unwrap();
    let mut embedding = EmbeddingConfig::new(v, m).init(&mut Init::new(1, &device));
    let single = embedding.table.clone();
    for table in [single, Weight::stored(halves), Weight::quantized(int8)] {
        embedding.table = table;
        let ids = [0u32, 69, 30, 29, 5];
        let mut y = Floats::new();
        PlannedTable::new(&embedding).forward(&ids, &mut y);
        let tensor = Tensor::<2, Int>::from_data(
            TensorData::new(ids.map(i64::from).to_vec(), [1, 5]),
            &device,
        );
        assert_eq!(bits(&y), of(embedding.forward(tensor).reshape([5, m])));
        let plan = PlannedLinear::scores(&embedding.table, None);
        for rows in ROWS {
            let x = numbers(rows * m, rows);
            plan.forward(&x, &mut y);
            let x = Tensor::<2>::from_data(TensorData::new(x, [rows, m]), &device);
            assert_eq!(bits(&y), of(embedding.table.scores(x, None)), "{rows}");
        }
    }
}

#[test]
fn norms_are_planned_bit_for_bit() {
    for config in [NormConfig::layer(37), NormConfig::rms(37)] {
        let norm = config.init(&mut Init::new(1, &Device::flex()));
        let plan = PlannedNorm::new(&norm);
        let (mut sum, mut y) = (Floats::new(), Floats::new());
        for rows in ROWS {
            let (x, residual) = (tensor(rows, 37, 1), tensor(rows, 37, 2));
            let floats = |x: &Tensor<2>| x.to_data().try_to_vec::<f32>().unwrap();
            plan.forward_sum(&floats(&x), &floats(&residual), &mut sum, &mut y);
            let (want_sum, want) = norm.forward_sum(x.clone(), residual);
            assert_eq!((bits(&sum), bits(&y)), (of(want_sum), of(want)));
            plan.forward(&floats(&x), &mut y);
            assert_eq!(bits(&y), of(norm.forward(x)));
        }
    }
}

/// Recurrent layers with stored weights give the bits of those with parameters of the same values;
/// with quantised ones, nearly what they stand for.
#[test]
fn recurrent_layers_are_planned_for_every_storage() {
    use crate::Mode;
    use crate::layers::{LayerStates, RecurrentConfig};
    use crate::ops::Cell;
    let device = Device::flex();
    let stored = |w: &Weight| {
        let [rows, width] = w.dims();
        let floats = w.val().into_data().try_into_vec::<f32>().unwrap();
        let halves = floats.iter().map(|x| burn::tensor::bf16::from_f32(*x));
        let bytes: Vec<u8> = halves.clone().flat_map(|x| x.to_le_bytes()).collect();
        let rounded: Vec<f32> = halves.map(|x| x.to_f32()).collect();
        let rows = StoredRows { kind: StorageType::Bf16, bytes: bytes.into(), rows };
        let stored = Weight::stored(StoredMatrix::new(vec![rows], width).unwrap());
        let rounded = Tensor::from_data(TensorData::new(rounded, w.dims()), &device);
        [stored, Param::from_tensor(rounded).into()]
    };
    let quantized = |w: &Weight, bits| {
        let matrix = QuantizedWeight::of_rows(bits, w.val()).unwrap();
        let values = Param::from_tensor(matrix.tensor(&device));
        [Weight::quantized(matrix), values.into()]
    };
    let numbers = |x: &Tensor<3>| x.to_data().try_to_vec::<f32>().unwrap();
    for cell in [Cell::Rnn, Cell::Gru, Cell::Lstm] {
        let config = RecurrentConfig {
            layers: 2,
            bidirectional: true,
            ..RecurrentConfig::new(cell, 33, 37)
        };
        let layers = config.init(&mut Init::new(1, &device));
        let x = tensor(3 * 5, 33, 8).reshape([3, 5, 33]);
        let state = |seed| tensor(4 * 3, 37, seed).reshape([4, 3, 37]);
        let start = LayerStates { h: state(9), c: (cell == Cell::Lstm).then(|| state(10)) };
        for kind in [None, Some(Bits::Int8), Some(Bits::Int4)] {
            let change = |weight: &mut Weight, which: usize| {
                let both = match kind {
                    None => stored(weight),
                    Some(bits) => quantized(weight, bits),
                };
                *weight = both[which].clone();
            };
            let [fixed, values] = [0, 1].map(|which| {
                let mut layers = layers.clone();
                for direction in layers.layers.iter_mut().flat_map(|x| &mut x.directions) {
                    change(&mut direction.weight_ih, which);
                    change(&mut direction.weight_hh, which);
                }
                layers.forward(x.clone(), Some(&start), Some(&[5, 0, 3]), Mode::Eval)
            });
            let mut pairs = vec![(fixed.0, values.0), (fixed.1.h, values.1.h)];
            pairs.extend(fixed.1.c.zip(values.1.c));
            for (got, want) in pairs {
                assert_eq!(got.dims(), want.dims());
                let (got, want) = (numbers(&got), numbers(&want));
                if kind.is_none() {
                    assert_eq!(bits(&got), bits(&want), "{cell:?}");
                }
                let apart: f32 = got.iter().zip(&want).map(|(a, b)| (a - b).powi(2)).sum();
                let size: f32 = want.iter().map(|x| x * x).sum();
                assert!(apart < 1e-3 * size, "{cell:?} {kind:?}: {apart} of {size}");
            }
        }
    }
}

/// Within a parallel region, nested regions run on one thread.
#[test]
fn steps_of_recurrent_decoders_do_not_depend_on_threads() {
    use crate::layers::{LayerStates, RecurrentConfig};
    use crate::ops::Cell;
    use std::sync::Mutex;
    let (rows, h, s, device) = (40, 129, 21, Device::flex());
    let layers = RecurrentConfig { layers: 2, ..RecurrentConfig::new(Cell::Lstm, 65, h) };
    let plan = PlannedRecurrent::new(&layers.init(&mut Init::new(1, &device)));
    let state = || Some(tensor(2 * rows, h, 3).reshape([2, rows, h]));
    let start = LayerStates { h: state().unwrap(), c: state() };
    let keys = tensor(rows * s, h, 4).reshape([rows, s, h]);
    let (v, x) = (numbers(h, 5), numbers(rows * 65, 6));
    let run = || {
        let mut states = RecurrentRows::new(&start);
        let lengths: Vec<i64> = (0..rows as i64).map(|row| 1 + row % s as i64).collect();
        let mut sentences = EncodedSentences::new(Some(keys.clone()), keys.clone(), &lengths);
        let mut all = vec![];
        let (mut context, mut weights) = (Floats::new(), Floats::new());
        for score in [RowScore::Dot, RowScore::Additive { v: &v, covered: None }] {
            plan.step(&x, &mut states);
            let same = |_, query| query;
            sentences.attend(states.last(), score, same, &mut context, Some(&mut weights));
            all.extend(bits(states.last()).into_iter().chain(bits(&context)).chain(bits(&weights)));
            let parents: Vec<usize> = (0..rows).map(|row| row / 2 * 2).collect();
            states.reorder(&parents);
            sentences.reorder(&parents);
        }
        all
    };
    let several = run();
    let inside = Mutex::new(vec![]);
    regard_kernels::pool::parallel(2, &|_| inside.lock().unwrap().push(run()));
    for one in inside.into_inner().unwrap() {
        assert!(one == several);
    }
}
