//! Keys of a file's metadata.

use super::super::kinds::Kind;
use super::super::names;
use super::super::{Architecture, Pooling};
use super::Content;
use crate::checkpoint::Arrays;
use crate::rope::Rope;
use crate::vocabulary::{Splitting, TokenKind, Vocabulary};
use regard_attention::layers::Scaling;
use serde_json::Value;

/// A value.
pub enum Entry {
    Number(u32),
    Float(f32),
    Truth(bool),
    Text(String),
    Texts(Vec<String>),
    Floats(Vec<f32>),
    Integers(Vec<i32>),
}

impl Entry {
    /// Writes type and value.
    pub fn write(&self, to: &mut Vec<u8>) {
        let mut list = |kind: u32, count: usize| {
            to.extend(9u32.to_le_bytes());
            to.extend(kind.to_le_bytes());
            to.extend((count as u64).to_le_bytes());
        };
        match self {
            Entry::Texts(all) => list(8, all.len()),
            Entry::Floats(all) => list(6, all.len()),
            Entry::Integers(all) => list(5, all.len()),
            Entry::Number(_) => to.extend(4u32.to_le_bytes()),
            Entry::Float(_) => to.extend(6u32.to_le_bytes()),
            Entry::Truth(_) => to.extend(7u32.to_le_bytes()),
            Entry::Text(_) => to.extend(8u32.to_le_bytes()),
        }
        match self {
            Entry::Number(n) => to.extend(n.to_le_bytes()),
            Entry::Float(x) => to.extend(x.to_le_bytes()),
            Entry::Truth(truth) => to.push(u8::from(*truth)),
            Entry::Text(text) => super::text(to, text),
            Entry::Texts(all) => all.iter().for_each(|text| super::text(to, text)),
            Entry::Floats(all) => all.iter().for_each(|x| to.extend(x.to_le_bytes())),
            Entry::Integers(all) => all.iter().for_each(|n| to.extend(n.to_le_bytes())),
        }
    }
}

type Entries = Vec<(String, Entry)>;

/// Number of a file of this type in `general.file_type`.
fn file_type(kind: Kind) -> u32 {
    match kind {
        Kind::F32 => 0,
        Kind::Q4_0 => 2,
        Kind::Q8_0 => 7,
        _ => 1,
    }
}

/// Keys that `config.json` calls otherwise in some families, and what follows where it is silent.
struct Sizes<'a>(&'a Value);

impl Sizes<'_> {
    fn find(&self, names: &[&str]) -> Option<u32> {
        let found = names.iter().find_map(|name| self.0[*name].as_u64());
        found.and_then(|n| u32::try_from(n).ok())
    }

    fn need(&self, names: &[&str]) -> Result<u32, String> {
        self.find(names).ok_or_else(|| format!("config.json has no {}", names[0]))
    }
}

/// Keys of a model's configuration.
pub fn of_model(
    architecture: &Architecture,
    content: &Content,
    kind: Kind,
) -> Result<Entries, String> {
    let (of, &Content { config, weights, pooling, .. }) = (architecture.name, content);
    let sizes = Sizes(config);
    let mut entries: Entries = vec![
        ("general.architecture".into(), Entry::Text(of.into())),
        ("general.file_type".into(), Entry::Number(file_type(kind))),
        ("general.quantization_version".into(), Entry::Number(2)),
    ];
    let mut put = |key: &str, entry: Entry| entries.push((format!("{of}.{key}"), entry));
    let number = Entry::Number;
    let (width, heads) =
        (sizes.need(&["hidden_size", "n_embd"])?, sizes.need(&["num_attention_heads", "n_head"])?);
    put("context_length", number(sizes.need(&["max_position_embeddings", "n_positions"])?));
    put("embedding_length", number(width));
    put("block_count", number(sizes.need(&["num_hidden_layers", "n_layer"])?));
    let inner = sizes.find(&["intermediate_size", "n_inner"]).unwrap_or(4 * width);
    put("feed_forward_length", number(inner));
    put("attention.head_count", number(heads));
    let eps = |names: &[&str], usual: f64| {
        Entry::Float(names.iter().find_map(|n| config[*n].as_f64()).unwrap_or(usual) as f32)
    };
    if ["gpt2", "bert"].contains(&of) {
        let usual = if of == "bert" { 1e-12 } else { 1e-5 };
        put("attention.layer_norm_epsilon", eps(&["layer_norm_epsilon", "layer_norm_eps"], usual));
        if of == "bert" {
            put("attention.causal", Entry::Truth(false));
            put("pooling_type", number(pooling.unwrap_or(Pooling::Mean).number()));
            let types = rows(weights, "embeddings.token_type_embeddings.weight")?;
            entries.push(("tokenizer.ggml.token_type_count".into(), number(types)));
        }
        return Ok(entries);
    }
    put("attention.head_count_kv", number(sizes.find(&["num_key_value_heads"]).unwrap_or(heads)));
    put("attention.layer_norm_rms_epsilon", eps(&["rms_norm_eps"], 1e-6));
    let head = head_width(config)?;
    put("attention.key_length", number(head));
    put("attention.value_length", number(head));
    put("rope.dimension_count", number(head));
    put("vocab_size", number(words(architecture, weights)?));
    let rope = rope(of, config)?;
    put("rope.freq_base", Entry::Float(rope.base));
    if let Scaling::Linear { factor } = rope.scaling {
        put("rope.scaling.type", Entry::Text("linear".into()));
        put("rope.scaling.factor", Entry::Float(factor as f32));
    }
    if of == "gemma3" {
        gemma3(config, &mut put);
    }
    Ok(entries)
}

/// Number of rows of the embeddings.
pub fn words(of: &Architecture, weights: &Arrays) -> Result<u32, String> {
    let (name, _) = names::ours(of.names, "token_embd.weight").ok_or("has no embeddings")?;
    rows(weights, &name)
}

fn rows(weights: &Arrays, name: &str) -> Result<u32, String> {
    let rows = weights.get(name).and_then(|table| table.shape.first());
    let rows = rows.and_then(|rows| u32::try_from(*rows).ok());
    rows.ok_or_else(|| format!("the model has no {name} with rows"))
}

/// Keys of Gemma 3.
fn gemma3(config: &Value, put: &mut dyn FnMut(&str, Entry)) {
    let window = config["sliding_window"].as_u64().unwrap_or(4096);
    put("attention.sliding_window", Entry::Number(window as u32));
    let near = config["rope_parameters"]["sliding_attention"]["rope_theta"].as_f64();
    let near = near.or(config["rope_local_base_freq"].as_f64()).unwrap_or(10_000.0);
    put("rope.freq_base_swa", Entry::Float(near as f32));
    if let Some(cap) = config["final_logit_softcapping"].as_f64() {
        put("final_logit_softcapping", Entry::Float(cap as f32));
    }
}

fn head_width(config: &Value) -> Result<u32, String> {
    let sizes = Sizes(config);
    match sizes.find(&["head_dim"]) {
        Some(width) => Ok(width),
        None => {
            let (width, heads) =
                (sizes.need(&["hidden_size"])?, sizes.need(&["num_attention_heads"])?);
            width.checked_div(heads).ok_or_else(|| "num_attention_heads: got 0".into())
        }
    }
}

/// Rotary positions, by the newer keys or the older ones.
fn rope(of: &str, config: &Value) -> Result<regard_attention::layers::RotaryConfig, String> {
    let parameters = match &config["rope_parameters"] {
        Value::Object(all) if all.contains_key("full_attention") => all["full_attention"].clone(),
        found => found.clone(),
    };
    let scaling = &config["rope_scaling"];
    let scaled = scaling.as_object().is_some_and(|keys| !keys.is_empty());
    let json = if scaled || parameters.is_null() { scaling.clone() } else { parameters };
    let usual = if of == "gemma3" { 1_000_000.0 } else { 10_000.0 };
    let theta = config["rope_theta"].as_f64().unwrap_or(usual) as f32;
    let length = config["max_position_embeddings"].as_u64().unwrap_or(1) as usize;
    Rope::read(&json)?.config(length, head_width(config)? as usize, theta)
}

/// Divisors of the rotary frequencies, where their scaling has no keys.
pub fn divisors(of: &str, config: &Value) -> Result<Option<Vec<f32>>, String> {
    if ["gpt2", "bert"].contains(&of) {
        return Ok(None);
    }
    let scaled = rope(of, config)?;
    let Scaling::Llama3 { .. } = scaled.scaling else { return Ok(None) };
    let plain = regard_attention::layers::RotaryConfig { scaling: Scaling::None, ..scaled };
    let both = plain.frequencies().into_iter().zip(scaled.frequencies());
    Ok(Some(both.map(|(plain, scaled)| (plain / scaled) as f32).collect()))
}

/// Keys of a vocabulary. llama.cpp takes its size for the number of rows of the embeddings, so that
/// rows without a token get one that is in no text.
pub fn of_vocabulary(vocabulary: &Vocabulary, rows: u32) -> Result<Entries, String> {
    let count = vocabulary.tokens.len();
    let Some(missing) = (rows as usize).checked_sub(count) else {
        return Err(format!("the tokenizer has {count} tokens, the model has rows for {rows}"));
    };
    let (model, pre) = match vocabulary.splitting {
        Splitting::ByteLevel(pre) => ("gpt2", pre.name()),
        Splitting::Scores => ("llama", "default"),
        Splitting::WordPiece => ("bert", "bert"),
    };
    let kind = |kind: &TokenKind| {
        1 + TokenKind::ALL.iter().position(|of| of == kind).expect("all kinds") as i32
    };
    let mut entries: Entries = vec![];
    let mut put = |key: &str, entry| entries.push((format!("tokenizer.ggml.{key}"), entry));
    put("model", Entry::Text(model.into()));
    put("pre", Entry::Text(pre.into()));
    let padding = (count..count + missing).map(|id| format!("[PAD{id}]"));
    put("tokens", Entry::Texts(vocabulary.tokens.iter().cloned().chain(padding).collect()));
    let kinds = vocabulary.kinds.iter().chain(std::iter::repeat_n(&TokenKind::Unused, missing));
    put("token_type", Entry::Integers(kinds.map(kind).collect()));
    match vocabulary.splitting {
        Splitting::ByteLevel(_) => put("merges", Entry::Texts(vocabulary.merges.clone())),
        Splitting::Scores => {
            let scores = vocabulary.scores.iter().copied();
            put("scores", Entry::Floats(scores.chain(std::iter::repeat_n(0.0, missing)).collect()));
        }
        Splitting::WordPiece => {}
    }
    let special = &vocabulary.special;
    for (name, id) in [
        ("bos", special.bos),
        ("eos", special.eos),
        ("eot", special.turn),
        ("unknown", special.unknown),
        ("seperator", special.separator),
        ("padding", special.padding),
        ("mask", special.mask),
    ] {
        if let Some(id) = id {
            put(&format!("{name}_token_id"), Entry::Number(id));
        }
    }
    put("add_bos_token", Entry::Truth(vocabulary.around[0]));
    put("add_eos_token", Entry::Truth(vocabulary.around[1]));
    if vocabulary.splitting == Splitting::Scores {
        put("add_space_prefix", Entry::Truth(vocabulary.space_before));
    }
    if let Some(template) = &vocabulary.chat_template {
        entries.push(("tokenizer.chat_template".into(), Entry::Text(template.clone())));
    }
    Ok(entries)
}
