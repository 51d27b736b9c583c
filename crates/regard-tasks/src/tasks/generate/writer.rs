//! Inference with a trained language model.

use super::rows::Rows;
use crate::batching::{BatchEngine, BatchLimits};
use crate::decode::{
    DecodeInput, Hypothesis, Ids, Options, StepAttention, Stepper, decode, generation,
};
use crate::logits::not_finite;
use crate::reader::fits;
use crate::text::Tokenizer;
use crate::train;
use burn::tensor::{Device, activation};
use regard_attention::Mode;
use regard_attention::backend::numbers;
use regard_models::text::{self, Head, TextModel, Texts};
use regard_models::{Error, ModelFiles, Result};
use serde_json::Value;

/// Positions that the KV caches of all sequences may hold together, at least.
const TOKENS: usize = 1 << 20;

/// Prompt of an empty request if the model has no BOS token.
const NOTHING: &str = "\n";

/// Causal language model that generates text.
pub struct Generator {
    pub(super) model: Box<dyn TextModel>,
    tokenizer: Tokenizer,
    defaults: Options,
    ids: Ids,
    bos: Option<u32>,
    /// Processes the sequences of all threads together; `None` for a model that cannot be planned.
    engine: Option<BatchEngine>,
}

/// A generated continuation.
#[derive(Clone, Debug, PartialEq)]
pub struct Generated {
    /// Text without the prompt.
    pub text: String,
    /// Token ids without those of the prompt.
    pub ids: Vec<u32>,
    /// Sum of the log-probabilities, after penalties.
    pub score: f32,
}

/// Log-probabilities of the tokens of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Scored {
    /// Tokens of the text, as spelled in the vocabulary.
    pub tokens: Vec<String>,
    /// Natural logarithm of each token's probability given the tokens before it; `None` for the
    /// first token, which has no context.
    pub token_logprobs: Vec<Option<f64>>,
}

impl Scored {
    /// Returns the log-probability of the whole text.
    pub fn logprob(&self) -> f64 {
        self.token_logprobs.iter().flatten().sum()
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
        defaults: Options,
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
        // Of several ids the first is used; an id outside the vocabulary is ignored.
        let id = |key: &str| {
            let id = config[key].as_u64().or_else(|| config[key][0].as_u64());
            id.filter(|id| *id < words).map(|id| id as u32)
        };
        let (bos, eos) = (id("bos_token_id"), id("eos_token_id"));
        let pad = tokenizer.special().pad.or(eos);
        let ids = Ids { bos: bos.unwrap_or(0), eos, pad };
        let engine = model.plan().map(|plan| {
            let tokens = plan.longest().unwrap_or(0).saturating_mul(8).max(TOKENS);
            BatchEngine::new(plan, BatchLimits { tokens, ..BatchLimits::default() })
        });
        Ok(Generator { model, tokenizer, defaults, ids, bos, engine })
    }

    /// Opens a model: from a folder, which may be a training run's, or a built-in one.
    pub fn load(model: impl Into<ModelFiles>) -> Result<Generator> {
        let files = train::files(model)?;
        let model = text::open(files.clone(), None, 0, &Device::flex())?;
        let (tokenizer, defaults) = (Tokenizer::of(&files)?, generation::load(&files)?);
        Generator::new(model, tokenizer, defaults)
            .map_err(|e| Error::file(files.place(), e.to_string()))
    }

    /// Returns `config.json` of the model.
    pub fn config(&self) -> Value {
        self.model.config()
    }

    /// Returns the model's default search and sampling options.
    pub fn defaults(&self) -> &Options {
        &self.defaults
    }

    /// Returns the tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Returns the number of parameters.
    pub fn parameters(&self) -> usize {
        self.model.parameters()
    }

    /// Returns the number of tokens at the start of a prompt that are cut off because it exceeds
    /// the model's maximum length.
    pub fn unseen(&self, prompt: &str) -> Result<usize> {
        let longest = self.model.longest().unwrap_or(usize::MAX);
        Ok(self.prompt(prompt)?.len().saturating_sub(longest))
    }

    fn prompt(&self, text: &str) -> Result<Vec<u32>> {
        let mut ids: Vec<u32> = vec![];
        match (text.is_empty(), self.bos) {
            (true, Some(bos)) => ids.push(bos),
            (true, None) => ids.extend(self.tokenizer.encode(NOTHING)?.ids),
            (false, _) => {
                let bos = self.tokenizer.configured_bos().or(self.bos);
                ids.extend(self.tokenizer.encode_prompt(text, bos)?);
            }
        }
        match ids.is_empty() {
            true => Err(Error::invalid("the prompt has no tokens, and the model no BOS token")),
            false => Ok(ids),
        }
    }

    /// Continues a prompt until an end token, one of the `stop` strings or the maximum length.
    /// `watch` receives each token as it is generated, if a single sequence is decoded. Random
    /// numbers of sampling depend on the prompt's index `number`.
    pub fn generate(
        &self,
        prompt: &str,
        options: &Options,
        number: u64,
        stop: &[String],
        watch: &mut dyn FnMut(u32),
    ) -> Result<Vec<Generated>> {
        let prompt = self.prompt(prompt)?;
        let read = &prompt[..prompt.len() - 1];
        let sentence =
            DecodeInput { index: number, prompt: prompt.clone(), ..DecodeInput::default() };
        let longest = self.model.longest().unwrap_or(usize::MAX);
        let mut writing = Writing {
            writer: self,
            rows: vec![read.to_vec()],
            decoding: self.rows(&prompt, options)?,
            read: false,
            held: 0,
            longest,
            stop,
            from: prompt.len(),
            watch,
            problem: None,
        };
        // A sequence that reached a stop string ends with an extra token outside the vocabulary.
        let end = (!stop.is_empty()).then_some(writing.vocabulary() as u32 - 1);
        let ids = Ids { eos: self.ids.eos.or(end), ..self.ids };
        let found = decode(&mut writing, &[sentence], options, &ids);
        if let Some(problem) = writing.problem.take() {
            return Err(problem);
        }
        let mut found = found?;
        let found = found.pop().unwrap_or_default();
        let one = |found: Hypothesis| self.written(found.tokens, found.score, ids.eos, stop);
        found.into_iter().map(one).collect()
    }

    /// Begins the rows of a search, which have not read anything yet.
    fn rows(&self, prompt: &[u32], options: &Options) -> Result<Rows<'_>> {
        let Some(engine) = &self.engine else { return Ok(Rows::Alone(&*self.model, None)) };
        let rows = options.num_beams.max(options.num_return_sequences);
        let new = options.max_new_tokens.unwrap_or(options.max_length);
        let longest = self.model.longest().unwrap_or(usize::MAX);
        let length = prompt.len().saturating_add(new).min(longest);
        Ok(Rows::Batched(engine.session(rows, length, &|| false)?))
    }

    /// Decodes the text up to the stop string. The tokens are kept up to the one that completed it.
    fn written(
        &self,
        mut ids: Vec<u32>,
        score: f32,
        eos: Option<u32>,
        stop: &[String],
    ) -> Result<Generated> {
        if eos.is_some() && ids.last().copied() == eos {
            ids.pop();
        }
        let mut text = self.tokenizer.decode(&ids)?;
        let stop = || stop.iter().filter(|stop| !stop.is_empty());
        if let Some(end) = stop().filter_map(|stop| text.find(stop)).min() {
            text.truncate(end);
            while let Some((_, fewer)) = ids.split_last() {
                let before = self.tokenizer.decode(fewer)?;
                if !stop().any(|stop| before.contains(stop)) {
                    break;
                }
                ids.pop();
            }
        }
        Ok(Generated { text, ids, score })
    }

    /// Computes log-probabilities of a text's tokens. A text longer than the model's maximum length
    /// is encoded in windows that overlap by half, so that every token has at least half a window
    /// of context.
    pub fn score(&self, text: &str) -> Result<Scored> {
        let ids = self.tokenizer.encode(text)?.ids;
        let name = |id: &u32| self.tokenizer.token(*id).unwrap_or_default();
        let tokens: Vec<String> = ids.iter().map(name).collect();
        let mut logprobs: Vec<Option<f64>> = vec![None; ids.len()];
        let wide = self.model.longest().unwrap_or(usize::MAX);
        let mut known = 1;
        while known < ids.len() {
            let from = if known == 1 { 0 } else { known - (wide / 2).max(1) };
            let to = ids.len().min(from.saturating_add(wide));
            // The prediction after the last token is not needed.
            let piece = &ids[from..to.max(from + 1)];
            let at: Vec<usize> = (known - 1 - from..piece.len()).collect();
            let mut texts = Texts::new();
            texts.push(piece);
            let said = self.model.forward(&texts, Some(&at), Mode::Eval);
            let logits = said.logits.expect("a language-model head");
            let mut all = vec![];
            numbers(activation::log_softmax(logits, 1), &mut all);
            // A log-probability may be -inf, but not NaN.
            if let Some(bad) = all.iter().find(|x| x.is_nan()) {
                return Err(not_finite(*bad));
            }
            let words = all.len() / at.len().max(1);
            for (row, place) in at.iter().enumerate() {
                if let Some(next) = ids.get(from + place + 1) {
                    logprobs[from + place + 1] = Some(f64::from(all[row * words + *next as usize]));
                }
            }
            known = to + 1;
        }
        Ok(Scored { tokens, token_logprobs: logprobs })
    }
}

/// State of a decoding run, as seen by the search.
struct Writing<'a> {
    writer: &'a Generator,
    /// Tokens of each row so far, prompt included.
    rows: Vec<Vec<u32>>,
    /// KV caches; read at the first step, and again when the model's maximum length is reached.
    decoding: Rows<'a>,
    /// Whether they have been read.
    read: bool,
    /// Number of tokens in the KV cache.
    held: usize,
    longest: usize,
    stop: &'a [String],
    from: usize,
    watch: &'a mut dyn FnMut(u32),
    /// Error of a step.
    problem: Option<Error>,
}

impl Writing<'_> {
    /// Rebuilds the KV cache from the last half window of each row, to make room for more tokens.
    fn make_room(&mut self) -> Result<()> {
        let rest = self.longest / 2;
        let keep = |row: &Vec<u32>| row.len().min(if self.read { rest } else { self.longest - 1 });
        let rows: Vec<&[u32]> = self.rows.iter().map(|row| &row[row.len() - keep(row)..]).collect();
        self.held = rows.first().map_or(0, |row| row.len());
        self.read = true;
        self.decoding.read(&rows)
    }

    /// Appends the logit of the extra end token to each row, and forces it for stopped rows.
    fn end_stopped(&self, logits: &mut Vec<f32>) {
        let words = self.writer.model.vocabulary();
        let end = self.writer.ids.eos.map_or(words, |eos| eos as usize);
        let mut wider = Vec::with_capacity(logits.len() + self.rows.len());
        for (row, logits) in self.rows.iter().zip(logits.chunks_exact(words)) {
            let first = wider.len();
            wider.extend_from_slice(logits);
            wider.push(f32::NEG_INFINITY);
            if self.stopped(row) {
                wider[first..].fill(f32::NEG_INFINITY);
                wider[first + end] = 0.0;
            }
        }
        *logits = wider;
    }

    /// Returns whether a row contains a stop string.
    fn stopped(&self, row: &[u32]) -> bool {
        if self.stop.is_empty() || row.len() <= self.from {
            return false;
        }
        let text = self.writer.tokenizer.decode(&row[self.from..]).unwrap_or_default();
        self.stop.iter().any(|stop| !stop.is_empty() && text.contains(stop))
    }
}

impl Stepper for Writing<'_> {
    fn vocabulary(&self) -> usize {
        // One more for the extra end token of stopped rows.
        self.writer.model.vocabulary() + usize::from(!self.stop.is_empty())
    }

    fn step(&mut self, tokens: &[u32], logits: &mut Vec<f32>) -> Option<StepAttention> {
        let mut stepped = Ok(());
        if !self.read || self.held == self.longest {
            stepped = self.make_room();
        }
        if let Err(problem) = stepped.and_then(|()| self.decoding.step(tokens, logits)) {
            // The search ends at the first number that is not finite.
            self.problem = Some(problem);
            logits.clear();
            logits.resize(tokens.len() * self.vocabulary(), f32::NAN);
            return None;
        }
        self.held += 1;
        for (row, token) in self.rows.iter_mut().zip(tokens) {
            row.push(*token);
        }
        if let ([row], [token]) = (&self.rows[..], tokens)
            && row.len() > self.from
        {
            (self.watch)(*token);
        }
        if !self.stop.is_empty() {
            self.end_stopped(logits);
        }
        None
    }

    fn reorder(&mut self, parents: &[usize]) {
        self.rows = parents.iter().map(|parent| self.rows[*parent].clone()).collect();
        self.decoding.reorder(parents);
    }
}
