//! The tokens of a model, as a trie of their bytes.

use crate::text::{TokenBytes, Tokenizer};
use crate::{Error, Result};
use llguidance::api::{ParserLimits, TopLevelGrammar};
use llguidance::toktrie::{ApproximateTokEnv, TokEnv, TokRxInfo, TokTrie};
use llguidance::{Matcher, ParserFactory};
use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};
use std::sync::Arc;

/// Longest token in bytes: the trie has room for 1024. Longer ones, such as hundreds of spaces, are
/// not generated.
const LONGEST: usize = 512;
/// Most bytes of all tokens together: nodes of the trie. The largest vocabularies, of 256,000 tokens,
/// have about 2 million.
const MOST_BYTES: usize = 4 << 20;

/// Limits on patterns and schemas, and on what a step may take.
fn limits() -> ParserLimits {
    ParserLimits {
        // About 2 KB each: 50 MB.
        max_lexer_states: 25_000,
        // As many derivatives take about 20 ms; 10 ms in a step.
        initial_lexer_fuel: 1_000_000,
        step_lexer_fuel: 200_000,
        step_max_items: 50_000,
        max_grammar_size: 100_000,
        max_items_in_row: 2_000,
        precompute_large_lexemes: false,
        verbose_errors: false,
    }
}

/// The tokens of a model, prepared for constraints.
pub struct ConstraintVocabulary {
    factory: ParserFactory,
    tokens: u32,
    /// Characters that can be written; `None` if all can.
    alphabet: Option<ClassUnicode>,
    strips: bool,
}

impl ConstraintVocabulary {
    /// Prepares the tokens of a tokenizer: about 0.2 s for 50,000 tokens.
    ///
    /// # Errors
    /// If the vocabulary is too large.
    pub fn new(tokenizer: &Tokenizer) -> Result<ConstraintVocabulary> {
        ConstraintVocabulary::of(tokenizer.token_bytes()?)
    }

    /// Prepares tokens whose bytes are known.
    ///
    /// # Errors
    /// If the vocabulary is too large.
    pub fn of(TokenBytes { mut bytes, strips }: TokenBytes) -> Result<ConstraintVocabulary> {
        bytes.iter_mut().filter(|bytes| bytes.len() > LONGEST).for_each(Vec::clear);
        let size: usize = bytes.iter().map(Vec::len).sum();
        if size > MOST_BYTES || bytes.len() > MOST_BYTES {
            return Err(Error::invalid(format!(
                "vocabulary: got {} tokens with {size} bytes together, need at most {MOST_BYTES} for \
                 a constraint",
                bytes.len()
            )));
        }
        let tokens = bytes.len() as u32;
        let alphabet = alphabet(&bytes);
        // One more token, without bytes, stands for the end of the text.
        bytes.push(vec![]);
        let trie = TokTrie::from(&TokRxInfo::new(tokens + 1, tokens), &bytes);
        let environment: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
        let mut factory = ParserFactory::new_simple(&environment)
            .map_err(|e| Error::invalid(format!("vocabulary: {e}")))?;
        factory.quiet();
        *factory.limits_mut() = limits();
        Ok(ConstraintVocabulary { factory, tokens, alphabet, strips })
    }

    /// Compiles a grammar; the result holds the error, if there is one.
    pub(super) fn matcher(&self, grammar: TopLevelGrammar) -> Matcher {
        Matcher::new(self.factory.create_parser(grammar))
    }

    /// Number of tokens.
    pub(super) fn tokens(&self) -> u32 {
        self.tokens
    }

    /// Characters that can be written; `None` if all can.
    pub(super) fn alphabet(&self) -> Option<&ClassUnicode> {
        self.alphabet.as_ref()
    }

    /// Whether a token at the very beginning of a text loses its space.
    pub(super) fn strips(&self) -> bool {
        self.strips
    }
}

/// Returns the characters of tokens; `None` if every byte is there. Where tokens are parts of
/// characters, all characters beyond ASCII count.
fn alphabet(tokens: &[Vec<u8>]) -> Option<ClassUnicode> {
    let mut ranges = vec![];
    let mut parts = false;
    for token in tokens {
        match std::str::from_utf8(token) {
            Ok(text) => ranges.extend(text.chars().map(|c| ClassUnicodeRange::new(c, c))),
            Err(_) => {
                parts = true;
                let ascii = token.iter().filter(|byte| byte.is_ascii()).map(|byte| *byte as char);
                ranges.extend(ascii.map(|c| ClassUnicodeRange::new(c, c)));
            }
        }
    }
    if parts {
        ranges.push(ClassUnicodeRange::new('\u{80}', char::MAX));
    }
    let alphabet = ClassUnicode::new(ranges);
    let all = ClassUnicode::new([ClassUnicodeRange::new('\0', char::MAX)]);
    (alphabet != all).then_some(alphabet)
}
