//! Inference of translation: text in, text out.

use super::Tokens;
use crate::decode::{
    DecodeInput, Hypothesis, Ids, Options, StepAttention, Stepper, decode, generation,
};
use crate::train;
use burn::tensor::{Device, Tensor, TensorData};
use regard_attention::backend::numbers;
use regard_attention::plan::{Part, count_step, timed};
use regard_models::{Decoding, Error, ModelFiles, Result, Seq2Seq, Source, zoo};
use serde_json::Value;

/// Translation model with its tokenizers.
pub struct Translator {
    model: Box<dyn Seq2Seq>,
    config: Value,
    tokens: Tokens,
    ids: Ids,
    defaults: Options,
    device: Device,
}

impl Translator {
    /// Creates a translator from a model and its tokenizers.
    pub fn new(model: Box<dyn Seq2Seq>, tokens: Tokens, defaults: Options) -> Result<Translator> {
        let (config, special) = (model.config(), tokens.target.special());
        let id = |key: &str| config[key].as_u64().map(|id| id as u32);
        let bos = match id("decoder_start_token_id") {
            Some(id) => id,
            None => special.need_bos()?,
        };
        let eos = id("eos_token_id").or(special.eos).into_iter().collect();
        let ids = Ids { bos, eos, pad: id("pad_token_id") };
        let known = (config["vocab_size"].as_u64(), config["decoder_vocab_size"].as_u64());
        let (source, target) = (tokens.source.size() as u64, tokens.target.size() as u64);
        let reads = known.0.unwrap_or(source);
        let writes = known.1.unwrap_or(reads);
        if (source, target) != (reads, writes) {
            return Err(Error::invalid(format!(
                "vocabulary: got {source} source and {target} target tokens, the model has \
                 {reads} and {writes}"
            )));
        }
        Ok(Translator { model, config, tokens, ids, defaults, device: Device::flex() })
    }

    /// Opens a model: from a folder, which may be a training run's, or a built-in one.
    pub fn load(model: impl Into<ModelFiles>) -> Result<Translator> {
        let files = train::files(model)?;
        let model = zoo::open::<dyn Seq2Seq>(files.clone(), &Device::flex())?;
        let (tokens, defaults) = (Tokens::load(&files)?, generation::load(&files)?);
        Translator::new(model, tokens, defaults)
            .map_err(|e| Error::file(files.place(), e.to_string()))
    }

    /// Returns the model.
    pub(crate) fn into_model(self) -> Box<dyn Seq2Seq> {
        self.model
    }

    /// Returns `config.json` of the model.
    pub fn config(&self) -> &Value {
        &self.config
    }

    /// Returns the model's default search options.
    pub fn defaults(&self) -> &Options {
        &self.defaults
    }

    /// Returns the tokenizers.
    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// Returns the number of parameters.
    pub fn parameters(&self) -> usize {
        self.model.parameters()
    }

    /// Returns the number of learned positions, which limits the length of a sentence; `None` for
    /// other position encodings.
    pub fn longest(&self) -> Option<usize> {
        self.model.longest()
    }

    /// Searches for translations of encoded sources.
    pub fn search(
        &self,
        sources: &[&[u32]],
        sentences: &[DecodeInput],
        options: &Options,
        look: bool,
    ) -> Result<Vec<Vec<Hypothesis>>> {
        let options = &self.within_reach(sources, sentences, options)?;
        let source = padded(sources, self.ids.pad.unwrap_or(0), &self.device);
        let look = look || options.coverage_penalty > 0.0;
        let decoding = timed(Part::Encoder, || self.model.decode(&source, look));
        let vocabulary = self.tokens.target.size();
        let mut stepping = Stepping { decoding, vocabulary };
        timed(Part::Search, || decode(&mut stepping, sentences, options, &self.ids))
    }

    /// Limits the options to the number of learned positions. Fails if a source is longer.
    fn within_reach(
        &self,
        sources: &[&[u32]],
        sentences: &[DecodeInput],
        options: &Options,
    ) -> Result<Options> {
        let mut options = options.clone();
        let Some(longest) = self.model.longest() else { return Ok(options) };
        if let Some(long) = sources.iter().map(|row| row.len()).find(|n| *n > longest) {
            return Err(Error::invalid(format!(
                "text: got {long} tokens, the model takes at most {longest}; split it"
            )));
        }
        // EOS is counted, but never fed to the model.
        options.max_length = options.max_length.min(longest + 1);
        let given = |s: &DecodeInput| s.prompt.len().max(1) + s.target_prefix.len();
        let given = sentences.iter().map(given).max().unwrap_or(1);
        let rest = (longest + 1).saturating_sub(given);
        options.max_new_tokens = options.max_new_tokens.map(|n| n.min(rest));
        Ok(options)
    }
}

/// Pads rows of token ids to one tensor.
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

/// Decoding state as seen by the search.
struct Stepping<'a> {
    decoding: Box<dyn Decoding + 'a>,
    vocabulary: usize,
}

impl Stepper for Stepping<'_> {
    fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    fn step(&mut self, tokens: &[u32], logits: &mut Vec<f32>) -> Option<StepAttention> {
        count_step();
        let weights = timed(Part::Rest, || self.decoding.step_slices(tokens, logits));
        weights.map(|weights| {
            let mut attention = StepAttention { weights: vec![], keys: weights.dims()[1] };
            numbers(weights, &mut attention.weights);
            attention
        })
    }

    fn reorder(&mut self, parents: &[usize]) {
        timed(Part::Rest, || self.decoding.reorder(parents));
    }
}
