//! Comparison of classifiers on the same examples: metrics, agreement, significance, differences.

use super::compared::Compared;
use super::mcnemar::p_value;
use super::{Flags, Global, Outcome, write_json};
use crate::show::table::Table;
use crate::show::{label, terminal};
use anyhow::{Context, Result, bail};
use regard_tasks::say;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::Write;

/// Tasks whose examples have one label each.
pub const TASKS: [&str; 3] = ["classify", "classify-image", "tag"];
/// Number of examples with different predictions that are printed, and that --json has.
const SHOWN: usize = 5;
const KEPT: usize = 100;

/// Prediction for an example, as `regard eval --json --predictions` prints it.
#[derive(Deserialize)]
struct Prediction {
    label: String,
    predicted: Option<String>,
    /// Its text, or its name; only if it is wrong.
    text: Option<String>,
    place: Option<String>,
}

impl Prediction {
    fn is_right(&self) -> bool {
        self.predicted.as_ref() == Some(&self.label)
    }
}

/// Two models on the same examples.
#[derive(Serialize)]
struct Pair<'a> {
    models: [&'a str; 2],
    /// Percentage of examples for which both predict the same.
    agreement: f64,
    both_right: u64,
    only_first_right: u64,
    only_second_right: u64,
    both_wrong: u64,
    /// McNemar's exact test, two-sided.
    p_value: f64,
    differences: Vec<Difference<'a>>,
}

/// An example that two models label differently.
#[derive(Serialize)]
struct Difference<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<&'a str>,
    text: &'a str,
    label: &'a str,
    predicted: [Option<&'a str>; 2],
}

pub fn run(
    all: &[Compared],
    flags: &Flags,
    global: &Global,
    out: &mut dyn Write,
) -> Result<Outcome> {
    if flags.svg.is_some() {
        bail!("compare: --svg is a plot of quality by length, for translators and --layers");
    }
    let (mut reports, mut predictions) = (vec![], vec![]);
    for each in all {
        let mut report = each.evaluate(flags, global, &["--predictions"])?;
        let found = report["predictions"].take();
        let found: Vec<Prediction> = serde_json::from_value(found)
            .with_context(|| format!("{}: its evaluation has no predictions", each.name))?;
        report.as_object_mut().map(|report| report.remove("predictions"));
        report.as_object_mut().map(|report| report.remove("details"));
        predictions.push(found);
        reports.push(report);
    }
    for (each, other) in all.iter().zip(&predictions).skip(1) {
        let is_same = |(one, other): (&Prediction, &Prediction)| one.label == other.label;
        let first = &predictions[0];
        if first.len() != other.len() || !first.iter().zip(other).all(is_same) {
            bail!(
                "{} and {} were evaluated on different examples, {} and {}: their parts of the data \
                 differ. Compare them on one file that neither was trained on: --data FILE",
                all[0].name,
                each.name,
                say::count(first.len()),
                say::count(other.len())
            );
        }
    }
    let pairs: Vec<Pair> = (1..all.len())
        .map(|at| pair([all[0].name, all[at].name], [&predictions[0], &predictions[at]]))
        .collect();
    if global.json {
        let found = serde_json::json!({ "models": reports, "pairs": pairs });
        write_json(out, &found)?;
        return Ok(Outcome::Positive);
    }
    write!(out, "{}", table(&reports))?;
    pairs.iter().try_for_each(|pair| write!(out, "\n{}", told(pair, terminal::width())))?;
    Ok(Outcome::Positive)
}

fn pair<'a>(models: [&'a str; 2], [first, second]: [&'a [Prediction]; 2]) -> Pair<'a> {
    let both = || first.iter().zip(second);
    let count = |wanted: [bool; 2]| {
        both().filter(|(a, b)| [a.is_right(), b.is_right()] == wanted).count() as u64
    };
    let differs = |(a, b): &(&Prediction, &Prediction)| a.predicted != b.predicted;
    let differences = both().filter(differs).take(KEPT).map(|(a, b)| Difference {
        place: a.place.as_deref().or(b.place.as_deref()),
        // One of them is wrong, and has the text.
        text: a.text.as_deref().or(b.text.as_deref()).unwrap_or_default(),
        label: &a.label,
        predicted: [a.predicted.as_deref(), b.predicted.as_deref()],
    });
    let same = both().filter(|both| !differs(both)).count();
    let (only_first_right, only_second_right) = (count([true, false]), count([false, true]));
    Pair {
        models,
        agreement: 100.0 * same as f64 / first.len().max(1) as f64,
        both_right: count([true, true]),
        only_first_right,
        only_second_right,
        both_wrong: count([false, false]),
        p_value: p_value(only_first_right, only_second_right),
        differences: differences.collect(),
    }
}

fn table(reports: &[Value]) -> String {
    let number = |value: Option<f64>, digits: usize| {
        value.map_or("–".to_string(), |value| format!("{value:.digits$}"))
    };
    // Macro-F1, or that of entities.
    let f1 = |report: &Value| report["f1"].as_f64().or_else(|| report["entity_f1"].as_f64());
    let unit = reports[0]["unit"].as_str().unwrap_or("examples").to_string();
    let speed = format!("{unit}/s");
    let mut all = Table::new([
        "model",
        "accuracy %",
        "F1 %",
        unit.as_str(),
        "parameters",
        speed.as_str(),
        "memory",
        "training min",
    ]);
    for report in reports {
        let rate = report["asked"].as_f64().zip(report["seconds"].as_f64());
        all.row([
            report["name"].as_str().unwrap_or_default().to_string(),
            number(report["accuracy"].as_f64(), 2),
            number(f1(report), 2),
            number(report["asked"].as_f64(), 0),
            number(report["parameters"].as_f64().map(|n| n / 1e6), 2) + " M",
            number(rate.map(|(n, seconds)| n / seconds.max(1e-9)), 0),
            number(report["peak_memory"].as_f64().map(|n| n / 1e6), 0) + " MB",
            number(report["training"]["seconds"].as_f64().map(|s| s / 60.0), 1),
        ]);
    }
    all.render("", None)
}

fn told(pair: &Pair, width: usize) -> String {
    let [first, second] = pair.models;
    let differ = match pair.p_value {
        p if p < 0.05 => "the difference is hardly chance",
        _ => "the difference may be chance",
    };
    let mut text = format!(
        "{first} and {second}: the same prediction for {:.2} % of the examples\nright: both {}, only \
         {first} {}, only {second} {}, none {}\nMcNemar's exact test: p = {:.4}; {differ}\n",
        pair.agreement,
        say::count(pair.both_right as usize),
        say::count(pair.only_first_right as usize),
        say::count(pair.only_second_right as usize),
        say::count(pair.both_wrong as usize),
        pair.p_value
    );
    if !pair.differences.is_empty() {
        text += "different predictions:\n";
    }
    for (at, found) in pair.differences.iter().take(SHOWN).enumerate() {
        let said = |at: usize| found.predicted[at].unwrap_or("nothing");
        let line =
            format!("{}. {}: {first} {}, {second} {}", at + 1, found.label, said(0), said(1));
        text += &format!("{}\n", label(&line, width));
        let place = found.place.map_or(String::new(), |place| format!("{place}: "));
        text += &format!("   {}\n", label(&format!("{place}{}", found.text), width.max(20) - 3));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_models_on_five_examples() {
        let one = |label: &str, predicted: &str| Prediction {
            label: label.into(),
            predicted: Some(predicted.into()),
            text: (label != predicted).then(|| format!("a {label} text")),
            place: None,
        };
        let first = [one("a", "a"), one("a", "b"), one("b", "b"), one("b", "a"), one("a", "b")];
        let second = [one("a", "a"), one("a", "a"), one("b", "b"), one("b", "a"), one("a", "c")];
        let found = pair(["x", "y"], [&first, &second]);
        assert_eq!(found.agreement, 60.0);
        assert_eq!((found.both_right, found.both_wrong), (2, 2));
        assert_eq!((found.only_first_right, found.only_second_right), (0, 1));
        assert_eq!((found.p_value, found.differences.len()), (1.0, 2));
        let text = told(&found, 80);
        for part in [
            "x and y: the same prediction for 60.00 % of the examples",
            "right: both 2, only x 0, only y 1, none 2",
            "p = 1.0000; the difference may be chance",
            "1. a: x b, y a\n   a a text",
            "2. a: x b, y c\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
