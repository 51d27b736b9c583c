//! Pairs in two parallel files, a text on each line: `train.en` and `train.fr`.

use super::super::findings::Findings;
use super::super::{PARTS, Request, files_of, note_unread, stem, table};
use super::languages;
use crate::data::Part;
use crate::data::stream::Lines;
use crate::say;
use regard_models::{Error, Result};
use std::path::{Path, PathBuf};

/// Ends of names of parallel files that are not languages.
const SIDES: [&str; 10] =
    ["source", "target", "src", "tgt", "trg", "input", "output", "document", "article", "summary"];

/// A source file and its target file.
pub(super) type Twins = (PathBuf, PathBuf);

/// Files of the three parts.
pub(super) struct Files {
    pub parts: [Vec<Twins>; 3],
    /// Ends of the names of source and target.
    pub ends: [String; 2],
    /// Sentence about the direction.
    pub told: String,
    /// Part that is evaluated, if the data have parts.
    pub chosen: Option<Part>,
}

/// End of a file's name that says its side: a language or `source`. `None` for a table, or a text
/// file without a language in its name.
fn side(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_string_lossy().to_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    if let Some(name) = name.strip_suffix(".txt") {
        let mut words = name.rsplit(['.', '-', '_']);
        return words.find_map(languages::code).map(str::to_string);
    }
    let (_, end) = name.rsplit_once('.')?;
    let is_plain = end.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_');
    (is_plain && !end.is_empty() && !table::ENDS.contains(&end)).then(|| end.to_string())
}

/// Path without the end that says its side.
fn base(path: &Path) -> String {
    let text = path.to_string_lossy().to_lowercase();
    let text = text.strip_suffix(".gz").unwrap_or(&text);
    let text = text.strip_suffix(".txt").unwrap_or(text);
    text.rsplit_once('.').map_or(text, |(base, _)| base).to_string()
}

/// Whether the first line of a text file has columns.
fn has_tab(path: &Path) -> Result<bool> {
    let first = Lines::open(path)?.next().transpose();
    Ok(first.is_ok_and(|line| line.is_some_and(|line| line.contains('\t'))))
}

/// Finds parallel files; `None` if the request names tables.
pub(super) fn find(request: &Request, findings: &mut Findings) -> Result<Option<Files>> {
    let parts = match &request.data[..] {
        [folder] if folder.is_dir() => match of_folder(folder, request.like().is_some(), findings)?
        {
            Some([train, valid, test]) => {
                let valid = given("valid", valid, &request.valid)?;
                [train, valid, given("test", test, &request.test)?]
            }
            None => return Ok(None),
        },
        [_, _, ..] if request.data.iter().all(|path| path.is_file()) => {
            let is_text = |path: &PathBuf| table::end(path) == "txt";
            for path in request.data.iter().filter(|path| is_text(path)) {
                if has_tab(path)? {
                    return Ok(None);
                }
            }
            let sided = request.data.iter().all(|path| side(path).is_some());
            if !sided && !request.data.iter().all(is_text) {
                return Ok(None);
            }
            [&request.data, &request.valid, &request.test].map(Clone::clone)
        }
        _ => return Ok(None),
    };
    let (parts, chosen) = match request.like() {
        Some(_) => {
            let (files, chosen) = request.one_part(parts)?;
            ([files, vec![], vec![]], chosen)
        }
        None => (parts, None),
    };
    let is_folder = request.data.len() == 1;
    let Some((ends, told)) = direction(request, &parts[0], is_folder)? else {
        return in_order(request, parts).map(|files| Some(Files { chosen, ..files }));
    };
    let flags = ["data", "valid", "test"];
    let mut all = [vec![], vec![], vec![]];
    for ((files, flag), part) in parts.iter().zip(flags).zip(&mut all) {
        *part = twins(files, &ends, flag)?;
    }
    Ok(Some(Files { parts: all, ends, told, chosen }))
}

/// Files of a part: those of the folder, or those that a flag names.
fn given(flag: &str, own: Vec<PathBuf>, named: &[PathBuf]) -> Result<Vec<PathBuf>> {
    match (own.first(), named) {
        (_, []) => Ok(own),
        (None, _) => Ok(named.to_vec()),
        (Some(own), _) => Err(Error::invalid(format!(
            "--{flag} names a file, and the folder has {}: leave one of them out",
            own.display()
        ))),
    }
}

/// Files of a folder for each part, if its training files are parallel.
fn of_folder(
    folder: &Path,
    evaluates: bool,
    findings: &mut Findings,
) -> Result<Option<[Vec<PathBuf>; 3]>> {
    let mut files = vec![];
    for path in files_of(folder, &|path| side(path).is_some())? {
        if table::end(&path) != "txt" || !has_tab(&path)? {
            files.push(path);
        }
    }
    let named = |names: &[&str]| -> Vec<PathBuf> {
        let of = |path: &&PathBuf| names.contains(&stem(path).as_str());
        files.iter().filter(of).cloned().collect()
    };
    let parts = PARTS.map(named);
    if !parts[0].is_empty() || (evaluates && parts.iter().any(|files| !files.is_empty())) {
        note_unread(&files, parts.each_ref(), evaluates, findings);
        return Ok(Some(parts));
    }
    // Files of any name, if their ends are languages: a folder holds a licence and more.
    files.retain(|path| {
        let end = side(path).unwrap_or_default();
        languages::code(&end).is_some() || SIDES.contains(&end.as_str())
    });
    let any = files.len() > 1 && parts.iter().all(Vec::is_empty);
    Ok(any.then_some([files, vec![], vec![]]))
}

/// Ends of the names of source and target, and how they were chosen. `None` if the names of the
/// files do not say them.
fn direction(
    request: &Request,
    train: &[PathBuf],
    is_folder: bool,
) -> Result<Option<([String; 2], String)>> {
    let mut ends: Vec<String> = vec![];
    for path in train {
        let Some(end) = side(path) else { return Ok(None) };
        if !ends.contains(&end) {
            ends.push(end);
        }
    }
    if ends.len() == 1 && train.len() == 2 && table::end(&train[0]) == "txt" {
        return Ok(None);
    }
    let names: Vec<&str> = ends.iter().map(String::as_str).collect();
    let place = |flag: &str, asked: &Option<String>| -> Result<Option<usize>> {
        let Some(asked) = asked else { return Ok(None) };
        let (asked, language) = (asked.trim().to_lowercase(), languages::code(asked));
        let is = |end: &String| {
            *end == asked || (language.is_some() && languages::code(end) == language)
        };
        match ends.iter().position(is) {
            Some(at) => Ok(Some(at)),
            None => Err(Error::invalid(format!(
                "--{flag}: no file of --data ends in .{asked}; {}the ends are {}",
                say::did_you_mean(&asked, &names),
                say::list(&names, 8)
            ))),
        }
    };
    let mut source = place("source", &request.columns.source)?;
    let mut target = place("target", &request.columns.target)?;
    // Files to evaluate on have the languages of the training files, if these are known.
    if let (None, None, Some(reading)) = (source, target, request.like())
        && let Some(languages) = &reading.languages
    {
        let same = |language: &String| {
            let code = languages::code(language);
            let is =
                |end: &String| end == language || (code.is_some() && languages::code(end) == code);
            ends.iter().position(is)
        };
        (source, target) = (same(&languages[0]), same(&languages[1]));
    }
    let (source, target) = match (source, target, ends.len()) {
        (Some(source), Some(target), _) if source != target => (source, target),
        (Some(_), Some(_), _) => {
            return Err(Error::invalid("--source and --target name the same files"));
        }
        (Some(one), None, 2) => (one, 1 - one),
        (None, Some(one), 2) => (1 - one, one),
        (None, None, 2) => (0, 1),
        _ => {
            return Err(Error::invalid(format!(
                "--data: the names of the files end in {}; need two ends, such as .en and .fr: \
                 choose them with --source and --target",
                say::list(&names, 8)
            )));
        }
    };
    let ends = [ends[source].clone(), ends[target].clone()];
    let [from, to] = &ends;
    let chosen = request.columns.source.is_some() || request.columns.target.is_some();
    let told = match is_folder && !chosen {
        true => format!("source: *.{from}, target: *.{to} (--source {to} turns it around)"),
        false => format!("source: *.{from}, target: *.{to}"),
    };
    Ok(Some((ends, told)))
}

/// Two text files without a language in their names: the first is the source.
fn in_order(request: &Request, parts: [Vec<PathBuf>; 3]) -> Result<Files> {
    for (flag, asked) in [("source", &request.columns.source), ("target", &request.columns.target)]
    {
        if let Some(asked) = asked {
            return Err(Error::invalid(format!(
                "--{flag} {asked}: the names of the files do not say their languages; the first \
                 --data is the source, the second the target"
            )));
        }
    }
    let mut all = [vec![], vec![], vec![]];
    for ((files, flag), part) in parts.into_iter().zip(["data", "valid", "test"]).zip(&mut all) {
        match &files[..] {
            [] => {}
            [source, target] => part.push((source.clone(), target.clone())),
            _ => {
                return Err(Error::invalid(format!(
                    "--{flag}: got {} without columns, need two, a source and a target, or names \
                     that end in languages, such as train.en and train.fr",
                    say::many(files.len(), "file")
                )));
            }
        }
    }
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().to_string();
    let told = all[0].first().map_or(String::new(), |(source, target)| {
        format!("source: {}, target: {}", name(source), name(target))
    });
    Ok(Files { parts: all, ends: ["src".into(), "tgt".into()], told, chosen: None })
}

/// Puts the files of source and target together, by the rest of their names.
fn twins(files: &[PathBuf], [from, to]: &[String; 2], flag: &str) -> Result<Vec<Twins>> {
    let of = |end: &str| -> Vec<&PathBuf> {
        files.iter().filter(|path| side(path).as_deref() == Some(end)).collect()
    };
    let (sources, targets) = (of(from), of(to));
    if files.is_empty() {
        return Ok(vec![]);
    }
    if let ([source], [target]) = (&sources[..], &targets[..]) {
        return Ok(vec![((*source).clone(), (*target).clone())]);
    }
    let find = |source: &&PathBuf| {
        let twin = targets.iter().find(|target| base(target) == base(source));
        twin.map(|target| ((*source).clone(), (*target).clone()))
    };
    let found: Vec<Twins> = sources.iter().filter_map(find).collect();
    match found.len() == sources.len() && found.len() == targets.len() && !found.is_empty() {
        true => Ok(found),
        false => Err(Error::invalid(format!(
            "--{flag}: need for each file that ends in .{from} one of the same name that ends in \
             .{to}; found {} and {}",
            sources.len(),
            targets.len()
        ))),
    }
}
