//! Training, validation and test parts of the stories.

use crate::data::babi::{self, Story};
use crate::data::{Part, Split};
use regard_models::{Error, Result};
use std::path::Path;

/// Stories of one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tales {
    /// Number of the bAbI task, 1 to 20.
    pub task: usize,
    /// Stories of the task.
    pub stories: Vec<Story>,
}

/// Stories of several tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Corpus {
    /// Training part.
    pub train: Vec<Tales>,
    /// Validation part: a fraction of the training files.
    pub valid: Vec<Tales>,
    /// Test part: the test files. It may contain tasks without training stories.
    pub test: Vec<Tales>,
}

impl Corpus {
    /// Reads a folder of bAbI files. Of every 1000 training stories `valid` are for validation,
    /// chosen by a hash of their text.
    pub fn read(folder: &Path, tasks: Option<&[usize]>, valid: u16) -> Result<Corpus> {
        if let Some(task) = tasks.into_iter().flatten().find(|task| !(1..=20).contains(*task)) {
            return Err(Error::invalid(format!("data.tasks: got {task}, need 1 to 20")));
        }
        let asked = |task: &usize| tasks.is_none_or(|tasks| tasks.contains(task));
        let read = |part: Part| -> Result<Vec<Tales>> {
            let there = babi::present(folder, part).into_iter().filter(asked);
            let one = |task| {
                let stories = babi::read(babi::file(folder, task, part)?)?;
                Ok(Tales { task, stories })
            };
            there.map(one).collect()
        };
        let all = read(Part::Train)?;
        if all.is_empty() {
            let message = "holds no training file of the requested tasks, such as \
                           qa1_single-supporting-fact_train.txt";
            return Err(Error::file(folder, message));
        }
        let split = Split { valid, test: 0 };
        let part = |part: Part| all.iter().map(|tales| tales.part(split, part)).collect();
        Ok(Corpus { train: part(Part::Train), valid: part(Part::Valid), test: read(Part::Test)? })
    }

    /// Returns one of the parts.
    pub fn part(&self, part: Part) -> &[Tales] {
        part.of([&self.train, &self.valid, &self.test])
    }
}

impl Tales {
    /// Returns the stories of a part. Identical stories are in the same part.
    fn part(&self, split: Split, part: Part) -> Tales {
        let told = |story: &&Story| {
            let text: Vec<&str> = story.facts.iter().map(|fact| fact.text.as_str()).collect();
            split.part(&text.join(" ")) == part
        };
        let stories = self.stories.iter().filter(told).cloned().collect();
        Tales { task: self.task, stories }
    }
}
