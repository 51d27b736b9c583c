//! A translation word by word: from tokens to what people see.

use super::{Translated, Translator};
use crate::decode::Alignment;
use crate::text::Tokenizer;
use regard_models::Result;

/// A translation word by word. Where words begin and end is the tokenizers' matter: in languages
/// that are read character by character, a word is a character.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Aligned {
    /// The words of the source.
    pub source: Vec<String>,
    /// The words that were written.
    pub target: Vec<String>,
    /// The log-probability of each written word.
    pub scores: Vec<f32>,
    /// Where each written word looked, as the model had it. The end of the source is no word and
    /// has no column, so a row may sum to less than one. `None` if the model does not tell.
    pub alignment: Option<Alignment>,
}

impl Translator {
    /// Puts the tokens of a translation together to words; `source` is what was translated.
    pub fn align(&self, source: &str, translated: &Translated) -> Result<Aligned> {
        Aligned::new(source, translated, &self.tokens().target)
    }
}

impl Aligned {
    fn new(source: &str, translated: &Translated, target: &Tokenizer) -> Result<Aligned> {
        let read = Words::new(source, &translated.source_offsets, &translated.source_words);
        let written = Words::written(translated, target)?;
        let mut scores = vec![0.0; written.texts.len()];
        for (word, log_prob) in written.of.iter().zip(&translated.found.token_log_probs) {
            word.iter().for_each(|word| scores[*word] += log_prob);
        }
        let alignment = (!translated.found.attention.is_empty()).then(|| {
            let tokens = Alignment::new(&translated.found.attention, written.of.len());
            let mut columns = read.of.clone();
            // The end, which is no word.
            columns.push(None);
            tokens.words(&columns, &written.of)
        });
        Ok(Aligned { source: read.texts, target: written.texts, scores, alignment })
    }
}

/// The words of a text, and which of them each token belongs to.
struct Words {
    texts: Vec<String>,
    spans: Vec<(usize, usize)>,
    of: Vec<Option<usize>>,
}

impl Words {
    /// Tokens next to each other that belong to the same word are one; white space is none.
    fn new(text: &str, offsets: &[(usize, usize)], words: &[Option<u32>]) -> Words {
        let (mut spans, mut of): (Vec<(usize, usize)>, Vec<Option<usize>>) = (vec![], vec![]);
        let mut last = None;
        for (&(start, end), word) in offsets.iter().zip(words) {
            let blank = text.get(start..end).is_none_or(|slice| slice.trim().is_empty());
            if blank || word.is_none() {
                of.push(None);
                continue;
            }
            match spans.last_mut() {
                Some(span) if last == *word => span.1 = span.1.max(end),
                _ => spans.push((start, end)),
            }
            last = *word;
            of.push(Some(spans.len() - 1));
        }
        let texts = spans.iter().map(|(start, end)| text[*start..*end].to_string()).collect();
        Words { texts, spans, of }
    }

    /// The words that were written. The text is cut into words like any other; a token belongs to
    /// the word in which what it adds to the text begins.
    fn written(translated: &Translated, target: &Tokenizer) -> Result<Words> {
        let (text, special) = (&translated.text, target.special());
        let hidden = [special.pad, special.bos, special.eos, special.unk];
        let hidden: Vec<String> =
            hidden.into_iter().flatten().filter_map(|id| target.token(id)).collect();
        let whole = target.encode(text)?;
        let cut = Words::new(text, &whole.offsets, &whole.words);
        let mut so_far: Vec<String> = vec![];
        let (mut of, mut from) = (vec![], 0);
        for token in &translated.target_tokens {
            if hidden.contains(token) {
                of.push(None);
                continue;
            }
            so_far.push(token.clone());
            let until = target.join(&so_far)?.len().clamp(from, text.len());
            let added = text.get(from..until).unwrap_or("");
            let start = from + added.len() - added.trim_start().len();
            let inside = |span: &(usize, usize)| span.0 <= start && start < span.1;
            let blank = added.trim().is_empty();
            of.push(cut.spans.iter().position(inside).filter(|_| !blank));
            from = until;
        }
        Ok(Words { of, ..cut })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Hypothesis;
    use crate::text::{Kind, Train};

    /// What comes of a translation whose tokens are those of `text`, of which the i-th looked at
    /// the i-th of the source, as far as there is one.
    fn aligned(kind: Kind, size: usize, source: &str, text: &str) -> Aligned {
        let lines = ["They are watching us. l'école !", "Ils nous regardent. l'école !"];
        let tokenizer = Train::new(kind, size).run(lines).unwrap();
        let (read, written) = (tokenizer.encode(source).unwrap(), tokenizer.encode(text).unwrap());
        let keys = read.ids.len() + 1;
        let look = |i: usize| {
            let mut row = vec![0.0; keys];
            row[i.min(keys - 1)] = 1.0;
            row
        };
        let translated = Translated {
            text: text.to_string(),
            source_tokens: read.tokens,
            source_offsets: read.offsets,
            source_words: read.words,
            pieces: 1,
            found: Hypothesis {
                tokens: written.ids.clone(),
                token_log_probs: vec![-1.0; written.ids.len() + 1],
                attention: (0..=written.ids.len()).map(look).collect(),
                ..Hypothesis::default()
            },
            target_tokens: written.tokens,
        };
        Aligned::new(source, &translated, &tokenizer).unwrap()
    }

    #[test]
    fn tokens_become_words() {
        // 40 rows hold little but letters, so that a word is many tokens.
        for (kind, size) in [(Kind::WordLevel, 100), (Kind::Bpe, 40), (Kind::Unigram, 40)] {
            let same = aligned(kind, size, "They are watching.", "They are watching.");
            assert_eq!(same.source, ["They", "are", "watching", "."], "{kind:?}");
            assert_eq!(same.target, same.source, "{kind:?}");
            let alignment = same.alignment.unwrap();
            assert_eq!(alignment.pharaoh(), "0-0 1-1 2-2 3-3", "{kind:?}");
            let sums = alignment.weights.iter().map(|row| row.iter().sum::<f32>());
            assert!(sums.into_iter().all(|sum| sum <= 1.0 + 1e-6));
        }
        let pieces = aligned(Kind::Bpe, 40, "They are", "They are watching");
        assert!(pieces.scores[2] < -3.0, "a word has the sum of its tokens: {:?}", pieces.scores);
        let french = aligned(Kind::Bpe, 60, "us", "l'école !");
        assert_eq!(french.target, ["l'", "école", "!"]);
        let letters = aligned(Kind::Char, 60, "us a", "Ils l");
        assert_eq!(letters.source, ["u", "s", "a"]);
        assert_eq!(letters.target, ["I", "l", "s", "l"]);
        // The fourth is a space, which looked at `a`, and the fifth looked at the end.
        assert_eq!(letters.alignment.unwrap().pharaoh(), "0-0 1-1");
    }

    #[test]
    fn nothing_has_no_words() {
        let nothing = aligned(Kind::Bpe, 60, "", "");
        assert_eq!(nothing.target.len() + nothing.source.len(), 0);
        assert_eq!(nothing.alignment.unwrap().pharaoh(), "");
    }
}
