//! What a command line says about an attention, made into one.
//!
//! Names are those of the catalogue; a test holds this file against it.

mod mask;

use crate::files::Archive;
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use regard_kernels::attention::bias::{Alibi, Bias, Dense, EdgeBias, Gaussian, Table};
use regard_kernels::attention::mask::Mask;
use regard_kernels::attention::normalize::{self, Estimator, Hard, Normalizer};
use regard_kernels::attention::score::{self, Edge, Gatv2, Relative, SLOPE, Score};
use regard_kernels::attention::{Attention, Graph, VARIANTS};
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
}

impl Choice {
    /// The attention. Masks and biases that need arrays find them in `arrays`.
    pub fn attention(&self, seed: u64, arrays: Option<&Archive>) -> Result<Attention> {
        let biases = self.bias.iter().map(|name| bias(name, arrays).context("--bias"));
        Ok(Attention {
            score: score(&self.score, arrays).context("--score")?,
            biases: biases.collect::<Result<_>>()?,
            mask: parse_mask(&self.mask, arrays)?,
            normalizer: normalizer(&self.normalize, self.temperature, seed)?,
            scale: self.scale,
            ..Attention::dot()
        })
    }

    /// Whether nothing was chosen.
    pub fn is_default(&self) -> bool {
        let words = (&*self.score, &*self.mask, &*self.normalize);
        let plain = words == ("dot", "full", "softmax") && self.temperature == 1.0;
        plain && self.bias.is_empty() && self.scale.is_none()
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

fn score(name: &str, arrays: Option<&Archive>) -> Result<Arc<dyn Score>> {
    Ok(match name {
        "relative" => {
            // Segment ids are optional: with them come two more parameters.
            let ids = arrays.filter(|arrays| arrays.has("segments"));
            let segments = ids.map(|arrays| arrays.integers("segments")).transpose()?;
            Arc::new(Relative { segments: segments.map(|ids| ids.data), last: None })
        }
        "edge" | "gatv2" => {
            // So are the features of edges: with them comes a graph.
            let graph = match arrays.filter(|arrays| arrays.has("edge")) {
                Some(arrays) => {
                    let (indptr, indices) =
                        (arrays.integers("indptr")?, arrays.integers("indices")?);
                    Some(Arc::new(Graph::new(&indptr.data, &indices.data)))
                }
                None => None,
            };
            match name {
                "edge" => Arc::new(Edge { slope: SLOPE, graph }),
                _ => Arc::new(Gatv2 { slope: SLOPE, graph }),
            }
        }
        "score_mod" => bail!("`score_mod` is a function of your own: it exists in Rust only"),
        _ => score::named(name).ok_or_else(|| unknown("score", name))?,
    })
}

fn bias(name: &str, arrays: Option<&Archive>) -> Result<Arc<dyn Bias>> {
    let need = || arrays.with_context(|| format!("`{name}` needs the arrays of a file"));
    Ok(match name {
        "alibi" => Arc::new(Alibi),
        "table" => {
            let shape = need()?.shape("table")?;
            let last = shape.last().copied().unwrap_or(0);
            if last % 2 == 0 {
                bail!("array `table`: got shape {shape:?}, need [H,2·reach+1]");
            }
            Arc::new(Table { reach: last / 2 })
        }
        "dense" => {
            let shape = need()?.shape("bias")?;
            let axis = |from_end: usize| {
                shape.len().checked_sub(from_end).is_some_and(|axis| shape[axis] > 1)
            };
            Arc::new(Dense { per_batch: axis(4), per_head: axis(3) })
        }
        "edge" => Arc::new(EdgeBias {
            indptr: need()?.integers("indptr")?.data,
            indices: need()?.integers("indices")?.data,
        }),
        "gaussian" => Arc::new(Gaussian { after: false }),
        "gaussian_after" => Arc::new(Gaussian { after: true }),
        _ => return Err(unknown("bias", name)),
    })
}

fn normalizer(name: &str, temperature: f32, seed: u64) -> Result<Arc<dyn Normalizer>> {
    let noise = Stream::new(seed, 0, 0);
    if name == "gumbel" {
        if !(temperature.is_finite() && temperature > 0.0) {
            bail!("--temperature: got {temperature}, need a number above 0");
        }
        return Ok(Arc::new(Hard(Estimator::Gumbel { temperature, noise })));
    }
    let known = normalize::named(name, noise);
    known.ok_or_else(|| unknown("normalize", name).context("--normalize"))
}

/// The names of a kind, in the order of the catalogue.
fn names(kind: &str) -> Vec<&'static str> {
    let rows = VARIANTS.iter().find(|row| row.0 == kind).map_or(&[][..], |row| row.1);
    rows.iter().map(|row| row.name).collect()
}

fn unknown(kind: &str, name: &str) -> anyhow::Error {
    let name = crate::show::label(name, 40);
    anyhow!("got `{name}`, need one of: {}", names(kind).join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether an error is about what is missing, and not about the name.
    fn known<T>(made: Result<T>) -> bool {
        made.err().is_none_or(|error| !error.to_string().contains("need one of"))
    }

    #[test]
    fn every_name_of_the_catalogue_is_known() {
        assert!(names("score").iter().all(|name| known(score(name, None))));
        assert!(names("bias").iter().all(|name| known(bias(name, None))));
        assert!(names("normalize").iter().all(|name| known(normalizer(name, 1.0, 0))));
        assert!(names("mask").iter().all(|name| known(parse_mask(name, None))));
        assert!(!known(score("dots", None)));
    }
}
