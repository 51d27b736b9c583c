//! Sequences of one thread.

use super::cancel::Cancel;
use super::draft::Draft;
use super::engine::BatchEngine;
use super::limits::Guesses;
use super::state::{Answer, Request, Scores};
use crate::{Error, Result};
use regard_attention::plan::SequenceCache;

/// Most tokens that are guessed at once. A window can take back as many.
pub(super) const MOST_GUESSES: usize = 64;

/// Sequences that one thread generates, as rows of a search.
pub struct Session<'e> {
    engine: &'e BatchEngine,
    number: u64,
    reserved: usize,
    /// Rows, and tokens of each, that it has room for.
    most: [usize; 2],
    cancel: Cancel,
    rows: Vec<SequenceCache>,
    /// Tokens of the first row, if tokens are guessed.
    text: Vec<u32>,
    /// Tokens that were guessed and fed after the last one, with the logits after each.
    guessed: Vec<(u32, Vec<f32>)>,
    draft: Option<Draft<'e>>,
    /// Room that it has reserved of another engine.
    more: Option<Box<Session<'e>>>,
    guesses: Guesses,
}

impl<'e> Session<'e> {
    pub(super) fn new(
        engine: &'e BatchEngine,
        number: u64,
        reserved: usize,
        most: [usize; 2],
        cancel: &Cancel,
    ) -> Session<'e> {
        Session {
            engine,
            number,
            reserved,
            most,
            cancel: cancel.clone(),
            rows: vec![],
            text: vec![],
            guessed: vec![],
            draft: None,
            more: None,
            guesses: Guesses::default(),
        }
    }

    /// Lets a session of a smaller model, which means the same by token ids, guess `tokens` tokens at
    /// once, while there is a single row. Logits stay those of this session's model, bit for bit. A
    /// draft that fails is dropped: the text does not need it.
    pub fn set_draft(&mut self, draft: Session<'e>, tokens: usize) {
        self.draft = Some(Draft::new(draft, tokens));
    }

    /// Keeps the room that a session of another engine has reserved.
    pub(crate) fn keep_room(&mut self, of: Session<'e>) {
        self.more = Some(Box::new(of));
    }

    /// Returns how many tokens were guessed, and how many of the guesses were right.
    pub fn guesses(&self) -> Guesses {
        self.guesses
    }

    /// Replaces all rows by one for each prompt, which may be empty, and reads the prompts.
    ///
    /// # Errors
    /// If there is no room for them, a token is not in the vocabulary, a step failed, or it is
    /// cancelled.
    pub fn read(&mut self, prompts: &[&[u32]]) -> Result<()> {
        self.check(prompts.iter().copied(), 0)?;
        self.rows.clear();
        self.guessed.clear();
        self.text = prompts.first().map_or(vec![], |prompt| prompt.to_vec());
        for prompt in prompts {
            let row = self.row();
            if prompt.is_empty() {
                self.rows.push(row);
                continue;
            }
            let tokens = prompt.to_vec();
            let answer = self.ask(Request::Prompt { row, tokens, read: 0, scores: None })?;
            self.rows.extend(answer.rows);
        }
        if let (Some(draft), [prompt]) = (&mut self.draft, prompts)
            && draft.read(prompt).is_err()
        {
            self.draft = None;
        }
        Ok(())
    }

    /// Reads the rest of a text with which the only row begins.
    pub(super) fn read_on(&mut self, text: &[u32]) -> Result<()> {
        let read = self.len();
        self.check([&text[read..]].into_iter(), read)?;
        let row = self.rows.pop().expect("a row was begun");
        let request = Request::Prompt { row, tokens: text.to_vec(), read, scores: None };
        self.rows = self.ask(request)?.rows;
        Ok(())
    }

    /// Returns the natural logarithms of the probabilities of `text[known..]`, each given the tokens
    /// before it. Drops all rows.
    ///
    /// # Errors
    /// As [`Session::read`].
    ///
    /// # Panics
    /// If nothing is known: the first token has no probability.
    pub fn score(&mut self, text: &[u32], known: usize) -> Result<Vec<f64>> {
        assert!(known > 0, "score: the first token has no probability");
        if known >= text.len() {
            return Ok(vec![]);
        }
        let (fed, last) = text.split_at(text.len() - 1);
        self.check([fed].into_iter(), 0)?;
        self.check([last].into_iter(), 0)?;
        self.rows.clear();
        self.guessed.clear();
        let scores = Scores { from: known - 1, next: text[known..].to_vec(), logprobs: vec![] };
        let (row, tokens) = (self.row(), fed.to_vec());
        let request = Request::Prompt { row, tokens, read: 0, scores: Some(scores) };
        Ok(self.ask(request)?.logprobs)
    }

    /// Returns the number of positions of the first row.
    pub fn len(&self) -> usize {
        self.rows.first().map_or(0, SequenceCache::len) - self.guessed.len()
    }

    /// Whether the first row has no positions.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Feeds a token to each row, and replaces the contents of `logits` by those after them.
    ///
    /// # Shapes
    /// `logits: [rows, V]`
    ///
    /// # Errors
    /// As [`Session::read`].
    ///
    /// # Panics
    /// If there is not one token for each row.
    pub fn step(&mut self, tokens: &[u32], logits: &mut Vec<f32>) -> Result<()> {
        assert_eq!(tokens.len(), self.rows.len(), "session: needs a token for each row");
        let [token] = tokens else {
            self.check(tokens.chunks(1), self.len())?;
            return self.ask_tokens(tokens.iter().map(|token| vec![*token]).collect(), logits);
        };
        self.text.push(*token);
        if self.guessed.first().is_some_and(|(guess, _)| guess == token) {
            self.guesses.accepted += 1;
            *logits = self.guessed.remove(0).1;
            return Ok(());
        }
        self.forget();
        self.check([tokens].into_iter(), self.len())?;
        let guess = self.guess();
        self.guesses.guessed += guess.len() as u64;
        self.ask_tokens(vec![[tokens, &guess[..]].concat()], logits)?;
        if !guess.is_empty() {
            let after = logits.split_off(self.words());
            let after = after.chunks_exact(self.words()).map(<[f32]>::to_vec);
            self.guessed = guess.into_iter().zip(after).collect();
        }
        Ok(())
    }

    /// Feeds tokens to the only row, and replaces the contents of `logits` by those after each.
    ///
    /// # Shapes
    /// `logits: [tokens, V]`
    pub(super) fn feed(&mut self, tokens: &[u32], logits: &mut Vec<f32>) -> Result<()> {
        self.check([tokens].into_iter(), self.len())?;
        self.ask_tokens(vec![tokens.to_vec()], logits)
    }

    /// Makes row `i` continue from row `parents[i]`.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn reorder(&mut self, parents: &[usize]) {
        if parents != [0] {
            self.forget();
        }
        self.rows = parents.iter().map(|parent| self.rows[*parent].clone()).collect();
    }

    /// Shortens the only row to `len` positions; returns whether it can.
    pub(super) fn shorten(&mut self, len: usize) -> bool {
        let can = self.rows[0].can_truncate(len);
        if can {
            self.rows[0].truncate(len);
        }
        can
    }

    /// Whether no row was begun.
    pub(super) fn is_unread(&self) -> bool {
        self.rows.is_empty()
    }

    /// Longest text that it may hold.
    pub(super) fn longest(&self) -> usize {
        self.most[1].min(self.engine.plan().longest().unwrap_or(usize::MAX))
    }

    /// Size of the model's vocabulary.
    pub(super) fn words(&self) -> usize {
        self.engine.plan().vocabulary()
    }

    fn row(&self) -> SequenceCache {
        self.engine.plan().sequence(self.engine.limits().cache)
    }

    fn ask(&self, request: Request) -> Result<Answer> {
        self.engine.ask(self.number, request, &self.cancel)
    }

    fn ask_tokens(&mut self, tokens: Vec<Vec<u32>>, logits: &mut Vec<f32>) -> Result<()> {
        let rows = std::mem::take(&mut self.rows);
        let answer = self.ask(Request::Tokens { rows, tokens })?;
        (self.rows, *logits) = (answer.rows, answer.logits);
        Ok(())
    }

    /// Checks tokens for each row that follow `held` others: a step that fails would be one of all
    /// sessions.
    fn check<'t>(&self, rows: impl Iterator<Item = &'t [u32]>, held: usize) -> Result<()> {
        let (mut count, words) = (0, self.words());
        for tokens in rows {
            count += 1;
            if let Some(bad) = tokens.iter().find(|token| **token as usize >= words) {
                return Err(Error::invalid(format!(
                    "token: got {bad}, the model's embeddings have {words} rows"
                )));
            }
            let (len, longest) = (held + tokens.len(), self.longest());
            if len > longest {
                return Err(Error::invalid(format!(
                    "sequence: got {len} tokens, this session has room for {longest}"
                )));
            }
        }
        match count > self.most[0] {
            true => Err(Error::invalid(format!(
                "rows: got {count} sequences, this session has room for {}",
                self.most[0]
            ))),
            false => Ok(()),
        }
    }

    /// Takes back the tokens that were guessed.
    fn forget(&mut self) {
        if !self.guessed.is_empty() {
            let len = self.len();
            self.rows[0].truncate(len);
            self.guessed.clear();
        }
    }

    /// Guesses the tokens after the last one of the text. Fewer if the end of the room is near.
    fn guess(&mut self) -> Vec<u32> {
        let room = self.longest().saturating_sub(self.rows[0].len() + 1).min(MOST_GUESSES);
        let found = self.engine.limits().lookup.guess(&self.text);
        let found = &found[..found.len().min(room)];
        let words = self.words();
        match &mut self.draft {
            Some(draft) if found.is_empty() => {
                let guess = draft.guess(&self.text, words, room);
                if guess.is_err() {
                    self.draft = None;
                }
                guess.unwrap_or_default()
            }
            _ => found.to_vec(),
        }
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        // Pages first: whoever waits for room may then take it.
        self.rows.clear();
        self.engine.end(self.number, self.reserved, self.guesses);
    }
}
