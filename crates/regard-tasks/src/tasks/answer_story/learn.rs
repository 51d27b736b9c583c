//! Training objective of question answering on stories.

use super::book::{Book, StoryQuestion};
use super::evaluate::report;
use super::words::said;
use super::{Corpus, Recipe, StoryVocabulary, Tales};
use crate::data::Lengths;
use crate::recipe::ModelTable;
use crate::train::pretrained_embeddings;
use crate::train::trained::device;
use crate::train::{BatchLoss, Direction, Evaluation, Objective, Trained};
use burn::tensor::{Int, Tensor, TensorData};
use regard_attention::Mode;
use regard_attention::ops::{CrossEntropy, cross_entropy};
use regard_models::story::StoryModel;
use regard_models::{Capability, Error, Result};
use serde_json::Value;
use std::path::Path;

/// Training objective of question answering on stories.
pub struct StoryObjective {
    words: StoryVocabulary,
    train: Book,
    valid: Book,
    smoothing: f32,
}

impl StoryObjective {
    /// Creates a model with initial weights as a recipe configures it.
    pub fn new(recipe: &Recipe, corpus: &Corpus) -> Result<Trained<StoryObjective>> {
        let words = StoryVocabulary::learn(&corpus.train)?;
        let table = table(recipe, &words, &corpus.train)?;
        let mut model = table.create::<dyn StoryModel>(recipe.seed)?;
        if let Some(vectors) = &recipe.vectors {
            let mut weights = model.weights();
            let (tables, tokenizer) = (["words.weight"], words.tokenizer());
            pretrained_embeddings::with_vectors(&mut weights, &tables, tokenizer, vectors)?;
            model.restore(weights)?;
        }
        let limits = model.limits();
        let train = Book::new(&corpus.train, &words, &limits)?;
        let valid = Book::new(&corpus.valid, &words, &limits)?;
        for (part, book) in [("training", &train), ("validation", &valid)] {
            if book.questions.is_empty() {
                return Err(Error::invalid(format!(
                    "data: no {part} question is usable: there are none (see data.valid), or all \
                     have unknown words, or sentences that are too long for the model"
                )));
            }
        }
        let smoothing = recipe.train.label_smoothing;
        Ok(Trained::new(model, StoryObjective { words, train, valid, smoothing }))
    }

    /// Returns a summary of the sizes.
    pub(super) fn about(&self, millions: f64) -> String {
        format!(
            "{} training and {} validation questions, {} words, {} answers, {millions:.3} M \
             parameters",
            self.train.questions.len(),
            self.valid.questions.len(),
            self.words.size(),
            self.words.answers().len(),
        )
    }
}

impl Objective for StoryObjective {
    type Model = dyn StoryModel;

    /// A batch is a number of questions. Nothing is padded, so there is no reason to batch stories
    /// by length, which would also group them by task.
    fn lengths(&self) -> Vec<Lengths> {
        vec![Lengths { source: 1, target: 0 }; self.train.questions.len()]
    }

    fn loss(&self, model: &dyn StoryModel, examples: &[usize], mode: Mode) -> BatchLoss {
        let batch: Vec<&StoryQuestion> =
            examples.iter().map(|i| &self.train.questions[*i]).collect();
        let logits = model.forward(&self.train.stories(batch.iter().copied()), mode);
        let wanted: Vec<i64> = batch.iter().map(|asked| asked.answer as i64).collect();
        let wanted = TensorData::new(wanted, [batch.len()]);
        let wanted = Tensor::<1, Int>::from_data(wanted, &device());
        let options = CrossEntropy { smoothing: self.smoothing, ignore: None };
        BatchLoss { value: cross_entropy(logits, wanted, options), tokens: batch.len() }
    }

    fn tokens(&self, examples: &[usize]) -> usize {
        examples.len()
    }

    fn evaluate(&self, model: &dyn StoryModel) -> Result<Evaluation> {
        let (report, loss) = report(&*model.evaluation(), &self.valid);
        let mut measures =
            vec![("valid_loss".to_string(), loss), ("valid_error".to_string(), report.mean_error)];
        let by_task = report.tasks.iter().map(|marks| (format!("qa{}", marks.task), marks.error));
        measures.extend(by_task);
        Ok(Evaluation::new(measures, report.mean_error, Direction::Lower))
    }

    fn save_rest(&self, _config: &Value, folder: &Path) -> Result<()> {
        self.words.save(folder)
    }
}

/// Returns the model configuration for this vocabulary and the longest sentence.
fn table<'a>(
    recipe: &'a Recipe,
    words: &StoryVocabulary,
    tales: &[Tales],
) -> Result<ModelTable<'a>> {
    let mut table = ModelTable::new(&recipe.model)?;
    table.set("vocab_size", words.size());
    table.set("pad_token_id", words.tokenizer().special().pad);
    table.set_labels(words.answers());
    if table.get("max_words").is_null() {
        table.set("max_words", longest(words, tales)?);
    }
    Ok(table)
}

/// Returns the number of words of the longest sentence.
fn longest(words: &StoryVocabulary, tales: &[Tales]) -> Result<usize> {
    let mut most = 1;
    for text in said(tales) {
        most = most.max(words.encode(text)?.len());
    }
    Ok(most)
}
