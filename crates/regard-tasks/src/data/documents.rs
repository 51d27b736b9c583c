//! Documents of plain text for language modelling, larger than memory if need be.

use std::collections::VecDeque;
use std::io::BufRead;
use std::path::{Path, PathBuf};

use regard_models::Result;

use super::split::{Part, Split};
use super::stream::{LONGEST, Lines};

/// Boundary between documents. The end of a file always ends one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentBoundary {
    /// A blank line, as in BERT's training texts, which have a sentence per line.
    BlankLines,
    /// The title of an article, ` = Title = `, as in WikiText; ` = = Section = = ` is a line of the
    /// article. WikiText has blank lines around titles, so a line of an equation that looks like
    /// a title is not one. In a copy without blank lines they cannot be told apart: two such lines
    /// make 62 documents of the 60 articles of the test part.
    WikiText,
}

/// A document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// Title; `None` if the form has no titles or none precedes the text.
    pub title: Option<String>,
    /// Non-blank lines, trimmed: sentences or paragraphs.
    pub lines: Vec<String>,
}

impl Document {
    /// Returns the lines joined by line feeds, without the title.
    pub fn text(&self) -> String {
        self.lines.join("\n")
    }

    /// Returns the part of a document, by a hash of its title and text: equal documents are in the
    /// same part, in whatever file and order they come.
    pub fn part(&self, split: &Split) -> Part {
        split.part(&format!("{}\n{}", self.title.as_deref().unwrap_or(""), self.text()))
    }

    fn is_empty(&self) -> bool {
        self.title.is_none() && self.lines.is_empty()
    }
}

/// Iterator over the documents of files in sequence. One document is in memory at a time; one of
/// more than 64 MiB is split into documents of that size. It stops after an error.
pub struct Documents {
    files: VecDeque<PathBuf>,
    form: DocumentBoundary,
    file: Option<File>,
    done: bool,
}

/// A file that is being read.
struct File {
    lines: Lines<Box<dyn BufRead + Send>>,
    /// Whether the previous line was blank; true before the first line.
    after_blank: bool,
    /// Whether any line was blank: then titles follow blank lines.
    has_blanks: bool,
    /// Title that ended the previous document.
    title: Option<String>,
}

impl Documents {
    /// Opens files, which are read in order; those whose names end in `.gz` are decompressed. The
    /// first file is opened at once, so that a wrong path is reported early.
    pub fn open<P: AsRef<Path>>(paths: &[P], form: DocumentBoundary) -> Result<Documents> {
        let files = paths.iter().map(|path| path.as_ref().to_owned()).collect();
        let mut documents = Documents { files, form, file: None, done: false };
        documents.file = documents.open_next()?;
        Ok(documents)
    }

    /// Iterates over the documents of one part.
    pub fn of_part(self, split: Split, part: Part) -> impl Iterator<Item = Result<Document>> {
        self.filter(move |document| match document {
            Ok(document) => document.part(&split) == part,
            Err(_) => true,
        })
    }

    fn open_next(&mut self) -> Result<Option<File>> {
        let Some(path) = self.files.pop_front() else { return Ok(None) };
        let lines = Lines::open(path)?;
        Ok(Some(File { lines, after_blank: true, has_blanks: false, title: None }))
    }

    fn read(&mut self) -> Result<Option<Document>> {
        loop {
            let Some(file) = &mut self.file else { return Ok(None) };
            let document = file.read(self.form)?;
            if !document.is_empty() {
                return Ok(Some(document));
            }
            self.file = self.open_next()?;
        }
    }
}

impl Iterator for Documents {
    type Item = Result<Document>;

    fn next(&mut self) -> Option<Result<Document>> {
        if self.done {
            return None;
        }
        let next = self.read().transpose();
        self.done = !matches!(next, Some(Ok(_)));
        next
    }
}

impl File {
    /// Reads the next document; returns an empty one at the end of the file.
    fn read(&mut self, form: DocumentBoundary) -> Result<Document> {
        let mut document = Document { title: self.title.take(), lines: Vec::new() };
        let mut bytes = 0;
        while let Some(line) = self.lines.next().transpose()? {
            let line = line.trim();
            if line.is_empty() {
                (self.after_blank, self.has_blanks) = (true, true);
                if form == DocumentBoundary::BlankLines && !document.is_empty() {
                    return Ok(document);
                }
                continue;
            }
            let may_be_title = self.after_blank || !self.has_blanks;
            self.after_blank = false;
            if form == DocumentBoundary::WikiText
                && may_be_title
                && let Some((1, title)) = heading(line)
            {
                let title = Some(title.to_owned());
                if document.is_empty() {
                    document.title = title;
                    continue;
                }
                self.title = title;
                return Ok(document);
            }
            document.lines.push(line.to_owned());
            bytes += line.len() + size_of::<String>();
            if bytes > LONGEST {
                return Ok(document);
            }
        }
        Ok(document)
    }
}

/// Depth and text of a WikiText heading: 1 for `= Title =`, 2 for `= = Part = =`.
pub fn heading(line: &str) -> Option<(usize, &str)> {
    let (mut depth, mut inner) = (0, line.trim());
    while let Some(less) = inner.strip_prefix("= ").and_then(|rest| rest.strip_suffix(" =")) {
        (depth, inner) = (depth + 1, less);
    }
    let is_text = !inner.trim().is_empty() && !inner.starts_with("= ") && !inner.ends_with(" =");
    (depth > 0 && is_text).then_some((depth, inner))
}

#[cfg(test)]
mod tests {
    use super::super::scratch::with_file;
    use super::*;

    fn read(text: &str, form: DocumentBoundary) -> Vec<(Option<String>, String)> {
        with_file("text.txt", text.as_bytes(), |path| {
            let documents = Documents::open(&[path, path], form).unwrap();
            let all: Vec<_> = documents
                .map(|d| d.unwrap())
                .map(|d| (d.title.clone(), d.lines.join("|")))
                .collect();
            // The same file twice is the same documents twice.
            let (first, second) = all.split_at(all.len() / 2);
            assert_eq!(first, second);
            first.to_vec()
        })
    }

    #[test]
    fn blank_lines_are_between_documents() {
        for (text, wanted) in [
            ("", vec![]),
            ("\n \n\n", vec![]),
            ("a\n b \r\n\n\t\nc", vec!["a|b", "c"]),
            ("\n = T = \n\n= = S = =\n", vec!["= T =", "= = S = ="]),
        ] {
            let found = read(text, DocumentBoundary::BlankLines);
            let wanted: Vec<_> = wanted.into_iter().map(|text| (None, text.to_owned())).collect();
            assert_eq!(found, wanted, "{text:?}");
        }
    }

    #[test]
    fn titles_start_articles() {
        let article = |title: &str, lines: &str| (Some(title.to_owned()), lines.to_owned());
        let with_blanks = " \n = One = \n \n a b \n = k = \n 1 c \n \n = = Part = = \n \n d \n \n \
                           \n = Two = 2 = \n \n = Three = \n";
        let wanted = [
            article("One", "a b|= k =|1 c|= = Part = =|d"),
            article("Two = 2", ""),
            article("Three", ""),
        ];
        assert_eq!(read(with_blanks, DocumentBoundary::WikiText), wanted);
        let without = "before\n = One = \n a \n = = Part = = \n = Two = \n b \n";
        let wanted =
            [(None, "before".to_owned()), article("One", "a|= = Part = ="), article("Two", "b")];
        assert_eq!(read(without, DocumentBoundary::WikiText), wanted);
    }

    #[test]
    fn headings_have_a_depth() {
        for (line, wanted) in [
            (" = Title = ", Some((1, "Title"))),
            (" = = = a = b = = = ", Some((3, "a = b"))),
            (" = Qualified for the next round ", None),
            (" = = Half = ", None),
            ("= =", None),
            ("=", None),
            ("", None),
            ("a = b", None),
        ] {
            assert_eq!(heading(line), wanted, "{line:?}");
        }
    }

    #[test]
    fn every_document_is_in_one_part() {
        let text: String = (0..2000).map(|i| format!("document {i}\n\n")).collect();
        with_file("parts.txt", text.as_bytes(), |path| {
            let split = Split { valid: 100, test: 50 };
            let count = |part| {
                let documents = Documents::open(&[path], DocumentBoundary::BlankLines).unwrap();
                documents.of_part(split, part).count()
            };
            let [train, valid, test] = [Part::Train, Part::Valid, Part::Test].map(count);
            assert_eq!(train + valid + test, 2000);
            assert!((140..260).contains(&valid) && (60..140).contains(&test), "{valid} {test}");
        });
    }

    #[test]
    fn what_is_wrong_is_named_and_is_the_end() {
        with_file("bad.txt", b"a\n\nb\n\xff\n\nc\n", |path| {
            let mut documents = Documents::open(&[path], DocumentBoundary::BlankLines).unwrap();
            assert_eq!(documents.next().unwrap().unwrap().text(), "a");
            let error = documents.next().unwrap().unwrap_err().to_string();
            assert!(error.contains("bad.txt: line 4: not UTF-8"), "{error}");
            assert!(documents.next().is_none());
            assert!(
                Documents::open(&[path.join("nowhere")], DocumentBoundary::BlankLines).is_err()
            );
        });
    }
}
