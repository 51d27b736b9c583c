//! Comparison of classifiers on the same examples: metrics, agreement, significance, differences.

use super::columns::{self, number};
use super::compared::Compared;
use super::mcnemar::p_value;
use super::{Flags, Global, Outcome, quoted, write_json};
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
    /// Hash of its text; of an image, hash of the path of its file, or of its pixels in an IDX file.
    input: String,
    /// Its text, or its name; only if it is wrong.
    text: Option<String>,
    /// Its file and line, if they are known.
    place: Option<String>,
}

impl Prediction {
    fn is_right(&self) -> bool {
        self.predicted.as_ref() == Some(&self.label)
    }

    /// Whether both are for one example. Two files may have the same labels in the same order, so
    /// the inputs must be equal; of one file, the lines are enough, because two models may read
    /// different columns of it.
    fn is_of_same(&self, other: &Prediction, is_one_file: bool) -> bool {
        let is_same_line = is_one_file && self.place.is_some() && self.place == other.place;
        self.label == other.label && (self.input == other.input || is_same_line)
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
    let names: Vec<&str> = all.iter().map(|each| each.name).collect();
    check_same(&names, &predictions, flags.data.is_some())?;
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

/// Checks that there are examples, and the same ones for every model: a test of pairs means nothing
/// otherwise. `is_one_file` is whether all were evaluated on the file of --data.
fn check_same(names: &[&str], predictions: &[Vec<Prediction>], is_one_file: bool) -> Result<()> {
    let quoted_names: Vec<String> = names.iter().map(quoted).collect();
    let command = format!("regard compare {} --data FILE", quoted_names.join(" "));
    let first = &predictions[0];
    for (name, found) in names.iter().zip(predictions) {
        if found.is_empty() {
            bail!(
                "{name} was evaluated on no examples with labels: there is nothing to compare. \
                 Compare on a file with labels: {command}"
            );
        }
        let is_same = |(one, other): (&Prediction, &Prediction)| one.is_of_same(other, is_one_file);
        if first.len() != found.len() || !first.iter().zip(found).all(is_same) {
            bail!(
                "{} and {name} were evaluated on different examples, {} and {}: their data or their \
                 parts of the data differ. Compare them on one file that neither was trained on: \
                 {command}",
                names[0],
                say::count(first.len()),
                say::count(found.len())
            );
        }
    }
    Ok(())
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
        all.row([
            columns::name(report),
            number(report["accuracy"].as_f64(), 2),
            number(f1(report), 2),
            number(report["asked"].as_f64(), 0),
            columns::parameters(report),
            columns::speed(report, "asked", 0),
            columns::memory(report),
            columns::training_minutes(report),
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
            input: String::new(),
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

    #[test]
    fn only_the_same_examples_are_compared() {
        let of = |inputs: &[&str]| -> Vec<Prediction> {
            let one = |input: &&str| Prediction {
                label: "a".into(),
                predicted: Some("a".into()),
                input: input.to_string(),
                text: None,
                place: None,
            };
            inputs.iter().map(one).collect()
        };
        let check = |first: &[&str], second: &[&str]| {
            let both = [of(first), of(second)];
            check_same(&["x", "y"], &both, false).map_err(|error| error.to_string())
        };
        assert_eq!(check(&["1", "2"], &["1", "2"]), Ok(()));
        for other in [&["1", "3"][..], &["2", "1"], &["1"], &["1", "2", "3"]] {
            let error = check(&["1", "2"], other).unwrap_err();
            assert!(error.contains("x and y were evaluated on different examples"), "{error}");
            assert!(error.ends_with("regard compare x y --data FILE"), "{error}");
        }
        // Two columns of one file.
        let mut both = [of(&["title"]), of(&["title and text"])];
        both.iter_mut().for_each(|found| found[0].place = Some("a.csv:2".into()));
        assert!(check_same(&["x", "y"], &both, true).is_ok());
        assert!(check_same(&["x", "y"], &both, false).is_err());
        for (first, second, name) in [(&[][..], &[][..], "x"), (&["1"], &[], "y")] {
            let error = check(first, second).unwrap_err();
            let told = format!("{name} was evaluated on no examples");
            assert!(error.contains(&told) && error.contains("--data FILE"), "{error}");
        }
    }
}
