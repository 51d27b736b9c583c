//! Attention models, one file each, with checkpoints in the Hugging Face layout.
//!
//! A model is data: a configuration and weights. It never sees text, paths or sockets; the caller
//! has the tokenizer.
//!
//! [`zoo`] creates and loads every network.
#![forbid(unsafe_code)]

pub mod adapter;
pub mod bahdanau;
pub mod bert;
pub mod checkpoint;
pub mod copying;
pub mod cross_attention;
pub mod decoder;
mod error;
mod fields;
pub mod files;
pub mod gat;
pub mod gguf;
pub mod gpt2;
mod keys;
mod labels;
pub mod llama2c;
pub mod luong;
pub mod memory;
pub mod modernbert;
pub mod network;
pub mod pointer;
pub mod recurrent;
pub mod rnn;
pub mod rope;
pub mod seq2seq;
mod sizes;
pub mod speech;
pub mod story;
pub mod text;
pub mod transformer;
pub mod values;
pub mod vit;
pub mod vocabulary;
pub mod words;
pub mod xlnet;
pub mod zoo;

pub use error::{Error, Result};
pub use files::{BuiltIn, ModelFiles};
pub use labels::Labels;
pub use network::{Capability, Description, Network};
pub use seq2seq::{Decoding, Next, Scores, Seq2Seq, Source};

use serde::Serialize;
use serde_json::Value;
use values::read as parse;

/// Formats the tensors that do not fit, shortened: a file may have thousands of problems. Each
/// kind of problem is shown in turn.
fn misfit(problems: &[String]) -> String {
    const MOST: usize = 700;
    let kind = |problem: &String| match () {
        _ if problem.starts_with(network::UNEXPECTED) => 1,
        _ if problem.ends_with("is missing") => 0,
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
