//! Any task but translation.

use super::{Global, Job, Outcome};
use crate::cli::write_json;
use crate::machine;
use crate::show::table::Table;
use anyhow::{Context, Result, anyhow};
use regard_tasks::data::Part;
use regard_tasks::examine::{On, Report};
use regard_tasks::recipe::{self, Task};
use serde_json::{Value, json};
use std::io::Write;

pub fn run(job: Job, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let mut task = recipe::task(job.recipe).map_err(|message| anyhow!("{message}"))?;
    if let Some(seed) = global.seed {
        task.set_seed(seed);
    }
    let report = task.examine(&job.model.files(), &job.on);
    let report = match &job.on {
        On::Set { set: Some(set), .. } => report.with_context(|| format!("--data {set}"))?,
        _ => report?,
    };
    match global.json {
        true => write_json(out, &object(&*task, &report))?,
        false => write!(out, "{}", text(&*task, &report))?,
    }
    Ok(Outcome::Positive)
}

fn part(report: &Report) -> Option<&'static str> {
    report.part.map(|part| match part {
        Part::Train => "train",
        Part::Valid => "valid",
        Part::Test => "test",
    })
}

fn object(task: &dyn Task, report: &Report) -> Value {
    let mut object = json!({
        "name": task.name(), "task": task.task(), "data": report.data, "part": part(report),
        "asked": report.asked, "unit": report.unit, "excluded": report.excluded,
        "parameters": report.parameters, "seconds": report.seconds,
        "peak_memory": machine::peak_memory(),
    });
    if let Some(note) = &report.note {
        object["note"] = json!(note);
    }
    for mark in &report.marks {
        object[mark.name] = json!(mark.value);
    }
    object
}

fn text(task: &dyn Task, report: &Report) -> String {
    let Report { data, asked, unit, excluded, seconds, .. } = report;
    let part = part(report).map_or(String::new(), |part| format!(", {part}"));
    let name = task.name();
    let mut text = format!("{name}: {asked} {unit} of {data}{part} in {seconds:.1} s\n");
    if *excluded > 0 {
        text += &format!("{excluded} more are not asked, because they were learned from\n");
    }
    if let Some(note) = &report.note {
        text += &format!("{note}\n");
    }
    let mut table = Table::new(["measure", "value", ""]);
    for mark in &report.marks {
        table.row([mark.name.into(), format!("{:.4}", mark.value), mark.unit.into()]);
    }
    text + &table.render("", None)
}
