//! A text as a model sees it, and the way back to the text.

use std::ops::Range;

/// A text or a pair as a model sees it; the lists have one entry a token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encoding {
    /// Rows of the vocabulary.
    pub ids: Vec<u32>,
    /// What the vocabulary writes there.
    pub tokens: Vec<String>,
    /// The bytes of the user's text that the token stands for, without the spaces around them.
    pub offsets: Vec<(usize, usize)>,
    /// Which word of the text the token belongs to; a special token belongs to none.
    pub words: Vec<Option<u32>>,
    /// The token types that the model was trained with: mostly 0 in the first text and 1 in the
    /// second, but XLNet has a third one for `<cls>`, and RoBERTa has only 0.
    pub types: Vec<u32>,
    /// Which text the token is of, 0 or 1; one that was put around the texts is of none.
    pub texts: Vec<Option<usize>>,
    /// Whether the token was put around the texts.
    pub special: Vec<bool>,
    /// The letters that the token is written with, if the tokenizer has an alphabet.
    pub letters: Vec<Vec<u32>>,
}

impl Encoding {
    /// How many tokens there are.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The offsets counted in characters instead of bytes, as Hugging Face counts them. The texts
    /// are those that were encoded.
    pub fn in_characters(&self, texts: &[&str]) -> Vec<(usize, usize)> {
        let counts: Vec<Vec<usize>> = texts.iter().map(|text| characters_before(text)).collect();
        let convert = |(&(start, end), of): (&(usize, usize), &Option<usize>)| {
            let counts = of.and_then(|of| counts.get(of));
            let count = |at: usize| counts.and_then(|counts| counts.get(at)).copied().unwrap_or(0);
            (count(start), count(end))
        };
        self.offsets.iter().zip(&self.texts).map(convert).collect()
    }

    /// The places of the tokens of a text, from its first one to its last one.
    pub fn places(&self, of: usize) -> Range<usize> {
        let mine = |text: &Option<usize>| *text == Some(of);
        let first = self.texts.iter().position(mine).unwrap_or(0);
        let last = self.texts.iter().rposition(mine).map_or(0, |last| last + 1);
        first..last
    }

    /// The same with only some tokens of each text, counted within it. What was put around the
    /// texts stays.
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

/// How many characters start before each byte, and in the whole text.
fn characters_before(text: &str) -> Vec<usize> {
    let mut counts = vec![0; text.len() + 1];
    for (count, (at, c)) in text.char_indices().enumerate() {
        counts[at] = count;
        // Within a character; no offset is there.
        counts[at + 1..at + c.len_utf8()].fill(count);
    }
    counts[text.len()] = text.chars().count();
    counts
}
