//! Sequences of one thread.

use super::engine::BatchEngine;
use super::state::{Answer, Request};
use crate::Result;
use regard_attention::plan::SequenceCache;

/// Sequences that one thread generates, as rows of a search.
pub struct Session<'e> {
    engine: &'e BatchEngine,
    number: u64,
    reserved: usize,
    rows: Vec<SequenceCache>,
    /// Tokens of the first row, if tokens are guessed.
    text: Vec<u32>,
    /// Tokens that were guessed and fed after the last one, with the logits after each.
    guessed: Vec<(u32, Vec<f32>)>,
}

impl<'e> Session<'e> {
    pub(super) fn new(engine: &'e BatchEngine, number: u64, reserved: usize) -> Session<'e> {
        Session { engine, number, reserved, rows: vec![], text: vec![], guessed: vec![] }
    }

    /// Replaces all rows by one for each prompt, which may be empty, and reads the prompts.
    ///
    /// # Errors
    /// If a step failed.
    pub fn read(&mut self, prompts: &[&[u32]]) -> Result<()> {
        self.rows.clear();
        self.guessed.clear();
        self.text = prompts.first().map_or(vec![], |prompt| prompt.to_vec());
        for prompt in prompts {
            let row = self.engine.plan().sequence(self.engine.limits().cache);
            if prompt.is_empty() {
                self.rows.push(row);
                continue;
            }
            let tokens = prompt.to_vec();
            let answer = self.engine.ask(self.number, Request::Prompt { row, tokens, read: 0 })?;
            self.rows.extend(answer.rows);
        }
        Ok(())
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
    /// If a step failed.
    ///
    /// # Panics
    /// If there is not one token for each row, or a token is not in the vocabulary.
    pub fn step(&mut self, tokens: &[u32], logits: &mut Vec<f32>) -> Result<()> {
        assert_eq!(tokens.len(), self.rows.len(), "session: needs a token for each row");
        if let ([token], false) = (tokens, self.guessed.is_empty()) {
            self.text.push(*token);
            if self.guessed[0].0 == *token {
                *logits = self.guessed.remove(0).1;
                return Ok(());
            }
            self.forget();
        } else if let [token] = tokens {
            self.text.push(*token);
        }
        let guess = match tokens.len() {
            1 => self.guess(),
            _ => vec![],
        };
        let fed = |token: &u32| [&[*token], &guess[..]].concat();
        let rows = std::mem::take(&mut self.rows);
        let tokens = tokens.iter().map(fed).collect();
        let Answer { rows, logits: mut found } =
            self.engine.ask(self.number, Request::Tokens { rows, tokens })?;
        self.rows = rows;
        let vocabulary = self.engine.plan().vocabulary();
        if !guess.is_empty() {
            let after = found.split_off(vocabulary);
            let after = after.chunks_exact(vocabulary).map(<[f32]>::to_vec);
            self.guessed = guess.into_iter().zip(after).collect();
        }
        *logits = found;
        Ok(())
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

    /// Takes back the tokens that were guessed.
    fn forget(&mut self) {
        if !self.guessed.is_empty() {
            let len = self.len();
            self.rows[0].truncate(len);
            self.guessed.clear();
        }
    }

    /// Guesses the tokens after the last one of the text. Fewer if the model's longest text is near.
    fn guess(&self) -> Vec<u32> {
        let longest = self.engine.plan().longest().unwrap_or(usize::MAX);
        let room = longest.saturating_sub(self.rows[0].len() + 1);
        let guess = self.engine.limits().lookup.guess(&self.text);
        guess[..guess.len().min(room)].to_vec()
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        // Pages first: whoever waits for room may then take it.
        self.rows.clear();
        self.engine.end(self.number, self.reserved);
    }
}
