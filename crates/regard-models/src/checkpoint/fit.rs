//! A model and the weights that are put into it: what does not fit is told at once, with the file
//! that it is wrong with where there is one.

use super::{Arrays, Binder, CONFIG, read_config, read_weights, weights_file};
use crate::{Error, Result};
use burn::tensor::Device;
use serde_json::Value;
use std::path::Path;

/// A model, and what of a checkpoint did not fit it.
pub(crate) struct Fit<M> {
    pub model: M,
    pub problems: Vec<String>,
}

impl<M> Fit<M> {
    /// Puts weights into a model by the names that `bind` says. A name that it does not say is a
    /// problem, unless somebody else `may` need it.
    pub fn new(
        mut model: M,
        bind: impl FnOnce(&mut M, &mut Binder),
        mut weights: Arrays,
        may: impl Fn(&str) -> bool,
        device: &Device,
    ) -> Fit<M> {
        let mut binder = Binder::read(&mut weights, device);
        bind(&mut model, &mut binder);
        let mut problems: Vec<String> = binder.problems().iter().map(|p| p.to_string()).collect();
        let left = weights.keys().filter(|name| !may(name));
        problems.extend(left.map(|name| format!("{name} has no place in this model")));
        Fit { model, problems }
    }

    /// The model, if all fits.
    pub fn whole(self) -> Result<M> {
        match self.problems.is_empty() {
            true => Ok(self.model),
            false => Err(Error::invalid(crate::misfit(&self.problems))),
        }
    }

    /// The model of a folder with `config.json` and `model.safetensors`.
    pub fn open(folder: &Path, fill: impl FnOnce(&Value, Arrays) -> Result<Fit<M>>) -> Result<M> {
        let (config, weights) = (read_config(folder)?, read_weights(folder)?);
        let fit =
            fill(&config, weights).map_err(|e| Error::file(folder.join(CONFIG), e.to_string()))?;
        fit.whole().map_err(|e| Error::file(weights_file(folder), e.to_string()))
    }
}
