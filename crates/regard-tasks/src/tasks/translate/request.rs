//! Translation requests: texts in, translations out.

use super::Translator;
use super::pieces::{Piece, joined};
use crate::decode::{DecodeInput, Hypothesis, Options, TokenAlignment, replace_unknowns};
use crate::text::{Encoding, Tokenizer};
use crate::workers;
use regard_attention::plan::{Part, timed};
use regard_attention::pool;
use regard_models::{Error, Result};

/// Maximum number of source tokens of all batches that are translated at once, padding included:
/// long sentences come in smaller batches, so that memory is bounded.
const BATCH_TOKENS: usize = 1 << 14;

/// Fewest sentences of a worker's batch.
const EACH: usize = 4;

/// Batches of each worker.
const SHARES: usize = 2;

/// Parameters of a translation run.
#[derive(Clone, Debug)]
pub struct TranslationRequest<'a> {
    /// Search options.
    pub options: &'a Options,
    /// Maximum number of sentences per batch. The results do not depend on it.
    pub batch: usize,
    /// Whether to return attention weights.
    pub look: bool,
    /// Whether unknown tokens are replaced by the source word with the most attention.
    pub replace_unknowns: bool,
    /// Text that every translation begins with; may be empty.
    pub target_prefix: &'a str,
    /// Number of batches that are translated at the same time, each on a core of its own. `None`: as
    /// many as there are threads if there are enough sentences, otherwise one that uses all threads.
    /// The results do not depend on it.
    pub workers: Option<usize>,
    /// Index of the first text. With the seed it determines the random numbers of sampling.
    pub first: u64,
}

impl<'a> TranslationRequest<'a> {
    /// Creates a request with a batch size of 32 and without attention weights.
    pub fn new(options: &'a Options) -> TranslationRequest<'a> {
        TranslationRequest {
            options,
            batch: 32,
            look: false,
            replace_unknowns: false,
            target_prefix: "",
            workers: None,
            first: 0,
        }
    }
}

/// A translation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Translated {
    /// Text of the translation.
    pub text: String,
    /// Tokens of the source, without EOS.
    pub source_tokens: Vec<String>,
    /// Byte range of each token in the source.
    pub source_offsets: Vec<(usize, usize)>,
    /// Word index of each token of the source; `None` if it belongs to none.
    pub source_words: Vec<Option<u32>>,
    /// Number of pieces that the source was split into because of its length. With more than one,
    /// there are no attention weights.
    pub pieces: usize,
    /// Tokens of the translation, without EOS; unknown tokens are already replaced, if requested.
    pub target_tokens: Vec<String>,
    /// Scores and attention weights; the last source position is EOS.
    pub found: Hypothesis,
}

/// An encoded source.
struct Read {
    /// Token ids, with EOS.
    ids: Vec<u32>,
    encoding: Encoding,
}

impl Translator {
    /// Translates texts, batched by length; returns the translations of each text in input order,
    /// the best first. A text without tokens gives an empty translation. A text longer than
    /// [`Translator::most_tokens`] is translated sentence by sentence.
    pub fn run<S: AsRef<str>>(
        &self,
        texts: &[S],
        request: &TranslationRequest,
    ) -> Result<Vec<Vec<Translated>>> {
        let mut pieces = vec![];
        for (of, text) in texts.iter().enumerate() {
            pieces.extend(timed(Part::Tokenizer, || self.pieces(of, text.as_ref()))?);
        }
        let found = self.run_pieces(&pieces, request)?;
        let mut of_each: Vec<Vec<(Piece, Vec<Translated>)>> = vec![vec![]; texts.len()];
        for (piece, found) in pieces.into_iter().zip(found) {
            of_each[piece.of].push((piece, found));
        }
        let whole = |mut parts: Vec<(Piece, Vec<Translated>)>| match parts.len() {
            0 => vec![Translated::default()],
            1 => parts.remove(0).1,
            // Joins the best hypotheses of all pieces, then the second best, and so on.
            _ => {
                let most = parts.iter().map(|(_, found)| found.len()).min().unwrap_or(0);
                let at = |n: usize| parts.iter().map(|(p, f)| (*p, f[n].clone())).collect();
                (0..most).map(|n| joined(at(n))).collect()
            }
        };
        Ok(of_each.into_iter().map(whole).collect())
    }

    fn run_pieces(
        &self,
        texts: &[Piece],
        request: &TranslationRequest,
    ) -> Result<Vec<Vec<Translated>>> {
        let target_prefix = match request.target_prefix {
            "" => vec![],
            prefix => self.tokens().target.encode(prefix)?.ids,
        };
        let read = texts.iter().map(|piece| {
            let (ids, encoding) = timed(Part::Tokenizer, || self.tokens().read(piece.text))?;
            Ok(Read { ids, encoding })
        });
        let read: Vec<Read> = read.collect::<Result<_>>()?;
        let mut order: Vec<usize> = (0..read.len()).filter(|i| read[*i].ids.len() > 1).collect();
        order.sort_by_key(|i| std::cmp::Reverse(read[*i].ids.len()));
        let workers = request.workers.unwrap_or_else(|| workers::choose(order.len(), EACH));
        let workers = workers.clamp(1, pool::threads());
        let mut batches = vec![];
        let mut rest = &order[..];
        // Each worker has several batches, because long sentences take longer.
        let share = order.len().div_ceil(workers * SHARES).max(EACH);
        let largest = if workers == 1 { request.batch } else { request.batch.min(share) };
        while let Some(longest) = rest.first() {
            let most = BATCH_TOKENS / workers / read[*longest].ids.len();
            let most = most.clamp(1, largest.max(1));
            let (rows, others) = rest.split_at(most.min(rest.len()));
            rest = others;
            batches.push(rows);
        }
        let found = workers::map(workers, batches.len(), &|batch| {
            let rows = batches[batch];
            let ids: Vec<&[u32]> = rows.iter().map(|i| &read[*i].ids[..]).collect();
            let sentence = |i: &usize| DecodeInput {
                index: texts[*i].index(request.first),
                source: read[*i].ids.len(),
                target_prefix: target_prefix.clone(),
                ..DecodeInput::default()
            };
            let sentences: Vec<DecodeInput> = rows.iter().map(sentence).collect();
            let look = request.look || request.replace_unknowns;
            let found = self.search(&ids, &sentences, request.options, look)?;
            let each = rows.iter().zip(found).map(|(i, hypotheses)| {
                let copy = request.replace_unknowns.then_some(texts[*i].text);
                let one = |found: Hypothesis| self.translated(&read[*i], found, copy);
                hypotheses.into_iter().map(one).collect::<Result<Vec<_>>>()
            });
            each.collect::<Result<Vec<_>>>()
        });
        let mut all = vec![vec![Translated::default()]; texts.len()];
        for (rows, found) in batches.into_iter().zip(found) {
            for (i, found) in rows.iter().zip(found?) {
                all[*i] = found;
            }
        }
        Ok(all)
    }

    /// Calls [`Translator::run`] with default settings.
    pub fn translate<S: AsRef<str>>(
        &self,
        texts: &[S],
        options: &Options,
        batch: usize,
        look: bool,
    ) -> Result<Vec<Vec<Translated>>> {
        self.run(texts, &TranslationRequest { batch, look, ..TranslationRequest::new(options) })
    }

    /// Creates a translation; `copy` is the source, if unknown tokens are replaced by its words.
    fn translated(&self, read: &Read, found: Hypothesis, copy: Option<&str>) -> Result<Translated> {
        let target = &self.tokens().target;
        let token = |id: &u32| target.token(*id).unwrap_or_default();
        let mut translated = Translated {
            text: timed(Part::Tokenizer, || target.decode(&found.tokens))?,
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
    /// Replaces each unknown token by the source word with the most attention.
    fn copy_unknowns(&mut self, source: &str, target: &Tokenizer, unknown: &str) -> Result<()> {
        if self.found.attention.is_empty() {
            return Err(Error::invalid(
                "replace_unknowns: this model returns no attention weights, which are needed to \
                 choose the source word",
            ));
        }
        let marked = !target.join(&["a".to_string(), "▁b".to_string()])?.contains('▁');
        let word = |at: usize| {
            let of = self.source_words[at];
            let same = |i: &usize| of.is_some() && self.source_words[*i] == of || *i == at;
            let spans = (0..self.source_offsets.len()).filter(same).map(|i| self.source_offsets[i]);
            let (start, end) =
                spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or_default();
            // A space token belongs to the word, but not to its text.
            let start = end - source[start..end].trim_start().len();
            let space = source[..start].chars().next_back().is_none_or(char::is_whitespace);
            let mark = if marked && space { "▁" } else { "" };
            format!("{mark}{}", &source[start..end])
        };
        let words: Vec<String> = (0..self.source_offsets.len()).map(word).collect();
        let alignment = TokenAlignment::new(&self.found.attention, self.target_tokens.len());
        let unknown = unknown.to_string();
        let tokens = replace_unknowns(&self.target_tokens, &unknown, &words, &alignment);
        let mut shown: Vec<String> = vec![];
        for (token, was) in tokens.iter().zip(&self.target_tokens) {
            let copied = *was == unknown && token != was;
            // The space was already generated as a token of its own.
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
    use crate::text::{Train, VocabularyKind};

    /// Returns `written` with its unknown tokens replaced; `looks` has the attended source position
    /// of each token.
    fn copied(kind: VocabularyKind, source: &str, written: &[&str], looks: &[usize]) -> String {
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
        let words = VocabularyKind::WordLevel;
        assert_eq!(copied(words, "my Maier .", &["ami", "<unk>", "."], &[0, 1, 2]), "ami Maier.");
        assert_eq!(copied(words, "my 🙂", &["ami", "<unk>"], &[0, 1]), "ami 🙂");
        // A piece of an unknown word is replaced by the whole word.
        let source = "is 漢字 here";
        let at = {
            let tokenizer =
                Train::new(VocabularyKind::Bpe, 60).run(["my friend is here . !"]).unwrap();
            let tokens = tokenizer.encode(source).unwrap().tokens;
            tokens.iter().position(|token| token == "<unk>").unwrap()
        };
        assert_eq!(
            copied(VocabularyKind::Bpe, source, &["▁est", "▁", "<unk>"], &[0, at, at]),
            "est 漢字"
        );
        assert_eq!(copied(VocabularyKind::Bpe, source, &["▁est", "<unk>"], &[0, at]), "est 漢字");
        assert_eq!(copied(VocabularyKind::Char, "i漢", &["e", "<unk>"], &[0, 1]), "e漢");
    }

    #[test]
    fn a_look_at_the_end_leaves_it_out() {
        assert_eq!(copied(VocabularyKind::WordLevel, "my", &["ami", "<unk>"], &[0, 1]), "ami");
    }

    #[test]
    fn a_model_that_does_not_tell_is_an_error() {
        let tokenizer = Train::new(VocabularyKind::Char, 60).run(["ab"]).unwrap();
        let mut blind = Translated { target_tokens: vec!["<unk>".into()], ..Translated::default() };
        let error = blind.copy_unknowns("ab", &tokenizer, "<unk>").unwrap_err().to_string();
        assert!(error.contains("replace_unknowns"), "{error}");
    }
}
