//! A trained language model at work.

use crate::decode::{Attention, Ids, Options, Sentence, Stepper, decode};
use crate::text::Tokenizer;
use crate::train;
use crate::translate::generation;
use burn::tensor::{Device, Int, Tensor, TensorData, activation};
use regard_attention::Mode;
use regard_attention::backend::numbers;
use regard_models::text::{self, Head, TextModel, Texts};
use regard_models::{Decoding, Error, Result};
use serde_json::Value;
use std::path::Path;

/// What a text begins with if nothing is given and the model has no word for it.
const NOTHING: &str = "\n";

/// A model that goes on with texts.
pub struct Writer {
    model: Box<dyn TextModel>,
    tokenizer: Tokenizer,
    defaults: Options,
    ids: Ids,
    bos: Option<u32>,
    device: Device,
}

/// What was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// Without the prompt.
    pub text: String,
    /// Its tokens, without those of the prompt.
    pub ids: Vec<u32>,
    /// Its score: the log-probability of what was written, after penalties.
    pub score: f32,
}

/// How likely a text is.
#[derive(Clone, Debug, PartialEq)]
pub struct Scored {
    /// Its tokens, as they stand in the vocabulary.
    pub tokens: Vec<String>,
    /// The natural logarithm of each token's probability after those before it; none of the
    /// first, if nothing stands before it.
    pub token_logprobs: Vec<Option<f64>>,
}

impl Scored {
    /// Of the whole text.
    pub fn logprob(&self) -> f64 {
        self.token_logprobs.iter().flatten().sum()
    }
}

impl Writer {
    /// From a model and its tokenizer.
    ///
    /// # Errors
    /// If the model does not go on with texts, or does not know all tokens.
    pub fn new(
        model: Box<dyn TextModel>,
        tokenizer: Tokenizer,
        defaults: Options,
    ) -> Result<Writer> {
        let config = model.config();
        if model.head() != Head::Words || model.decode(&[&[]]).is_none() {
            let kind = &config["model_type"];
            return Err(Error::invalid(format!(
                "{kind} with {:?} does not go on with a text; gpt2 with a head for words does",
                model.head()
            )));
        }
        let words = config["vocab_size"].as_u64().unwrap_or(0) as usize;
        if tokenizer.size() > words {
            let size = tokenizer.size();
            return Err(Error::invalid(format!("{size} tokens, of which the model has {words}")));
        }
        let id = |key: &str| config[key].as_u64().and_then(|id| u32::try_from(id).ok());
        let (bos, eos) = (id("bos_token_id"), id("eos_token_id"));
        let pad = tokenizer.special().pad.or(eos);
        let ids = Ids { bos: bos.unwrap_or(0), eos, pad };
        Ok(Writer { model, tokenizer, defaults, ids, bos, device: Device::flex() })
    }

    /// Reads a folder: a model's, or a training run's.
    pub fn load(folder: &Path) -> Result<Writer> {
        let folder = &train::resolve(folder)?;
        let model = text::open(folder, None, 0, &Device::flex())?;
        let tokenizer = Tokenizer::load(folder)?;
        let defaults = generation::load(folder)?;
        Writer::new(model, tokenizer, defaults).map_err(|e| Error::file(folder, e.to_string()))
    }

    /// `config.json`
    pub fn config(&self) -> Value {
        self.model.config()
    }

    /// How the model likes to write.
    pub fn defaults(&self) -> &Options {
        &self.defaults
    }

    /// Its tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Numbers in its weights.
    pub fn parameters(&self) -> usize {
        self.model.parameters()
    }

    fn prompt(&self, text: &str) -> Result<Vec<u32>> {
        let mut ids: Vec<u32> = vec![];
        match (text.is_empty(), self.bos) {
            (true, Some(bos)) => ids.push(bos),
            (true, None) => ids.extend(self.tokenizer.encode(NOTHING)?.ids),
            (false, _) => ids.extend(self.tokenizer.encode(text)?.ids),
        }
        match ids.is_empty() {
            true => Err(Error::invalid("the prompt has no tokens, and the model no first word")),
            false => Ok(ids),
        }
    }

    /// Goes on with a text, until it ends by itself, has one of `stop` in it, or is as long as
    /// the options allow. `watch` is given each token as it comes, if there is one row of them.
    pub fn generate(
        &self,
        prompt: &str,
        options: &Options,
        stop: &[String],
        watch: &mut dyn FnMut(u32),
    ) -> Result<Vec<Written>> {
        let prompt = self.prompt(prompt)?;
        let (last, read) = prompt.split_last().expect("at least one token");
        let sentence = Sentence { prompt: prompt.clone(), ..Sentence::default() };
        let longest = self.model.longest().unwrap_or(usize::MAX);
        let mut writing = Writing {
            writer: self,
            rows: vec![read.to_vec()],
            decoding: None,
            held: 0,
            longest,
            stop,
            from: prompt.len(),
            watch,
        };
        let mut found = decode(&mut writing, &[sentence], options, &self.ids)?;
        _ = last;
        let found = found.pop().unwrap_or_default();
        found.into_iter().map(|found| self.written(found.tokens, found.score, stop)).collect()
    }

    fn written(&self, mut ids: Vec<u32>, score: f32, stop: &[String]) -> Result<Written> {
        if self.ids.eos.is_some() && ids.last().copied() == self.ids.eos {
            ids.pop();
        }
        let mut text = self.tokenizer.decode(&ids)?;
        let ends = stop.iter().filter(|stop| !stop.is_empty()).filter_map(|stop| text.find(stop));
        if let Some(end) = ends.min() {
            text.truncate(end);
        }
        Ok(Written { text, ids, score })
    }

    /// How likely a text is. One that is longer than the model can read is read in windows that
    /// overlap by half, so that every token is told from at least half a window before it.
    pub fn score(&self, text: &str) -> Result<Scored> {
        let given = self.tokenizer.encode(text)?.ids;
        let name = |id: &u32| self.tokenizer.token(*id).unwrap_or_default();
        let tokens: Vec<String> = given.iter().map(name).collect();
        let before = usize::from(self.bos.is_some());
        let ids: Vec<u32> = self.bos.into_iter().chain(given).collect();
        let mut logprobs: Vec<Option<f64>> = vec![None; ids.len()];
        let wide = self.model.longest().unwrap_or(usize::MAX);
        let mut known = 1;
        while known < ids.len() {
            let from = if known == 1 { 0 } else { known - wide / 2 };
            let to = ids.len().min(from.saturating_add(wide));
            // What the last token leads to is not asked.
            let piece = &ids[from..to.max(from + 1)];
            let at: Vec<usize> = (known - 1 - from..piece.len()).collect();
            let mut texts = Texts::new();
            texts.push(piece);
            let said = self.model.forward(&texts, Some(&at), Mode::Eval);
            let logits = said.logits.expect("a head for words");
            let mut all = vec![];
            numbers(activation::log_softmax(logits, 1), &mut all);
            let words = all.len() / at.len().max(1);
            for (row, place) in at.iter().enumerate() {
                if let Some(next) = ids.get(from + place + 1) {
                    logprobs[from + place + 1] = Some(f64::from(all[row * words + *next as usize]));
                }
            }
            known = to + 1;
        }
        Ok(Scored { tokens, token_logprobs: logprobs.split_off(before) })
    }
}

/// A model as the search sees it.
struct Writing<'a> {
    writer: &'a Writer,
    /// What each row has read, prompt included.
    rows: Vec<Vec<u32>>,
    /// Made at the first step, and made again when there is no more room.
    decoding: Option<Box<dyn Decoding + 'a>>,
    /// Tokens that it holds.
    held: usize,
    longest: usize,
    stop: &'a [String],
    from: usize,
    watch: &'a mut dyn FnMut(u32),
}

impl Writing<'_> {
    /// Reads the rows again from half a window before their ends, so that there is room.
    fn make_room(&mut self) {
        let rest = self.longest / 2;
        let keep = |row: &Vec<u32>| {
            row.len().min(if self.decoding.is_some() { rest } else { self.longest - 1 })
        };
        let rows: Vec<&[u32]> = self.rows.iter().map(|row| &row[row.len() - keep(row)..]).collect();
        self.held = rows.first().map_or(0, |row| row.len());
        let decoding = self.writer.model.decode(&rows);
        self.decoding = Some(decoding.expect("a writer's model goes on with texts"));
    }

    /// Whether a row has come to where it shall stop.
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
        self.writer.config()["vocab_size"].as_u64().unwrap_or(0) as usize
    }

    fn step(&mut self, tokens: &[u32], logits: &mut Vec<f32>) -> Option<Attention> {
        if self.decoding.is_none() || self.held == self.longest {
            self.make_room();
        }
        let ids: Vec<i64> = tokens.iter().map(|id| i64::from(*id)).collect();
        let shape = [tokens.len(), 1];
        let words = Tensor::<2, Int>::from_data(TensorData::new(ids, shape), &self.writer.device);
        let decoding = self.decoding.as_mut().expect("just made");
        numbers(decoding.step(words).logits, logits);
        self.held += 1;
        for (row, token) in self.rows.iter_mut().zip(tokens) {
            row.push(*token);
        }
        if let ([row], [token]) = (&self.rows[..], tokens)
            && row.len() > self.from
        {
            (self.watch)(*token);
        }
        let words = logits.len() / tokens.len().max(1);
        for (row, logits) in self.rows.iter().zip(logits.chunks_exact_mut(words.max(1))) {
            if let Some(eos) = self.writer.ids.eos.filter(|_| self.stopped(row)) {
                logits.fill(f32::NEG_INFINITY);
                logits[eos as usize] = 0.0;
            }
        }
        None
    }

    fn reorder(&mut self, parents: &[usize]) {
        self.rows = parents.iter().map(|parent| self.rows[*parent].clone()).collect();
        if let Some(decoding) = &mut self.decoding {
            decoding.reorder(parents);
        }
    }
}
