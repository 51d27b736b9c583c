//! Models that read, as folders.

use super::Reader;
use regard_models::checkpoint::{self, Precision};
use regard_models::{Error, Result};
use std::path::Path;

impl Reader {
    /// Writes the folder of a model, so that it can be loaded, moved or built in.
    pub fn save(&self, folder: &Path, precision: Precision) -> Result<()> {
        std::fs::create_dir_all(folder).map_err(Error::io(folder))?;
        checkpoint::write(folder, &self.model.config(), &self.model.weights(), precision)?;
        self.tokenizer.save(folder.join("tokenizer.json"))
    }
}
