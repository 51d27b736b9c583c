//! Requests for files that are read as those of a run were.

use super::header::is_named;
use super::{Column, FLAGS, Purpose, Reading};
use crate::data::Part;
use crate::data::choose::name;
use crate::data::twins::refuse_twins;
use crate::import::request::Request;
use crate::import::table::Table;
use crate::say;
use regard_models::{Error, Result};
use std::borrow::Cow;
use std::path::PathBuf;

/// Rows from which a header is recognised.
const SAMPLE: usize = 200;

impl Request {
    /// Returns how training read its files; `None` if this is for training.
    pub(in crate::import) fn like(&self) -> Option<&Reading> {
        match &self.purpose {
            Purpose::Train => None,
            Purpose::Evaluate(import) | Purpose::Predict(import) => Some(&import.reading),
        }
    }

    /// Returns the recorded separator.
    pub(in crate::import) fn separator(&self) -> Option<char> {
        self.like().and_then(|reading| reading.separator)
    }

    /// Returns the recorded columns of a role in a table with this first row, counted from 0;
    /// `None` if none are recorded.
    ///
    /// # Errors
    /// A message about the table, if it lacks one.
    pub(in crate::import) fn recorded(
        &self,
        role: &str,
        first: &[String],
        is_json: bool,
    ) -> Result<Option<Vec<usize>>, String> {
        let Some(reading) = self.like() else { return Ok(None) };
        let Some(columns) = reading.columns.get(role) else { return Ok(None) };
        let by_name = is_json || self.header.or(reading.header) == Some(true);
        // Keys of objects have names only.
        if is_json && columns.iter().any(|column| column.name.is_none()) {
            return Ok(None);
        }
        let one = |column: &Column| match (&column.name, column.number) {
            (Some(wanted), number) if by_name => {
                let is_it = |at: &usize| first.get(*at).is_some_and(|c| name(c) == name(wanted));
                // Two columns may have one name.
                let same = number.and_then(|number| number.checked_sub(1)).filter(is_it);
                // Keys of objects may differ in case alone.
                let mut exact = (0..first.len()).filter(|at| first[*at].trim() == wanted.trim());
                let exact = exact.next().filter(|_| exact.next().is_none());
                let same = same.or(exact);
                let place = same.or_else(|| (0..first.len()).find(is_it));
                if let (None, Some(at)) = (same, place) {
                    let set = |value: &str| format!("--{role} {value}");
                    let set: &dyn Fn(&str) -> String = &set;
                    refuse_twins(first, &[at], FLAGS.contains(&role).then_some(set))?;
                }
                let missing = || missing(role, wanted, first, is_json) + &self.instead(role);
                place.ok_or_else(missing)
            }
            (_, Some(number)) if number <= first.len() => Ok(number - 1),
            (_, Some(number)) => Err(format!(
                "has no column {number}, from which the run reads the {role}; {}{}{}",
                existing(first),
                another(role, "NUMBER, from 1"),
                self.instead(role)
            )),
            (wanted, None) => Err(format!(
                "the run reads the {role} from the key {:?} of JSON objects; --no-header needs a \
                 number{}",
                wanted.as_deref().unwrap_or_default(),
                another(role, "NUMBER, from 1")
            )),
        };
        columns.iter().map(one).collect::<Result<_, _>>().map(Some)
    }

    /// Command that predicts what a file to evaluate lacks, if there is one.
    fn instead(&self, role: &str) -> String {
        let Purpose::Evaluate(trained) = &self.purpose else { return String::new() };
        let wanted = ["label", "target"].contains(&role);
        let is_verb = ["classify", "translate", "summarize"].contains(&trained.task.as_str());
        let (Some(run), [file]) = (trained.folder.parent(), &self.data[..]) else {
            return String::new();
        };
        if !wanted || !is_verb {
            return String::new();
        }
        format!(
            ".\nWithout the {role} nothing can be evaluated; to predict it: regard {} --file {} \
             --model {}",
            trained.task,
            say::quoted(file.display()),
            say::quoted(run.display())
        )
    }

    /// Returns the request for a table: the recorded columns and header where flags do not choose
    /// others.
    ///
    /// # Errors
    /// A message about the table, if it lacks a recorded column.
    pub(in crate::import) fn for_table(&self, table: &Table) -> Result<Cow<'_, Request>, String> {
        let sample = table.sample(SAMPLE);
        let first = sample.first().copied().unwrap_or_default();
        let unsure = self.like().filter(|reading| {
            let is_numbered = reading.header == Some(false) && reading.columns.len() > 1;
            is_numbered && self.header.is_none() && table.keys.is_none()
        });
        let Some(reading) = unsure else { return self.for_columns(first, !table.has_order) };
        if let Some(message) = reading.other_header(&sample, &self.columns.chosen()) {
            return Err(message);
        }
        let request = self.for_columns(first, !table.has_order)?;
        // Flags may choose all columns by number.
        Ok(match reading.looks_like_header(&sample) {
            true => Cow::Owned(Request { header: Some(true), ..request.into_owned() }),
            false => request,
        })
    }

    /// As [`Request::for_table`], for a first row or the keys of an object.
    pub(in crate::import) fn for_columns(
        &self,
        first: &[String],
        is_json: bool,
    ) -> Result<Cow<'_, Request>, String> {
        let Some(reading) = self.like() else { return Ok(Cow::Borrowed(self)) };
        let mut request = self.clone();
        let header = self.header_of(reading, first, is_json);
        let by_name = is_json || header == Some(true);
        let mut filled = false;
        let columns = &mut request.columns;
        let slots = [
            &mut columns.text,
            &mut columns.label,
            &mut columns.source,
            &mut columns.target,
            &mut columns.query,
            &mut columns.context,
            &mut columns.question,
            &mut columns.answer,
        ];
        for (role, slot) in FLAGS.into_iter().zip(slots) {
            if slot.is_some() {
                continue;
            }
            let Some(places) = self.recorded(role, first, is_json)? else { continue };
            // A number is unambiguous: two columns may have one name, and a name may have a comma.
            // Keys of objects have none, and another column may have the number as its name.
            let value = |at: &usize| {
                let number = (at + 1).to_string();
                let is_taken = by_name && first.iter().any(|cell| name(cell) == number);
                match is_json || is_taken {
                    true => first[*at].trim_start_matches('\u{feff}').trim().to_string(),
                    false => number,
                }
            };
            *slot = Some(places.iter().map(value).collect::<Vec<_>>().join(","));
            filled = true;
        }
        if filled {
            request.header = header;
        }
        Ok(Cow::Owned(request))
    }

    /// Whether the first row of a table is a header: as flags say, else as the training table had
    /// one, unless the row itself shows that it is one. `None` if the importer has to look.
    fn header_of(&self, reading: &Reading, first: &[String], is_json: bool) -> Option<bool> {
        match self.header {
            Some(given) => Some(given),
            None if is_json => Some(true),
            None if reading.header != Some(false) => reading.header,
            None if is_named(&self.columns, first) => Some(true),
            // A table of files: their paths show it.
            None if reading.columns.len() < 2 => None,
            None => Some(reading.is_header(first)),
        }
    }

    /// Refuses a file beside a folder with parts: one part is evaluated, so the file would be left
    /// out. `valid` and `test` are the files of these parts.
    pub(in crate::import) fn check_mixed(&self, valid: &[PathBuf], test: &[PathBuf]) -> Result<()> {
        let is_part = |path: &&PathBuf| valid.iter().chain(test).any(|file| file.starts_with(path));
        let folder = self.data.iter().find(is_part);
        let other = self.data.iter().find(|path| !is_part(path));
        match (folder, other) {
            (Some(folder), Some(other)) => Err(Error::invalid(format!(
                "--data: {} has parts, of which one is evaluated, and {} is not one of them: name \
                 files only, or evaluate them one after the other",
                folder.display(),
                other.display()
            ))),
            _ => Ok(()),
        }
    }

    /// Chooses what is evaluated: all of it or, if the data have parts, the one that was asked for,
    /// else the test part, else the validation part. Also returns which part it is.
    ///
    /// # Errors
    /// If the part that was asked for is not there.
    pub(in crate::import) fn one_part<T>(
        &self,
        [train, valid, test]: [Vec<T>; 3],
    ) -> Result<(Vec<T>, Option<Part>)> {
        if valid.is_empty() && test.is_empty() {
            return match self.part {
                Some(part) => Err(Error::invalid(format!(
                    "--part {}: the data have no parts; leave it out to evaluate all of them",
                    part.name()
                ))),
                None => Ok((train, None)),
            };
        }
        let default = if test.is_empty() { Part::Valid } else { Part::Test };
        let part = self.part.unwrap_or(default);
        let chosen = part.of([train, valid, test]);
        match chosen.is_empty() {
            true => {
                Err(Error::invalid(format!("--part {0}: the data have no {0} part", part.name())))
            }
            false => Ok((chosen, Some(part))),
        }
    }
}

/// Sentence about the part that is evaluated.
pub(in crate::import) fn part_told(part: Part) -> String {
    let name = part.of(["training part", "validation part", "test part"]);
    format!("the data have parts: read is the {name}")
}

fn missing(role: &str, wanted: &str, first: &[String], is_json: bool) -> String {
    let cells: Vec<&str> = first.iter().map(String::as_str).collect();
    let no_header = match is_json {
        true => "",
        false => "; if the first row is an example and not a header, --no-header",
    };
    format!(
        "has no column {:?}, from which the run reads the {role}; {}{}{}{no_header}",
        say::short(wanted, 40),
        say::did_you_mean(wanted, &cells),
        existing(first),
        another(role, "COLUMN")
    )
}

fn existing(first: &[String]) -> String {
    let cells: Vec<String> =
        first.iter().map(|cell| format!("{:?}", say::short(cell, 40))).collect();
    format!("its columns are {}", say::list(&cells, 12))
}

/// End of a message: the flag that chooses another column, if there is one.
fn another(role: &str, value: &str) -> String {
    match FLAGS.contains(&role) {
        true => format!(". Choose another: --{role} {value}"),
        false => String::new(),
    }
}
