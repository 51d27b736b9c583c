//! The section `[vocabulary]` of a recipe, and the tokenizers that it creates.

use crate::data::Pair;
use crate::text::{
    Encoding, Normalise, SpaceHandling, Tokenizer, Train, UnicodeForm, VocabularyKind, marian,
};
use crate::train::pretrained_embeddings;
use regard_models::checkpoint::Arrays;
use regard_models::{Error, ModelFiles, Result};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

const SHARED: &str = "tokenizer.json";
const SOURCE: &str = "source.tokenizer.json";
const TARGET: &str = "target.tokenizer.json";

/// Vocabulary files that only translators have: Marian's, and two separate tokenizers trained here,
/// whose configuration files are optional.
pub const VOCABULARY_FILES: [&[&str]; 2] = [
    &marian::FILES,
    &[SOURCE, TARGET, "source.tokenizer_config.json", "target.tokenizer_config.json"],
];

/// Configuration of a vocabulary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TranslatorVocabulary {
    /// Kind of tokens: `word`, `bpe`, `unigram` or `char`.
    pub kind: String,
    /// Maximum number of entries, the four special tokens included; 8000 by default.
    #[serde(default = "size")]
    pub size: usize,
    /// Whether text is lower-cased.
    #[serde(default)]
    pub lowercase: bool,
    /// Minimum frequency of an entry in the training text; 1 by default.
    #[serde(default = "one")]
    pub min_frequency: u64,
    /// Whether spaces are removed, as for Chinese.
    #[serde(default)]
    pub drop_spaces: bool,
    /// Whether traditional Chinese characters are converted to simplified ones.
    #[serde(default)]
    pub simplify: bool,
    /// Pretrained word vectors for the initial embeddings: `glove-subset`, or a file in GloVe's or
    /// word2vec's format. None by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vectors: Option<String>,
}

fn size() -> usize {
    8000
}

fn one() -> u64 {
    1
}

/// One shared vocabulary, or one for each side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vocabularies {
    /// Vocabulary of both sides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared: Option<TranslatorVocabulary>,
    /// Vocabulary of the source side; requires `target`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<TranslatorVocabulary>,
    /// Vocabulary of the target side; requires `source`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<TranslatorVocabulary>,
}

/// Tokenizers of a translator.
#[derive(Clone, Debug)]
pub struct Tokens {
    /// Tokenizer of the source side.
    pub source: Tokenizer,
    /// Tokenizer of the target side.
    pub target: Tokenizer,
    /// Whether both sides share one tokenizer.
    pub shared: bool,
}

impl TranslatorVocabulary {
    fn train<'a>(&self, lines: impl IntoIterator<Item = &'a str>) -> Result<Tokenizer> {
        let kind: VocabularyKind =
            self.kind.parse().map_err(|e| Error::invalid(format!("vocabulary.kind: {e}")))?;
        let spaces = if self.drop_spaces { SpaceHandling::Drop } else { SpaceHandling::Plain };
        let train = Train {
            lowercase: self.lowercase,
            min_frequency: self.min_frequency,
            normalise: Normalise { form: UnicodeForm::Nfc, spaces, simplify: self.simplify },
            ..Train::new(kind, self.size)
        };
        train.run(lines)
    }
}

impl Vocabularies {
    /// Whether the recipe names pretrained vectors.
    pub(super) fn has_vectors(&self) -> bool {
        let all = [&self.shared, &self.source, &self.target];
        all.into_iter().flatten().any(|vocabulary| vocabulary.vectors.is_some())
    }

    /// Initialises embeddings with pretrained vectors, where the recipe names some.
    pub(super) fn begin(&self, tokens: &Tokens, weights: &mut Arrays) -> Result<()> {
        const BOTH: [&str; 2] = ["shared.weight", "embed_tokens.weight"];
        let sides: [(&Option<TranslatorVocabulary>, &Tokenizer, &[&str]); 3] = [
            (&self.shared, &tokens.source, &BOTH),
            (&self.source, &tokens.source, &["encoder.embed_tokens.weight"]),
            (&self.target, &tokens.target, &["decoder.embed_tokens.weight"]),
        ];
        for (vocabulary, tokenizer, tables) in sides {
            if let Some(vectors) = vocabulary.as_ref().and_then(|v| v.vectors.as_ref()) {
                pretrained_embeddings::with_vectors(weights, tables, tokenizer, vectors)?;
            }
        }
        Ok(())
    }

    /// Trains the tokenizers on the training part.
    pub fn train(&self, pairs: &[Pair]) -> Result<Tokens> {
        let (sources, targets) = (
            || pairs.iter().map(|pair| pair.source.as_str()),
            || pairs.iter().map(|pair| pair.target.as_str()),
        );
        match (&self.shared, &self.source, &self.target) {
            (Some(shared), None, None) => {
                let both = shared.train(sources().chain(targets()))?;
                Ok(Tokens { source: both.clone(), target: both, shared: true })
            }
            (None, Some(source), Some(target)) => Ok(Tokens {
                source: source.train(sources())?,
                target: target.train(targets())?,
                shared: false,
            }),
            _ => Err(Error::invalid(
                "vocabulary: need either `shared`, or both `source` and `target`",
            )),
        }
    }
}

impl Tokens {
    /// Reads the tokenizers of a model.
    pub fn load(model: &ModelFiles) -> Result<Tokens> {
        if model.has(SOURCE) {
            return Ok(Tokens {
                source: Tokenizer::of_file(model, SOURCE)?,
                target: Tokenizer::of_file(model, TARGET)?,
                shared: false,
            });
        }
        if !model.has(SHARED) && marian::FILES.iter().all(|name| model.has(name)) {
            let (source, target) = marian::load(model)?;
            return Ok(Tokens { source, target, shared: false });
        }
        let both = Tokenizer::of_file(model, SHARED)?;
        Ok(Tokens { source: both.clone(), target: both, shared: true })
    }

    /// Writes the tokenizers to a model's folder.
    pub fn save(&self, folder: &Path) -> Result<()> {
        fs::create_dir_all(folder).map_err(Error::io(folder))?;
        if self.shared {
            return self.source.save(folder.join(SHARED));
        }
        self.source.save(folder.join(SOURCE))?;
        self.target.save(folder.join(TARGET))
    }

    /// Encodes a source text; the ids end with EOS, the encoding has no EOS.
    pub fn read(&self, text: &str) -> Result<(Vec<u32>, Encoding)> {
        let encoding = self.source.encode(text)?;
        let mut ids = encoding.ids.clone();
        ids.push(self.source.special().need_eos()?);
        Ok((ids, encoding))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::spm::tests::model;

    #[test]
    fn the_vocabulary_of_a_marian_model_is_read() {
        let folder = std::env::temp_dir().join(format!("regard-marian-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let pieces = |own| model(&[("<unk>", 0.0, 2), ("</s>", 0.0, 3), (own, -1.0, 1)]);
        let [source, target, ids] = marian::FILES;
        fs::write(folder.join(source), pieces("▁go")).unwrap();
        fs::write(folder.join(target), pieces("▁va")).unwrap();
        let all = r#"{"</s>": 0, "<unk>": 1, "▁go": 2, "▁va": 3, "<pad>": 4}"#;
        fs::write(folder.join(ids), all).unwrap();
        let tokens = Tokens::load(&(&folder).into()).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(tokens.read("go").unwrap().0, [2, 0]);
        assert_eq!(tokens.target.encode("va").unwrap().ids, [3]);
        assert!(!tokens.shared);
    }
}
