//! A model with its vocabulary: text in, text out.

use super::Tokens;
use crate::decode::{Attention, Hypothesis, Ids, Options, Sentence, Stepper, decode, generation};
use crate::train;
use burn::tensor::{Device, Int, Tensor, TensorData};
use regard_attention::backend::numbers;
use regard_models::checkpoint::{self, Arrays, Precision};
use regard_models::{Decoding, Error, ModelFiles, Result, Seq2Seq, Source, zoo};
use serde_json::Value;
use std::path::Path;

/// A model with its vocabulary.
pub struct Translator {
    model: Box<dyn Seq2Seq>,
    config: Value,
    tokens: Tokens,
    ids: Ids,
    defaults: Options,
    device: Device,
}

impl Translator {
    /// Puts a model together.
    pub fn new(model: Box<dyn Seq2Seq>, tokens: Tokens, defaults: Options) -> Result<Translator> {
        let (config, special) = (model.config(), tokens.target.special());
        let id = |key: &str| config[key].as_u64().map(|id| id as u32);
        let bos = match id("decoder_start_token_id") {
            Some(id) => id,
            None => special.need_bos()?,
        };
        let ids = Ids { bos, eos: id("eos_token_id").or(special.eos), pad: id("pad_token_id") };
        let known = (config["vocab_size"].as_u64(), config["decoder_vocab_size"].as_u64());
        let (source, target) = (tokens.source.size() as u64, tokens.target.size() as u64);
        let reads = known.0.unwrap_or(source);
        let writes = known.1.unwrap_or(reads);
        if (source, target) != (reads, writes) {
            return Err(Error::invalid(format!(
                "the vocabulary is another model's: it has {source} and {target} rows, the model \
                 reads {reads} and writes {writes}"
            )));
        }
        Ok(Translator { model, config, tokens, ids, defaults, device: Device::flex() })
    }

    /// Opens a model: of a folder, which may be a training run's, or of a part of the program.
    pub fn load(model: impl Into<ModelFiles>) -> Result<Translator> {
        let files = train::files(model)?;
        let model = zoo::open::<dyn Seq2Seq>(files.clone(), &Device::flex())?;
        let (tokens, defaults) = (Tokens::load(&files)?, generation::load(&files)?);
        Translator::new(model, tokens, defaults)
            .map_err(|e| Error::file(files.place(), e.to_string()))
    }

    /// Writes the folder of a model, so that it can be loaded, moved or built in.
    pub fn save(&self, folder: &Path, precision: Precision) -> Result<()> {
        std::fs::create_dir_all(folder).map_err(Error::io(folder))?;
        checkpoint::write(folder, &self.config, &self.model.weights(), precision)?;
        self.tokens.save(folder)?;
        generation::save(folder, &self.defaults, &self.config)
    }

    /// The same from what is already in memory.
    pub fn from_parts(
        config: &Value,
        weights: Arrays,
        tokens: Tokens,
        defaults: Options,
    ) -> Result<Translator> {
        let model = zoo::load::<dyn Seq2Seq>(config, weights, &Device::flex())?;
        Translator::new(model, tokens, defaults)
    }

    /// `config.json`
    pub fn config(&self) -> &Value {
        &self.config
    }

    /// How the model likes to be searched.
    pub fn defaults(&self) -> &Options {
        &self.defaults
    }

    /// Its tokenizers.
    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// Numbers in its weights.
    pub fn parameters(&self) -> usize {
        self.model.parameters()
    }

    /// The most tokens of a sentence that its positions are told for: those of learned positions,
    /// none for a rule that goes on.
    pub fn longest(&self) -> Option<usize> {
        self.model.longest()
    }

    /// Searches for what the model would write for rows of tokens.
    pub fn search(
        &self,
        sources: &[&[u32]],
        sentences: &[Sentence],
        options: &Options,
        look: bool,
    ) -> Result<Vec<Vec<Hypothesis>>> {
        let options = &self.within_reach(sources, sentences, options)?;
        let source = padded(sources, self.ids.pad.unwrap_or(0), &self.device);
        let decoding = self.model.decode(&source, look || options.coverage_penalty > 0.0);
        let vocabulary = self.tokens.target.size();
        let mut stepping = Stepping { decoding, vocabulary, device: &self.device };
        decode(&mut stepping, sentences, options, &self.ids)
    }

    /// Options that stop before a model with a last position comes to it. A source that is longer
    /// cannot be read.
    fn within_reach(
        &self,
        sources: &[&[u32]],
        sentences: &[Sentence],
        options: &Options,
    ) -> Result<Options> {
        let mut options = options.clone();
        let Some(longest) = self.model.longest() else { return Ok(options) };
        if let Some(long) = sources.iter().map(|row| row.len()).find(|n| *n > longest) {
            return Err(Error::invalid(format!(
                "a text of {long} tokens: this model reads at most {longest}; cut it into sentences"
            )));
        }
        // What ends a sentence is counted, and never fed.
        options.max_length = options.max_length.min(longest + 1);
        let given = |s: &Sentence| s.prompt.len().max(1) + s.target_prefix.len();
        let given = sentences.iter().map(given).max().unwrap_or(1);
        let rest = (longest + 1).saturating_sub(given);
        options.max_new_tokens = options.max_new_tokens.map(|n| n.min(rest));
        Ok(options)
    }
}

/// Rows of tokens as a tensor.
pub(super) fn padded(rows: &[&[u32]], pad: u32, device: &Device) -> Source {
    let wide = rows.iter().map(|row| row.len()).max().unwrap_or(0);
    let mut ids = Vec::with_capacity(rows.len() * wide);
    for row in rows {
        ids.extend(row.iter().map(|id| i64::from(*id)));
        ids.resize(ids.len() + wide - row.len(), i64::from(pad));
    }
    let ids = Tensor::from_data(TensorData::new(ids, [rows.len(), wide]), device);
    Source { ids, lengths: rows.iter().map(|row| row.len()).collect() }
}

/// A model as the search sees it.
struct Stepping<'a> {
    decoding: Box<dyn Decoding + 'a>,
    vocabulary: usize,
    device: &'a Device,
}

impl Stepper for Stepping<'_> {
    fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    fn step(&mut self, tokens: &[u32], logits: &mut Vec<f32>) -> Option<Attention> {
        let ids: Vec<i64> = tokens.iter().map(|id| i64::from(*id)).collect();
        let words =
            Tensor::<2, Int>::from_data(TensorData::new(ids, [tokens.len(), 1]), self.device);
        let next = self.decoding.step(words);
        numbers(next.logits, logits);
        next.attention.map(|weights| {
            let mut attention = Attention { weights: vec![], keys: weights.dims()[1] };
            numbers(weights, &mut attention.weights);
            attention
        })
    }

    fn reorder(&mut self, parents: &[usize]) {
        self.decoding.reorder(parents);
    }
}
