//! A recipe with `task = "generate"`.

use super::{Language, evaluate};
use crate::about::About;
use crate::data::known::{self, Format};
use crate::data::{Characters, Part, TextCorpus, sets};
use crate::evaluation::{EvaluationData, Report};
use crate::generate::filling::Filling;
use crate::recipe::{Origin, Prepared, Task, recipe};
use crate::text::{Normalise, SpaceHandling, Tokenizer, Train, UnicodeForm, VocabularyKind};
use crate::{decode, own, say, train};
use regard_models::{Error, ModelFiles, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Name, for an evaluation, of the test part of WikiText-2 without its tokenization.
pub(crate) const WIKITEXT_RAW: &str = "wikitext-2-raw";

recipe! {
    for "generate";
    /// Pretrained model to fine-tune, with its vocabulary: a folder, a run, or a name that the
    /// caller resolves ([`Task::set_origin`]). `None` to train both from scratch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Version of that model, if it has versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Folder that `from` was resolved to.
    #[serde(skip)]
    found: Option<PathBuf>,
    /// Training text.
    pub data: Data,
    /// Vocabulary to train; `None` to use that of `from`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vocabulary: Option<GeneratorVocabulary>,
    /// `config.json` of the model, without the size of the vocabulary; overrides that of `from`.
    #[serde(default = "nothing", skip_serializing_if = "is_nothing")]
    pub model: Value,
    /// Adapter to train instead of the weights of `from`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lora: Option<train::Lora>,
    /// Context length in tokens; 256 by default.
    #[serde(default = "context")]
    pub context: usize,
    /// Training options.
    #[serde(default)]
    pub train: train::TrainOptions,
    /// Masked spans of the validation text that are predicted from the tokens before them at each
    /// evaluation; none by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filling: Option<Filling>,
    /// Default search and sampling options of the trained model; with `from`, those that are not
    /// the defaults, besides the model's own.
    #[serde(default)]
    pub decode: decode::Options,
}

fn context() -> usize {
    256
}

fn nothing() -> Value {
    json!({})
}

fn is_nothing(model: &Value) -> bool {
    *model == nothing()
}

/// Text to train on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// Name of a known data set, or `files`.
    pub set: String,
    /// Training file; only with `set = "files"`. Without `valid`, its last tenth is held out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub train: Option<PathBuf>,
    /// Validation file for model selection; only with `set = "files"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid: Option<PathBuf>,
    /// Test file for `regard eval`; only with `set = "files"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<PathBuf>,
}

impl Data {
    /// Reads the training and the validation text.
    pub fn read(&self) -> Result<TextCorpus> {
        self.read_set(&self.set)
    }

    fn read_set(&self, set: &str) -> Result<TextCorpus> {
        if let Some(set) = known::named("generate", "data.set", set)? {
            return match set.format {
                Format::Text(file) => {
                    Ok(Characters::read(sets::find(set.name)?.join(file))?.into())
                }
                Format::Documents(read) => read().map(TextCorpus::of),
                _ => known::unread(set),
            };
        }
        let train = own::file("train", &self.train, "a file of plain text")?;
        for (key, file) in [("valid", &self.valid), ("test", &self.test)] {
            file.as_ref().map_or(Ok(()), |file| own::there(key, file))?;
        }
        let split = Characters::read(train)?;
        let Some(valid) = &self.valid else { return Ok(split.into()) };
        let valid = Characters::read(valid)?.whole();
        Ok(Characters { train: split.whole(), valid }.into())
    }

    /// Returns whether a set has a test part.
    pub(super) fn has_test(&self, set: &str) -> bool {
        match set {
            WIKITEXT_RAW => true,
            "files" => self.test.is_some(),
            _ => false,
        }
    }

    /// Returns the documents of a held-out part.
    pub(super) fn held_out(&self, set: &str, part: Part) -> Result<Vec<String>> {
        match (set, part, &self.test) {
            ("files", Part::Test, Some(test)) => Ok(vec![Characters::read(test)?.whole()]),
            (WIKITEXT_RAW, Part::Test, _) if self.set == "wikitext-2" => {
                let message = "data: wikitext-2-raw overlaps the training data of wikitext-2, so \
                               the result would be too good; choose another set";
                Err(Error::invalid(message))
            }
            (WIKITEXT_RAW, Part::Test, _) => {
                let path = sets::find("wikitext-2")?.join("raw/wiki.test.raw");
                Ok(vec![Characters::read(path)?.whole()])
            }
            (set, Part::Valid, _) if set == own::FILES || known::set("generate", set).is_some() => {
                Ok(self.read_set(set)?.valid)
            }
            _ => Err(Error::invalid(format!(
                "got {set:?}, need tinyshakespeare or wikitext-2 (their validation parts) or \
                 {WIKITEXT_RAW} (its test part)"
            ))),
        }
    }
}

/// Configuration of the vocabulary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GeneratorVocabulary {
    /// `char`, or `bytes` for byte-level BPE.
    pub kind: String,
    /// Maximum number of entries, special tokens included; 1000 by default.
    #[serde(default = "size")]
    pub size: usize,
}

fn size() -> usize {
    1000
}

impl GeneratorVocabulary {
    /// Trains the vocabulary. Text is not normalised, so that generated text is like the original.
    pub fn train<S: AsRef<str>>(&self, texts: &[S]) -> Result<Tokenizer> {
        let kind: VocabularyKind =
            self.kind.parse().map_err(|e| Error::invalid(format!("vocabulary.kind: {e}")))?;
        let normalise =
            Normalise { form: UnicodeForm::Keep, spaces: SpaceHandling::Keep, simplify: false };
        Train { normalise, ..Train::new(kind, self.size) }.run(texts)
    }
}

impl Recipe {
    /// Returns the folder of the pretrained model, if there is one.
    pub(super) fn origin_folder(&self) -> Result<Option<PathBuf>> {
        let named = || self.from.as_ref().map(PathBuf::from);
        self.found.clone().or_else(named).map(|folder| train::resolve(&folder)).transpose()
    }
}

impl Task for Recipe {
    fn check(&self) -> Result<(), String> {
        if self.from.is_none() && self.revision.is_some() {
            return Err("revision: is the version of the model in `from`, which is not set".into());
        }
        match (&self.from, &self.vocabulary, &self.lora) {
            (Some(_), Some(_), _) => {
                return Err("vocabulary: cannot be set with `from`, which has its own".into());
            }
            (None, None, _) => return Err("vocabulary: need one, or a model in `from`".into()),
            (None, _, Some(_)) => {
                return Err("lora: is an adapter of the model in `from`, which is not set".into());
            }
            _ => {}
        }
        self.lora.as_ref().map_or(Ok(()), |lora| lora.config().map(drop))?;
        if let Some(GeneratorVocabulary { kind, .. }) = &self.vocabulary
            && !["char", "bytes"].contains(&kind.as_str())
        {
            return Err(format!("vocabulary.kind: got {kind:?}, need char or bytes here"));
        }
        if self.context == 0 {
            return Err("context: got 0, need at least 1 token".into());
        }
        self.filling.map_or(Ok(()), |filling| filling.check(self.context))
    }

    fn origin(&self) -> Option<Origin<'_>> {
        Some(Origin { model: self.from.as_deref()?, revision: self.revision.as_deref() })
    }

    fn set_origin(&mut self, folder: PathBuf, version: Option<String>) {
        self.found = Some(folder);
        self.revision = version.or(self.revision.take());
    }

    fn of_trained(_config: &Value) -> String {
        "context = 1024\n[vocabulary]\nkind = 'bytes'".into()
    }

    fn decides(&self) -> &str {
        "loss"
    }

    fn prepare(&self) -> Result<Prepared> {
        let text = self.data.read()?;
        let mut about = About::default();
        let characters =
            |texts: &[String]| texts.iter().map(|text| text.chars().count()).sum::<usize>();
        let from = match &self.data.train {
            Some(train) => train.display().to_string(),
            None => self.data.set.clone(),
        };
        let known = known::set("generate", &self.data.set).map(|set| &set.format);
        let held_out = match (&self.data.valid, known) {
            (Some(valid), _) => valid.display().to_string(),
            (None, Some(Format::Documents(_))) => "a tenth of its articles".into(),
            (None, _) => format!("the last tenth of {from}"),
        };
        about.part("train", &from, say::many(characters(&text.train), "character"));
        about.part("valid", held_out, say::many(characters(&text.valid), "character"));
        if let Some(test) = &self.data.test {
            about.part("test", test.display(), "for regard eval");
        }
        let learner = Language::new(self, &text)?;
        let about = about.with_sizes(learner.objective().about(learner.millions()));
        Ok(Prepared { learner: Box::new(learner), about })
    }

    fn evaluate(&self, model: &ModelFiles, on: &EvaluationData) -> Result<Report> {
        evaluate::evaluate(self, model, on)
    }
}
