//! Prompts, stops and end tokens of generation, with a tokenizer like Llama's and one like GPT-2's.

use crate::small::Folder;
use burn::tensor::Device;
use regard_models::text::{self, Head};
use regard_tasks::batching::{BatchLimits, Cancel};
use regard_tasks::decode::{FinishReason, GenerationConfig, Options};
use regard_tasks::generate::{
    Generated, Generation, Generator, LongText, Parameters, PromptOptions, TokenName, Written,
};
use regard_tasks::pipeline::Pipeline;
use regard_tasks::text::Tokenizer;
use serde_json::{Value, json};
use std::fs;

/// Longest text of the models.
const CONTEXT: usize = 24;

pub fn vocabulary(first: &[&str]) -> Value {
    let letters = ('a'..='z').map(|letter| letter.to_string());
    let all = first.iter().map(|token| token.to_string()).chain(letters);
    all.enumerate().map(|(id, token)| (token, json!(id))).collect::<serde_json::Map<_, _>>().into()
}

pub fn special(id: u32, content: &str) -> Value {
    json!({ "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": true })
}

/// Letters, and words that begin with a space written as `▁`; a BOS token before each text.
pub fn llama() -> (Value, Value) {
    let tokenizer = json!({
        "version": "1.0",
        "added_tokens": [special(0, "<unk>"), special(1, "<s>"), special(2, "</s>")],
        "normalizer": { "type": "Sequence", "normalizers": [
            { "type": "Prepend", "prepend": "▁" },
            { "type": "Replace", "pattern": { "String": " " }, "content": "▁" },
        ] },
        "pre_tokenizer": null,
        "post_processor": { "type": "TemplateProcessing",
            "single": [{ "SpecialToken": { "id": "<s>", "type_id": 0 } },
                       { "Sequence": { "id": "A", "type_id": 0 } }],
            "pair": [{ "Sequence": { "id": "A", "type_id": 0 } },
                     { "Sequence": { "id": "B", "type_id": 1 } }],
            "special_tokens": { "<s>": { "id": "<s>", "ids": [1], "tokens": ["<s>"] } } },
        "decoder": { "type": "Sequence", "decoders": [
            { "type": "Replace", "pattern": { "String": "▁" }, "content": " " },
            { "type": "ByteFallback" }, { "type": "Fuse" },
            { "type": "Strip", "content": " ", "start": 1, "stop": 0 },
        ] },
        "model": { "type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true,
                   "vocab": vocabulary(&["<unk>", "<s>", "</s>", "▁", "▁a", "▁ab", "yz"]),
                   "merges": ["▁ a", "▁a b", "y z"] },
    });
    (tokenizer, json!({ "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>" }))
}

/// Letters as bytes; `<|endoftext|>` is BOS and EOS, and not added to a text.
pub fn gpt2() -> (Value, Value) {
    let byte_level = json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
                             "use_regex": true });
    let tokenizer = json!({
        "version": "1.0",
        "added_tokens": [special(0, "<|endoftext|>")],
        "normalizer": null, "pre_tokenizer": byte_level, "post_processor": byte_level,
        "decoder": byte_level,
        "model": { "type": "BPE", "vocab": vocabulary(&["<|endoftext|>", "Ġ", "Ġa"]),
                   "merges": ["Ġ a"] },
    });
    (tokenizer, json!({ "bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>" }))
}

pub fn generator(
    name: &str,
    (tokenizer, tokens): (Value, Value),
    defaults: GenerationConfig,
) -> Generator {
    let folder = Folder::new(&format!("prompts-{name}"));
    fs::write(folder.0.join("tokenizer.json"), tokenizer.to_string()).unwrap();
    fs::write(folder.0.join("tokenizer_config.json"), tokens.to_string()).unwrap();
    let tokenizer = Tokenizer::load(&folder.0).unwrap();
    let config = json!({
        "model_type": "llama", "vocab_size": tokenizer.size(), "hidden_size": 24,
        "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 6,
        "num_key_value_heads": 2, "max_position_embeddings": CONTEXT, "initializer_range": 0.3,
        "bos_token_id": tokenizer.special().bos, "eos_token_id": tokenizer.special().eos,
    });
    let model = text::create(&config, Head::Words, 5, &Device::flex()).unwrap();
    Generator::new(model, tokenizer, defaults).unwrap()
}

fn ids(writer: &Generator, text: &str, add_special_tokens: bool) -> Vec<u32> {
    let options = PromptOptions { add_special_tokens, truncate: false };
    writer.prompt(text, options).unwrap().ids().to_vec()
}

#[test]
fn a_bos_token_comes_once_where_the_tokenizer_adds_one() {
    let llama = generator("bos-llama", llama(), GenerationConfig::default());
    assert_eq!(ids(&llama, "ab", true), [1, 5]);
    assert_eq!(ids(&llama, "ab", false), [5]);
    // A chat template wrote it.
    let templated = ids(&llama, "<s>ab", true);
    assert_eq!(templated.iter().filter(|id| **id == 1).count(), 1);
    assert_eq!(templated[0], 1);
    assert_eq!(ids(&llama, "", true), [1]);
    let gpt2 = generator("bos-gpt2", gpt2(), GenerationConfig::default());
    assert_eq!(ids(&gpt2, "ab", true), [3, 4]);
    assert_eq!(ids(&gpt2, "ab a", true), [3, 4, 2]);
    assert_eq!(ids(&gpt2, "", true), [0], "an empty prompt needs a token");

    let score = |writer: &Generator| writer.score("abc", LongText::Refuse).unwrap();
    let (with, without) = (score(&llama), score(&gpt2));
    assert_eq!(with.tokens, ["▁ab", "c"]);
    assert!(with.token_logprobs.iter().all(Option::is_some), "BOS is the context of the first");
    assert_eq!(without.tokens, ["a", "b", "c"]);
    let known: Vec<bool> = without.token_logprobs.iter().map(Option::is_some).collect();
    assert_eq!(known, [false, true, true]);
}

#[test]
fn the_configuration_decides_over_the_template() {
    let (tokenizer, mut tokens) = llama();
    tokens["add_bos_token"] = false.into();
    let without = generator("bos-off", (tokenizer, tokens), GenerationConfig::default());
    assert_eq!(ids(&without, "ab", true), [5]);
    assert_eq!(without.score("abc", LongText::Refuse).unwrap().token_logprobs[0], None);
    let (tokenizer, mut tokens) = gpt2();
    tokens["add_bos_token"] = true.into();
    let with = generator("bos-on", (tokenizer, tokens), GenerationConfig::default());
    assert_eq!(ids(&with, "ab", true), [0, 3, 4]);
}

/// Generates with a token that is always the best.
fn always(
    writer: &Generator,
    token: &str,
    change: Options,
    stop: &[String],
) -> (Generated, String) {
    let token = writer.token_id("token", &token.into()).unwrap();
    let options = Options { logit_bias: vec![(token, 1e4)], ..change };
    let mut seen = String::new();
    let mut watch = |written: Written| {
        seen += written.text;
        true
    };
    let prompt = writer.prompt("ab", PromptOptions::default()).unwrap();
    let how = Generation { stop, ..Generation::new(&options) };
    (writer.generate(&prompt, &how, &mut watch).unwrap().remove(0), seen)
}

#[test]
fn stop_strings_are_found_across_tokens() {
    let four = Options { max_new_tokens: Some(4), ..Options::default() };
    for (name, tokenizer, token, text) in
        [("llama", llama(), "▁ab", " ab ab ab ab"), ("gpt2", gpt2(), "Ġa", " a a a a")]
    {
        let writer = generator(&format!("stop-{name}"), tokenizer, GenerationConfig::default());
        let (found, seen) = always(&writer, token, four.clone(), &[]);
        // The space before the first word stays, as it follows the prompt.
        assert_eq!((&found.text[..], &seen[..]), (text, text), "{name}");
        assert_eq!(found.finish_reason, FinishReason::Length);
        for stop in ["a ", "a a", " a"] {
            let stop = stop.replace("a", token.trim_start_matches(['▁', 'Ġ']));
            let (found, seen) = always(&writer, token, four.clone(), std::slice::from_ref(&stop));
            let want = &text[..text.find(&stop).unwrap()];
            assert_eq!((&found.text[..], &seen[..]), (want, want), "{name}: {stop:?}");
            assert_eq!(found.finish_reason, FinishReason::Stop);
        }
        // Part of a stop string at the very end is text.
        let stop = [format!("{text}!")];
        let (found, seen) = always(&writer, token, four.clone(), &stop);
        assert_eq!((&found.text[..], &seen[..]), (text, text));
    }
}

#[test]
fn a_stop_string_that_the_end_completes_is_the_reason() {
    let (mut tokenizer, tokens) = llama();
    tokenizer["model"]["vocab"]["<0xE2>"] = 33.into();
    let writer = generator("stop-end", (tokenizer, tokens), GenerationConfig::default());
    // Bytes of no letter become text at the end.
    let two = Options { max_new_tokens: Some(2), ..Options::default() };
    let (found, seen) = always(&writer, "33", two.clone(), &[]);
    assert!(found.text.contains('\u{fffd}'), "{:?}", found.text);
    assert_eq!((&found.text, found.finish_reason), (&seen, FinishReason::Length));
    let stop = ["\u{fffd}".to_string()];
    let (found, seen) = always(&writer, "33", two, &stop);
    assert_eq!((&found.text[..], &seen[..]), ("", ""));
    assert_eq!(found.finish_reason, FinishReason::Stop);
}

#[test]
fn a_watcher_that_has_seen_enough_is_not_called_again() {
    let writer = generator("watch", llama(), GenerationConfig::default());
    let options =
        Options { logit_bias: vec![(5, 1e4)], max_new_tokens: Some(4), ..Options::default() };
    // Held back, because a stop string begins with it.
    let stop = [" ab ab!".to_string()];
    let how = Generation { stop: &stop, ..Generation::new(&options) };
    let prompt = writer.prompt("ab", PromptOptions::default()).unwrap();
    let mut calls = 0;
    let mut watch = |_: Written| {
        calls += 1;
        false
    };
    let found = writer.generate(&prompt, &how, &mut watch).unwrap().remove(0);
    assert_eq!((found.finish_reason, calls), (FinishReason::Cancelled, 1));
}

#[test]
fn a_generation_is_cancelled_while_it_reads_and_while_it_writes() {
    let writer = generator("cancel", llama(), GenerationConfig::default());
    let options = Options { max_new_tokens: Some(9), ..Options::default() };
    let prompt = writer.prompt("abcdefgh", PromptOptions::default()).unwrap();
    for early in [true, false] {
        let cancel = Cancel::new();
        if early {
            cancel.cancel();
        }
        let how = Generation { cancel: Some(&cancel), ..Generation::new(&options) };
        let mut watch = |_: Written| {
            assert!(!cancel.is_cancelled());
            cancel.cancel();
            true
        };
        let error = writer.generate(&prompt, &how, &mut watch).unwrap_err().to_string();
        assert!(error.contains("cancelled"), "{error}");
        let error = writer.run_until("ab", &Parameters::default(), None, &cancel).unwrap_err();
        assert!(error.to_string().contains("cancelled"), "{error}");
        let error = writer.score_until("abc", LongText::Refuse, &cancel).unwrap_err();
        assert!(error.to_string().contains("cancelled"), "{error}");
    }
    assert_eq!(writer.usage().unwrap().sessions, 0);
}

#[test]
fn what_fits_the_memory_fits_with_a_draft() {
    let open = |name: &str| generator(name, llama(), GenerationConfig::default());
    let (plain, mut writer) = (open("room-plain"), open("room"));
    let session = plain.batching().unwrap().session(1, CONTEXT, &Cancel::new()).unwrap();
    let cache_bytes = 3 * plain.usage().unwrap().reserved_bytes;
    drop(session);
    let limits = BatchLimits { cache_bytes, ..writer.limits() };
    let run = |writer: &Generator, n: usize| {
        let parameters = json!({ "n": n, "do_sample": true, "max_new_tokens": 9, "seed": 3 });
        let parameters: Parameters = serde_json::from_value(parameters).unwrap();
        writer.run_one("abcdefgh".into(), &parameters)
    };
    let texts = |writer: &Generator, n: usize| -> Vec<String> {
        run(writer, n).unwrap().results().map(|one| one.generated_text.clone()).collect()
    };
    writer.set_limits(limits).unwrap();
    for again in 0..3 {
        match again {
            2 => writer.set_limits(limits).unwrap(),
            _ => writer.set_draft(open("room-draft"), 3).unwrap(),
        }
        assert_eq!(writer.limits(), limits);
        for n in 1..=3 {
            assert_eq!(texts(&writer, n), texts(&plain, n));
            let guesses = run(&writer, n).unwrap().guesses.unwrap();
            assert_eq!(guesses.guessed > 0, n == 1, "{n}");
        }
        let error = run(&writer, 4).unwrap_err().to_string();
        assert!(error.contains("the limit is 24.6 kB"), "{error}");
    }
}

#[test]
fn any_of_several_end_tokens_ends_a_text() {
    let defaults = GenerationConfig { eos: Some(vec![2, 9, 11, 5000]), ..Default::default() };
    let writer = generator("ends", llama(), defaults);
    for (token, eos) in [("</s>", true), ("c", true), ("e", true), ("d", false)] {
        let most = Options { max_new_tokens: Some(3), ..Options::default() };
        let (found, _) = always(&writer, token, most.clone(), &[]);
        let want = if eos { FinishReason::Eos } else { FinishReason::Length };
        assert_eq!((found.finish_reason, found.ids.is_empty()), (want, eos), "{token}");
        // None of them comes too early.
        let least = Options { min_new_tokens: 2, ..most };
        let (found, _) = always(&writer, token, least, &[]);
        assert!(found.ids.len() >= 2 && !found.ids[..2].contains(&9), "{:?}", found.ids);
    }
}

#[test]
fn truncation_keeps_the_start_token_and_the_end_of_the_text() {
    let long = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnop";
    let options = PromptOptions { truncate: true, ..PromptOptions::default() };
    let llama = generator("cut-llama", llama(), GenerationConfig::default());
    let error = llama.prompt(long, PromptOptions::default()).unwrap_err().to_string();
    let all = llama.tokenizer().encode(long).unwrap().ids;
    let numbers = format!("{} tokens, the model's context is {CONTEXT}", all.len() + 1);
    assert!(error.contains(&numbers) && error.contains("truncate"), "{error}");
    let cut = llama.prompt(long, options).unwrap();
    assert_eq!((cut.ids()[0], cut.ids().len()), (1, CONTEXT));
    assert_eq!(cut.ids()[1..], all[all.len() + 1 - CONTEXT..]);
    assert_eq!(cut.truncated(), all.len() + 1 - CONTEXT);
    // A prompt that fills the context is continued.
    let four = Options { max_new_tokens: Some(4), suppress_tokens: vec![2], ..Options::default() };
    let found = llama.generate(&cut, &Generation::new(&four), &mut |_| true).unwrap();
    assert_eq!(found[0].ids.len(), 4);
    let error = llama.score(long, LongText::Refuse).unwrap_err().to_string();
    assert!(error.contains(&numbers) && error.contains("windows"), "{error}");
    let scored = llama.score(long, LongText::Truncate).unwrap();
    // The last token is only predicted, and needs no place in the context.
    assert_eq!((scored.tokens.len(), scored.truncated), (CONTEXT, all.len() - CONTEXT));
    assert!(scored.token_logprobs.iter().all(Option::is_some));
    let scored = llama.score(long, LongText::Windows).unwrap();
    assert_eq!((scored.tokens.len(), scored.truncated), (all.len(), 0));
    assert!(scored.token_logprobs.iter().all(Option::is_some));
    let gpt2 = generator("cut-gpt2", gpt2(), GenerationConfig::default());
    let cut = gpt2.prompt(long, options).unwrap();
    let all = gpt2.tokenizer().encode(long).unwrap().ids;
    assert_eq!(cut.ids(), &all[all.len() - CONTEXT..]);
}

#[test]
fn several_samples_read_the_prompt_once() {
    let writer = generator("n", llama(), GenerationConfig::default());
    let parameters: Parameters = serde_json::from_value(json!({
        "n": 5, "do_sample": true, "max_new_tokens": 6, "seed": 3, "logprobs": 3,
        "logit_bias": { "</s>": -100.0, "4": 1.5 }, "stop_tokens": ["yz", 8],
    }))
    .unwrap();
    let text = "abcdefghijklmnop";
    let before = writer.usage().unwrap();
    let found = writer.run_one(text.into(), &parameters).unwrap();
    let after = writer.usage().unwrap();
    assert_eq!(found.results().count(), 5);
    let read = after.prompt_tokens - before.prompt_tokens;
    assert_eq!(read as usize + 1, found.prompt_tokens, "all but the last token, which is fed");
    let texts: std::collections::BTreeSet<_> =
        found.results().map(|one| &one.generated_text).collect();
    assert!(texts.len() > 1, "{texts:?}");
    for one in found.results() {
        assert!(one.generated_text.starts_with(text));
        let tokens = one.logprobs.as_ref().unwrap();
        assert_eq!(tokens.len(), one.token_ids.len());
        let ended = usize::from(one.finish_reason == FinishReason::Stop);
        assert_eq!(one.completion_tokens, tokens.len() + ended);
        for token in tokens {
            let top = &token.top_logprobs;
            assert!(
                top.len() == 3 && top.windows(2).all(|pair| pair[0].logprob >= pair[1].logprob)
            );
            assert!(token.logprob <= top[0].logprob);
        }
    }
    // The first sample is what one sample alone is.
    let mut one = parameters.clone();
    one.search.num_return_sequences = Some(1);
    let alone = writer.run_one(text.into(), &one).unwrap();
    assert!(found.results().any(|each| each.token_ids == alone.token_ids));
}

#[test]
fn tokens_that_are_none_are_named() {
    let writer = generator("names", llama(), GenerationConfig::default());
    let id = |name: &str| writer.token_id("stop_tokens", &name.into());
    assert_eq!((id("▁ab").unwrap(), id("ab").unwrap(), id("12").unwrap()), (5, 5, 12));
    assert_eq!(writer.token_id("x", &TokenName::Text("12".into())).unwrap(), 12);
    for (name, want) in [
        ("abcd", "stop_tokens: \"abcd\" is 3 tokens, need one"),
        ("33", "stop_tokens: got token 33, the vocabulary has 33 tokens"),
    ] {
        let error = id(name).unwrap_err().to_string();
        assert!(error.starts_with(want), "{error}");
    }
    for (parameters, want) in [
        (json!({ "logprobs": 5000 }), "logprobs: got 5000, need 0 to 1024"),
        (json!({ "typical_p": 0.0 }), "typical_p: got 0, need a number above 0"),
        (json!({ "min_new_tokens": 5, "max_new_tokens": 4 }), "min_new_tokens 5 is above"),
        (json!({ "logit_bias": { "abcd": 1.0 } }), "logit_bias: \"abcd\" is 3 tokens"),
        (
            json!({ "logit_bias": { "▁ab": 1.0, "c": 2.0, "5": -1.0 } }),
            "logit_bias: \"5\" and \"▁ab\" are both token 5",
        ),
        (json!({ "n": 2 }), "num_return_sequences: got 2, need at most num_beams"),
    ] {
        let parameters: Parameters = serde_json::from_value(parameters).unwrap();
        let error = writer.run_one("a".into(), &parameters).unwrap_err().to_string();
        assert!(error.starts_with(want), "{error}");
    }
}
