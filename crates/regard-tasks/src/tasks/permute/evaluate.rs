//! Evaluation on held-out sequences.

use super::cost::{cost, draw_example};
use super::sequences::Sequences;
use super::{Corpus, Recipe, learn};
use crate::evaluation::{EvaluationData, EvaluationSet, Metric, Report, Source};
use crate::generate::filling::{self, Gap};
use crate::text::Tokenizer;
use crate::train;
use burn::tensor::Device;
use regard_attention::Mode;
use regard_models::text::{self, Head, TextModel};
use regard_models::{Error, ModelFiles, Result};

/// Tokens per evaluation batch.
const EVALUATED: usize = 8192;
/// Tokens shown on either side of a gap in a sample.
const SHOWN: usize = 12;

/// Evaluation set: sequences and masked spans in them.
pub(super) struct PermuteEvaluator {
    sequences: Sequences,
    /// Gaps in the sequences; the second list has those of pairs shown without their first part.
    gaps: [Vec<Gap>; 2],
}

/// Results of an evaluation.
pub(super) struct PermuteMetrics {
    pub all: Vec<Metric>,
    /// Predicted tokens of the first gap.
    pub first: Option<Vec<u32>>,
}

impl PermuteEvaluator {
    pub fn new(recipe: &Recipe, sequences: Sequences) -> PermuteEvaluator {
        let passages = [sequences.passages(), sequences.passages_alone()];
        let gaps = passages.map(|passages| recipe.filling.gaps(&passages));
        PermuteEvaluator { sequences, gaps }
    }

    pub fn mark(&self, recipe: &Recipe, model: &dyn TextModel) -> Result<PermuteMetrics> {
        let value = self.loss(recipe, model);
        let mut all = vec![Metric { name: "loss", value, unit: "nats per token" }];
        let [gaps, alone] = &self.gaps;
        let mut first = None;
        if !gaps.is_empty() {
            let mut filled = filling::fill(model, gaps)?;
            all.extend(filled.marks());
            first = Some(filled.said.swap_remove(0));
        }
        if !alone.is_empty() {
            all.extend(filling::fill(model, alone)?.marks_alone());
        }
        Ok(PermuteMetrics { all, first })
    }

    /// Computes the mean negative log-likelihood of the targets.
    fn loss(&self, recipe: &Recipe, model: &dyn TextModel) -> f64 {
        let numbers: Vec<usize> = (0..self.sequences.len()).collect();
        let (mut sum, mut count) = (0.0, 0);
        for batch in numbers.chunks((EVALUATED / recipe.context).max(1)) {
            let one = |number: &usize| draw_example(recipe, &self.sequences, *number, Mode::Eval);
            let batch: Vec<_> = batch.iter().map(one).collect();
            let cost = cost(recipe, model, &batch, Mode::Eval, &Device::flex());
            sum += f64::from(cost.mean.into_scalar::<f32>()) * cost.targets as f64;
            count += cost.targets;
        }
        sum / count as f64
    }

    /// Formats the first gap with its surroundings: `before [predicted | reference] after`.
    pub fn shown(&self, said: &[u32], tokenizer: &Tokenizer) -> Result<String> {
        let Gap { passage, hidden } = &self.gaps[0][0];
        let ids = &passage.ids;
        let text = |ids: &[u32]| tokenizer.decode(ids);
        let [before, said, was, after] = [
            text(&ids[hidden.start.saturating_sub(SHOWN)..hidden.start])?,
            text(said)?,
            text(&ids[hidden.clone()])?,
            text(&ids[hidden.end..ids.len().min(hidden.end + SHOWN)])?,
        ];
        Ok(format!("{before} [{said} | {was}] {after}").replace('\n', " / "))
    }
}

pub(super) fn evaluate(recipe: &Recipe, model: &ModelFiles, on: &EvaluationData) -> Result<Report> {
    // The test sentences of translation are in neither part; of documents a tenth is held out.
    let source = on.decide(&recipe.data.set, |_| false)?;
    let corpus = match source {
        Source::Set(set, _) => recipe.data.of(set).read()?,
        Source::File(path) => recipe.data.whole(path)?,
    };
    let files = train::files(model.clone())?;
    let model = text::open(files.clone(), Some(Head::Words), 0, &Device::flex())?;
    if model.permuting().is_none() {
        return Err(Error::file(files.place(), "the model has no query stream; need xlnet"));
    }
    let tokenizer = Tokenizer::of(&files)?;
    let [_, held_out] = learn::sequences(recipe, &corpus, &tokenizer)?;
    let (data, part, asked) = (source.name(), source.part(), held_out.len());
    let unit = if matches!(corpus, Corpus::Pairs(_)) { "pairs" } else { "pieces" };
    let sheet = EvaluationSet { data, part, asked, unit, excluded: 0, note: None, columns: None };
    let exam = PermuteEvaluator::new(recipe, held_out);
    Report::of(sheet, model.parameters(), || Ok(exam.mark(recipe, &*model)?.all))
}
