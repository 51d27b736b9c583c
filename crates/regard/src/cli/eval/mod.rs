//! `regard eval`: how good a model is.

mod others;
mod translation;

use super::inputs::note;
use super::{Global, Outcome};
use crate::files::not_an_input;
use crate::hub::Hub;
use crate::models::{self, Found};
use crate::recipe;
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use regard_tasks::data::{self, ledger};
use regard_tasks::examine::On;
use regard_tasks::recipe::{Table, of_model};
use regard_tasks::say::many;
use regard_tasks::train::changed_data;
use std::io::Write;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  regard eval multi30k-transformer                     runs/multi30k-transformer, on its test part
  regard eval multi30k-transformer --part valid --set decode.num_beams=1
  regard eval cmudict-transformer --model runs/try --save out.txt
  regard eval runs/sst2 --part valid                   a run, by the recipe in its folder
  regard eval runs/sst2 --data sst2-sentences          the test part of another data set
  regard eval --model gpt2 --data my-text.txt          any model on a file of yours
  regard eval --model gpt2 --data wikitext-2-raw

What is measured depends on the task. translate: BLEU and chrF, or word and phoneme error rate;
generate: loss and perplexity, by token, character, byte and word; classify, classify-image: accuracy,
macro-F1; tag: accuracy by word, and of labels such as B-PER entity F1 as seqeval counts it; answer:
exact match and F1 of SQuAD; rerank: MRR and NDCG of the first ten; point: answers exactly right, and the area of hulls or the length of
tours; classify-graph, answer-story: accuracy; recognize: accuracy, or of letters word and letter error rate; summarize:
ROUGE; fill: loss and accuracy of hidden words, and of whether halves belong together. On a
validation part, the numbers are those of the run's own evaluations; but those of translations are
searched greedily while training, and here as the recipe's [decode] says.

Files: classify .tsv, .csv or .jsonl with text and label (which columns: --set data.text=NAME --set
data.label=NAME); classify-image an IDX file of images, with that of
their labels beside it; tag CoNLL-U; answer SQuAD's JSON; generate and fill plain text (for
fill, a blank line between documents); rerank .tsv, .csv or .jsonl with query, text and label; translate .tsv, the source sentence, a tab and its
reference; summarize .tsv, the text, a tab and its summary; point lines of numbers,
the word output and places from 1; recognize lines of a WAV file, a tab and what is said.

Of the test part of a data set, texts that a classifier has learned from are left out, and counted as
excluded. A file of --data is measured as a whole, but for a first line that names the columns.

With --json: an object with name, task, data, part, the measures, and what was asked.";

/// Measure a model on the data of a recipe, on another data set, or on a file
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Flags {
    /// A recipe by its name in `regard recipes`, a TOML file, or the folder of a run; may be left
    /// out where --model says enough
    #[arg(value_name = "RECIPE or RUN")]
    recipe: Option<String>,
    /// A model: a folder, a name that `regard models` lists, or an id of the Hugging Face Hub
    /// [default: the run, or that of the recipe's name in runs/]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Which part of the data [default: test, or valid of data without a test part]
    #[arg(long, value_enum)]
    part: Option<Part>,
    /// A file of yours, or the name of another data set, instead of the recipe's
    #[arg(long, value_name = "FILE or SET")]
    data: Option<String>,
    /// Another value for a key of the recipe; may be given more than once
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Of translations: write them to this file, a line each
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Of translations: only sources of at least so many words
    #[arg(long, value_name = "N", default_value_t = 0)]
    min_words: usize,
    #[command(flatten)]
    hub: Hub,
}

#[derive(Clone, Copy, ValueEnum)]
enum Part {
    Valid,
    Test,
}

/// What is to be measured, by which recipe.
struct Job {
    recipe: Table,
    model: Found,
    on: On,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    not_the_data(&flags)?;
    let job = job(&flags)?;
    let run = match (&job.model, &job.on) {
        (Found::Folder(folder), On::Set { set: None, .. }) => Some(folder.path.clone()),
        _ => None,
    };
    let (outcome, read) = ledger::paths(|| measure(&flags, job, global, out));
    let changed = run.map_or(Ok(vec![]), |run| changed_data(&run, &read))?;
    if !changed.is_empty() {
        let (count, first) = (changed.len(), changed[0].display());
        note(&format!(
            "{} changed since the run began, {first} first: these are not the examples of the run's \
             own evaluations",
            many(count, "data file")
        ));
    }
    outcome
}

fn measure(flags: &Flags, job: Job, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    match job.recipe.get("task").and_then(|task| task.as_str()) {
        Some("translate") => translation::run(flags, job, global, out),
        _ if flags.save.is_some() || flags.min_words > 0 => {
            bail!("eval: --save and --min-words are for translations")
        }
        _ => others::run(job, global, out),
    }
}

/// Translations must not replace the references that they are compared with.
fn not_the_data(flags: &Flags) -> Result<()> {
    let (Some(save), Some(data)) = (&flags.save, &flags.data) else { return Ok(()) };
    not_an_input("--save", save, &[Path::new(data)]).context("--data and --save are one file")
}

fn job(flags: &Flags) -> Result<Job> {
    let on = on(flags)?;
    let given = flags.model.as_deref().map(|model| models::resolve(model, &flags.hub));
    let given = given.transpose()?;
    let (recipe, model) = match (&flags.recipe, given) {
        (Some(name), given) if run_folder(name).is_some() => {
            let folder = run_folder(name).expect("it was just there");
            let table = recipe::of_run(&folder, &flags.overrides)?
                .with_context(|| format!("{name}: holds no recipe.toml, so it is no run"))?;
            (table, given.unwrap_or_else(|| Found::folder(folder)))
        }
        (Some(name), given) => {
            let table = recipe::table(name, &flags.overrides)?;
            let own = table.get("name").and_then(|name| name.as_str()).unwrap_or(name);
            let own = Path::new("runs").join(own);
            match given {
                Some(given) => (table, given),
                None if !own.is_dir() => {
                    bail!("eval: there is no {}; regard train {name} makes it", own.display())
                }
                // The run may have been trained with settings that the recipe does not have, such
                // as data of one's own: what it wrote down is what it is measured by.
                None => {
                    let of_run = recipe::of_run(&own, &flags.overrides)?;
                    (of_run.unwrap_or(table), Found::folder(own))
                }
            }
        }
        (None, Some(Found::Shipped(model))) => {
            (recipe::table(model.recipe, &flags.overrides)?, Found::Shipped(model))
        }
        (None, Some(Found::Folder(folder))) => {
            let path = &folder.path;
            let table = match recipe::of_run(path, &flags.overrides)? {
                Some(table) => table,
                None if flags.data.is_none() => bail!(
                    "eval: {} comes without a recipe; name one, or give --data FILE",
                    path.display()
                ),
                None => recipe::over(of_model(path)?, &flags.overrides)?,
            };
            (table, Found::Folder(folder))
        }
        (None, None) => bail!("eval: need a recipe, the folder of a run, or --model"),
    };
    Ok(Job { recipe, model, on })
}

/// The folder of a run: a path, or the name of one in runs/ that is no recipe's.
fn run_folder(name: &str) -> Option<PathBuf> {
    let direct = PathBuf::from(name);
    if direct.is_dir() {
        return Some(direct);
    }
    let known = recipe::is_built_in(name) || direct.is_file() || direct.components().count() != 1;
    let named = Path::new("runs").join(name);
    (!known && named.is_dir()).then_some(named)
}

fn on(flags: &Flags) -> Result<On> {
    let part = flags.part.map(|part| match part {
        Part::Valid => data::Part::Valid,
        Part::Test => data::Part::Test,
    });
    match &flags.data {
        Some(file) if Path::new(file).is_file() => match part {
            Some(_) => bail!("--part: {file} is a file, which is measured as a whole"),
            None => Ok(On::File(file.into())),
        },
        // What looks like a path was meant as one; no data set has a dot in its name.
        Some(file) if file.contains(['/', '\\', '.']) => bail!("--data: there is no file {file}"),
        set => Ok(On::Set { set: set.clone(), part }),
    }
}
