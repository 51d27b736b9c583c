//! Training objective of graph and node classification.

use super::book::{Exercise, NOT_ASKED};
use super::recipe::Made;
use super::{BestBy, GraphDataset, Recipe};
use crate::data::{Lengths, Part};
use crate::recipe::ModelTable;
use crate::recipe::details::JudgedLabel;
use crate::train::trained::device;
use crate::train::{BatchLoss, Direction, Evaluation, Objective, Trained};
use burn::tensor::Device;
use regard_attention::ops::{CrossEntropy, cross_entropy};
use regard_attention::{Mode, backend};
use regard_models::gat::Gat;
use regard_models::{Error, Result};
use serde_json::Value;

/// Graphs per evaluation batch.
const AT_ONCE: usize = 256;

/// Training objective of graph and node classification.
pub struct GraphObjective {
    book: GraphDataset,
    l2: f32,
    smoothing: f32,
    best_by: BestBy,
    wiring: Value,
    about: crate::about::About,
}

impl GraphObjective {
    /// Creates a model with initial weights as a recipe configures it.
    pub fn new(recipe: &Recipe) -> Result<Trained<GraphObjective>> {
        let (book, Made { labels, widths, .. }, about) = recipe.read(&device())?;
        let mut table = ModelTable::new(&recipe.model)?;
        table.set("features", widths.node);
        table.set("edge_features", widths.edge);
        table.set_labels(&recipe.data.class_names(&labels));
        let of_nodes = matches!(book, GraphDataset::Nodes { .. });
        let readout = table.get("readout").as_u64().unwrap_or(0);
        if of_nodes != (readout == 0) {
            let need = if of_nodes { "0" } else { "1 or more" };
            let what = if of_nodes { "nodes" } else { "whole graphs" };
            return Err(Error::invalid(format!(
                "model.readout: got {readout}, need {need}: {} labels {what}",
                recipe.data.set,
            )));
        }
        let model = table.create::<Gat>(recipe.seed)?;
        for (part, what) in [(Part::Train, "training"), (Part::Valid, "validation")] {
            if book.asked(part) == 0 {
                return Err(Error::invalid(format!("data: the {what} part has no labels")));
            }
        }
        let (l2, smoothing) = (recipe.l2, recipe.train.label_smoothing);
        let wiring = serde_json::to_value(recipe.data.wiring).expect("it is plain data");
        let best_by = recipe.best_by;
        Ok(Trained::new(model, GraphObjective { book, l2, smoothing, best_by, wiring, about }))
    }

    /// Returns a summary of the sizes.
    pub(super) fn about(&self, millions: f64) -> String {
        self.about.clone().with_sizes(format!(
            "{} training and {} validation labels, {millions:.3} M parameters",
            self.book.asked(Part::Train),
            self.book.asked(Part::Valid),
        ))
    }
}

impl Objective for GraphObjective {
    type Model = Gat;

    /// A batch is a number of graphs.
    fn lengths(&self) -> Vec<Lengths> {
        vec![Lengths { source: 1, target: 0 }; self.book.examples(Part::Train)]
    }

    fn loss(&self, model: &Gat, examples: &[usize], mode: Mode) -> BatchLoss {
        let exercise = self.book.exercise(Part::Train, examples, &device());
        let logits = model.forward(&exercise.nodes, mode);
        let options = CrossEntropy { smoothing: self.smoothing, ignore: Some(NOT_ASKED) };
        let mut value = cross_entropy(logits, exercise.targets(&device()), options);
        if self.l2 > 0.0 {
            value = value + model.squares() * self.l2;
        }
        BatchLoss { value, tokens: exercise.asked() }
    }

    fn tokens(&self, examples: &[usize]) -> usize {
        match self.book {
            GraphDataset::Nodes { .. } => self.book.asked(Part::Train),
            GraphDataset::Graphs { .. } => examples.len(),
        }
    }

    fn counts(&self) -> &'static str {
        "labels"
    }

    fn evaluate(&self, model: &Gat) -> Result<Evaluation> {
        // The graph is on the training device, so the model is evaluated there too.
        let marks = mark(model, &self.book, Part::Valid, &device());
        let measures = vec![
            ("valid_accuracy".to_string(), marks.accuracy),
            ("valid_loss".to_string(), marks.loss),
        ];
        let (decides, better) = match self.best_by {
            BestBy::Both | BestBy::Accuracy => (marks.accuracy, Direction::Higher),
            BestBy::Loss => (marks.loss, Direction::Lower),
        };
        let also = (self.best_by == BestBy::Both).then_some(marks.loss);
        Ok(Evaluation { also, ..Evaluation::new(measures, decides, better) })
    }

    fn configure(&self, config: &mut Value) {
        config["wiring"] = self.wiring.clone();
    }
}

/// Metrics of a model.
pub(super) struct GraphMetrics {
    /// Accuracy, percent.
    pub accuracy: f64,
    /// Mean negative log-likelihood of the correct labels, in nats.
    pub loss: f64,
}

/// Evaluates a model on all labels of a part.
pub(super) fn mark(model: &Gat, book: &GraphDataset, part: Part, device: &Device) -> GraphMetrics {
    mark_each(model, book, part, device, &mut |_, _| {})
}

/// As [`mark`]; `see` is called with each label that is asked for, and the index of its node, or of
/// its graph in the part.
pub(super) fn mark_each(
    model: &Gat,
    book: &GraphDataset,
    part: Part,
    device: &Device,
    see: &mut dyn FnMut(usize, JudgedLabel),
) -> GraphMetrics {
    let all: Vec<usize> = (0..book.examples(part)).collect();
    let (mut right, mut cost, mut asked) = (0, 0.0, 0);
    for examples in all.chunks(AT_ONCE) {
        let exercise = book.exercise(part, examples, device);
        let logits = model.forward(&exercise.nodes, Mode::Eval);
        let ([_, labels], mut numbers) = (logits.dims(), vec![]);
        backend::numbers(logits, &mut numbers);
        let rows = numbers.chunks_exact(labels).enumerate();
        let Exercise { wanted, .. } = &exercise;
        let rows = rows.zip(wanted).filter(|(_, wanted)| **wanted != NOT_ASKED);
        for ((row, scores), wanted) in rows {
            let shares = crate::logits::softmax(scores);
            let best = (0..labels).max_by(|a, b| shares[*a].total_cmp(&shares[*b]));
            let (said, wanted) = (best.map(|best| (best, shares[best])), *wanted as usize);
            let log = shares[wanted].max(f64::MIN_POSITIVE).ln();
            right += usize::from(best == Some(wanted));
            cost -= log;
            asked += 1;
            see(examples[0] + row, JudgedLabel { right: wanted, said, loss: -log });
        }
    }
    let count = f64::from(asked.max(1));
    GraphMetrics { accuracy: 100.0 * right as f64 / count, loss: cost / count }
}
