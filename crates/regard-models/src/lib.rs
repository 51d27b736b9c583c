//! Attention models, one file each, with checkpoints in the Hugging Face layout.
//!
//! A model is data: a configuration and weights. It never sees text, paths or sockets; whoever
//! made its token numbers knows what they mean.
//!
//! ```
//! use burn::tensor::{Device, Int, Tensor};
//! use regard_attention::Mode;
//! use regard_models::{Source, create};
//! use serde_json::json;
//!
//! let config = json!({
//!     "model_type": "bahdanau", "vocab_size": 20, "decoder_vocab_size": 30,
//!     "embedding_size": 8, "hidden_size": 16, "bidirectional": true,
//! });
//! let device = Device::flex();
//! let model = create(&config, 7, &device).unwrap();
//! let source = Source {
//!     ids: Tensor::from_ints([[5, 6, 7, 2], [8, 9, 2, 0]], &device),
//!     lengths: vec![4, 3],
//! };
//! let words = Tensor::<2, Int>::from_ints([[1, 4, 4], [1, 5, 5]], &device);
//! assert_eq!(model.forward(&source, words, Mode::Eval).logits.dims(), [2, 3, 30]);
//! ```
#![forbid(unsafe_code)]

pub mod bahdanau;
pub mod bert;
pub mod checkpoint;
pub mod copying;
pub mod error;
mod fields;
pub mod gat;
pub mod gpt2;
pub mod look;
pub mod luong;
pub mod memory;
pub mod model;
pub mod pointer;
pub mod recurrent;
pub mod rnn;
pub mod seq2seq;
mod sizes;
pub mod speech;
pub mod story;
pub mod text;
pub mod transformer;
pub mod vit;
pub mod words;
pub mod xlnet;

pub use error::{Error, Result};
pub use model::Model;
pub use seq2seq::{Decoding, Next, Scores, Seq2Seq, Source};

use burn::tensor::Device;
use checkpoint::{Arrays, Binder, Fit};
use regard_attention::Init;
use seq2seq::Described;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::Path;

/// A kind of encoder–decoder: its names in `config.json`, and how it is made.
struct Kind {
    names: &'static [&'static str],
    make: Make,
}

type Make = fn(&Value, &mut Init, Option<&mut Loading>) -> Result<Box<dyn Seq2Seq>, String>;

/// Weights on their way into a model.
struct Loading<'a> {
    from: &'a mut Arrays,
    device: &'a Device,
    problems: Vec<String>,
}

/// Every encoder–decoder there is.
const KINDS: &[Kind] = &[
    Kind {
        names: &[rnn::MODEL_TYPE],
        make: |json, init, from| {
            let config: rnn::Config = parse(json)?;
            rnn::Rnn::check(&config)?;
            Ok(finish(rnn::Rnn::new(&config, init), from))
        },
    },
    Kind {
        names: &[bahdanau::MODEL_TYPE],
        make: |json, init, from| {
            let config: bahdanau::Config = parse(json)?;
            config.check()?;
            Ok(finish(bahdanau::Bahdanau::new(&config, init), from))
        },
    },
    Kind {
        names: &[luong::MODEL_TYPE],
        make: |json, init, from| {
            let config: luong::Config = parse(json)?;
            luong::Luong::check(&config)?;
            Ok(finish(luong::Luong::new(&config, init), from))
        },
    },
    Kind {
        names: &transformer::MODEL_TYPES,
        make: |json, init, from| {
            let mut config = transformer::Config::from_json(json)?;
            if let Some(loading) = from.as_deref() {
                config.follow(loading.from);
            }
            Ok(finish(transformer::Transformer::new(&config, init), from))
        },
    },
];

fn parse<T: DeserializeOwned>(json: &Value) -> Result<T, String> {
    serde_json::from_value(json.clone()).map_err(|e| e.to_string())
}

fn finish<M: Described>(mut model: M, loading: Option<&mut Loading>) -> Box<dyn Seq2Seq> {
    if let Some(loading) = loading {
        let mut binder = Binder::read(loading.from, loading.device);
        model.bind(&mut binder);
        loading.problems = binder.problems().iter().map(|p| p.to_string()).collect();
    }
    Box::new(model)
}

fn kind(config: &Value) -> Result<&'static Kind> {
    let asked = config["model_type"].as_str().unwrap_or("");
    KINDS.iter().find(|kind| kind.names.contains(&asked)).ok_or_else(|| {
        let names: Vec<_> = KINDS.iter().flat_map(|kind| kind.names).copied().collect();
        Error::invalid(format!("model_type: got {asked:?}, need one of {}", names.join(", ")))
    })
}

/// The names of all kinds of models.
pub fn model_types() -> Vec<&'static str> {
    KINDS.iter().flat_map(|kind| kind.names).copied().collect()
}

/// A model with first values that are a function of the seed.
pub fn create(config: &Value, seed: u64, device: &Device) -> Result<Box<dyn Seq2Seq>> {
    memory::create(seed, device, |init| make(config, init, None))
}

fn make(
    config: &Value,
    init: &mut Init,
    loading: Option<&mut Loading>,
) -> Result<Box<dyn Seq2Seq>> {
    let model = (kind(config)?.make)(config, init, loading).map_err(Error::Invalid)?;
    known_keys(config, &model.config()).map_err(Error::Invalid)?;
    Ok(model)
}

/// A table that says its kind has no keys but those of that kind. (Serde does not mind them
/// where a kind has none.)
fn known_keys(asked: &Value, known: &Value) -> Result<(), String> {
    for (name, table) in asked.as_object().into_iter().flatten() {
        let Some(table) = table.as_object().filter(|table| table.contains_key("kind")) else {
            continue;
        };
        let known = |key: &String| key == "kind" || known[name].get(key).is_some();
        if let Some(key) = table.keys().find(|key| !known(key)) {
            return Err(format!("{name}: {} has no key {key:?}", table["kind"]));
        }
    }
    Ok(())
}

/// A model with weights from a checkpoint. Every name and shape is checked, and all that does not
/// fit is told at once.
pub fn load(config: &Value, weights: Arrays, device: &Device) -> Result<Box<dyn Seq2Seq>> {
    fill(config, weights, device)?.whole()
}

/// The model of a folder in the Hugging Face layout. What is wrong with it is told with the file
/// that it is wrong with.
pub fn open(folder: &Path, device: &Device) -> Result<Box<dyn Seq2Seq>> {
    Fit::open(folder, |config, weights| fill(config, weights, device))
}

/// The model, and what of the weights did not fit it.
fn fill(config: &Value, mut weights: Arrays, device: &Device) -> Result<Fit<Box<dyn Seq2Seq>>> {
    let mut init = Init::blank(device);
    let mut loading = Loading { from: &mut weights, device, problems: vec![] };
    let model = make(config, &mut init, Some(&mut loading))?;
    Ok(Fit { model, problems: loading.problems })
}

/// The tensors that do not fit, shortened for a message: a file may have thousands of
/// problems. Each kind of problem is shown by turns.
fn misfit(problems: &[String]) -> String {
    const MOST: usize = 700;
    let kind = |problem: &String| match () {
        _ if problem.ends_with("is missing") => 0,
        _ if problem.ends_with("has no place in this model") => 1,
        _ if problem.ends_with(checkpoint::NOT_FINITE) => 2,
        _ => 3,
    };
    let mut kinds: [Vec<&String>; 4] = Default::default();
    problems.iter().rev().for_each(|problem| kinds[kind(problem)].push(problem));
    let damaged = kinds[2].len() == problems.len();
    let (mut lines, mut size) = (vec![], 0);
    while size < MOST && lines.len() < problems.len() {
        for problem in kinds.iter_mut().filter_map(Vec::pop) {
            let line = sizes::short(problem, 150);
            size += line.len();
            if size < MOST {
                lines.push(line);
            }
        }
    }
    if lines.len() < problems.len() {
        lines.push(format!("and {} more", problems.len() - lines.len()));
    }
    let what = match damaged {
        true => "the weights are damaged, or their training diverged",
        false => "the weights do not fit the configuration",
    };
    format!("{what}:\n  {}", lines.join("\n  "))
}

fn config_json(model_type: &str, config: &impl Serialize) -> Value {
    let mut json = serde_json::json!({ "model_type": model_type });
    let fields = serde_json::to_value(config).expect("configurations are plain data");
    if let (Value::Object(json), Value::Object(fields)) = (&mut json, fields) {
        json.extend(fields);
    }
    json
}
