//! Sentences with parts of speech and dependency heads, in CoNLL-U, the format of Universal
//! Dependencies.
//!
//! A line is a word in ten columns, a blank line ends a sentence, `#` starts a comment. Two kinds
//! of lines are not words: a range such as `3-4` is a multiword token, the written form of words 3
//! and 4 (`don't` for `do` and `n't`), and `5.1` is an empty node, which is not written at all.

mod draft;

use std::io::BufRead;
use std::ops::Range;
use std::path::{Path, PathBuf};

use regard_models::{Error, Result};

use super::split::Part;
use super::stream::Lines;
use draft::Draft;

/// A syntactic word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// Written form; in some languages it contains spaces.
    pub form: String,
    /// Universal part of speech (UPOS), such as `NOUN`.
    pub universal: String,
    /// Language-specific part of speech (XPOS), such as `NNS`.
    pub specific: Option<String>,
    /// Number of the head word, from 1; 0 for the root; `None` if not annotated.
    pub head: Option<usize>,
    /// Dependency relation to the head, such as `nsubj`.
    pub relation: Option<String>,
    /// Byte range in the text; `None` if the word was not found there.
    pub place: Option<Range<usize>>,
}

/// A multiword token: words that are written together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contraction {
    /// Written form.
    pub form: String,
    /// Indices of its words, from 0.
    pub words: Range<usize>,
    /// Byte range in the text; `None` if it was not found there.
    pub place: Option<Range<usize>>,
}

/// A sentence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sentence {
    /// Identifier, from `# sent_id =`.
    pub id: Option<String>,
    /// Raw text, from `# text =`.
    pub text: Option<String>,
    /// Syntactic words, without empty nodes.
    pub words: Vec<Word>,
    /// Multiword tokens.
    pub contractions: Vec<Contraction>,
    /// Number of empty nodes, which are left out.
    pub unwritten: usize,
}

/// Iterator over the sentences of a file, in constant memory. It stops after an error.
pub struct Sentences<R> {
    lines: Lines<R>,
    done: bool,
}

impl Sentences<Box<dyn BufRead + Send>> {
    /// Opens a file; one whose name ends in `.gz` is decompressed.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Ok(Sentences::new(Lines::open(path)?))
    }

    /// Opens a part of a treebank by the names that Universal Dependencies gives to its files:
    /// `…-ud-train.conllu`, `…-ud-dev.conllu`, `…-ud-test.conllu`.
    pub fn open_part(folder: impl AsRef<Path>, part: Part) -> Result<Self> {
        Sentences::open(part_file(folder.as_ref(), part)?)
    }
}

fn part_file(folder: &Path, part: Part) -> Result<PathBuf> {
    let end = match part {
        Part::Train => "-ud-train.conllu",
        Part::Valid => "-ud-dev.conllu",
        Part::Test => "-ud-test.conllu",
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(Error::io(folder))? {
        let path = entry.map_err(Error::io(folder))?.path();
        if path.to_string_lossy().ends_with(end) {
            found.push(path);
        }
    }
    match found.len() {
        1 => Ok(found.remove(0)),
        n => Err(Error::file(folder, format!("has {n} files that end in {end}; needs one"))),
    }
}

impl<R: BufRead> Sentences<R> {
    /// Reads sentences from lines.
    pub fn new(lines: Lines<R>) -> Sentences<R> {
        Sentences { lines, done: false }
    }

    fn read(&mut self) -> Result<Option<Sentence>> {
        let mut sentence = Draft::default();
        while let Some(line) = self.lines.next().transpose()? {
            if line.trim().is_empty() {
                if sentence.is_empty() {
                    // Comments without words belong to no sentence, not even to the next one.
                    sentence = Draft::default();
                    continue;
                }
                return sentence.finish().map(Some).map_err(|e| self.lines.error(e));
            }
            let read = match line.strip_prefix('#') {
                Some(comment) => sentence.comment(comment),
                None => sentence.line(&line),
            };
            read.map_err(|e| self.lines.error(e))?;
        }
        if sentence.is_empty() {
            return Ok(None);
        }
        sentence.finish().map(Some).map_err(|e| self.lines.error(e))
    }
}

impl<R: BufRead> Iterator for Sentences<R> {
    type Item = Result<Sentence>;

    fn next(&mut self) -> Option<Result<Sentence>> {
        if self.done {
            return None;
        }
        let sentence = self.read().transpose();
        self.done = !matches!(sentence, Some(Ok(_)));
        sentence
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<Result<Sentence, String>> {
        let sentences = Sentences::new(Lines::new(text.as_bytes(), "in"));
        sentences.map(|s| s.map_err(|e| e.to_string())).collect()
    }

    /// Lines of ten columns from id, word, head and the last column.
    fn lines(rows: &[(&str, &str, &str, &str)]) -> String {
        let line = |(id, form, head, misc): &(&str, &str, &str, &str)| {
            format!("{id}\t{form}\t_\tX\tY\t_\t{head}\tdep\t_\t{misc}\n")
        };
        rows.iter().map(line).collect()
    }

    fn one(text: &str) -> Sentence {
        read(text).remove(0).unwrap()
    }

    fn error(text: &str) -> String {
        read(text).remove(0).unwrap_err()
    }

    #[test]
    fn words_stand_in_their_text() {
        let text = "# newdoc\n# sent_id = a-1\n# text = «Né»,  vámonos al 10 000\n".to_owned()
            + &lines(&[
                ("1", "«", "2", "SpaceAfter=No"),
                ("2", "Né", "0", "Lang=fr|SpaceAfter=No"),
                ("3", "»", "2", "SpaceAfter=No"),
                ("4", ",", "2", "_"),
                ("5-6", "vámonos", "_", "_"),
                ("5", "vámo", "2", "_"),
                ("6", "nos", "5", "_"),
                ("6.1", "gone", "_", "_"),
                ("7-8", "al", "_", "_"),
                ("7", "a", "9", "_"),
                ("8", "el", "9", "_"),
                ("9", "10 000", "5", "_"),
            ]);
        let sentence = one(&text);
        let text = sentence.text.as_deref().unwrap();
        let placed: Vec<&str> =
            sentence.words.iter().map(|w| w.place.clone().map_or("", |p| &text[p])).collect();
        // The words of "al" are not in its written form: it has a position, they have none.
        assert_eq!(placed, ["«", "Né", "»", ",", "vámo", "nos", "", "", "10 000"]);
        let together: Vec<&str> =
            sentence.contractions.iter().map(|c| &text[c.place.clone().unwrap()]).collect();
        assert_eq!(together, ["vámonos", "al"]);
        assert_eq!(sentence.contractions[1].words, 6..8);
        assert_eq!((sentence.id.as_deref(), sentence.unwritten), (Some("a-1"), 1));
        let word = &sentence.words[1];
        assert_eq!((word.universal.as_str(), word.specific.as_deref()), ("X", Some("Y")));
        assert_eq!((word.head, word.relation.as_deref()), (Some(0), Some("dep")));
    }

    #[test]
    fn a_text_that_is_another_gives_no_places_from_there_on() {
        let rows = lines(&[("1", "a", "0", "_"), ("2", "b", "1", "_"), ("3", "c", "1", "_")]);
        let places = |text: &str| -> Vec<bool> {
            let sentence = one(&(text.to_owned() + &rows));
            sentence.words.iter().map(|w| w.place.is_some()).collect()
        };
        assert_eq!(places("# text = a b\u{a0}c\n"), [true, true, true]);
        assert_eq!(places("# text = a x c\n"), [true, false, false]);
        assert_eq!(places("# text = a\n"), [true, false, false]);
        assert_eq!(places(""), [false, false, false]);
    }

    #[test]
    fn sentences_end_anyhow() {
        let row = lines(&[("1", "a", "_", "_")]);
        assert_eq!(read("").len(), 0);
        assert_eq!(read("# only a comment\n\n").len(), 0);
        assert_eq!(read(&format!("\n{row}\r\n\n# text = a\n{row}")).len(), 2);
        assert_eq!(one(&row).words[0].head, None);
    }

    #[test]
    fn what_is_wrong_has_its_line_and_is_the_end() {
        let ok = lines(&[("1", "a", "0", "_")]);
        for (bad, message) in [
            ("1\ta\n".to_owned(), "in: line 3: has 2 columns"),
            (lines(&[("2", "a", "0", "_")]), "line 3: word 2 comes after word 0"),
            (lines(&[("one", "a", "0", "_")]), "line 3: \"one\" is not a number"),
            (lines(&[("-1", "a", "0", "_")]), "line 3: \"\" is not a number"),
            (lines(&[("1", "", "0", "_")]), "line 3: the word is empty"),
            (lines(&[("1", "a", "up", "_")]), "line 3: \"up\" is not a number"),
            (lines(&[("1", "a", "2", "_")]), "line 3: word 1 of 1 has word 2 as its head"),
            (lines(&[("1", "a", "1", "_")]), "has word 1 as its head"),
            (lines(&[("1-3", "ab", "_", "_"), ("1", "a", "0", "_")]), "\"ab\" covers words"),
            (lines(&[("2-1", "ab", "_", "_")]), "line 3: the range 2-1"),
            (lines(&[("1", "a", "0", "_")]) + "# late\n", "line 4: a comment within"),
            (lines(&[("3.1", "a", "_", "_")]), "line 3: the node 3.1 comes after word 0"),
        ] {
            let found = read(&format!("{ok}\n{bad}"));
            assert!(found[0].is_ok() && found.len() == 2, "{found:?}");
            let error = found[1].clone().unwrap_err();
            assert!(error.contains(message), "{error} has not {message}");
        }
        let overlapping = [("1-2", "ab", "_", "_"), ("1", "a", "0", "_"), ("2-3", "b", "_", "_")];
        assert!(error(&lines(&overlapping)).contains("the range 2-3 comes after word 1"));
    }
}
