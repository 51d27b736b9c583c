//! Training objective of pointer networks.

use super::instances::{Instance, Instances};
use super::pointer::{Pointer, within_unit};
use super::{PointProblem, Recipe};
use crate::data::{Lengths, Part};
use crate::decode::{self, generation};
use crate::evaluation;
use crate::recipe::ModelTable;
use crate::train::trained::device;
use crate::train::{BatchLoss, Evaluation, Objective, Trained};
use burn::tensor::{Device, Int, Tensor, TensorData};
use regard_attention::{Mode, ops};
use regard_models::pointer::{MARKER, PointerNet, Points};
use regard_models::{Capability, Error, Result};
use serde_json::Value;
use std::path::Path;

/// Target of padding steps, ignored by the loss.
const IGNORED: i64 = -1;

/// Training objective of pointer networks.
pub struct PointObjective {
    problem: &'static dyn PointProblem,
    train: Instances,
    valid: Instances,
    decode: decode::Options,
}

impl PointObjective {
    /// Creates a model with initial weights as a recipe configures it.
    pub fn new(recipe: &Recipe) -> Result<Trained<PointObjective>> {
        let problem = recipe.data.problem()?;
        let mut table = ModelTable::new(&recipe.model)?;
        table.set("problem", problem.name());
        table.set("input_size", problem.width());
        table.set_default("choice", serde_json::json!(problem.choice()));
        let net = table.create::<PointerNet>(recipe.seed)?;
        let (train, valid) = (
            recipe.data.read(Part::Train, recipe.seed)?,
            recipe.data.read(Part::Valid, recipe.seed)?,
        );
        for (part, instances) in [("train", &train), ("valid", &valid)] {
            if instances.is_empty() {
                return Err(Error::invalid(format!("data.{part}: got no sets of points")));
            }
        }
        let decode = recipe.decode.clone();
        Ok(Trained::new(net, PointObjective { problem, train, valid, decode }))
    }

    /// Returns the number of training and of validation sets.
    pub(super) fn counts_of_parts(&self) -> (usize, usize) {
        (self.train.len(), self.valid.len())
    }

    /// Returns a summary of the sizes.
    pub(super) fn about(&self, millions: f64) -> String {
        format!(
            "{}: {} training and {} validation sets, {millions:.3} M parameters",
            self.problem.name(),
            self.train.len(),
            self.valid.len(),
        )
    }

    /// Computes the mean loss per step with teacher forcing, and the number of steps.
    fn cost(&self, net: &PointerNet, batch: &[Instance], mode: Mode, device: &Device) -> BatchLoss {
        let mut points = Points::new(self.problem.width());
        batch.iter().for_each(|instance| points.push(&within_unit(&instance.points)));
        let answers: Vec<Vec<u32>> = batch.iter().map(|each| each.answer.clone()).collect();
        let weights = net.forward(&points, &answers, mode);
        let [b, t, s] = weights.dims();
        let wanted: Vec<i64> = answers
            .iter()
            .flat_map(|answer| {
                let places = answer.iter().map(|at| i64::from(*at) + 1);
                let all = places.chain(std::iter::once(i64::from(MARKER)));
                all.chain(std::iter::repeat(IGNORED)).take(t)
            })
            .collect();
        let tokens = wanted.iter().filter(|at| **at != IGNORED).count();
        let wanted = Tensor::<1, Int>::from_data(TensorData::new(wanted, [b * t]), device);
        let value = ops::negative_log_likelihood(weights.reshape([b * t, s]), wanted, IGNORED);
        BatchLoss { value, tokens }
    }
}

impl Objective for PointObjective {
    type Model = PointerNet;

    fn lengths(&self) -> Vec<Lengths> {
        let width = self.problem.width();
        let length = |index| Lengths { source: self.train.size(index, width) + 1, target: 0 };
        (0..self.train.len()).map(length).collect()
    }

    fn loss(&self, net: &PointerNet, examples: &[usize], mode: Mode) -> BatchLoss {
        let batch: Vec<Instance> = examples.iter().map(|i| self.train.get(*i)).collect();
        self.cost(net, &batch, mode, &device())
    }

    /// Counts input points: the number of output steps is not known before they are computed.
    fn tokens(&self, examples: &[usize]) -> usize {
        examples.iter().map(|i| self.train.size(*i, self.problem.width())).sum()
    }

    fn counts(&self) -> &'static str {
        "points"
    }

    fn evaluate(&self, net: &PointerNet) -> Result<Evaluation> {
        let net = *net.evaluation();
        let all: Vec<Instance> = self.valid.iter().collect();
        let (mut sum, mut steps) = (0.0, 0);
        for some in all.chunks(256) {
            let BatchLoss { value, tokens } = self.cost(&net, some, Mode::Eval, &Device::flex());
            sum += f64::from(value.into_scalar::<f32>()) * tokens as f64;
            steps += tokens;
        }
        let pointer = Pointer::new(net, self.decode.clone())?;
        let marks = self.problem.marks(&pointer.exam(&self.valid, &self.decode)?);
        let (name, better) = self.problem.decides();
        let decides = marks.iter().find(|mark| mark.name == name);
        let decides = decides.expect("the selection metric is one of the problem's metrics").value;
        let mut measures = vec![("valid_loss".to_string(), sum / steps.max(1) as f64)];
        measures.extend(evaluation::measures(&marks));
        Ok(Evaluation::new(measures, decides, better))
    }

    fn save_rest(&self, config: &Value, folder: &Path) -> Result<()> {
        generation::save(folder, &self.decode, config)
    }
}
