//! Learning to answer questions about stories.

use super::book::{Asked, Book};
use super::measure::report;
use super::words::said;
use super::{Corpus, Recipe, Tales, Words};
use crate::data::Lengths;
use crate::recipe::known_keys;
use crate::train::begin;
use crate::train::{Better, Evaluation, Learner, Loss};
use burn::tensor::{Device, Int, Tensor, TensorData};
use regard_attention::Mode;
use regard_attention::ops::{CrossEntropy, cross_entropy};
use regard_models::story::StoryModel;
use regard_models::{Error, Network, Result, zoo};
use serde_json::{Value, json};
use std::path::Path;

/// A model that is being taught.
pub struct Lesson {
    model: Box<dyn StoryModel>,
    words: Words,
    train: Book,
    valid: Book,
    smoothing: f32,
    device: Device,
}

impl Lesson {
    /// Makes a model with first values for what a recipe wants.
    pub fn new(recipe: &Recipe, corpus: &Corpus) -> Result<Lesson> {
        let words = Words::learn(&corpus.train)?;
        let device = Device::flex().autodiff();
        let config = config(recipe, &words, &corpus.train)?;
        let mut model = zoo::create::<dyn StoryModel>(&config, recipe.seed, &device)?;
        known_keys(&recipe.model, &model.config())?;
        if let Some(vectors) = &recipe.vectors {
            let mut weights = model.weights();
            begin::with_vectors(&mut weights, &["words.weight"], words.tokenizer(), vectors)?;
            model.restore(weights)?;
        }
        let limits = model.limits();
        let train = Book::new(&corpus.train, &words, &limits)?;
        let valid = Book::new(&corpus.valid, &words, &limits)?;
        for (part, book) in [("learn from", &train), ("decide by", &valid)] {
            if book.questions.is_empty() {
                return Err(Error::invalid(format!(
                    "there are no questions to {part}: look at the data, and at data.valid"
                )));
            }
        }
        let smoothing = recipe.train.label_smoothing;
        Ok(Lesson { model, words, train, valid, smoothing, device })
    }

    /// The model.
    pub fn model(&self) -> &dyn StoryModel {
        &*self.model
    }

    /// Sizes, in words.
    pub fn about(&self) -> String {
        format!(
            "{} questions to learn from and {} to decide by, {} words, {} answers, {:.3} M \
             parameters",
            self.train.questions.len(),
            self.valid.questions.len(),
            self.words.size(),
            self.words.answers().len(),
            self.model().parameters() as f64 / 1e6,
        )
    }
}

impl Learner for Lesson {
    fn network(&self) -> &dyn Network {
        &*self.model
    }

    fn network_mut(&mut self) -> &mut dyn Network {
        &mut *self.model
    }

    /// A batch is a number of questions. Nothing is padded, so that there is no reason to put
    /// stories of one length, and with them of one task, into a batch.
    fn lengths(&self) -> Vec<Lengths> {
        vec![Lengths { source: 1, target: 0 }; self.train.questions.len()]
    }

    fn loss(&self, examples: &[usize], mode: Mode) -> Loss {
        let batch: Vec<&Asked> = examples.iter().map(|i| &self.train.questions[*i]).collect();
        let logits = self.model().forward(&self.train.stories(batch.iter().copied()), mode);
        let wanted: Vec<i64> = batch.iter().map(|asked| asked.answer as i64).collect();
        let wanted = TensorData::new(wanted, [batch.len()]);
        let wanted = Tensor::<1, Int>::from_data(wanted, &self.device);
        let options = CrossEntropy { smoothing: self.smoothing, ignore: None };
        Loss { value: cross_entropy(logits, wanted, options), tokens: batch.len() }
    }

    fn tokens(&self, examples: &[usize]) -> usize {
        examples.len()
    }

    fn evaluate(&self) -> Result<Evaluation> {
        let (report, loss) = report(&*self.model().evaluation(), &self.valid);
        let mut measures =
            vec![("valid_loss".to_string(), loss), ("valid_error".to_string(), report.mean_error)];
        let by_task = report.tasks.iter().map(|marks| (format!("qa{}", marks.task), marks.error));
        measures.extend(by_task);
        Ok(Evaluation {
            measures,
            decides: report.mean_error,
            better: Better::Lower,
            also: None,
            sample: None,
        })
    }

    fn save_rest(&self, folder: &Path) -> Result<()> {
        self.words.save(folder)
    }
}

/// `config.json` of what a recipe wants, for these words; as wide as the longest sentence.
fn config(recipe: &Recipe, words: &Words, tales: &[Tales]) -> Result<Value> {
    let mut config = recipe.model.clone();
    if !config.is_object() {
        return Err(Error::invalid("model: need a table with at least model_type"));
    }
    words.configure(&mut config);
    if config["max_words"].is_null() {
        config["max_words"] = json!(longest(words, tales)?);
    }
    Ok(config)
}

/// Words of the longest sentence.
fn longest(words: &Words, tales: &[Tales]) -> Result<usize> {
    let mut most = 1;
    for text in said(tales) {
        most = most.max(words.encode(text)?.len());
    }
    Ok(most)
}
