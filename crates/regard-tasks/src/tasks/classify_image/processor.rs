//! From an image to the numbers that a model reads, as `preprocessor_config.json` says it:
//! `(pixel · rescale_factor − image_mean)/image_std`, after the image has the model's size.

use super::resize;
use crate::data::Picture;
use regard_models::vit::Config;
use regard_models::{Error, ModelFiles, Result, checkpoint};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::Path;

/// The name of the file.
pub const FILE: &str = "preprocessor_config.json";

/// What is done with an image, by the keys of Hugging Face's `ViTImageProcessor`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Processor {
    /// The class of Hugging Face's library.
    pub image_processor_type: String,
    /// Whether images of another size are resized; else they are turned down.
    pub do_resize: bool,
    /// Rows and columns.
    pub size: Value,
    /// How: 2 is bilinear.
    pub resample: u32,
    /// Whether pixels are multiplied.
    pub do_rescale: bool,
    /// With this.
    pub rescale_factor: f64,
    /// Whether the mean is taken away, and what is left divided by the deviation.
    pub do_normalize: bool,
    /// The mean of each channel, after rescaling.
    pub image_mean: Vec<f64>,
    /// The deviation of each.
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
    /// For images of this size, with the mean and the deviation of each channel as shares of 255.
    pub fn new([rows, columns]: [usize; 2], image_mean: Vec<f64>, image_std: Vec<f64>) -> Self {
        let size = json!({ "height": rows, "width": columns });
        Processor { size, image_mean, image_std, ..Processor::default() }
    }

    /// The processor of a model's folder; without a file, Hugging Face's for images of the
    /// model's size.
    pub fn load(files: &ModelFiles, model: &Config) -> Result<Processor> {
        if !files.has(FILE) {
            let half = vec![0.5; model.num_channels];
            return Ok(Processor::new(model.image_size.both(), half.clone(), half));
        }
        files.parse(FILE, |bytes| Processor::from_bytes(bytes, model))
    }

    /// From the bytes of a file.
    pub fn from_bytes(bytes: &[u8], model: &Config) -> Result<Processor, String> {
        let processor: Processor = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
        let (got, wanted) = (processor.sides()?, model.image_size.both());
        if processor.do_resize && got != wanted {
            return Err(format!("size: got {got:?}, the model reads images of {wanted:?}"));
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

    /// Writes the file.
    pub fn save(&self, folder: &Path) -> Result<()> {
        let mut text = serde_json::to_string_pretty(self).expect("it is plain data");
        text.push('\n');
        checkpoint::write_file(&folder.join(FILE), text.as_bytes())
    }

    /// Rows and columns, from the forms that the key has had.
    fn sides(&self) -> Result<[usize; 2], String> {
        let number = |value: &Value| value.as_u64().map(|n| n as usize);
        let square = number(&self.size).map(|side| [side; 2]);
        let sides = number(&self.size["height"]).zip(number(&self.size["width"]));
        square.or(sides.map(|(rows, columns)| [rows, columns])).ok_or_else(|| {
            format!("size: got {}, need {{\"height\": rows, \"width\": columns}}", self.size)
        })
    }

    /// The numbers that stand for the bytes of a channel.
    pub fn table(&self, channel: usize) -> [f32; 256] {
        let scale = if self.do_rescale { self.rescale_factor } else { 1.0 };
        let (mean, std) = match self.do_normalize {
            true => (self.image_mean[channel], self.image_std[channel]),
            false => (0.0, 1.0),
        };
        std::array::from_fn(|byte| ((byte as f64 * scale - mean) / std) as f32)
    }

    /// The numbers that a model reads: `[C, H, W]`
    pub fn prepare(&self, picture: &Picture, model: &Config) -> Result<Vec<f32>> {
        let (channels, size) = (model.num_channels, model.image_size.both());
        let picture = picture.with_channels(channels)?;
        let picture = match picture.size == size {
            true => picture,
            false if self.do_resize => resize(&picture, size),
            false => {
                return Err(Error::invalid(format!(
                    "an image of {:?} pixels, the model reads {size:?} and says not to resize",
                    picture.size
                )));
            }
        };
        let plane = |channel: usize| {
            let table = self.table(channel);
            let pixels = picture.pixels.iter().skip(channel).step_by(channels);
            pixels.map(|byte| table[usize::from(*byte)]).collect::<Vec<f32>>()
        };
        Ok((0..channels).flat_map(plane).collect())
    }
}
