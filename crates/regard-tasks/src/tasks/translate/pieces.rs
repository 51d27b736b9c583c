//! Texts longer than a model's maximum length: they are split into sentences, which are translated
//! separately and joined again.
//!
//! Attention is quadratic in the sentence length; with a bounded piece length, the time is linear
//! in the length of the text.

use super::{Translated, Translator};
use crate::decode::Hypothesis;
use regard_models::{Error, Result};

/// Maximum number of tokens of a piece if the model's configuration does not state one.
const USUAL: usize = 512;
/// Upper limit of the tokens of a piece for any model.
const MOST: usize = 4096;

/// A piece of a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'a> {
    /// Index of the text.
    pub of: usize,
    /// Index of the piece in its text.
    pub number: usize,
    /// Byte offset of the piece in its text.
    pub start: usize,
    pub text: &'a str,
}

impl Piece<'_> {
    /// Returns the sampling index, combined with the seed: the first piece has its text's index,
    /// counted from `first`, and further pieces have indices that no text has.
    pub fn index(&self, first: u64) -> u64 {
        first.wrapping_add(self.of as u64).wrapping_add((self.number as u64) << 40)
    }
}

impl Translator {
    /// Returns the maximum number of tokens encoded at once, EOS included:
    /// `max_position_embeddings` of the configuration, or 512, and at most 4096. A longer text is
    /// split into sentences.
    pub fn most_tokens(&self) -> usize {
        let said = self.config()["max_position_embeddings"].as_u64();
        let said = said.map_or(USUAL, |most| usize::try_from(most).unwrap_or(MOST));
        self.longest().unwrap_or(said).min(MOST)
    }

    /// Returns a text as one piece, or its sentences if it is too long.
    pub(super) fn pieces<'a>(&self, of: usize, text: &'a str) -> Result<Vec<Piece<'a>>> {
        let mut pieces = vec![];
        if self.fits(text)? {
            pieces.push(Piece { of, number: 0, start: 0, text });
            return Ok(pieces);
        }
        let mut start = 0;
        for sentence in sentences(text) {
            self.halve(Piece { of, number: 0, start, text: sentence }, &mut pieces)?;
            start += sentence.len();
        }
        pieces.iter_mut().enumerate().for_each(|(number, piece)| piece.number = number);
        Ok(pieces)
    }

    fn fits(&self, text: &str) -> Result<bool> {
        Ok(self.tokens().read(text)?.0.len() <= self.most_tokens())
    }

    /// Adds a sentence, or recursively its halves if it is too long.
    fn halve<'a>(&self, piece: Piece<'a>, into: &mut Vec<Piece<'a>>) -> Result<()> {
        if piece.text.trim().is_empty() {
            return Ok(());
        }
        if self.fits(piece.text)? {
            into.push(piece);
            return Ok(());
        }
        let middle = middle(piece.text).ok_or_else(|| {
            Error::invalid(format!(
                "a single character has more than {} tokens, the maximum of the model",
                self.most_tokens()
            ))
        })?;
        let (first, second) = piece.text.split_at(middle);
        self.halve(Piece { text: first, ..piece }, into)?;
        self.halve(Piece { start: piece.start + middle, text: second, ..piece }, into)
    }
}

/// Returns the number of sentences of a text, as it would be split if it were too long.
pub fn sentence_count(text: &str) -> usize {
    sentences(text).filter(|sentence| !sentence.trim().is_empty()).count()
}

/// Splits a text into sentences with their trailing spaces: after `.`, `!` or `?` and a space, or
/// after a Chinese or Japanese full stop.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut ended = false;
        let mut spaced = false;
        let mut end = rest.len();
        for (at, c) in rest.char_indices() {
            match c {
                _ if c.is_whitespace() => spaced = ended,
                // Only the last of several marks ends a sentence: "?!", "...".
                '.' | '!' | '?' | '…' if !spaced => ended = true,
                '。' | '！' | '？' | '；' if !spaced => (ended, spaced) = (true, true),
                // Closing quotes after the mark belong to the sentence.
                '"' | '\'' | '”' | '’' | '»' | '」' | ')'
                    if ended && at > 0 && !is_begun(rest, at) => {}
                _ if spaced => {
                    end = at;
                    break;
                }
                _ => ended = false,
            }
        }
        let (sentence, others) = rest.split_at(end);
        rest = others;
        Some(sentence)
    })
}

/// Returns whether a space precedes this offset: then a quote there begins the next sentence.
fn is_begun(text: &str, at: usize) -> bool {
    text[..at].chars().next_back().is_some_and(char::is_whitespace)
}

/// Returns the best offset to split a text: after the space nearest to its middle, else the middle.
fn middle(text: &str) -> Option<usize> {
    let half = (text.len() / 2..text.len()).find(|at| text.is_char_boundary(*at))?;
    let spaces = || text.char_indices().filter(|(_, c)| c.is_whitespace());
    let quarter = text.len() / 4;
    let near = |(at, c): (usize, char)| {
        let after = at + c.len_utf8();
        (after.abs_diff(half) <= quarter && after < text.len()).then_some(after)
    };
    let best = spaces().filter_map(near).min_by_key(|after| after.abs_diff(half));
    let cut = best.unwrap_or(half);
    match cut {
        // Needs at least two characters.
        0 => text.char_indices().nth(1).map(|(at, _)| at),
        cut => Some(cut),
    }
}

/// Joins the translations of a text's pieces in order. Attention weights are dropped: their size is
/// quadratic in the text length.
pub(super) fn joined(parts: Vec<(Piece, Translated)>) -> Translated {
    let mut whole = Translated { pieces: parts.len(), ..Translated::default() };
    let mut found = Hypothesis { finished: true, ..Hypothesis::default() };
    let mut words = 0;
    for (Piece { start, .. }, part) in parts {
        whole.text.push_str(between(&whole.text, &part.text));
        whole.text.push_str(&part.text);
        whole.source_tokens.extend(part.source_tokens);
        let offset = |(from, to): (usize, usize)| (start + from, start + to);
        whole.source_offsets.extend(part.source_offsets.into_iter().map(offset));
        let next = part.source_words.iter().flatten().max().map_or(words, |last| words + last + 1);
        whole.source_words.extend(part.source_words.iter().map(|word| word.map(|w| w + words)));
        words = next;
        whole.target_tokens.extend(part.target_tokens);
        found.tokens.extend(part.found.tokens);
        found.token_log_probs.extend(part.found.token_log_probs);
        found.log_prob += part.found.log_prob;
        found.score += part.found.score / whole.pieces as f32;
        found.finished &= part.found.finished;
    }
    whole.found = found;
    whole
}

/// Returns the separator between two consecutive translations: a space, except next to Chinese or
/// Japanese characters.
fn between(before: &str, after: &str) -> &'static str {
    match (before.chars().next_back(), after.chars().next()) {
        (Some(last), Some(first)) if !is_cjk(last) && !is_cjk(first) => " ",
        _ => "",
    }
}

/// Returns whether a character is Chinese or kana, or punctuation or a wide form that goes with
/// them; not Hangul, which has spaces between words.
fn is_cjk(c: char) -> bool {
    matches!(c as u32,
        0x3000..=0x30ff | 0x31f0..=0x31ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff
        | 0xff00..=0xff9f | 0x20000..=0x3ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_joined_as_their_script_is_written() {
        let join = |texts: &[&str]| {
            let part = |text: &&str| {
                let piece = Piece { of: 0, number: 0, start: 0, text: "" };
                (piece, Translated { text: text.to_string(), ..Translated::default() })
            };
            joined(texts.iter().map(part).collect()).text
        };
        assert_eq!(join(&["One.", "Two."]), "One. Two.");
        assert_eq!(join(&["", "One.", "", "Two."]), "One. Two.");
        assert_eq!(join(&["他来了。", "你好！", "好"]), "他来了。你好！好");
        assert_eq!(join(&["そうです。", "カメラ", "です"]), "そうです。カメラです");
        assert_eq!(join(&["他来了 .", "你好"]), "他来了 .你好");
        assert_eq!(join(&["그가 왔다.", "안녕"]), "그가 왔다. 안녕");
    }

    #[test]
    fn every_piece_draws_its_own_numbers() {
        let mut all = std::collections::HashSet::new();
        for of in 0..100 {
            for number in 0..100 {
                let piece = Piece { of, number, start: 0, text: "" };
                assert!(all.insert(piece.index(7)), "piece {number} of text {of}");
            }
        }
        let whole = Piece { of: 3, number: 0, start: 0, text: "" };
        assert_eq!(whole.index(7), 10, "a text that is not cut draws what it always drew");
    }

    #[test]
    fn sentences_are_cut_where_they_end() {
        let cut = |text| sentences(text).collect::<Vec<_>>();
        assert_eq!(cut("One. Two!  Three?\nFour"), ["One. ", "Two!  ", "Three?\n", "Four"]);
        assert_eq!(
            cut("He said \"No.\" Then 3.5 left... \"So?\""),
            ["He said \"No.\" ", "Then 3.5 left... ", "\"So?\""]
        );
        assert_eq!(cut("他来了。你好！好"), ["他来了。", "你好！", "好"]);
        assert_eq!(cut(""), [""; 0]);
        for text in ["One. Two!  Three?\nFour", "a.b.c", "...", "   ", "。。。x", "\" . \" x"] {
            assert_eq!(cut(text).concat(), text);
        }
    }

    #[test]
    fn a_text_is_halved_at_a_space() {
        assert_eq!(middle("aaaa bb cccc"), Some(5));
        assert_eq!(middle("aaaaaaaa"), Some(4));
        assert_eq!(middle("éé"), Some(2));
        assert_eq!(middle("é"), None);
        assert_eq!(middle("ab"), Some(1));
    }
}
