//! Evaluation of translations: metrics by length, and the translations as a file.

use super::details::render;
use super::{Flags, Global, Job, Outcome};
use crate::cli::say::{quoted, say};
use crate::cli::write_json;
use crate::files::save_text;
use crate::machine;
use crate::show::table::Table;
use crate::show::terminal;
use anyhow::{Context, Result, anyhow, bail};
use regard_tasks::data::Part;
use regard_tasks::evaluation::{Details, EvaluationData};
use regard_tasks::translate::{
    self, Measure, Recipe, TranslationReport, Translator, measure, swapped,
};
use serde::Serialize;
use std::io::Write;

pub fn run(flags: &Flags, job: Job, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let recipe = Recipe::from_table(job.recipe.clone()).map_err(|message| anyhow!("{message}"))?;
    let translator = Translator::load(job.files.clone())?;
    let groups = recipe.data.asked(&job.on);
    let mut groups = match &job.on {
        EvaluationData::Set { set: Some(set), .. } => {
            groups.with_context(|| format!("--data {set}"))?
        }
        _ => groups?,
    };
    if groups.is_empty() {
        bail!("{}: got no sentences to evaluate", recipe.name);
    }
    let how = Measure::of(&recipe.data, recipe.lowercase());
    let length_in = how.drop_shorter(&mut groups, flags.min_words);
    if groups.is_empty() {
        bail!("--min-words {}: no source has that many {length_in}", flags.min_words);
    }
    let (report, texts) = measure(&translator, &groups, &recipe.decode, how)?;
    let seconds = report.seconds;
    let swapped = swapped(&groups, &texts).filter(|_| matches!(how, Measure::Sentences { .. }));
    let swapped = swapped.map(|why| {
        let (data, _) = measured(&recipe, &job);
        let turn = job.own.as_ref().and_then(|own| own.sides.as_ref());
        let turn = turn.map_or(String::new(), |[source, target]| {
            let (source, target) = (quoted(source), quoted(target));
            format!("; to turn them around: --source {target} --target {source}")
        });
        format!("{data}: source and reference look swapped: {why}{turn}")
    });
    if let Some(warning) = &swapped {
        say(format_args!("regard: warning: {warning}"));
    }
    if let Some(path) = &flags.save {
        let mut text = texts.join("\n");
        text.push('\n');
        save_text(path, &text)?;
    }
    if global.json {
        let (data, part) = measured(&recipe, &job);
        let evaluated = Evaluated {
            details: translate::details(&groups, &texts, how),
            report,
            name: &recipe.name,
            task: &recipe.task,
            data,
            part,
            parameters: translator.parameters(),
            peak_memory: machine::peak_memory(),
            warning: swapped,
        };
        write_json(out, &evaluated)?;
        return Ok(Outcome::Positive);
    }
    let (data, part) = measured(&recipe, &job);
    let of = match part {
        Some(part) => format!(", {part}"),
        None if job.own.is_some() => String::new(),
        None => " (column 1 is the source, 2 the reference)".to_string(),
    };
    let (name, count) = (&recipe.name, report.sentences);
    writeln!(out, "{name}: {count} sentences of {data}{of} in {seconds:.1} s")?;
    if let (Some(line), Some(tokenized), Some(chrf)) =
        (&report.bleu_line, report.tokenized_bleu, report.chrf)
    {
        writeln!(out, "{line}\ntokenised, lower-cased BLEU {tokenized:.2}\nchrF2 {chrf:.2}")?;
    }
    if let (Some(wer), Some(per)) = (report.wer, report.per) {
        writeln!(out, "WER {wer:.2} %\nPER {per:.2} %")?;
    }
    let mut table = Table::new([report.length_in, "sentences", "score", "seconds"]);
    for bucket in &report.by_length {
        table.row([
            format!("{}–{}", bucket.from, bucket.to),
            bucket.report.sentences.to_string(),
            bucket.report.main().map_or(String::new(), |score| format!("{score:.1}")),
            format!("{:.2}", bucket.report.seconds),
        ]);
    }
    write!(out, "{}", table.render("", None))?;
    if flags.details {
        let found = translate::details(&groups, &texts, how);
        write!(out, "\n{}", render(&found, terminal::width()))?;
    }
    Ok(Outcome::Positive)
}

/// An evaluation, as `--json` prints it.
#[derive(Serialize)]
struct Evaluated<'a> {
    details: Details,
    #[serde(flatten)]
    report: TranslationReport,
    name: &'a str,
    task: &'a str,
    data: String,
    part: Option<&'static str>,
    parameters: usize,
    peak_memory: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

/// Name of the data set and its part, or of the file.
fn measured(recipe: &Recipe, job: &Job) -> (String, Option<&'static str>) {
    if let Some(own) = &job.own {
        return (own.shown.clone(), None);
    }
    match &job.on {
        EvaluationData::File(path) => (path.display().to_string(), None),
        EvaluationData::Set { set, part } => {
            let set = set.as_ref().unwrap_or(&recipe.data.set).clone();
            (set, Some(if *part == Some(Part::Valid) { "valid" } else { "test" }))
        }
    }
}
