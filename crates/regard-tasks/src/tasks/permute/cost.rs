//! Prediction targets of a sequence and their loss.

use super::Recipe;
use super::choose::{Draws, ranks};
use super::sequences::{Sequence, Sequences};
use burn::tensor::{Device, Int, Tensor, TensorData};
use regard_attention::Mode;
use regard_attention::ops::{CrossEntropy, cross_entropy};
use regard_models::text::{TextModel, Texts};
use regard_models::xlnet::{Permuted, Sight};
use std::collections::BTreeMap;

/// Random stream of the draws; the example's index is added.
const DRAW: u64 = 0x7065_726d_0000_0000;

/// A sequence with its targets and their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermutedExample {
    /// Input of the model.
    pub sequence: Sequence,
    /// Positions to predict, ascending.
    pub targets: Vec<usize>,
    /// Rank of each token in the factorisation order: a target is predicted from lower ranks.
    pub ranks: Vec<u32>,
}

/// Loss of a batch.
pub(super) struct Cost {
    /// Mean cross-entropy over the targets.
    pub mean: Tensor<1>,
    pub targets: usize,
}

/// Draws an example as a step sees it: the same for the same step of a run, and for every
/// evaluation.
pub(super) fn draw_example(
    recipe: &Recipe,
    of: &Sequences,
    number: usize,
    mode: Mode,
) -> PermutedExample {
    let mut draws = Draws::new(mode, DRAW + number as u64);
    let sequence = of.draw(number, &mut draws);
    let targets = recipe.targets.choose(&sequence.open, &mut draws);
    let ranks = ranks(sequence.ids.len(), &targets, &mut draws);
    PermutedExample { sequence, targets, ranks }
}

/// Computes the loss of a batch.
pub(super) fn cost(
    recipe: &Recipe,
    model: &dyn TextModel,
    all: &[PermutedExample],
    mode: Mode,
    device: &Device,
) -> Cost {
    // Sequences with a memory are batched by length; all others form one batch.
    let mut parts: BTreeMap<usize, Vec<&PermutedExample>> = BTreeMap::new();
    for example in all {
        let Sequence { ids, memory, .. } = &example.sequence;
        let length = if memory.is_empty() { 0 } else { ids.len() };
        parts.entry(length).or_default().push(example);
    }
    let parts = parts.values().map(|part| one(recipe, model, part, mode, device));
    let parts: Vec<Cost> = parts.collect();
    let targets = parts.iter().map(|part| part.targets).sum();
    let share = |part: Cost| part.mean * (part.targets as f32 / targets as f32);
    let mean = parts.into_iter().map(share).reduce(|sum, part| sum + part);
    Cost { mean: mean.expect("a batch is not empty"), targets }
}

/// Computes the loss of sequences that form one batch.
fn one(
    recipe: &Recipe,
    model: &dyn TextModel,
    all: &[&PermutedExample],
    mode: Mode,
    device: &Device,
) -> Cost {
    let (mut texts, mut before) = (Texts::new(), Texts::new());
    let (mut targets, mut wanted, mut ranks) = (vec![], vec![], vec![]);
    for PermutedExample { sequence, targets: places, ranks: own } in all {
        let first = texts.tokens();
        texts.push_typed(&sequence.ids, &sequence.types);
        if !sequence.memory.is_empty() {
            before.push(&sequence.memory);
        }
        targets.extend(places.iter().map(|at| first + at));
        wanted.extend(places.iter().map(|at| i64::from(sequence.ids[*at])));
        ranks.push(own.clone());
    }
    let permuting = model.permuting().expect("checked at creation");
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
