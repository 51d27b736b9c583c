//! Saves a text encoder as a folder.

use super::TextEncoder;
use regard_models::checkpoint::{self, Precision};
use regard_models::{Error, Result};
use std::path::Path;

impl TextEncoder {
    /// Writes configuration, weights and tokenizer to a folder that can be loaded or moved.
    pub fn save(&self, folder: &Path, precision: Precision) -> Result<()> {
        std::fs::create_dir_all(folder).map_err(Error::io(folder))?;
        checkpoint::write(folder, &self.model.config(), &self.model.weights(), precision)?;
        self.tokenizer.save(folder.join("tokenizer.json"))
    }
}
