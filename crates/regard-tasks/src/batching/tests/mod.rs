//! Sessions of several threads against one alone.

mod budget;
mod failures;
mod guesses;
mod pace;
mod scores;

use super::*;
use burn::tensor::Device;
use regard_models::text::{self, Head, TextModel};
use serde_json::{Value, json};
use std::thread;

const WORDS: usize = 53;

fn config() -> Value {
    json!({
        "model_type": "llama", "vocab_size": WORDS, "hidden_size": 24, "intermediate_size": 40,
        "num_hidden_layers": 2, "num_attention_heads": 6, "num_key_value_heads": 2,
        "max_position_embeddings": 4200, "initializer_range": 0.3,
    })
}

fn model(config: &Value, seed: u64) -> Box<dyn TextModel> {
    text::create(config, Head::Words, seed, &Device::flex()).unwrap()
}

/// Configurations of models whose layers have windows, some or all of them.
fn windowed() -> [Value; 2] {
    let (mut mistral, mut gemma) = (config(), config());
    mistral["model_type"] = json!("mistral");
    mistral["sliding_window"] = json!(40);
    gemma["model_type"] = json!("gemma3_text");
    gemma["head_dim"] = json!(4);
    gemma["sliding_window"] = json!(25);
    gemma["sliding_window_pattern"] = json!(2);
    [mistral, gemma]
}

fn engine_of(config: &Value, limits: BatchLimits) -> BatchEngine {
    BatchEngine::new(model(config, 5).plan().unwrap(), limits)
}

fn engine(limits: BatchLimits) -> BatchEngine {
    engine_of(&config(), limits)
}

fn text(length: usize, seed: usize) -> Vec<u32> {
    (0..length).map(|i| ((i * 7919 + seed * 104_729) % WORDS) as u32).collect()
}

/// Reads a prompt and continues it greedily while told so; returns the tokens and the bits of all
/// logits.
fn write_while(
    session: &mut Session,
    prompt: &[u32],
    more: &dyn Fn(usize) -> bool,
) -> (Vec<u32>, Vec<u32>) {
    let (last, before) = prompt.split_last().unwrap();
    session.read(&[before]).unwrap();
    let (mut token, mut tokens, mut bits, mut logits) = (*last, vec![], vec![], vec![]);
    while more(tokens.len()) {
        session.step(&[token], &mut logits).unwrap();
        assert_eq!(logits.len(), WORDS);
        bits.extend(logits.iter().map(|x| x.to_bits()));
        let best = logits.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).unwrap().0;
        token = best as u32;
        tokens.push(token);
    }
    (tokens, bits)
}

fn generate(engine: &BatchEngine, prompt: &[u32], new: usize) -> (Vec<u32>, Vec<u32>) {
    let mut session = engine.session(1, prompt.len() + new, &Cancel::new()).unwrap();
    write_while(&mut session, prompt, &|written| written < new)
}

#[test]
fn sessions_give_the_same_bits_alone_and_together() {
    for cache in CacheType::ALL {
        let limits = BatchLimits { cache, prompt_tokens_beside: 5, ..BatchLimits::default() };
        let prompts: Vec<Vec<u32>> = (0..9).map(|i| text(1 + i * 17, i)).collect();
        let alone: Vec<_> = prompts.iter().map(|x| generate(&engine(limits), x, 30)).collect();
        let engine = engine(limits);
        thread::scope(|scope| {
            let engine = &engine;
            let threads: Vec<_> =
                prompts.iter().map(|x| scope.spawn(move || generate(engine, x, 30))).collect();
            for (thread, want) in threads.into_iter().zip(&alone) {
                assert!(thread.join().unwrap() == *want, "{cache:?}");
            }
        });
        let usage = engine.usage();
        assert_eq!((usage.sessions, usage.reserved_bytes, usage.waiting), (0, 0, 0));
        assert!(usage.steps < 9 * 31, "{usage:?}");
    }
}

#[test]
fn a_common_beginning_is_computed_once() {
    let engine = engine(BatchLimits::default());
    let common = text(150, 1);
    let prompts: Vec<Vec<u32>> =
        (0..6).map(|i| [&common[..], &text(3 + i, 50 + i)].concat()).collect();
    let alone: Vec<_> = prompts
        .iter()
        .map(|x| generate(&super::tests::engine(BatchLimits::default()), x, 8))
        .collect();
    thread::scope(|scope| {
        let engine = &engine;
        let threads: Vec<_> =
            prompts.iter().map(|x| scope.spawn(move || generate(engine, x, 8))).collect();
        for (thread, want) in threads.into_iter().zip(&alone) {
            assert!(thread.join().unwrap() == *want);
        }
    });
    let usage = engine.usage();
    assert_eq!(usage.shared_tokens, 5 * 150, "{usage:?}");
    let all: usize = prompts.iter().map(|x| x.len() - 1).sum();
    assert_eq!(usage.prompt_tokens as usize, all - 5 * 150);
}

#[test]
fn beams_continue_from_their_parents() {
    let engine = engine(BatchLimits::default());
    let prompt = text(70, 3);
    let mut session = engine.session(2, 100, &Cancel::new()).unwrap();
    session.read(&[&prompt]).unwrap();
    let mut logits = vec![];
    session.step(&[7], &mut logits).unwrap();
    session.reorder(&[0, 0]);
    session.step(&[8, 9], &mut logits).unwrap();
    session.reorder(&[1, 0]);
    session.step(&[10, 10], &mut logits).unwrap();
    for (row, middle) in [9, 8].into_iter().enumerate() {
        let mut alone = engine.session(1, 100, &Cancel::new()).unwrap();
        alone.read(&[&prompt]).unwrap();
        let mut want = vec![];
        for token in [7, middle, 10] {
            alone.step(&[token], &mut want).unwrap();
        }
        assert_eq!(logits[row * WORDS..(row + 1) * WORDS], want);
    }
}

#[test]
fn what_a_session_has_no_room_for_is_an_error_and_the_others_go_on() {
    let engine = engine(BatchLimits::default());
    let mut bad = engine.session(1, 10, &Cancel::new()).unwrap();
    let error = bad.read(&[&[1], &[2]]).unwrap_err().to_string();
    assert!(error.contains("got 2 sequences") && error.contains("room for 1"), "{error}");
    let error = bad.read(&[&text(11, 0)]).unwrap_err().to_string();
    assert!(error.contains("got 11 tokens") && error.contains("room for 10"), "{error}");
    bad.read(&[&[]]).unwrap();
    let error = bad.step(&[WORDS as u32], &mut vec![]).unwrap_err().to_string();
    assert!(error.contains("got 53") && error.contains("53 rows"), "{error}");
    bad.step(&[1], &mut vec![]).unwrap();
    let fresh = self::engine(BatchLimits::default());
    assert!(generate(&engine, &[1, 2, 3], 5) == generate(&fresh, &[1, 2, 3], 5));
    bad.step(&[1], &mut vec![]).unwrap();
}
