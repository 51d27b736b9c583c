//! What a command line says about an attention, made into one.
//!
//! Scores, biases and normalisers are made by their rows of the catalogue; `mask.rs` reads masks.

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

/// Score, bias, mask and normaliser by their names; `regard variants` lists them.
#[derive(Args)]
#[command(next_help_heading = "The attention")]
pub struct Choice {
    /// How well a query and a key fit; see `regard variants score`
    #[arg(long, value_name = "NAME", default_value = "dot")]
    pub score: String,
    /// What is added for their places; may be given again; see `regard variants bias`
    #[arg(long, value_name = "NAME")]
    pub bias: Vec<String>,
    /// Which keys a query may see, like 'causal & window(127, 0) | !prefix(3)'
    #[arg(long, value_name = "EXPR", default_value = "full")]
    pub mask: String,
    /// What turns scores into weights; see `regard variants normalize`
    #[arg(long, value_name = "NAME", default_value = "softmax")]
    pub normalize: String,
    /// The score's scale instead of its own
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub scale: Option<f32>,
    /// The temperature of `--normalize gumbel`
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    pub temperature: f32,
    /// A number of score, bias or normaliser instead of its default, like slope=0.1; may be given
    /// again; see `regard variants`
    #[arg(long = "with", value_name = "NAME=X")]
    pub with: Vec<String>,
}

impl Choice {
    /// The attention. Masks and biases that need arrays find them in `arrays`.
    pub fn attention(&self, seed: u64, arrays: Option<&Archive>) -> Result<Attention> {
        let words = Words { choice: self, numbers: self.numbers()?, arrays, seed };
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

    /// Settings of `--with`, by name.
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

    /// Whether nothing was chosen.
    pub fn is_default(&self) -> bool {
        let words = (&*self.score, &*self.mask, &*self.normalize);
        let plain = words == ("dot", "full", "softmax") && self.temperature == 1.0;
        plain && self.bias.is_empty() && self.scale.is_none() && self.with.is_empty()
    }

    /// Its four words, for a heading.
    pub fn words(&self) -> String {
        let score: Vec<&str> =
            [&self.score].into_iter().chain(&self.bias).map(String::as_str).collect();
        format!("{} | {} | {}", score.join(" + "), self.mask, self.normalize)
    }
}

/// A mask from its expression.
pub fn parse_mask(text: &str, arrays: Option<&Archive>) -> Result<Mask> {
    mask::parse(text, arrays).context("--mask")
}

/// The words of a command line, and where their numbers and arrays come from.
struct Words<'a> {
    choice: &'a Choice,
    /// Settings of `--with`.
    numbers: Vec<(String, f32)>,
    arrays: Option<&'a Archive>,
    seed: u64,
}

impl Words<'_> {
    /// Whether each number of `--with` is a setting of something that was chosen.
    fn check(&self) -> Result<()> {
        let Choice { score, bias, normalize, .. } = self.choice;
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
                    true => "nothing that was chosen has numbers to set".into(),
                    false => format!("need one of: {}", settings.join(", ")),
                };
                bail!("--with: got `{}`, {has}", crate::show::label(name, 40));
            }
        }
        Ok(())
    }

    /// Makes the row of a name.
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

    /// The settings of a row, by flags and by arrays of the file.
    fn settings<T: ?Sized + 'static>(&self, row: &Row<T>) -> Result<Settings> {
        let name = row.name();
        let need = || self.arrays.with_context(|| format!("`{name}` needs the arrays of a file"));
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
                // So are the features of edges: with them comes a graph.
                Setting::Graph(Some(with)) => given.graph = has(with).map(graph).transpose()?,
                Setting::Seed => {}
            }
        }
        Ok(given)
    }
}

/// The graph of a file.
fn graph(arrays: &Archive) -> Result<Arc<Graph>> {
    let (indptr, indices) = (arrays.integers("indptr")?, arrays.integers("indices")?);
    Ok(Arc::new(Graph::new(&indptr.data, &indices.data)))
}

/// The name of a setting that `--with` sets.
fn number_name(setting: &Setting) -> Option<&'static str> {
    match setting {
        Setting::Number(name, _) => Some(name),
        _ => None,
    }
}

/// The names of a kind, in the order of the catalogue.
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
        choice: Choice,
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
            (["--score", "dot", "--with", "slope=1"], "nothing that was chosen"),
            (["--score", "edge", "--with", "slope"], "need NAME=X"),
            (["--score", "edge", "--with", "slope=NaN"], "finite"),
        ] {
            let error = format!("{:#}", attention(&flags).unwrap_err());
            assert!(error.contains(message), "{flags:?}: {error}");
        }
    }
}
