//! Continuation of a prompt.

use super::rows::Rows;
use super::{Generator, Prompt};
use crate::batching::{Cancel, Guesses};
use crate::constraint::{Allowed, CompiledConstraint, ConstraintState};
use crate::decode::{
    DecodeInput, FinishReason, Hypothesis, Ids, Options, StepAttention, Stepper, StopPiece,
    StopSearch, decode,
};
use crate::text::DecodeStream;
use regard_models::{Error, Result};
use std::sync::Arc;

/// How a prompt is continued.
#[derive(Clone, Copy, Debug)]
pub struct Generation<'a> {
    /// Search and sampling options.
    pub options: &'a Options,
    /// Index of the prompt. With the seed it determines the random numbers of sampling.
    pub number: u64,
    /// Strings that end a text.
    pub stop: &'a [String],
    /// Whether the text keeps the stop string that ended it.
    pub include_stop: bool,
    /// Number of most likely tokens to return for each token.
    pub likely: usize,
    /// Ends the generation with an error from another thread, or while the prompt is read.
    pub cancel: Option<&'a Cancel>,
    /// What the text must match. A stop string or the maximum length can still end it early.
    pub constraint: Option<&'a CompiledConstraint>,
}

impl<'a> Generation<'a> {
    /// Continues the first prompt with these options, without stop strings.
    pub fn new(options: &'a Options) -> Generation<'a> {
        Generation {
            options,
            number: 0,
            stop: &[],
            include_stop: false,
            likely: 0,
            cancel: None,
            constraint: None,
        }
    }
}

/// A generated continuation.
#[derive(Clone, Debug, PartialEq)]
pub struct Generated {
    /// Text without the prompt, up to the stop string that ended it.
    pub text: String,
    /// Token ids without those of the prompt; with the one that completed a stop string, without
    /// an end token.
    pub ids: Vec<u32>,
    /// Sum of the log-probabilities, after penalties.
    pub score: f32,
    /// Why the text ended.
    pub finish_reason: FinishReason,
    /// Log-probability of each token, and of the end token if one ended the text, before any
    /// penalty.
    pub log_probs: Vec<f32>,
    /// For each token, and the end token, the most likely tokens with their log-probabilities, if
    /// [`Generation::likely`] is above 0.
    pub likely: Vec<Vec<(u32, f32)>>,
    /// Guesses on the way, if tokens were guessed: of all results of a prompt together.
    pub guesses: Option<Guesses>,
}

/// What was generated since the last call of a watcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written<'a> {
    /// The token; `None` for text that was held back until the end.
    pub token: Option<u32>,
    /// Text that is certain now. It never contains a part of the stop string that ends the text.
    pub text: &'a str,
}

/// Called with each token, if a single sequence is generated, otherwise once a step without text.
/// Returns whether to go on; it is not called again after it returned false.
pub type Watch<'a> = dyn FnMut(Written) -> bool + 'a;

impl Generator {
    /// Continues a prompt until an end token, a stop string or the maximum length. Several
    /// sequences share the computation of the prompt.
    ///
    /// # Errors
    /// If the options are invalid, a step fails, or it is cancelled by [`Generation::cancel`].
    pub fn generate(
        &self,
        prompt: &Prompt,
        how: &Generation,
        watch: &mut Watch,
    ) -> Result<Vec<Generated>> {
        let (options, prompt) = (how.options, prompt.ids());
        let read = &prompt[..prompt.len() - 1];
        let sentence =
            DecodeInput { index: how.number, prompt: prompt.to_vec(), ..DecodeInput::default() };
        let single = options.num_beams == 1 && options.num_return_sequences == 1;
        let text = GeneratedText::new(self, prompt, how);
        let (mut shown, mut going) = (0, true);
        let mut counted = |written: Written| {
            shown += written.text.len();
            going = watch(written);
            going
        };
        let mut writing = Writing {
            writer: self,
            how,
            rows: vec![WritingRow {
                ids: read.to_vec(),
                constraint: how.constraint.map(|constraint| constraint.start(text.stream.begins())),
                text: text.clone(),
            }],
            decoding: self.rows(prompt, how)?,
            read: false,
            held: 0,
            longest: self.context(),
            from: prompt.len(),
            single,
            watch: &mut counted,
            cancelled: false,
            problem: None,
        };
        let ids: &Ids = self.ids();
        let found = decode(&mut writing, &[sentence], options, ids);
        let problem = writing.problem.take();
        let guesses = writing.decoding.guesses().filter(|_| self.makes_guesses());
        drop(writing);
        if let Some(problem) = problem {
            return Err(problem);
        }
        let found = found?.pop().unwrap_or_default();
        let all: Result<Vec<Generated>> = found
            .into_iter()
            .map(|found| Ok(Generated { guesses, ..text.clone().all(found)? }))
            .collect();
        let all = all?;
        if let (true, [one]) = (single && going, &all[..])
            && let Some(rest) = one.text.get(shown..).filter(|rest| !rest.is_empty())
        {
            watch(Written { token: None, text: rest });
        }
        Ok(all)
    }

    /// Begins the rows of a search, which have not read anything yet.
    fn rows(&self, prompt: &[u32], how: &Generation) -> Result<Rows<'_>> {
        let options = how.options;
        let Some(engines) = self.engines() else { return Ok(Rows::Alone(&*self.model, None)) };
        let rows = options.num_beams.max(options.num_return_sequences);
        let new = options.max_new_tokens.unwrap_or(options.max_length);
        let length = prompt.len().saturating_add(new).min(self.context());
        let never = Cancel::new();
        Ok(Rows::Batched(engines.session(rows, length, how.cancel.unwrap_or(&never))?))
    }
}

/// The text of a sequence so far.
#[derive(Clone)]
struct GeneratedText<'a> {
    stream: DecodeStream<'a>,
    search: StopSearch<'a>,
    /// Tokens before which no stop string ends the text.
    least: usize,
    tokens: usize,
}

impl<'a> GeneratedText<'a> {
    fn new(writer: &'a Generator, prompt: &[u32], how: &Generation<'a>) -> GeneratedText<'a> {
        GeneratedText {
            stream: writer.tokenizer().stream_after(prompt),
            search: StopSearch::new(how.stop, how.include_stop),
            least: how.options.min_new_tokens,
            tokens: 0,
        }
    }

    /// Adds a token; returns the text that is certain now.
    fn push(&mut self, token: u32) -> Result<StopPiece> {
        self.tokens += 1;
        let piece = self.stream.push(token)?.unwrap_or_default();
        Ok(self.search.push(&piece, self.tokens >= self.least))
    }

    /// Returns the whole text of a hypothesis.
    fn all(mut self, found: Hypothesis) -> Result<Generated> {
        let (mut text, mut finish_reason) = (String::new(), found.finish_reason);
        let mut stopped = false;
        for token in &found.tokens {
            let piece = self.push(*token)?;
            text.push_str(&piece.text);
            stopped = piece.stopped;
            if stopped {
                break;
            }
        }
        if !stopped {
            let rest = self.stream.finish()?.unwrap_or_default();
            let may_stop = self.tokens >= self.least;
            let StopPiece { text: rest, stopped } = self.search.push(&rest, may_stop);
            text.push_str(&rest);
            match stopped {
                true => finish_reason = FinishReason::Stop,
                false => text.push_str(&self.search.finish()),
            }
        }
        Ok(Generated {
            text,
            ids: found.tokens,
            score: found.score,
            finish_reason,
            log_probs: found.token_log_probs,
            likely: found.likely,
            guesses: None,
        })
    }
}

/// A row of a search.
#[derive(Clone)]
struct WritingRow<'a> {
    /// Tokens so far, prompt included.
    ids: Vec<u32>,
    text: GeneratedText<'a>,
    constraint: Option<ConstraintState>,
}

impl WritingRow<'_> {
    /// Whether no text that matches is longer than this one with a token.
    fn completes(&self, token: u32) -> Result<bool> {
        let Some(mut constraint) = self.constraint.clone() else { return Ok(false) };
        constraint.push(token)?;
        constraint.is_complete()
    }
}

/// State of a decoding run, as seen by the search.
struct Writing<'a> {
    writer: &'a Generator,
    how: &'a Generation<'a>,
    rows: Vec<WritingRow<'a>>,
    /// KV caches; read at the first step, and again when the model's maximum length is reached.
    decoding: Rows<'a>,
    /// Whether they have been read.
    read: bool,
    /// Number of tokens in the KV cache.
    held: usize,
    longest: usize,
    /// Length of the prompt.
    from: usize,
    /// Whether one sequence is generated, and its tokens are watched.
    single: bool,
    watch: &'a mut Watch<'a>,
    cancelled: bool,
    /// Error of a step.
    problem: Option<Error>,
}

impl Writing<'_> {
    /// Rebuilds the KV cache from the last half window of each row, to make room for more tokens.
    fn make_room(&mut self) -> Result<()> {
        let rest = self.longest / 2;
        let most = if self.read { rest } else { self.longest - 1 };
        let keep = |row: &WritingRow| row.ids.len().min(most);
        let rows: Vec<&[u32]> =
            self.rows.iter().map(|row| &row.ids[row.ids.len() - keep(row)..]).collect();
        self.held = rows.first().map_or(0, |row| row.len());
        self.read = true;
        self.decoding.read(&rows)
    }

    /// Whether the text of each token is needed.
    fn follows_text(&self) -> bool {
        self.single || self.how.stop.iter().any(|stop| !stop.is_empty())
    }

    /// Whether the text of a row ends with a token.
    fn ending(&mut self, row: usize, token: u32) -> Result<Option<FinishReason>> {
        let complete = self.rows[row].completes(token)?;
        let mut piece = StopPiece::default();
        if self.follows_text() {
            piece = self.rows[row].text.clone().push(token)?;
            if self.single {
                self.cancelled = !(self.watch)(Written { token: Some(token), text: &piece.text });
            }
        }
        Ok(match piece.stopped || complete {
            true => Some(FinishReason::Stop),
            false => self.cancelled.then_some(FinishReason::Cancelled),
        })
    }

    fn feed(&mut self, tokens: &[u32]) -> Result<()> {
        let follows = self.follows_text();
        for (row, token) in self.rows.iter_mut().zip(tokens) {
            row.ids.push(*token);
            if row.ids.len() <= self.from {
                continue;
            }
            if follows {
                row.text.push(*token)?;
            }
            if let Some(constraint) = &mut row.constraint {
                constraint.push(*token)?;
            }
        }
        Ok(())
    }
}

impl Stepper for Writing<'_> {
    fn vocabulary(&self) -> usize {
        self.writer.model.vocabulary()
    }

    fn step(&mut self, tokens: &[u32], logits: &mut Vec<f32>) -> Option<StepAttention> {
        if !self.single && !self.cancelled {
            self.cancelled = !(self.watch)(Written { token: None, text: "" });
        }
        let mut stepped = Ok(());
        if !self.read || self.held == self.longest {
            stepped = self.make_room();
        }
        let stepped = stepped.and_then(|()| self.decoding.step(tokens, logits));
        if let Err(problem) = stepped.and_then(|()| self.feed(tokens)) {
            // The search ends at the first number that is not finite.
            self.problem = Some(problem);
            logits.clear();
            logits.resize(tokens.len() * self.vocabulary(), f32::NAN);
            return None;
        }
        self.held += 1;
        None
    }

    fn reorder(&mut self, parents: &[usize]) {
        self.rows = parents.iter().map(|parent| self.rows[*parent].clone()).collect();
        self.decoding.reorder(parents);
    }

    fn ends(&mut self, row: usize, token: u32) -> Option<FinishReason> {
        if self.cancelled {
            return Some(FinishReason::Cancelled);
        }
        self.ending(row, token).unwrap_or_else(|problem| {
            self.problem = Some(problem);
            Some(FinishReason::Cancelled)
        })
    }

    fn allowed(&mut self, row: usize) -> Option<Arc<Allowed>> {
        let allowed = self.rows[row].constraint.as_mut()?.allowed();
        Some(allowed.unwrap_or_else(|problem| {
            // Nothing is allowed: the search ends.
            self.problem = Some(problem);
            Arc::default()
        }))
    }

    fn recorded(&self) -> usize {
        self.how.likely
    }
}
