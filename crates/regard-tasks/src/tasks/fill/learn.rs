//! Training objective of masked-language-model pretraining.

use super::Recipe;
use super::evaluate::{Cut, Exercise, MaskedPair, Row};
use super::overlap::Overlap;
use crate::data::Lengths;
use crate::data::documents::Document;
use crate::evaluation;
use crate::recipe::ModelTable;
use crate::train::pretrained_embeddings::Lexicon;
use crate::train::trained::device;
use crate::train::{BatchLoss, Direction, Evaluation, Objective, Trained};
use regard_attention::Mode;
use regard_models::text::{Head, TextModel};
use regard_models::{Capability, Error, Result};
use serde_json::Value;
use std::path::Path;

/// Pretraining objective: masked-token and next-sentence prediction on unlabelled text.
pub struct Pretraining {
    lexicon: Lexicon,
    exercise: Exercise,
    train: Vec<Row>,
    valid: Vec<Row>,
    by_words: Vec<Overlap>,
}

impl Pretraining {
    /// Creates a model with initial weights as a recipe configures it.
    pub fn new(
        recipe: &Recipe,
        [train, valid]: [Vec<Document>; 2],
    ) -> Result<Trained<Pretraining>> {
        let tokenizer = recipe.tokenizer(&train)?;
        let exercise = Exercise::new(&tokenizer, recipe.hiding)?;
        let once = recipe.cut();
        let train = exercise.rows(&train, &tokenizer, Cut { copies: recipe.copies, ..once })?;
        let valid = exercise.rows(&valid, &tokenizer, once)?;
        for (part, rows) in [("training", &train), ("validation", &valid)] {
            if rows.is_empty() {
                let message = format!("data: the {part} part has no pair of sentences");
                return Err(Error::invalid(message));
            }
        }
        let mut table = ModelTable::new(&recipe.model)?;
        table.set("vocab_size", tokenizer.size());
        table.set("pad_token_id", tokenizer.special().pad);
        let mut model = table.create_text(Head::Pretraining, recipe.seed)?;
        if let Some(longest) = model.longest().filter(|longest| *longest < recipe.context) {
            let asked = recipe.context;
            return Err(Error::invalid(format!(
                "context: got {asked}, need at most {longest}, the longest text of the model \
                 (max_position_embeddings)"
            )));
        }
        let lexicon = Lexicon::new(tokenizer, &mut *model, recipe.vocabulary.vectors.as_deref())?;
        let by_words = Overlap::both(&train);
        let objective = Pretraining { lexicon, exercise, train, valid, by_words };
        Ok(Trained::new(model, objective))
    }

    pub(super) fn about(&self, millions: f64) -> String {
        self.lexicon.about(self.train.len(), "pairs", millions)
    }
}

impl Trained<Pretraining> {
    /// Returns examples as a training step sees them: the same for the same step of a run, and for
    /// every evaluation.
    pub fn drawn(&self, examples: &[usize], mode: Mode) -> Vec<MaskedPair> {
        let objective = self.objective();
        let one = |i: &usize| {
            let row = &objective.train[*i];
            row.asked(objective.exercise.hidden(row, *i, mode))
        };
        examples.iter().map(one).collect()
    }
}

impl Objective for Pretraining {
    type Model = dyn TextModel;

    fn lengths(&self) -> Vec<Lengths> {
        self.train.iter().map(|row| Lengths { source: row.ids.len(), target: 0 }).collect()
    }

    fn loss(&self, model: &dyn TextModel, examples: &[usize], mode: Mode) -> BatchLoss {
        let rows: Vec<(usize, &Row)> = examples.iter().map(|i| (*i, &self.train[*i])).collect();
        let cost = self.exercise.cost(model, &rows, mode, &device());
        let follows = cost.follows.expect("a head for pretraining");
        BatchLoss { value: cost.words + follows, tokens: self.tokens(examples) }
    }

    fn tokens(&self, examples: &[usize]) -> usize {
        examples.iter().map(|i| self.train[*i].ids.len()).sum()
    }

    fn evaluate(&self, model: &dyn TextModel) -> Result<Evaluation> {
        let marks = self.exercise.mark(&*model.evaluation(), &self.valid, &self.by_words);
        let decides = marks.iter().find(|mark| mark.name == "loss").map_or(f64::NAN, |m| m.value);
        Ok(Evaluation::new(evaluation::measures(&marks), decides, Direction::Lower))
    }

    fn save_rest(&self, _config: &Value, folder: &Path) -> Result<()> {
        self.lexicon.save(folder)
    }
}
