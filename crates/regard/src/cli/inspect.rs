//! `regard inspect`: description of a checkpoint.

use super::{Global, Outcome, write_json};
use crate::hub::Hub;
use crate::models;
use crate::show::table::Table;
use anyhow::Result;
use clap::Args;
use regard_tasks::inspect::{Inspected, inspect};
use std::io::Write;

/// Describe a model: class, parameters, memory and attention layers
#[derive(Args)]
#[command(after_help = "\
Prints the class of a model, its number of parameters, its size, its inputs, and the score, mask and
normaliser of each attention layer. The size in memory is that of the weights in the types in which
they are kept; with --storage, after they are quantised.

Examples:
  regard inspect en-fr                             # built-in model
  regard inspect shakespeare --tensors
  regard inspect stories --json
  regard inspect runs/sort-10                      # a run: regard train sort-10
  regard inspect google-bert/bert-base-uncased     # downloads from the Hub")]
pub struct Flags {
    /// Model: a folder, a run, a name listed by `regard models`, or a Hugging Face Hub id
    model: String,
    /// List every tensor with its shape
    #[arg(long)]
    tensors: bool,
    #[command(flatten)]
    hub: Hub,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let model = models::resolve(&flags.model, &flags.hub)?;
    let mut found = inspect(models::stored(&model, &flags.hub)?)?;
    if !flags.tensors {
        found.tensors.clear();
    }
    if global.json {
        write_json(out, &found)?;
        return Ok(Outcome::Positive);
    }
    let Inspected { class, model_type, parameters, reads, .. } = &found;
    writeln!(out, "{class} ({model_type})")?;
    let count = *parameters as f64;
    writeln!(
        out,
        "{:.2} M parameters; {:.1} MB in memory, {:.1} MB on disk",
        count / 1e6,
        found.memory as f64 / 1e6,
        found.bytes as f64 / 1e6
    )?;
    writeln!(out, "input: {reads}")?;
    for (layers, words) in runs(&found.attention) {
        writeln!(out, "{layers}: {words}")?;
    }
    if !found.tensors.is_empty() {
        let mut table = Table::new(["tensor", "shape"]);
        for (name, shape) in &found.tensors {
            table.row([name.clone(), format!("{shape:?}")]);
        }
        write!(out, "\n{}", table.render("", None))?;
    }
    Ok(Outcome::Positive)
}

/// Groups consecutive layers with the same attention.
fn runs(attention: &[String]) -> Vec<(String, &str)> {
    let mut runs: Vec<(usize, usize, &str)> = vec![];
    for (i, words) in attention.iter().enumerate() {
        match runs.last_mut() {
            Some((_, last, same)) if *same == words.as_str() => *last = i,
            _ => runs.push((i, i, words)),
        }
    }
    let name = |(first, last, words)| match first == last {
        true => (format!("attention {first}"), words),
        false => (format!("attention {first} to {last}"), words),
    };
    runs.into_iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_the_same_is_told_once() {
        let all = ["a", "a", "b", "a"].map(str::to_string);
        let told = runs(&all);
        let names: Vec<&str> = told.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["attention 0 to 1", "attention 2", "attention 3"]);
    }
}
