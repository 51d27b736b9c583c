//! A label for an image, and where the model looked.

use super::super::Outcome;
use super::{Asked, write_json};
use crate::models;
use anyhow::{Context, Result, bail};
use clap::Args;
use regard_tasks::data::Picture;
use regard_tasks::images::{Looks, Viewer, overlay};
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;

/// Images that are looked at before anything is said of them.
const AT_ONCE: usize = 1000;

// Without a group of its own, whose name would be that of the others here.
#[derive(Args)]
#[group(skip)]
pub struct Flags {
    /// Images instead of texts: PNG, JPEG or IDX files
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["text", "pair", "why"])]
    image: Vec<PathBuf>,
    /// Of IDX files, the image of this number alone, from 0
    #[arg(long, value_name = "N", requires = "image")]
    index: Option<usize>,
    /// Draw where the model looked over the image: a PNG
    #[arg(long, value_name = "FILE", requires = "image")]
    attention: Option<PathBuf>,
    /// The head that is drawn, as LAYER.HEAD, both from 0, instead of all of them
    #[arg(long, value_name = "L.H", requires = "attention", value_parser = layer_and_head)]
    head: Option<(usize, usize)>,
}

impl Flags {
    /// Whether images are given.
    pub fn is_asked(&self) -> bool {
        !self.image.is_empty()
    }
}

fn layer_and_head(text: &str) -> Result<(usize, usize), String> {
    let parts = text.split_once('.').and_then(|(l, h)| Some((l.parse().ok()?, h.parse().ok()?)));
    parts.ok_or_else(|| "need LAYER.HEAD, such as 0.3".to_string())
}

/// An image, and where it comes from.
struct Given {
    file: String,
    index: usize,
    picture: Picture,
}

pub fn run(flags: &Flags, asked: &Asked, out: &mut dyn Write) -> Result<Outcome> {
    let viewer = models::viewer(asked.model, asked.hub)?;
    let mut given = vec![];
    for path in &flags.image {
        let pictures = Viewer::read(path)?.into_iter().enumerate();
        let file = path.display().to_string();
        let before = given.len();
        let chosen = pictures.filter(|(i, _)| flags.index.is_none_or(|index| index == *i));
        given.extend(chosen.map(|(index, picture)| Given { file: file.clone(), index, picture }));
        if given.len() == before {
            let index = flags.index.unwrap_or(0);
            bail!("--index: got {index}, {file} holds no image of that number");
        }
    }
    if let Some(to) = &flags.attention {
        let [one] = &given[..] else {
            bail!(
                "--attention: got {} images, need one; of an IDX file --index says which",
                given.len()
            );
        };
        let (labels, looks) = viewer.look(&one.picture).context(one.file.clone())?;
        let (of, map) = map(&looks, flags.head).context("--head")?;
        overlay(&one.picture, &map, looks.grid)?.write_png(to)?;
        if asked.json {
            let weights: Vec<&[f64]> = map.chunks_exact(looks.grid[1]).collect();
            let mut object = one.object(asked.object(&labels));
            object["attention"] = json!({ "of": of, "file": to, "weights": weights });
            write_json(out, &object)?;
        } else {
            writeln!(out, "{}", asked.line(&labels))?;
        }
        return Ok(Outcome::Positive);
    }
    for some in given.chunks(AT_ONCE) {
        let pictures: Vec<Picture> = some.iter().map(|one| one.picture.clone()).collect();
        for (one, labels) in some.iter().zip(viewer.classify(&pictures)?) {
            match asked.json {
                true => write_json(out, &one.object(asked.object(&labels)))?,
                false => writeln!(out, "{}", asked.line(&labels))?,
            }
        }
    }
    Ok(Outcome::Positive)
}

impl Given {
    /// What is said of it, with where it comes from.
    fn object(&self, mut said: Value) -> Value {
        said["file"] = json!(self.file);
        said["index"] = json!(self.index);
        said
    }
}

/// What is drawn, and its name.
fn map(looks: &Looks, head: Option<(usize, usize)>) -> Result<(String, Vec<f64>)> {
    Ok(match head {
        None => ("rollout".into(), looks.rollout()),
        Some((layer, head)) => (format!("{layer}.{head}"), looks.head(layer, head)?),
    })
}
