//! Output of translations.

use super::Align;
use crate::cli::write_json;
use crate::show::heatmap::{Map, columns_that_fit, gallery};
use crate::show::terminal::{self, When};
use anyhow::{Context, Result, bail};
use regard_tasks::decode::TokenAlignment;
use regard_tasks::translate::{Aligned, Parameters, Response, Translated, Translator};
use serde::Serialize;
use std::io::Write;

/// Requested output besides the translation.
#[derive(Clone, Copy)]
pub struct OutputOptions {
    /// Whether to draw the attention map.
    pub map: bool,
    /// Whether to print the scores of each sentence and word.
    pub scores: bool,
    pub align: Option<Align>,
    /// Whether to print JSON instead of text.
    pub json: bool,
    pub color: When,
    /// Whether a model without attention weights is an error.
    pub must: bool,
}

impl OutputOptions {
    /// Whether attention weights are needed.
    pub fn look(&self) -> bool {
        self.map || self.align.is_some()
    }
}

/// Writes translations to standard output.
pub struct TranslationPrinter<'a> {
    pub translator: &'a Translator,
    pub asked: OutputOptions,
    pub parameters: Parameters,
}

/// A line that could not be translated, as `--json` prints it.
#[derive(Serialize)]
struct Unread<'a> {
    translation_text: &'a str,
    error: &'a str,
}

impl TranslationPrinter<'_> {
    /// Writes the translations of a command-line text, each followed by its scores and map.
    pub fn text(&self, text: &str, found: &[Translated], out: &mut dyn Write) -> Result<()> {
        if self.asked.json {
            return write_json(out, &self.response(text, found)?);
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

    /// Writes the translation of a line of standard input as one line.
    pub fn line(&self, text: &str, found: &[Translated], out: &mut dyn Write) -> Result<()> {
        if self.asked.json {
            return write_json(out, &self.response(text, found)?);
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

    /// Returns why a requested alignment is missing: the source was translated in pieces.
    pub fn unaligned(&self, found: &[Translated]) -> Option<String> {
        let long = found.iter().find(|each| each.pieces > 1)?;
        let asked = self.asked.look() && self.asked.must;
        asked.then(|| self.translator.no_alignment(long).to_string())
    }

    /// Writes the result of a line that could not be translated.
    pub fn unread(&self, why: &str, out: &mut dyn Write) -> Result<()> {
        match self.asked.json {
            true => write_json(out, &Unread { translation_text: "", error: why }),
            false => Ok(writeln!(out)?),
        }
    }

    fn aligned(&self, text: &str, found: &Translated) -> Result<Aligned> {
        let aligned = self.translator.align(text, found)?;
        let silent = aligned.alignment.is_none() && !found.target_tokens.is_empty();
        if silent && self.asked.look() && self.asked.must {
            bail!("--attend and --align: {}", self.translator.no_alignment(found));
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
        let empty = TokenAlignment::default();
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

    fn response(&self, text: &str, found: &[Translated]) -> Result<Response> {
        let response = self.translator.response(text, found, &self.parameters);
        response.context("--attend and --align")
    }

    fn draw(
        &self,
        aligned: &Aligned,
        alignment: &TokenAlignment,
        out: &mut dyn Write,
    ) -> Result<()> {
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
            writeln!(out, "source words 0:{shown} of {all}, cut to the width of the terminal")?;
        }
        Ok(())
    }
}

/// Replaces line breaks and tabs by spaces, so that a translation stays one column of one line.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r', '\t'], " ")
}
