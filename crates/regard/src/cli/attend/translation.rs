//! `regard attend --translate`: cross-attention of a translation.

use super::{Flags, Global, MOST_ROWS};
use crate::cli::write_json;
use crate::files::save_npz_with_words;
use crate::models;
use crate::show::heatmap::{Map, columns_that_fit, gallery};
use crate::show::terminal;
use anyhow::{Result, bail};
use regard_tasks::decode::TokenAlignment;
use regard_tasks::translate::{Aligned, Translated, TranslationRequest, Translator};
use serde::Serialize;
use std::io::Write;

/// Caption of maps of words, whose rows need not sum to 1.
const WORDS: &str = "Attention weights of the model, summed over the tokens of each word. A row \
                     may sum to less than 1: the rest is attention to the end of the source.";
const TOKENS: &str = "Attention weights of the model.";

pub fn run(flags: &Flags, global: &Global, out: &mut dyn Write) -> Result<()> {
    let text = super::text(&flags.input)?.unwrap_or_default();
    let translator: Translator = models::open(flags.model.as_deref(), &flags.hub)?;
    let mut options = translator.defaults().clone();
    options.seed = global.seed.unwrap_or(options.seed);
    let request = TranslationRequest { look: true, ..TranslationRequest::new(&options) };
    let mut found = translator.run(&[&text], &request)?;
    let shown = Shown::new(&translator, text, found.remove(0).remove(0))?;
    if let Some(path) = &flags.save {
        shown.save(path)?;
    }
    let (targets, sources, weights) = shown.map(flags.tokens);
    let (t, s) = (targets.len(), sources.len());
    let rows = flags.rows.map_or(Ok(0..t), |span| span.of(t, "rows"))?;
    let keys = flags.keys.map_or(Ok(0..s), |span| span.of(s, "keys"))?;
    let cells = |rows: std::ops::Range<usize>, keys: std::ops::Range<usize>| -> Vec<f32> {
        weights[rows].iter().flat_map(|row| &row[keys.clone()]).copied().collect()
    };
    let title = vec![shown.source.clone(), format!("→ {}", shown.found.text)];
    let about = if flags.tokens { TOKENS } else { WORDS };
    if flags.pictures.wanted() {
        let all = cells(rows.clone(), keys.clone());
        let (names, columns) = (&targets[rows.clone()], &sources[keys.clone()]);
        let map = Map { title: title.clone(), rows: names, columns, cells: &all };
        let about = ["Rows are target words, columns are source words.".into(), about.into()];
        flags.pictures.write(&shown.found.text, &about, &[map])?;
    }
    if global.json {
        return shown.json(out);
    }
    let most = terminal::width();
    let seen = rows.start..rows.end.min(rows.start + MOST_ROWS);
    let names = &targets[seen.clone()];
    let fit = keys.start..keys.end.min(keys.start + columns_that_fit(names, most));
    let part = cells(seen.clone(), fit.clone());
    let map = Map { title, rows: names, columns: &sources[fit.clone()], cells: &part };
    write!(out, "{}", gallery(vec![map.draw(terminal::paint(flags.color))], most))?;
    if seen.len() < rows.len() {
        writeln!(out, "rows {}:{} of {t}; --rows A:B shows others", seen.start, seen.end)?;
    }
    if fit.len() < keys.len() {
        let (from, to) = (fit.start, fit.end);
        writeln!(out, "columns {from}:{to} of {s}, cut to the width; --keys A:B shows others")?;
    }
    writeln!(out, "{about}")?;
    Ok(())
}

/// A translation with its attention.
struct Shown {
    source: String,
    found: Translated,
    aligned: Aligned,
    words: TokenAlignment,
    /// Source tokens, with the end token.
    source_tokens: Vec<String>,
    /// Target tokens, with the end token if it was generated.
    target_tokens: Vec<String>,
}

impl Shown {
    fn new(translator: &Translator, source: String, found: Translated) -> Result<Shown> {
        if found.source_tokens.is_empty() {
            bail!("attend --translate: got a text without words");
        }
        let mut aligned = translator.align(&source, &found)?;
        let Some(words) = aligned.alignment.take().filter(|_| found.pieces == 1) else {
            bail!("attend --translate: {}", translator.no_alignment(&found));
        };
        if aligned.target.is_empty() {
            bail!("attend --translate: the translation is empty, so there is no attention");
        }
        let tokens = translator.tokens();
        let end = |special: Option<u32>| special.unwrap_or_default();
        let name = |name: Option<String>| name.unwrap_or_default();
        let mut source_tokens = found.source_tokens.clone();
        source_tokens.push(name(tokens.source.token(end(tokens.source.special().eos))));
        let mut target_tokens = found.target_tokens.clone();
        if found.found.finished {
            target_tokens.push(name(tokens.target.token(end(tokens.target.special().eos))));
        }
        Ok(Shown { source, found, aligned, words, source_tokens, target_tokens })
    }

    /// Returns target, source, and the weights between them `[target][source]`.
    fn map(&self, tokens: bool) -> (&[String], &[String], &[Vec<f32>]) {
        match tokens {
            true => (&self.target_tokens, &self.source_tokens, &self.found.found.attention),
            false => (&self.aligned.target, &self.aligned.source, &self.words.weights),
        }
    }

    fn json(&self, out: &mut dyn Write) -> Result<()> {
        let document = Document {
            source: &self.source,
            translation_text: &self.found.text,
            source_tokens: &self.source_tokens,
            tokens: &self.target_tokens,
            cross_attention: &self.found.found.attention,
            source_words: &self.aligned.source,
            words: &self.aligned.target,
            attention: &self.words.weights,
            alignment: self.words.pharaoh(),
        };
        write_json(out, &document)
    }

    fn save(&self, path: &std::path::Path) -> Result<()> {
        let (tokens, words) = (self.found.found.attention.concat(), self.words.weights.concat());
        let arrays: [(&str, &[f32], &[usize]); 2] = [
            ("attention", &tokens, &[self.target_tokens.len(), self.source_tokens.len()]),
            ("word_attention", &words, &[self.aligned.target.len(), self.aligned.source.len()]),
        ];
        let names: [(&str, &[String]); 4] = [
            ("tokens", &self.target_tokens),
            ("source_tokens", &self.source_tokens),
            ("words", &self.aligned.target),
            ("source_words", &self.aligned.source),
        ];
        save_npz_with_words(path, &arrays, &names)
    }
}

/// A translation with its attention, as `--json` prints it.
#[derive(Serialize)]
struct Document<'a> {
    source: &'a str,
    translation_text: &'a str,
    source_tokens: &'a [String],
    tokens: &'a [String],
    cross_attention: &'a [Vec<f32>],
    source_words: &'a [String],
    words: &'a [String],
    attention: &'a [Vec<f32>],
    alignment: String,
}
