//! Training of vocabularies. The same lines give the same file, on any machine, with any number of
//! threads.

use std::collections::{HashMap, HashSet};

use regard_models::{Error, Result};
use serde_json::{Map, Value, json};
use tokenizers::{
    NormalizedString, Normalizer, OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer,
};

use super::alphabet::{self, Letters};
use super::special::{self, NAMES};
use super::tokenizer::SIMPLIFY;
use super::{Tokenizer, bpe, layout, unigram};

/// Kind of vocabulary: what a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VocabularyKind {
    /// A word or a punctuation mark. Any other is `<unk>`.
    WordLevel,
    /// A subword by byte-pair encoding (Sennrich et al. 2016).
    Bpe,
    /// A subword of a unigram language model (Kudo 2018).
    Unigram,
    /// A character.
    Char,
    /// A subword by byte-pair encoding, split as in BERT, with BERT's special tokens.
    WordPiece,
    /// A subword by byte-level BPE, as in GPT-2: nothing is unknown.
    ByteLevel,
    /// An English word as treebanks split them (`do`, `n't`), with its character ids.
    Treebank,
}

impl VocabularyKind {
    /// Names of all kinds in recipes and on command lines.
    pub const NAMES: [(&str, VocabularyKind); 7] = [
        ("word", VocabularyKind::WordLevel),
        ("bpe", VocabularyKind::Bpe),
        ("unigram", VocabularyKind::Unigram),
        ("char", VocabularyKind::Char),
        ("wordpiece", VocabularyKind::WordPiece),
        ("bytes", VocabularyKind::ByteLevel),
        ("treebank", VocabularyKind::Treebank),
    ];

    /// Returns its special tokens, with their keys in `tokenizer_config.json`; the index is the id.
    pub fn special(self) -> &'static [(&'static str, &'static str)] {
        match self {
            VocabularyKind::WordLevel
            | VocabularyKind::Bpe
            | VocabularyKind::Unigram
            | VocabularyKind::Char
            | VocabularyKind::Treebank => &special::OWN,
            VocabularyKind::WordPiece => &special::OF_BERT,
            VocabularyKind::ByteLevel => &special::OF_BYTES,
        }
    }
}

impl std::str::FromStr for VocabularyKind {
    type Err = String;
    fn from_str(name: &str) -> Result<VocabularyKind, String> {
        match VocabularyKind::NAMES.iter().find(|row| row.0 == name) {
            Some((_, kind)) => Ok(*kind),
            None => {
                let names = VocabularyKind::NAMES.map(|row| row.0).join(", ");
                Err(format!("got {name:?}, need one of {names}"))
            }
        }
    }
}

/// Treatment of white space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpaceHandling {
    /// Kept as it is.
    Keep,
    /// Each run of white space, also of the narrow and unbreakable kinds that French has before
    /// `!`, becomes one plain space; none at the ends.
    Plain,
    /// Removed: for languages that are written without spaces.
    Drop,
}

/// Unicode normalisation form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnicodeForm {
    /// None.
    Keep,
    /// NFC: `é` is one character.
    Nfc,
    /// NFKC: `ﬁ` is two characters, and `，` is a comma.
    Nfkc,
}

/// Normalisation before text is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Normalise {
    /// Unicode normalisation form.
    pub form: UnicodeForm,
    /// Treatment of white space.
    pub spaces: SpaceHandling,
    /// Whether traditional Chinese characters become simplified ones.
    pub simplify: bool,
}

impl Default for Normalise {
    fn default() -> Normalise {
        Normalise { form: UnicodeForm::Nfc, spaces: SpaceHandling::Plain, simplify: false }
    }
}

/// Configuration of the training of a vocabulary.
///
/// A character that is not in the vocabulary is `<unk>`, in subword vocabularies too: a run of them
/// is one `<unk>`, whose offsets give what to copy from the source. (Bytes instead take 256 ids and
/// cannot be copied.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Train {
    /// Kind of vocabulary.
    pub kind: VocabularyKind,
    /// Largest number of tokens, special tokens included.
    pub size: usize,
    /// Whether text is lowercased.
    pub lowercase: bool,
    /// Least frequency of words, characters, and pairs to merge; rarer ones are left out.
    pub min_frequency: u64,
    /// Normalisation before text is split.
    pub normalise: Normalise,
}

impl Train {
    /// Configures a vocabulary of a kind and a size, with defaults for everything else.
    pub fn new(kind: VocabularyKind, size: usize) -> Train {
        let normalise = Normalise::default();
        Train { kind, size, lowercase: false, min_frequency: 1, normalise }
    }

    /// Trains the vocabulary.
    pub fn run<S: AsRef<str>>(&self, lines: impl IntoIterator<Item = S>) -> Result<Tokenizer> {
        self.run_beside(lines, &[])
    }

    /// Trains the vocabulary and appends `known` words after those of the lines, as long as there
    /// is room. Subword and character vocabularies ignore them.
    pub fn run_beside<S: AsRef<str>>(
        &self,
        lines: impl IntoIterator<Item = S>,
        known: &[String],
    ) -> Result<Tokenizer> {
        let special = self.kind.special().len();
        if self.size <= special {
            return Err(Error::invalid(format!(
                "size of the vocabulary: got {}, need more than {special}, the number of special \
                 tokens",
                self.size,
            )));
        }
        let (counts, letters) = self.count(lines)?;
        if counts.is_empty() {
            return Err(Error::invalid("the training text is empty: give it at least one word"));
        }
        let model = match self.kind {
            VocabularyKind::Char => layout::words_model(&self.most_frequent(counts, &[])),
            VocabularyKind::WordLevel | VocabularyKind::Treebank => {
                layout::words_model(&self.most_frequent(counts, known))
            }
            VocabularyKind::Bpe | VocabularyKind::WordPiece | VocabularyKind::ByteLevel => {
                bpe::learn(&counts, self.kind, self.size, self.min_frequency)?
            }
            VocabularyKind::Unigram => unigram::learn(&counts, self.size, self.min_frequency)?,
        };
        self.build(model, letters)
    }

    fn build(&self, model: Value, letters: Letters) -> Result<Tokenizer> {
        let special = self.kind.special().iter();
        let mut config: Map<String, Value> =
            special.map(|(key, name)| (key.to_string(), json!(name))).collect();
        config.insert("tokenizer_class".into(), json!("PreTrainedTokenizerFast"));
        // The user's text is text, even if it looks like `</s>`. Only for masked language models
        // the user writes `[MASK]` as a special token.
        config.insert("split_special_tokens".into(), json!(self.kind != VocabularyKind::WordPiece));
        if self.normalise.simplify {
            config.insert(SIMPLIFY.into(), json!(true));
        }
        if self.kind == VocabularyKind::Treebank {
            config.insert(alphabet::KEY.into(), json!(letters.alphabet()));
        }
        Tokenizer::new(layout::tokenizer(self, model).to_string().as_bytes(), config)
    }

    /// Counts the words of the text, most frequent first, equal ones in the order of their bytes:
    /// from here on nothing depends on the order of the lines. Also counts its characters as
    /// written.
    fn count<S: AsRef<str>>(
        &self,
        lines: impl IntoIterator<Item = S>,
    ) -> Result<(Vec<(String, u64)>, Letters)> {
        let cutter = self.build(layout::empty_model(self.kind), Letters::default())?;
        let mut letters = Letters::default();
        let mut counts: HashMap<String, u64> = HashMap::new();
        for line in lines {
            letters.count(line.as_ref());
            let cut = pre_tokenized(cutter.inner(), &cutter.prepare(line.as_ref()))?;
            for (word, _, _) in cut.get_splits(OffsetReferential::Normalized, OffsetType::None) {
                match counts.get_mut(word) {
                    Some(count) => *count += 1,
                    None => _ = counts.insert(word.to_owned(), 1),
                }
            }
        }
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        Ok((counts, letters))
    }

    fn most_frequent(&self, counts: Vec<(String, u64)>, known: &[String]) -> Vec<String> {
        let kept = counts.into_iter().filter(|(_, count)| *count >= self.min_frequency);
        let words = kept.map(|(word, _)| word).chain(known.iter().cloned());
        let mut seen: HashSet<String> = NAMES.map(String::from).into();
        words.filter(|word| seen.insert(word.clone())).take(self.size - NAMES.len()).collect()
    }
}

/// Splits a text into pre-tokens.
fn pre_tokenized(tokenizer: &tokenizers::Tokenizer, text: &str) -> Result<PreTokenizedString> {
    let failed = |e| Error::invalid(format!("cannot split {text:?} into words: {e}"));
    let mut normalized = NormalizedString::from(text);
    if let Some(normalizer) = tokenizer.get_normalizer() {
        normalizer.normalize(&mut normalized).map_err(failed)?;
    }
    let mut words = PreTokenizedString::from(normalized);
    if let Some(pre_tokenizer) = tokenizer.get_pre_tokenizer() {
        pre_tokenizer.pre_tokenize(&mut words).map_err(failed)?;
    }
    Ok(words)
}
