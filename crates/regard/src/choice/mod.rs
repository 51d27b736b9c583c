//! Flags that choose an attention: score, biases, mask and normaliser.
//!
//! Scores, biases and normalisers come from the catalogue of the kernels; `mask.rs` parses masks.

mod mask;

use crate::files::Archive;
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use regard_kernels::attention::mask::Mask;
use regard_kernels::attention::{
    Attention, Graph, Row, Setting, Settings, bias, catalogue, find, normalize, score,
};
use regard_kernels::rng::Stream;
use std::sync::Arc;

/// Score, biases, mask and normaliser by name; `regard variants` lists them.
#[derive(Args)]
#[command(next_help_heading = "The attention")]
pub struct AttentionArgs {
    /// Score of a query and a key; see `regard variants score`
    #[arg(long, value_name = "NAME", default_value = "dot")]
    pub score: String,
    /// Bias by position; can be repeated; see `regard variants bias`
    #[arg(long, value_name = "NAME")]
    pub bias: Vec<String>,
    /// Keys that a query may attend to, such as 'causal & window(127, 0) | !prefix(3)'
    #[arg(long, value_name = "EXPR", default_value = "full")]
    pub mask: String,
    /// Normaliser of scores to weights; see `regard variants normalize`
    #[arg(long, value_name = "NAME", default_value = "softmax")]
    pub normalize: String,
    /// Scale of the score [default: the score's, 1/√D for dot]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub scale: Option<f32>,
    /// Temperature of `--normalize gumbel`
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    pub temperature: f32,
    /// Set a setting of the score, bias or normaliser, such as slope=0.1 (`regard variants` lists
    /// them); can be repeated
    #[arg(long = "with", value_name = "NAME=X")]
    pub with: Vec<String>,
}

impl AttentionArgs {
    /// Constructs the attention. Masks and biases take their arrays from `arrays`.
    pub fn attention(&self, seed: u64, arrays: Option<&Archive>) -> Result<Attention> {
        let words = SpecBuilder { choice: self, numbers: self.numbers()?, arrays, seed };
        words.check()?;
        Ok(Attention {
            score: words.make("score", score::ROWS, &self.score)?,
            biases: (self.bias.iter())
                .map(|name| words.make("bias", bias::ROWS, name))
                .collect::<Result<_>>()?,
            mask: parse_mask(&self.mask, arrays)?,
            normalizer: words.make("normalize", normalize::ROWS, &self.normalize)?,
            scale: self.scale,
            ..Attention::dot()
        })
    }

    /// Parses the settings of `--with`, by name.
    fn numbers(&self) -> Result<Vec<(String, f32)>> {
        let number = |text: &String| {
            let (name, value) = text.split_once('=')?;
            Some((name.trim().to_string(), value.trim().parse().ok()?))
        };
        let read = |text: &String| {
            let shown = crate::show::label(text, 40);
            number(text).with_context(|| format!("--with: got `{shown}`, need NAME=X"))
        };
        self.with.iter().map(read).collect()
    }

    /// Whether all flags have their defaults.
    pub fn is_default(&self) -> bool {
        let words = (&*self.score, &*self.mask, &*self.normalize);
        let plain = words == ("dot", "full", "softmax") && self.temperature == 1.0;
        plain && self.bias.is_empty() && self.scale.is_none() && self.with.is_empty()
    }

    /// Formats the choice as a heading: score and biases, mask, normaliser.
    pub fn words(&self) -> String {
        let score: Vec<&str> =
            [&self.score].into_iter().chain(&self.bias).map(String::as_str).collect();
        format!("{} | {} | {}", score.join(" + "), self.mask, self.normalize)
    }
}

/// Parses a mask expression.
pub fn parse_mask(text: &str, arrays: Option<&Archive>) -> Result<Mask> {
    mask::parse(text, arrays).context("--mask")
}

/// A choice with its parsed numbers, the arrays of the file and the seed.
struct SpecBuilder<'a> {
    choice: &'a AttentionArgs,
    /// Settings of `--with`, by name.
    numbers: Vec<(String, f32)>,
    arrays: Option<&'a Archive>,
    seed: u64,
}

impl SpecBuilder<'_> {
    /// Checks that each number of `--with` is a setting of the chosen score, bias or normaliser.
    fn check(&self) -> Result<()> {
        let AttentionArgs { score, bias, normalize, .. } = self.choice;
        let rows = catalogue();
        let chosen = |kind: &str, name: &str| match kind {
            "score" => score == name,
            "bias" => bias.iter().any(|bias| bias == name),
            "normalize" => normalize == name,
            _ => false,
        };
        let settings: Vec<&str> = (rows.iter())
            .flat_map(|(kind, rows)| rows.iter().filter(move |row| chosen(kind, row.name)))
            .flat_map(|row| row.settings)
            .filter_map(number_name)
            .collect();
        for (name, _) in &self.numbers {
            if !settings.contains(&name.as_str()) {
                let has = match settings.is_empty() {
                    true => "the chosen score, bias and normaliser have no settings".into(),
                    false => format!("need one of: {}", settings.join(", ")),
                };
                bail!("--with: got `{}`, {has}", crate::show::label(name, 40));
            }
        }
        Ok(())
    }

    /// Constructs the variant of a name.
    fn make<T: ?Sized + 'static>(
        &self,
        kind: &'static str,
        rows: &'static [Row<T>],
        name: &str,
    ) -> Result<Arc<T>> {
        let made = || {
            let row = find(rows, name).ok_or_else(|| unknown(kind, name))?;
            anyhow::Ok(row.make(&self.settings(row)?)?)
        };
        made().with_context(|| format!("--{kind}"))
    }

    /// Collects the settings of a variant from flags and arrays.
    fn settings<T: ?Sized + 'static>(&self, row: &Row<T>) -> Result<Settings> {
        let name = row.name();
        let need = || self.arrays.with_context(|| needs_file(name));
        let has = |array: &str| self.arrays.filter(|arrays| arrays.has(array));
        let noise = Some(Stream::new(self.seed, 0, 0));
        let mut given = Settings { noise, ..Settings::default() };
        for setting in row.about.settings {
            match setting {
                Setting::Number(number, _) => {
                    let last = self.numbers.iter().rev().find(|(name, _)| name == number);
                    match (last, *number) {
                        (Some((name, value)), _) => given.numbers.push((name.clone(), *value)),
                        (None, "temperature") => {
                            let temperature = self.choice.temperature;
                            if !(temperature.is_finite() && temperature > 0.0) {
                                bail!("--temperature: got {temperature}, need a number above 0");
                            }
                            given.numbers.push(("temperature".into(), temperature));
                        }
                        (None, _) => {}
                    }
                }
                Setting::Size(_) => {
                    for (param, _) in row.about.params {
                        let shape = need()?.shape(param)?;
                        given.shapes.push((param.to_string(), shape));
                    }
                }
                // Segment ids are optional: with them come two more parameters.
                Setting::Segments => {
                    let ids = has("segments").map(|arrays| arrays.integers("segments"));
                    given.segments = ids.transpose()?.map(|ids| ids.data);
                }
                Setting::Graph(None) => given.graph = Some(graph(need()?)?),
                // Edge features are optional too: with them comes a graph.
                Setting::Graph(Some(with)) => given.graph = has(with).map(graph).transpose()?,
                Setting::Seed => {}
            }
        }
        Ok(given)
    }
}

/// Reads the graph of a file, arrays `indptr` and `indices`.
fn graph(arrays: &Archive) -> Result<Arc<Graph>> {
    let (indptr, indices) = (arrays.integers("indptr")?, arrays.integers("indices")?);
    Ok(Arc::new(Graph::new(&indptr.data, &indices.data)))
}

/// Name of a setting that `--with` can set.
fn number_name(setting: &Setting) -> Option<&'static str> {
    match setting {
        Setting::Number(name, _) => Some(name),
        _ => None,
    }
}

/// The error for a variant whose parameters or arguments are arrays, where there is no file.
fn needs_file(name: &str) -> String {
    format!("`{name}` reads arrays from a file, so it works only in `regard attend FILE`")
}

/// Names of a kind, in the order of the catalogue.
fn names(kind: &str) -> Vec<&'static str> {
    let rows = catalogue().into_iter().filter(|(name, _)| *name == kind);
    rows.flat_map(|(_, rows)| rows).map(|row| row.name).collect()
}

fn unknown(kind: &str, name: &str) -> anyhow::Error {
    let name = crate::show::label(name, 40);
    anyhow!("got `{name}`, need one of: {}", names(kind).join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        choice: AttentionArgs,
    }

    fn attention(flags: &[&str]) -> Result<Attention> {
        let line = Line::try_parse_from([&["regard"], flags].concat())?;
        line.choice.attention(0, None)
    }

    /// Whether an error is about what is missing, and not about the name.
    fn known<T>(made: Result<T>) -> bool {
        made.err().is_none_or(|error| !format!("{error:#}").contains("need one of"))
    }

    #[test]
    fn every_name_of_the_catalogue_is_known() {
        for kind in ["score", "bias", "normalize", "mask"] {
            for name in names(kind) {
                assert!(known(attention(&[&format!("--{kind}"), name])), "--{kind} {name}");
            }
        }
        assert!(!known(attention(&["--score", "dots"])));
    }

    #[test]
    fn numbers_go_to_who_takes_them() {
        let made = attention(&["--score", "edge", "--with", "slope=0.5"]).unwrap();
        assert!(format!("{:?}", made.score).contains("0.5"), "{:?}", made.score);
        let made = attention(&["--normalize", "gumbel", "--with", "temperature=2"]).unwrap();
        assert!(format!("{:?}", made.normalizer).contains("temperature: 2.0"));
        for (flags, message) in [
            (["--score", "edge", "--with", "slop=1"], "need one of: slope"),
            (["--score", "dot", "--with", "slope=1"], "have no settings"),
            (["--score", "edge", "--with", "slope"], "need NAME=X"),
            (["--score", "edge", "--with", "slope=NaN"], "finite"),
        ] {
            let error = format!("{:#}", attention(&flags).unwrap_err());
            assert!(error.contains(message), "{flags:?}: {error}");
        }
    }
}
