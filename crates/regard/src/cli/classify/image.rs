//! Classification of images, and their attention maps.

use super::super::{Outcome, inputs};
use super::{CommonOptions, line, write_json};
use crate::files::{announce, expect_extension, not_an_input};
use crate::models;
use anyhow::{Context, Result, bail};
use clap::Args;
use regard_tasks::attachment::Attachment;
use regard_tasks::classify_image::{ImageClassifier, Images, Parameters, overlay};
use regard_tasks::data::Image;
use regard_tasks::pipeline::Pipeline;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Batch size in images; results of a batch are printed before more images are read.
const AT_ONCE: usize = 64;

// No group: clap would name it after the struct, like those of texts and graphs.
#[derive(Args)]
#[group(skip)]
pub struct Flags {
    /// Classify images: PNG, JPEG or IDX files; - is standard input
    #[arg(long, value_name = "FILE", num_args = 1..,
          conflicts_with_all = ["text", "pair", "attention_weights"])]
    image: Vec<PathBuf>,
    /// Only this image of an IDX file, counted from 0
    #[arg(long, value_name = "N", requires = "image", conflicts_with = "graph")]
    index: Option<usize>,
    /// Write the image with the model's attention as an overlay, as PNG
    #[arg(long, value_name = "FILE", requires = "image", conflicts_with = "graph")]
    attention: Option<PathBuf>,
    /// Head drawn by --attention: LAYER.HEAD, both from 0, such as 2.3 [default: attention rollout
    /// over all layers and heads]
    #[arg(long, value_name = "L.H", requires = "attention", value_parser = layer_and_head)]
    head: Option<(usize, usize)>,
}

impl Flags {
    /// Returns a flag that was given without --image.
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

pub fn run(flags: &Flags, asked: &CommonOptions, out: &mut dyn Write) -> Result<Outcome> {
    for path in &flags.image {
        inputs::not_folder(path, &["png", "jpg", "jpeg"], "--image")?;
    }
    let viewer: ImageClassifier = models::open(asked.model, asked.hub)?;
    if let Some(to) = &flags.attention {
        let images: Vec<&Path> = flags.image.iter().map(PathBuf::as_path).collect();
        not_an_input("--attention", to, &images)?;
        expect_extension("--attention", to, &["png"])?;
        return draw(&viewer, flags, asked, to, out);
    }
    let mut waiting = vec![];
    for path in &flags.image {
        let read = each(&inputs::file(path), flags.index, &mut |picture| {
            waiting.push(picture);
            match waiting.len() == AT_ONCE {
                true => tell(&viewer, &mut waiting, asked, out),
                false => Ok(()),
            }
        });
        if let Err(error) = read {
            // Results of readable images are printed first.
            tell(&viewer, &mut waiting, asked, out)?;
            return Err(error);
        }
    }
    tell(&viewer, &mut waiting, asked, out)?;
    Ok(Outcome::Positive)
}

type Each<'a> = &'a mut dyn FnMut(Attachment<Image>) -> Result<()>;

/// Calls `take` with each image of a file, or only with the one of --index.
fn each(path: &Path, index: Option<usize>, take: Each) -> Result<()> {
    let (file, images) = (path.display().to_string(), Images::read(path)?);
    let chosen = match index {
        None => 0..images.len(),
        Some(index) if index < images.len() => index..index + 1,
        Some(index) => bail!("--index: got {index}, {file} holds no image of that number"),
    };
    for index in chosen {
        let data = images.get(index).expect("there are so many");
        take(Attachment { data, file: Some(file.clone()), index: Some(index) })?;
    }
    Ok(())
}

/// Classifies a batch of images and prints the results.
fn tell(
    viewer: &ImageClassifier,
    waiting: &mut Vec<Attachment<Image>>,
    asked: &CommonOptions,
    out: &mut dyn Write,
) -> Result<()> {
    let images = std::mem::take(waiting);
    let parameters = Parameters { top_k: asked.top_k, ..Parameters::default() };
    for (image, response) in images.iter().zip(viewer.run(&images, &parameters)?) {
        let response = response.with_context(|| image.file.clone().unwrap_or_default())?;
        match asked.json {
            true => write_json(out, &response)?,
            false => writeln!(out, "{}", line(&response.labels))?,
        }
    }
    Ok(())
}

/// Classifies one image, and draws the model's attention over it.
fn draw(
    viewer: &ImageClassifier,
    flags: &Flags,
    asked: &CommonOptions,
    to: &Path,
    out: &mut dyn Write,
) -> Result<Outcome> {
    let (mut first, mut count) = (None, 0);
    for path in &flags.image {
        each(&inputs::file(path), flags.index, &mut |picture| {
            first.get_or_insert(picture);
            count += 1;
            Ok(())
        })?;
    }
    let Some(image) = first.filter(|_| count == 1) else {
        bail!("--attention: got {count} images, need one; --index N chooses one of an IDX file");
    };
    let parameters = Parameters { top_k: asked.top_k, output_attentions: true, head: flags.head };
    let (picture, file) = (image.data.clone(), image.file.clone().unwrap_or_default());
    let mut response = viewer.run_one(image, &parameters).with_context(|| match flags.head {
        Some((layer, head)) => format!("{file}, --head {layer}.{head}"),
        None => file,
    })?;
    let map = response.attention.as_mut().expect("it was asked for");
    map.file = Some(to.display().to_string());
    let grid = [map.weights.len(), map.weights.first().map_or(0, Vec::len)];
    overlay(&picture, &map.weights.concat(), grid)?.write_png(to)?;
    announce(to);
    match asked.json {
        true => write_json(out, &response)?,
        false => writeln!(out, "{}", line(&response.labels))?,
    }
    Ok(Outcome::Positive)
}
