//! Word alignment of a translation, from its tokens.

use super::{Translated, Translator};
use crate::decode::TokenAlignment;
use crate::text::Tokenizer;
use regard_models::Result;

/// A translation with word alignment. Word boundaries are those of the tokenizers: with character
/// tokenizers, a word is a character.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Aligned {
    /// Words of the source.
    pub source: Vec<String>,
    /// Words of the translation.
    pub target: Vec<String>,
    /// Log-probability of each word of the translation, in nats.
    pub scores: Vec<f32>,
    /// Attention of each target word over the source words. EOS has no column, so a row may sum to
    /// less than one. `None` if the model returns no attention weights.
    pub alignment: Option<TokenAlignment>,
}

impl Translator {
    /// Aligns the words of a translation; `source` is the translated text.
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
            let tokens = TokenAlignment::new(&translated.found.attention, written.of.len());
            let mut columns = read.of.clone();
            // EOS, which is not a word.
            columns.push(None);
            tokens.words(&columns, &written.of)
        });
        Ok(Aligned { source: read.texts, target: written.texts, scores, alignment })
    }
}

/// Words of a text, and the word of each token.
struct Words {
    texts: Vec<String>,
    spans: Vec<(usize, usize)>,
    of: Vec<Option<usize>>,
}

impl Words {
    /// Merges consecutive tokens of the same word; white space belongs to no word.
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

    /// Splits a translation into words. A token belongs to the word in which the text that it adds
    /// begins.
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
    use crate::text::{Train, VocabularyKind};

    /// Aligns a translation whose tokens are those of `text`; the i-th attends to the i-th source
    /// token, if there is one.
    fn aligned(kind: VocabularyKind, size: usize, source: &str, text: &str) -> Aligned {
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
        // 40 entries are mostly single characters, so a word has many tokens.
        for (kind, size) in [
            (VocabularyKind::WordLevel, 100),
            (VocabularyKind::Bpe, 40),
            (VocabularyKind::Unigram, 40),
        ] {
            let same = aligned(kind, size, "They are watching.", "They are watching.");
            assert_eq!(same.source, ["They", "are", "watching", "."], "{kind:?}");
            assert_eq!(same.target, same.source, "{kind:?}");
            let alignment = same.alignment.unwrap();
            assert_eq!(alignment.pharaoh(), "0-0 1-1 2-2 3-3", "{kind:?}");
            let sums = alignment.weights.iter().map(|row| row.iter().sum::<f32>());
            assert!(sums.into_iter().all(|sum| sum <= 1.0 + 1e-6));
        }
        let pieces = aligned(VocabularyKind::Bpe, 40, "They are", "They are watching");
        assert!(pieces.scores[2] < -3.0, "a word has the sum of its tokens: {:?}", pieces.scores);
        let french = aligned(VocabularyKind::Bpe, 60, "us", "l'école !");
        assert_eq!(french.target, ["l'", "école", "!"]);
        let letters = aligned(VocabularyKind::Char, 60, "us a", "Ils l");
        assert_eq!(letters.source, ["u", "s", "a"]);
        assert_eq!(letters.target, ["I", "l", "s", "l"]);
        // The fourth is a space, which attends to `a`, and the fifth attends to EOS.
        assert_eq!(letters.alignment.unwrap().pharaoh(), "0-0 1-1");
    }

    #[test]
    fn nothing_has_no_words() {
        let nothing = aligned(VocabularyKind::Bpe, 60, "", "");
        assert_eq!(nothing.target.len() + nothing.source.len(), 0);
        assert_eq!(nothing.alignment.unwrap().pharaoh(), "");
    }
}
