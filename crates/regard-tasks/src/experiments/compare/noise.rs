//! Global, local and mixed attention with noisy inputs. One position of a sequence carries a class
//! and a marker, all others only noise; it is near the end, where the class is predicted, or far
//! from it.

use super::learn::{Draws, accuracy, device, loss, percent, train};
use super::{CompareOptions, ComparisonResult, Figure, Line};
use burn::module::{Module, Param};
use burn::tensor::{Tensor, TensorData, activation::sigmoid};
use regard_attention::layers::{Call, Linear, LinearConfig, SelfAttention, SelfAttentionConfig};
use regard_attention::mask::window;
use regard_attention::{Attention, Init};
use regard_models::Result;

const CLASSES: usize = 8;
const LENGTH: usize = 48;
const WIDTH: usize = 32;
const BATCH: usize = 32;
/// Number of positions that local attention sees to the left.
const REACH: usize = 6;

/// Position of the signal, relative to the end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SignalPosition {
    Near,
    Far,
}

const KINDS: [(&str, [bool; 2]); 3] =
    [("global", [true, false]), ("local", [false, true]), ("mixed", [true, true])];

#[derive(Module, Debug)]
struct Model {
    global: Option<SelfAttention>,
    local: Option<SelfAttention>,
    /// Weight of global attention in the mixture, before a sigmoid.
    gate: Param<Tensor<1>>,
    classes: Linear,
}

impl Model {
    fn new([global, local]: [bool; 2], seed: u64) -> Model {
        let init = &mut Init::new(seed, &device());
        let mut layer =
            |wanted: bool| wanted.then(|| SelfAttentionConfig::new(WIDTH, 2).init(init));
        let (global, local) = (layer(global), layer(local));
        let gate = init.constant([1], 0.0);
        Model { global, local, gate, classes: LinearConfig::new(WIDTH, CLASSES).init(init) }
    }

    /// `[B, T, M]` → `[B, CLASSES]`, of the last position
    fn forward(&self, x: Tensor<3>) -> Tensor<2> {
        let [b, t, m] = x.dims();
        let see = |layer: &Option<SelfAttention>, attention: &Attention| {
            layer.as_ref().map(|layer| layer.forward(x.clone(), Call::new(attention)))
        };
        let global = see(&self.global, &Attention::dot());
        let local = see(&self.local, &Attention::dot().mask(window(REACH, 0)));
        let seen = match (global, local) {
            (Some(global), Some(local)) => {
                let part: Tensor<3> = sigmoid(self.gate.val()).unsqueeze();
                global * part.clone() + local * (part * -1.0 + 1.0)
            }
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => unreachable!("every kind has a layer"),
        };
        self.classes.forward(seen.slice([0..b, t - 1..t, 0..m]).reshape([b, m]))
    }
}

/// Draws sequences `[rows, LENGTH, WIDTH]` and their classes. The first elements of a vector are
/// its one-hot class, the next is the marker; the last position has a marker of its own.
fn batch(
    rows: usize,
    place: Option<SignalPosition>,
    noise: f32,
    draws: &mut Draws,
) -> (Tensor<3>, Vec<usize>) {
    let mut numbers = vec![0.0; rows * LENGTH * WIDTH];
    let mut wanted = vec![];
    for row in 0..rows {
        let class = draws.below(CLASSES);
        let near = match place {
            Some(place) => place == SignalPosition::Near,
            None => draws.below(2) == 0,
        };
        let back = if near { 1 + draws.below(REACH - 1) } else { 16 + draws.below(24) };
        let sequence = &mut numbers[row * LENGTH * WIDTH..][..LENGTH * WIDTH];
        sequence.iter_mut().for_each(|x| *x = noise * draws.normal());
        let signal = (LENGTH - 1 - back) * WIDTH;
        sequence[signal + class] += 2.0;
        sequence[signal + CLASSES] += 3.0;
        sequence[(LENGTH - 1) * WIDTH + CLASSES + 1] += 3.0;
        wanted.push(class);
    }
    let data = TensorData::new(numbers, [rows, LENGTH, WIDTH]);
    (Tensor::from_data(data, &device()), wanted)
}

/// Trains a model on both and returns its accuracy near and far.
fn shares(kind: [bool; 2], noise: f32, steps: u64, seed: u64) -> [f64; 2] {
    let model = train(Model::new(kind, seed), steps, 5e-3, |model, step| {
        let (x, wanted) = batch(BATCH, None, noise, &mut Draws::new(seed, step));
        loss(model.forward(x), &wanted)
    });
    [SignalPosition::Near, SignalPosition::Far].map(|place| {
        let (x, wanted) = batch(512, Some(place), noise, &mut Draws::new(seed, u64::MAX));
        accuracy(model.forward(x), &wanted)
    })
}

pub fn measure(options: &CompareOptions) -> Result<ComparisonResult> {
    let (levels, steps): (&[f32], u64) =
        if options.quick { (&[0.2, 0.8], 200) } else { (&[0.1, 0.3, 0.6, 0.8, 1.0], 400) };
    let mut found = ComparisonResult::new(
        format!(
            "which of {CLASSES} classes does the marked vector have, 1 to {} positions before the \
             end or 16 to 39? Width {WIDTH}, length {LENGTH}, local sees {REACH} back, {steps} \
             steps of {BATCH}; the signal has norm 3.6, chance is {}",
            REACH - 1,
            percent(1.0 / CLASSES as f64)
        ),
        &["attention", "noise", "near", "far"],
    );
    let (mut near, mut far) = (vec![], vec![]);
    for (name, kind) in KINDS {
        let mut curves = [vec![], vec![]];
        for level in levels {
            let both = shares(kind, *level, steps, options.seed);
            for ((share, curve), place) in both.iter().zip(&mut curves).zip(["near", "far"]) {
                curve.push((f64::from(*level), 100.0 * share));
                found.number(name, &format!("{place}_{level}"), *share);
            }
            found.row(vec![name.into(), level.to_string(), percent(both[0]), percent(both[1])]);
        }
        let [one, other] = curves;
        near.push(Line { name: name.into(), points: one });
        far.push(Line { name: name.into(), points: other });
    }
    for (name, lines) in [("near", near), ("far", far)] {
        found.figures.push(Figure {
            name: format!("noise-{name}"),
            title: format!("classes found when the signal is {name}"),
            x: "noise".into(),
            y: "%".into(),
            logarithmic: [false, false],
            lines,
        });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_attention_does_not_see_far_and_mixed_sees_both() {
        let [global, local, mixed] = KINDS.map(|(_, kind)| shares(kind, 0.2, 200, 0));
        assert!(local[0] > 0.8 && local[1] < 0.3, "{local:?}");
        assert!(global[1] > 0.6 && mixed[1] > 0.6, "{global:?} {mixed:?}");
        assert!(mixed[0] > 0.7, "{mixed:?}");
    }
}
