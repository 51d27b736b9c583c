//! Evaluation of every task except translation.

use super::details::details;
use super::{Flags, Global, Job, Outcome};
use crate::cli::inputs::note;
use crate::cli::say::say;
use crate::cli::write_json;
use crate::machine;
use crate::models::ResolvedModel;
use crate::show::table::Table;
use crate::show::terminal;
use anyhow::{Context, Result, anyhow};
use regard_tasks::data::Part;
use regard_tasks::evaluation::{Details, EvaluationData, Prediction, Report};
use regard_tasks::import::Places;
use regard_tasks::recipe::{self, Task};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::io::Write;

pub fn run(job: Job, flags: &Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let mut task = recipe::task(job.recipe).map_err(|message| anyhow!("{message}"))?;
    if let Some(seed) = global.seed {
        task.set_seed(seed);
    }
    let report = task.evaluate(&job.files, &job.on);
    let mut report = match &job.on {
        EvaluationData::Set { set: Some(set), .. } => {
            report.with_context(|| format!("--data {set}"))?
        }
        _ => report?,
    };
    if let Some(own) = &job.own {
        // What was read of the user's file has been said; the columns are those of a copy.
        (report.data, report.part, report.columns) = (own.shown.clone(), None, None);
    }
    let places = match (&job.own, &job.model, &job.on, report.part) {
        (Some(own), ..) => own.places.clone(),
        (_, ResolvedModel::Folder(run), EvaluationData::Set { set: None, .. }, Some(part)) => {
            Places::of_run(&run.path, part)
        }
        _ => Places::default(),
    };
    if let Some(details) = &mut report.details {
        details.locate(&places);
    }
    if let Some(columns) = &report.columns {
        say(columns);
    }
    match global.json {
        true => {
            let mut evaluated = Evaluated::new(&*task, &report);
            evaluated.predictions = flags.predictions.then(|| predictions(&report, &places));
            write_json(out, &evaluated)?
        }
        false => write!(out, "{}", text(task.name(), &report))?,
    }
    if flags.details && !global.json {
        match details(&report, terminal::width()) {
            none if none.is_empty() => note(&format!("--details: {} has none", task.task())),
            found => write!(out, "\n{found}")?,
        }
    }
    Ok(Outcome::Positive)
}

/// Predictions with the names of their labels.
fn predictions(report: &Report, places: &Places) -> Vec<Value> {
    let Some(details) = &report.details else { return vec![] };
    let name = |at: usize| details.labels.get(at).map(|label| label.label.as_str());
    let one = |found: &Prediction| {
        json!({
            "label": name(found.right),
            "predicted": found.said.and_then(name),
            // As text: readers of JSON take numbers for floats.
            "input": format!("{:016x}", found.input),
            "text": found.text,
            "place": found.number.and_then(|number| places.get(number)),
        })
    };
    details.predictions.iter().map(one).collect()
}

fn part(report: &Report) -> Option<&'static str> {
    report.part.map(|part| match part {
        Part::Train => "train",
        Part::Valid => "valid",
        Part::Test => "test",
    })
}

/// An evaluation, as `--json` prints it.
#[derive(Serialize)]
struct Evaluated<'a> {
    name: &'a str,
    task: &'a str,
    data: &'a str,
    part: Option<&'static str>,
    asked: usize,
    unit: &'static str,
    excluded: usize,
    parameters: usize,
    seconds: f64,
    peak_memory: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a Details>,
    #[serde(skip_serializing_if = "Option::is_none")]
    predictions: Option<Vec<Value>>,
    /// Each metric under its own name.
    #[serde(flatten)]
    marks: Map<String, Value>,
}

impl Evaluated<'_> {
    fn new<'a>(task: &'a dyn Task, report: &'a Report) -> Evaluated<'a> {
        let marks = report.marks.iter().map(|mark| (mark.name.to_string(), mark.value.into()));
        Evaluated {
            name: task.name(),
            task: task.task(),
            data: &report.data,
            part: part(report),
            asked: report.asked,
            unit: report.unit,
            excluded: report.excluded,
            parameters: report.parameters,
            seconds: report.seconds,
            peak_memory: machine::peak_memory(),
            note: report.note.as_deref(),
            details: report.details.as_ref(),
            predictions: None,
            marks: marks.collect(),
        }
    }
}

/// Formats the metrics of a report; `name` is that of the recipe.
pub fn text(name: &str, report: &Report) -> String {
    let Report { data, asked, unit, excluded, seconds, .. } = report;
    let part = part(report).map_or(String::new(), |part| format!(", {part}"));
    let mut text = format!("{name}: {asked} {unit} of {data}{part} in {seconds:.1} s\n");
    if *excluded > 0 {
        text += &format!("{excluded} {unit} excluded: they occur in the training set\n");
    }
    if let Some(note) = &report.note {
        text += &format!("{note}\n");
    }
    let mut table = Table::new(["metric", "value", ""]);
    for mark in &report.marks {
        table.row([mark.name.into(), format!("{:.4}", mark.value), mark.unit.into()]);
    }
    text + &table.render("", None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use regard_tasks::evaluation::Metric;

    #[test]
    fn a_report_says_what_was_left_out() {
        let report = Report {
            data: "sst2-sentences".into(),
            part: Some(Part::Test),
            asked: 1815,
            unit: "texts",
            excluded: 6,
            note: Some("a note".into()),
            columns: None,
            marks: vec![Metric { name: "accuracy", value: 80.0, unit: "% of texts" }],
            parameters: 1,
            seconds: 2.0,
            details: None,
        };
        let told = text("sst2-words", &report);
        let wanted = "sst2-words: 1815 texts of sst2-sentences, test in 2.0 s\n\
                      6 texts excluded: they occur in the training set\na note\n";
        assert!(told.starts_with(wanted), "{told}");
    }
}
