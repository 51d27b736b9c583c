//! Two-stream attention: the goldens of `fixtures/make/xlnet.py`, and tokens that must be masked.

use crate::batch::largest_difference;
use crate::texts::{close, close_to, largest, numbers, open};
use burn::tensor::{Device, Tensor, TensorData};
use regard_attention::Mode;
use regard_models::checkpoint::{self, Array, Arrays};
use regard_models::text::{self, Head, TextModel, Texts};
use regard_models::xlnet::{Memory, Permuted, Sight};
use serde_json::json;
use std::path::{Path, PathBuf};

fn folders() -> Vec<PathBuf> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/xlnet");
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(all).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders
}

/// One batch of a golden.
struct Batch {
    texts: Texts,
    sight: Sight,
    targets: Vec<usize>,
}

/// All integers of a golden, by name.
fn batches(folder: &Path) -> Vec<Batch> {
    let bytes = std::fs::read(folder.join("said.safetensors")).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let integers = |name: String| -> Option<(usize, Vec<usize>)> {
        let tensor = file.tensor(&name).ok()?;
        let numbers = tensor.data().as_chunks().0.iter();
        let numbers = numbers.map(|b| i64::from_le_bytes(*b) as usize).collect();
        Some((tensor.shape()[0], numbers))
    };
    let batch = |n: usize| {
        let ((rows, ids), (_, types)) =
            (integers(format!("ids.{n}")).unwrap(), integers(format!("types.{n}")).unwrap());
        let wide = ids.len() / rows;
        let mut texts = Texts::new();
        for (ids, types) in ids.chunks(wide).zip(types.chunks(wide)) {
            let small = |all: &[usize]| all.iter().map(|x| *x as u32).collect::<Vec<u32>>();
            texts.push_typed(&small(ids), &small(types));
        }
        let sight = match integers(format!("orders.{n}")) {
            Some((_, orders)) => {
                Sight::Orders(orders.chunks(wide).map(<[usize]>::to_vec).collect())
            }
            None => {
                let (_, cells) = integers(format!("cells.{n}")).unwrap();
                Sight::Cells(cells.iter().map(|cell| *cell == 1).collect())
            }
        };
        Batch { texts, sight, targets: integers(format!("targets.{n}")).unwrap().1 }
    };
    (0..2).map(batch).collect()
}

fn tensor<const D: usize>(array: &Array, device: &Device) -> Tensor<D> {
    let shape: [usize; D] = array.shape.clone().try_into().unwrap();
    Tensor::from_data(TensorData::new(array.floats().unwrap().into_owned(), shape), device)
}

/// Memory before the first batch.
fn before(golden: &Arrays, device: &Device) -> Option<Memory> {
    let layer = |i: usize| golden.get(&format!("memory.before.{i}"));
    let layers: Vec<Tensor<3>> = (0..).map_while(layer).map(|x| tensor(x, device)).collect();
    (!layers.is_empty()).then(|| Memory::new(layers))
}

#[test]
fn two_streams_say_what_transformers_says() {
    let device = Device::flex().autodiff();
    for folder in folders() {
        let model = open(&folder, &device);
        let golden = checkpoint::read_arrays(&folder.join("said.safetensors")).unwrap();
        let mut memory = before(&golden, &device);
        let mut loss = Tensor::<1>::zeros([1], &device);
        for (n, Batch { texts, sight, targets }) in batches(&folder).into_iter().enumerate() {
            let batch =
                Permuted { texts: &texts, sight, targets: &targets, memory: memory.as_ref() };
            let said = model.permuting().unwrap().predict(&batch, Mode::Eval);
            let name = format!("logits.{n}");
            close(&folder, &name, &numbers(&said.logits), &golden[&name]);
            let coefficients: Tensor<2> = tensor(&golden[&format!("coefficients.{n}")], &device);
            loss = loss + (said.logits * coefficients).sum();
            let kept = said.memory.unwrap();
            for (i, layer) in kept.layers().iter().enumerate() {
                let name = format!("memory.{n}.{i}");
                close(&folder, &name, &numbers(layer), &golden[&name]);
            }
            assert_eq!(kept.layers().len(), 3);
            memory = Some(kept);
        }
        close(&folder, "loss", &numbers(&loss), &golden["loss"]);
        gradients(&folder, &golden, &*model, loss);
    }
}

fn gradients(folder: &Path, golden: &Arrays, model: &dyn TextModel, loss: Tensor<1>) {
    let gradients = model.gradients(&mut loss.backward());
    let all = golden.iter().filter(|(name, _)| name.starts_with("gradient."));
    let most = all.fold(0f32, |max, (_, x)| max.max(largest(x)));
    for (name, got) in &gradients {
        let (got, wanted) = (got.floats().unwrap(), &golden[&format!("gradient.{name}")]);
        close_to(folder, name, &got, wanted, 1e-2 * most);
    }
    assert!(gradients.len() > 50 && gradients.contains_key("transformer.mask_emb"));
}

const WORDS: u32 = 19;
const ORDERS: [[usize; 7]; 3] =
    [[3, 0, 6, 1, 5, 2, 4], [0, 1, 2, 3, 4, 5, 6], [6, 2, 4, 5, 0, 3, 1]];

fn model(device: &Device) -> Box<dyn TextModel> {
    let config = json!({
        "model_type": "xlnet", "vocab_size": WORDS, "d_model": 16, "n_layer": 3, "n_head": 4,
        "d_inner": 24, "initializer_range": 0.4, "mem_len": 4,
    });
    text::create(&config, Head::Words, 5, device).unwrap()
}

fn word(row: usize, at: usize) -> u32 {
    ((5 * row + 3 * at + at * at * row) % WORDS as usize) as u32
}

/// Texts of these lengths with two segments, with one token changed.
fn texts(lengths: &[usize], changed: Option<(usize, usize)>) -> Texts {
    let mut texts = Texts::new();
    for (row, n) in lengths.iter().enumerate() {
        let other = |at| u32::from(changed == Some((row, at)));
        let ids: Vec<u32> = (0..*n).map(|at| (word(row, at) + other(at)) % WORDS).collect();
        let types: Vec<u32> = (0..*n).map(|at| u32::from(2 * at > *n)).collect();
        texts.push_typed(&ids, &types);
    }
    texts
}

/// Orders of the first tokens.
fn orders(lengths: &[usize]) -> Vec<Vec<usize>> {
    let row =
        |(order, n): (&[usize; 7], &usize)| order.iter().copied().filter(|at| at < n).collect();
    ORDERS.iter().zip(lengths).map(row).collect()
}

/// `[B, T, T]`: the mask that orders imply.
fn cells(orders: &[Vec<usize>]) -> Vec<bool> {
    let mut cells = vec![];
    for order in orders {
        let rank = |at: usize| order.iter().position(|other| *other == at);
        let all = (0..order.len()).flat_map(|i| (0..order.len()).map(move |j| (i, j)));
        cells.extend(all.map(|(i, j)| rank(j) < rank(i)));
    }
    cells
}

fn told(model: &dyn TextModel, batch: &Permuted) -> Vec<Vec<f32>> {
    let said = model.permuting().unwrap().predict(batch, Mode::Eval);
    numbers(&said.logits).chunks(WORDS as usize).map(<[f32]>::to_vec).collect()
}

#[test]
fn an_order_is_the_mask_that_it_means() {
    let (model, texts) = (model(&Device::flex()), texts(&[7; 3], None));
    let (orders, targets) = (orders(&[7; 3]), [1, 2, 9, 12, 20, 16]);
    let first = Permuted {
        texts: &texts,
        sight: Sight::Orders(orders.clone()),
        targets: &targets,
        memory: None,
    };
    let memory = model.permuting().unwrap().predict(&first, Mode::Eval).memory;
    assert_eq!(memory.as_ref().unwrap().tokens(), 4);
    for memory in [None, memory.as_ref()] {
        let [one, other] =
            [Sight::Orders(orders.clone()), Sight::Cells(cells(&orders))].map(|sight| {
                told(&*model, &Permuted { texts: &texts, sight, targets: &targets, memory })
            });
        let error = largest_difference(&one.concat(), &other.concat());
        assert!(error <= 1e-5, "{error:e}");
    }
}

/// Only the targets of a text are predicted, in sequence.
fn context_first(lengths: &[usize], targets: &[usize]) -> Vec<Vec<u32>> {
    let (mut at, mut next) = (0, 0);
    let mut rank = || {
        at += 1;
        next += u32::from(targets.contains(&(at - 1)));
        if targets.contains(&(at - 1)) { next } else { 0 }
    };
    lengths.iter().map(|n| (0..*n).map(|_| rank()).collect()).collect()
}

#[test]
fn words_of_one_rank_see_each_other() {
    let (model, texts, targets) = (model(&Device::flex()), texts(&[7; 3], None), [1, 2, 9, 12, 20]);
    let ranks = context_first(&[7; 3], &targets);
    let cell = |ranks: &[u32], i: usize, j: usize| {
        ranks[j] < ranks[i] || (i != j && ranks[j] == 0 && ranks[i] == 0)
    };
    let of = |row: &Vec<u32>| -> Vec<bool> {
        (0..7).flat_map(|i| (0..7).map(move |j| (i, j))).map(|(i, j)| cell(row, i, j)).collect()
    };
    let cells: Vec<bool> = ranks.iter().flat_map(of).collect();
    let predict = |sight, memory| {
        let batch = Permuted { texts: &texts, sight, targets: &targets, memory };
        model.permuting().unwrap().predict(&batch, Mode::Eval)
    };
    let memory = model.permuting().unwrap().remember(&texts, Mode::Eval);
    assert_eq!(memory.tokens(), 4);
    for memory in [None, Some(&memory)] {
        let one = numbers(&predict(Sight::Ranks(ranks.clone()), memory).logits);
        let other = numbers(&predict(Sight::Cells(cells.clone()), memory).logits);
        let error = largest_difference(&one, &other);
        assert!(error <= 1e-5, "{error:e}");
    }
    // The memory of a text is encoded bidirectionally.
    let kept = predict(Sight::Ranks(vec![vec![0; 7]; 3]), None).memory.unwrap();
    for (one, other) in kept.layers().iter().zip(memory.layers()) {
        assert_eq!(numbers(one), numbers(other));
    }
}

#[test]
fn a_word_is_told_from_those_before_it_and_from_no_other() {
    let model = model(&Device::flex());
    for lengths in [[7, 7, 7], [7, 4, 6]] {
        let orders = orders(&lengths);
        let targets: Vec<usize> = (0..lengths.iter().sum()).collect();
        let tell = |changed| {
            let texts = texts(&lengths, changed);
            let sight = Sight::Orders(orders.clone());
            told(&*model, &Permuted { texts: &texts, sight, targets: &targets, memory: None })
        };
        let known = tell(None);
        for (row, order) in orders.iter().enumerate() {
            let first: usize = lengths[..row].iter().sum();
            for (rank, at) in order.iter().enumerate() {
                let now = tell(Some((row, *at)));
                for (target, (known, now)) in known.iter().zip(&now).enumerate() {
                    let later = order[rank + 1..].iter().any(|later| first + later == target);
                    assert_eq!(known != now, later, "{target} after {at} of {row} has changed");
                }
            }
        }
    }
}

#[test]
fn targets_and_texts_are_told_alone_what_they_are_told_together() {
    let (model, lengths) = (model(&Device::flex()), [7, 4, 6]);
    let (all, orders) = (texts(&lengths, None), orders(&lengths));
    let targets = [2, 6, 0, 8, 15];
    let ranks = context_first(&lengths, &targets);
    let of_all = [Sight::Orders(orders.clone()), Sight::Ranks(ranks.clone())];
    for (kind, sight) in of_all.into_iter().enumerate() {
        let batch = Permuted { texts: &all, sight, targets: &targets, memory: None };
        let together = told(&*model, &batch);
        for (target, together) in targets.iter().zip(together) {
            let row = all.firsts().iter().rposition(|first| first <= target).unwrap();
            let (first, n) = (all.firsts()[row], lengths[row]);
            let mut text = Texts::new();
            text.push_typed(&all.ids()[first..first + n], &all.types()[first..first + n]);
            let sight = match kind {
                0 => Sight::Orders(vec![orders[row].clone()]),
                _ => Sight::Ranks(vec![ranks[row].clone()]),
            };
            let batch = Permuted { texts: &text, sight, targets: &[target - first], memory: None };
            let error = largest_difference(&told(&*model, &batch)[0], &together);
            assert!(error <= 1e-5, "{target}: {error:e}");
        }
    }
}

#[test]
fn what_is_dropped_is_a_function_of_the_step() {
    let (model, texts) = (model(&Device::flex()), texts(&[7; 3], None));
    let batch = Permuted {
        texts: &texts,
        sight: Sight::Orders(orders(&[7; 3])),
        targets: &[1, 2, 9],
        memory: None,
    };
    let tell = |step| {
        let mode = Mode::Train { seed: 3, step };
        let two = numbers(&model.permuting().unwrap().predict(&batch, mode).logits);
        (two, numbers(&model.forward(&texts, None, mode).hidden))
    };
    let ((one, read), (same, same_read), (other, other_read)) = (tell(1), tell(1), tell(2));
    assert!(one == same && read == same_read && one != other && read != other_read);
    assert_ne!(one, told(&*model, &batch).concat());
}

#[test]
fn only_a_head_for_words_tells_them() {
    let (config, device) = (model(&Device::flex()).config(), Device::flex());
    let bare = text::create(&config, Head::Bare, 0, &device).unwrap();
    assert!(bare.permuting().is_none());
    let bert = json!({
        "model_type": "bert", "vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 1,
        "num_attention_heads": 2, "intermediate_size": 8,
    });
    let bert = text::create(&bert, Head::Words, 0, &device).unwrap();
    assert!(bert.permuting().is_none());
}

#[test]
fn what_is_not_supported_is_said() {
    let config = model(&Device::flex()).config();
    let error = |head: Head, key: &str, value: serde_json::Value| {
        let mut config = config.clone();
        config[key] = value;
        text::create(&config, head, 0, &Device::flex()).err().map(|e| e.to_string())
    };
    for (key, value) in [
        ("attn_type", json!("tri")),
        ("bi_data", json!(true)),
        ("untie_r", json!(false)),
        ("same_length", json!(true)),
        ("d_head", json!(3)),
        ("n_head", json!(3)),
        ("ff_activation", json!("mish")),
        ("dropout", json!(1.0)),
    ] {
        let said = error(Head::Words, key, value).unwrap();
        assert!(said.starts_with(key), "{said}");
    }
    for (key, value) in [
        ("summary_type", json!("mean")),
        ("summary_use_proj", json!(false)),
        ("summary_activation", json!(null)),
        ("summary_first_dropout", json!(0.1)),
    ] {
        let said = error(Head::Sequence, key, value.clone()).unwrap();
        assert!(said.starts_with(key), "{said}");
        assert_eq!(error(Head::Words, key, value), None);
    }
}
