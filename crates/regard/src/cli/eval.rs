//! `regard eval`: how good a model is.

use super::{Global, Outcome, write_json};
use crate::machine;
use crate::models;
use crate::recipe;
use crate::show::table::Table;
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use regard_models::checkpoint::read_weights;
use regard_tasks::recipe::{Prepared, Task};
use regard_tasks::train;
use regard_tasks::translate::{Measure, Translator, measure};
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

const EXAMPLES: &str = "\
Examples:
  regard eval multi30k-transformer
  regard eval multi30k-transformer --part valid --set decode.num_beams=1
  regard eval cmudict-transformer --model runs/try --save out.txt
  regard eval wikitext2-xlnet --set filling.spans=4000

Translators are measured on their test part. All others are measured as training does it, on what
the recipe holds out; --part, --save and --min-words are for translators only.";

/// Measure a model on the data of a recipe
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Flags {
    /// The recipe: its name in `regard recipes`, or a TOML file
    recipe: String,
    /// A model's name or folder [default: the run of the recipe's name in runs/]
    #[arg(long, value_name = "NAME or FOLDER")]
    model: Option<String>,
    /// Which part of the data [default: test]
    #[arg(long, value_enum)]
    part: Option<Part>,
    /// Another value for a key of the recipe; may be given more than once
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Write the translations to this file, a line each
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Only sources of at least so many words
    #[arg(long, value_name = "N", default_value_t = 0)]
    min_words: usize,
}

#[derive(Clone, Copy, ValueEnum)]
enum Part {
    Valid,
    Test,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let task = recipe::resolve_task(&flags.recipe, &flags.overrides)?;
    if task.task() != "translate" {
        return held_out(&*task, flags, global, out);
    }
    let recipe = recipe::resolve(&flags.recipe, &flags.overrides)?;
    let translator = match &flags.model {
        Some(model) => models::translator(Some(model))?,
        None => Translator::load(&Path::new("runs").join(&recipe.name))?,
    };
    let corpus = recipe.data.read()?;
    let mut groups = match flags.part {
        Some(Part::Valid) => corpus.valid,
        None | Some(Part::Test) => corpus.test,
    };
    groups.retain(|group| group.source.split_whitespace().count() >= flags.min_words);
    if groups.is_empty() {
        bail!("{}: no sentence is left to measure", recipe.name);
    }
    let how = Measure::of(&recipe.data, recipe.lowercase());
    let (report, texts) = measure(&translator, &groups, &recipe.decode, how)?;
    let seconds = report.seconds;
    if let Some(path) = flags.save {
        let mut text = texts.join("\n");
        text.push('\n');
        std::fs::write(&path, text).map_err(|e| anyhow::anyhow!("{}: {e}", path.display()))?;
    }
    if global.json {
        let mut json = serde_json::to_value(&report)?;
        json["name"] = json!(recipe.name);
        json["parameters"] = json!(translator.parameters());
        json["peak_memory"] = json!(machine::peak_memory());
        write_json(out, &json)?;
        return Ok(Outcome::Positive);
    }
    writeln!(out, "{}: {} sentences in {seconds:.1} s", recipe.name, report.sentences)?;
    if let (Some(line), Some(tokenized), Some(chrf)) =
        (&report.bleu_line, report.tokenized_bleu, report.chrf)
    {
        writeln!(out, "{line}\ntokenised, lower-cased BLEU {tokenized:.2}\nchrF2 {chrf:.2}")?;
    }
    if let (Some(wer), Some(per)) = (report.wer, report.per) {
        writeln!(out, "WER {wer:.2} %\nPER {per:.2} %")?;
    }
    let mut table = Table::new(["length", "sentences", "score", "seconds"]);
    for bucket in &report.by_length {
        table.row([
            format!("{}–{}", bucket.from, bucket.to),
            bucket.report.sentences.to_string(),
            bucket.report.main().map_or(String::new(), |score| format!("{score:.1}")),
            format!("{:.2}", bucket.report.seconds),
        ]);
    }
    write!(out, "{}", table.render("", None))?;
    Ok(Outcome::Positive)
}

/// The measures of training, of a model that is already there.
fn held_out(
    task: &dyn Task,
    flags: Flags,
    global: &Global,
    out: &mut dyn Write,
) -> Result<Outcome> {
    if flags.part.is_some() || flags.save.is_some() || flags.min_words > 0 {
        let what = task.task();
        bail!(
            "--part, --save, --min-words: only for translators, and this recipe's task is {what}"
        );
    }
    let model = flags.model.unwrap_or_else(|| format!("runs/{}", task.name()));
    let folder = models::folder(&model)?;
    let Prepared { mut learner, .. } = task.prepare()?;
    learner.restore(read_weights(&train::resolve(&folder)?)?)?;
    let began = Instant::now();
    let evaluation = learner.evaluate()?;
    let seconds = began.elapsed().as_secs_f64();
    if global.json {
        let mut json = json!({ "name": task.name(), "seconds": seconds });
        for (name, value) in &evaluation.measures {
            json[name] = json!(value);
        }
        json["peak_memory"] = json!(machine::peak_memory());
        write_json(out, &json)?;
        return Ok(Outcome::Positive);
    }
    writeln!(out, "{}: measured in {seconds:.1} s", task.name())?;
    let mut table = Table::new(["measure", "value"]);
    for (name, value) in &evaluation.measures {
        table.row([name.clone(), format!("{value:.4}")]);
    }
    write!(out, "{}", table.render("", None))?;
    Ok(Outcome::Positive)
}
