//! Choice of a recipe for the user's data, from a table by task and effort.
//!
//! A row of the table is a file in `presets/`: a recipe without name, data and number of steps, and
//! a section `[effort]` with the number of epochs and changes for each effort. The number of steps
//! follows from the size of the data, limited by the time of the effort.

use super::{DataSize, Import};
use crate::recipe::{Table, lay_over};
use crate::say;
use regard_models::{Error, Result};
use std::path::Path;
use toml::Value;

/// How much time training may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// At most 2 minutes on two cores.
    Quick,
    /// At most 15 minutes.
    #[default]
    Default,
    /// At most 90 minutes.
    Better,
}

impl Effort {
    /// Returns the name in presets.
    pub fn name(self) -> &'static str {
        match self {
            Effort::Quick => "quick",
            Effort::Default => "default",
            Effort::Better => "better",
        }
    }

    /// Returns the time limit in seconds.
    pub fn seconds(self) -> f64 {
        match self {
            Effort::Quick => 120.0,
            Effort::Default => 900.0,
            Effort::Better => 5400.0,
        }
    }
}

/// Part of the time limit that steps may take: evaluations and slower machines need the rest.
const SHARE: f64 = 0.6;
/// Fewest steps of a run that starts from scratch, if the time allows: small data need many epochs.
const LEAST: f64 = 300.0;
/// Fewest steps of fine-tuning, if the time allows.
const LEAST_FROM: f64 = 60.0;
/// Seconds of a step that do not depend on its batch.
const STEP: f64 = 0.01;
/// Tokens of a pretrained tokenizer for each word: three for two.
const PIECES: [i64; 2] = [3, 2];
/// Evaluations in a run.
const EVALUATIONS: u64 = 8;

/// A preset: the recipe of a task.
struct Preset {
    task: &'static str,
    /// Whether it fine-tunes a pretrained model.
    from: bool,
    text: &'static str,
}

macro_rules! presets {
    ($($task:literal $from:literal $file:literal)*) => {
        &[$(Preset {
            task: $task,
            from: $from,
            text: include_str!(concat!("../../presets/", $file, ".toml")),
        }),*]
    };
}

/// One row for each file in `presets/`.
const PRESETS: &[Preset] = presets! {
    "classify" false "classify"
    "classify" true "classify-from"
    "tag" false "tag"
    "tag" true "tag-from"
    "answer" true "answer-from"
    "rerank" true "rerank-from"
    "translate" false "translate"
    "summarize" false "summarize"
    "generate" false "generate"
    "generate" true "generate-from"
    "classify-image" false "classify-image"
    "recognize" false "recognize"
    "classify-graph" false "classify-graph"
};

/// A recipe that was chosen for data, with the time that its steps are expected to take.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Sentence about texts that are read only in part.
    pub note: Option<String>,
    /// The recipe.
    pub recipe: Table,
    /// Expected time of the steps in seconds, on two cores.
    pub seconds: f64,
    /// Number of passes over the training part.
    pub epochs: f64,
}

/// What a recipe is chosen by, besides the data.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'a> {
    /// Name of the run.
    pub name: &'a str,
    /// Folder that the data are written to.
    pub folder: &'a Path,
    /// Time that training may take.
    pub effort: Effort,
    /// Pretrained model to fine-tune.
    pub from: Option<&'a str>,
    /// Longest text that the pretrained model reads, in tokens.
    pub longest: Option<usize>,
    /// Seed of all randomness.
    pub seed: u64,
}

/// Chooses the recipe for imported data.
///
/// # Errors
/// If the task cannot be trained in the requested way, with a command that can.
pub fn choose(import: &Import, wish: &Wish) -> Result<Choice> {
    let preset = find(import.task, wish.from.is_some())?;
    let mut recipe: Table = toml::from_str(preset.text).expect("presets are tested");
    let Some(Value::Table(mut effort)) = recipe.remove("effort") else {
        panic!("a preset has a section [effort]")
    };
    let Some(Value::Table(mut chosen)) = effort.remove(wish.effort.name()) else {
        panic!("a preset has all efforts")
    };
    let number = |key: &str, chosen: &Table| {
        let value = chosen.get(key).or(effort.get(key))?;
        value.as_float().or(value.as_integer().map(|n| n as f64))
    };
    let need = |key: &str| number(key, &chosen).expect("presets are tested");
    let (epochs, rate, padding) = (need("epochs"), need("rate"), need("padding"));
    let area = number("area", &chosen).map(|area| (import.size.longest.pow(2) as f64) / area);
    for key in ["epochs", "rate", "padding", "area"] {
        chosen.remove(key);
    }
    lay_over(&mut recipe, chosen);
    for (key, value) in [
        ("name", Value::String(wish.name.into())),
        ("seed", Value::Integer(wish.seed.min(i64::MAX as u64) as i64)),
    ] {
        recipe.insert(key.into(), value);
    }
    let about =
        format!("Own data, chosen by regard train {} ({})", import.task, wish.effort.name());
    recipe.insert("about".into(), Value::String(about));
    if let Some(from) = wish.from {
        recipe.insert("from".into(), Value::String(from.into()));
    }
    if import.size.unspaced {
        by_character(&mut recipe, import.task);
    }
    if let Some(Value::Integer(context)) = recipe.get_mut("context") {
        *context = (*context).min(wish.longest.map_or(i64::MAX, |most| most as i64));
    }
    let batch = setting(&recipe, "batch_tokens").unwrap_or(1.0);
    let DataSize { examples, units, .. } = import.size;
    // Steps of an epoch: a batch counts padded words, images, recordings, or is the graph. It holds
    // at most all examples.
    let per_epoch = match import.task {
        "classify-image" | "recognize" => examples as f64 / batch,
        "classify-graph" => 1.0,
        _ => units as f64 * padding / batch,
    };
    let per_epoch = per_epoch.max(1.0);
    let second_per_step = STEP + units as f64 * area.unwrap_or(1.0) / rate / per_epoch;
    let least = if wish.from.is_some() { LEAST_FROM } else { LEAST };
    let most = wish.effort.seconds() * SHARE / second_per_step;
    let steps = (epochs * per_epoch).max(least).min(most).max(1.0).floor();
    schedule(&mut recipe, steps as u64, import.task);
    lay_over(&mut recipe, import.recipe_keys(wish.folder));
    if wish.from.is_some() {
        // A pretrained model has its own.
        recipe.remove("vocabulary");
    }
    let mut note = None;
    if let (Some(most), Some(Value::Table(data))) = (wish.longest, recipe.get_mut("data"))
        && let Some(Value::Integer(asked)) = data.get_mut("max_tokens")
    {
        if import.task == "classify" {
            *asked = (*asked * PIECES[0]).div_euclid(PIECES[1]);
        }
        // Models without a table of positions have no longest text.
        *asked = (*asked).min(i64::try_from(most).unwrap_or(i64::MAX));
        let pieces = import.size.longest as i64 * PIECES[0] / PIECES[1];
        if import.task == "classify" && pieces > *asked {
            let what = if import.size.unspaced { "character" } else { "word" };
            note = Some(format!(
                "texts are cut at {} of this model; the longest text has {}",
                say::many(*asked as usize, "token"),
                say::many(import.size.longest, what)
            ));
        }
    }
    Ok(Choice { note, recipe, seconds: steps * second_per_step, epochs: steps / per_epoch })
}

/// Pretrained encoder that messages propose.
const ORIGIN: &str = "sentence-transformers/all-MiniLM-L6-v2";

/// Command that trains a model of a task on files of the user. `from` is a model that can be
/// fine-tuned for it. `None` if there is no such task.
pub fn command(task: &str, from: Option<&Path>) -> Option<String> {
    super::IMPORTERS.iter().find(|importer| importer.task == task)?;
    let from = from.map(|from| say::quoted(from.display()));
    let from = from.or_else(|| needs_origin(task).then(|| ORIGIN.to_string()));
    let from = from.map_or(String::new(), |from| format!(" --from {from}"));
    Some(format!("regard train {task} --data FILE{from}"))
}

/// Whether a task is only trained from a pretrained model.
pub fn needs_origin(task: &str) -> bool {
    find(task, false).is_err()
}

fn find(task: &str, from: bool) -> Result<&'static Preset> {
    if let Some(found) = PRESETS.iter().find(|preset| preset.task == task && preset.from == from) {
        return Ok(found);
    }
    if from {
        let tasks: Vec<&str> =
            PRESETS.iter().filter(|preset| preset.from).map(|preset| preset.task).collect();
        return Err(Error::invalid(format!(
            "--from fine-tunes models of texts, for the tasks {}; {task} is trained from \
             scratch: leave --from out",
            say::list(&tasks, 10)
        )));
    }
    Err(Error::invalid(format!(
        "{task} needs a pretrained encoder: add --from MODEL, a folder, a run or a Hub id, such as \
         --from {ORIGIN}"
    )))
}

/// Reads words of a language without spaces as characters.
fn by_character(recipe: &mut Table, task: &str) {
    let Some(Value::Table(vocabulary)) = recipe.get_mut("vocabulary") else { return };
    let characters = |size: i64| {
        let kind = ("kind".to_string(), Value::String("char".into()));
        Value::Table(Table::from_iter([kind, ("size".to_string(), Value::Integer(size))]))
    };
    match task {
        // The words of a tagged sentence are given, and the model reads their characters.
        "tag" => {}
        "classify" => {
            recipe.insert("vocabulary".into(), characters(6000));
        }
        _ => {
            // A tokenizer trained on both languages at once: pieces of sentences.
            if let Some(Value::Table(shared)) = vocabulary.get_mut("shared") {
                shared.insert("kind".into(), Value::String("unigram".into()));
            }
        }
    }
}

fn setting(recipe: &Table, key: &str) -> Option<f64> {
    let value = recipe.get("train")?.get(key)?;
    value.as_float().or(value.as_integer().map(|n| n as f64))
}

/// Sets the number of steps, and what depends on it.
fn schedule(recipe: &mut Table, steps: u64, task: &str) {
    let Some(Value::Table(train)) = recipe.get_mut("train") else { return };
    let mut set = |key: &str, value: u64| {
        train.entry(key).or_insert(Value::Integer(value as i64));
    };
    set("steps", steps);
    set("warmup", (steps / 15).clamp(1, 1000));
    set("log_every", (steps / 40).clamp(1, 100));
    if task == "classify-graph" {
        // A step over the graph takes milliseconds, and graphs are small: evaluate often, and stop
        // when nothing improves.
        set("eval_every", 5);
        set("save_every", steps);
        set("patience", 40);
    } else {
        set("eval_every", steps.div_ceil(EVALUATIONS));
    }
}

#[cfg(test)]
mod tests;
