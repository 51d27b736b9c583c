//! Data sets that recipes can name, a row each: the name and the reader of its format.
//!
//! A set in a known format is one row; a new format is a variant, its reader, and an arm in the
//! tasks that read it. `catalogue` lists where the files come from.

use super::aeslc;
use super::conllu::{Sentence, Sentences};
use super::documents::{Document, DocumentBoundary};
use super::labelled::{LabelledText, LabelledTexts, Sentiment};
use super::recordings::{self, Recording};
use super::running;
use super::sets;
use super::split::Part;
use super::squad::{Article, Squad};
use crate::own;
use crate::say;
use regard_models::{Error, Result};

/// A data set that recipes can name.
pub(crate) struct DataSet {
    /// Value of `data.set`.
    pub name: &'static str,
    pub format: Format,
}

/// The format of a data set, with its reader or the names of its files.
pub(crate) enum Format {
    /// Texts with one label each.
    Labelled(fn(Part) -> Result<LabelledTexts>),
    /// Sentences whose words have labels.
    Tagged(fn(Part) -> Result<Vec<Sentence>>),
    /// Articles with questions about them.
    Questions(fn(Part) -> Result<Vec<Article>>),
    /// One text whose last tenth is held out: the file.
    Text(&'static str),
    /// Documents: training and held-out ones.
    Documents(fn() -> Result<[Vec<Document>; 2]>),
    /// A compressed file per language and part: the names before `.LANGUAGE.gz`.
    Parallel([&'static str; 3]),
    /// English, a tab and another language: the file, and the other language.
    Tatoeba(&'static str, &'static str),
    /// Words with their phonemes: the file.
    Pronunciations(&'static str),
    /// Texts with summaries.
    Summaries(fn(Part) -> Result<Vec<aeslc::Email>>),
    /// A folder of bAbI's files.
    Stories,
    /// A folder of MNIST's files: the names of the classes.
    Images(&'static [&'static str]),
    /// A citation graph of Planetoid, with the names of its classes.
    Planetoid(&'static [&'static str]),
    /// Randomly generated graphs.
    Molecules,
    /// Randomly generated points; a file of convex hulls for the test, if there is one.
    Points(Option<&'static str>),
    /// Recordings with transcripts.
    Recordings(fn(Part) -> Result<Vec<Recording>>),
}

/// The classes of Fashion-MNIST, by their numbers (Xiao et al. 2017, arXiv:1708.07747).
const CLOTHES: &[&str] = &[
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
];

/// The topics of Cora's papers by their numbers in Planetoid, which has no names: each topic is
/// identified by its number of papers (351, 217, 418, 818, 426, 298, 180).
const CORA: &[&str] = &[
    "Theory",
    "Reinforcement_Learning",
    "Genetic_Algorithms",
    "Neural_Networks",
    "Probabilistic_Methods",
    "Case_Based",
    "Rule_Learning",
];
/// The topics of Citeseer's papers, likewise (249, 590, 668, 701, 596, 508).
const CITESEER: &[&str] = &["AI", "ML", "IR", "DB", "Agents", "HCI"];

const fn row(name: &'static str, format: Format) -> DataSet {
    DataSet { name, format }
}

/// Every data set that recipes can name.
pub(crate) static SETS: &[DataSet] = &[
    row("sst2-phrases", Format::Labelled(|part| sst2(Sentiment::Phrases, part))),
    row("sst2-sentences", Format::Labelled(|part| sst2(Sentiment::Sentences, part))),
    row(
        "ud-english-ewt",
        Format::Tagged(|part| Sentences::open_part(sets::find("ud-english-ewt")?, part)?.collect()),
    ),
    row("ud-english-ewt-genres", Format::Labelled(genres)),
    row(
        "squad",
        Format::Questions(|part| {
            let all = Squad::read(sets::find("squad")?.join("dev-v1.1.json"))?;
            Ok(all.part(part).to_vec())
        }),
    ),
    row("tinyshakespeare", Format::Text("input.txt")),
    row(
        "wikitext-2",
        Format::Documents(|| running::divided(&running::wikitext2()?, DocumentBoundary::WikiText)),
    ),
    row("multi30k", Format::Parallel(["train", "val", "test_2016_flickr"])),
    row("tatoeba-fra-eng", Format::Tatoeba("fra.txt", "fr")),
    row("tatoeba-cmn-eng", Format::Tatoeba("cmn.txt", "zh")),
    row("cmudict", Format::Pronunciations("cmudict.dict")),
    row(
        "aeslc",
        Format::Summaries(|part| aeslc::read(&sets::find("aeslc")?.join("aeslc.tar"), part)),
    ),
    row("babi-en-10k", Format::Stories),
    row("fashion-mnist", Format::Images(CLOTHES)),
    row("cora", Format::Planetoid(CORA)),
    row("citeseer", Format::Planetoid(CITESEER)),
    row("molecules", Format::Molecules),
    row("drawn", Format::Points(None)),
    row("pointer-nets", Format::Points(Some("convex_hull_5_test.txt"))),
    row("fsdd", Format::Recordings(|part| recordings::fsdd(sets::find("fsdd")?, part))),
    row(
        "fsdd-speakers",
        Format::Recordings(|part| recordings::fsdd_speakers(sets::find("fsdd")?, part)),
    ),
];

/// Reads sentences of the English Web Treebank with the genre of their document, which begins their
/// id: `answers`, `email`, `newsgroup`, `reviews` or `weblog`.
fn genres(part: Part) -> Result<LabelledTexts> {
    const GENRES: [&str; 5] = ["answers", "email", "newsgroup", "reviews", "weblog"];
    let mut texts =
        LabelledTexts { labels: GENRES.map(String::from).to_vec(), ..LabelledTexts::default() };
    for sentence in Sentences::open_part(sets::find("ud-english-ewt")?, part)? {
        let Sentence { id, text, .. } = sentence?;
        let genre = id.as_deref().and_then(|id| id.split('-').next());
        let label = genre.and_then(|genre| GENRES.iter().position(|known| *known == genre));
        if let (Some(label), Some(text)) = (label, text) {
            texts.examples.push(LabelledText { text, label });
        }
    }
    Ok(texts)
}

fn sst2(form: Sentiment, part: Part) -> Result<LabelledTexts> {
    LabelledTexts::sentiment(sets::find("sst2")?, form, part)
}

impl DataSet {
    /// The tasks that read it.
    fn tasks(&self) -> &'static [&'static str] {
        match self.format {
            Format::Labelled(_) => &["classify"],
            Format::Tagged(_) => &["tag"],
            Format::Questions(_) => &["answer", "rerank"],
            Format::Text(_) => &["generate"],
            Format::Documents(_) => &["generate", "fill", "permute"],
            Format::Tatoeba(..) => &["translate", "permute"],
            Format::Parallel(_) | Format::Pronunciations(_) => &["translate"],
            Format::Summaries(_) => &["summarize"],
            Format::Stories => &["answer-story"],
            Format::Images(_) => &["classify-image"],
            Format::Planetoid(_) | Format::Molecules => &["classify-graph"],
            Format::Points(_) => &["point"],
            Format::Recordings(_) => &["recognize"],
        }
    }
}

/// The error of a task that has no arm for a format listed for it.
pub(crate) fn unread<T>(set: &DataSet) -> Result<T> {
    let (name, tasks) = (set.name, set.tasks().join(", "));
    Err(Error::invalid(format!("data.set: got {name}, need a set of this task; it is for {tasks}")))
}

/// The sets that a task reads.
fn of_task(task: &str) -> impl Iterator<Item = &'static DataSet> {
    SETS.iter().filter(move |set| set.tasks().contains(&task))
}

/// The names of the sets that a task reads.
pub(crate) fn names(task: &str) -> Vec<&'static str> {
    of_task(task).map(|set| set.name).collect()
}

/// The set of a name, if the task reads it.
pub(crate) fn set(task: &str, name: &str) -> Option<&'static DataSet> {
    of_task(task).find(|set| set.name == name)
}

/// Returns the set that a key of a task's recipe names; `None` if the name stands for the user's
/// own files.
///
/// # Errors
/// If there is no such set.
pub(crate) fn named(task: &str, key: &str, name: &str) -> Result<Option<&'static DataSet>> {
    let own = own::sets(task);
    match set(task, name) {
        None if own.contains(&name) => Ok(None),
        None => {
            let known = of_task(task).map(|set| set.name).chain(own.iter().copied());
            Err(Error::invalid(say::unknown(key, name, &known.collect::<Vec<_>>())))
        }
        known => Ok(known),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_set_has_a_name_of_its_own_and_is_known_to_its_tasks() {
        let names: BTreeSet<&str> = SETS.iter().map(|set| set.name).collect();
        assert_eq!(names.len(), SETS.len());
        for each in SETS {
            for task in each.tasks() {
                assert!(set(task, each.name).is_some_and(|found| found.name == each.name));
                assert!(named(task, "data.set", "files").unwrap().is_none());
                let told = named(task, "data.set", "no-such").err().unwrap().to_string();
                assert!(told.contains(each.name) && told.contains("files"), "{told}");
            }
        }
        assert!(named("fill", "data.set", "fsdd").is_err());
        assert!(named("fill", "data.set", "pairs").is_err());
        assert!(named("permute", "data.set", "pairs").unwrap().is_none());
    }
}
