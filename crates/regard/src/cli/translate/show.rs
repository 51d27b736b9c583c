//! What is written of a translation.

use super::{Align, too_long};
use crate::cli::write_json;
use crate::show::heatmap::{Map, columns_that_fit, gallery};
use crate::show::terminal::{self, When};
use anyhow::{Result, bail};
use regard_tasks::decode::Alignment;
use regard_tasks::translate::{Aligned, Translated, Translator};
use serde_json::{Value, json};
use std::io::Write;

/// What is to be written, beside the translation.
#[derive(Clone, Copy)]
pub struct Asked {
    /// Where each word came from, drawn.
    pub map: bool,
    /// Of each sentence and word.
    pub scores: bool,
    pub align: Option<Align>,
    /// Instead of text.
    pub json: bool,
    pub color: When,
    /// Whether a model that does not tell where it looks is an error.
    pub must: bool,
}

impl Asked {
    /// Whether the model has to tell where it looks.
    pub fn look(&self) -> bool {
        self.map || self.align.is_some()
    }
}

/// Writes translations.
pub struct Show<'a> {
    pub translator: &'a Translator,
    pub asked: Asked,
}

impl Show<'_> {
    /// A text of the command line: its translations, each with what else is asked for below it.
    pub fn text(&self, text: &str, found: &[Translated], out: &mut dyn Write) -> Result<()> {
        if self.asked.json {
            return write_json(out, &self.json(text, found)?);
        }
        for each in found {
            writeln!(out, "{}", one_line(&each.text))?;
            if !self.asked.scores && !self.asked.look() {
                continue;
            }
            let aligned = self.aligned(text, each)?;
            for column in self.columns(each, &aligned) {
                writeln!(out, "  {column}")?;
            }
            if let Some(alignment) = aligned.alignment.as_ref().filter(|_| self.asked.map) {
                self.draw(&aligned, alignment, out)?;
            }
        }
        Ok(())
    }

    /// A line of standard input: one line, whatever is asked for.
    pub fn line(&self, text: &str, found: &[Translated], out: &mut dyn Write) -> Result<()> {
        if self.asked.json {
            return write_json(out, &self.json(text, found)?);
        }
        let Some(best) = found.first() else { return Ok(writeln!(out)?) };
        write!(out, "{}", one_line(&best.text))?;
        if self.asked.scores || self.asked.look() {
            for column in self.columns(best, &self.aligned(text, best)?) {
                write!(out, "\t{column}")?;
            }
        }
        Ok(writeln!(out)?)
    }

    /// Why a translation has no alignment although one was asked for: it was made in pieces.
    pub fn unaligned(&self, found: &[Translated]) -> Option<String> {
        let long = found.iter().find(|each| each.pieces > 1)?;
        let asked = self.asked.look() && self.asked.must;
        asked.then(|| format!("--attend and --align: {}", too_long(long, self.translator)))
    }

    /// A line that gets no answer.
    pub fn unread(&self, why: &str, out: &mut dyn Write) -> Result<()> {
        match self.asked.json {
            true => write_json(out, &json!({ "translation_text": "", "error": why })),
            false => Ok(writeln!(out)?),
        }
    }

    fn aligned(&self, text: &str, found: &Translated) -> Result<Aligned> {
        let aligned = self.translator.align(text, found)?;
        let silent = aligned.alignment.is_none() && !found.target_tokens.is_empty();
        if silent && self.asked.look() && self.asked.must {
            if let Some(why) = self.unaligned(std::slice::from_ref(found)) {
                bail!(why);
            }
            bail!(
                "--attend and --align: this model does not tell where it looks; take one with \
                 attention"
            );
        }
        Ok(aligned)
    }

    fn columns(&self, found: &Translated, aligned: &Aligned) -> Vec<String> {
        let mut columns = vec![];
        if self.asked.scores {
            columns.push(format!("{:.4}", found.found.score));
            let words = aligned.target.iter().zip(&aligned.scores);
            let words = words.map(|(word, score)| format!("{word} {score:.4}"));
            columns.push(words.collect::<Vec<_>>().join(" "));
        }
        let empty = Alignment::default();
        let alignment = aligned.alignment.as_ref().unwrap_or(&empty);
        match self.asked.align {
            None => {}
            Some(Align::Pharaoh) => columns.push(alignment.pharaoh()),
            Some(Align::Hard) => {
                let place = |at: Option<usize>| at.map_or("-".into(), |at| at.to_string());
                let places: Vec<String> = alignment.hard().into_iter().map(place).collect();
                columns.push(places.join(" "));
            }
            Some(Align::Soft) => {
                let row = |row: &Vec<f32>| {
                    let weights: Vec<String> = row.iter().map(|w| format!("{w:.4}")).collect();
                    weights.join(",")
                };
                let rows: Vec<String> = alignment.weights.iter().map(row).collect();
                columns.push(rows.join(" "));
            }
        }
        columns
    }

    fn json(&self, text: &str, found: &[Translated]) -> Result<Value> {
        let mut all = found.iter().map(|each| self.object(text, each));
        let mut best = all.next().unwrap_or_else(|| Ok(json!({ "translation_text": "" })))?;
        let others: Vec<Value> = all.collect::<Result<_>>()?;
        if !others.is_empty() {
            best["alternatives"] = json!(others);
        }
        Ok(best)
    }

    fn object(&self, text: &str, each: &Translated) -> Result<Value> {
        let tokens = each.target_tokens.len();
        let mut object = json!({
            "translation_text": each.text,
            "score": finite(each.found.score),
            "log_prob": finite(each.found.log_prob),
            "finished": each.found.finished,
            "source_tokens": each.source_tokens,
            "tokens": each.target_tokens,
            "token_scores": each.found.token_log_probs[..tokens],
        });
        if self.asked.look() {
            let aligned = self.aligned(text, each)?;
            object["source_words"] = json!(aligned.source);
            object["words"] = json!(aligned.target);
            object["word_scores"] = json!(aligned.scores);
            let alignment = aligned.alignment.unwrap_or_default();
            object["alignment"] = json!(alignment.pharaoh());
            object["attention"] = json!(alignment.weights);
        }
        Ok(object)
    }

    fn draw(&self, aligned: &Aligned, alignment: &Alignment, out: &mut dyn Write) -> Result<()> {
        let most = terminal::width();
        let shown = columns_that_fit(&aligned.target, most).min(aligned.source.len());
        if aligned.target.is_empty() || shown == 0 {
            return Ok(());
        }
        let cells: Vec<f32> =
            alignment.weights.iter().flat_map(|row| &row[..shown]).copied().collect();
        let (rows, columns) = (&aligned.target, &aligned.source[..shown]);
        let map = Map { title: vec![], rows, columns, cells: &cells };
        write!(out, "{}", gallery(vec![map.draw(terminal::paint(self.asked.color))], most))?;
        if shown < aligned.source.len() {
            let all = aligned.source.len();
            writeln!(out, "words 0:{shown} of {all}, cut to the width")?;
        }
        Ok(())
    }
}

/// A translation as one line of text with columns behind it: what would break either is a space.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r', '\t'], " ")
}

/// JSON has no infinity.
fn finite(x: f32) -> Value {
    if x.is_finite() { json!(x) } else { Value::Null }
}
