//! Two ways to compute the same result, on random shapes, masks and steps.

use crate::small::{Folder, corpus, letters, recipe, train};
use burn::tensor::{Device, Tensor};
use regard_attention::Mode;
use regard_attention::Stream;
use regard_fuzz::bolero::generator::*;
use regard_fuzz::{bolero, time};
use regard_kernels::attention::{Attention, AttentionInputs, mask};
use regard_kernels::view::{View, ViewMut};
use regard_models::checkpoint::read_weights;
use regard_models::text::{self, Texts};
use regard_tasks::train::{Event, TrainOutcome};
use serde_json::json;
use std::time::Duration;

/// Sizes of an attention with one width for keys and values.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    b: usize,
    h: usize,
    t: usize,
    s: usize,
    d: usize,
    seed: u64,
}

fn sizes() -> impl ValueGenerator<Output = Sizes> {
    let all = (1..4usize, 1..3usize, 1..70usize, 1..70usize, 1..20usize, produce::<u64>());
    all.map_gen(|(b, h, t, s, d, seed)| Sizes { b, h, t, s, d, seed })
}

impl Sizes {
    fn numbers(&self, site: u64, long: usize) -> Vec<f32> {
        let stream = Stream::new(self.seed, site, 0);
        let count = self.b * self.h * long * self.d;
        (0..count).map(|i| (stream.bits(i as u64) >> 8) as f32 / (1 << 23) as f32 - 1.0).collect()
    }

    /// Attention output of these batch rows, `[B, H, T, D]`.
    fn attend(&self, attention: &Attention, rows: std::ops::Range<usize>) -> Vec<f32> {
        let Sizes { h, t, s, d, .. } = *self;
        let part = |site, long: usize| {
            self.numbers(site, long)[rows.start * h * long * d..rows.end * h * long * d].to_vec()
        };
        let (q, k, v) = (part(1, t), part(2, s), part(3, s));
        let (of_q, of_k) = ([rows.len(), h, t, d], [rows.len(), h, s, d]);
        let view = |x, shape| View::new(x, shape).unwrap();
        let inputs = AttentionInputs::new(view(&q, of_q), view(&k, of_k), view(&v, of_k));
        let mut out = vec![0.0; q.len()];
        attention.forward(&inputs, &ViewMut::new(&mut out, of_q).unwrap()).unwrap();
        out
    }
}

fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}

/// A row of a batch gives the same result as alone, bit for bit.
#[test]
fn fuzz_batch_against_single() {
    bolero::check!()
        .with_generator((sizes(), 0..80usize, 0..80usize))
        .with_test_time(time())
        .with_shrink_time(Duration::from_secs(2))
        .for_each(|(sizes, left, right)| {
            let attention = Attention::dot().mask(mask::window(*left, *right));
            let together = sizes.attend(&attention, 0..sizes.b);
            for (row, among) in together.chunks(together.len() / sizes.b).enumerate() {
                let alone = sizes.attend(&attention, row..row + 1);
                assert_eq!(bits(among), bits(&alone), "row {row} of {sizes:?}");
            }
        });
}

/// A window mask equals the dense mask of the same pairs.
#[test]
fn fuzz_window_against_dense() {
    bolero::check!()
        .with_generator((sizes(), 0..80i64, 0..80i64, produce::<bool>()))
        .with_test_time(time())
        .with_shrink_time(Duration::from_secs(2))
        .for_each(|(sizes, left, right, causal)| {
            let (left, right) = (*left, *right);
            let mut window = mask::window(left as usize, right as usize);
            if *causal {
                window = window & mask::causal();
            }
            let (t, s) = (sizes.t as i64, sizes.s as i64);
            let pair = |i: i64, j: i64| {
                let place = i + s - t;
                (place - left..=place + right).contains(&j) && !(*causal && j > place)
            };
            let cells: Vec<bool> = (0..t).flat_map(|i| (0..s).map(move |j| pair(i, j))).collect();
            let near = sizes.attend(&Attention::dot().mask(window), 0..sizes.b);
            let dense = sizes.attend(&Attention::dot().mask(mask::dense(cells)), 0..sizes.b);
            // The blocks of keys differ, and with them the order of summation.
            for (at, (near, dense)) in near.iter().zip(&dense).enumerate() {
                let error = (near - dense).abs();
                assert!(error <= 1e-5, "{at}: {near} for {dense}: {sizes:?} {left} {right}");
            }
        });
}

fn numbers<const D: usize>(x: &Tensor<D>) -> Vec<f32> {
    x.clone().into_data().try_into_vec().unwrap()
}

/// A text's logits do not depend on the rest of the batch.
#[test]
fn fuzz_texts_against_one_text() {
    let device = Device::flex();
    let sizes = json!({
        "vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 24, "max_position_embeddings": 48, "n_embd": 16, "n_layer": 2,
        "n_head": 2, "n_positions": 48, "d_model": 16, "d_inner": 24,
    });
    let model = |kind: &str| {
        let mut config = sizes.clone();
        config["model_type"] = json!(kind);
        text::create(&config, text::Head::Words, 5, &device).unwrap()
    };
    let models = std::panic::AssertUnwindSafe(["bert", "gpt2", "xlnet"].map(model));
    bolero::check!()
        .with_generator(produce::<Vec<Vec<u8>>>().with().len(1..6usize))
        .with_test_time(time())
        .with_shrink_time(Duration::from_secs(2))
        .for_each(|rows: &Vec<Vec<u8>>| {
            let rows: Vec<Vec<u32>> = rows
                .iter()
                .map(|row| row.iter().map(|id| u32::from(*id) % 40).take(40).collect())
                .map(|row: Vec<u32>| if row.is_empty() { vec![7] } else { row })
                .collect();
            let texts = |rows: &[Vec<u32>]| {
                let mut texts = Texts::new();
                rows.iter().for_each(|row| texts.push(row));
                texts
            };
            for model in models.iter() {
                let said = model.forward(&texts(&rows), None, Mode::Eval).logits.unwrap();
                let (all, [_, wide]) = (numbers(&said), said.dims());
                let mut first = 0;
                for row in &rows {
                    let alone = model.forward(&texts(std::slice::from_ref(row)), None, Mode::Eval);
                    let alone = numbers(&alone.logits.unwrap());
                    let among = &all[first * wide..(first + row.len()) * wide];
                    let error =
                        alone.iter().zip(among).fold(0f32, |most, (a, b)| most.max((a - b).abs()));
                    assert!(error <= 1e-5, "{error:e} for {row:?} among {rows:?}");
                    first += row.len();
                }
            }
        });
}

/// A run that is stopped after any of its steps and resumed ends as the uninterrupted run does.
#[test]
fn fuzz_resumed_against_whole() {
    const STEPS: u64 = 12;
    let model = "model_type = \"transformer\"\nd_model = 16\nencoder_layers = 1\n\
                 decoder_layers = 1\nencoder_attention_heads = 2\ndecoder_attention_heads = 2\n\
                 encoder_ffn_dim = 16\ndecoder_ffn_dim = 16\ndropout = 0.2";
    let how = format!(
        "steps = {STEPS}\nbatch_tokens = 60\naccumulate = 2\nlr = 1e-2\nwarmup = 3\nlog_every = 2\n\
         eval_every = 4\nsave_every = 5\nkeep = 2\naverage = 2"
    );
    let (recipe, corpus) =
        (recipe(model, &how), corpus(letters(40, 2..6, |words| words.reverse()), 6));
    let whole = Folder::new("fuzz-whole");
    let end = train((&recipe, &corpus), &whole.0, false, &mut |_| true).unwrap();
    let wanted = read_weights(&whole.0.join("model")).unwrap();
    let row = std::panic::AssertUnwindSafe((&recipe, &corpus, &end, &wanted));
    bolero::check!()
        .with_generator(produce::<Vec<u64>>().with().len(1..4usize).values(1..STEPS))
        .with_test_time(time())
        .with_shrink_time(Duration::ZERO)
        .for_each(|stops: &Vec<u64>| {
            let (recipe, corpus, end, wanted) = *row;
            let folder = Folder::new("fuzz-resumed");
            let mut stops = stops.clone();
            stops.sort_unstable();
            stops.dedup();
            for (turn, stop) in stops.iter().enumerate() {
                let watch =
                    &mut |event: Event| !matches!(event, Event::Step { step, .. } if step == *stop);
                let end = train((recipe, corpus), &folder.0, turn > 0, watch).unwrap();
                assert!(matches!(end, TrainOutcome::Interrupted { .. }), "{stops:?}: {end:?}");
            }
            let last = train((recipe, corpus), &folder.0, true, &mut |_| true).unwrap();
            assert_eq!(last, *end, "{stops:?}");
            let weights = read_weights(&folder.0.join("model")).unwrap();
            assert!(weights == *wanted, "{stops:?}: other weights than the whole run's");
        });
}
