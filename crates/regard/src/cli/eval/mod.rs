//! `regard eval`: evaluation of a model.

pub mod details;
mod of_run;
mod others;
mod own;
mod translation;

pub use of_run::of_run;
pub use own::languages_of_model;

use super::columns::ColumnFlags;
use super::inputs::note;
use super::{Global, Outcome};
use crate::files::not_an_input;
use crate::hub::Hub;
use crate::models::{self, ResolvedModel};
use crate::recipe;
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use own::OwnExamples;
use regard_models::ModelFiles;
use regard_tasks::data::{self, ledger};
use regard_tasks::evaluation::{EvaluationData, data_sets};
use regard_tasks::recipe::{Table, of_model};
use regard_tasks::say::{did_you_mean, many, short};
use regard_tasks::train::{self, changed_data, is_run};
use std::io::Write;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Evaluates a model with the metrics of its task, on the test part of its recipe's data, on another
data set, or on files of yours.

Examples:
  regard eval --model en-fr --data pairs.tsv           # built-in model, your file
  regard eval tatoeba-en-fr-transformer --model en-fr  # needs the data set tatoeba-fra-eng
  regard eval multi30k-transformer --part valid        # the run in runs/multi30k-transformer
  regard eval runs/try --set decode.num_beams=1        # a run, by the recipe in its folder
  regard eval runs/reviews --data new.csv              # a run on your data: read as in training
  regard eval runs/try --details                       # also labels, confusions, worst examples
  regard eval --model gpt2 --data my-text.txt          # downloads GPT-2 from the Hub; your file

Metrics by task:
  translate       BLEU and chrF, or word and phoneme error rate
  generate        loss and perplexity per token, character, byte and word
  classify, classify-image, classify-graph, answer-story
                  accuracy; for texts and images also macro-F1
  tag             accuracy per word; for labels such as B-PER entity F1 as in seqeval
  answer          exact match and F1 of SQuAD
  rerank          MRR and NDCG at 10
  point           exactly correct answers; area of hulls, length of tours
  recognize       accuracy, or word and character error rate
  summarize       ROUGE
  fill            loss and accuracy of masked tokens, and of next-sentence prediction
On the validation part, values equal those of the run's own evaluations, except for translations:
training evaluates with greedy search, eval with the recipe's [decode] settings.

Runs that were trained by `regard train TASK --data FILE`: --data takes the same kinds of files and
folders, and reads them as training did, with the same columns, header, separator and labels.
--text, --label, --source, --target, --query and --no-header choose other columns; a graph also
needs --edges. What was read is printed. All examples are evaluated; of data with parts, the test
part or --part. A problem is an error, listed with its line, and so is a label that the run has not
learned; --skip-bad leaves such rows out.

Files for --data of other models:
  classify        .tsv, .csv or .jsonl with text and label (--text, --label)
  classify-image  an IDX file of images, with the IDX file of labels beside it
  tag             CoNLL-U
  answer          JSON of SQuAD, or a table (--context, --question, --answer)
  generate, fill  plain text; for fill, documents are separated by blank lines
  rerank          .tsv, .csv or .jsonl with query, text and label (--query, --text, --label)
  translate       .tsv, .csv or .jsonl with the source and its reference (--source, --target), or
                  two parallel files; columns called fr and en are those of the model's languages
  summarize       .tsv, .csv or .jsonl with a text and its summary (--source, --target)
  point           lines such as `0.1 0.2 0.9 0.1 0.5 0.7 output 1 2 3 1`
  recognize       .tsv, .csv or .jsonl with the path of a WAV file and its transcript (--text)
Every row is evaluated; the first one may be a header, unless --no-header is given. The columns that
are read are printed. In the test part of a data set, texts that occur in a classifier's training
set are left out and their number is printed.

--json prints an object with name, task, data, part, the metrics, the number of examples, and
details: precision, recall and F1 of each label, the confusion matrix, and the worst examples.";

/// Evaluate a model on a recipe's data, another data set, or a file
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Flags {
    /// Recipe (a name listed by `regard recipes`, or a TOML file) or folder of a run; optional if
    /// --model names a built-in model or a run, or if --data is given
    #[arg(value_name = "RECIPE or RUN")]
    recipe: Option<String>,
    /// Model: a folder, a name listed by `regard models`, or a Hugging Face Hub id [default: the
    /// run, or runs/ and the recipe's name]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Part (split) of the data [default: test, or valid if there is no test part]
    #[arg(long, value_enum)]
    part: Option<Part>,
    /// File, folder or name of another data set to evaluate on instead of the recipe's data; two
    /// files if they are parallel
    #[arg(long, value_name = "FILE or SET")]
    data: Vec<String>,
    /// Set a key of the recipe; can be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Also print the metrics of each label, confusions and the worst examples
    #[arg(long)]
    details: bool,
    /// With --json, also the prediction for each example with a label; used by regard compare
    #[arg(long, hide = true)]
    predictions: bool,
    /// Translations only: write them to this file, one per line
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Translations only: skip sources with fewer words (characters, for languages without spaces)
    #[arg(long, value_name = "N", default_value_t = 0)]
    min_words: usize,
    #[command(flatten)]
    columns: ColumnFlags,
    #[command(flatten)]
    hub: Hub,
}

#[derive(Clone, Copy, ValueEnum)]
enum Part {
    Valid,
    Test,
}

/// Model and data to evaluate, with the recipe.
struct Job {
    recipe: Table,
    model: ResolvedModel,
    /// Files of the model, to be quantised on load if that is asked for.
    files: ModelFiles,
    on: EvaluationData,
    /// Files of the user, if the run was trained on such files.
    own: Option<OwnExamples>,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    not_the_data(&flags)?;
    let job = job(&flags)?;
    let run = match (&job.model, &job.on) {
        (ResolvedModel::Folder(folder), EvaluationData::Set { set: None, .. })
            if job.own.is_none() =>
        {
            Some(folder.path.clone())
        }
        _ => None,
    };
    let (outcome, read) = ledger::paths(|| measure(&flags, job, global, out));
    let changed = run.map_or(Ok(vec![]), |run| changed_data(&run, &read))?;
    if !changed.is_empty() {
        let (count, first) = (changed.len(), changed[0].display());
        note(&format!(
            "{} changed since the run began, {first} first: the metrics are not comparable with \
             those of the run",
            many(count, "data file")
        ));
    }
    outcome
}

fn measure(flags: &Flags, job: Job, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let task = job.recipe.get("task").and_then(|task| task.as_str());
    if let (Some(task), EvaluationData::Set { set: Some(set), .. }) = (task, &job.on) {
        check_set(task, set)?;
    }
    match task {
        Some("translate") => translation::run(flags, job, global, out),
        _ if flags.save.is_some() || flags.min_words > 0 => {
            bail!("eval: --save and --min-words are for translations")
        }
        _ => others::run(job, flags, global, out),
    }
}

/// Refuses a value of --data that is neither a file nor a data set of the task.
fn check_set(task: &str, set: &str) -> Result<()> {
    let known = data_sets(task);
    // A task that does not exist has none, and is refused with its recipe.
    if known.is_empty() || known.contains(&set) || regard_tasks::own::sets(task).contains(&set) {
        return Ok(());
    }
    bail!(
        "--data: there is no file and no data set {:?} of this task; {}its data sets are {}",
        short(set, 100),
        did_you_mean(set, &known),
        known.join(", ")
    )
}

/// Refuses to overwrite the references with the translations.
fn not_the_data(flags: &Flags) -> Result<()> {
    let Some(save) = &flags.save else { return Ok(()) };
    let data: Vec<&Path> = flags.data.iter().map(Path::new).collect();
    not_an_input("--save", save, &data).context("--save would overwrite --data")
}

fn job(flags: &Flags) -> Result<Job> {
    let given = flags.model.as_deref().map(|model| models::resolve(model, &flags.hub));
    let given = given.transpose()?;
    let recorded = own::record(flags, trained_run(flags, &given).as_deref())?;
    let (mut recipe, model) = match (&flags.recipe, given) {
        (Some(name), given) if run_folder(name).is_some() => {
            let folder = run_folder(name).expect("it was just there");
            let seed = folder.join("seed-0");
            let table = recipe::of_run(&folder, &flags.overrides)?.with_context(|| match seed {
                seed if seed.is_dir() => {
                    let seed = seed.display();
                    format!("{name}: holds runs with several seeds; name one: regard eval {seed}")
                }
                _ => format!(
                    "{name}: holds no recipe.toml, so it is not a run. To evaluate a model, such as \
                     a quantised one, as the run that it was made of: regard eval RUN --model {name}"
                ),
            })?;
            (table, given.unwrap_or_else(|| of_run_folder(folder)))
        }
        (Some(name), given) => {
            check_recipe(name)?;
            let table = recipe::table(name, &flags.overrides)?;
            let own = table.get("name").and_then(|name| name.as_str()).unwrap_or(name);
            let own = Path::new("runs").join(own);
            match given {
                Some(given) => (table, given),
                None if !own.is_dir() => {
                    bail!("eval: no run in {}; to train it: regard train {name}", own.display())
                }
                // The run may have been trained with other settings than the recipe, such as custom
                // data: it is evaluated with the recipe that it recorded.
                None => {
                    let of_run = recipe::of_run(&own, &flags.overrides)?;
                    (of_run.unwrap_or(table), of_run_folder(own))
                }
            }
        }
        (None, Some(ResolvedModel::Shipped(model))) => {
            (recipe::table(model.recipe, &flags.overrides)?, ResolvedModel::Shipped(model))
        }
        (None, Some(ResolvedModel::Folder(folder))) => {
            let path = &folder.path;
            let table = match recipe::of_run(path, &flags.overrides)? {
                Some(table) => table,
                None if flags.data.is_empty() => bail!(
                    "eval: {} comes without a recipe; name one, or pass --data FILE",
                    path.display()
                ),
                None => recipe::over(of_model(path)?, &flags.overrides)?,
            };
            (table, ResolvedModel::Folder(folder))
        }
        (None, None) => bail!("eval: need a recipe, the folder of a run, or --model"),
    };
    let trained = recorded.or_else(|| own::of_model(flags, &recipe, &model));
    let own = trained.map(|trained| own::read(flags, trained)).transpose()?;
    let on = match &own {
        Some(own) => {
            own.name_files(&mut recipe);
            own.on.clone()
        }
        None => {
            own::set_columns(flags, &mut recipe)?;
            on(flags)?
        }
    };
    let files = models::stored(&model, &flags.hub)?;
    Ok(Job { recipe, model, files, on, own })
}

/// The model of a run.
fn of_run_folder(folder: PathBuf) -> ResolvedModel {
    models::note_unfinished(&folder);
    ResolvedModel::folder(folder)
}

/// Folder of the run to evaluate, if there is one.
fn trained_run(flags: &Flags, given: &Option<ResolvedModel>) -> Option<PathBuf> {
    let folder = match given {
        Some(ResolvedModel::Folder(folder)) => Some(folder.path.clone()),
        _ => None,
    };
    flags.recipe.as_deref().and_then(run_folder).or(folder)
}

/// Refuses a name that is neither a recipe's nor a run's. Errors of files are those of reading them.
fn check_recipe(name: &str) -> Result<()> {
    let is_path = name.contains(['/', '\\']) || name.ends_with(".toml");
    if recipe::is_built_in(name) || is_path || Path::new(name).is_file() {
        return Ok(());
    }
    if models::SHIPPED.iter().any(|model| model.name == name) {
        bail!("eval: {name} is a built-in model, not a recipe: regard eval --model {name}");
    }
    let runs = train::runs(Path::new("runs")).unwrap_or_default();
    let runs = runs.iter().map(|run| run.name.as_str());
    let known: Vec<&str> = recipe::RECIPES.iter().map(|(name, _)| *name).chain(runs).collect();
    bail!(
        "there is no recipe, run or file {:?}; {}`regard recipes` and `regard runs` list them",
        short(name, 100),
        did_you_mean(name, &known)
    )
}

/// Folder of a run: a path, or a name in runs/ that is not a recipe's.
fn run_folder(name: &str) -> Option<PathBuf> {
    let (direct, named) = (PathBuf::from(name), Path::new("runs").join(name));
    let is_name = direct.components().count() == 1;
    // A folder that happens to have the name of a run does not hide it.
    let hides = |direct: &Path| is_name && is_run(&named) && !is_run(direct);
    if direct.is_dir() && !hides(&direct) {
        return Some(direct);
    }
    let known = recipe::is_built_in(name) || direct.is_file() || !is_name;
    (!known && named.is_dir()).then_some(named)
}

fn on(flags: &Flags) -> Result<EvaluationData> {
    let part = flags.part.map(|part| match part {
        Part::Valid => data::Part::Valid,
        Part::Test => data::Part::Test,
    });
    match flags.data.first() {
        Some(file) if Path::new(file).is_file() => match part {
            Some(_) => bail!("--part: {file} is a file, which is evaluated as a whole"),
            None => Ok(EvaluationData::File(file.into())),
        },
        Some(folder) if Path::new(folder).is_dir() => bail!(
            "--data: {folder} is a folder, which is read for runs that were trained by regard train \
             TASK --data, and for translations. The labels of a built-in model for your files: \
             `regard classify --image {folder}/*/*.png`, `regard recognize {folder}/*/*.wav`"
        ),
        // Looks like a path: no data set has a dot in its name.
        Some(file) if file.contains(['/', '\\', '.']) => bail!("--data: there is no file {file}"),
        set => Ok(EvaluationData::Set { set: set.cloned(), part }),
    }
}
