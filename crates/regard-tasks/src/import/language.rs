//! Plain text for language models.

use super::findings::{Findings, Place};
use super::parts::HeldOut;
use super::reading::{Reading, part_told};
use super::{DataSize, Draft, PartFiles, Request, files_of, is_unspaced};
use crate::data::Part;
use crate::data::stream::Lines;
use crate::say;
use flate2::bufread::MultiGzDecoder;
use regard_models::{Result, checkpoint};
use std::collections::HashSet;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use toml::{Table as Keys, Value};

/// Ends of file names that are read from a folder, whatever they hold: bytes that are no text are
/// problems of the file. Other files of a folder are read if they are text.
const ENDS: [&str; 4] = ["txt", "text", "md", "rst"];
/// Number of bytes by which a file is recognised as text.
const GLIMPSE: u64 = 1 << 16;
/// Fraction of the text that is held out for validation and, again, for the test.
const SHARE: usize = 20;
/// Smallest training part, in characters.
const LEAST: usize = 2000;
/// Smallest validation or test part, in characters: longer than the context of the presets, in
/// tokens.
const LEAST_HELD_OUT: usize = 200;
/// Texts below this size are modelled character by character: there are too few words to learn
/// pieces of them.
const CHARACTERS: usize = 3_000_000;
/// Most distinct characters of a character model.
const ALPHABET: usize = 400;

/// Reads the text files of a request.
pub(super) fn read(request: &Request, findings: &mut Findings) -> Result<Option<Draft>> {
    let files = PartFiles::find(request, &is_text, findings)?;
    for folder in request.data.iter().filter(|path| path.is_dir()) {
        for file in files_of(folder, &|path| !is_text(path))? {
            let message = "is not read: it is empty, or not UTF-8 text";
            findings.warn("file not read", Place::whole(&file), message);
        }
    }
    let mut text = |part: Part| -> Result<Vec<String>> {
        files.of(part).iter().map(|path| lines(path, findings)).collect()
    };
    let (train, valid, test) = (text(Part::Train)?, text(Part::Valid)?, text(Part::Test)?);
    if request.like().is_some() {
        let text = train.concat();
        let count = text.chars().count();
        let characters = say::many(count, "character");
        let told = format!("{}: {characters}", say::many(files.train.len(), "file"));
        let mut summary = vec![told];
        summary.extend(files.chosen.map(part_told));
        let file = "test.txt";
        let write =
            move |folder: &Path| checkpoint::write_file(&folder.join(file), text.as_bytes());
        let draft = Draft::to_evaluate("generate", summary, count, file, Box::new(write));
        return Ok(Some(Draft { chosen: files.chosen, ..draft }));
    }
    let (held, given_test) = (files.held_out(), files.test.clone());
    // Held out of the end of each file, so that every file is in every part.
    let mut all = [String::new(), valid.concat(), test.concat()];
    for text in &train {
        let (rest, valid) = if held.valid { tail(text) } else { (&text[..], "") };
        let (rest, test) = if held.test { tail(rest) } else { (rest, "") };
        for (part, piece) in all.iter_mut().zip([rest, valid, test]) {
            part.push_str(piece);
        }
    }
    let characters = all[0].chars().count();
    let first = files.train.first().map_or(Path::new(""), |path| path.as_path());
    let held_out = [(1, "validation"), (2, "test")];
    let parts = held_out.map(|(part, name)| (name, all[part].chars().count(), LEAST_HELD_OUT));
    for (name, found, least) in [("training", characters, LEAST)].into_iter().chain(parts) {
        // A part that was given is too small itself.
        let given = match name {
            "validation" => files.valid.first(),
            "test" => files.test.first(),
            _ => None,
        };
        let first = given.map_or(first, PathBuf::as_path);
        if found < least {
            let message = format!(
                "has {} for the {name} part; a language model needs at least {}",
                say::many(found, "character"),
                say::count(least)
            );
            findings.error("too little text", Place::whole(first), message);
        }
    }
    if findings.has_errors() {
        return Ok(None);
    }
    let alphabet: HashSet<char> = all[0].chars().collect();
    let new: HashSet<char> = all[1].chars().filter(|c| !alphabet.contains(c)).collect();
    let unspaced = is_unspaced(train.iter().map(String::as_str));
    let by_character = characters < CHARACTERS && alphabet.len() <= ALPHABET;
    let parts = [0, 1, 2].map(|part: usize| all[part].chars().count());
    let mut summary = vec![
        format!(
            "{}: {}, {} different",
            say::many(files.train.len(), "file"),
            say::many(train.iter().map(|text| text.chars().count()).sum(), "character"),
            say::count(alphabet.len())
        ),
        parts_line(parts, held),
    ];
    if by_character && !new.is_empty() {
        summary.push(format!(
            "{} of the validation part are not in the training part",
            say::many(new.len(), "character")
        ));
    }
    let size =
        DataSize { examples: train.len(), units: characters, longest: 0, labels: 0, unspaced };
    let mut vocabulary = Keys::new();
    match by_character {
        true => drop(vocabulary.insert("kind".into(), Value::String("char".into()))),
        false => {
            vocabulary.insert("kind".into(), Value::String("bytes".into()));
            vocabulary.insert("size".into(), Value::Integer(8000));
        }
    }
    let keys = Keys::from_iter([("vocabulary".to_string(), Value::Table(vocabulary))]);
    let names = [("train", "train.txt"), ("valid", "valid.txt"), ("test", "test.txt")];
    let files: Vec<_> =
        names.into_iter().zip(&all).filter(|(_, text)| !text.is_empty()).map(|(n, _)| n).collect();
    let write = move |folder: &Path| {
        let mut each = names.iter().zip(&all).filter(|(_, text)| !text.is_empty());
        each.try_for_each(|((_, name), text)| {
            checkpoint::write_file(&folder.join(name), text.as_bytes())
        })
    };
    let (task, write, reading) = ("generate", Box::new(write), Reading::of("text"));
    let draft = Draft::new(task, summary, parts, write);
    Ok(Some(Draft { size, keys, files, reading, test: given_test, ..draft }))
}

/// Whether a file of a folder is read: by its name, or because its first bytes are UTF-8 without NUL.
fn is_text(path: &Path) -> bool {
    if ENDS.contains(&super::table::end(path).as_str()) {
        return true;
    }
    // Not by `stream::open`, which notes the file as one of the data.
    let Ok(file) = File::open(path) else { return true };
    let mut first = vec![];
    let read = match path.extension().is_some_and(|end| end == "gz") {
        true => MultiGzDecoder::new(BufReader::new(file)).take(GLIMPSE).read_to_end(&mut first),
        false => file.take(GLIMPSE).read_to_end(&mut first),
    };
    // A character may be cut at the end of the first bytes.
    let is_utf8 = match std::str::from_utf8(&first) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none() && first.len() as u64 == GLIMPSE,
    };
    read.is_ok() && !first.is_empty() && is_utf8 && !first.contains(&0)
}

/// Sentence about the sizes of the parts: held out are the ends of the files.
fn parts_line(parts: [usize; 3], held: HeldOut) -> String {
    let [train, valid, test] = parts.map(say::count);
    let ends = match (held.valid, held.test) {
        (false, false) => "",
        (true, true) => " (valid and test: the ends of the files)",
        (true, false) => " (valid: the ends of the files)",
        (false, true) => " (test: the ends of the files)",
    };
    format!("characters: {train} train, {valid} valid, {test} test{ends}")
}

/// Reads a file; lines that are not UTF-8 are noted.
fn lines(path: &Path, findings: &mut Findings) -> Result<String> {
    let mut text = String::new();
    let mut lines = Lines::open(path)?;
    while let Some(line) = lines.next() {
        match line {
            Ok(line) if line.contains('\0') => {
                let place = Place::line(path, lines.number());
                findings.row("encoding", place, "has a NUL byte: this is not a text file");
            }
            Ok(line) => {
                text.push_str(&line);
                text.push('\n');
            }
            Err(error) => findings.reader("encoding", path, &error),
        }
    }
    if text.trim().is_empty() {
        findings.error("empty file", Place::whole(path), "has no text");
    }
    Ok(text)
}

/// Splits off the end of a text: at the end of a line that is near, or else after a space, or else
/// anywhere.
fn tail(text: &str) -> (&str, &str) {
    let size = text.len() / SHARE;
    let boundary = |mut at: usize| {
        while !text.is_char_boundary(at) {
            at += 1;
        }
        at
    };
    let at = boundary(text.len() - size);
    // At most half of the wanted part is lost, or added.
    let (before, after) = (boundary(at.saturating_sub(size / 2)), boundary(at + size / 2));
    let near = |end: char| {
        let next = text[at..after].find(end).map(|found| at + found + end.len_utf8());
        next.or_else(|| text[before..at].rfind(end).map(|found| before + found + end.len_utf8()))
    };
    text.split_at(near('\n').or_else(|| near(' ')).unwrap_or(at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::scratch::with_file;
    use crate::import::{self, Import};

    fn check(name: &str, bytes: &[u8]) -> (Option<Import>, String) {
        with_file(name, bytes, |path| {
            let mut request = Request::new("generate");
            request.data = vec![path.to_path_buf()];
            let (import, findings) = import::read(&request).unwrap();
            (import, findings.text())
        })
    }

    #[test]
    fn the_ends_are_held_out() {
        let text: String = (0..400).map(|i| format!("This is line {i}.\n")).collect();
        let (import, told) = check("a.txt", text.as_bytes());
        let import = import.unwrap_or_else(|| panic!("{told}"));
        assert_eq!(import.parts.iter().sum::<usize>(), text.chars().count());
        assert!(import.parts[1] > 200 && import.parts[2] > 200, "{:?}", import.parts);
        let folder = std::env::temp_dir().join(format!("regard-language-{}", std::process::id()));
        import.write(&folder).unwrap();
        let part = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!(part("train.txt") + &part("test.txt") + &part("valid.txt"), text);
        assert_eq!(import.recipe_keys(&folder)["vocabulary"]["kind"].as_str(), Some("char"));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn texts_with_long_lines_are_split_at_spaces() {
        let words: String = (0..4000).map(|i| format!("word{} ", i % 7)).collect();
        for (name, text) in [
            ("one.txt", words.clone()),
            ("two.txt", format!("{}\n{words}", "A line.\n".repeat(900))),
        ] {
            let (import, told) = check(name, text.as_bytes());
            let parts = import.unwrap_or_else(|| panic!("{name}: {told}")).parts;
            assert!(parts[1..].iter().all(|part| (200..3000).contains(part)), "{name}: {parts:?}");
        }
        assert_eq!(tail(&"很".repeat(40)), (&"很".repeat(38)[..], &"很".repeat(2)[..]));
    }

    /// A validation part must be longer than the context of the model.
    #[test]
    fn short_parts_are_refused() {
        let (import, told) = check("d.txt", "A line of text.\n".repeat(150).as_bytes());
        assert!(import.is_none() && told.contains("for the validation part"), "{told}");
    }

    #[test]
    fn bad_bytes_and_short_texts_are_refused() {
        let (import, told) = check("b.txt", b"one\ntw\xffo\n");
        assert!(import.is_none());
        assert!(told.contains("line 2: not UTF-8") && told.contains("needs at least"), "{told}");
        assert!(check("c.txt", b"\n").1.contains("has no text"));
    }

    /// The end of a name does not say whether a file is text.
    #[test]
    fn all_texts_of_a_folder_are_read() {
        let folder = std::env::temp_dir().join(format!("regard-texts-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut request = Request::new("generate");
        request.data = vec![folder.clone()];
        std::fs::write(folder.join("picture.bin"), b"\x89PNG\0\0").unwrap();
        let error = import::read(&request).err().unwrap().to_string();
        let wanted = "has no file that this task reads; it holds picture.bin";
        assert!(error.contains(wanted), "{error}");
        std::fs::write(folder.join("latin"), b"caf\xe9 au lait\n").unwrap();
        let text: String = (0..400).map(|i| format!("Dies ist Zeile {i}, schön.\n")).collect();
        for (count, name) in ["b.log", "a.md", "noext"].into_iter().enumerate() {
            std::fs::write(folder.join(name), &text).unwrap();
            let (import, findings) = import::read(&request).unwrap();
            let told = findings.text();
            let import = import.unwrap_or_else(|| panic!("{told}"));
            let read = import.parts.iter().sum::<usize>();
            assert_eq!(read, (count + 1) * text.chars().count(), "{name}");
            assert!(told.contains("warning: file not read (2)"), "{told}");
            assert!(told.contains("picture.bin: is not read: it is empty, or not"), "{told}");
        }
        let (import, _) = import::read(&request).unwrap();
        let summary = import.unwrap().summary.join("\n");
        assert!(summary.contains("files: a.md, b.log, noext"), "{summary}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
