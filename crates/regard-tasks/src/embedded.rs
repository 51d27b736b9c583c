//! Models that are part of a program.

use crate::decode::{Options, generation};
use crate::text::Tokenizer;
use regard_models::checkpoint::{self, Arrays};
use regard_models::{Error, Result};
use serde_json::Value;

/// A model that is part of a program: the files of its folder, by name.
#[derive(Clone, Copy, Debug)]
pub struct Embedded {
    /// Names and contents.
    pub files: &'static [(&'static str, &'static [u8])],
}

impl Embedded {
    /// The contents of a file.
    pub fn file(&self, name: &str) -> Result<&'static [u8]> {
        let found = self.files.iter().find(|(known, _)| *known == name);
        found.map(|(_, bytes)| *bytes).ok_or_else(|| {
            Error::invalid(format!("a model of this program has no {name}: it was built wrongly"))
        })
    }

    /// `config.json`
    pub fn config(&self) -> Result<Value> {
        serde_json::from_slice(self.file(checkpoint::CONFIG)?)
            .map_err(|e| Error::invalid(format!("{}: {e}", checkpoint::CONFIG)))
    }

    /// Its weights.
    pub fn weights(&self) -> Result<Arrays> {
        checkpoint::weights_from_bytes(self.file(checkpoint::WEIGHTS)?).map_err(Error::Invalid)
    }

    /// A tokenizer of this name, with what a file beside it says of it.
    pub(crate) fn tokenizer(&self, name: &str) -> Result<Tokenizer> {
        match self.file(&name.replace("tokenizer.json", "tokenizer_config.json")) {
            Ok(config) => Tokenizer::with_config(self.file(name)?, config),
            Err(_) => Tokenizer::from_bytes(self.file(name)?),
        }
    }

    /// How it likes to write.
    pub(crate) fn options(&self) -> Result<Options> {
        generation::read(self.file(generation::FILE)?).map_err(Error::Invalid)
    }
}
