//! Examples of an evaluation that are also in the training part of the run: on them, a model shows
//! what it remembers, and not what it has learned.
//!
//! Both the run's copy of its data and the examples to evaluate were written by the same importer,
//! so the contents are compared, whatever the user's files are called.

use super::examples::text_key;
use super::reading::TrainedImport;
use crate::data::conllu::{Sentence, Sentences};
use crate::data::idx;
use crate::data::split::{hash, hash_bytes};
use crate::data::squad::{Article, Squad};
use crate::data::stream::Lines;
use regard_models::{Error, Result};
use serde_json::Value;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Number of examples to evaluate on that are in the training part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SeenExamples {
    /// Examples whose input is in the training part.
    pub seen: usize,
    /// All examples.
    pub all: usize,
}

impl TrainedImport {
    /// Counts the examples of a folder, written to be evaluated, whose inputs are in the training
    /// part of this run. `None` for a task whose examples have no input to compare: a graph, or
    /// recordings, which are not copied.
    ///
    /// # Errors
    /// If the run's copy of its training part cannot be read.
    pub fn seen(&self, evaluated: &Path) -> Result<Option<SeenExamples>> {
        // Without a folder, the model was not trained on imported files.
        if self.folder.as_os_str().is_empty() {
            return Ok(None);
        }
        let (train, test): (Result<Vec<u64>>, Result<Vec<u64>>) = match self.task.as_str() {
            "classify" => both(self, evaluated, "jsonl", |path| of_objects(path, &["text"])),
            "rerank" => both(self, evaluated, "jsonl", |path| of_objects(path, &["query", "text"])),
            "tag" => both(self, evaluated, "conllu", of_sentences),
            "answer" => both(self, evaluated, "json", of_questions),
            "summarize" => both(self, evaluated, "tsv", of_table),
            "translate" => {
                let source =
                    self.reading.languages.as_ref().map_or("src", |[source, _]| source.as_str());
                let train = of_lines(&self.folder.join(format!("train.{source}")));
                (train, of_table(&evaluated.join("test.tsv")))
            }
            "classify-image" => {
                let images = |folder: &Path, part: &str| of_images(&images_of(folder, part));
                (images(&self.folder, "train"), images(evaluated, "t10k"))
            }
            _ => return Ok(None),
        };
        let (train, test): (HashSet<u64>, Vec<u64>) = (train?.into_iter().collect(), test?);
        let seen = test.iter().filter(|input| train.contains(input)).count();
        Ok(Some(SeenExamples { seen, all: test.len() }))
    }
}

/// Inputs of the training part of a run and of the examples to evaluate, in files of one format.
fn both(
    run: &TrainedImport,
    evaluated: &Path,
    end: &str,
    read: impl Fn(&Path) -> Result<Vec<u64>>,
) -> (Result<Vec<u64>>, Result<Vec<u64>>) {
    let file = |folder: &Path, part: &str| folder.join(format!("{part}.{end}"));
    (read(&file(&run.folder, "train")), read(&file(evaluated, "test")))
}

fn of_text(text: &str) -> u64 {
    hash(&text_key(text))
}

/// Values of some keys of JSON lines.
fn of_objects(path: &Path, keys: &[&str]) -> Result<Vec<u64>> {
    let (mut lines, mut all) = (Lines::open(path)?, vec![]);
    while let Some(line) = lines.next().transpose()? {
        let row: Value = serde_json::from_str(&line).map_err(|error| lines.error(error))?;
        let text = |key: &&str| row[*key].as_str().map(text_key).unwrap_or_default();
        all.push(hash(&keys.iter().map(text).collect::<Vec<_>>().join("\t")));
    }
    Ok(all)
}

/// First column of a table whose first row has the names of the columns.
fn of_table(path: &Path) -> Result<Vec<u64>> {
    let first = |line: String| Ok(of_text(line.split('\t').next().unwrap_or_default()));
    Lines::open(path)?.skip(1).map(|line| line.and_then(first)).collect()
}

fn of_lines(path: &Path) -> Result<Vec<u64>> {
    Lines::open(path)?.map(|line| Ok(of_text(&line?))).collect()
}

fn of_sentences(path: &Path) -> Result<Vec<u64>> {
    let of_sentence = |sentence: Result<Sentence>| {
        let words = sentence?.words.into_iter().map(|word| word.form);
        Ok(of_text(&words.collect::<Vec<_>>().join(" ")))
    };
    Sentences::open(path)?.map(of_sentence).collect()
}

fn of_questions(path: &Path) -> Result<Vec<u64>> {
    let articles = Squad::read(path)?.articles;
    let questions = articles.iter().flat_map(Article::questions);
    let key = |context: &str, question: &str| hash(&[context, question].map(text_key).join("\t"));
    Ok(questions.map(|(context, question)| key(context, &question.text)).collect())
}

/// The file of a part's images, which have one channel or three.
fn images_of(folder: &Path, part: &str) -> PathBuf {
    let [grey, colour] =
        ["idx3", "idx4"].map(|kind| folder.join(format!("{part}-images-{kind}-ubyte")));
    if colour.is_file() { colour } else { grey }
}

/// Pixels of each image, after all images were brought to one size.
fn of_images(path: &Path) -> Result<Vec<u64>> {
    let images = idx::read(path)?;
    let pixels: usize = images.shape.iter().skip(1).product();
    if pixels == 0 {
        return Err(Error::file(path, "holds no images"));
    }
    Ok(images.data.chunks_exact(pixels).map(hash_bytes).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Image;
    use crate::import::{self, Purpose, Request};

    /// Imports `data` as a run does, and counts the examples of `other` in its training part.
    fn seen(task: &str, home: &Path, data: &str, other: &str) -> Option<SeenExamples> {
        let run = home.join("run");
        let mut request = Request::new(task);
        request.data = vec![home.join(data)];
        let (import, findings) = import::read(&request).unwrap();
        import.unwrap_or_else(|| panic!("{}", findings.text())).write(&run.join("data")).unwrap();
        let trained = TrainedImport::of_run(&run).unwrap().unwrap();
        request.data = vec![home.join(other)];
        request.purpose = Purpose::Evaluate(trained.clone());
        let (import, findings) = import::read(&request).unwrap();
        let written = home.join("written");
        import.unwrap_or_else(|| panic!("{}", findings.text())).write(&written).unwrap();
        trained.seen(&written).unwrap()
    }

    fn with_home(name: &str, check: impl FnOnce(&Path)) {
        let home = std::env::temp_dir().join(format!("regard-seen-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&home);
        std::fs::create_dir_all(&home).unwrap();
        check(&home);
        std::fs::remove_dir_all(&home).unwrap();
    }

    /// Evaluates on 60 examples, of which 48 were for training. A copy has all of them; other examples are new.
    fn check(task: &str, file: &str, header: &str, example: impl Fn(usize) -> String) {
        with_home(task, |home| {
            let text = |from: usize| {
                (from..from + 60).map(&example).fold(header.to_string(), |all, each| all + &each)
            };
            for (folder, from) in [("mine", 0), ("copy", 0), ("new", 1000)] {
                std::fs::create_dir_all(home.join(folder)).unwrap();
                std::fs::write(home.join(folder).join(file), text(from)).unwrap();
            }
            let of = |other: &str| seen(task, home, &format!("mine/{file}"), other).unwrap();
            let copied = of(&format!("copy/{file}"));
            assert_eq!((copied.seen, copied.all), (48, 60), "{task}");
            let new = of(&format!("new/{file}"));
            assert_eq!((new.seen, new.all), (0, 60), "{task}");
        });
    }

    #[test]
    fn a_copy_of_the_training_data_is_recognised() {
        check("classify", "a.csv", "text,label\n", |i| {
            format!("\"a text, number {i}\",{}\n", ["x", "y"][i % 2])
        });
        check("translate", "a.tsv", "en\tfr\n", |i| format!("Number {i}.\tNuméro {i}.\n"));
        check("summarize", "a.tsv", "text\tsummary\n", |i| {
            format!("A long text about the number {i}.\tNumber {i}\n")
        });
        check("tag", "a.conll", "", |i| format!("Number\tNOUN\n{i}th\tADJ\n\n"));
    }

    #[test]
    fn copied_images_are_recognised_by_their_pixels() {
        with_home("images", |home| {
            let paint = |path: PathBuf, grey: u8| {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                let image = Image { size: [9, 9], channels: 1, pixels: vec![grey; 81] };
                image.write_png(&path).unwrap();
            };
            for i in 0..30u8 {
                for (label, grey) in [("cat", i), ("dog", 100 + i)] {
                    paint(home.join(format!("mine/{label}/{i}.png")), grey);
                    paint(home.join(format!("copy/{label}/other-{i}.png")), grey);
                    paint(home.join(format!("new/{label}/{i}.png")), 50 + grey);
                }
            }
            let of = |other: &str| seen("classify-image", home, "mine", other).unwrap();
            assert_eq!((of("copy").seen, of("copy").all), (48, 60));
            assert_eq!(of("new").seen, 0);
        });
    }
}
