//! Training of text encoders: one learner for all tasks whose examples are texts, and the trait
//! that each task implements.

mod recipe;

pub use recipe::{Data, ReaderVocabulary, Recipe};

use super::TextEncoder;
use crate::about::About;
use crate::data::{Batches, Lengths};
use crate::evaluation::{self, DetailedMarks, EvaluationData, EvaluationSet, Metric, Report};
use crate::recipe::{in_model, set_labels};
use crate::text::{Encoding, Tokenizer};
use crate::train::pretrained_embeddings::Lexicon;
use crate::train::trained::device;
use crate::train::{BatchLoss, Direction, Evaluation, Objective, Trained};
use burn::tensor::{Int, Tensor, TensorData};
use regard_attention::Mode;
use regard_attention::ops::{CrossEntropy, cross_entropy};
use regard_models::checkpoint;
use regard_models::text::{self, Head, TextModel, Texts};
use regard_models::{Capability, Error, ModelFiles, Result};
use serde_json::Value;
use std::path::Path;

/// Label of positions that the loss ignores.
pub(crate) const IGNORED: i64 = -100;
/// Number of tokens per forward pass in an evaluation.
const EVALUATED: usize = 4096;

/// Task-specific part of training: examples, loss and evaluation set.
pub(crate) trait TextTask: Sized {
    /// Head that the model needs.
    const HEAD: Head;
    /// Name of the model selection metric; higher is better.
    const DECIDES: &'static str;
    /// Unit of [`TextTask::counted`].
    const COUNTED: &'static str;
    /// Evaluation set.
    type EvaluationExamples: EvaluationExamples;

    /// Reads training and validation data, and creates the tokenizer.
    fn read(recipe: &Recipe) -> Result<(Tokenizer, Self)>;

    /// Returns the names of the labels; empty if there are none.
    fn labels(&self) -> &[String];

    /// Returns the training examples.
    fn examples(&self) -> &[Example];

    /// Returns the validation set.
    fn valid(&self) -> &Self::EvaluationExamples;

    /// Returns a summary of the data.
    fn about(&self) -> About;

    /// Returns the number of labels of an example that the loss of a batch is averaged over.
    fn counted(&self, example: &Example) -> usize {
        example.counted()
    }

    /// Computes the mean loss of a batch.
    fn cost(&self, logits: Tensor<2>, batch: &[&Example], smoothing: f32) -> Tensor<1> {
        let wanted: Vec<i64> = batch.iter().flat_map(|e| e.wanted.iter().copied()).collect();
        cost_of(logits, wanted, smoothing)
    }

    /// Reads the evaluation set for a trained model, with its description.
    fn paper(
        recipe: &Recipe,
        on: &EvaluationData,
        reader: &TextEncoder,
    ) -> Result<(Self::EvaluationExamples, EvaluationSet)>;
}

/// An evaluation set and its metrics.
pub(crate) trait EvaluationExamples {
    /// Returns the number of examples.
    fn asked(&self) -> usize;

    /// Runs the model on all examples and computes the metrics.
    fn mark(&self, exam: &Evaluator) -> Result<Marks>;

    /// As [`EvaluationExamples::mark`], with details for a report, which training does not need.
    fn mark_in_detail(&self, exam: &Evaluator) -> Result<DetailedMarks>;
}

/// Metrics, and an example output to print.
pub(crate) type Marks = (Vec<Metric>, Option<String>);

/// A tokenised text with its labels.
pub(crate) struct Example {
    pub ids: Vec<u32>,
    pub types: Vec<u32>,
    pub letters: Vec<Vec<u32>>,
    /// One label for the text, one for each token, or the start and end positions of an answer.
    pub wanted: Vec<i64>,
}

impl Example {
    pub fn new(encoding: Encoding, wanted: Vec<i64>) -> Example {
        let Encoding { ids, types, letters, .. } = encoding;
        Example { ids, types, letters, wanted }
    }

    pub fn lengths(&self) -> Lengths {
        Lengths { source: self.ids.len(), target: 0 }
    }

    pub fn counted(&self) -> usize {
        self.wanted.iter().filter(|label| **label != IGNORED).count()
    }
}

pub(crate) fn cost_of(logits: Tensor<2>, wanted: Vec<i64>, smoothing: f32) -> Tensor<1> {
    let (count, device) = (wanted.len(), logits.device());
    let wanted = Tensor::<1, Int>::from_data(TensorData::new(wanted, [count]), &device);
    cross_entropy(logits, wanted, CrossEntropy { smoothing, ignore: Some(IGNORED) })
}

fn texts(model: &dyn TextModel, batch: &[&Example]) -> Texts {
    let mut texts = Texts::new();
    for Example { ids, types, letters, .. } in batch {
        super::push(model, &mut texts, ids, types, letters);
    }
    texts
}

/// Returns the index of the largest logit.
pub(crate) fn likeliest(row: &[f32]) -> usize {
    (0..row.len()).max_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap_or(0)
}

/// A model to be evaluated.
pub(crate) struct Evaluator {
    pub reader: TextEncoder,
}

impl Evaluator {
    /// Returns, for each example, the likeliest label of each row of the head's output.
    pub fn labels(&self, examples: &[Example]) -> Result<Vec<Vec<usize>>> {
        let rows = self.logits(examples)?.into_iter();
        Ok(rows.map(|rows| rows.into_iter().map(|row| likeliest(&row)).collect()).collect())
    }

    /// Returns the names of the labels that the rows of the head's output have.
    pub fn names(&self, width: usize) -> Vec<String> {
        (0..width.max(self.reader.labels().len())).map(|label| self.reader.label(label)).collect()
    }

    /// Returns, for each example, the rows of the head's output.
    pub fn logits(&self, examples: &[Example]) -> Result<Vec<Vec<Vec<f32>>>> {
        let lengths = examples.iter().map(Example::lengths).collect();
        let mut all = vec![vec![]; examples.len()];
        if examples.is_empty() {
            return Ok(all);
        }
        for rows in Batches::new(lengths, EVALUATED, 0)?.sorted() {
            let batch: Vec<&Example> = rows.iter().map(|i| &examples[*i]).collect();
            let model = &*self.reader.model;
            let said = model.forward(&texts(model, &batch), None, Mode::Eval);
            let logits = said.logits.ok_or_else(|| Error::invalid("a model without labels"))?;
            let [_, labels] = logits.dims();
            let numbers = super::numbers(logits)?;
            let mut said = numbers.chunks_exact(labels).map(<[f32]>::to_vec);
            for (i, example) in rows.iter().zip(batch) {
                all[*i] = said.by_ref().take(example.wanted.len()).collect();
            }
        }
        Ok(all)
    }
}

/// Evaluates a trained model.
pub(crate) fn evaluate<G: TextTask>(
    recipe: &Recipe,
    model: &ModelFiles,
    on: &EvaluationData,
) -> Result<Report> {
    let exam = Evaluator { reader: TextEncoder::load(model.clone(), G::HEAD)? };
    let (paper, sheet) = G::paper(recipe, on, &exam.reader)?;
    let parameters = exam.reader.model.parameters();
    Report::detailed(sheet, parameters, || paper.mark_in_detail(&exam))
}

/// Training objective of the tasks whose examples are texts.
pub(crate) struct TextObjective<G> {
    recipe: Recipe,
    lexicon: Lexicon,
    goal: G,
}

impl<G: TextTask> TextObjective<G> {
    /// Creates the model of a recipe: from scratch, or on the body of a pretrained one.
    pub fn new(
        recipe: &Recipe,
        tokenizer: Tokenizer,
        goal: G,
    ) -> Result<Trained<TextObjective<G>>> {
        let device = device();
        let mut config = recipe.config(&tokenizer)?;
        if !goal.labels().is_empty() {
            set_labels(&mut config, goal.labels());
        }
        let mut model = match recipe.origin()? {
            Some(folder) => {
                // Its head had other labels, even if it was of the same kind.
                config["architectures"] = Value::Null;
                let weights = checkpoint::read_weights(&folder)?;
                text::load(&config, weights, Some(G::HEAD), recipe.seed, &device)
                    .map_err(|e| Error::file(&folder, e.to_string()))?
            }
            None => text::create(&config, G::HEAD, recipe.seed, &device).map_err(in_model)?,
        };
        let (learned, asked) = (goal.examples().len(), goal.valid().asked());
        if learned == 0 || asked == 0 {
            let valid = recipe.data.source(crate::data::Part::Valid);
            return Err(Error::invalid(format!(
                "got {learned} training examples and {asked} for validation ({valid}): \
                 need at least one of each; --set data.valid=FILE sets the validation file"
            )));
        }
        let (asked, longest) = (recipe.data.max_tokens, model.longest().unwrap_or(usize::MAX));
        if asked > longest {
            return Err(Error::invalid(format!(
                "data.max_tokens: got {asked}, need at most {longest}"
            )));
        }
        super::fits(&*model, &tokenizer)?;
        let vectors = recipe.vocabulary.as_ref().and_then(|v| v.vectors.as_deref());
        let lexicon = Lexicon::new(tokenizer, &mut *model, vectors)?;
        Ok(Trained::new(model, TextObjective { recipe: recipe.clone(), lexicon, goal }))
    }

    pub fn about(&self, millions: f64) -> String {
        let sizes = self.lexicon.about(self.goal.examples().len(), "examples", millions);
        self.goal.about().with_sizes(sizes)
    }
}

impl<G: TextTask> Objective for TextObjective<G> {
    type Model = dyn TextModel;

    fn lengths(&self) -> Vec<Lengths> {
        self.goal.examples().iter().map(Example::lengths).collect()
    }

    fn loss(&self, model: &dyn TextModel, examples: &[usize], mode: Mode) -> BatchLoss {
        let batch: Vec<&Example> = examples.iter().map(|i| &self.goal.examples()[*i]).collect();
        let said = model.forward(&texts(model, &batch), None, mode);
        let logits = said.logits.expect("every task here has a head");
        let value = self.goal.cost(logits, &batch, self.recipe.train.label_smoothing);
        BatchLoss { value, tokens: self.tokens(examples) }
    }

    fn tokens(&self, examples: &[usize]) -> usize {
        examples.iter().map(|i| self.goal.counted(&self.goal.examples()[*i])).sum()
    }

    fn counts(&self) -> &'static str {
        G::COUNTED
    }

    fn evaluate(&self, model: &dyn TextModel) -> Result<Evaluation> {
        let reader = TextEncoder::new(model.evaluation(), self.lexicon.tokenizer.clone());
        let (marks, sample) = self.goal.valid().mark(&Evaluator { reader })?;
        let measures = evaluation::measures(&marks);
        let decides = measures.iter().find(|(name, _)| name == G::DECIDES);
        let decides = decides.map_or(f64::NAN, |(_, value)| *value);
        Ok(Evaluation::new(measures, decides, Direction::Higher).with_sample(sample))
    }

    fn save_rest(&self, _config: &Value, folder: &Path) -> Result<()> {
        self.lexicon.save(folder)
    }
}
