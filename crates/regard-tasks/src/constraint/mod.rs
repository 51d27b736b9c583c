//! Texts that match a regular expression or a JSON schema.
//!
//! A [`Constraint`] is compiled for the tokens of a model. At each step its [`ConstraintState`]
//! returns which tokens the text may go on with, byte by byte: a token that ends within a character
//! may be followed by those that complete it, and a token that goes beyond a match is forbidden.
//!
//! The automata are those of the crate llguidance: derivatives of regular expressions, and an
//! Earley parser above them for JSON. Patterns and schemas come from outside, so their size is
//! checked here, and the time and the memory of each step are bounded there.

mod pattern;
mod schema;
#[cfg(test)]
mod tests;
mod vocabulary;

pub use vocabulary::ConstraintVocabulary;

use crate::{Error, Result};
use llguidance::Matcher;
use llguidance::api::{GrammarWithLexer, StopReason, TopLevelGrammar};
use llguidance::toktrie::SimpleVob;
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};

/// Stack of the thread that compiles: the deepest schema that is allowed takes a few megabytes.
const STACK: usize = 64 << 20;

/// Error of what matches no text of a vocabulary.
const UNWRITABLE: &str =
    "no text that matches can be written with the tokens of this model's vocabulary";

/// What a text must match, from its first character to its last.
#[derive(Clone, Debug, PartialEq)]
pub enum Constraint {
    /// A regular expression, in the syntax of the crate regex. Word boundaries are not supported.
    Regex(String),
    /// A JSON schema. The text is JSON in which a space may follow a comma or a colon; properties
    /// come in the order of the schema.
    JsonSchema(Value),
}

/// A constraint for the tokens of a model.
pub struct CompiledConstraint {
    name: &'static str,
    /// Number of the model's tokens; the next id stands for the end of the text.
    tokens: u32,
    within: Mutex<Matcher>,
    /// The same where the first token begins a text, if it loses its space there.
    first: Option<Mutex<Matcher>>,
}

/// A constraint after some tokens of a text.
#[derive(Clone)]
pub struct ConstraintState {
    name: &'static str,
    tokens: u32,
    matcher: Matcher,
    /// What may follow, once it was asked for.
    allowed: Option<Arc<Allowed>>,
}

/// What a text may go on with.
#[derive(Clone, Debug, Default)]
pub struct Allowed {
    tokens: Option<SimpleVob>,
    may_end: bool,
}

impl Constraint {
    /// Name of the parameter that sets it.
    pub fn name(&self) -> &'static str {
        match self {
            Constraint::Regex(_) => "regex",
            Constraint::JsonSchema(_) => "json_schema",
        }
    }

    /// Compiles the constraint.
    ///
    /// # Errors
    /// If the pattern or the schema is invalid, too large or not supported, or if no text of these
    /// tokens but the empty one matches.
    pub fn compile(&self, vocabulary: &ConstraintVocabulary) -> Result<CompiledConstraint> {
        let matcher = |first: bool| -> Result<Matcher> {
            let grammar = match self {
                Constraint::Regex(text) => {
                    let alphabet = vocabulary.alphabet();
                    TopLevelGrammar::from_lark(pattern::grammar(text, alphabet, first)?)
                }
                Constraint::JsonSchema(value) => {
                    let schema = schema::prepared(value)?;
                    match first {
                        // JSON begins with no space here, so that one more is not part of it.
                        true => TopLevelGrammar::from_lark(format!(
                            "start: \" \"? json\njson: %json {schema}\n"
                        )),
                        false => TopLevelGrammar::from_grammar(GrammarWithLexer::from_json_schema(
                            schema,
                        )),
                    }
                }
            };
            let matcher = vocabulary.matcher(grammar);
            if let Some(problem) = matcher.get_error() {
                return Err(self.failed(&problem));
            }
            self.check_start(&matcher, vocabulary.tokens())?;
            Ok(matcher)
        };
        let both = || -> Result<_> {
            let first = vocabulary.strips().then(|| matcher(true)).transpose()?;
            Ok((matcher(false)?, first))
        };
        let (within, first) = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, both);
            let thread = thread.map_err(|e| self.failed(&format!("no thread: {e}")))?;
            thread.join().unwrap_or_else(|_| Err(self.failed("the compiler failed")))
        })?;
        Ok(CompiledConstraint {
            name: self.name(),
            tokens: vocabulary.tokens(),
            within: Mutex::new(within),
            first: first.map(Mutex::new),
        })
    }

    /// Checks that some token can begin a text.
    fn check_start(&self, matcher: &Matcher, tokens: u32) -> Result<()> {
        let state =
            ConstraintState { name: self.name(), tokens, matcher: matcher.clone(), allowed: None };
        let allowed = { state }.allowed()?;
        match (0..tokens).any(|token| allowed.allows(token)) {
            true => Ok(()),
            false if allowed.may_end => Err(self.failed("it matches the empty text alone")),
            false => Err(self.failed(UNWRITABLE)),
        }
    }

    fn failed(&self, problem: &str) -> Error {
        failed(self.name(), problem)
    }
}

/// Makes an error of the first line of a message.
fn failed(name: &str, problem: &str) -> Error {
    let line = match problem.lines().next().unwrap_or("it failed") {
        line if line.starts_with("oneOf constraints") => {
            "oneOf: a text could match several of its schemas; use anyOf"
        }
        line => line,
    };
    let complex = ["too many", "too big", "too large"].iter().any(|word| line.contains(word));
    let line = if complex { format!("too complex: {line}") } else { line.to_string() };
    Error::invalid(format!("{name}: {line}"))
}

impl CompiledConstraint {
    /// Begins a text. `first` tells whether its first token begins a whole text, rather than
    /// continuing a prompt.
    pub fn start(&self, first: bool) -> ConstraintState {
        let matcher = self.first.as_ref().filter(|_| first).unwrap_or(&self.within);
        // With automata of its own: what a text costs does not depend on other texts.
        let matcher = matcher.lock().unwrap_or_else(PoisonError::into_inner).deep_clone();
        ConstraintState { name: self.name, tokens: self.tokens, matcher, allowed: None }
    }
}

impl ConstraintState {
    /// Returns what the text may go on with.
    ///
    /// # Errors
    /// If a step takes too long or too much memory.
    pub fn allowed(&mut self) -> Result<Arc<Allowed>> {
        if let Some(allowed) = &self.allowed {
            return Ok(allowed.clone());
        }
        let allowed = match self.has_no_extension() {
            true => Allowed { tokens: None, may_end: true },
            false => match self.matcher.compute_mask() {
                Ok(mut tokens) => {
                    let may_end = tokens.is_allowed(self.tokens);
                    // A model may have more rows than there are tokens.
                    tokens.disallow_token(self.tokens);
                    Allowed { tokens: Some(tokens), may_end }
                }
                // Nothing is allowed: bytes that are needed are no token.
                Err(e) if e.to_string().starts_with("NoExtensionBias") => Allowed::default(),
                Err(e) => return Err(failed(self.name, &e.to_string())),
            },
        };
        Ok(self.allowed.insert(Arc::new(allowed)).clone())
    }

    /// Appends a token.
    ///
    /// # Errors
    /// If it is not allowed.
    pub fn push(&mut self, token: u32) -> Result<()> {
        self.allowed = None;
        self.matcher.consume_token(token).map_err(|e| failed(self.name, &e.to_string()))
    }

    /// Whether the text matches, and no token can follow.
    ///
    /// # Errors
    /// As [`ConstraintState::allowed`].
    pub fn is_complete(&mut self) -> Result<bool> {
        if self.has_no_extension() {
            return Ok(true);
        }
        let may_end = self.matcher.is_accepting().map_err(|e| failed(self.name, &e.to_string()))?;
        // A longer text may match that no tokens can write.
        Ok(may_end && self.allowed()?.is_end())
    }

    /// Whether no longer text matches, whatever tokens there are.
    fn has_no_extension(&self) -> bool {
        self.matcher.stop_reason() == StopReason::NoExtension
    }
}

impl Allowed {
    /// Whether a token may follow.
    pub fn allows(&self, token: u32) -> bool {
        let inside = |tokens: &&SimpleVob| (token as usize) < tokens.len();
        self.tokens.as_ref().filter(inside).is_some_and(|tokens| tokens.is_allowed(token))
    }

    /// Whether the text matches, so that it may end.
    pub fn may_end(&self) -> bool {
        self.may_end
    }

    /// Whether the text matches, and no token may follow.
    fn is_end(&self) -> bool {
        let none = |tokens: &SimpleVob| tokens.as_slice().iter().all(|word| *word == 0);
        self.may_end && self.tokens.as_ref().is_none_or(none)
    }

    /// Sets the logits of all tokens that may not follow to −∞.
    pub fn apply(&self, logits: &mut [f32]) {
        let Some(tokens) = &self.tokens else { return logits.fill(f32::NEG_INFINITY) };
        let mut words = tokens.as_slice().iter();
        for part in logits.chunks_mut(u32::BITS as usize) {
            let word = words.next().copied().unwrap_or(0);
            match word {
                0 => part.fill(f32::NEG_INFINITY),
                _ => part
                    .iter_mut()
                    .enumerate()
                    .filter(|(bit, _)| word >> bit & 1 == 0)
                    .for_each(|(_, logit)| *logit = f32::NEG_INFINITY),
            }
        }
    }
}

impl std::fmt::Debug for CompiledConstraint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompiledConstraint").field("name", &self.name).finish_non_exhaustive()
    }
}
