//! Decoding token by token gives the logits of teacher forcing, however beams are reordered.

use crate::batch::{largest_difference, numbers, rows, sentences, source};
use crate::zoo::{self, WRITES};
use burn::tensor::Device;
use regard_attention::Mode;
use regard_models::Seq2Seq;
use regard_models::zoo::create;

/// Reorderings of beams before each step: the parent of each new row, given the number of rows.
/// There are three sentences at first.
const PLANS: [&[&[usize]]; 4] = [
    // Greedy; the sentences end in turn.
    &[&[0, 1, 2], &[0, 1, 2], &[0, 2], &[0, 1], &[1], &[0]],
    // Two beams each that swap, then a sentence ends, then both continue one parent.
    &[&[0, 0, 1, 1, 2, 2], &[1, 0, 2, 2, 5, 4], &[0, 1, 4, 5], &[1, 1, 3, 2], &[2, 3], &[1, 0]],
    // Sentences with different numbers of rows, in any order.
    &[&[2, 0, 0, 1], &[3, 1, 1, 0, 2], &[4, 4, 4], &[0, 1, 2, 2], &[3], &[0, 0, 0]],
    // As many rows as with equal beams, and a sentence that occurs twice.
    &[&[0, 0, 0, 1], &[0, 3, 3, 1], &[2, 2, 0, 1], &[3, 3, 3, 0], &[3, 0, 3, 0], &[1, 2]],
];

#[test]
fn steps_say_what_teacher_forcing_says() {
    let device = Device::flex();
    let read = sentences(&[5, 8, 2]);
    for (name, config) in zoo::all() {
        let model =
            create::<dyn Seq2Seq>(&config, 5, &device).unwrap_or_else(|e| panic!("{name}: {e}"));
        for (plan, look) in PLANS.iter().zip([false, true, true, false]) {
            let mut decoding = model.decode(&source(&read, 8, 0, &device), look);
            // The sentence of each row, and its tokens so far.
            let mut all: Vec<(usize, Vec<i64>)> = (0..3).map(|i| (i, vec![])).collect();
            for (step, parents) in plan.iter().enumerate() {
                decoding.reorder(parents);
                all = parents.iter().map(|parent| all[*parent].clone()).collect();
                for (row, (_, words)) in all.iter_mut().enumerate() {
                    let word = 3 + (5 * row + 7 * step + row * step) % (WRITES - 3);
                    words.push(if step == 0 { 1 } else { word as i64 });
                }
                let last: Vec<Vec<i64>> = all.iter().map(|(_, words)| vec![words[step]]).collect();
                let next = decoding.step(rows(&last, &device));
                let their: Vec<Vec<i64>> = all.iter().map(|(i, _)| read[*i].clone()).collect();
                let words: Vec<Vec<i64>> = all.iter().map(|(_, words)| words.clone()).collect();
                let told = source(&their, 8, 0, &device);
                let forced = model.forward(&told, rows(&words, &device), Mode::Eval).logits;
                let [r, t, v] = forced.dims();
                let forced = numbers(forced.slice([0..r, t - 1..t, 0..v]));
                let error = largest_difference(&numbers(next.logits), &forced);
                assert!(error <= 1e-4, "{name}: step {step} of {parents:?} differs by {error:e}");
                if let Some(attention) = next.attention {
                    assert!(look, "{name}: nobody asked");
                    check_attention(&name, numbers(attention), &their);
                } else {
                    assert!(!look || name.starts_with("rnn"), "{name}: has looked nowhere");
                }
            }
        }
    }
}

/// Attention weights are not negative, 0 on padding, and sum to at most 1.
fn check_attention(name: &str, weights: Vec<f32>, read: &[Vec<i64>]) {
    let wide = weights.len() / read.len();
    for (row, sentence) in weights.chunks(wide).zip(read) {
        let sum: f32 = row.iter().sum();
        assert!(row.iter().all(|x| *x >= 0.0) && sum < 1.0 + 1e-5, "{name}: {row:?}");
        assert!(row[sentence.len()..].iter().all(|x| *x == 0.0), "{name}: padding in {row:?}");
        // With softmax1 or a Gaussian, weights may sum to less than 1.
        let partial = name.contains("softmax1") || name.contains("local-p");
        assert!(partial || sum > 1.0 - 1e-5, "{name}: {row:?}");
    }
}
