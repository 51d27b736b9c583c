//! A trained language model at work.

use crate::decode::{Attention, Hypothesis, Ids, Options, Sentence, Stepper, decode, generation};
use crate::logits::not_finite;
use crate::reader::fits;
use crate::text::Tokenizer;
use crate::train;
use burn::tensor::{Device, Int, Tensor, TensorData, activation};
use regard_attention::Mode;
use regard_attention::backend::numbers;
use regard_models::text::{self, Head, TextModel, Texts};
use regard_models::{Decoding, Error, ModelFiles, Result};
use serde_json::Value;

/// What a text begins with if nothing is given and the model has no word for it.
const NOTHING: &str = "\n";

/// A model that goes on with texts.
pub struct Writer {
    pub(super) model: Box<dyn TextModel>,
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
    /// The natural logarithm of each token's probability after those before it; the first, before
    /// which nothing stands, has none.
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
        fits(&*model, &tokenizer)?;
        let words = model.vocabulary() as u64;
        // Of several, the first; one that the model does not have is none.
        let id = |key: &str| {
            let id = config[key].as_u64().or_else(|| config[key][0].as_u64());
            id.filter(|id| *id < words).map(|id| id as u32)
        };
        let (bos, eos) = (id("bos_token_id"), id("eos_token_id"));
        let pad = tokenizer.special().pad.or(eos);
        let ids = Ids { bos: bos.unwrap_or(0), eos, pad };
        Ok(Writer { model, tokenizer, defaults, ids, bos, device: Device::flex() })
    }

    /// Opens a model: of a folder, which may be a training run's, or of a part of the program.
    pub fn load(model: impl Into<ModelFiles>) -> Result<Writer> {
        let files = train::files(model)?;
        let model = text::open(files.clone(), None, 0, &Device::flex())?;
        let (tokenizer, defaults) = (Tokenizer::of(&files)?, generation::load(&files)?);
        Writer::new(model, tokenizer, defaults)
            .map_err(|e| Error::file(files.place(), e.to_string()))
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

    /// Tokens at the beginning of a prompt that the model cannot see, because it is longer than
    /// what it reads.
    pub fn unseen(&self, prompt: &str) -> Result<usize> {
        let longest = self.model.longest().unwrap_or(usize::MAX);
        Ok(self.prompt(prompt)?.len().saturating_sub(longest))
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
    /// What is drawn at random depends on the text's `number`.
    pub fn generate(
        &self,
        prompt: &str,
        options: &Options,
        number: u64,
        stop: &[String],
        watch: &mut dyn FnMut(u32),
    ) -> Result<Vec<Written>> {
        let prompt = self.prompt(prompt)?;
        let read = &prompt[..prompt.len() - 1];
        let sentence = Sentence { index: number, prompt: prompt.clone(), ..Sentence::default() };
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
        // A text that has come to where it shall stop ends with a token that no model has.
        let end = (!stop.is_empty()).then_some(writing.vocabulary() as u32 - 1);
        let ids = Ids { eos: self.ids.eos.or(end), ..self.ids };
        let mut found = decode(&mut writing, &[sentence], options, &ids)?;
        let found = found.pop().unwrap_or_default();
        let one = |found: Hypothesis| self.written(found.tokens, found.score, ids.eos, stop);
        found.into_iter().map(one).collect()
    }

    /// The text without what ended it. Its tokens are those up to the one with which the text to
    /// stop at was whole.
    fn written(
        &self,
        mut ids: Vec<u32>,
        score: f32,
        eos: Option<u32>,
        stop: &[String],
    ) -> Result<Written> {
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
        Ok(Written { text, ids, score })
    }

    /// How likely a text is. One that is longer than the model can read is read in windows that
    /// overlap by half, so that every token is told from at least half a window before it.
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
            // What the last token leads to is not asked.
            let piece = &ids[from..to.max(from + 1)];
            let at: Vec<usize> = (known - 1 - from..piece.len()).collect();
            let mut texts = Texts::new();
            texts.push(piece);
            let said = self.model.forward(&texts, Some(&at), Mode::Eval);
            let logits = said.logits.expect("a head for words");
            let mut all = vec![];
            numbers(activation::log_softmax(logits, 1), &mut all);
            // A word may be impossible; no word may be NaN.
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

    /// Gives each row one more number, for its end, and nothing else to those that shall end.
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
        // One more for what ends a text that shall stop.
        self.writer.model.vocabulary() + usize::from(!self.stop.is_empty())
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
        if !self.stop.is_empty() {
            self.end_stopped(logits);
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
