//! Inference with a trained language model.

use super::engines::Engines;
use crate::batching::{BatchEngine, BatchUse};
use crate::constraint::{CompiledConstraint, Constraint, ConstraintVocabulary};
use crate::decode::{GenerationConfig, Ids, Options};
use crate::reader::fits;
use crate::text::Tokenizer;
use crate::train;
use burn::tensor::Device;
use regard_models::text::{self, Head, TextModel};
use regard_models::{Error, ModelFiles, Result};
use serde_json::Value;
use std::sync::OnceLock;

/// Prompt of an empty request if the model has no BOS token.
const NOTHING: &str = "\n";

/// Causal language model that generates text.
pub struct Generator {
    pub(super) model: Box<dyn TextModel>,
    tokenizer: Tokenizer,
    defaults: GenerationConfig,
    ids: Ids,
    bos: Option<u32>,
    /// Processes the sequences of all threads together; `None` for a model that cannot be planned.
    engines: Option<Engines>,
    /// The tokens, prepared for constraints when the first one is given, or why they cannot be.
    constraints: OnceLock<Result<ConstraintVocabulary, String>>,
}

/// The tokens of a prompt, at least one and no more than the model's context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    ids: Vec<u32>,
    truncated: usize,
}

impl Prompt {
    /// Returns the token ids.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// Returns the number of tokens that were cut off at the start.
    pub fn truncated(&self) -> usize {
        self.truncated
    }
}

/// How the tokens of a prompt are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromptOptions {
    /// Whether the BOS token comes first, where the tokenizer adds one. Off for a text that has its
    /// special tokens already, as one made by a chat template.
    pub add_special_tokens: bool,
    /// Whether a prompt longer than the model's context loses its first tokens, instead of being an
    /// error. Its BOS token stays.
    pub truncate: bool,
}

impl Default for PromptOptions {
    fn default() -> PromptOptions {
        PromptOptions { add_special_tokens: true, truncate: false }
    }
}

impl Generator {
    /// Creates a writer from a model and its tokenizer.
    ///
    /// # Errors
    /// If the model is not causal, or lacks embeddings for some tokens.
    pub fn new(
        model: Box<dyn TextModel>,
        tokenizer: Tokenizer,
        defaults: GenerationConfig,
    ) -> Result<Generator> {
        let config = model.config();
        if model.head() != Head::Words || model.decode(&[&[]]).is_none() {
            let kind = config["model_type"].as_str().unwrap_or("a model of unknown type");
            let class = config["architectures"][0].as_str().unwrap_or("no head");
            return Err(Error::invalid(format!(
                "{kind} ({class}) does not generate text: need a causal language model, such as gpt2"
            )));
        }
        fits(&*model, &tokenizer)?;
        let words = model.vocabulary() as u64;
        // An id outside the vocabulary is ignored.
        let known = |id: &u64| *id < words;
        let bos = defaults.bos.map(u64::from).or_else(|| config["bos_token_id"].as_u64());
        let bos = bos.filter(known).map(|id| id as u32);
        let mut eos = defaults.end_tokens(&config);
        eos.retain(|id| known(&u64::from(*id)));
        let pad = tokenizer.special().pad.or(eos.first().copied());
        let ids = Ids { bos: bos.unwrap_or(0), eos, pad };
        let engines = Engines::new(&*model);
        let constraints = OnceLock::new();
        Ok(Generator { model, tokenizer, defaults, ids, bos, engines, constraints })
    }

    /// Opens a model: from a folder, which may be a training run's, or a built-in one.
    pub fn load(model: impl Into<ModelFiles>) -> Result<Generator> {
        let files = train::files(model)?;
        let model = text::open(files.clone(), None, 0, &Device::flex())?;
        let (tokenizer, defaults) = (Tokenizer::of(&files)?, GenerationConfig::load(&files)?);
        Generator::new(model, tokenizer, defaults)
            .map_err(|e| Error::file(files.place(), e.to_string()))
    }

    /// Returns `config.json` of the model.
    pub fn config(&self) -> Value {
        self.model.config()
    }

    /// Returns the model's default search and sampling options.
    pub fn defaults(&self) -> &Options {
        &self.defaults.options
    }

    /// Returns what `generation_config.json` of the model says.
    pub fn generation_config(&self) -> &GenerationConfig {
        &self.defaults
    }

    /// Returns the tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Compiles what texts must match.
    ///
    /// # Errors
    /// If it is invalid, too large, not supported, or no text matches.
    pub fn compile(&self, constraint: &Constraint) -> Result<CompiledConstraint> {
        // Of several threads one prepares them, and the others wait.
        let prepare = || ConstraintVocabulary::new(&self.tokenizer).map_err(|e| e.to_string());
        let vocabulary = self.constraints.get_or_init(prepare).as_ref();
        constraint.compile(vocabulary.map_err(|why| Error::invalid(why.clone()))?)
    }

    /// Returns the number of parameters.
    pub fn parameters(&self) -> usize {
        self.model.parameters()
    }

    /// Returns the largest number of tokens that the model sees at once; `usize::MAX` if there is
    /// no limit.
    pub fn context(&self) -> usize {
        self.model.longest().unwrap_or(usize::MAX)
    }

    /// Returns what the batch engine is doing; `None` for a model that cannot be planned.
    pub fn usage(&self) -> Option<BatchUse> {
        self.batching().map(BatchEngine::usage)
    }

    /// Lets a token end every text, as those of the model do.
    pub(crate) fn end_at(&mut self, token: u32) {
        if !self.ids.eos.contains(&token) && (token as usize) < self.model.vocabulary() {
            self.ids.eos.push(token);
        }
    }

    pub(super) fn ids(&self) -> &Ids {
        &self.ids
    }

    pub(super) fn bos(&self) -> Option<u32> {
        self.bos
    }

    pub(super) fn engines(&self) -> Option<&Engines> {
        self.engines.as_ref()
    }

    pub(super) fn engines_mut(&mut self) -> Result<&mut Engines> {
        let kind = self.config()["model_type"].as_str().unwrap_or("this model").to_string();
        self.engines.as_mut().ok_or_else(|| {
            Error::invalid(format!(
                "{kind} decodes on tensors, one text at a time: it has no paged KV cache"
            ))
        })
    }

    pub(super) fn into_engines(self) -> Option<Engines> {
        self.engines
    }

    /// Makes the tokens of a prompt. The BOS token comes first where the tokenizer adds one, never
    /// twice; an empty prompt is the BOS token, or a line break if there is none.
    ///
    /// # Errors
    /// If it is longer than the model's context, unless it may be truncated.
    pub fn prompt(&self, text: &str, options: PromptOptions) -> Result<Prompt> {
        let mut ids: Vec<u32> = vec![];
        match (text.is_empty(), self.bos) {
            (true, Some(bos)) => ids.push(bos),
            (true, None) => ids.extend(self.tokenizer.encode(NOTHING)?.ids),
            (false, _) if options.add_special_tokens => {
                let bos = self.tokenizer.configured_bos().or(self.bos);
                ids.extend(self.tokenizer.encode_prompt(text, bos)?);
            }
            (false, _) => ids.extend(self.tokenizer.encode(text)?.ids),
        }
        self.prompt_of(ids, options.truncate)
    }

    /// Checks the tokens of a prompt, and truncates them if they are too many and `truncate` is
    /// on.
    ///
    /// # Errors
    /// If there are none, a token is not in the vocabulary, or they are too many.
    pub fn prompt_of(&self, mut ids: Vec<u32>, truncate: bool) -> Result<Prompt> {
        if ids.is_empty() {
            return Err(Error::invalid("the prompt has no tokens, and the model no BOS token"));
        }
        let words = self.model.vocabulary();
        if let Some(id) = ids.iter().find(|id| **id as usize >= words) {
            let message = format!("prompt: got token {id}, the vocabulary has {words} tokens");
            return Err(Error::invalid(message));
        }
        if ids.len() > self.context() && !truncate {
            return Err(too_long("prompt", ids.len(), self.context(), false));
        }
        let bos = self.tokenizer.configured_bos().or(self.bos);
        let first = usize::from(bos.is_some() && ids.first().copied() == bos);
        let truncated = cut(&mut ids, first, self.context());
        Ok(Prompt { ids, truncated })
    }
}

/// Cuts tokens after the first `kept` ones, so that `most` stay. Returns their number.
pub(super) fn cut(ids: &mut Vec<u32>, kept: usize, most: usize) -> usize {
    let cut = ids.len().saturating_sub(most);
    let kept = kept.min(most.saturating_sub(1));
    ids.drain(kept..kept + cut);
    cut
}

/// Error of a text that exceeds the context.
pub(super) fn too_long(what: &str, got: usize, most: usize, windows: bool) -> Error {
    let windows = if windows { ", or windows to read it in overlapping parts" } else { "" };
    Error::invalid(format!(
        "the {what} has {got} tokens, the model's context is {most}: shorten it, or set truncate \
         to drop its first tokens{windows}"
    ))
}
