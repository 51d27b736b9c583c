//! Adds the updates of an adapter to the weights of its base.

use super::{Adapter, CONFIG, ENDS, LinearLayer, Targets, Update};
use crate::checkpoint::{Array, Arrays};
use crate::{Error, Result, sizes};
use burn::tensor::{Device, Tensor, TensorData};
use std::collections::BTreeSet;
use std::path::Path;

impl Adapter {
    /// Adds the updates to weights of a model with these layers. The weights that change become
    /// single precision.
    ///
    /// # Errors
    /// If an update is for a layer that the model does not have or has in another size, or for
    /// quantised weights; if a layer that the configuration names has no update. `base` is the file of the weights, for messages.
    pub(crate) fn merge(
        &self,
        layers: &[LinearLayer],
        arrays: &mut Arrays,
        base: &Path,
    ) -> Result<()> {
        self.check_complete(layers).map_err(|message| Error::file(&self.weights, message))?;
        for (name, update) in &self.updates {
            let named = |message: String| Error::file(&self.weights, message);
            let layer = find(layers, name).map_err(named)?;
            fits(layer, name, update).map_err(named)?;
            let key = weight_of(layer, arrays)
                .ok_or_else(|| Error::file(base, format!("{}.weight is missing", layer.name)))?;
            let array = arrays.get_mut(&key).expect("it was just found");
            if array.is_quantized() || !array.is_float() {
                let message = format!(
                    "{key} is quantised ({}): an adapter is added to floating point; convert the \
                     model first, with regard models export",
                    array.dtype()
                );
                return Err(Error::file(base, message));
            }
            let wanted = match layer.by_inputs {
                true => [layer.inputs, layer.outputs],
                false => [layer.outputs, layer.inputs],
            };
            if array.shape[..] != wanted {
                let message =
                    format!("{key} is {:?}, the configuration says {wanted:?}", array.shape);
                return Err(Error::file(base, message));
            }
            let added = product(update, self.config.scale_of(name) as f32, layer.by_inputs);
            array.change(|weight| weight.iter_mut().zip(added).for_each(|(w, x)| *w += x));
        }
        Ok(())
    }

    /// Refuses an adapter that lacks updates of layers which its configuration names.
    fn check_complete(&self, layers: &[LinearLayer]) -> Result<(), String> {
        let found = self.updates.keys().map(|name| find(layers, name).map(|layer| &*layer.name));
        let found = found.collect::<Result<BTreeSet<&str>, String>>()?;
        let all = matches!(self.config.targets, Targets::All);
        let is_named =
            |layer: &&LinearLayer| self.config.updates(&layer.name) && !(all && layer.of_head);
        let missing = layers.iter().filter(is_named).map(|layer| &*layer.name);
        let missing: Vec<&str> = missing.filter(|name| !found.contains(name)).collect();
        match missing[..] {
            [] => Ok(()),
            [first, ..] => Err(format!(
                "has no update of {} layers that {CONFIG} names (target_modules), such as {first}: \
                 the file is not complete",
                missing.len()
            )),
        }
    }
}

/// Finds the layer of an update: its name may lack the prefix that other heads have.
fn find<'a>(layers: &'a [LinearLayer], name: &str) -> Result<&'a LinearLayer, String> {
    if let Some(layer) = layers.iter().find(|layer| layer.name == name) {
        return Ok(layer);
    }
    let ends = |whole: &str, end: &str| {
        whole.strip_suffix(end).is_some_and(|before| before.ends_with('.'))
    };
    let mut alike =
        layers.iter().filter(|layer| ends(&layer.name, name) || ends(name, &layer.name));
    match (alike.next(), alike.next()) {
        (Some(layer), None) => Ok(layer),
        _ if name == "lm_head" || name.ends_with(".lm_head") => {
            Err("has an update of lm_head; updates of the output layer are not supported".into())
        }
        _ => {
            let short = sizes::short(name, 100);
            let such = layers.first().map_or(String::new(), |l| format!(", such as {}", l.name));
            Err(format!(
                "has an update of {short}; this model has no such linear layer (it has {}{such}): \
                 the adapter is for another model",
                layers.len()
            ))
        }
    }
}

/// Compares the sizes of an update with those of its layer.
pub(super) fn fits(layer: &LinearLayer, name: &str, update: &Update) -> Result<(), String> {
    let rank = update.a.shape[0];
    let each = [(&update.a, [rank, layer.inputs]), (&update.b, [layer.outputs, rank])];
    for ((array, wanted), end) in each.into_iter().zip(ENDS) {
        if array.shape[..] != wanted {
            return Err(format!(
                "{}{end} is {:?}, need {wanted:?}: the layer of the model has {} inputs and {} \
                 outputs",
                sizes::short(name, 100),
                array.shape,
                layer.inputs,
                layer.outputs
            ));
        }
    }
    Ok(())
}

/// Name of a layer's weight in a checkpoint, with or without the prefix of the family.
fn weight_of(layer: &LinearLayer, arrays: &Arrays) -> Option<String> {
    let whole = format!("{}.weight", layer.name);
    let without = whole.split_once('.').map(|(_, rest)| rest.to_string());
    [Some(whole), without].into_iter().flatten().find(|name| arrays.contains_key(name))
}

/// `s·B·A`, or its transpose.
fn product(update: &Update, scale: f32, transposed: bool) -> Vec<f32> {
    let matrix = |array: &Array| {
        let floats = array.floats().expect("checked when it was read").into_owned();
        let shape = [array.shape[0], array.shape[1]];
        Tensor::<2>::from_data(TensorData::new(floats, shape), &Device::flex())
    };
    let added = matrix(&update.b).matmul(matrix(&update.a)) * scale;
    let added = if transposed { added.transpose() } else { added };
    added.into_data().try_into_vec().expect("floats")
}
