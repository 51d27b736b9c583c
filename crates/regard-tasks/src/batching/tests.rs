//! Sessions of several threads against one alone.

use super::*;
use burn::tensor::Device;
use regard_attention::plan::CacheType;
use regard_models::text::{self, Head};
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const WORDS: usize = 53;

fn engine(limits: BatchLimits) -> BatchEngine {
    let config = json!({
        "model_type": "llama", "vocab_size": WORDS, "hidden_size": 24, "intermediate_size": 40,
        "num_hidden_layers": 2, "num_attention_heads": 6, "num_key_value_heads": 2,
        "max_position_embeddings": 600, "initializer_range": 0.3,
    });
    let model = text::create(&config, Head::Words, 5, &Device::flex()).unwrap();
    BatchEngine::new(model.plan().unwrap(), limits)
}

fn text(length: usize, seed: usize) -> Vec<u32> {
    (0..length).map(|i| ((i * 7919 + seed * 104_729) % WORDS) as u32).collect()
}

/// Reads a prompt and continues it greedily; returns the tokens and the bits of all logits.
fn generate(engine: &BatchEngine, prompt: &[u32], new: usize) -> (Vec<u32>, Vec<u32>) {
    let mut session = engine.session(1, prompt.len() + new, &|| false).unwrap();
    let (last, before) = prompt.split_last().unwrap();
    session.read(&[before]).unwrap();
    let (mut token, mut tokens, mut bits, mut logits) = (*last, vec![], vec![], vec![]);
    for _ in 0..new {
        session.step(&[token], &mut logits).unwrap();
        assert_eq!(logits.len(), WORDS);
        bits.extend(logits.iter().map(|x| x.to_bits()));
        let best = logits.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).unwrap().0;
        token = best as u32;
        tokens.push(token);
    }
    (tokens, bits)
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
        assert_eq!((usage.sessions, usage.tokens, usage.waiting), (0, 0, 0));
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
fn sessions_beyond_the_limit_wait_and_can_be_cancelled() {
    let engine = engine(BatchLimits { tokens: 100, ..BatchLimits::default() });
    let error = engine.session(2, 51, &|| false).err().unwrap().to_string();
    assert!(error.contains("102") && error.contains("100"), "{error}");
    let first = engine.session(1, 60, &|| false).unwrap();
    assert!(engine.session(1, 50, &|| true).err().unwrap().to_string().contains("cancelled"));
    let began = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let session = engine.session(1, 50, &|| false).unwrap();
            began.store(true, Ordering::SeqCst);
            drop(session);
        });
        while engine.usage().waiting == 0 {
            thread::yield_now();
        }
        assert!(!began.load(Ordering::SeqCst));
        drop(first);
    });
    assert!(began.load(Ordering::SeqCst));
    assert_eq!(engine.usage().tokens, 0);
}

#[test]
fn memory_of_ended_sessions_and_of_kept_prompts_is_bounded() {
    let engine = engine(BatchLimits { tokens: 300, ..BatchLimits::default() });
    for i in 0..10 {
        generate(&engine, &text(120, i), 4);
    }
    // Two prompts of 119 tokens are kept, two pages each.
    let shape = regard_kernels::attention::PageShape { heads: 2, width: 4 };
    let bytes = CacheType::F32.page_bytes(shape) * 2;
    assert!(engine.usage().cache_bytes <= 3 * 2 * bytes, "{:?}", engine.usage());
    // All of them go when the room is needed.
    drop(engine.session(1, 300, &|| false).unwrap());
    assert_eq!(engine.usage().cache_bytes, 0);
}

#[test]
fn guessed_tokens_change_nothing() {
    let lookup = Lookup { tokens: 4, context: 1 };
    let guessing = engine(BatchLimits { lookup, ..BatchLimits::default() });
    let plain = engine(BatchLimits::default());
    // A text that repeats itself, and one that does not.
    for prompt in [text(10, 1).repeat(4), text(30, 2)] {
        let want = generate(&plain, &prompt, 60);
        assert!(generate(&guessing, &prompt, 60) == want);
    }
    assert!(guessing.usage().steps < plain.usage().steps, "{:?}", guessing.usage());
}

#[test]
fn beams_continue_from_their_parents() {
    let engine = engine(BatchLimits::default());
    let prompt = text(70, 3);
    let mut session = engine.session(2, 100, &|| false).unwrap();
    session.read(&[&prompt]).unwrap();
    let mut logits = vec![];
    session.step(&[7], &mut logits).unwrap();
    session.reorder(&[0, 0]);
    session.step(&[8, 9], &mut logits).unwrap();
    session.reorder(&[1, 0]);
    session.step(&[10, 10], &mut logits).unwrap();
    for (row, middle) in [9, 8].into_iter().enumerate() {
        let mut alone = engine.session(1, 100, &|| false).unwrap();
        alone.read(&[&prompt]).unwrap();
        let mut want = vec![];
        for token in [7, middle, 10] {
            alone.step(&[token], &mut want).unwrap();
        }
        assert_eq!(logits[row * WORDS..(row + 1) * WORDS], want);
    }
}

#[test]
fn a_step_that_fails_is_an_error_and_the_others_go_on() {
    let engine = engine(BatchLimits::default());
    let mut bad = engine.session(1, 10, &|| false).unwrap();
    bad.read(&[&[]]).unwrap();
    let error = bad.step(&[WORDS as u32], &mut vec![]).unwrap_err().to_string();
    assert!(error.contains("embedding"), "{error}");
    drop(bad);
    assert_eq!(generate(&engine, &[1, 2, 3], 5), generate(&engine, &[1, 2, 3], 5));
}
