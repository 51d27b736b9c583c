//! From an image to model input, as `preprocessor_config.json` specifies:
//! `(pixel · rescale_factor − image_mean)/image_std`, after resizing to the model's size.

use super::resize;
use crate::data::Image;
use regard_models::vit::Config;
use regard_models::{Error, ModelFiles, Result, checkpoint};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::Path;

/// Name of the file.
pub const FILE: &str = "preprocessor_config.json";

/// Image preprocessing, with the keys of Hugging Face's `ViTImageProcessor`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Processor {
    /// Class name in Hugging Face's library.
    pub image_processor_type: String,
    /// Whether images of another size are resized; otherwise they are rejected.
    pub do_resize: bool,
    /// Target size: `{"height": rows, "width": columns}`, or one number for a square.
    pub size: Value,
    /// Interpolation of resizing; only 2, bilinear, is supported.
    pub resample: u32,
    /// Whether pixels are multiplied by `rescale_factor`.
    pub do_rescale: bool,
    /// Factor of rescaling; 1/255 by default.
    pub rescale_factor: f64,
    /// Whether the mean is subtracted and the result divided by the standard deviation.
    pub do_normalize: bool,
    /// Mean of each channel, after rescaling.
    pub image_mean: Vec<f64>,
    /// Standard deviation of each channel, after rescaling.
    pub image_std: Vec<f64>,
}

impl Default for Processor {
    fn default() -> Processor {
        Processor {
            image_processor_type: "ViTImageProcessor".into(),
            do_resize: true,
            size: json!({ "height": 224, "width": 224 }),
            resample: 2,
            do_rescale: true,
            rescale_factor: 1.0 / 255.0,
            do_normalize: true,
            image_mean: vec![0.5; 3],
            image_std: vec![0.5; 3],
        }
    }
}

impl Processor {
    /// Creates a processor for images of this size, with the mean and standard deviation of each
    /// channel after scaling to 0 to 1.
    pub fn new([rows, columns]: [usize; 2], image_mean: Vec<f64>, image_std: Vec<f64>) -> Self {
        let size = json!({ "height": rows, "width": columns });
        Processor { size, image_mean, image_std, ..Processor::default() }
    }

    /// Reads the processor of a model's folder; without a file, returns Hugging Face's default for
    /// the model's image size.
    pub fn load(files: &ModelFiles, model: &Config) -> Result<Processor> {
        if !files.has(FILE) {
            let half = vec![0.5; model.num_channels];
            return Ok(Processor::new(model.image_size.both(), half.clone(), half));
        }
        files.parse(FILE, |bytes| Processor::from_bytes(bytes, model))
    }

    /// Parses the contents of a file.
    pub fn from_bytes(bytes: &[u8], model: &Config) -> Result<Processor, String> {
        let processor: Processor = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
        let (got, wanted) = (processor.sides()?, model.image_size.both());
        if processor.do_resize && got != wanted {
            return Err(format!("size: got {got:?}, the model takes images of {wanted:?}"));
        }
        if processor.do_resize && processor.resample != 2 {
            let got = processor.resample;
            return Err(format!("resample: got {got}, need 2, which is bilinear"));
        }
        let channels = model.num_channels;
        for (name, values) in
            [("image_mean", &processor.image_mean), ("image_std", &processor.image_std)]
        {
            let fine = values.len() == channels && values.iter().all(|x| x.is_finite());
            if processor.do_normalize && !fine {
                return Err(format!("{name}: got {values:?}, need {channels} numbers"));
            }
        }
        let flat = |std: &f64| *std <= 0.0;
        if processor.do_normalize && processor.image_std.iter().any(flat) {
            let got = &processor.image_std;
            return Err(format!("image_std: got {got:?}, need numbers above 0"));
        }
        Ok(processor)
    }

    /// Writes the file to a folder.
    pub fn save(&self, folder: &Path) -> Result<()> {
        let mut text = serde_json::to_string_pretty(self).expect("it is plain data");
        text.push('\n');
        checkpoint::write_file(&folder.join(FILE), text.as_bytes())
    }

    /// Returns rows and columns, from any form of the `size` key.
    fn sides(&self) -> Result<[usize; 2], String> {
        let number = |value: &Value| value.as_u64().map(|n| n as usize);
        let square = number(&self.size).map(|side| [side; 2]);
        let sides = number(&self.size["height"]).zip(number(&self.size["width"]));
        square.or(sides.map(|(rows, columns)| [rows, columns])).ok_or_else(|| {
            format!("size: got {}, need {{\"height\": rows, \"width\": columns}}", self.size)
        })
    }

    /// Returns the normalised value of each byte of a channel.
    pub fn table(&self, channel: usize) -> [f32; 256] {
        let scale = if self.do_rescale { self.rescale_factor } else { 1.0 };
        let (mean, std) = match self.do_normalize {
            true => (self.image_mean[channel], self.image_std[channel]),
            false => (0.0, 1.0),
        };
        std::array::from_fn(|byte| ((byte as f64 * scale - mean) / std) as f32)
    }

    /// Returns the normalised values of the bytes of each channel.
    pub fn tables(&self, channels: usize) -> Vec<[f32; 256]> {
        (0..channels).map(|channel| self.table(channel)).collect()
    }

    /// Converts an image to model input, `[C, H, W]`.
    pub fn prepare(&self, picture: &Image, model: &Config) -> Result<Vec<f32>> {
        let (channels, size) = (model.num_channels, model.image_size.both());
        let picture = picture.with_channels(channels)?;
        let picture = match picture.size == size {
            true => picture,
            false if self.do_resize => resize(&picture, size),
            false => {
                return Err(Error::invalid(format!(
                    "got an image of {:?} pixels, need {size:?}: do_resize is false",
                    picture.size
                )));
            }
        };
        let mut numbers = Vec::with_capacity(picture.pixels.len());
        planes(&picture.pixels, &self.tables(channels), &mut numbers);
        Ok(numbers)
    }
}

/// Appends the normalised values of an image to `to`, channel by channel: `[C, H, W]`. Pixels have
/// their channels last; there is a table for each channel.
pub(super) fn planes(pixels: &[u8], tables: &[[f32; 256]], to: &mut Vec<f32>) {
    for (channel, table) in tables.iter().enumerate() {
        let plane = pixels.iter().skip(channel).step_by(tables.len());
        to.extend(plane.map(|byte| table[usize::from(*byte)]));
    }
}
