//! Files of images or sounds with a label or a text each: in a folder per label, or listed in a
//! table.
//!
//! | file | contents |
//! |---|---|
//! | `folders` | a sub-folder for each label |
//! | `tables` | a table of paths and labels |
//! | `labels` | files that were read, and checks of their labels |

mod folders;
mod labels;
mod tables;

pub(super) use labels::{Example, check_labels, contradictions, counted, known_only};

use super::findings::{Findings, Place, numbered};
use super::label_values::MissingLabels;
use super::parts::HeldOut;
use super::reading::Reading;
use super::{Request, table};
use crate::data::Part;
use regard_attention::pool;
use regard_models::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Files of one kind, and how tables name their columns.
pub(super) struct Media {
    /// Noun for one of them.
    pub thing: &'static str,
    /// Kind of the findings about other files.
    pub other: &'static str,
    /// Ends of their names.
    pub ends: &'static [&'static str],
    /// Formats, as messages name them.
    pub formats: &'static str,
    /// Noun for the label or text of one.
    pub text: &'static str,
    /// Kind of the findings about files without it.
    pub empty: &'static str,
    /// Known names of a column of paths, in order of preference.
    pub path_names: &'static [&'static str],
    /// Known names of a column of labels or texts, in order of preference.
    pub text_names: &'static [&'static str],
}

impl Media {
    /// Whether the name of a file is that of this kind.
    fn is_one(&self, path: &Path) -> bool {
        let end = path.extension().map(|end| end.to_string_lossy().to_lowercase());
        end.is_some_and(|end| self.ends.contains(&end.as_str()))
    }
}

/// A file with its label or text.
#[derive(Clone, Debug)]
pub(super) struct Item {
    /// The file.
    pub path: PathBuf,
    /// Its label or text.
    pub text: String,
    /// Table and line that list it.
    listed: Option<(PathBuf, u64)>,
}

impl Item {
    /// Returns where a finding about this file is: the line that lists it, or the file.
    pub fn place(&self) -> Place<'_> {
        match &self.listed {
            Some((table, line)) => Place::line(table, *line),
            None => Place::whole(&self.path),
        }
    }

    /// Completes a message by the name of the file if the place does not have it.
    pub fn tell(&self, message: &str) -> String {
        match self.listed {
            Some(_) => format!("{}: {message}", self.path.display()),
            None => message.to_string(),
        }
    }

    /// Describes this file in a finding about another one.
    fn named(&self) -> String {
        match &self.listed {
            Some((table, line)) => {
                let line = numbered(table, *line);
                format!("{} ({line} of {})", self.path.display(), table.display())
            }
            None => self.path.display().to_string(),
        }
    }
}

/// The files of a request.
pub(super) struct Found {
    /// Files of the three parts, as given.
    pub parts: [Vec<Item>; 3],
    /// Parts that must be split off the training part.
    pub held: HeldOut,
    /// Whether a folder is a label everywhere.
    pub by_folder: bool,
    /// Sentence about where labels come from.
    pub told: String,
    /// How the files were read.
    pub reading: Reading,
    /// Part that is evaluated, if the data have parts.
    pub chosen: Option<Part>,
    /// Files or folders of the test part that was given.
    pub test: Vec<PathBuf>,
}

/// Finds the files of a request. `None` if there are none for training.
///
/// # Errors
/// If a folder has neither sub-folders with such files nor a table.
pub(super) fn find(
    request: &Request,
    media: &Media,
    findings: &mut Findings,
) -> Result<Option<Found>> {
    let mut found = Found {
        parts: [vec![], vec![], vec![]],
        held: HeldOut { valid: true, test: true },
        by_folder: true,
        told: String::new(),
        reading: Reading::of("folders"),
        chosen: None,
        test: vec![],
    };
    let mut all: [Vec<PathBuf>; 3] = [vec![], request.valid.clone(), request.test.clone()];
    for path in &request.data {
        let Some(inside) = parts_of(path, request, media, findings)? else {
            all[0].push(path.clone());
            continue;
        };
        for (at, name, given) in [(1, "valid", &request.valid), (2, "test", &request.test)] {
            if let (Some(own), Some(given)) = (inside[at].first(), given.first()) {
                return Err(Error::invalid(format!(
                    "--{name}: {} is given, and {} has {}: leave one of them out",
                    given.display(),
                    path.display(),
                    own.display()
                )));
            }
        }
        all.iter_mut().zip(inside).for_each(|(all, paths)| all.extend(paths));
    }
    if request.like().is_some() {
        request.check_mixed(&all[1], &all[2])?;
        let (paths, chosen) = request.one_part(all)?;
        (all, found.chosen) = ([paths, vec![], vec![]], chosen);
    }
    found.test = all[2].clone();
    found.held = HeldOut { valid: all[1].is_empty(), test: all[2].is_empty() };
    for (part, paths) in all.iter().enumerate() {
        for path in paths {
            let (items, told) = match path.is_dir() {
                true => {
                    let told = format!("{}: a folder for each label", path.display());
                    let training = part == 0 && request.like().is_none();
                    (folders::items(path, media, training, findings)?, told)
                }
                false => {
                    found.by_folder = false;
                    let (items, told, reading) = tables::items(path, request, media, findings)?;
                    if found.told.is_empty() {
                        found.reading = reading;
                    }
                    (items, told)
                }
            };
            if found.told.is_empty() {
                found.told = told;
            }
            found.parts[part].extend(items);
        }
    }
    if media.text == "label" {
        leave_out_missing(&mut found.parts, request, findings);
    }
    Ok((!found.parts[0].is_empty()).then_some(found))
}

/// Leaves out files without a label, whatever a program wrote for it in a table or for the name of a
/// folder; they are noted.
fn leave_out_missing(parts: &mut [Vec<Item>; 3], request: &Request, findings: &mut Findings) {
    let labels = parts.iter().flatten().map(|item| item.text.as_str());
    let missing = MissingLabels::of(labels, request);
    if let Some(first) = parts.iter().flatten().next() {
        missing.note_classes(first.place().file, findings);
    }
    for part in parts {
        part.retain(|item| {
            let message = missing.stray(&item.text);
            message.is_none_or(|message| {
                findings.row("missing label", item.place(), item.tell(&message));
                false
            })
        });
    }
}

/// Folders or tables of the three parts within a folder. `None` if the path is itself one part: a
/// table, or a folder with a sub-folder for each label.
fn parts_of(
    path: &Path,
    request: &Request,
    media: &Media,
    findings: &mut Findings,
) -> Result<Option<[Vec<PathBuf>; 3]>> {
    if !path.is_dir() {
        return Ok(None);
    }
    let tables = super::files_of(path, &|file| table::is_table(file) && !is_notice(file))?;
    if let Some(parts) = folders::parts(path, media, findings)? {
        unread(&tables, findings);
        return Ok(Some(parts));
    }
    let labels = folders::labels(path, media)?;
    // A single sub-folder beside a table holds the files that the table lists.
    if labels > 1 || (labels == 1 && tables.is_empty()) {
        unread(&tables, findings);
        return Ok(None);
    }
    if tables.is_empty() {
        let (thing, formats) = (media.thing, media.formats);
        let message = format!(
            "need a sub-folder of {formats} files for each label, or a table with the path and \
             the {} of each {thing} (.csv, .tsv, .jsonl); found neither",
            media.text
        );
        return Err(Error::file(path, message));
    }
    let is_wanted = |file: &Path| tables.iter().any(|table| table == file);
    Ok(Some(super::PartFiles::in_folder(path, request, &is_wanted, findings)?))
}

/// Whether a text file is about the data and does not list them.
fn is_notice(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    ["readme", "license", "licence"].iter().any(|begin| name.starts_with(begin))
}

fn unread(tables: &[PathBuf], findings: &mut Findings) {
    for table in tables {
        let message = "is not read: the sub-folders give the labels";
        findings.warn("file not read", Place::whole(table), message);
    }
}

/// Calls `read` for each file on all threads.
pub(super) fn in_parallel<R: Send>(items: &[Item], read: &(dyn Fn(&Item) -> R + Sync)) -> Vec<R> {
    let slots: Vec<Mutex<Option<R>>> = items.iter().map(|_| Mutex::new(None)).collect();
    pool::parallel(items.len(), &|i| {
        let done = read(&items[i]);
        *slots[i].lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
    });
    let take = |slot: Mutex<Option<R>>| slot.into_inner().unwrap_or_else(PoisonError::into_inner);
    slots.into_iter().map(|slot| take(slot).expect("every task was run")).collect()
}

/// Message of an error without the path of the file, which the finding has.
pub(super) fn plain(error: &Error, path: &Path) -> String {
    let text = error.to_string();
    text.strip_prefix(&format!("{}: ", path.display())).unwrap_or(&text).to_string()
}
