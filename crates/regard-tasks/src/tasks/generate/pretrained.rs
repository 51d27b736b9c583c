//! The pretrained model that a recipe fine-tunes.

use super::Recipe;
use crate::data::ledger;
use crate::decode::generation;
use crate::reader::fits;
use crate::recipe::known_text_keys;
use crate::say;
use crate::text::{CONFIGURATION_FILES, Tokenizer};
use crate::train::Lora;
use crate::train::trained::device;
use regard_models::adapter::{self, AdapterConfig};
use regard_models::checkpoint::{self, write_file};
use regard_models::text::{self, Head, TextModel};
use regard_models::{Error, ModelFiles, Result};
use std::path::{Path, PathBuf};

/// Largest file beside the weights that a fine-tuned model keeps, in bytes.
const LARGEST: u64 = 1 << 24;

/// A pretrained model.
pub(super) struct Pretrained {
    folder: PathBuf,
    files: ModelFiles,
    /// Id and commit, if it is a model of the Hub.
    of_hub: Option<(String, String)>,
}

impl Pretrained {
    /// Finds the model that a recipe starts from, if it does.
    pub fn of(recipe: &Recipe) -> Result<Option<Pretrained>> {
        let Some(folder) = recipe.origin_folder()? else { return Ok(None) };
        let files = ModelFiles::from(&folder);
        if recipe.lora.is_some() {
            // Checkpoints do not hold the weights: a resumed run must find the same.
            files.weight_files()?.iter().for_each(|path| ledger::note(path));
        }
        // Only models of the Hub have a revision.
        let of_hub = recipe.from.clone().zip(recipe.revision.clone());
        Ok(Some(Pretrained { folder, files, of_hub }))
    }

    /// Loads the tokenizer.
    pub fn tokenizer(&self) -> Result<Tokenizer> {
        Tokenizer::of(&self.files)
    }

    /// Loads the model for training.
    pub fn model(&self, recipe: &Recipe, tokenizer: &Tokenizer) -> Result<Box<dyn TextModel>> {
        let of_config = |e: Error| Error::file(self.folder.join(checkpoint::CONFIG), e.to_string());
        let mut config = text::read_config(&self.folder)?;
        let own = recipe.model.as_object();
        let own = own.ok_or_else(|| Error::invalid("model: need a table"))?;
        let is_dropout = |key: &str| key.contains("dropout") || key.ends_with("_pdrop");
        let other = own.keys().find(|key| !is_dropout(key));
        if let Some(key) = other.filter(|_| recipe.lora.is_some()) {
            return Err(Error::invalid(format!(
                "model.{key}: cannot be set with [lora]: the adapter would belong to another model \
                 than that of `from`. Only dropout can be"
            )));
        }
        for (key, value) in own {
            config[key] = value.clone();
        }
        known_text_keys(&recipe.model, &config)?;
        let weights = self.files.weights()?;
        let model = text::load(&config, weights, Some(Head::Words), recipe.seed, &device());
        let model = model.map_err(of_config)?;
        fits(&*model, tokenizer).map_err(|e| Error::file(&self.folder, e.to_string()))?;
        Ok(model)
    }

    /// Returns the configuration of an adapter of the model.
    ///
    /// # Errors
    /// If the model is itself one with an adapter: that of an adapter needs whole weights.
    pub fn adapter(&self, lora: &Lora) -> Result<AdapterConfig> {
        if adapter::is_adapter(&self.folder) {
            let folder = say::quoted(self.folder.display());
            return Err(Error::invalid(format!(
                "from: {folder} holds an adapter; merge it first: regard models export {folder} \
                 --out MERGED"
            )));
        }
        let mut config = lora.config().map_err(Error::Invalid)?;
        match &self.of_hub {
            // Where its files are differs between machines.
            Some((id, commit)) => {
                (config.base, config.revision) = (Some(id.clone()), Some(commit.clone()));
            }
            None => {
                let base = std::fs::canonicalize(&self.folder).map_err(Error::io(&self.folder))?;
                config.base = Some(base.display().to_string());
            }
        }
        Ok(config)
    }

    /// Copies what belongs to the tokenizer.
    pub fn save_rest(&self, to: &Path) -> Result<()> {
        for name in CONFIGURATION_FILES {
            self.copy(name, to)?;
        }
        Ok(())
    }

    /// Copies the model's own options of generation; returns whether it has any.
    pub fn save_options(&self, to: &Path) -> Result<bool> {
        self.copy(generation::FILE, to)
    }

    fn copy(&self, name: &str, to: &Path) -> Result<bool> {
        if !self.files.has(name) {
            return Ok(false);
        }
        write_file(&to.join(name), &self.files.read(name, LARGEST)?)?;
        Ok(true)
    }
}
