//! Small training tasks, and temporary folders.

use regard_tasks::data::Pair;
use regard_tasks::data::pairs::Group;
use regard_tasks::recipe::Task;
use regard_tasks::train::{Event, Record, Run, RunOptions, TrainOutcome, start};
use regard_tasks::translate::{Corpus, Recipe, Translation};
use std::fs;
use std::path::{Path, PathBuf};

/// A folder that is removed at the end of the test.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("regard-{name}-{}", std::process::id()));
        _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

/// Deterministic pseudo-random numbers.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }
}

/// A corpus of pairs, the first of which are for validation and test only.
pub fn corpus(pairs: Vec<Pair>, held_out: usize) -> Corpus {
    let group =
        |pair: &Pair| Group { source: pair.source.clone(), targets: vec![pair.target.clone()] };
    let (test, train) = pairs.split_at(held_out);
    // Test pairs are not trained on.
    let train = train.iter().filter(|pair| !test.contains(pair)).cloned().collect();
    let groups: Vec<Group> = test.iter().map(group).collect();
    let (valid, test) = groups.split_at(held_out / 2);
    Corpus { train, valid: valid.to_vec(), test: test.to_vec() }
}

/// Random letters, and a function of them.
pub fn letters(count: usize, lengths: std::ops::Range<usize>, then: fn(&mut [&str])) -> Vec<Pair> {
    let (alphabet, mut dice) = (["a", "b", "c", "d", "e", "f", "g", "h"], Dice(1));
    let line = |_| {
        let n = lengths.start + dice.below(lengths.len());
        let mut words: Vec<&str> = (0..n).map(|_| alphabet[dice.below(alphabet.len())]).collect();
        let source = words.join(" ");
        then(&mut words);
        Pair { source, target: words.join(" ") }
    };
    (0..count).map(line).collect()
}

/// A recipe with a shared vocabulary of words.
pub fn recipe(model: &str, train: &str) -> Recipe {
    let text = format!(
        "name = \"small\"\ntask = \"translate\"\nseed = 3\n\
         [data]\nset = \"files\"\n\
         [vocabulary.shared]\nkind = \"word\"\n\
         [model]\n{model}\n[train]\n{train}\n\
         [evaluate]\nby = \"loss\"\n[decode]\nmax_length = 40\n"
    );
    Recipe::parse(&text, &[]).unwrap()
}

/// Trains, and stops when requested.
pub fn train(
    (recipe, corpus): (&Recipe, &Corpus),
    folder: &Path,
    resume: bool,
    watch: &mut dyn FnMut(Event) -> bool,
) -> regard_tasks::Result<TrainOutcome> {
    let mut learner = Translation::new(recipe, corpus.clone())?;
    Run {
        folder,
        options: &recipe.train,
        seed: recipe.seed,
        resume,
        record: &Record::default(),
        watch,
    }
    .train(&mut learner)
}

/// Trains by a recipe, up to the step at which it is stopped.
pub fn trained(recipe: &dyn Task, folder: &Path, resume: bool, stop: Option<u64>) -> TrainOutcome {
    let mut watch = |event: Event| !matches!(event, Event::Step { step, .. } if Some(step) == stop);
    start(recipe, &RunOptions { folder, resume, memory: None }, &mut watch).unwrap()
}
