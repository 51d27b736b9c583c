//! Pairs of a source and a target: sentences with their translations, texts with their summaries.

mod header;
mod languages;
mod lines;
mod parallel;
mod tables;

pub(super) use tables::is_side;

use super::examples::{Example, check_parts, divide, mean, percentile, skipped, text_key};
use super::findings::{Findings, Place};
use super::parts::HeldOut;
use super::reading::{Reading, part_told};
use super::{DataSize, Draft, Request, is_unspaced, split_line, units};
use crate::data::Part;
use crate::say;
use regard_models::{Result, checkpoint};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use toml::{Table as Keys, Value};

/// Number of words of a sentence above which it is hardly one.
const LONG: usize = 200;
/// Ratio of the mean lengths of two languages that is suspicious.
const RATIO: f64 = 3.0;
/// Tokens for each word: rare words are several.
const TOKENS: usize = 3;

/// Task that the pairs are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Translate,
    Summarize,
}

/// A pair and its place.
#[derive(Clone, Debug)]
struct Pair {
    source: String,
    target: String,
    /// Table, or file of the source.
    file: Rc<Path>,
    line: u64,
}

impl Example for Pair {
    const KEY: &'static str = "source";

    fn key(&self) -> String {
        text_key(&self.source)
    }

    fn place(&self) -> Place<'_> {
        Place::line(&self.file, self.line)
    }
}

/// Pairs of the user.
struct Corpus {
    parts: [Vec<Pair>; 3],
    held: HeldOut,
    /// Languages of source and target, or `src` and `tgt`.
    ends: [String; 2],
    /// Values of `--source` and `--target` that choose what was chosen.
    flags: [String; 2],
    /// Sentence about the columns or files.
    told: String,
    /// Sentence about columns that are not read.
    note: Option<String>,
    /// Part that is evaluated, if the data have parts.
    chosen: Option<Part>,
    /// Files of the test part that was given.
    test: Vec<PathBuf>,
    reading: Reading,
}

/// Reads sentences with their translations.
pub(super) fn translate(request: &Request, findings: &mut Findings) -> Result<Option<Draft>> {
    read(request, Kind::Translate, findings)
}

/// Reads texts with their summaries.
pub(super) fn summarize(request: &Request, findings: &mut Findings) -> Result<Option<Draft>> {
    read(request, Kind::Summarize, findings)
}

fn read(request: &Request, kind: Kind, findings: &mut Findings) -> Result<Option<Draft>> {
    let corpus = match parallel::find(request, findings)? {
        Some(files) => Some(lines::read(files, findings)?),
        None => tables::read(request, kind, findings)?,
    };
    let Some(corpus) = corpus else { return Ok(None) };
    let Corpus { parts, held, ends, flags, told, note, chosen, test, reading } = corpus;
    let Some(first) = parts[0].first() else { return Ok(None) };
    let mut summary = vec![format!(
        "{told}; first: '{}' → '{}'",
        say::short(&first.source, 40),
        say::short(&first.target, 40)
    )];
    summary.extend(chosen.map(part_told).into_iter().chain(note));
    if request.like().is_some() {
        let [pairs, ..] = parts;
        summary.push(say::many(pairs.len(), "pair"));
        summary.extend(skipped(findings));
        let task = if kind == Kind::Translate { "translate" } else { "summarize" };
        let (count, file) = (pairs.len(), "test.tsv");
        let write = move |folder: &Path| write_table(&folder.join(file), &pairs);
        let draft = Draft::to_evaluate(task, summary, count, file, Box::new(write));
        return Ok(Some(Draft { chosen, reading, ..draft }));
    }
    let all = divide(parts, false, held, request.seed, findings);
    check_parts(&all, 2, held, findings);
    let sizes = all.each_ref().map(Vec::len);
    summary.push(split_line(sizes, held, request.seed));
    let lengths = Lengths::of(&all[0]);
    lengths.check(kind, &all[0], &flags, findings);
    summary.push(lengths.told());
    summary.extend(skipped(findings));
    let size = DataSize {
        examples: sizes[0],
        units: lengths.source.iter().chain(&lengths.target).sum(),
        longest: lengths.source.iter().chain(&lengths.target).copied().max().unwrap_or(0),
        labels: 0,
        unspaced: lengths.unspaced[0] || lengths.unspaced[1],
    };
    let (task, keys) = match kind {
        Kind::Translate => ("translate", lengths.translate(&ends, &all, findings)),
        Kind::Summarize => ("summarize", lengths.summarize(&all[0])),
    };
    let write = move |folder: &Path| {
        let mut parts = all.iter().zip(["train", "valid", "test"]);
        parts.try_for_each(|(pairs, part)| match kind {
            Kind::Translate => write_lines(folder, part, &ends, pairs),
            Kind::Summarize => write_table(&folder.join(format!("{part}.tsv")), pairs),
        })
    };
    let files = vec![("folder", "")];
    let write = Box::new(write);
    let draft = Draft::new(task, summary, sizes, write);
    Ok(Some(Draft { size, keys, files, test, reading, ..draft }))
}

/// Lengths of the training pairs, in words, or in characters of a side whose words are not
/// separated by spaces.
struct Lengths {
    source: Vec<usize>,
    target: Vec<usize>,
    unspaced: [bool; 2],
}

impl Lengths {
    fn of(pairs: &[Pair]) -> Lengths {
        let unspaced = [
            is_unspaced(pairs.iter().map(|pair| pair.source.as_str())),
            is_unspaced(pairs.iter().map(|pair| pair.target.as_str())),
        ];
        Lengths {
            source: pairs.iter().map(|pair| units(&pair.source, unspaced[0])).collect(),
            target: pairs.iter().map(|pair| units(&pair.target, unspaced[1])).collect(),
            unspaced,
        }
    }

    fn means(&self) -> [f64; 2] {
        [mean(&self.source), mean(&self.target)]
    }

    fn unit(&self, side: usize) -> &'static str {
        if self.unspaced[side] { "characters" } else { "words" }
    }

    fn told(&self) -> String {
        let [source, target] = self.means();
        let [from, to] = [0, 1].map(|side| self.unit(side));
        format!("mean length: source {source:.1} {from}, target {target:.1} {to}")
    }

    /// Checks that source and target differ, and that their lengths fit the task.
    fn check(&self, kind: Kind, pairs: &[Pair], flags: &[String; 2], findings: &mut Findings) {
        let Some(first) = pairs.first() else { return };
        let same = pairs.iter().filter(|pair| pair.source == pair.target).count();
        let [source, target] = self.means();
        let [from, to] = flags;
        if 2 * same > pairs.len() {
            let message = format!(
                "source and target are the same text in {} of {}: --source and --target choose \
                 different columns or files",
                say::count(same),
                say::many(pairs.len(), "pair")
            );
            findings.error("same text", first.place(), message);
        } else if kind == Kind::Summarize && target > source {
            let message = format!(
                "the summaries are longer than the texts, {target:.1} {} to {source:.1} on \
                 average: the columns are likely swapped; --source {to} --target {from}",
                self.unit(1)
            );
            findings.error("swapped columns", first.place(), message);
        } else if kind == Kind::Translate && !(1.0 / RATIO..=RATIO).contains(&(source / target)) {
            let message = format!(
                "a source has {source:.1} {} on average, a target {target:.1} {}: do they belong \
                 together?",
                self.unit(0),
                self.unit(1)
            );
            findings.warn("different lengths", first.place(), message);
        }
    }

    /// Keys of a recipe of translation; also notes pairs that are too long for it.
    fn translate(&self, ends: &[String; 2], all: &[Vec<Pair>; 3], findings: &mut Findings) -> Keys {
        let both = self.source.iter().zip(&self.target);
        let longer: Vec<usize> = both.map(|(source, target)| *source.max(target)).collect();
        let most = (TOKENS * percentile(&longer, 99)).next_power_of_two().clamp(64, 512);
        for pair in all.iter().flatten() {
            for (text, side) in [(&pair.source, 0), (&pair.target, 1)] {
                let length = units(text, self.unspaced[side]);
                if length > LONG {
                    let message = format!(
                        "the {} has {length} {}: more than a sentence; pairs of more than {most} \
                         tokens are left out",
                        ["source", "target"][side],
                        self.unit(side)
                    );
                    findings.warn("long pair", pair.place(), message);
                }
            }
        }
        let [source, target] = ends.clone().map(Value::String);
        let most = Value::Integer(most as i64);
        let data = [("source", source), ("target", target), ("max_tokens", most.clone())];
        keys([("data", Vec::from(data)), ("decode", vec![("max_length", most)])])
    }

    /// Keys of a recipe of summarisation.
    fn summarize(&self, pairs: &[Pair]) -> Keys {
        let [texts, summaries]: [Vec<usize>; 2] = [
            pairs.iter().map(|pair| tokens(&pair.source)).collect(),
            pairs.iter().map(|pair| tokens(&pair.target)).collect(),
        ];
        let words = percentile(&texts, 95).clamp(40, 400) as i64;
        let summary = percentile(&summaries, 95).clamp(8, 60) as i64;
        let [words, most] = [words, summary].map(Value::Integer);
        // The search counts the tokens of beginning and end too.
        let length = Value::Integer(summary + 2);
        let data = vec![("max_words", words), ("max_summary", most)];
        keys([("data", data), ("decode", vec![("max_length", length)])])
    }
}

/// Number of words and punctuation marks, which are tokens of their own in summarisation.
fn tokens(text: &str) -> usize {
    let marks = text.chars().filter(|c| c.is_ascii_punctuation()).count();
    marks
        + text
            .split(|c: char| c.is_whitespace() || c.is_ascii_punctuation())
            .filter(|word| !word.is_empty())
            .count()
}

/// Tables of a recipe.
fn keys<const N: usize>(sections: [(&str, Vec<(&str, Value)>); N]) -> Keys {
    let table = |rows: Vec<(&str, Value)>| {
        Value::Table(rows.into_iter().map(|(key, value)| (key.to_string(), value)).collect())
    };
    sections.into_iter().map(|(name, rows)| (name.to_string(), table(rows))).collect()
}

fn write_lines(folder: &Path, part: &str, ends: &[String; 2], pairs: &[Pair]) -> Result<()> {
    for (side, end) in ends.iter().enumerate() {
        checkpoint::write_file_with(&folder.join(format!("{part}.{end}")), |file| {
            let mut writer = std::io::BufWriter::new(file);
            for pair in pairs {
                writeln!(writer, "{}", if side == 0 { &pair.source } else { &pair.target })?;
            }
            writer.flush()
        })?;
    }
    Ok(())
}

fn write_table(path: &Path, pairs: &[Pair]) -> Result<()> {
    checkpoint::write_file_with(path, |file| {
        let mut writer = std::io::BufWriter::new(file);
        // With names, no first pair can be mistaken for them.
        writeln!(writer, "text\tsummary")?;
        for pair in pairs {
            writeln!(writer, "{}\t{}", pair.source, pair.target)?;
        }
        writer.flush()
    })
}

#[cfg(test)]
mod tests;
