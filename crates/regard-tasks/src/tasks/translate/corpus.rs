//! The section `[data]` of a recipe, and the sentence pairs that it names.

use crate::about::About;
use crate::data::known::{self, DataSet, Format};
use crate::data::pairs::{self, Group, Pair, Tsv, group};
use crate::data::split::SplitKey;
use crate::data::{Part, Split, sets};
use crate::evaluation::{EvaluationData, Source};
use crate::{own, say};
use regard_models::{Error, Result};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Sentence pairs to train on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// Name of a known data set, or `files`.
    pub set: String,
    /// Source language, such as `en`; with `files` the extension of its file names.
    #[serde(default)]
    pub source: String,
    /// Target language; with `files` the extension of its file names.
    #[serde(default)]
    pub target: String,
    /// Folder with `train.SOURCE`, `train.TARGET` and likewise `valid` and `test`; only with
    /// `set = "files"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// Maximum number of training pairs, those with the smallest hashes; all by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Maximum length of training pairs in tokens, longer ones are left out; 128 by default.
    #[serde(default = "longest")]
    pub max_tokens: usize,
    /// Number of sources out of 1000 held out as test part, for sets without their own. A smaller
    /// test part is a subset of a larger one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_per_mille: Option<u16>,
    /// Whether narrow and no-break spaces in references are replaced by plain spaces.
    #[serde(default)]
    pub plain_spaces: bool,
}

fn longest() -> usize {
    128
}

/// The three parts of a data set.
#[derive(Clone, Debug, Default)]
pub struct Corpus {
    /// Training part.
    pub train: Vec<Pair>,
    /// Validation part.
    pub valid: Vec<Group>,
    /// Test part.
    pub test: Vec<Group>,
}

impl Data {
    /// Reads the sentence pairs.
    pub fn read(&self) -> Result<Corpus> {
        let known = known::named("translate", "data.set", &self.set)?;
        let own_test = known.is_none_or(|set| matches!(set.format, Format::Parallel(_)));
        if own_test && self.test_per_mille.is_some() {
            let set = &self.set;
            return Err(Error::invalid(format!(
                "data.test_per_mille: {set} has its own test part"
            )));
        }
        let mut corpus = known.map_or_else(|| self.files(), |set| self.known(set))?;
        if self.plain_spaces {
            let all = corpus.valid.iter_mut().chain(&mut corpus.test);
            for target in all.flat_map(|group| &mut group.targets) {
                *target = plain(target);
            }
        }
        if let Some(limit) = self.limit {
            corpus.train.sort_by_key(|pair| crate::data::split::hash(&pair.source));
            corpus.train.truncate(limit);
        }
        Ok(corpus)
    }

    /// Returns the evaluation set: sources, each with all its references. A file has one pair per
    /// line, separated by a tab; identical sources are grouped.
    pub fn asked(&self, on: &EvaluationData) -> Result<Vec<Group>> {
        let source = on.decide(&self.set, |_| true)?;
        let path = match source {
            Source::File(path) => path,
            Source::Set(set, part) => {
                let corpus = Data { set: set.to_string(), ..self.clone() }.read()?;
                return Ok(if part == Part::Valid { corpus.valid } else { corpus.test });
            }
        };
        let mut groups = group(&Tsv::FORWARD.read(path)?);
        if self.plain_spaces {
            groups.iter_mut().flat_map(|group| &mut group.targets).for_each(|t| *t = plain(t));
        }
        Ok(groups)
    }

    fn known(&self, set: &DataSet) -> Result<Corpus> {
        let folder = sets::find(set.name)?;
        match set.format {
            Format::Parallel(parts) => self.parallel(&folder, parts),
            Format::Tatoeba(file, other) => self.tatoeba(&folder.join(file), other),
            Format::Pronunciations(file) => self.pronunciations(&folder.join(file)),
            _ => known::unread(set),
        }
    }

    fn parallel(&self, folder: &Path, [train, valid, test]: [&str; 3]) -> Result<Corpus> {
        let part = |name: &str| {
            let file = |language: &str| folder.join(format!("{name}.{language}.gz"));
            pairs::parallel(file(&self.source), file(&self.target))
        };
        Ok(Corpus { train: part(train)?, valid: alone(&part(valid)?), test: alone(&part(test)?) })
    }

    fn files(&self) -> Result<Corpus> {
        let (source, target) = (&self.source, &self.target);
        let all = format!(
            "train.{source}, train.{target}, valid.{source}, valid.{target}, test.{source} and \
             test.{target}, a sentence a line"
        );
        let folder = own::file("folder", &self.folder, &format!("a folder with {all}"))?;
        let part = |name: &str| {
            let file = |language: &str| folder.join(format!("{name}.{language}"));
            for path in [file(source), file(target)] {
                if !path.is_file() {
                    return Err(Error::invalid(format!(
                        "data.folder: there is no file {}; the folder needs {all} (data.source and \
                         data.target are the ends of these names)",
                        path.display()
                    )));
                }
            }
            pairs::parallel(file(source), file(target))
        };
        Ok(Corpus {
            train: part("train")?,
            valid: alone(&part("valid")?),
            test: alone(&part("test")?),
        })
    }

    /// Returns a summary of the sentence pairs.
    pub(super) fn about(&self, corpus: &Corpus) -> About {
        let mut about = About::default();
        let (source, target) = (&self.source, &self.target);
        let from = |part: &str| match &self.folder {
            Some(folder) if self.set == own::FILES => {
                let file = |end: &str| folder.join(format!("{part}.{end}")).display().to_string();
                format!("{} and {}", file(source), file(target))
            }
            _ => self.set.clone(),
        };
        let pairs = |groups: &[Group]| groups.iter().map(|group| group.targets.len()).sum();
        for (part, count) in [
            ("train", corpus.train.len()),
            ("valid", pairs(&corpus.valid)),
            ("test", pairs(&corpus.test)),
        ] {
            about.part(part, from(part), say::many(count, "pair"));
        }
        if let Some(Pair { source: first, target: second }) = corpus.train.first() {
            let (first, second) = (say::short(first, 60), say::short(second, 60));
            about.line(format!("from {source} to {target}, first: {first:?} → {second:?}"));
        }
        about
    }

    fn split(&self, usual: Split) -> Result<Split> {
        let test = self.test_per_mille.unwrap_or(usual.test);
        if test.saturating_add(usual.valid) >= 1000 {
            return Err(Error::invalid(format!(
                "data.test_per_mille: got {test}, need less than {} so that something is left to \
                 learn from",
                1000 - usual.valid
            )));
        }
        Ok(Split { test, ..usual })
    }

    /// Reads Tatoeba's pairs, `english TAB other`, split by a hash of the English sentence.
    fn tatoeba(&self, path: &Path, other: &str) -> Result<Corpus> {
        let (tsv, key) = match (self.source.as_str(), self.target.as_str()) {
            ("en", target) if target == other => (Tsv { source: 0, target: 1 }, SplitKey::Source),
            (source, "en") if source == other => (Tsv { source: 1, target: 0 }, SplitKey::Target),
            (source, target) => {
                return Err(Error::invalid(format!(
                    "data: {} has en → {other} and {other} → en, not {source} → {target}",
                    self.set
                )));
            }
        };
        let (all, split) = (tsv.read(path)?, self.split(Split::default())?);
        Ok(Corpus {
            train: split.pairs(&all, key, Part::Train),
            valid: group(&split.pairs(&all, key, Part::Valid)),
            test: group(&split.pairs(&all, key, Part::Test)),
        })
    }

    /// Reads pairs of spelling and phonemes, split by a hash of the spelling.
    fn pronunciations(&self, path: &Path) -> Result<Corpus> {
        let words = pairs::cmudict(path)?;
        let split = self.split(Split { valid: 10, test: 50 })?;
        let mut corpus = Corpus::default();
        for word in words {
            let group = Group { source: word.word, targets: word.accepted };
            match split.part(&group.source) {
                Part::Train => {
                    corpus.train.extend(group.targets.iter().map(|target| Pair {
                        source: group.source.clone(),
                        target: target.clone(),
                    }))
                }
                Part::Valid => corpus.valid.push(group),
                Part::Test => corpus.test.push(group),
            }
        }
        Ok(corpus)
    }
}

/// Keeps each pair as a group of its own, even with identical sources, as in the data set's own
/// evaluation.
fn alone(pairs: &[Pair]) -> Vec<Group> {
    let of =
        |pair: &Pair| Group { source: pair.source.clone(), targets: vec![pair.target.clone()] };
    pairs.iter().map(of).collect()
}

/// Replaces narrow and no-break spaces by plain ones.
pub(super) fn plain(text: &str) -> String {
    text.replace(['\u{202f}', '\u{a0}', '\u{2009}'], " ")
}
