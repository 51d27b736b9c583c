//! A tokenizer: any `tokenizer.json` with the `tokenizer_config.json` beside it, or one made of
//! older files.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use regard_models::checkpoint::write_file;
use regard_models::{Error, ModelFiles, Result};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokenizers::Decoder;

use super::folder;
use super::simplify::{original_offsets, simplify};
use super::{Alphabet, Encoding, Special, alphabet, check};

/// Key of `tokenizer_config.json`: whether to convert traditional Chinese characters to simplified
/// ones, for which `tokenizer.json` has no step.
pub(super) const SIMPLIFY: &str = "simplify_chinese";

/// Padding of the sequences of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Padding {
    /// Whether padding is on the left, as for XLNet, or on the right.
    pub left: bool,
    /// Padding token; `None` if the vocabulary has none.
    pub id: Option<u32>,
    /// Token type of padding.
    pub of_type: u32,
}

/// Converts text to token ids and back.
#[derive(Clone, Debug)]
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    /// All keys of `tokenizer_config.json`, unknown ones included: `save` keeps them.
    config: Map<String, Value>,
    special: Special,
    size: usize,
    simplify: bool,
    alphabet: Option<Alphabet>,
}

impl Tokenizer {
    /// Reads a `tokenizer.json` with its configuration beside it. From a directory, reads the files
    /// that are there: `tokenizer.json`, or the vocabularies of BERT (`vocab.txt`), of GPT-2 and
    /// RoBERTa (`vocab.json` and `merges.txt`), of XLNet and ALBERT (`spiece.model`).
    pub fn load(path: impl AsRef<Path>) -> Result<Tokenizer> {
        let path = path.as_ref();
        if path.is_dir() {
            return folder::load(&path.into());
        }
        let above = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        folder::load_file(&above.unwrap_or(Path::new(".")).into(), name)
    }

    /// Loads the tokenizer of a model, from whichever files it has.
    pub fn of(model: &ModelFiles) -> Result<Tokenizer> {
        folder::load(model)
    }

    /// Loads the tokenizer from one file of a model.
    pub fn of_file(model: &ModelFiles, name: &str) -> Result<Tokenizer> {
        folder::load_file(model, name)
    }

    /// Reads the contents of a `tokenizer.json`.
    pub fn from_bytes(bytes: &[u8]) -> Result<Tokenizer> {
        Tokenizer::new(bytes, Map::new())
    }

    pub(super) fn new(bytes: &[u8], config: Map<String, Value>) -> Result<Tokenizer> {
        let not = |e: &dyn std::fmt::Display| Error::invalid(format!("not a tokenizer.json: {e}"));
        let value: Value = serde_json::from_slice(bytes).map_err(|e| not(&e))?;
        check::before(&value)?;
        // From the checked value, not from the file: of a key that a file repeats, the library
        // reads every value, and the check sees the last one only.
        let mut inner =
            guarded(|| tokenizers::Tokenizer::deserialize(&value))?.map_err(|e| not(&e))?;
        check::after(&value, &inner)?;
        drop(value);
        // Truncation and padding are done in batches; a file that sets them would shorten texts
        // silently.
        inner.with_truncation(None).map_err(failed)?.with_padding(None);
        let flag = |key: &str| config.get(key).and_then(Value::as_bool).unwrap_or(false);
        inner.set_encode_special_tokens(flag("split_special_tokens"));
        let simplify = flag(SIMPLIFY);
        let size = inner.get_vocab(true).values().max().map_or(0, |&id| id as usize + 1);
        let special = Special::default();
        let letters = config.get(alphabet::KEY).and_then(Value::as_str);
        let alphabet = letters.map(Alphabet::new);
        let mut tokenizer = Tokenizer { inner, config, special, size, simplify, alphabet };
        tokenizer.special = Special::of(&tokenizer);
        Ok(tokenizer)
    }

    /// Writes the tokenizer to a file, or to `tokenizer.json` in a directory, and its
    /// configuration beside it. A reader sees the old file or the new one, never a part.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = in_directory(path.as_ref());
        let text = self.inner.to_string(true).map_err(failed)?;
        if !self.config.is_empty() {
            let config = serde_json::to_string_pretty(&self.config).expect("strings as keys");
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            write_file(&path.with_file_name(folder::beside(name)), config.as_bytes())?;
        }
        write_file(&path, text.as_bytes())
    }

    /// Returns the names and contents of the files that [`save`](Tokenizer::save) writes into a
    /// directory.
    pub fn files(&self) -> Vec<(String, Vec<u8>)> {
        let config = serde_json::to_string_pretty(&self.config).expect("strings as keys");
        vec![
            (folder::TOKENIZER.to_string(), self.to_json().into_bytes()),
            (folder::beside(folder::TOKENIZER), config.into_bytes()),
        ]
    }

    /// Returns the contents of `tokenizer.json`.
    pub fn to_json(&self) -> String {
        self.inner.to_string(false).expect("a tokenizer that was read can be written")
    }

    /// Tokenises a text, without special tokens around it.
    pub fn encode(&self, text: &str) -> Result<Encoding> {
        let encoding = guarded(|| self.inner.encode(self.prepare(text), false))?.map_err(failed)?;
        Ok(self.seen_by_user(&encoding, &[text]))
    }

    /// Returns the distinct out-of-vocabulary pieces of a text, each with the number of characters
    /// of the text that it covers. Empty if the tokenizer has an alphabet, or if bytes stand for
    /// unknown characters.
    pub fn unknown<'t>(&self, text: &'t str) -> Vec<(&'t str, usize)> {
        let (Some(unk), None) = (self.special.unk, &self.alphabet) else { return vec![] };
        let Ok(Encoding { ids, offsets, .. }) = self.encode(text) else { return vec![] };
        let mut pieces: Vec<(&str, usize)> = vec![];
        for (_, (start, end)) in ids.iter().zip(offsets).filter(|(id, _)| **id == unk) {
            let Some(piece) = text.get(start..end).filter(|piece| !piece.is_empty()) else {
                continue;
            };
            match pieces.iter_mut().find(|(known, _)| *known == piece) {
                Some((_, count)) => *count += piece.chars().count(),
                None => pieces.push((piece, piece.chars().count())),
            }
        }
        pieces
    }

    /// Returns the out-of-vocabulary words of a text, in its order, and the number of all its words.
    /// `None` if tokens need not be words: the tokenizer has no alphabet.
    pub fn unknown_words<'t>(&self, text: &'t str) -> Option<(Vec<&'t str>, usize)> {
        let (unk, _) = (self.special.unk?, self.alphabet.as_ref()?);
        let Encoding { ids, offsets, .. } = self.encode(text).ok()?;
        let unknown = ids.iter().zip(offsets).filter(|(id, _)| **id == unk);
        let words = unknown.filter_map(|(_, (start, end))| text.get(start..end)).collect();
        Some((words, ids.len()))
    }

    /// Tokenises a text or a pair, with the special tokens that the model was trained with
    /// (`[CLS] … [SEP] … [SEP]`), where the file defines them.
    pub fn encode_special(&self, text: &str, pair: Option<&str>) -> Result<Encoding> {
        let Some(pair) = pair else {
            let encoding =
                guarded(|| self.inner.encode(self.prepare(text), true))?.map_err(failed)?;
            return Ok(self.seen_by_user(&encoding, &[text]));
        };
        let both = (self.prepare(text), self.prepare(pair));
        let encoding = guarded(|| self.inner.encode(both, true))?.map_err(failed)?;
        Ok(self.seen_by_user(&encoding, &[text, pair]))
    }

    /// [`encode`](Tokenizer::encode) of many texts, on all cores.
    pub fn encode_batch<S: AsRef<str> + Sync>(&self, texts: &[S]) -> Result<Vec<Encoding>> {
        let inputs: Vec<_> = texts.iter().map(|text| self.prepare(text.as_ref())).collect();
        let encodings = guarded(|| self.inner.encode_batch(inputs, false))?.map_err(failed)?;
        let seen = |(encoding, text): (_, &S)| self.seen_by_user(encoding, &[text.as_ref()]);
        Ok(encodings.iter().zip(texts).map(seen).collect())
    }

    /// Returns the ids alone, of many texts, on all cores: what training needs.
    pub fn ids_batch<S: AsRef<str> + Sync>(&self, texts: &[S]) -> Result<Vec<Vec<u32>>> {
        let inputs: Vec<_> = texts.iter().map(|text| self.prepare(text.as_ref())).collect();
        let encodings = guarded(|| self.inner.encode_batch_fast(inputs, false))?.map_err(failed)?;
        Ok(encodings.iter().map(|e| e.get_ids().to_vec()).collect())
    }

    /// Decodes ids to text; special tokens and ids that do not exist are skipped.
    pub fn decode(&self, ids: &[u32]) -> Result<String> {
        // Some decoders fail on an empty list.
        let ids: Vec<u32> = ids.iter().copied().filter(|&id| self.is_text(id)).collect();
        if ids.is_empty() {
            return Ok(String::new());
        }
        self.inner.decode(&ids, true).map_err(failed)
    }

    /// Whether an id exists and is not a special token.
    pub(crate) fn is_text(&self, id: u32) -> bool {
        let special = |token: &String| self.inner.get_added_vocabulary().is_special_token(token);
        self.inner.id_to_token(id).is_some_and(|token| !special(&token))
    }

    /// Decodes tokens that need not be in the vocabulary, such as those after unknown tokens were
    /// replaced by words of the source.
    pub fn join(&self, tokens: &[String]) -> Result<String> {
        match self.inner.get_decoder() {
            _ if tokens.is_empty() => Ok(String::new()),
            Some(decoder) => decoder.decode(tokens.to_vec()).map_err(failed),
            None => Ok(tokens.join(" ")),
        }
    }

    /// Returns the token of an id.
    pub fn token(&self, id: u32) -> Option<String> {
        self.inner.id_to_token(id)
    }

    /// Returns the id of a token.
    pub fn id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    /// Returns the largest id plus one: the number of rows of the embedding table.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the ids of the special tokens.
    pub fn special(&self) -> Special {
        self.special
    }

    /// Returns the alphabet; `None` if tokens have no character ids.
    pub fn alphabet(&self) -> Option<&Alphabet> {
        self.alphabet.as_ref()
    }

    /// Returns the padding of the sequences of a batch.
    pub fn padding(&self) -> Padding {
        let side = self.config.get("padding_side").and_then(Value::as_str);
        let of_type = self.config.get("pad_token_type_id").and_then(Value::as_u64);
        let of_type = of_type.and_then(|of| of.try_into().ok()).unwrap_or(0);
        Padding { left: side == Some("left"), id: self.special.pad, of_type }
    }

    /// Returns the name of a special token in the configuration, where it is a string or an object.
    pub(super) fn configured_token(&self, key: &str) -> Option<&str> {
        folder::token_name(&self.config, key)
    }

    /// Returns `tokenizer_config.json`.
    pub(super) fn config(&self) -> &Map<String, Value> {
        &self.config
    }

    /// Returns a value of `tokenizer_config.json`.
    pub(super) fn config_value(&self, key: &str) -> Option<&Value> {
        self.config.get(key)
    }

    /// Returns the text that is given to the tokenizers library.
    pub(super) fn prepare<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.simplify { simplify(text) } else { Cow::Borrowed(text) }
    }

    /// Copies an encoding, with offsets into the user's texts that leave out the space which
    /// belongs to a token like `▁the`.
    fn seen_by_user(&self, encoding: &tokenizers::Encoding, texts: &[&str]) -> Encoding {
        let mut offsets = encoding.get_offsets().to_vec();
        let of_text = encoding.get_sequence_ids();
        for (i, text) in texts.iter().enumerate() {
            let Some(first) = of_text.iter().position(|&of| of == Some(i)) else { continue };
            let last = of_text.iter().rposition(|&of| of == Some(i)).unwrap_or(first);
            if self.simplify {
                original_offsets(text, &simplify(text), &mut offsets[first..=last]);
            }
            offsets[first..=last].iter_mut().for_each(|offset| *offset = trimmed(text, *offset));
        }
        let spelled = |alphabet: &Alphabet| {
            let written = |((start, end), of): (&(usize, usize), &Option<usize>)| {
                let text = of.and_then(|of| texts.get(of)).copied().unwrap_or_default();
                alphabet.spell(text.get(*start..*end).unwrap_or_default())
            };
            offsets.iter().zip(&of_text).map(written).collect()
        };
        Encoding {
            letters: self.alphabet.as_ref().map(spelled).unwrap_or_default(),
            offsets,
            ids: encoding.get_ids().to_vec(),
            tokens: encoding.get_tokens().to_vec(),
            words: encoding.get_word_ids().to_vec(),
            types: encoding.get_type_ids().to_vec(),
            texts: of_text,
            special: encoding.get_special_tokens_mask().iter().map(|&mask| mask != 0).collect(),
        }
    }

    pub(super) fn inner(&self) -> &tokenizers::Tokenizer {
        &self.inner
    }
}

/// Calls the library and turns a panic in it into an error. After a normalizer that inserts text
/// at an empty match, such as `{"Regex": "(?=a)"}`, its list of offsets is too short on some texts,
/// and whether a pattern can match the empty string cannot be told from it.
pub(super) fn guarded<T>(call: impl FnOnce() -> T) -> Result<T> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|_| {
        Error::invalid("the tokenizer failed: its normalizer cannot process this text")
    })
}

pub(super) fn failed(error: tokenizers::Error) -> Error {
    Error::invalid(format!("the tokenizer failed: {error}"))
}

/// Appends the usual file name to a directory.
fn in_directory(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(folder::TOKENIZER) } else { path.to_owned() }
}

/// Adds the name of the file to an error.
pub(super) fn of_file(path: &Path, error: Error) -> Error {
    match error {
        Error::Invalid(message) => Error::file(path, message),
        other => other,
    }
}

/// Byte range without white space at its ends, unless there is nothing else.
fn trimmed(text: &str, (start, end): (usize, usize)) -> (usize, usize) {
    let slice = text.get(start..end).unwrap_or("");
    if slice.trim().is_empty() {
        return (start, end);
    }
    let start = start + slice.len() - slice.trim_start().len();
    (start, start + slice.trim().len())
}
