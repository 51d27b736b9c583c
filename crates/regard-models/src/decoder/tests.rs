//! Plans against the steps on tensors, and sequences alone against sequences together.

use super::*;
use crate::text::{self, DecoderPlan, planned_as_walked};
use burn::tensor::Device;
use regard_attention::Mode;
use regard_attention::plan::{CacheType, Chunk, SequenceCache, Work};
use serde_json::json;

/// A small configuration of each family; windows are shorter than the texts of the tests.
fn configs() -> Vec<Value> {
    let sizes = json!({
        "vocab_size": 61, "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 3,
        "num_attention_heads": 6, "num_key_value_heads": 2, "max_position_embeddings": 400,
        "initializer_range": 0.3, "architectures": ["LlamaForCausalLM"],
    });
    let with = |more: Value| {
        let mut config = sizes.clone();
        for (key, value) in more.as_object().unwrap() {
            config[key] = value.clone();
        }
        config
    };
    vec![
        with(json!({ "model_type": "llama", "attention_bias": true, "mlp_bias": true })),
        with(json!({ "model_type": "smollm3", "no_rope_layer_interval": 2 })),
        with(json!({ "model_type": "mistral", "sliding_window": 70, "head_dim": 10 })),
        with(json!({ "model_type": "qwen3", "head_dim": 16, "num_key_value_heads": 1 })),
        with(json!({
            "model_type": "gemma2", "head_dim": 8, "sliding_window": 3,
            "query_pre_attn_scalar": 10, "attn_logit_softcapping": 1.5,
            "final_logit_softcapping": 2.0,
        })),
        with(json!({
            "model_type": "gemma3_text", "head_dim": 8, "sliding_window": 65,
            "sliding_window_pattern": 3,
        })),
    ]
}

fn model(config: &Value) -> Box<dyn text::TextModel> {
    text::create(config, Head::Words, 5, &Device::flex()).unwrap()
}

/// Texts of the length.
fn text(length: usize, seed: usize) -> Vec<u32> {
    (0..length).map(|i| ((i * 7919 + seed * 104_729) % 61) as u32).collect()
}

fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}

/// Logits after each token of a text, which is read in chunks.
fn read(plan: &DecoderPlan, cache: &mut SequenceCache, text: &[u32], chunk: usize) -> Vec<f32> {
    let (mut work, mut all, mut logits) = (Work::default(), vec![], vec![]);
    for tokens in text.chunks(chunk) {
        let wanted = tokens.len();
        let chunk = Chunk { cache, tokens, prompt: true, wanted };
        plan.forward(&mut [chunk], &mut work, &mut logits);
        all.extend_from_slice(&logits);
    }
    all
}

fn near(got: &[f32], want: &[f32], tolerance: f32, what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        assert!((got - want).abs() <= tolerance, "{what} at {i}: {got} {want}");
    }
}

#[test]
fn a_plan_gives_the_logits_of_the_tensors() {
    for config in configs() {
        let model = model(&config);
        let plan = model.plan().unwrap();
        let text = text(150, 1);
        let mut texts = Texts::new();
        texts.push(&text);
        let want = model.forward(&texts, None, Mode::Eval).logits.unwrap();
        let want: Vec<f32> = want.into_data().try_into_vec().unwrap();
        let got = read(&plan, &mut plan.sequence(CacheType::F32), &text, 150);
        near(&got, &want, 2e-4, &config["model_type"].to_string());
    }
}

#[test]
fn a_prompt_gives_the_same_bits_in_chunks_of_any_size() {
    for config in configs() {
        let model = model(&config);
        let plan = model.plan().unwrap();
        let text = text(200, 2);
        let whole = read(&plan, &mut plan.sequence(CacheType::F32), &text, 200);
        for chunk in [1, 7, 64, 65, 130] {
            let parts = read(&plan, &mut plan.sequence(CacheType::F32), &text, chunk);
            assert_eq!(bits(&whole), bits(&parts), "{} by {chunk}", config["model_type"]);
        }
    }
}

/// A part of this many tokens is rotated and normalised in pieces, and its pages are copied in pieces.
#[test]
fn a_long_prompt_gives_the_same_bits_at_once_and_in_chunks() {
    let mut config = configs().swap_remove(3);
    assert_eq!(config["model_type"], "qwen3");
    config["max_position_embeddings"] = json!(1500);
    config["num_hidden_layers"] = json!(2);
    let model = model(&config);
    let (plan, text) = (model.plan().unwrap(), text(1400, 3));
    for kind in CacheType::ALL {
        let whole = read(&plan, &mut plan.sequence(kind), &text, 1400);
        let parts = read(&plan, &mut plan.sequence(kind), &text, 100);
        assert_eq!(bits(&whole), bits(&parts), "{kind:?}");
    }
}

#[test]
fn sequences_together_give_the_bits_of_each_alone() {
    for (config, kind) in configs().iter().zip(CacheType::ALL.iter().cycle()) {
        let plan = model(config).plan().unwrap();
        let lengths = [1usize, 63, 64, 90, 5];
        let vocabulary = plan.vocabulary();
        // Each sequence reads a prompt, then writes what is given.
        let alone: Vec<Vec<f32>> = lengths
            .iter()
            .enumerate()
            .map(|(i, n)| {
                let mut cache = plan.sequence(*kind);
                let mut all = read(&plan, &mut cache, &text(*n, i), *n);
                let (mut work, mut logits) = (Work::default(), vec![]);
                for token in text(20, i + 50) {
                    let chunk =
                        Chunk { cache: &mut cache, tokens: &[token], prompt: false, wanted: 1 };
                    plan.forward(&mut [chunk], &mut work, &mut logits);
                    all.extend_from_slice(&logits);
                }
                all
            })
            .collect();
        // All at once: a sequence begins at each step, prompts are read by 16.
        let mut caches: Vec<SequenceCache> = lengths.iter().map(|_| plan.sequence(*kind)).collect();
        let mut got: Vec<Vec<f32>> = vec![vec![]; lengths.len()];
        let (mut work, mut logits) = (Work::default(), vec![]);
        for step in 0..40 {
            let mut chunks = vec![];
            let mut of = vec![];
            let texts: Vec<(Vec<u32>, Vec<u32>)> =
                (0..lengths.len()).map(|i| (text(lengths[i], i), text(20, i + 50))).collect();
            for (i, cache) in caches.iter_mut().enumerate().filter(|(i, _)| *i <= step) {
                let (at, n) = (cache.len(), lengths[i]);
                let (tokens, prompt) = match at < n {
                    true => (&texts[i].0[at..n.min(at + 16)], true),
                    false if at < n + 20 => (&texts[i].1[at - n..at - n + 1], false),
                    false => continue,
                };
                chunks.push(Chunk { cache, tokens, prompt, wanted: tokens.len() });
                of.push((i, tokens.len()));
            }
            if chunks.is_empty() {
                break;
            }
            plan.forward(&mut chunks, &mut work, &mut logits);
            let mut rest = &logits[..];
            for (i, n) in of {
                let (mine, after) = rest.split_at(n * vocabulary);
                got[i].extend_from_slice(mine);
                rest = after;
            }
        }
        for (i, (got, want)) in got.iter().zip(&alone).enumerate() {
            assert_eq!(bits(got), bits(want), "{} sequence {i}", config["model_type"]);
        }
        drop(caches);
        assert_eq!(plan.cache_bytes(), 0);
    }
}

#[test]
fn windows_beyond_any_text_are_refused() {
    let device = Device::flex();
    for mut config in configs() {
        if config["sliding_window"].is_null() {
            continue;
        }
        config["sliding_window"] = json!(1_u64 << 24);
        text::create(&config, Head::Words, 5, &device).unwrap();
        config["sliding_window"] = json!(u64::MAX);
        let error = text::create(&config, Head::Words, 5, &device).err().unwrap().to_string();
        assert!(error.contains("sliding_window: got 18446744073709551615, need 1 to"), "{error}");
    }
}

#[test]
fn a_shared_prompt_is_stored_once_and_a_shortened_sequence_goes_on() {
    for config in configs() {
        let plan = model(&config).plan().unwrap();
        let (prompt, more) = (text(100, 3), text(30, 4));
        let mut first = plan.sequence(CacheType::F32);
        read(&plan, &mut first, &prompt, 100);
        let before = plan.cache_bytes();
        let mut second = first.clone();
        assert_eq!(plan.cache_bytes(), before);
        let got = read(&plan, &mut second, &more, 30);
        let other = read(&plan, &mut first, &text(30, 5), 30);
        assert_ne!(bits(&got), bits(&other));
        // A few tokens are taken back, and others read instead.
        assert!(first.can_truncate(100));
        first.truncate(100);
        assert_eq!(
            bits(&read(&plan, &mut first, &more, 7)),
            bits(&got),
            "{}",
            config["model_type"]
        );
    }
}

#[test]
fn narrow_caches_are_near_the_wide_one() {
    for config in configs() {
        let plan = model(&config).plan().unwrap();
        let text = text(120, 6);
        let step = |kind| {
            let mut cache = plan.sequence(kind);
            read(&plan, &mut cache, &text[..100], 100);
            let (mut work, mut logits, mut all) = (Work::default(), vec![], vec![]);
            for token in &text[100..] {
                let chunk =
                    Chunk { cache: &mut cache, tokens: &[*token], prompt: false, wanted: 1 };
                plan.forward(&mut [chunk], &mut work, &mut logits);
                all.extend_from_slice(&logits);
            }
            all
        };
        let want = step(CacheType::F32);
        let largest = want.iter().fold(0f32, |a, x| a.max(x.abs()));
        near(&step(CacheType::F16), &want, 0.02 * largest, "f16");
        near(&step(CacheType::Int8), &want, 0.2 * largest, "int8");
    }
}

#[test]
fn rows_of_a_search_are_those_of_the_tensors() {
    let device = Device::flex();
    for config in configs() {
        let model = Decoder::new(
            &Decoder::configure(&config, Head::Words).unwrap(),
            &mut Init::new(2, &device),
        );
        for prompt in [vec![], text(80, 9)] {
            planned_as_walked(&model, &prompt, 2e-4);
        }
    }
}
