//! Evaluation of a trained language model on held-out text.

use super::learn::likelihood;
use super::{Generator, Recipe};
use crate::data::Characters;
use crate::data::running::tokens;
use crate::evaluation::{EvaluationData, EvaluationSet, Metric, Report, Source};
use crate::generate::filling::{self, Passage};
use regard_models::{Error, ModelFiles, Result};
use std::f64::consts::LN_2;

pub(super) fn evaluate(recipe: &Recipe, model: &ModelFiles, on: &EvaluationData) -> Result<Report> {
    let writer = Generator::load(model.clone())?;
    let source = on.decide(&recipe.data.set, |set| recipe.data.has_test(set))?;
    let documents = match source {
        Source::Set(set, part) => recipe.data.held_out(set, part)?,
        Source::File(path) => vec![Characters::read(path)?.whole()],
    };
    let text = documents.concat();
    let encoding = writer.tokenizer().encode(&text)?;
    if encoding.len() < 2 {
        let name = source.name();
        return Err(Error::invalid(format!("{name}: got fewer than 2 tokens, need at least 2")));
    }
    let context = recipe.context.min(writer.model.longest().unwrap_or(usize::MAX));
    let passages = Passage::running(&tokens(&documents, writer.tokenizer())?, context);
    let gaps = recipe.filling.map_or(vec![], |filling| filling.gaps(&passages));
    // The first token is only context; its characters are not counted.
    let told = text.get(encoding.offsets[0].1..).unwrap_or(&text);
    let unknown = writer.tokenizer().special().unk;
    let unknown = encoding.ids[1..].iter().filter(|id| Some(**id) == unknown).count();
    let asked = encoding.len() - 1;
    let sheet = EvaluationSet::new(&source, asked, "tokens");
    Report::of(sheet, writer.parameters(), || {
        let all = likelihood(&*writer.model, &encoding.ids, context);
        let per = |units: usize| all.nats() / units.max(1) as f64;
        let words = told.split_whitespace().count();
        let mut marks = vec![
            Metric { name: "loss", value: all.loss(), unit: "nats per token" },
            Metric { name: "perplexity", value: all.perplexity(), unit: "per token" },
            Metric {
                name: "loss_per_character",
                value: per(told.chars().count()),
                unit: "nats per character",
            },
            Metric { name: "loss_per_byte", value: per(told.len()), unit: "nats per byte" },
            Metric { name: "bits_per_byte", value: per(told.len()) / LN_2, unit: "bits per byte" },
            Metric { name: "perplexity_per_word", value: per(words).exp(), unit: "per word" },
        ];
        if unknown > 0 {
            // Unknown tokens are easy to predict, so a low loss means little if there are many.
            let value = 100.0 * unknown as f64 / asked as f64;
            marks.push(Metric { name: "unknown", value, unit: "% of tokens" });
        }
        marks.extend(filling::marks(&*writer.model, &gaps)?);
        Ok(marks)
    })
}
