//! Learning to read: one learner for all tasks whose examples are texts, and what each task adds
//! to it.

mod recipe;

pub use recipe::{Data, Recipe, Vocabulary};

use super::Reader;
use crate::about::About;
use crate::data::{Batches, Lengths};
use crate::examine::{self, Mark, On, Report, Sheet};
use crate::recipe::set_labels;
use crate::text::{Encoding, Tokenizer};
use crate::train::begin::Lexicon;
use crate::train::trained::device;
use crate::train::{Better, Evaluation, Loss, Objective, Trained};
use burn::tensor::{Int, Tensor, TensorData};
use regard_attention::Mode;
use regard_attention::ops::{CrossEntropy, cross_entropy};
use regard_models::checkpoint;
use regard_models::text::{self, Head, TextModel, Texts};
use regard_models::{Capability, Error, ModelFiles, Result};
use serde_json::Value;
use std::path::Path;

/// The label of what does not count.
pub(crate) const IGNORED: i64 = -100;
/// Tokens that are evaluated at a time.
const EVALUATED: usize = 4096;

/// What a task adds: examples, what they cost, and how good a model is at others.
pub(crate) trait Goal: Sized {
    /// What the model needs on top.
    const HEAD: Head;
    /// The measure that decides, which is better when it is higher.
    const DECIDES: &'static str;
    /// What [`Goal::counted`] counts.
    const COUNTED: &'static str;
    /// What a model is asked.
    type Paper: Paper;

    /// Reads what is learned from and what decides, and makes the tokenizer.
    fn read(recipe: &Recipe) -> Result<(Tokenizer, Self)>;

    /// The names of the labels, if there are any.
    fn labels(&self) -> &[String];

    /// What is learned from.
    fn examples(&self) -> &[Example];

    /// What decisions are made on.
    fn valid(&self) -> &Self::Paper;

    /// Summary of the data.
    fn about(&self) -> About;

    /// How much of an example the mean cost of a batch is taken over.
    fn counted(&self, example: &Example) -> usize {
        example.counted()
    }

    /// The mean cost of a batch.
    fn cost(&self, logits: Tensor<2>, batch: &[&Example], smoothing: f32) -> Tensor<1> {
        let wanted: Vec<i64> = batch.iter().flat_map(|e| e.wanted.iter().copied()).collect();
        cost_of(logits, wanted, smoothing)
    }

    /// What a model that was trained before is asked, and what there is to say of it.
    fn paper(recipe: &Recipe, on: &On, reader: &Reader) -> Result<(Self::Paper, Sheet)>;
}

/// What a model is asked, and how its answers are marked.
pub(crate) trait Paper {
    /// How many answers are wanted.
    fn asked(&self) -> usize;

    /// Asks all, and marks the answers.
    fn mark(&self, exam: &Exam) -> Result<Marks>;
}

/// Measures, and something to look at.
pub(crate) type Marks = (Vec<Mark>, Option<String>);

/// A text as numbers, and what is right of it.
pub(crate) struct Example {
    pub ids: Vec<u32>,
    pub types: Vec<u32>,
    pub letters: Vec<Vec<u32>>,
    /// One label for a text, one for each token, or the places of an answer's ends.
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

/// A model that is examined.
pub(crate) struct Exam {
    pub reader: Reader,
}

impl Exam {
    /// The likeliest label of each row of the head's output, for each example.
    pub fn labels(&self, examples: &[Example]) -> Result<Vec<Vec<usize>>> {
        let best =
            |row: Vec<f32>| (0..row.len()).max_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap_or(0);
        let rows = self.logits(examples)?.into_iter();
        Ok(rows.map(|rows| rows.into_iter().map(best).collect()).collect())
    }

    /// The rows of the head's output, for each example.
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

/// Asks a model that was trained before.
pub(crate) fn examine<G: Goal>(recipe: &Recipe, model: &ModelFiles, on: &On) -> Result<Report> {
    let exam = Exam { reader: Reader::load(model.clone(), G::HEAD)? };
    let (paper, sheet) = G::paper(recipe, on, &exam.reader)?;
    let parameters = exam.reader.model.parameters();
    Report::of(sheet, parameters, || Ok(paper.mark(&exam)?.0))
}

/// Learning one of the tasks whose examples are texts.
pub(crate) struct Study<G> {
    recipe: Recipe,
    lexicon: Lexicon,
    goal: G,
}

impl<G: Goal> Study<G> {
    /// Makes the model that a recipe wants: anew, or on the body of one that was trained before.
    pub fn new(recipe: &Recipe, tokenizer: Tokenizer, goal: G) -> Result<Trained<Study<G>>> {
        let device = device();
        let mut config = recipe.config(&tokenizer)?;
        if !goal.labels().is_empty() {
            set_labels(&mut config, goal.labels());
        }
        let mut model = match recipe.origin()? {
            Some(folder) => {
                // Its head was for other labels, even if it was of the same kind.
                config["architectures"] = Value::Null;
                let weights = checkpoint::read_weights(&folder)?;
                text::load(&config, weights, Some(G::HEAD), recipe.seed, &device)
                    .map_err(|e| Error::file(&folder, e.to_string()))?
            }
            None => text::create(&config, G::HEAD, recipe.seed, &device)?,
        };
        let (learned, asked) = (goal.examples().len(), goal.valid().asked());
        if learned == 0 || asked == 0 {
            let valid = recipe.data.source(crate::data::Part::Valid);
            return Err(Error::invalid(format!(
                "{learned} examples to learn from and {asked} to choose the best model by ({valid}): \
                 need at least one of each; --set data.valid=FILE names a file for the second"
            )));
        }
        let (asked, longest) = (recipe.data.max_tokens, model.longest().unwrap_or(usize::MAX));
        if asked > longest {
            return Err(Error::invalid(format!(
                "data.max_tokens: got {asked}, the model reads {longest}"
            )));
        }
        super::fits(&*model, &tokenizer)?;
        let vectors = recipe.vocabulary.as_ref().and_then(|v| v.vectors.as_deref());
        let lexicon = Lexicon::new(tokenizer, &mut *model, vectors)?;
        Ok(Trained::new(model, Study { recipe: recipe.clone(), lexicon, goal }))
    }

    pub fn about(&self, millions: f64) -> String {
        let sizes = self.lexicon.about(self.goal.examples().len(), "examples", millions);
        self.goal.about().with_sizes(sizes)
    }
}

impl<G: Goal> Objective for Study<G> {
    type Model = dyn TextModel;

    fn lengths(&self) -> Vec<Lengths> {
        self.goal.examples().iter().map(Example::lengths).collect()
    }

    fn loss(&self, model: &dyn TextModel, examples: &[usize], mode: Mode) -> Loss {
        let batch: Vec<&Example> = examples.iter().map(|i| &self.goal.examples()[*i]).collect();
        let said = model.forward(&texts(model, &batch), None, mode);
        let logits = said.logits.expect("every task here has a head");
        let value = self.goal.cost(logits, &batch, self.recipe.train.label_smoothing);
        Loss { value, tokens: self.tokens(examples) }
    }

    fn tokens(&self, examples: &[usize]) -> usize {
        examples.iter().map(|i| self.goal.counted(&self.goal.examples()[*i])).sum()
    }

    fn counts(&self) -> &'static str {
        G::COUNTED
    }

    fn evaluate(&self, model: &dyn TextModel) -> Result<Evaluation> {
        let reader = Reader::new(model.evaluation(), self.lexicon.tokenizer.clone());
        let (marks, sample) = self.goal.valid().mark(&Exam { reader })?;
        let measures = examine::measures(&marks);
        let decides = measures.iter().find(|(name, _)| name == G::DECIDES);
        let decides = decides.map_or(f64::NAN, |(_, value)| *value);
        Ok(Evaluation::new(measures, decides, Better::Higher).with_sample(sample))
    }

    fn save_rest(&self, _config: &Value, folder: &Path) -> Result<()> {
        self.lexicon.save(folder)
    }
}
