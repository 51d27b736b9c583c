//! An encoder–decoder with and without attention: time, memory, parameters.

use super::{CompareOptions, ComparisonResult, megabytes};
use burn::tensor::{Device, Int, Tensor, TensorData};
use regard_attention::Stream;
use regard_attention::ops::{CrossEntropy, cross_entropy};
use regard_attention::{AdamW, AdamWConfig, Mode};
use regard_models::{Error, Result, Seq2Seq, Source, zoo};
use serde_json::{Value, json};
use std::time::Instant;

const WORDS: usize = 2000;
const BATCH: usize = 16;
const WIDTH: usize = 128;

/// Names, as used in tables and probes, and descriptions.
const MODELS: [(&str, &str); 3] = [
    ("without attention", "GRU encoder, GRU decoder from its last state"),
    ("additive attention", "the same, attending to every token (Bahdanau)"),
    ("attention alone", "a Transformer of the same width"),
];

fn config(name: &str) -> Result<Value> {
    let recurrent = |kind: &str| {
        json!({
            "model_type": kind, "vocab_size": WORDS, "decoder_vocab_size": WORDS, "cell": "gru",
            "embedding_size": WIDTH, "hidden_size": WIDTH,
        })
    };
    match name {
        "without attention" => Ok(recurrent("rnn")),
        "additive attention" => Ok(recurrent("bahdanau")),
        "attention alone" => Ok(json!({
            "model_type": "transformer", "vocab_size": WORDS, "decoder_vocab_size": WORDS,
            "d_model": WIDTH, "encoder_layers": 1, "decoder_layers": 1,
            "encoder_attention_heads": 4, "decoder_attention_heads": 4,
            "encoder_ffn_dim": 4 * WIDTH, "decoder_ffn_dim": 4 * WIDTH,
        })),
        other => {
            let names = MODELS.map(|model| model.0).join(", ");
            Err(Error::invalid(format!("got {other:?}, need a layer or one of {names}")))
        }
    }
}

/// A model trained on random tokens.
struct Learning {
    model: Box<dyn Seq2Seq>,
    adamw: AdamW,
    device: Device,
    step: u64,
}

impl Learning {
    fn new(name: &str) -> Result<Learning> {
        let device = Device::flex().autodiff();
        let model = zoo::create::<dyn Seq2Seq>(&config(name)?, 0, &device)?;
        let adamw = AdamW::new(AdamWConfig::default());
        Ok(Learning { model, adamw, device, step: 0 })
    }

    /// Measures the seconds of a training step with source and target sentences of this length.
    fn run(&mut self, length: usize) -> f64 {
        self.step += 1;
        let draw = |site: u64| -> Vec<i64> {
            let stream = Stream::new(0, self.step, site);
            (0..(BATCH * length) as u64).map(|i| i64::from(stream.bits(i)) % WORDS as i64).collect()
        };
        let ids = |words: &[i64]| -> Tensor<2, Int> {
            Tensor::from_data(TensorData::new(words.to_vec(), [BATCH, length]), &self.device)
        };
        let (read, written, next) = (draw(1), draw(2), draw(3));
        let started = Instant::now();
        let source = Source { ids: ids(&read), lengths: vec![length; BATCH] };
        let mode = Mode::Train { seed: 0, step: self.step };
        let logits = self.model.forward(&source, ids(&written), mode).logits;
        let logits = logits.reshape([BATCH * length, WORDS]);
        let wanted = ids(&next).reshape([BATCH * length]);
        let loss = cross_entropy(logits, wanted, CrossEntropy::default());
        let grads = loss.backward();
        self.model.step(&mut self.adamw, 1e-3, grads);
        started.elapsed().as_secs_f64()
    }
}

/// Runs one step, in a process of its own, to measure its memory.
pub fn probe(name: &str, length: usize) -> Result<()> {
    Learning::new(name)?.run(length);
    Ok(())
}

pub fn measure(options: &CompareOptions) -> Result<ComparisonResult> {
    let length = if options.quick { 24 } else { 48 };
    let times = if options.quick { 3 } else { 6 };
    let mut found = ComparisonResult::new(
        format!(
            "a training step on {BATCH} pairs of {length} tokens each, vocabulary {WORDS}, width \
             {WIDTH}"
        ),
        &["model", "what it is", "parameters", "a step", "memory"],
    );
    for (name, what) in MODELS {
        let mut learning = Learning::new(name)?;
        let parameters = learning.model.parameters();
        learning.run(length);
        let seconds = (0..times).map(|_| learning.run(length)).fold(f64::INFINITY, f64::min);
        let bytes = options.peak_memory.and_then(|peak| peak(name, length));
        found.number(name, "parameters", parameters as f64);
        found.number(name, "seconds", seconds);
        if let Some(bytes) = bytes {
            found.number(name, "bytes", bytes as f64);
        }
        found.row(vec![
            name.into(),
            what.into(),
            parameters.to_string(),
            format!("{:.1} ms", 1e3 * seconds),
            bytes.map_or("–".into(), |bytes| megabytes(bytes as f64)),
        ]);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    #[test]
    fn attention_adds_parameters_and_time() {
        let found = super::super::quick("without");
        let get = |name, what| found.get(name, what).unwrap();
        let (plain, additive) = ("without attention", "additive attention");
        assert!(get(additive, "parameters") > get(plain, "parameters"));
        assert!(get(additive, "seconds") > 0.0 && get(plain, "seconds") > 0.0);
        assert!(super::probe("no such model", 4).is_err());
    }
}
