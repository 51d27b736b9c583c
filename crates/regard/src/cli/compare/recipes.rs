//! Comparison of translators on the same data: quality by length, speed, memory.

use super::columns::{self, number};
use super::compared::Compared;
use super::{Flags, Global, Outcome, write_json};
use crate::files::save_text;
use crate::show::plot::{Curve, Plot};
use crate::show::table::Table;
use anyhow::{Result, anyhow, bail};
use regard_tasks::translate::{Data, Recipe};
use serde_json::Value;
use std::io::Write;
use std::path::Path;

pub fn run(
    all: &[Compared],
    flags: &Flags,
    global: &Global,
    out: &mut dyn Write,
) -> Result<Outcome> {
    let data = |each: &Compared| {
        let recipe = Recipe::from_table(each.recipe.clone());
        recipe.map(|recipe| recipe.data).map_err(|message| anyhow!("{}: {message}", each.name))
    };
    let first = data(&all[0])?;
    for other in &all[1..] {
        if flags.data.is_none() && !is_same(&data(other)?, &first) {
            bail!(
                "{} and {} use different data; need the same [data], or --data FILE",
                all[0].name,
                other.name
            );
        }
    }
    let mut reports = vec![];
    for each in all {
        reports.push(each.evaluate(flags, global, &[])?);
    }
    if let Some(path) = &flags.svg {
        let svg = plot(&reports).svg();
        save_text(path, &svg)?;
    }
    if global.json {
        write_json(out, &reports)?;
        return Ok(Outcome::Positive);
    }
    write!(out, "{}", table(&reports))?;
    Ok(Outcome::Positive)
}

/// Whether two models are evaluated on the same data. Runs on files of the user have a copy each.
fn is_same(one: &Data, other: &Data) -> bool {
    let sides = |data: &Data| [data.source.clone(), data.target.clone()];
    let (Some(first), Some(second)) = (&one.folder, &other.folder) else { return one == other };
    let read = |folder: &Path, end: &String| std::fs::read(folder.join(format!("test.{end}"))).ok();
    let is_copy =
        |end: &String| read(first, end).is_some_and(|bytes| read(second, end) == Some(bytes));
    one == other || (sides(one) == sides(other) && sides(one).iter().all(is_copy))
}

fn score(report: &Value) -> Option<f64> {
    report["bleu"].as_f64().or_else(|| report["wer"].as_f64())
}

fn plot(reports: &[Value]) -> Plot {
    let curve = |report: &Value| {
        let buckets = report["by_length"].as_array().cloned().unwrap_or_default();
        let point = |bucket: &Value| {
            let middle = (bucket["from"].as_f64()? + bucket["to"].as_f64()?) / 2.0;
            Some((middle, score(bucket)?))
        };
        let name = columns::name(report);
        Curve { name, points: buckets.iter().filter_map(point).collect(), ..Curve::default() }
    };
    let bleu = reports.iter().any(|report| report["bleu"].is_number());
    Plot {
        title: "Quality by source length".into(),
        x: if bleu { "source length in words" } else { "source length in characters" }.into(),
        y: if bleu { "BLEU" } else { "word error rate, %" }.into(),
        curves: reports.iter().map(curve).collect(),
        ..Plot::default()
    }
}

fn table(reports: &[Value]) -> String {
    let mut all = Table::new([
        "model",
        "score",
        "parameters",
        "sentences/s",
        "memory",
        "training tokens/s",
        "training min",
    ]);
    for report in reports {
        all.row([
            columns::name(report),
            number(score(report), 2),
            columns::parameters(report),
            columns::speed(report, "sentences", 1),
            columns::memory(report),
            number(report["training"]["tokens_per_second"].as_f64(), 0),
            columns::training_minutes(report),
        ]);
    }
    let mut text = all.render("", None);
    let mut lengths = Table::new(["length", "model", "sentences", "score", "ms/sentence"]);
    let buckets = reports[0]["by_length"].as_array().map_or(0, Vec::len);
    for i in 0..buckets {
        for report in reports {
            let bucket = &report["by_length"][i];
            let count = bucket["sentences"].as_f64().unwrap_or(0.0);
            lengths.row([
                format!("{}–{}", bucket["from"], bucket["to"]),
                columns::name(report),
                number(Some(count), 0),
                number(score(bucket), 2),
                number(bucket["seconds"].as_f64().map(|s| 1000.0 * s / count.max(1.0)), 2),
            ]);
        }
    }
    text.push('\n');
    text + &lengths.render("", None)
}
