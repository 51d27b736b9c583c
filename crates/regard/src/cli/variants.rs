//! `regard variants`: catalogue of scores, masks, biases and normalisers.

use super::{Global, Outcome, write_json};
use crate::show::{table::Table, terminal};
use anyhow::Result;
use clap::{Args, ValueEnum};
use regard_kernels::attention::{Variant, catalogue};
use serde::Serialize;
use std::io::Write;

/// List every score, mask, bias and normaliser
///
/// Each has its parameters with shapes, its settings (in brackets), its formula and its paper.
/// Symbols: B batch, H heads, T queries, S keys, D key width, E value width; query i has the
/// position p = i + S − T.
#[derive(Args)]
#[command(after_help = "\
Examples:
  regard variants
  regard variants mask
  regard variants --json | jq -r '.[] | select(.kind == \"score\") | .name'")]
pub struct Flags {
    /// List only this kind
    kind: Option<Kind>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    Score,
    Mask,
    Bias,
    Normalize,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Score => "score",
            Kind::Mask => "mask",
            Kind::Bias => "bias",
            Kind::Normalize => "normalize",
        }
    }
}

/// A variant, as `--json` prints it.
#[derive(Serialize)]
struct Listed<'a> {
    kind: &'a str,
    name: &'a str,
    params: Vec<Parameter<'a>>,
    settings: Vec<String>,
    formula: &'a str,
    paper: &'a str,
}

/// A tensor that a variant takes.
#[derive(Serialize)]
struct Parameter<'a> {
    name: &'a str,
    shape: &'a str,
}

impl<'a> Listed<'a> {
    fn new(kind: &'a str, row: &'a Variant) -> Listed<'a> {
        let parameter = |(name, shape): &(&'a str, &'a str)| Parameter { name, shape };
        Listed {
            kind,
            name: row.name,
            params: row.params.iter().map(parameter).collect(),
            settings: row.settings.iter().map(ToString::to_string).collect(),
            formula: row.formula,
            paper: row.paper,
        }
    }
}

/// Purpose of a kind in one line.
fn purpose(kind: &str) -> &'static str {
    match kind {
        "score" => "similarity of a query and a key",
        "mask" => "keys that a query may attend to; combine with & | !",
        "bias" => "term added to a score by the positions of query and key; biases add up",
        "normalize" => "function from the scores of a query to its weights",
        _ => "",
    }
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let asked = |kind: &str| flags.kind.is_none_or(|only| only.name() == kind);
    let kinds: Vec<_> = catalogue().into_iter().filter(|(kind, _)| asked(kind)).collect();
    if global.json {
        let rows: Vec<_> = kinds
            .iter()
            .flat_map(|(kind, rows)| rows.iter().map(|row| Listed::new(kind, row)))
            .collect();
        write_json(out, &rows)?;
        return Ok(Outcome::Positive);
    }
    writeln!(out, "out_i = Σ_j normalize_j( score(q_i, k_j) + bias(i, j) | mask(i, j) ) · v_j")?;
    writeln!(out, "(| mask: over the keys j that the mask allows)")?;
    for (kind, rows) in kinds {
        writeln!(out, "\n{kind}: {}", purpose(kind))?;
        let mut table = Table::new(["name", "parameters", "formula", "paper"]);
        for row in rows {
            let params = row.params.iter().map(|(name, shape)| format!("{name} {shape}"));
            let settings = row.settings.iter().map(|setting| format!("({setting})"));
            let params: Vec<_> = params.chain(settings).collect();
            let params = if params.is_empty() { "–".to_string() } else { params.join(", ") };
            table.row([row.name.into(), params, row.formula.into(), row.paper.into()]);
        }
        // Rows are not wrapped in a pipe, so that grep works.
        write!(out, "{}", table.render("  ", terminal::width_of_terminal()))?;
    }
    Ok(Outcome::Positive)
}
