//! A tokenised text, with offsets into the original text.

use std::ops::Range;

/// A tokenised text or pair; the lists have one entry per token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encoding {
    /// Token ids.
    pub ids: Vec<u32>,
    /// Tokens as in the vocabulary.
    pub tokens: Vec<String>,
    /// Byte range of the token in its original text, without surrounding spaces.
    pub offsets: Vec<(usize, usize)>,
    /// Index of the word of the text that the token belongs to; `None` for a special token.
    pub words: Vec<Option<u32>>,
    /// Token types that the model was trained with: mostly 0 in the first text and 1 in the
    /// second, but XLNet has a third one for `<cls>`, and RoBERTa has only 0.
    pub types: Vec<u32>,
    /// Text that the token belongs to, 0 or 1; `None` for a special token around the texts.
    pub texts: Vec<Option<usize>>,
    /// Whether the token is a special token around the texts.
    pub special: Vec<bool>,
    /// Character ids of the token; empty if the tokenizer has no alphabet.
    pub letters: Vec<Vec<u32>>,
}

impl Encoding {
    /// Returns the number of tokens.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Returns the offsets in characters instead of bytes, as in Hugging Face. `texts` are the
    /// texts that were encoded.
    pub fn in_characters(&self, texts: &[&str]) -> Vec<(usize, usize)> {
        let counts: Vec<Vec<usize>> = texts.iter().map(|text| characters_before(text)).collect();
        let convert = |(&(start, end), of): (&(usize, usize), &Option<usize>)| {
            let counts = of.and_then(|of| counts.get(of));
            let count = |at: usize| counts.and_then(|counts| counts.get(at)).copied().unwrap_or(0);
            (count(start), count(end))
        };
        self.offsets.iter().zip(&self.texts).map(convert).collect()
    }

    /// Returns the positions of a text's tokens, from the first one to the last one.
    pub fn places(&self, of: usize) -> Range<usize> {
        let mine = |text: &Option<usize>| *text == Some(of);
        let first = self.texts.iter().position(mine).unwrap_or(0);
        let last = self.texts.iter().rposition(mine).map_or(0, |last| last + 1);
        first..last
    }

    /// Returns the encoding with only a range of the tokens of each text, counted within it.
    /// Special tokens around the texts stay.
    pub(super) fn part(&self, kept: [Range<usize>; 2]) -> Encoding {
        let mut part = Encoding::default();
        let mut seen = [0, 0];
        for (at, &of) in self.texts.iter().enumerate() {
            if let Some(of) = of {
                seen[of] += 1;
                if !kept[of].contains(&(seen[of] - 1)) {
                    continue;
                }
            }
            part.ids.push(self.ids[at]);
            part.tokens.push(self.tokens[at].clone());
            part.offsets.push(self.offsets[at]);
            part.words.push(self.words[at]);
            part.types.push(self.types[at]);
            part.texts.push(of);
            part.special.push(self.special[at]);
            part.letters.extend(self.letters.get(at).cloned());
        }
        part
    }
}

/// Number of characters before each byte, and in the whole text.
fn characters_before(text: &str) -> Vec<usize> {
    let mut counts = vec![0; text.len() + 1];
    for (count, (at, c)) in text.char_indices().enumerate() {
        counts[at] = count;
        // Within a character: no offset points here.
        counts[at + 1..at + c.len_utf8()].fill(count);
    }
    counts[text.len()] = text.chars().count();
    counts
}
