//! `regard train TASK --data FILE`: training on files of the user.

use super::Flags;
use super::eta::readable;
use super::plan::{Plan, default_folder};
use crate::cli::columns::ColumnFlags;
use crate::cli::runs::use_of;
use crate::cli::say::{quoted, say};
use crate::cli::{Global, Outcome, eval, write_json};
use crate::hub::Hub;
use crate::{models, recipe};
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use regard_models::text::Head;
use regard_tasks::data::Part;
use regard_tasks::import::preset::{self, Choice, Wish};
use regard_tasks::import::{
    self, DATA, Effort, Finding, Findings, IMPORTERS, Import, Request, Severity, TrainedImport,
};
use regard_tasks::reader::TextEncoder;
use regard_tasks::recipe::Task;
use regard_tasks::say as words;
use regard_tasks::train::{self, Lock};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Flags for files of the user.
#[derive(Args)]
#[command(next_help_heading = "Your own data")]
pub struct OwnFlags {
    /// Your data: a file, a folder, or several; RECIPE is then a task, such as classify
    #[arg(long, value_name = "FILE")]
    data: Vec<PathBuf>,
    /// Validation part [default: a tenth of --data, by seed]
    #[arg(long, value_name = "FILE", requires = "data")]
    valid: Vec<PathBuf>,
    /// Test part [default: a tenth of --data, by seed]
    #[arg(long, value_name = "FILE", requires = "data")]
    test: Vec<PathBuf>,
    #[command(flatten)]
    columns: ColumnFlags,
    /// Side of images in pixels; they are resized to it
    #[arg(long, value_name = "N", requires = "data", value_parser = clap::value_parser!(u16).range(8..=512))]
    image_size: Option<u16>,
    /// Train at most 2 minutes on two cores
    #[arg(long, requires = "data", conflicts_with = "better")]
    quick: bool,
    /// Train a larger model, at most 90 minutes [default: at most 15 minutes]
    #[arg(long, requires = "data")]
    better: bool,
    /// Fine-tune a pretrained model: a folder, a run, or a Hugging Face Hub id; also for a recipe
    /// with the key `from`
    #[arg(long, value_name = "MODEL", conflicts_with = "resume")]
    pub from: Option<String>,
    /// Check the data and print the recipe, without training
    #[arg(long, requires = "data")]
    dry_run: bool,
}

impl OwnFlags {
    /// Whether the command trains on files of the user.
    pub fn is_used(&self) -> bool {
        !self.data.is_empty()
    }

    fn effort(&self) -> Effort {
        match (self.quick, self.better) {
            (true, _) => Effort::Quick,
            (_, true) => Effort::Better,
            _ => Effort::Default,
        }
    }

    fn request(&self, task: &str, seed: u64) -> Request {
        let mut request = Request::new(task);
        request.data = self.data.clone();
        request.valid = self.valid.clone();
        request.test = self.test.clone();
        self.columns.apply(&mut request);
        request.image_size = self.image_size.map(usize::from);
        request.seed = seed;
        request
    }
}

/// Whether a word names a task that can be trained on files of the user.
pub fn is_task(name: &str) -> bool {
    IMPORTERS.iter().any(|row| row.task == name)
}

/// The next thing to do with the user's data.
pub enum Prepared {
    /// Train.
    Plan(Plan),
    /// Nothing: the check is over.
    Checked(Outcome),
}

/// Reads and checks the data, chooses a recipe, and writes the data into the run's folder.
pub fn prepare(flags: &Flags, global: &Global, out: &mut dyn Write) -> Result<Prepared> {
    let own = &flags.own;
    let task = flags.recipe.as_deref().expect("clap asks for one");
    if !is_task(task) {
        let tasks: Vec<&str> = IMPORTERS.iter().map(|row| row.task).collect();
        let mean = words::did_you_mean(task, &tasks);
        bail!(
            "--data goes with a task, not with {task:?}; {mean}tasks are {}: regard train {} \
             --data {}",
            tasks.join(", "),
            tasks[0],
            quoted(own.data[0].display())
        );
    }
    let seed = global.seed.unwrap_or(0);
    let (import, findings) = import::read(&own.request(task, seed))?;
    let folder = match &flags.out {
        Some(folder) => folder.clone(),
        None => default_folder(&name_of(own, task))?,
    };
    let quiet = own.dry_run && global.json;
    if let (Some(import), false) = (&import, quiet) {
        import.summary.iter().for_each(say);
    }
    let told = findings.text();
    if !told.is_empty() && !quiet {
        say(told.trim_end());
    }
    let Some(import) = import else {
        if quiet {
            write_json(out, &Check::refused(findings.list()))?;
            return Ok(Prepared::Checked(Outcome::Negative));
        }
        let told = refused(&findings);
        if own.dry_run {
            say(told);
            return Ok(Prepared::Checked(Outcome::Negative));
        }
        bail!("{told}; --dry-run --json lists all");
    };
    // After the data, whose errors need no download.
    let longest = own.from.as_deref().map(|from| longest(from, flags.offline)).transpose()?;
    let name = folder.file_name().map_or(task.into(), |name| name.to_string_lossy());
    let wish = Wish {
        name: &name,
        folder: &folder.join(DATA),
        effort: own.effort(),
        from: own.from.as_deref(),
        longest,
        seed,
    };
    let chosen = preset::choose(&import, &wish)?;
    flags.check_lora(task)?;
    let table = recipe::over(chosen.recipe.clone(), &flags.overrides())?;
    let mut recipe = regard_tasks::recipe::task(table).map_err(|message| anyhow!("{message}"))?;
    recipe.set_seed(seed);
    recipe.options().check()?;
    let chosen = changed(chosen, &*recipe);
    if quiet {
        write_json(out, &Check::fine(&import, findings.list(), &chosen, recipe.to_json()))?;
        return Ok(Prepared::Checked(Outcome::Positive));
    }
    let planned = about(&import, &chosen, &recipe.to_json(), own.effort());
    match flags.overrides.is_empty() {
        true => say(planned),
        false => say(format_args!("{planned}; changed by --set")),
    }
    chosen.note.iter().for_each(say);
    if own.dry_run {
        write!(out, "{}", recipe.to_toml())?;
        say("the data are fine; without --dry-run this recipe is trained");
        return Ok(Prepared::Checked(Outcome::Positive));
    }
    let data = match flags.dump_config {
        true => None,
        false => Some(write_data(&import, &folder)?),
    };
    Ok(Prepared::Plan(Plan { recipe, folder, resume: false, data }))
}

/// Sentence about data that cannot be trained on.
fn refused(findings: &Findings) -> String {
    let count = findings.count(Severity::Error);
    let mut errors = findings.list().iter().filter(|each| each.severity == Severity::Error);
    let skip = match errors.all(|each| each.is_row) {
        true => "; --skip-bad leaves such rows out",
        false => "",
    };
    format!("{} in the data, nothing was trained{skip}", words::many(count, "problem"))
}

/// Removes the data of a run that did not begin, and its folder if nothing else is in it.
pub fn remove_data(folder: &Path) {
    if train::is_run(folder) || !train::seed_folders(folder).is_empty() || !is_own(folder) {
        return;
    }
    // A folder that cannot be removed is left: the error of the run is the one to print.
    let _ = std::fs::remove_dir_all(folder.join(DATA));
    let _ = std::fs::remove_file(folder.join(super::seeds::PLAN));
    let _ = std::fs::remove_dir(folder);
}

/// Longest text that a pretrained model reads, in tokens.
fn longest(from: &str, offline: bool) -> Result<usize> {
    let found = models::origin(from, &Hub { offline, ..Hub::default() }).context("--from")?;
    Ok(TextEncoder::load(&*found.path, Head::Bare).context("--from")?.longest())
}

/// Name of the run: that of the data.
fn name_of(own: &OwnFlags, task: &str) -> String {
    let path = &own.data[0];
    let stem = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = stem.split('.').next().unwrap_or_default();
    let plain: String = stem
        .chars()
        .map(|c| if c.is_alphanumeric() || "-_".contains(c) { c } else { '-' })
        .collect();
    match plain.trim_matches('-') {
        "" | "train" | "data" | "nodes" => format!("own-{task}"),
        name => format!("{name}-{task}"),
    }
}

/// Choice with the epochs and the time of the steps that --set asks for.
fn changed(mut chosen: Choice, recipe: &dyn Task) -> Choice {
    let number = |key: &str| chosen.recipe.get("train")?.get(key)?.as_integer();
    let options = recipe.to_json();
    let ratio = |key: &str| {
        let now = options.pointer(&format!("/train/{key}")).and_then(|value| value.as_f64());
        now.zip(number(key)).map_or(1.0, |(now, before)| now / (before as f64).max(1.0))
    };
    let factor = ratio("steps") * ratio("batch_tokens");
    (chosen.epochs, chosen.seconds) = (chosen.epochs * factor, chosen.seconds * factor);
    chosen
}

/// Sentence about the recipe, as --set changed it.
fn about(import: &Import, chosen: &Choice, recipe: &serde_json::Value, effort: Effort) -> String {
    let text = |key: &str| recipe.pointer(key).and_then(|value| value.as_str());
    let steps = recipe.pointer("/train/steps");
    let model = match text("/from") {
        Some(from) => format!("fine-tune {from}"),
        None => text("/model/model_type").unwrap_or("model").to_string(),
    };
    format!(
        "recipe for {} ({}): {model}, {} steps, {:.1} epochs, about {} on two cores",
        import.task,
        effort.name(),
        steps.map_or(String::new(), ToString::to_string),
        chosen.epochs,
        readable(Duration::from_secs_f64(chosen.seconds.max(1.0))),
    )
}

/// Writes the data into the folder of the run, which must not hold another run or runs with several
/// seeds: they share the data.
fn write_data(import: &Import, folder: &Path) -> Result<Lock> {
    train::check_unlocked(folder)?;
    let seeds: Vec<String> =
        train::seed_folders(folder).iter().map(|(seed, _)| seed.to_string()).collect();
    if !seeds.is_empty() {
        let shown = quoted(folder.display());
        bail!(
            "{shown} holds runs with the seeds {}, which share the data in {shown}/{DATA}. To add \
             seeds: regard train --resume {shown} --seeds N; for new runs: --out {}",
            words::list(&seeds, 8),
            quoted(free(folder).display())
        );
    }
    if let Err(error) = train::check_folder(folder, false) {
        match train::is_run(folder) {
            true => bail!(
                "{error}: regard train --resume {}, or --out {}",
                quoted(folder.display()),
                quoted(free(folder).display())
            ),
            false => bail!(error),
        }
    }
    import.write_locked(&folder.join(DATA)).with_context(|| {
        format!(
            "choose another folder for the run, such as --out {}",
            quoted(free(folder).display())
        )
    })
}

/// A folder beside this one that does not exist.
fn free(folder: &Path) -> PathBuf {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let numbered = (2..).map(|n| folder.with_file_name(format!("{name}-{n}")));
    numbered.into_iter().find(|path| !path.exists()).expect("numbers do not end")
}

/// A check of the data, as `--dry-run --json` prints it.
#[derive(Serialize)]
struct Check<'a> {
    /// Whether the data can be trained on.
    fine: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<&'a str>,
    summary: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<Parts>,
    findings: &'a [Finding],
    #[serde(skip_serializing_if = "Option::is_none")]
    recipe: Option<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
}

#[derive(Serialize)]
struct Parts {
    train: usize,
    valid: usize,
    test: usize,
}

impl<'a> Check<'a> {
    fn refused(findings: &'a [Finding]) -> Check<'a> {
        Check {
            fine: false,
            task: None,
            summary: &[],
            parts: None,
            findings,
            recipe: None,
            seconds: None,
        }
    }

    fn fine(
        import: &'a Import,
        findings: &'a [Finding],
        chosen: &Choice,
        recipe: serde_json::Value,
    ) -> Check<'a> {
        let [train, valid, test] = import.parts;
        Check {
            fine: true,
            task: Some(import.task),
            summary: &import.summary,
            parts: Some(Parts { train, valid, test }),
            findings,
            recipe: Some(recipe),
            seconds: Some(chosen.seconds),
        }
    }
}

/// Command that labels the nodes of the tables that a run was trained on, without its model.
pub fn graph_command(folder: &Path) -> String {
    let trained = TrainedImport::of_run(folder).ok().flatten();
    match trained.as_ref().and_then(|trained| Some((trained.data.first()?, &trained.edges))) {
        Some((nodes, edges)) => {
            let edges = edges.as_ref().map(|edges| quoted(near(edges).display()));
            let edges = edges.map_or(String::new(), |edges| format!(" --edges {edges}"));
            format!("regard classify --graph {}{edges}", quoted(near(nodes).display()))
        }
        None => "regard classify --graph EDGES --nodes NODES".into(),
    }
}

/// Path as seen from the current folder, if it is below it.
pub fn near(path: &Path) -> &Path {
    let here = std::env::current_dir().ok();
    here.and_then(|here| path.strip_prefix(here).ok()).unwrap_or(path)
}

/// Whether a run was trained on imported files of the user.
pub fn is_own(folder: &Path) -> bool {
    folder.join(DATA).join(import::RECORD).is_file()
}

/// Metrics of a finished run on the part that was evaluated.
#[derive(Default)]
pub struct OwnMetrics {
    pub valid: Option<BTreeMap<&'static str, f64>>,
    pub test: Option<BTreeMap<&'static str, f64>>,
}

/// Returns the metrics of a finished run on its test part, or on its validation part if it has no
/// test part.
pub fn metrics(folder: &Path) -> Result<OwnMetrics> {
    let report = eval::of_run(folder)?.report;
    let marks = report.marks.into_iter().map(|mark| (mark.name, mark.value)).collect();
    Ok(match report.part {
        Some(Part::Valid) => OwnMetrics { valid: Some(marks), test: None },
        _ => OwnMetrics { valid: None, test: Some(marks) },
    })
}

/// Evaluates a finished run on its test part, and prints what to do next.
pub fn report(recipe: &dyn Task, folder: &Path, out: &mut dyn Write) -> Result<()> {
    out.flush()?;
    writeln!(out)?;
    let report = eval::of_run(folder).context("the model is trained, but its evaluation failed")?;
    write!(out, "{report}")?;
    writeln!(out, "\nNext:")?;
    let model = quoted(folder.display());
    let others = [format!("regard eval {model} --details"), format!("regard runs {model}")];
    for command in use_of(recipe.task(), folder).into_iter().chain(others) {
        writeln!(out, "  {command}")?;
    }
    Ok(())
}
