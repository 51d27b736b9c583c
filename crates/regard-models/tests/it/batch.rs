//! A row of a batch has the same result as alone.

use crate::zoo::{self, READS, WRITES};
use burn::tensor::{Device, Int, Tensor, TensorData};
use regard_attention::Mode;
use regard_models::zoo::create;
use regard_models::{Seq2Seq, Source};

/// Rows of integers as a tensor.
pub fn rows(rows: &[Vec<i64>], device: &Device) -> Tensor<2, Int> {
    let wide = rows.first().map_or(0, Vec::len);
    let data = TensorData::new(rows.concat(), [rows.len(), wide]);
    Tensor::from_data(data, device)
}

/// Elements of a tensor.
pub fn numbers<const D: usize>(x: Tensor<D>) -> Vec<f32> {
    x.into_data().convert::<f32>().try_into_vec().unwrap()
}

/// NaN differs from everything.
pub fn largest_difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    let each = a.iter().zip(b).map(|(a, b)| (a - b).abs());
    each.fold(0.0, |max, x| if x.is_nan() { f32::INFINITY } else { max.max(x) })
}

/// Distinct sentences of these lengths.
pub fn sentences(lengths: &[usize]) -> Vec<Vec<i64>> {
    let word = |row: usize, i: usize| 3 + ((7 * row + 5 * i + i * i) % (READS - 3)) as i64;
    let row = |(row, n): (usize, &usize)| (0..*n).map(|i| word(row, i)).collect();
    lengths.iter().enumerate().map(row).collect()
}

/// Target tokens for each row, starting with the start token.
pub fn written(count: usize, length: usize) -> Vec<Vec<i64>> {
    let word = |row: usize, i: usize| 3 + ((3 * row + 11 * i + row * i) % (WRITES - 3)) as i64;
    let row = |row| (0..length).map(|i| if i == 0 { 1 } else { word(row, i) }).collect();
    (0..count).map(row).collect()
}

/// Sentences as a batch, padded to `wide` with `pad`.
pub fn source(sentences: &[Vec<i64>], wide: usize, pad: i64, device: &Device) -> Source {
    let fill = |row: &Vec<i64>| {
        let mut row = row.clone();
        row.resize(wide, pad);
        row
    };
    let padded: Vec<_> = sentences.iter().map(fill).collect();
    let lengths = sentences.iter().map(Vec::len).collect();
    Source { ids: rows(&padded, device), lengths }
}

#[test]
fn a_row_is_what_it_is_alone() {
    let device = Device::flex();
    let (read, words) = (sentences(&[7, 3, 1, 5]), written(4, 9));
    for (name, config) in zoo::all() {
        let model =
            create::<dyn Seq2Seq>(&config, 3, &device).unwrap_or_else(|e| panic!("{name}: {e}"));
        let forward = |read: &[Vec<i64>], words: &[Vec<i64>], wide: usize, pad: i64| {
            let source = source(read, wide, pad, &device);
            numbers(model.forward(&source, rows(words, &device), Mode::Eval).logits)
        };
        let together = forward(&read, &words, 7, 0);
        assert!(together.iter().all(|x| x.is_finite()), "{name}");
        // More padding, with other token ids.
        let wider = forward(&read, &words, 11, 5);
        let error = largest_difference(&together, &wider);
        assert!(error <= 1e-5, "{name}: padding changes logits by {error:e}");
        for (i, each) in together.chunks(together.len() / 4).enumerate() {
            let alone = forward(&read[i..=i], &words[i..=i], read[i].len(), 0);
            let error = largest_difference(each, &alone);
            assert!(error <= 1e-5, "{name}: row {i} is {error:e} from what it is alone");
        }
    }
}

#[test]
fn a_row_without_words_hurts_nobody() {
    let device = Device::flex();
    let (read, words) = (sentences(&[4, 0, 6]), written(3, 5));
    for (name, config) in zoo::all() {
        let model = create::<dyn Seq2Seq>(&config, 3, &device).unwrap();
        let forward = |read: &[Vec<i64>], words: &[Vec<i64>]| {
            let source = source(read, 6, 0, &device);
            numbers(model.forward(&source, rows(words, &device), Mode::Eval).logits)
        };
        let together = forward(&read, &words);
        assert!(together.iter().all(|x| x.is_finite()), "{name}");
        let each: Vec<&[f32]> = together.chunks(together.len() / 3).collect();
        for i in [0, 2] {
            let alone = forward(&read[i..=i], &words[i..=i]);
            assert!(largest_difference(each[i], &alone) <= 1e-5, "{name}: row {i}");
        }
    }
}
