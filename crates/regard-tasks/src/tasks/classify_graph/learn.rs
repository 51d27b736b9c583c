//! Learning labels from graphs.

use super::book::{Exercise, NOT_ASKED};
use super::recipe::Made;
use super::{BestBy, Book, Recipe};
use crate::data::{Lengths, Part};
use crate::recipe::known_keys;
use crate::train::{Better, Evaluation, Learner, Loss};
use burn::tensor::Device;
use regard_attention::ops::{CrossEntropy, cross_entropy};
use regard_attention::{Mode, backend};
use regard_models::gat::Gat;
use regard_models::{Error, Network, Result, zoo};
use serde_json::{Value, json};
use std::path::Path;

/// Graphs that are asked about at a time.
const AT_ONCE: usize = 256;

/// A model that is being taught.
pub struct Lesson {
    model: Box<Gat>,
    book: Book,
    l2: f32,
    smoothing: f32,
    best_by: BestBy,
    wiring: Value,
    device: Device,
    about: crate::about::About,
}

impl Lesson {
    /// Makes a model with first values for what a recipe wants.
    pub fn new(recipe: &Recipe) -> Result<Lesson> {
        let device = Device::flex().autodiff();
        let (book, Made { labels, widths: (columns, edge), .. }, about) = recipe.read(&device)?;
        let mut config = recipe.model.clone();
        if !config.is_object() {
            return Err(Error::invalid("model: need a table with at least model_type"));
        }
        config["features"] = json!(columns);
        config["edge_features"] = json!(edge);
        let numbered = || labels.iter().enumerate();
        config["id2label"] = numbered().map(|(i, name)| (i.to_string(), json!(name))).collect();
        config["label2id"] = numbered().map(|(i, name)| (name.clone(), json!(i))).collect();
        let of_nodes = matches!(book, Book::Nodes { .. });
        if of_nodes != (config["readout"].as_u64().unwrap_or(0) == 0) {
            return Err(Error::invalid(format!(
                "model.readout: {} has labels of {}, so it must {} 0",
                recipe.data.set,
                if of_nodes { "nodes" } else { "whole graphs" },
                if of_nodes { "be" } else { "not be" }
            )));
        }
        let model = zoo::create::<Gat>(&config, recipe.seed, &device)?;
        known_keys(&recipe.model, &model.config())?;
        for (part, what) in [(Part::Train, "learn from"), (Part::Valid, "decide by")] {
            if book.asked(part) == 0 {
                return Err(Error::invalid(format!("there is nothing to {what}")));
            }
        }
        let (l2, smoothing) = (recipe.l2, recipe.train.label_smoothing);
        let wiring = serde_json::to_value(recipe.data.wiring).expect("it is plain data");
        let best_by = recipe.best_by;
        Ok(Lesson { model, book, l2, smoothing, best_by, wiring, device, about })
    }

    fn model(&self) -> &Gat {
        &self.model
    }

    /// Sizes, in words.
    pub fn about(&self) -> String {
        self.about.clone().with_sizes(format!(
            "{} labels to learn from and {} to decide by, {:.3} M parameters",
            self.book.asked(Part::Train),
            self.book.asked(Part::Valid),
            self.model().parameters() as f64 / 1e6,
        ))
    }
}

impl Learner for Lesson {
    fn network(&self) -> &dyn Network {
        &*self.model
    }

    fn network_mut(&mut self) -> &mut dyn Network {
        &mut *self.model
    }

    /// A batch is a number of graphs.
    fn lengths(&self) -> Vec<Lengths> {
        vec![Lengths { source: 1, target: 0 }; self.book.examples(Part::Train)]
    }

    fn loss(&self, examples: &[usize], mode: Mode) -> Loss {
        let exercise = self.book.exercise(Part::Train, examples, &self.device);
        let logits = self.model().forward(&exercise.nodes, mode);
        let options = CrossEntropy { smoothing: self.smoothing, ignore: Some(NOT_ASKED) };
        let mut value = cross_entropy(logits, exercise.targets(&self.device), options);
        if self.l2 > 0.0 {
            value = value + self.model().squares() * self.l2;
        }
        Loss { value, tokens: exercise.asked() }
    }

    fn tokens(&self, examples: &[usize]) -> usize {
        match self.book {
            Book::Nodes { .. } => self.book.asked(Part::Train),
            Book::Graphs { .. } => examples.len(),
        }
    }

    fn counts(&self) -> &'static str {
        "labels"
    }

    fn evaluate(&self) -> Result<Evaluation> {
        let marks = mark(self.model(), &self.book, Part::Valid, &self.device);
        let measures = vec![
            ("valid_accuracy".to_string(), marks.accuracy),
            ("valid_loss".to_string(), marks.loss),
        ];
        let (decides, better) = match self.best_by {
            BestBy::Both | BestBy::Accuracy => (marks.accuracy, Better::Higher),
            BestBy::Loss => (marks.loss, Better::Lower),
        };
        let also = (self.best_by == BestBy::Both).then_some(marks.loss);
        Ok(Evaluation { measures, decides, better, also, sample: None })
    }

    fn config(&self) -> Value {
        let mut config = self.network().config();
        config["wiring"] = self.wiring.clone();
        config
    }

    fn save_rest(&self, _folder: &Path) -> Result<()> {
        Ok(())
    }
}

/// How good a model is.
pub(super) struct Marks {
    /// Percent.
    pub accuracy: f64,
    /// The mean negative log-likelihood of the right labels.
    pub loss: f64,
}

/// Asks a model for all labels of a part.
pub(super) fn mark(model: &Gat, book: &Book, part: Part, device: &Device) -> Marks {
    let all: Vec<usize> = (0..book.examples(part)).collect();
    let (mut right, mut cost, mut asked) = (0, 0.0, 0);
    for examples in all.chunks(AT_ONCE) {
        let exercise = book.exercise(part, examples, device);
        let logits = model.forward(&exercise.nodes, Mode::Eval);
        let ([_, labels], mut numbers) = (logits.dims(), vec![]);
        backend::numbers(logits, &mut numbers);
        let rows = numbers.chunks_exact(labels);
        let Exercise { wanted, .. } = &exercise;
        for (scores, wanted) in rows.zip(wanted).filter(|(_, wanted)| **wanted != NOT_ASKED) {
            let shares = crate::logits::softmax(scores);
            let best = (0..labels).max_by(|a, b| shares[*a].total_cmp(&shares[*b]));
            right += usize::from(best == Some(*wanted as usize));
            cost -= shares[*wanted as usize].max(f64::MIN_POSITIVE).ln();
            asked += 1;
        }
    }
    let count = f64::from(asked.max(1));
    Marks { accuracy: 100.0 * right as f64 / count, loss: cost / count }
}
