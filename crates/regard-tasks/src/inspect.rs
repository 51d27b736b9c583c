//! What a checkpoint is, and whether it says what another library says with it.

use burn::module::Module;
use burn::tensor::Device;
use regard_attention::layers::Reach;
use regard_models::checkpoint::{self, Arrays};
use regard_models::speech::{self, Speech};
use regard_models::text;
use regard_models::text::recorded::{Difference, Recorded};
use regard_models::vit::{self, Vit};
use regard_models::{Error, Result};
use serde::Serialize;
use serde_json::Value;
use std::path::Path;

/// What can be said of a model's folder.
#[derive(Clone, Debug, Serialize)]
pub struct Inspected {
    /// `model_type` of `config.json`.
    pub model_type: String,
    /// The class of Hugging Face's library, or the type again.
    pub class: String,
    /// Numbers that training changes.
    pub parameters: usize,
    /// Of the files that hold the weights.
    pub bytes: u64,
    /// Words that it knows; none if it looks at images.
    pub vocabulary: usize,
    /// Channels, rows and columns of an image, if it looks at images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<[usize; 3]>,
    /// The longest text that it can read, if there is one.
    pub longest: Option<usize>,
    /// How each layer attends, in words.
    pub attention: Vec<String>,
    /// Names and shapes, as they are saved.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tensors: Vec<(String, Vec<usize>)>,
}

/// Reads a folder, with all checks that loading it makes.
pub fn inspect(folder: &Path) -> Result<Inspected> {
    let config = text::read_config(folder)?;
    let device = Device::flex();
    let asked = config["model_type"].as_str().unwrap_or("").to_string();
    let class = |config: &Value| {
        let class = config["architectures"][0].as_str();
        class.unwrap_or(&asked).to_string()
    };
    if text::model_types().contains(&asked.as_str()) {
        let model = text::open(folder, None, 0, &device)?;
        return Ok(Inspected {
            class: class(&model.config()),
            parameters: model.parameters(),
            bytes: size_of_weights(folder)?,
            vocabulary: model.vocabulary(),
            images: None,
            longest: model.longest(),
            attention: model.attention(),
            tensors: shapes(&model.weights()),
            model_type: asked,
        });
    }
    if vit::is_vit(&config) {
        let model = Vit::open(folder, &device)?;
        let [rows, columns] = model.shape().image_size.both();
        return Ok(Inspected {
            class: class(&model.config()),
            parameters: model.parameters(),
            bytes: size_of_weights(folder)?,
            vocabulary: 0,
            images: Some([model.shape().num_channels, rows, columns]),
            longest: None,
            attention: model.attention(),
            tensors: shapes(&model.weights()),
            model_type: asked,
        });
    }
    if speech::is_speech(&config) {
        return of_speech(folder, &speech::open(folder, &device)?);
    }
    if !regard_models::model_types().contains(&asked.as_str()) {
        let known = [
            text::model_types(),
            vit::model_types().to_vec(),
            vec![speech::MODEL_TYPE],
            regard_models::model_types(),
        ];
        let all = known.concat().join(", ");
        let message = format!("model_type: got {asked:?}, need one of {all}");
        return Err(Error::file(folder.join(checkpoint::CONFIG), message));
    }
    let model = regard_models::open(folder, &device)?;
    Ok(Inspected {
        class: class(&model.config()),
        parameters: model.parameters(),
        bytes: size_of_weights(folder)?,
        vocabulary: model.config()["vocab_size"].as_u64().unwrap_or(0) as usize,
        images: None,
        longest: model.longest(),
        attention: model.attention(),
        tensors: shapes(&model.weights()),
        model_type: asked,
    })
}

fn of_speech(folder: &Path, model: &Speech) -> Result<Inspected> {
    let config = model.config();
    let Reach { left, right } = config.reach();
    let heads = config.num_attention_heads;
    let each = config.hidden_size / heads;
    let how = format!("{heads} heads of {each}, dot product, {left} rows before and {right} after");
    Ok(Inspected {
        model_type: speech::MODEL_TYPE.into(),
        class: speech::MODEL_TYPE.into(),
        parameters: model.num_params(),
        bytes: size_of_weights(folder)?,
        images: None,
        vocabulary: model.labels(),
        longest: None,
        attention: vec![how; config.num_hidden_layers],
        tensors: shapes(&model.weights()),
    })
}

/// How far the model of a folder is from what was recorded.
pub fn verify(folder: &Path, recorded: &Recorded) -> Result<Vec<Difference>> {
    recorded.compare(&*text::open(folder, None, 0, &Device::flex())?)
}

fn shapes(weights: &Arrays) -> Vec<(String, Vec<usize>)> {
    weights.iter().map(|(name, array)| (name.clone(), array.shape.clone())).collect()
}

/// Of one file, or of all shards.
fn size_of_weights(folder: &Path) -> Result<u64> {
    let file = checkpoint::weights_file(folder);
    let size = |path: &Path| std::fs::metadata(path).map(|m| m.len()).map_err(Error::io(path));
    if file.extension().is_none_or(|end| end != "json") {
        return size(&file);
    }
    let entries = std::fs::read_dir(folder).map_err(Error::io(folder))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let shard = |path: &std::path::PathBuf| {
        path.extension().is_some_and(|end| end == "safetensors" || end == "bin")
    };
    paths.filter(shard).map(|path| size(&path)).sum()
}
