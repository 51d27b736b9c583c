//! Models that read, as folders and as parts of a program.

use super::{Reader, fits};
use crate::Embedded;
use burn::tensor::Device;
use regard_models::checkpoint::{self, Precision};
use regard_models::text::{self, Head};
use regard_models::{Error, Result};
use std::path::Path;

impl Reader {
    /// Writes the folder of a model, so that it can be loaded, moved or built in.
    pub fn save(&self, folder: &Path, precision: Precision) -> Result<()> {
        std::fs::create_dir_all(folder).map_err(Error::io(folder))?;
        checkpoint::write(folder, &self.model.config(), &self.model.weights(), precision)?;
        self.tokenizer.save(folder.join("tokenizer.json"))
    }

    /// A model that is part of the program, for what it was trained for.
    pub fn embedded(model: &Embedded, head: Head) -> Result<Reader> {
        let config = model.config()?;
        let named = text::head_of(&config)?;
        if named != head {
            return Err(Error::invalid(format!("trained for {named:?}, asked for {head:?}")));
        }
        let model_of = text::load(&config, model.weights()?, None, 0, &Device::flex())?;
        let tokenizer = model.tokenizer("tokenizer.json")?;
        fits(&*model_of, &tokenizer)?;
        Ok(Reader::new(model_of, tokenizer))
    }
}
