//! What of a sequence is told, and what that costs.

use super::Recipe;
use super::choose::{Draws, ranks};
use super::sequences::{Sequence, Sequences};
use burn::tensor::{Device, Int, Tensor, TensorData};
use regard_attention::Mode;
use regard_attention::ops::{CrossEntropy, cross_entropy};
use regard_models::text::{TextModel, Texts};
use regard_models::xlnet::{Permuted, Sight};
use std::collections::BTreeMap;

/// Where draws come from, among the sites of the generator; an example's number is added.
const DRAW: u64 = 0x7065_726d_0000_0000;

/// A sequence, and what of it is told in which order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// What the model reads.
    pub sequence: Sequence,
    /// The places that are told, ascending.
    pub targets: Vec<usize>,
    /// The rank of each token: a target is told from those of lower ranks.
    pub ranks: Vec<u32>,
}

/// What sequences cost.
pub(super) struct Cost {
    /// The mean over targets.
    pub mean: Tensor<1>,
    pub targets: usize,
}

/// An example as it is in a step: the same for the same step of a run, and for every evaluation.
pub(super) fn told(recipe: &Recipe, of: &Sequences, number: usize, mode: Mode) -> Told {
    let mut draws = Draws::new(mode, DRAW + number as u64);
    let sequence = of.draw(number, &mut draws);
    let targets = recipe.targets.choose(&sequence.open, &mut draws);
    let ranks = ranks(sequence.ids.len(), &targets, &mut draws);
    Told { sequence, targets, ranks }
}

/// What sequences cost a model.
pub(super) fn cost(
    recipe: &Recipe,
    model: &dyn TextModel,
    all: &[Told],
    mode: Mode,
    device: &Device,
) -> Cost {
    // Texts with a memory are read together if they are of one length; all others are anyway.
    let mut parts: BTreeMap<usize, Vec<&Told>> = BTreeMap::new();
    for told in all {
        let Sequence { ids, memory, .. } = &told.sequence;
        let length = if memory.is_empty() { 0 } else { ids.len() };
        parts.entry(length).or_default().push(told);
    }
    let parts = parts.values().map(|part| one(recipe, model, part, mode, device));
    let parts: Vec<Cost> = parts.collect();
    let targets = parts.iter().map(|part| part.targets).sum();
    let share = |part: Cost| part.mean * (part.targets as f32 / targets as f32);
    let mean = parts.into_iter().map(share).reduce(|sum, part| sum + part);
    Cost { mean: mean.expect("a batch is not empty"), targets }
}

/// The same of sequences that are read together.
fn one(recipe: &Recipe, model: &dyn TextModel, all: &[&Told], mode: Mode, device: &Device) -> Cost {
    let (mut texts, mut before) = (Texts::new(), Texts::new());
    let (mut targets, mut wanted, mut ranks) = (vec![], vec![], vec![]);
    for Told { sequence, targets: places, ranks: own } in all {
        let first = texts.tokens();
        texts.push_typed(&sequence.ids, &sequence.types);
        if !sequence.memory.is_empty() {
            before.push(&sequence.memory);
        }
        targets.extend(places.iter().map(|at| first + at));
        wanted.extend(places.iter().map(|at| i64::from(sequence.ids[*at])));
        ranks.push(own.clone());
    }
    let permuting = model.permuting().expect("asked when it was made");
    let memory = (before.tokens() > 0).then(|| permuting.remember(&before, mode));
    let sight = Sight::Ranks(ranks);
    let batch = Permuted { texts: &texts, sight, targets: &targets, memory: memory.as_ref() };
    let logits = permuting.predict(&batch, mode).logits;
    let count = wanted.len();
    let wanted = Tensor::<1, Int>::from_data(TensorData::new(wanted, [count]), device);
    let smoothing = if mode == Mode::Eval { 0.0 } else { recipe.train.label_smoothing };
    let options = CrossEntropy { smoothing, ignore: None };
    Cost { mean: cross_entropy(logits, wanted, options), targets: count }
}
