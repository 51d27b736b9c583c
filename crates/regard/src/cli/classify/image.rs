//! A label for an image, and where the model looked.

use super::super::{Outcome, inputs};
use super::{Asked, write_json};
use crate::files::not_an_input;
use crate::models;
use anyhow::{Context, Result, bail};
use clap::Args;
use regard_tasks::classify_image::{Images, Looks, Ready, Viewer, overlay};
use regard_tasks::data::Picture;
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Images that are looked at at once, and told of before more are read.
const AT_ONCE: usize = 64;

// Without a group of its own, whose name would be that of the others here.
#[derive(Args)]
#[group(skip)]
pub struct Flags {
    /// Images instead of texts: PNG, JPEG or IDX files, - for standard input
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["text", "pair", "why"])]
    image: Vec<PathBuf>,
    /// Of IDX files, the image of this number alone, from 0
    #[arg(long, value_name = "N", requires = "image", conflicts_with = "graph")]
    index: Option<usize>,
    /// Draw where the model looked over the image: a PNG
    #[arg(long, value_name = "FILE", requires = "image", conflicts_with = "graph")]
    attention: Option<PathBuf>,
    /// The head that is drawn, as LAYER.HEAD, both from 0, instead of all of them
    #[arg(long, value_name = "L.H", requires = "attention", value_parser = layer_and_head)]
    head: Option<(usize, usize)>,
}

impl Flags {
    /// A flag that is given without the image that it is about.
    pub fn stray(&self) -> Option<(&'static str, &'static str)> {
        let given = [
            ("--index", self.index.is_some()),
            ("--attention", self.attention.is_some()),
            ("--head", self.head.is_some()),
        ];
        given.iter().find(|(_, given)| *given).map(|(flag, _)| (*flag, "--image"))
    }

    /// Whether images are given.
    pub fn is_asked(&self) -> bool {
        !self.image.is_empty()
    }
}

fn layer_and_head(text: &str) -> Result<(usize, usize), String> {
    let parts = text.split_once('.').and_then(|(l, h)| Some((l.parse().ok()?, h.parse().ok()?)));
    parts.ok_or_else(|| "need LAYER.HEAD, such as 0.3".to_string())
}

pub fn run(flags: &Flags, asked: &Asked, out: &mut dyn Write) -> Result<Outcome> {
    let viewer = models::viewer(asked.model, asked.hub)?;
    if let Some(to) = &flags.attention {
        let images: Vec<&Path> = flags.image.iter().map(PathBuf::as_path).collect();
        not_an_input("--attention", to, &images)?;
        return draw(&viewer, flags, asked, to, out);
    }
    let mut waiting = vec![];
    for path in &flags.image {
        let read = each(&inputs::file(path), flags.index, &mut |file, index, picture| {
            let ready = viewer.prepare(&picture).with_context(|| file.to_string())?;
            waiting.push((Place { file: file.into(), index }, ready));
            match waiting.len() == AT_ONCE {
                true => tell(&viewer, &mut waiting, asked, out),
                false => Ok(()),
            }
        });
        if let Err(error) = read {
            // What could be read is told of first.
            tell(&viewer, &mut waiting, asked, out)?;
            return Err(error);
        }
    }
    tell(&viewer, &mut waiting, asked, out)?;
    Ok(Outcome::Positive)
}

/// Where an image comes from.
struct Place {
    file: String,
    index: usize,
}

impl Place {
    /// What is said of an image, with where it comes from.
    fn object(&self, mut said: Value) -> Value {
        said["file"] = json!(self.file);
        said["index"] = json!(self.index);
        said
    }
}

type Each<'a> = &'a mut dyn FnMut(&str, usize, Picture) -> Result<()>;

/// The images of a file, or the one that is asked for, one at a time.
fn each(path: &Path, index: Option<usize>, take: Each) -> Result<()> {
    let (file, images) = (path.display().to_string(), Images::read(path)?);
    let chosen = match index {
        None => 0..images.len(),
        Some(index) if index < images.len() => index..index + 1,
        Some(index) => bail!("--index: got {index}, {file} holds no image of that number"),
    };
    for index in chosen {
        let picture = images.get(index).expect("there are so many");
        take(&file, index, picture)?;
    }
    Ok(())
}

/// Says what is on the images that wait for it.
fn tell(
    viewer: &Viewer,
    waiting: &mut Vec<(Place, Ready)>,
    asked: &Asked,
    out: &mut dyn Write,
) -> Result<()> {
    let (places, images): (Vec<Place>, Vec<Ready>) = waiting.drain(..).unzip();
    if images.is_empty() {
        return Ok(());
    }
    for (place, labels) in places.iter().zip(viewer.classify(&images)?) {
        match asked.json {
            true => write_json(out, &place.object(asked.object(&labels)))?,
            false => writeln!(out, "{}", asked.line(&labels))?,
        }
    }
    Ok(())
}

/// Says what is on one image, and draws where the model looked.
fn draw(
    viewer: &Viewer,
    flags: &Flags,
    asked: &Asked,
    to: &Path,
    out: &mut dyn Write,
) -> Result<Outcome> {
    let (mut first, mut count) = (None, 0);
    for path in &flags.image {
        each(&inputs::file(path), flags.index, &mut |file, index, picture| {
            first.get_or_insert_with(|| (Place { file: file.into(), index }, picture));
            count += 1;
            Ok(())
        })?;
    }
    let Some((place, picture)) = first.filter(|_| count == 1) else {
        bail!("--attention: got {count} images, need one; of an IDX file --index says which");
    };
    let (labels, looks) = viewer.look(&picture).with_context(|| place.file.clone())?;
    let (of, map) = map(&looks, flags.head).context("--head")?;
    overlay(&picture, &map, looks.grid)?.write_png(to)?;
    if asked.json {
        let weights: Vec<&[f64]> = map.chunks_exact(looks.grid[1]).collect();
        let mut object = place.object(asked.object(&labels));
        object["attention"] = json!({ "of": of, "file": to, "weights": weights });
        write_json(out, &object)?;
    } else {
        writeln!(out, "{}", asked.line(&labels))?;
    }
    Ok(Outcome::Positive)
}

/// What is drawn, and its name.
fn map(looks: &Looks, head: Option<(usize, usize)>) -> Result<(String, Vec<f64>)> {
    Ok(match head {
        None => ("rollout".into(), looks.rollout()),
        Some((layer, head)) => (format!("{layer}.{head}"), looks.head(layer, head)?),
    })
}
