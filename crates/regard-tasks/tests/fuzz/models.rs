//! The small files of a model's folder: configurations, tokenizers, options; recipes; and patterns
//! and schemas that texts are to match.

use burn::tensor::Device;
use regard_fuzz::{Limits, Scratch, fuzz, parts};
use regard_models::checkpoint::{self, Arrays, Precision};
use regard_models::{ModelFiles, Network, zoo};
use regard_tasks::constraint::{Constraint, ConstraintVocabulary};
use regard_tasks::decode::Options;
use regard_tasks::embed::sentence;
use regard_tasks::inspect::inspect;
use regard_tasks::recipe;
use regard_tasks::text::{ChatTemplate, Message, RenderOptions, TokenBytes, Tokenizer, marian};
use serde_json::Value;
use std::panic::AssertUnwindSafe;
use std::path::Path;

/// The weights of a new model of this configuration.
fn weights(config: &Value) -> Arrays {
    zoo::create::<dyn Network>(config, 1, &Device::flex()).unwrap().weights()
}

#[test]
fn fuzz_config() {
    let scratch = Scratch::default();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/config");
    let mut known = vec![];
    for entry in std::fs::read_dir(corpus).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        let Ok(config) = serde_json::from_slice::<Value>(&bytes) else { continue };
        let place = known.len().to_string();
        scratch.write(&format!("{place}/config.json"), &bytes);
        let folder = scratch.folder().join(&place);
        let path = folder.join(checkpoint::WEIGHTS);
        checkpoint::write_arrays(&path, &weights(&config), Precision::Single).unwrap();
        inspect(&folder).unwrap();
        known.push((config["model_type"].clone(), place));
    }
    fuzz!("config", |bytes: &[u8]| {
        let config: Value = serde_json::from_slice(bytes).unwrap_or_default();
        let mut read = 0;
        for (_, place) in known.iter().filter(|(kind, _)| *kind == config["model_type"]) {
            scratch.write(&format!("{place}/config.json"), bytes);
            read += usize::from(inspect(&scratch.folder().join(place)).is_ok());
        }
        read > 0
    });
}

/// `modules.json`, and the settings of the pooling that it names.
#[test]
fn fuzz_modules() {
    let scratch = Scratch::default();
    fuzz!("modules", |bytes: &[u8]| {
        let [modules, pooling] = parts(bytes);
        scratch.write("1_Pooling/config.json", pooling);
        let path = scratch.write(sentence::MODULES, modules);
        sentence::read(&scratch.folder().into()).is_ok() && sentence::files(&path).is_ok()
    });
}

#[test]
fn fuzz_generation() {
    fuzz!("generation", |bytes: &[u8]| Options::from_bytes(bytes).is_ok());
}

const TEXTS: [&str; 5] = ["", "ab the e", " a  b\u{300}\u{1f600}中\t", "[MASK]<unk> a", "eeeeeeee"];

fn use_tokenizer(tokenizer: &Tokenizer) {
    for text in TEXTS {
        if let Ok(encoding) = tokenizer.encode_special(text, Some("a")) {
            let _ = tokenizer.decode(&encoding.ids);
        }
    }
    let _ = tokenizer.decode(&[0, 1, 2, 3, u32::MAX]);
    let _ = (tokenizer.size(), tokenizer.special(), tokenizer.token(5));
}

/// Tokenizers of the vocabularies inside of GGUF files.
#[test]
fn fuzz_gguf() {
    let scratch = Scratch::default();
    fuzz!("gguf", |bytes: &[u8]| {
        let files = ModelFiles::from(&scratch.write("model.gguf", bytes));
        let Ok(tokenizer) = Tokenizer::of(&files) else { return false };
        use_tokenizer(&tokenizer);
        let _ = tokenizer.vocabulary();
        true
    });
}

#[test]
fn fuzz_tokenizer() {
    fuzz!("tokenizer", |bytes: &[u8]| {
        Tokenizer::from_bytes(bytes).map(|tokenizer| use_tokenizer(&tokenizer)).is_ok()
    });
}

/// `vocab.txt`, and `vocab.json` with `merges.txt`.
#[test]
fn fuzz_vocabulary() {
    let scratch = Scratch::default();
    fuzz!("vocabulary", |bytes: &[u8]| {
        let [vocabulary, merges] = parts(bytes);
        scratch.write("word/vocab.txt", vocabulary);
        scratch.write("byte/vocab.json", vocabulary);
        scratch.write("byte/merges.txt", merges);
        let read = ["word", "byte"].map(|folder| {
            let tokenizer = Tokenizer::load(scratch.folder().join(folder));
            tokenizer.map(|tokenizer| use_tokenizer(&tokenizer)).is_ok()
        });
        read.contains(&true)
    });
}

#[test]
fn fuzz_sentencepiece() {
    let scratch = Scratch::default();
    fuzz!("sentencepiece", |bytes: &[u8]| {
        let tokenizer = marian::sentencepiece(scratch.write("x.model", bytes));
        tokenizer.map(|tokenizer| use_tokenizer(&tokenizer)).is_ok()
    });
}

/// A recipe, and after `%%%%` a line for each `--set`.
#[test]
fn fuzz_recipe() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recipes");
    let base = |name: &str| {
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        plain.then(|| std::fs::read_to_string(folder.join(format!("{name}.toml"))).ok())?
    };
    fuzz!("recipe", |bytes: &[u8]| {
        let [text, sets] = parts(bytes);
        let Ok(text) = str::from_utf8(text) else { return false };
        let sets: Vec<String> = String::from_utf8_lossy(sets).lines().map(String::from).collect();
        let table = recipe::parse(text, &sets, &base);
        table.and_then(recipe::task).is_ok_and(|task| !task.to_toml().is_empty())
    });
}

/// The text of a template, and what it makes of a conversation.
#[test]
fn fuzz_chat_template() {
    let vocabulary = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/vocabulary/vocab.txt");
    let scratch = Scratch::default();
    scratch.write("vocab.txt", &std::fs::read(vocabulary).unwrap());
    let tokenizer = Tokenizer::load(scratch.folder()).unwrap();
    let messages = [("user", "Hi"), ("assistant", "<think>\na\n</think> é"), ("user", "go on")];
    let messages = messages.map(|(role, content)| Message::new(role, content));
    fuzz!("chat-template", |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        let template = ChatTemplate::new(&text, "template", &tokenizer);
        template.is_ok_and(|made| made.render(&messages, RenderOptions::default()).is_ok())
    });
}

/// A token for each byte, where the first one of a text may lose its space.
fn bytes() -> AssertUnwindSafe<ConstraintVocabulary> {
    let bytes = (0..=u8::MAX).map(|byte| vec![byte]).collect();
    AssertUnwindSafe(ConstraintVocabulary::of(TokenBytes { bytes, strips: true }).unwrap())
}

/// The automata of a constraint have limits of their own, of about 100 MB.
fn automata() -> Limits {
    Limits { memory: 512 << 20, ..Limits::default() }
}

/// Compiles a constraint and writes the beginning of a text; returns whether it was compiled.
fn write_matching(constraint: &Constraint, tokens: &ConstraintVocabulary) -> bool {
    let Ok(compiled) = constraint.compile(tokens) else { return false };
    let mut state = compiled.start(true);
    for step in 0..6 {
        // It may be too complex for a step.
        let Ok(allowed) = state.allowed() else { break };
        let follow: Vec<u32> = (0..256).filter(|token| allowed.allows(*token)).collect();
        let Some(token) = follow.get(follow.len() * step / 6) else { break };
        if state.push(*token).is_err() {
            break;
        }
    }
    true
}

/// A regular expression for `--regex`.
#[test]
fn fuzz_pattern() {
    let tokens = bytes();
    fuzz!("pattern", automata(), |bytes: &[u8]| {
        let pattern = String::from_utf8_lossy(bytes).into_owned();
        write_matching(&Constraint::Regex(pattern), &tokens)
    });
}

/// A JSON schema for `--json-schema`.
#[test]
fn fuzz_json_schema() {
    let tokens = bytes();
    fuzz!("json-schema", automata(), |bytes: &[u8]| {
        let Ok(schema) = serde_json::from_slice::<Value>(bytes) else { return false };
        write_matching(&Constraint::JsonSchema(schema), &tokens)
    });
}
