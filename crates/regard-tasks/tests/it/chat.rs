//! Conversations: prompts by a template, ends of turns, the context, and what is not computed again.

use crate::small::Folder;
use burn::tensor::Device;
use regard_models::text::{self, Head};
use regard_tasks::batching::{BatchLimits, Cancel};
use regard_tasks::chat::{Chat, ChatTemplate, Inputs, Message};
use regard_tasks::decode::{FinishReason, GenerationConfig, Options};
use regard_tasks::generate::{Generator, Parameters, Written};
use regard_tasks::pipeline::Pipeline;
use regard_tasks::text::Tokenizer;
use serde_json::{Value, json};
use std::fs;

const CONTEXT: usize = 240;

const TEMPLATE: &str = "{{ bos_token }}{% for m in messages %}\
{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}\
{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

/// Letters, and special tokens of which only the template knows that one ends a turn.
fn tokenizer() -> (Value, Value) {
    let special = ["<s>", "</s>", "<|im_start|>", "<|im_end|>"];
    let added = special.iter().enumerate().map(|(id, content)| {
        json!({ "id": id, "content": content, "single_word": false, "lstrip": false,
                "rstrip": false, "normalized": false, "special": true })
    });
    let letters = ('a'..='z').map(String::from).chain(["Ġ", "Ċ"].map(String::from));
    let all = special.iter().map(|token| token.to_string()).chain(letters);
    let vocabulary: serde_json::Map<_, _> =
        all.enumerate().map(|(id, token)| (token, json!(id))).collect();
    let bytes = json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
                        "use_regex": true });
    let tokenizer = json!({
        "version": "1.0", "added_tokens": added.collect::<Vec<_>>(), "normalizer": null,
        "pre_tokenizer": bytes, "decoder": bytes,
        "post_processor": { "type": "TemplateProcessing",
            "single": [{ "SpecialToken": { "id": "<s>", "type_id": 0 } },
                       { "Sequence": { "id": "A", "type_id": 0 } }],
            "pair": [{ "Sequence": { "id": "A", "type_id": 0 } },
                     { "Sequence": { "id": "B", "type_id": 1 } }],
            "special_tokens": { "<s>": { "id": "<s>", "ids": [0], "tokens": ["<s>"] } } },
        "model": { "type": "BPE", "vocab": vocabulary, "merges": [] },
    });
    (tokenizer, json!({ "bos_token": "<s>", "eos_token": "</s>" }))
}

fn generator(name: &str, defaults: GenerationConfig) -> Generator {
    let folder = Folder::new(&format!("chat-{name}"));
    let (whole, tokens) = tokenizer();
    fs::write(folder.0.join("tokenizer.json"), whole.to_string()).unwrap();
    fs::write(folder.0.join("tokenizer_config.json"), tokens.to_string()).unwrap();
    let tokenizer = Tokenizer::load(&folder.0).unwrap();
    let config = json!({
        "model_type": "llama", "vocab_size": tokenizer.size(), "hidden_size": 24,
        "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 6,
        "num_key_value_heads": 2, "max_position_embeddings": CONTEXT, "initializer_range": 0.3,
        "bos_token_id": 0, "eos_token_id": 1,
    });
    let model = text::create(&config, Head::Words, 5, &Device::flex()).unwrap();
    Generator::new(model, tokenizer, defaults).unwrap()
}

fn with(generator: Generator, template: &str) -> Chat {
    let template = ChatTemplate::new(template, "test", generator.tokenizer()).unwrap();
    Chat::new(generator, template)
}

fn chat(name: &str) -> Chat {
    with(generator(name, GenerationConfig::default()), TEMPLATE)
}

fn user(content: &str) -> Message {
    Message::new("user", content)
}

/// Parameters that always choose a token.
fn always(token: &str) -> Parameters {
    serde_json::from_value(json!({ "logit_bias": { token: 1000.0 } })).unwrap()
}

fn ask(chat: &Chat, messages: &[Message], parameters: &Parameters) -> regard_tasks::chat::Response {
    chat.answer(messages, parameters, None, 0, &Cancel::new(), &mut |_| true).unwrap()
}

#[test]
fn the_template_writes_the_special_tokens_and_nothing_adds_them_again() {
    let chat = chat("special");
    let tokens = |prompt: &[u32]| -> Vec<String> {
        prompt.iter().map(|id| chat.generator().tokenizer().token(*id).unwrap()).collect()
    };
    let prompt = chat.prompt(&[user("hi")]).unwrap();
    let want = "<s> <|im_start|> u s e r Ċ h i <|im_end|> Ċ <|im_start|> a s s i s t a n t Ċ";
    assert_eq!(tokens(prompt.ids()).join(" "), want);
    assert!(chat.prompt(&[]).unwrap_err().to_string().contains("at least one"));
}

#[test]
fn an_answer_ends_where_the_template_ends_a_turn() {
    let chat = chat("ends");
    for token in ["<|im_end|>", "</s>"] {
        let said = ask(&chat, &[user("hi")], &always(token));
        assert_eq!((said.finish_reason, said.completion_tokens), (FinishReason::Eos, 1), "{token}");
        assert_eq!(said.message, Message::new("assistant", ""));
    }
    let said = ask(&chat, &[user("hi")], &always("<|im_start|>"));
    assert_eq!(said.finish_reason, FinishReason::Length);
}

#[test]
fn a_conversation_fills_the_context_and_no_more() {
    let chat = chat("context");
    let said = ask(&chat, &[user("hi")], &always("a"));
    assert_eq!(said.finish_reason, FinishReason::Length);
    assert_eq!(said.prompt_tokens + said.completion_tokens, CONTEXT);
    assert_eq!(said.message.content, "a".repeat(said.completion_tokens));
    let long = [user("hi"), said.message, user("and")];
    let error = chat.prompt(&long).unwrap_err().to_string();
    let tokens = chat
        .generator()
        .tokenizer()
        .encode(&chat.template().render(&long, Default::default()).unwrap());
    let numbers = format!("{} tokens, and the model's context of {CONTEXT}", tokens.unwrap().len());
    assert!(error.contains(&numbers), "{error}");
    let short = Parameters {
        search: serde_json::from_value(json!({ "max_new_tokens": 5 })).unwrap(),
        ..always("a")
    };
    assert_eq!(ask(&chat, &[user("hi")], &short).message.content, "aaaaa");
    let truncated = Parameters { truncate: true, ..Parameters::default() };
    let error = chat.answer(&[user("a")], &truncated, None, 0, &Cancel::new(), &mut |_| true);
    assert!(error.unwrap_err().to_string().contains("not truncated"));
}

#[test]
fn a_turn_computes_only_what_is_new() {
    let chat = chat("shared");
    let parameters: Parameters = serde_json::from_value(json!({ "max_new_tokens": 10 })).unwrap();
    let mut messages = vec![Message::new("system", "be kind to all of us"), user("hello")];
    let mut before = 0;
    for turn in 0..4 {
        let used = chat.generator().usage().unwrap();
        let said = ask(&chat, &messages, &parameters);
        let usage = chat.generator().usage().unwrap();
        let shared = (usage.shared_tokens - used.shared_tokens) as usize;
        let read = (usage.prompt_tokens - used.prompt_tokens) as usize;
        // All of the last prompt but its last token, which is fed, not read.
        assert_eq!(shared, if turn == 0 { 0 } else { before - 1 }, "turn {turn}");
        assert_eq!(shared + read, said.prompt_tokens - 1, "turn {turn}");
        before = said.prompt_tokens;
        // What a new program would say.
        assert_eq!(said, ask(&self::chat(&format!("shared-{turn}")), &messages, &parameters));
        messages.push(said.message);
        messages.push(user("go on"));
    }
}

#[test]
fn an_answer_comes_in_pieces_and_can_be_stopped() {
    let chat = chat("pieces");
    let (mut text, mut pieces) = (String::new(), 0);
    let parameters = always("b");
    let said = chat.answer(&[user("hi")], &parameters, None, 0, &Cancel::new(), &mut |piece| {
        text.push_str(piece.text);
        pieces += 1;
        pieces < 7
    });
    let said = said.unwrap();
    assert_eq!((said.finish_reason, &said.message.content), (FinishReason::Cancelled, &text));
    assert!((5..9).contains(&text.len()), "{text}");
    let cancel = Cancel::new();
    cancel.cancel();
    let error = chat.answer(&[user("hi")], &parameters, None, 0, &cancel, &mut |_| true);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("cancelled"), "{error}");
    // The next answer is not.
    let short = serde_json::from_value(json!({ "max_new_tokens": 3, "logit_bias": { "b": 99.0 } }));
    assert_eq!(ask(&chat, &[user("hi")], &short.unwrap()).message.content, "bbb");
}

#[test]
fn requests_are_checked_and_models_without_a_template_refused() {
    let messages = json!({ "messages": [{ "role": "user", "content": "hi" }] });
    assert!(serde_json::from_value::<Inputs>(messages.clone()).is_ok());
    let mut odd = messages.clone();
    odd["tools"] = json!([]);
    assert!(serde_json::from_value::<Inputs>(odd).is_err());
    let mut odd = messages;
    odd["messages"][0]["name"] = json!("x");
    assert!(serde_json::from_value::<Inputs>(odd).is_err());
    let models = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
    let error = Chat::open(models.join("shakespeare").as_path().into()).err().unwrap().to_string();
    assert!(
        error.contains("no chat template") && error.contains("--chat-template FILE"),
        "{error}"
    );
    // A list of conversations, each answered as alone.
    let chat = chat("list");
    let parameters: Parameters = serde_json::from_value(json!({ "max_new_tokens": 6 })).unwrap();
    let inputs: Vec<Inputs> =
        ["hi", "ho"].map(|text| Inputs { messages: vec![user(text)] }).to_vec();
    let all = chat.run(&inputs, &parameters).unwrap();
    for (input, said) in inputs.into_iter().zip(all) {
        assert_eq!(said.unwrap(), chat.run_one(input, &parameters).unwrap());
    }
}

#[test]
fn the_length_of_an_answer_leaves_room_for_the_conversation() {
    let chat = chat("length");
    let begun = chat.prompt(&[user("hi")]).unwrap().ids().len();
    let long = |most: usize| Parameters {
        search: serde_json::from_value(json!({ "max_length": most })).unwrap(),
        ..always("a")
    };
    assert_eq!(ask(&chat, &[user("hi")], &long(begun + 3)).message.content, "aaa");
    for most in [begun, 1] {
        let error = chat.answer(&[user("hi")], &long(most), None, 0, &Cancel::new(), &mut |_| true);
        let error = error.unwrap_err().to_string();
        let numbers = format!("max_length: got {most}, but the conversation has {begun} tokens");
        assert!(error.contains(&numbers), "{error}");
    }
}

#[test]
fn an_answer_without_a_length_fits_the_caches() {
    let mut chat = chat("caches");
    // A page holds 64 positions.
    let page = {
        let engine = chat.generator().batching().unwrap();
        let _one = engine.session(1, 1, &Cancel::new()).unwrap();
        engine.usage().reserved_bytes
    };
    let limits = BatchLimits { cache_bytes: 2 * page, ..chat.generator().limits() };
    chat.generator_mut().set_limits(limits).unwrap();
    let said = ask(&chat, &[user("hi")], &always("a"));
    assert_eq!(said.finish_reason, FinishReason::Length);
    assert_eq!(said.prompt_tokens + said.completion_tokens, 128);
    // A length that was asked for is not shortened.
    let asked = serde_json::from_value(json!({ "max_new_tokens": 150 })).unwrap();
    let error = chat.answer(&[user("hi")], &asked, None, 0, &Cancel::new(), &mut |_| true);
    let error = error.unwrap_err().to_string();
    let length = said.prompt_tokens + 150;
    let sequence = format!("KV cache: 1 sequences of up to {length} tokens");
    assert!(error.starts_with(&sequence), "{error}");
}

#[test]
fn a_conversation_has_one_answer_unless_more_are_asked_for() {
    let several = Options { do_sample: true, num_return_sequences: 3, ..Options::default() };
    let beams = Options { num_beams: 3, num_return_sequences: 3, ..Options::default() };
    for (name, options) in [("several", several), ("beams", beams)] {
        let defaults = GenerationConfig { options, ..GenerationConfig::default() };
        let chat = with(generator(name, defaults), TEMPLATE);
        let few = |count: Option<usize>| -> Parameters {
            serde_json::from_value(json!({ "max_new_tokens": 4, "n": count })).unwrap()
        };
        let mut text = String::new();
        let mut watch = |piece: Written| {
            text.push_str(piece.text);
            true
        };
        let none = Cancel::new();
        let said = chat.answer(&[user("hi")], &few(None), None, 0, &none, &mut watch).unwrap();
        assert!(said.alternatives.is_empty(), "{name}: {said:?}");
        // Of beams nothing is certain before the end.
        let certain = if name == "beams" { "" } else { said.message.content.as_str() };
        assert_eq!(text, certain, "{name}");
        assert_eq!(ask(&chat, &[user("hi")], &few(Some(2))).alternatives.len(), 1, "{name}");
    }
}

#[test]
fn a_template_that_writes_nothing_is_an_error() {
    let defaults = GenerationConfig::default();
    let chat = with(generator("nothing", defaults), "{% if false %}x{% endif %}\n");
    let error = chat.prompt(&[user("hi")]).unwrap_err().to_string();
    assert!(error.contains("writes nothing"), "{error}");
}

#[test]
fn answers_match_a_constraint_of_the_request() {
    let chat = chat("constraint");
    let parameters = |pattern: &str| -> Parameters {
        serde_json::from_value(json!({ "regex": pattern, "max_new_tokens": 9 })).unwrap()
    };
    let inputs = ["hi", "ho", "hu"].map(|text| Inputs { messages: vec![user(text)] });
    for said in chat.run(&inputs, &parameters("b{3}")).unwrap() {
        assert_eq!(said.unwrap().message.content, "bbb");
    }
    let error = chat.run(&inputs, &parameters("b(")).unwrap_err().to_string();
    assert!(error.contains("unclosed group"), "{error}");
}
