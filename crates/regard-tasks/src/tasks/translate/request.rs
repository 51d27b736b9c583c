//! Texts in, translations out.

use super::Translator;
use super::pieces::{Piece, joined};
use crate::decode::{Alignment, Hypothesis, Options, Sentence, replace_unknowns};
use crate::text::{Encoding, Tokenizer};
use regard_models::{Error, Result};

/// Source tokens of a batch, with what fills its rows: long sentences come in smaller batches, so
/// that memory does not depend on them.
const BATCH_TOKENS: usize = 1 << 14;

/// What is asked of a translator, beside the texts.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// How to search.
    pub options: &'a Options,
    /// Sentences at a time, at most. The results do not depend on it.
    pub batch: usize,
    /// Whether it should tell where it looked.
    pub look: bool,
    /// Whether an unknown token becomes the word of the source that it looked at most.
    pub replace_unknowns: bool,
    /// What every translation has to begin with.
    pub target_prefix: &'a str,
    /// The number of the first text among all that will ever be translated: with the seed it
    /// decides what is sampled.
    pub first: u64,
}

impl<'a> Request<'a> {
    /// Translations and nothing else, 32 at a time.
    pub fn new(options: &'a Options) -> Request<'a> {
        Request {
            options,
            batch: 32,
            look: false,
            replace_unknowns: false,
            target_prefix: "",
            first: 0,
        }
    }
}

/// A translation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Translated {
    /// As text.
    pub text: String,
    /// What the source was cut into; the end is not among them.
    pub source_tokens: Vec<String>,
    /// Where each of them is in the source, in bytes.
    pub source_offsets: Vec<(usize, usize)>,
    /// Which word of the source each of them belongs to.
    pub source_words: Vec<Option<u32>>,
    /// Pieces that the source was cut into, because it is longer than the model reads at once.
    /// With more than one, there are no attention weights.
    pub pieces: usize,
    /// What was written, piece by piece, without the end; unknown tokens are already replaced, if
    /// they were to be.
    pub target_tokens: Vec<String>,
    /// Scores and where the model looked; a source has its end as its last place.
    pub found: Hypothesis,
}

/// A text as the model gets it.
struct Read {
    /// With the end.
    ids: Vec<u32>,
    encoding: Encoding,
}

impl Translator {
    /// Translates texts, in their order, the long ones together: for each its translations, best
    /// first. A text without words becomes nothing. A text that is longer than
    /// [`Translator::most_tokens`] is translated sentence by sentence.
    pub fn run<S: AsRef<str>>(
        &self,
        texts: &[S],
        request: &Request,
    ) -> Result<Vec<Vec<Translated>>> {
        let mut pieces = vec![];
        for (of, text) in texts.iter().enumerate() {
            pieces.extend(self.pieces(of, text.as_ref())?);
        }
        let found = self.run_pieces(&pieces, request)?;
        let mut of_each: Vec<Vec<(Piece, Vec<Translated>)>> = vec![vec![]; texts.len()];
        for (piece, found) in pieces.into_iter().zip(found) {
            of_each[piece.of].push((piece, found));
        }
        let whole = |mut parts: Vec<(Piece, Vec<Translated>)>| match parts.len() {
            0 => vec![Translated::default()],
            1 => parts.remove(0).1,
            // The best of all pieces together, then the second best of all, and so on.
            _ => {
                let most = parts.iter().map(|(_, found)| found.len()).min().unwrap_or(0);
                let at = |n: usize| parts.iter().map(|(p, f)| (*p, f[n].clone())).collect();
                (0..most).map(|n| joined(at(n))).collect()
            }
        };
        Ok(of_each.into_iter().map(whole).collect())
    }

    fn run_pieces(&self, texts: &[Piece], request: &Request) -> Result<Vec<Vec<Translated>>> {
        let target_prefix = match request.target_prefix {
            "" => vec![],
            prefix => self.tokens().target.encode(prefix)?.ids,
        };
        let read = texts.iter().map(|piece| {
            let (ids, encoding) = self.tokens().read(piece.text)?;
            Ok(Read { ids, encoding })
        });
        let read: Vec<Read> = read.collect::<Result<_>>()?;
        let mut order: Vec<usize> = (0..read.len()).filter(|i| read[*i].ids.len() > 1).collect();
        order.sort_by_key(|i| std::cmp::Reverse(read[*i].ids.len()));
        let mut all = vec![vec![Translated::default()]; texts.len()];
        let mut rest = &order[..];
        while let Some(longest) = rest.first() {
            let most = (BATCH_TOKENS / read[*longest].ids.len()).clamp(1, request.batch.max(1));
            let (rows, others) = rest.split_at(most.min(rest.len()));
            rest = others;
            let ids: Vec<&[u32]> = rows.iter().map(|i| &read[*i].ids[..]).collect();
            let sentence = |i: &usize| Sentence {
                index: texts[*i].index(request.first),
                source: read[*i].ids.len(),
                target_prefix: target_prefix.clone(),
                ..Sentence::default()
            };
            let sentences: Vec<Sentence> = rows.iter().map(sentence).collect();
            let look = request.look || request.replace_unknowns;
            let found = self.search(&ids, &sentences, request.options, look)?;
            for (i, hypotheses) in rows.iter().zip(found) {
                let copy = request.replace_unknowns.then_some(texts[*i].text);
                let one = |found: Hypothesis| self.translated(&read[*i], found, copy);
                all[*i] = hypotheses.into_iter().map(one).collect::<Result<_>>()?;
            }
        }
        Ok(all)
    }

    /// The usual case of [`Translator::run`].
    pub fn translate<S: AsRef<str>>(
        &self,
        texts: &[S],
        options: &Options,
        batch: usize,
        look: bool,
    ) -> Result<Vec<Vec<Translated>>> {
        self.run(texts, &Request { batch, look, ..Request::new(options) })
    }

    /// `copy` is the source, if unknown tokens are to be replaced by its words.
    fn translated(&self, read: &Read, found: Hypothesis, copy: Option<&str>) -> Result<Translated> {
        let target = &self.tokens().target;
        let token = |id: &u32| target.token(*id).unwrap_or_default();
        let mut translated = Translated {
            text: target.decode(&found.tokens)?,
            source_tokens: read.encoding.tokens.clone(),
            source_offsets: read.encoding.offsets.clone(),
            source_words: read.encoding.words.clone(),
            pieces: 1,
            target_tokens: found.tokens.iter().map(token).collect(),
            found,
        };
        if let (Some(source), Some(unknown)) = (copy, target.special().unk)
            && translated.found.tokens.contains(&unknown)
        {
            translated.copy_unknowns(source, target, &token(&unknown))?;
        }
        Ok(translated)
    }
}

impl Translated {
    /// Replaces each unknown token by the word of the source that it looked at most.
    fn copy_unknowns(&mut self, source: &str, target: &Tokenizer, unknown: &str) -> Result<()> {
        if self.found.attention.is_empty() {
            return Err(Error::invalid(
                "replace_unknowns: this model does not tell where it looks, so nothing says what \
                 to replace an unknown word by",
            ));
        }
        let marked = !target.join(&["a".to_string(), "▁b".to_string()])?.contains('▁');
        let word = |at: usize| {
            let of = self.source_words[at];
            let same = |i: &usize| of.is_some() && self.source_words[*i] == of || *i == at;
            let spans = (0..self.source_offsets.len()).filter(same).map(|i| self.source_offsets[i]);
            let (start, end) =
                spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or_default();
            // A space that is a token of its own belongs to the word, but is no part of it.
            let start = end - source[start..end].trim_start().len();
            let space = source[..start].chars().next_back().is_none_or(char::is_whitespace);
            let mark = if marked && space { "▁" } else { "" };
            format!("{mark}{}", &source[start..end])
        };
        let words: Vec<String> = (0..self.source_offsets.len()).map(word).collect();
        let alignment = Alignment::new(&self.found.attention, self.target_tokens.len());
        let unknown = unknown.to_string();
        let tokens = replace_unknowns(&self.target_tokens, &unknown, &words, &alignment);
        let mut shown: Vec<String> = vec![];
        for (token, was) in tokens.iter().zip(&self.target_tokens) {
            let copied = *was == unknown && token != was;
            // A space that was written by itself is already there.
            let spaced = shown.last().is_some_and(|last| last == "▁");
            let token = if copied && spaced { token.trim_start_matches('▁') } else { token };
            shown.push(token.to_string());
        }
        self.target_tokens = shown;
        let written = self.target_tokens.iter().filter(|token| **token != unknown).cloned();
        self.text = target.join(&written.collect::<Vec<_>>())?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Kind, Train};

    /// `written` with its unknown tokens replaced, each of which looks at the place of the source
    /// that `looks` has for it.
    fn copied(kind: Kind, source: &str, written: &[&str], looks: &[usize]) -> String {
        let tokenizer = Train::new(kind, 60).run(["my friend is here . !", "ami est"]).unwrap();
        let read = tokenizer.encode(source).unwrap();
        let look = |at: &usize| {
            let mut row = vec![0.0; read.ids.len() + 1];
            row[*at] = 0.7;
            row
        };
        let mut translated = Translated {
            source_tokens: read.tokens.clone(),
            source_offsets: read.offsets.clone(),
            source_words: read.words.clone(),
            target_tokens: written.iter().map(|token| token.to_string()).collect(),
            found: Hypothesis {
                attention: looks.iter().map(look).collect(),
                ..Hypothesis::default()
            },
            ..Translated::default()
        };
        translated.copy_unknowns(source, &tokenizer, "<unk>").unwrap();
        translated.text
    }

    #[test]
    fn unknown_tokens_become_words_of_the_source() {
        let words = Kind::WordLevel;
        assert_eq!(copied(words, "my Maier .", &["ami", "<unk>", "."], &[0, 1, 2]), "ami Maier.");
        assert_eq!(copied(words, "my 🙂", &["ami", "<unk>"], &[0, 1]), "ami 🙂");
        // A piece of an unknown word stands for the whole word.
        let source = "is 漢字 here";
        let at = {
            let tokenizer = Train::new(Kind::Bpe, 60).run(["my friend is here . !"]).unwrap();
            let tokens = tokenizer.encode(source).unwrap().tokens;
            tokens.iter().position(|token| token == "<unk>").unwrap()
        };
        assert_eq!(copied(Kind::Bpe, source, &["▁est", "▁", "<unk>"], &[0, at, at]), "est 漢字");
        assert_eq!(copied(Kind::Bpe, source, &["▁est", "<unk>"], &[0, at]), "est 漢字");
        assert_eq!(copied(Kind::Char, "i漢", &["e", "<unk>"], &[0, 1]), "e漢");
    }

    #[test]
    fn a_look_at_the_end_leaves_it_out() {
        assert_eq!(copied(Kind::WordLevel, "my", &["ami", "<unk>"], &[0, 1]), "ami");
    }

    #[test]
    fn a_model_that_does_not_tell_is_an_error() {
        let tokenizer = Train::new(Kind::Char, 60).run(["ab"]).unwrap();
        let mut blind = Translated { target_tokens: vec!["<unk>".into()], ..Translated::default() };
        let error = blind.copy_unknowns("ab", &tokenizer, "<unk>").unwrap_err().to_string();
        assert!(error.contains("replace_unknowns"), "{error}");
    }
}
