//! The files of a model with an adapter, and weights that are quantised on load.

use super::{ResolvedModel, from_hub, is_id};
use crate::hub::Hub;
use anyhow::{Context, Result, anyhow, bail};
use regard_kernels::quant::Bits;
use regard_models::ModelFiles;
use regard_models::adapter::{self, Adapter};
use regard_models::gguf::Kind;
use regard_tasks::{quantize, say, train};

/// Returns the files of a model, with the updates of an adapter if --adapter asks for them.
///
/// # Errors
/// If there is no adapter, or it cannot be read.
pub fn adapted(found: &ResolvedModel, hub: &Hub) -> Result<ModelFiles> {
    let mut files = train::files(found.files())?;
    // A run with an adapter of a model of the Hub.
    if let Some((id, revision)) = files.base_elsewhere()?.filter(|(id, _)| is_id(id)) {
        let of_base = Hub { revision, offline: hub.offline, ..Hub::default() };
        let found = from_hub(&id, &of_base, of_base.fetch()).context("base_model_name_or_path")?;
        files = files.with_base(found.folder);
    }
    let Some(folder) = &hub.adapter else { return Ok(files) };
    // A run has its adapter where another has its model.
    let of_run = train::find(folder).ok().filter(|found| adapter::is_adapter(found));
    let folder = match adapter::is_adapter(folder) {
        true => folder,
        false => of_run.as_ref().unwrap_or(folder),
    };
    Ok(files.adapted(Adapter::open(folder).context("--adapter")?))
}

/// Returns the files of a model, to be quantised on load if --storage asks for it.
///
/// # Errors
/// If the model is quantised to another type already.
pub fn stored(found: &ResolvedModel, hub: &Hub) -> Result<ModelFiles> {
    let files = adapted(found, hub)?;
    let Some(bits) = hub.bits() else { return Ok(files) };
    let of_file: Vec<Bits> = files.kinds()?.into_iter().filter_map(Kind::bits).collect();
    let config = files.config()?;
    let place = say::quoted(files.place().display());
    let named = |e| anyhow!("--storage {}: {place}: {e}", bits.name());
    let is_quantized = quantize::is_quantized(&config).map_err(named)?;
    let other = is_quantized && quantize::bits(&config) != Some(bits)
        || !(of_file.is_empty() || of_file.contains(&bits));
    match other {
        true => bail!(
            "--storage {}: {place} is quantised already; to convert it to floating point first: \
             regard models export {place} --out FLOATS",
            bits.name()
        ),
        false => Ok(files.stored_in(Some(bits))),
    }
}
