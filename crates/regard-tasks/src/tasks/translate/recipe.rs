//! A recipe with `task = "translate"`.

use super::{Data, Measure, Translation, Translator, Vocabularies, details, measure};
use crate::evaluation::{EvaluationData, EvaluationSet, Metric, Report};
use crate::recipe::{self, Prepared, Task, recipe};
use crate::{decode, say, train};
use regard_models::{ModelFiles, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

recipe! {
    for "translate";
    /// Training sentence pairs.
    pub data: Data,
    /// Vocabularies to train.
    pub vocabulary: Vocabularies,
    /// `config.json` of the model, without the vocabulary sizes.
    pub model: Value,
    /// Training options.
    #[serde(default)]
    pub train: train::TrainOptions,
    /// Model selection.
    #[serde(default)]
    pub evaluate: Evaluate,
    /// Search options of the evaluation, and defaults of the trained model.
    #[serde(default)]
    pub decode: decode::Options,
}

/// Model selection during training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Evaluate {
    /// Model selection metric: `bleu` (default), `wer` or `loss`.
    pub by: String,
    /// Number of validation sentences that are translated greedily at each evaluation; 0 for all.
    /// 500 by default.
    pub sentences: usize,
}

impl Default for Evaluate {
    fn default() -> Evaluate {
        Evaluate { by: "bleu".to_string(), sentences: 500 }
    }
}

impl Recipe {
    /// Parses a recipe without a base, with overrides such as `train.steps=100`.
    pub fn parse(text: &str, overrides: &[String]) -> Result<Recipe, String> {
        Recipe::from_table(recipe::parse(text, overrides, &|_| None)?)
    }

    /// Whether translations are lower-case.
    pub fn lowercase(&self) -> bool {
        let target = self.vocabulary.target.as_ref().or(self.vocabulary.shared.as_ref());
        target.is_some_and(|vocabulary| vocabulary.lowercase)
    }
}

impl Task for Recipe {
    fn check(&self) -> Result<(), String> {
        if !["bleu", "wer", "loss"].contains(&self.evaluate.by.as_str()) {
            let by = &self.evaluate.by;
            return Err(format!("evaluate.by: got {by:?}, need bleu, wer or loss"));
        }
        Ok(())
    }

    fn of_trained(_config: &Value) -> String {
        "[vocabulary.shared]\nkind = 'word'".into()
    }

    fn decides(&self) -> &str {
        &self.evaluate.by
    }

    fn prepare(&self) -> Result<Prepared> {
        let corpus = self.data.read()?;
        let about = self.data.about(&corpus);
        let given = corpus.train.len();
        let learner = Translation::new(self, corpus)?;
        let (left, longest) = (given - learner.objective().examples(), self.data.max_tokens);
        let mut about = about;
        if left > 0 {
            about.line(format!(
                "{} left out: they are empty, or longer than data.max_tokens = {longest}, \
                 train.batch_tokens or the model allows",
                say::many(left, "pair")
            ));
        }
        let about = about.with_sizes(format!(
            "{} pairs, vocabularies of {} and {}, {:.2} M parameters",
            learner.objective().examples(),
            learner.objective().vocabularies().source.size(),
            learner.objective().vocabularies().target.size(),
            learner.millions(),
        ));
        Ok(Prepared { learner: Box::new(learner), about })
    }

    fn evaluate(&self, model: &ModelFiles, on: &EvaluationData) -> Result<Report> {
        let translator = Translator::load(model.clone())?;
        let groups = self.data.asked(on)?;
        let source = on.decide(&self.data.set, |_| true)?;
        let sheet = EvaluationSet::new(&source, groups.len(), "sentences");
        Report::detailed(sheet, translator.parameters(), || {
            let how = Measure::of(&self.data, self.lowercase());
            let (report, texts) = measure(&translator, &groups, &self.decode, how)?;
            let marks = [
                ("bleu", report.bleu, "BLEU (sacrebleu)"),
                ("chrf", report.chrf, "chrF2 (sacrebleu)"),
                ("wer", report.wer, "% of words"),
                ("per", report.per, "% of phonemes"),
            ];
            let mark = |(name, value, unit)| Some(Metric { name, value: value?, unit });
            let marks = marks.into_iter().filter_map(mark).collect();
            Ok((marks, Some(details(&groups, &texts, how))))
        })
    }
}
