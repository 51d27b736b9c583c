//! Adapters in training: updates beside frozen weights.

use super::merge::fits;
use super::{AdapterConfig, BEGIN, ENDS, LinearLayer, paired};
use crate::checkpoint::{Array, Arrays, Binder, LinearPart};
use crate::network::Definition;
use crate::sizes;
use burn::module::Param;
use burn::tensor::{Device, Tensor, TensorData};
use regard_attention::Init;
use regard_attention::layers::{LowRank, Weight};
use std::collections::BTreeSet;

/// Stream of the initial values, apart from those of a model's own.
const FIRST: u64 = 0x6c6f_7261;

/// Freezes a model and adds an update, zero at first, to each layer that the configuration names.
/// Returns the number of parameters of the updates.
///
/// # Errors
/// If a name of its list is that of no layer, with the names that there are.
pub(crate) fn adapt<M: Definition>(
    model: &mut M,
    config: &AdapterConfig,
    seed: u64,
    device: &Device,
) -> Result<usize, String> {
    let own = model.clone();
    let (mut count, mut names) = (0, vec![]);
    let mut frozen = model.clone().no_grad();
    let mut init = Init::new(seed ^ FIRST, device);
    let mut wrong = None;
    frozen.bind(&mut Binder::linear_parts(&mut |part: LinearPart| {
        if !own.is_body(&part.name) {
            return;
        }
        names.push(part.name.clone());
        if !config.updates(&part.name) {
            return;
        }
        let [inputs, _] = part.weight.dims();
        let (rank, outputs) = (config.rank_of(&part.name), part.columns.len());
        if rank > inputs.min(outputs) {
            wrong.get_or_insert_with(|| {
                format!(
                    "rank: got {rank}, need at most {}: {} has {inputs} inputs and {outputs} outputs",
                    inputs.min(outputs),
                    part.name
                )
            });
            return;
        }
        let scale = config.scale_of(&part.name) as f32;
        part.weight.update(LowRank::new(inputs, part.columns, rank, scale, &mut init));
        count += rank * (inputs + outputs);
    }));
    let unmatched = config.targets.unmatched(&names);
    match wrong {
        Some(wrong) => Err(wrong),
        None if count == 0 || !unmatched.is_empty() => {
            let ends: BTreeSet<&str> = names.iter().filter_map(|n| n.rsplit('.').next()).collect();
            let of = match unmatched[..] {
                [] => "these names".into(),
                _ => format!("the name {}", unmatched.join(" or ")),
            };
            Err(format!(
                "targets: no linear layer below the model's head has {of}; they end in {}, and \
                 all-linear stands for all",
                ends.into_iter().collect::<Vec<&str>>().join(", ")
            ))
        }
        None => {
            *model = frozen;
            Ok(count)
        }
    }
}

/// Returns the tensors of the updates, with PEFT's names, and whether all are of weights `[I, O]`.
pub(crate) fn trained<M: Definition>(model: &M) -> (Arrays, bool) {
    let (mut arrays, mut by_inputs) = (Arrays::new(), true);
    model.clone().bind(&mut Binder::linear_parts(&mut |part: LinearPart| {
        let Some(LowRank { a, b, .. }) = update_of(part.weight, &part) else { return };
        by_inputs &= part.by_inputs;
        for (param, end) in [a, b].into_iter().zip(ENDS) {
            // Rows of a checkpoint are outputs.
            let values = param.val().transpose();
            let floats = values.clone().into_data().try_into_vec().expect("floats");
            let array = Array::new(values.dims().to_vec(), floats);
            arrays.insert(format!("{BEGIN}{}{end}", part.name), array);
        }
    }));
    (arrays, by_inputs)
}

fn update_of<'w>(weight: &'w Weight, part: &LinearPart) -> Option<&'w LowRank> {
    weight.updates().iter().find(|update| update.columns == part.columns)
}

/// Replaces all updates by those of a file.
///
/// # Errors
/// If the file has other updates than the model, or in other sizes.
pub(crate) fn restore<M: Definition>(
    model: &mut M,
    arrays: Arrays,
    device: &Device,
) -> Result<(), String> {
    let mut updates = paired(arrays)?;
    let mut wrong = None;
    model.bind(&mut Binder::linear_parts(&mut |part: LinearPart| {
        let Some(known) = update_of(part.weight, &part) else { return };
        let scale = known.scale;
        let Some(update) = updates.remove(&part.name) else {
            wrong.get_or_insert_with(|| format!("{} has no update", part.name));
            return;
        };
        let layer = LinearLayer::of(&part, false);
        if let Err(message) = fits(&layer, &part.name, &update) {
            wrong.get_or_insert(message);
            return;
        }
        let param = |array: &Array| -> Param<Tensor<2>> {
            let floats = array.floats().expect("checked when it was read").into_owned();
            let shape = [array.shape[0], array.shape[1]];
            let data = TensorData::new(floats, shape);
            let turned = Tensor::<2>::from_data(data, &Device::flex()).transpose();
            Param::from_data(turned.into_data(), device)
        };
        let (a, b) = (param(&update.a), param(&update.b));
        part.weight.update(LowRank { a, b, scale, columns: part.columns });
    }));
    match (wrong, updates.keys().next()) {
        (Some(wrong), _) => Err(wrong),
        (None, Some(name)) => {
            Err(format!("has an update of {}, which is not trained", sizes::short(name, 100)))
        }
        (None, None) => Ok(()),
    }
}
