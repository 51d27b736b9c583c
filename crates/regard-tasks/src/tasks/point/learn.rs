//! Learning to point.

use super::instances::{Instance, Instances};
use super::pointer::{Pointer, within_unit};
use super::{Problem, Recipe};
use crate::data::Lengths;
use crate::decode::{self, generation};
use crate::examine;
use crate::recipe::known_keys;
use crate::train::{Evaluation, Learner, Loss};
use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData};
use regard_attention::{Mode, ops};
use regard_models::pointer::{MARKER, PointerNet, Points};
use regard_models::{Error, Network, Result, zoo};
use serde_json::{Value, json};
use std::path::Path;

/// The target of a step that does not count.
const IGNORED: i64 = -1;

/// A model that is being taught.
pub struct Lesson {
    net: Box<PointerNet>,
    problem: &'static dyn Problem,
    train: Instances,
    valid: Instances,
    decode: decode::Options,
    device: Device,
}

impl Lesson {
    /// Makes a model with first values for what a recipe wants.
    pub fn new(recipe: &Recipe) -> Result<Lesson> {
        let problem = recipe.data.problem()?;
        let device = Device::flex().autodiff();
        let config = config(recipe, problem)?;
        let net = zoo::create::<PointerNet>(&config, recipe.seed, &device)?;
        known_keys(&recipe.model, &net.config())?;
        let (train, valid) = (recipe.data.train(recipe.seed)?, recipe.data.valid()?);
        for (part, instances) in [("train", &train), ("valid", &valid)] {
            if instances.is_empty() {
                return Err(Error::invalid(format!("data.{part}: there is nothing to {part} by")));
            }
        }
        let decode = recipe.decode.clone();
        Ok(Lesson { net, problem, train, valid, decode, device })
    }

    fn net(&self) -> &PointerNet {
        &self.net
    }

    /// How many sets of points are learned from, and how many decide.
    pub(super) fn counts_of_parts(&self) -> (usize, usize) {
        (self.train.len(), self.valid.len())
    }

    /// Sizes, in words.
    pub fn about(&self) -> String {
        format!(
            "{}: {} sets to learn from and {} to decide by, {:.3} M parameters",
            self.problem.name(),
            self.train.len(),
            self.valid.len(),
            self.net().parameters() as f64 / 1e6,
        )
    }

    /// The cost of instances, and the number of steps that it is the mean of.
    fn cost(&self, net: &PointerNet, batch: &[Instance], mode: Mode, device: &Device) -> Loss {
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
        Loss { value, tokens }
    }
}

impl Learner for Lesson {
    fn network(&self) -> &dyn Network {
        &*self.net
    }

    fn network_mut(&mut self) -> &mut dyn Network {
        &mut *self.net
    }

    fn lengths(&self) -> Vec<Lengths> {
        let width = self.problem.width();
        let length = |index| Lengths { source: self.train.size(index, width) + 1, target: 0 };
        (0..self.train.len()).map(length).collect()
    }

    fn loss(&self, examples: &[usize], mode: Mode) -> Loss {
        let batch: Vec<Instance> = examples.iter().map(|i| self.train.get(*i)).collect();
        self.cost(self.net(), &batch, mode, &self.device)
    }

    /// Points that are read: what is pointed at is not known before it is computed.
    fn tokens(&self, examples: &[usize]) -> usize {
        examples.iter().map(|i| self.train.size(*i, self.problem.width())).sum()
    }

    fn counts(&self) -> &'static str {
        "points"
    }

    fn evaluate(&self) -> Result<Evaluation> {
        let net = self.net().valid();
        let all: Vec<Instance> = self.valid.iter().collect();
        let (mut sum, mut steps) = (0.0, 0);
        for some in all.chunks(256) {
            let Loss { value, tokens } = self.cost(&net, some, Mode::Eval, &Device::flex());
            sum += f64::from(value.into_scalar::<f32>()) * tokens as f64;
            steps += tokens;
        }
        let pointer = Pointer::new(net, self.decode.clone())?;
        let marks = self.problem.marks(&pointer.exam(&self.valid, &self.decode)?);
        let (name, better) = self.problem.decides();
        let decides = marks.iter().find(|mark| mark.name == name);
        let decides = decides.expect("a problem decides by one of its marks").value;
        let mut measures = vec![("valid_loss".to_string(), sum / steps.max(1) as f64)];
        measures.extend(examine::measures(&marks));
        Ok(Evaluation { measures, decides, better, also: None, sample: None })
    }

    fn save_rest(&self, folder: &Path) -> Result<()> {
        generation::save(folder, &self.decode, &self.config())
    }
}

/// `config.json` of what a recipe wants, for this problem.
fn config(recipe: &Recipe, problem: &dyn Problem) -> Result<Value> {
    let mut config = recipe.model.clone();
    let Value::Object(map) = &mut config else {
        return Err(Error::invalid("model: need a table with at least model_type"));
    };
    map.insert("problem".into(), json!(problem.name()));
    map.insert("input_size".into(), json!(problem.width()));
    map.entry("choice").or_insert(json!(problem.choice()));
    Ok(config)
}
