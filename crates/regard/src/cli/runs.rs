//! `regard runs`: list of training runs, and details of one.

use super::say::quoted;
use super::train::SeedPlan;
use super::train::own::{graph_command, near};
use super::{Global, Outcome, write_json};
use crate::show::table::{Rows, Table};
use crate::show::{bytes, label, terminal};
use anyhow::{Result, bail};
use clap::Args;
use regard_tasks::evaluation::is_percentage;
use regard_tasks::import::TrainedImport;
use regard_tasks::train::{self, LoggedEvaluation, RunDetails, RunStatus, RunSummary};
use regard_tasks::{pipeline, say};
use serde::Serialize;
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Narrowest terminal with all columns of the list.
const WIDE: usize = 90;
/// Largest number of data files that are listed.
const FILES: usize = 10;

/// List training runs, or show one with its metrics and the next commands
#[derive(Args)]
#[command(after_help = "\
Lists the runs below runs/, the last changed first: task, data, best value of the model selection
metric on the validation data, date in UTC, and state:
  done            all steps were completed
  stopped early   the model did not improve any more
  running         a process is training there
  interrupted     regard train --resume RUN continues
  seeds: 2 of 3   runs with several seeds, and how many have ended
  damaged         a file cannot be read, with the reason

Examples:
  regard runs
  regard runs sst2-words                           # needs: regard train sst2-words
  regard runs --json | jq -r '.[] | select(.state == \"interrupted\") | .folder'

With a name, shows its recipe, data files, the last and the best evaluation, and the commands to use
next; checkpoints are compared with their checksums. Every command takes a run by its folder or by
its name in runs/: regard eval RUN, regard classify --model RUN.")]
pub struct Flags {
    /// Run to show: its name, or its folder
    run: Option<String>,
    /// Folder of the runs
    #[arg(long, value_name = "FOLDER", default_value = "runs")]
    folder: PathBuf,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    match &flags.run {
        Some(run) => show(&find(run, &flags.folder)?, global, out)?,
        None => list(&flags.folder, global, out)?,
    }
    Ok(Outcome::Positive)
}

/// Runs below a folder. The default folder is made by the first run.
fn runs(folder: &Path) -> Result<Vec<RunSummary>> {
    match folder.is_dir() {
        true => Ok(train::runs(folder)?),
        false if folder == Path::new("runs") => Ok(vec![]),
        false => bail!("--folder: there is no folder {}", folder.display()),
    }
}

/// Finds a run by its name below a folder, or by its own folder.
fn find(asked: &str, folder: &Path) -> Result<RunDetails> {
    let places = [folder.join(asked), PathBuf::from(asked)];
    if let Some(found) = places.iter().find_map(|place| RunDetails::of(place)) {
        return Ok(found);
    }
    let known = runs(folder)?;
    let names: Vec<&str> = known.iter().map(|run| run.name.as_str()).collect();
    let there = match names.is_empty() {
        true => format!("there is none in {}", folder.display()),
        false => format!("{}: {}", folder.display(), say::list(&names, 12)),
    };
    let asked_short = say::short(asked, 100);
    bail!("there is no run {asked_short:?}; {}{there}", say::did_you_mean(asked, &names))
}

/// Text of a file or folder name without control characters.
fn plain(text: &str) -> String {
    label(text, usize::MAX)
}

fn list(folder: &Path, global: &Global, out: &mut dyn Write) -> Result<()> {
    let all = runs(folder)?;
    if global.json {
        return write_json(out, &all);
    }
    if all.is_empty() {
        let place = folder.display();
        match train::is_run(folder) {
            true => writeln!(out, "{place} is a run: regard runs {}", quoted(folder.display()))?,
            false => writeln!(out, "no runs in {place}; `regard train --help` tells how to train")?,
        }
        return Ok(());
    }
    let width = terminal::width_of_terminal();
    let with_data = width.is_none_or(|width| width >= WIDE);
    let mut heading = vec!["name", "task", "data", "best", "changed (UTC)", "state"];
    if !with_data {
        heading.remove(2);
    }
    let row = |run: &RunSummary| {
        let or_dash = |text: &Option<String>| text.as_deref().map_or("–".into(), plain);
        let mut row = vec![
            plain(&run.name),
            or_dash(&run.task),
            or_dash(&run.data),
            best(run),
            run.changed.as_deref().map_or("–".into(), date),
            plain(&run.status.to_string()),
        ];
        if !with_data {
            row.remove(2);
        }
        row
    };
    let heading = heading.into_iter().map(str::to_string).collect();
    let table = Rows { heading, rows: all.iter().map(row).collect() };
    write!(out, "{}", table.render("", width))?;
    Ok(())
}

/// Name and best value of the model selection metric.
fn best(run: &RunSummary) -> String {
    let Some(value) = run.best else { return "–".into() };
    let metric = run.metric.as_deref().unwrap_or_default();
    let metric = metric.strip_prefix("valid_").unwrap_or(metric);
    // The unit comes after the value.
    let unit = unit(metric);
    let metric = metric.split_once(", ").map_or(metric, |(metric, _)| metric);
    let of = if let RunStatus::Seeds { .. } = run.status { " (mean)" } else { "" };
    plain(&format!("{metric} {}{unit}{of}", number(value)))
}

/// Unit of a metric, after its value.
fn unit(metric: &str) -> &'static str {
    if is_percentage(metric) { " %" } else { "" }
}

fn number(value: f64) -> String {
    if value != 0.0 && value.abs() < 0.1 { format!("{value:.5}") } else { format!("{value:.2}") }
}

/// Date and minute of a time such as `2025-01-31T12:00:00Z`.
fn date(time: &str) -> String {
    let (day, rest) = time.split_once('T').unwrap_or((time, ""));
    format!("{day} {}", rest.get(..5).unwrap_or(rest))
}

/// A run and the commands to use next, as `--json` prints it.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    run: &'a RunDetails,
    next: Vec<String>,
}

fn show(run: &RunDetails, global: &Global, out: &mut dyn Write) -> Result<()> {
    let next = next(run);
    if global.json {
        return write_json(out, &Shown { run, next });
    }
    let RunSummary { name, folder, recipe, task, data, changed, status, .. } = &run.summary;
    writeln!(out, "{}: {}", plain(name), plain(&status.to_string()))?;
    let setting = |key: &str| run.settings.as_ref().and_then(|table| table.pointer(key));
    let text = |key: &str| setting(key).and_then(Value::as_str).map(str::to_string);
    let parameters = run.summary.parameters.map(say::count);
    for (key, value) in [
        ("folder", Some(folder.display().to_string())),
        ("recipe", recipe.clone()),
        ("about", text("/about").filter(|about| !about.is_empty())),
        ("task", task.clone()),
        ("data", data.clone()),
        ("from", text("/from")),
        ("model", text("/model/model_type")),
        ("parameters", parameters),
        ("training", training(run)),
        ("seed", setting("/seed").map(Value::to_string)),
        ("best", run.summary.best.map(|_| best(&run.summary))),
        ("changed", changed.as_deref().map(|time| date(time) + " UTC")),
    ] {
        if let Some(value) = value {
            writeln!(out, "{key:<12}{}", plain(&value))?;
        }
    }
    for problem in &run.problems {
        writeln!(out, "damaged     {}", plain(problem))?;
    }
    evaluations(run, out)?;
    seeds(run, out)?;
    files(run, out)?;
    if !next.is_empty() {
        writeln!(out, "\nNext:")?;
    }
    for command in next {
        writeln!(out, "  {}", plain(&command))?;
    }
    Ok(())
}

/// Number of steps and the learning rate, in a phrase.
fn training(run: &RunDetails) -> Option<String> {
    let train = run.settings.as_ref()?.get("train")?;
    let (steps, lr) = (train.get("steps")?, train.get("lr")?);
    let done = run.checkpoints.last().map_or(String::new(), |step| format!("step {step} of "));
    let patience = train.get("patience").and_then(Value::as_u64).filter(|patience| *patience > 0);
    let patience = patience.map_or(String::new(), |n| format!(", patience {n}"));
    Some(format!("{done}{steps} steps, learning rate {lr}{patience}"))
}

/// Prints the metrics of the best and the last evaluation, side by side.
fn evaluations(run: &RunDetails, out: &mut dyn Write) -> Result<()> {
    let RunDetails { last, best_evaluation: best, averaged, .. } = run;
    let Some(last) = last else { return Ok(()) };
    let best = best.as_ref().filter(|best| best.step != last.step);
    let columns: Vec<(String, &LoggedEvaluation)> = best
        .map(|best| (format!("best, step {}", best.step), best))
        .into_iter()
        .chain([(format!("last, step {}", last.step), last)])
        .collect();
    let heading = ["metric".to_string()].into_iter();
    let heading = heading.chain(columns.iter().map(|(title, _)| title.clone())).collect();
    let row = |name: &String| {
        let value = |evaluation: &LoggedEvaluation| match evaluation.metrics.get(name) {
            Some(Some(value)) => format!("{value:.4}{}", unit(name)),
            _ => "–".to_string(),
        };
        let values = columns.iter().map(|(_, evaluation)| value(evaluation));
        [plain(name)].into_iter().chain(values).collect()
    };
    let table = Rows { heading, rows: last.metrics.keys().map(row).collect() };
    write!(out, "\n{}", table.render("", terminal::width_of_terminal()))?;
    if let Some(averaged) = averaged {
        let each = averaged.metrics.iter().filter_map(|(name, value)| {
            let name = name.trim_start_matches("averaged_");
            Some(format!("{} {:.4}{}", plain(name), (*value)?, unit(name)))
        });
        writeln!(out, "average of the last checkpoints: {}", each.collect::<Vec<_>>().join(", "))?;
    }
    Ok(())
}

fn seeds(run: &RunDetails, out: &mut dyn Write) -> Result<()> {
    if run.seeds.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(["seed", "best", "state"]);
    for seed in &run.seeds {
        table.row([plain(&seed.name), best(seed), plain(&seed.status.to_string())]);
    }
    write!(out, "\n{}", table.render("", terminal::width_of_terminal()))?;
    Ok(())
}

fn files(run: &RunDetails, out: &mut dyn Write) -> Result<()> {
    if run.files.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(["data file", "size"]);
    for file in run.files.iter().take(FILES) {
        table.row([plain(&file.path.display().to_string()), bytes(file.bytes)]);
    }
    write!(out, "\n{}", table.render("", None))?;
    match run.files.len().saturating_sub(FILES) {
        0 => {}
        more => writeln!(out, "… and {}; --json lists all", say::many(more, "file"))?,
    }
    Ok(())
}

/// Commands to use next.
fn next(run: &RunDetails) -> Vec<String> {
    let folder = &run.summary.folder;
    let quote = |folder: &Path| quoted(folder.display());
    let mut all = vec![];
    if let Some(seed) = run.seeds.first() {
        let seed = quote(&seed.folder);
        all.push(format!("regard eval {seed}"));
        all.push(format!("regard runs {seed}"));
        // Without a plan, the seeds that were wanted are unknown.
        if let RunStatus::Seeds { running: false, .. } = run.summary.status {
            all.extend(SeedPlan::of(folder).and_then(|plan| plan.rest(folder)));
        }
        return all;
    }
    if let RunStatus::Interrupted { .. } = run.summary.status {
        all.push(format!("regard train --resume {}", quote(folder)));
    }
    if train::find(folder).is_ok() {
        all.push(format!("regard eval {} --details", quote(folder)));
        all.extend(run.summary.task.as_deref().and_then(|task| use_of(task, folder)));
    }
    all
}

/// Command that uses a model of a task; `None` if no command does.
pub fn use_of(task: &str, folder: &Path) -> Option<String> {
    let model = quoted(folder.display());
    if task == "classify-graph" {
        return Some(format!("{} --model {model}", graph_command(folder)));
    }
    let verb = pipeline::task(task)?.verb;
    if task == "rerank" {
        return Some(format!("printf 'A text.\\nAnother.\\n' | {verb} 'A query' --model {model}"));
    }
    let media = |other: &str| {
        let trained = TrainedImport::of_run(folder).ok().flatten();
        let file = trained.and_then(|trained| trained.example());
        file.map_or(format!(" {other}"), |file| format!(" {}", quoted(near(&file).display())))
    };
    let (image, sound) = (media("FILE.png"), media("FILE.wav"));
    let (before, after) = match task {
        "classify-image" => (image.as_str(), ""),
        "recognize" => (sound.as_str(), ""),
        "answer" | "answer-story" => (" 'A question?'", " --context 'A text.'"),
        "point" => (" '0.1 0.2  0.9 0.1  0.5 0.7'", ""),
        "fill" => (" 'A [MASK] text.'", ""),
        "generate" => (" 'A beginning'", ""),
        "chat" => ("", ""),
        _ => (" 'A text.'", ""),
    };
    Some(format!("{verb}{before}{after} --model {model}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_with_a_verb_has_a_command() {
        for row in pipeline::TASKS {
            let command = use_of(row.name, Path::new("runs/my run")).unwrap();
            assert!(command.contains(row.verb), "{command}");
            assert!(command.ends_with(" --model 'runs/my run'"), "{command}");
        }
        assert_eq!(use_of("permute", Path::new("x")), None);
    }

    #[test]
    fn values_have_their_unit() {
        assert_eq!((number(85.25), number(0.012_34)), ("85.25".into(), "0.01234".into()));
        assert_eq!(date("2025-01-31T12:34:56Z"), "2025-01-31 12:34");
        assert_eq!(date(""), " ");
        let run = |metric: &str| RunSummary {
            name: "mine".into(),
            folder: "runs/mine".into(),
            recipe: None,
            task: None,
            data: None,
            metric: Some(metric.into()),
            best: Some(82.05),
            best_step: None,
            parameters: None,
            changed: None,
            status: RunStatus::Done { step: 1 },
        };
        for (metric, wanted) in [
            ("valid_accuracy", "accuracy 82.05 %"),
            ("accuracy, percent", "accuracy 82.05 %"),
            ("valid_mrr", "mrr 82.05 %"),
            ("valid_bleu", "bleu 82.05"),
            ("valid_loss", "loss 82.05"),
        ] {
            assert_eq!(best(&run(metric)), wanted);
        }
    }
}
