//! Pairs from the lines of two files.

use super::super::examples::one_line;
use super::super::findings::{Findings, Place};
use super::super::parts::HeldOut;
use super::super::reading::Reading;
use super::parallel::Files;
use super::{Corpus, Pair};
use crate::data::stream::Lines;
use crate::say;
use regard_models::Result;
use std::path::Path;
use std::rc::Rc;

/// Reads the files.
pub(super) fn read(files: Files, findings: &mut Findings) -> Result<Corpus> {
    let Files { parts, ends, told, chosen } = files;
    let held = HeldOut { valid: parts[1].is_empty(), test: parts[2].is_empty() };
    let mut all = [vec![], vec![], vec![]];
    for (files, part) in parts.iter().zip(&mut all) {
        for (source, target) in files {
            part.extend(pairs(source, target, findings)?);
        }
    }
    let flags = ends.clone();
    let languages = Some(ends.clone());
    let reading = Reading { languages, ..Reading::of("parallel") };
    let test = parts[2].iter().flat_map(|(source, target)| [source.clone(), target.clone()]);
    let test = test.collect();
    Ok(Corpus { parts: all, held, ends, flags, told, note: None, chosen, test, reading })
}

/// Lines of a file without empty ones at its end; `None` for a line that was noted.
fn lines(path: &Path, findings: &mut Findings) -> Result<Vec<Option<String>>> {
    let mut all = vec![];
    let mut lines = Lines::open(path)?;
    while let Some(line) = lines.next() {
        match line {
            Ok(line) if line.contains('\0') => {
                let place = Place::line(path, lines.number());
                findings.row("encoding", place, "has a NUL byte: this is not a text file");
                all.push(None);
            }
            Ok(line) => all.push(Some(line)),
            Err(error) => {
                findings.reader("encoding", path, &error);
                all.push(None);
            }
        }
    }
    while all.last().is_some_and(|line| line.as_ref().is_some_and(|line| line.trim().is_empty())) {
        all.pop();
    }
    if all.is_empty() {
        findings.error("empty file", Place::whole(path), "has no text");
    }
    Ok(all)
}

fn pairs(source: &Path, target: &Path, findings: &mut Findings) -> Result<Vec<Pair>> {
    let (sources, targets) = (lines(source, findings)?, lines(target, findings)?);
    if sources.len() != targets.len() {
        let message = format!(
            "has {}, and {} has {}: line by line, they must belong together",
            say::many(sources.len(), "line"),
            target.display(),
            say::count(targets.len())
        );
        findings.error("number of lines", Place::whole(source), message);
        return Ok(vec![]);
    }
    let mut all = vec![];
    let file: Rc<Path> = source.into();
    for (line, texts) in (1..).zip(sources.into_iter().zip(targets)) {
        let (Some(one), Some(other)) = texts else { continue };
        let pair =
            Pair { source: one_line(&one), target: one_line(&other), file: file.clone(), line };
        let (full, path, other) = match (pair.source.is_empty(), pair.target.is_empty()) {
            (false, false) => {
                all.push(pair);
                continue;
            }
            (true, true) => {
                let message = "is empty on both sides; left out";
                findings.warn("empty line", Place::line(source, line), message);
                continue;
            }
            (true, false) => (&pair.target, source, target),
            (false, true) => (&pair.source, target, source),
        };
        let message = format!(
            "is empty, and the same line of {} is {:?}",
            other.display(),
            say::short(full, 40)
        );
        findings.row("empty line", Place::line(path, line), message);
    }
    Ok(all)
}
