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
