//! Pretrained word vectors: GloVe's text, word2vec's text and word2vec's binary form.
//!
//! A file may be larger than memory: with a vocabulary, only its words are kept.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, Read};
use std::path::Path;

use regard_models::{Error, Result};

use super::sets;
use super::stream::{self, Lines};

/// The known data set of vectors.
const GLOVE: &str = "glove-subset";

/// Largest number of values of a vector, and largest number of bytes of a word.
const WIDEST: usize = 1 << 16;
const LONGEST_WORD: usize = 1 << 12;

/// Words and a vector for each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Vectors {
    words: Vec<String>,
    places: HashMap<String, usize>,
    width: usize,
    values: Vec<f32>,
}

impl Vectors {
    /// Reads the vectors of a known data set by its name, or of a file by its path.
    pub fn named(name: &str, keep: Option<&HashSet<String>>) -> Result<Vectors> {
        // A pipe is accepted too.
        if Path::new(name).exists() {
            return Vectors::read(name, keep);
        }
        let set = sets::set(name).map_err(|_| {
            Error::invalid(format!("vectors: got {name:?}, need a file or {GLOVE}"))
        })?;
        let file = set.files().find(|file| file.path.ends_with(".txt") && set.name == GLOVE);
        let file = file.ok_or_else(|| {
            Error::invalid(format!("vectors: the data set {name} has no vectors, need {GLOVE}"))
        })?;
        Vectors::read(sets::find(name)?.join(file.path), keep)
    }

    /// Reads a file in word2vec's binary form if its name ends in `.bin`, and text otherwise; both
    /// may have `.gz` after it. With a vocabulary, only its words are kept, in the file's order.
    pub fn read(path: impl AsRef<Path>, keep: Option<&HashSet<String>>) -> Result<Vectors> {
        let path = path.as_ref();
        let name = path.to_string_lossy();
        if name.trim_end_matches(".gz").ends_with(".bin") {
            Vectors::from_binary(stream::open(path)?, path, keep)
        } else {
            Vectors::from_text(Lines::open(path)?, keep)
        }
    }

    /// Reads lines of a word and its values, separated by spaces. A first line of two integers,
    /// the number of words and the width, is word2vec's header; GloVe has none.
    ///
    /// A word may contain spaces, as some of GloVe's do: the last values of a line are the vector,
    /// and the fields before them are the word unless one is a number too.
    pub fn from_text<R: BufRead>(
        mut lines: Lines<R>,
        keep: Option<&HashSet<String>>,
    ) -> Result<Vectors> {
        let mut vectors = Vectors::default();
        let (mut promised, mut rows) = (None, 0);
        while let Some(line) = lines.next().transpose()? {
            let fields: Vec<&str> = line.trim_end().split([' ', '\t']).collect();
            if lines.number() == 1
                && let Some((count, width)) = header(&fields)
            {
                (promised, vectors.width) = (Some(count), width);
                continue;
            }
            if vectors.width == 0 {
                vectors.width = fields.len() - 1;
            }
            let Some(words @ 1..) = fields.len().checked_sub(vectors.width) else {
                let (found, width) = (fields.len() - 1, vectors.width);
                return Err(lines.error(format!("has {found} values, other lines {width}")));
            };
            if vectors.width == 0 || vectors.width > WIDEST {
                return Err(lines.error("is not a word with its vector"));
            }
            let (word, numbers) = fields.split_at(words);
            if word[1..].iter().any(|field| field.parse::<f32>().is_ok()) {
                let (found, width) = (fields.len() - 1, vectors.width);
                return Err(lines.error(format!("has {found} values, other lines {width}")));
            }
            rows += 1;
            let word = word.join(" ");
            if vectors.wants(&word, keep) {
                for number in numbers {
                    match number.parse::<f32>() {
                        Ok(value) if value.is_finite() => vectors.values.push(value),
                        _ => return Err(lines.error(format!("{number:?} is not a number"))),
                    }
                }
                vectors.add(word);
            }
        }
        match promised {
            Some(count) if count != rows => Err(Error::file(
                lines.name(),
                format!("has {rows} words, and its first line says {count}"),
            )),
            _ => Ok(vectors),
        }
    }

    /// Reads word2vec's binary form: a line with the number of words and the width, then each
    /// word, a space and its values as little-endian 32-bit floats. `name` is the reader's name in
    /// errors.
    pub fn from_binary(
        mut reader: impl BufRead,
        name: impl AsRef<Path>,
        keep: Option<&HashSet<String>>,
    ) -> Result<Vectors> {
        let name = name.as_ref();
        let wrong = |message: String| Error::file(name, message);
        let first = until(&mut reader, b'\n', 64).map_err(Error::io(name))?;
        let first = first.as_deref().map(String::from_utf8_lossy);
        let fields: Vec<&str> = first.as_deref().unwrap_or("").split_whitespace().collect();
        let (count, width) = header(&fields).ok_or_else(|| {
            wrong("line 1: a binary file of vectors starts with two numbers".into())
        })?;
        let mut vectors = Vectors { width, ..Vectors::default() };
        let mut bytes = vec![0; 4 * width];
        for number in 1..=count {
            let word = until(&mut reader, b' ', LONGEST_WORD).map_err(Error::io(name))?;
            let word =
                word.ok_or_else(|| wrong(format!("word {number} of {count}: the file ends")))?;
            // word2vec ends a vector with a line feed, other programs do not.
            let word = std::str::from_utf8(word.strip_prefix(b"\n").unwrap_or(&word))
                .map_err(|_| wrong(format!("word {number} of {count} is not UTF-8")))?;
            reader.read_exact(&mut bytes).map_err(|e| match e.kind() {
                std::io::ErrorKind::UnexpectedEof => {
                    wrong(format!("word {number} of {count}: the file ends"))
                }
                _ => Error::io(name)(e),
            })?;
            if vectors.wants(word, keep) {
                for value in bytes.chunks_exact(4) {
                    let value = f32::from_le_bytes([value[0], value[1], value[2], value[3]]);
                    if !value.is_finite() {
                        return Err(wrong(format!(
                            "word {number} of {count} ({word:?}): got {value}, need finite numbers"
                        )));
                    }
                    vectors.values.push(value);
                }
                vectors.add(word.to_owned());
            }
        }
        let mut rest = Vec::new();
        reader.take(2).read_to_end(&mut rest).map_err(Error::io(name))?;
        match rest.as_slice() {
            b"" | b"\n" => Ok(vectors),
            _ => Err(wrong(format!("has more data after the {count} words of its header"))),
        }
    }

    /// Returns the words, in the order of the file.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Returns the number of values of a vector.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns all vectors concatenated, in the order of the words.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Returns the index of a word, exactly as the file writes it.
    pub fn place(&self, word: &str) -> Option<usize> {
        self.places.get(word).copied()
    }

    /// Returns the vector of a word, exactly as the file writes it.
    pub fn get(&self, word: &str) -> Option<&[f32]> {
        let place = self.place(word)? * self.width;
        Some(&self.values[place..place + self.width])
    }

    /// Returns the cosine similarity of two words, in double precision. `None` if a word is unknown
    /// or its vector is zero.
    pub fn cosine(&self, first: &str, second: &str) -> Option<f64> {
        let (first, second) = (self.get(first)?, self.get(second)?);
        let dot = |a: &[f32], b: &[f32]| -> f64 {
            a.iter().zip(b).map(|(&x, &y)| f64::from(x) * f64::from(y)).sum()
        };
        let lengths = (dot(first, first) * dot(second, second)).sqrt();
        (lengths > 0.0).then(|| dot(first, second) / lengths)
    }

    /// Whether to keep a vector. Of a word that occurs twice, the first vector is kept.
    fn wants(&self, word: &str, keep: Option<&HashSet<String>>) -> bool {
        keep.is_none_or(|keep| keep.contains(word)) && !self.places.contains_key(word)
    }

    fn add(&mut self, word: String) {
        self.places.insert(word.clone(), self.words.len());
        self.words.push(word);
    }
}

/// Parses a header: number of words and width.
fn header(fields: &[&str]) -> Option<(usize, usize)> {
    let &[count, width] = fields else { return None };
    let (count, width) = (count.parse().ok()?, width.parse().ok()?);
    (1..=WIDEST).contains(&width).then_some((count, width))
}

/// Reads the bytes before the next `end`. `None` if the reader ends before, or after `most` bytes.
fn until(reader: &mut impl BufRead, end: u8, most: usize) -> std::io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    reader.take(most as u64).read_until(end, &mut bytes)?;
    Ok((bytes.pop() == Some(end)).then_some(bytes))
}

#[cfg(test)]
mod tests {
    use super::super::scratch::with_file;
    use super::*;

    fn text(text: &str, keep: Option<&HashSet<String>>) -> Result<Vectors, String> {
        Vectors::from_text(Lines::new(text.as_bytes(), "in"), keep).map_err(|e| e.to_string())
    }

    fn binary(count: usize, rows: &[(&str, [f32; 2])], between: &str) -> Vec<u8> {
        let mut bytes = format!("{count} 2\n").into_bytes();
        for (word, values) in rows {
            bytes.extend_from_slice(word.as_bytes());
            bytes.push(b' ');
            values.iter().for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
            bytes.extend_from_slice(between.as_bytes());
        }
        bytes
    }

    const ROWS: [(&str, [f32; 2]); 3] =
        [("the", [1.0, -0.5]), ("né", [0.0, 2.0]), (",", [3.0, 4.0])];

    #[test]
    fn all_forms_say_the_same() {
        let glove = "the 1 -0.5\nné 0 2e0\n, 3 4.0\n";
        let expected = text(glove, None).unwrap();
        assert_eq!(expected.words(), ["the", "né", ","]);
        assert_eq!(
            (expected.width(), expected.values()),
            (2, &[1.0, -0.5, 0.0, 2.0, 3.0, 4.0][..])
        );
        assert_eq!(text(&format!("3 2\n{}", glove.replace('\n', " \n")), None).unwrap(), expected);
        for between in ["", "\n"] {
            let bytes = binary(3, &ROWS, between);
            let found = with_file("vectors.bin", &bytes, |path| Vectors::read(path, None)).unwrap();
            assert_eq!(found, expected);
        }
        assert_eq!(expected.get("né"), Some(&[0.0, 2.0][..]));
        assert_eq!((expected.get("Né"), expected.cosine("the", "x")), (None, None));
        assert!((expected.cosine("né", ",").unwrap() - 0.8).abs() < 1e-12);
    }

    #[test]
    fn only_words_of_a_vocabulary_and_the_first_of_two() {
        let keep = HashSet::from(["b".to_owned(), ". .".to_owned(), "absent".to_owned()]);
        let found = text("a 1 2\nb 3 4\n. . 5 6\nb 7 8\nc x y\n", Some(&keep)).unwrap();
        assert_eq!(found.words(), ["b", ". ."]);
        assert_eq!(found.values(), [3.0, 4.0, 5.0, 6.0]);
        let keep = HashSet::from([",".to_owned()]);
        let bytes = binary(3, &ROWS, "\n");
        let found = Vectors::from_binary(bytes.as_slice(), "in", Some(&keep)).unwrap();
        assert_eq!((found.words(), found.values()), (&[",".to_owned()][..], &[3.0, 4.0][..]));
    }

    #[test]
    fn what_is_wrong_in_a_text_has_its_line() {
        for (bad, message) in [
            ("a 1 2\nb 3\n", "in: line 2: has 1 values, other lines 2"),
            ("a 1 2\nb 3 4 5\n", "in: line 2: has 3 values, other lines 2"),
            ("a 1 2\n\n", "in: line 2: has 0 values"),
            ("a\n", "in: line 1: is not a word with its vector"),
            ("\n", "in: line 1: is not a word"),
            ("a 1 x\n", "in: line 1: \"x\" is not a number"),
            ("a 1 inf\n", "in: line 1: \"inf\" is not a number"),
            ("3 2\na 1 2\n", "in: has 1 words, and its first line says 3"),
        ] {
            let error = text(bad, None).unwrap_err();
            assert!(error.starts_with(message), "{error}");
        }
        assert_eq!(text("", None).unwrap(), Vectors::default());
    }

    #[test]
    fn what_is_wrong_in_a_binary_has_its_word() {
        let good = binary(3, &ROWS, "\n");
        let cut = &good[..good.len() - 3];
        let more = binary(2, &ROWS, "\n");
        let infinite = binary(1, &[("a", [1.0, f32::NAN])], "");
        let endless = [b"1 2\n".as_slice(), &[b'x'; 5000]].concat();
        for (bytes, message) in [
            (cut, "in: word 3 of 3: the file ends"),
            (&more, "in: has more data after the 2 words"),
            (&infinite, "in: word 1 of 1 (\"a\"): got NaN"),
            (&endless, "in: word 1 of 1: the file ends"),
            (b"", "in: line 1: a binary file"),
            (b"9999999999 99999999999999\n", "in: line 1: a binary file"),
            (b"99999999999 300\na ", "in: word 1 of 99999999999: the file ends"),
            (b"1 1\n\xff \0\0\0\0", "in: word 1 of 1 is not UTF-8"),
        ] {
            let error = Vectors::from_binary(bytes, "in", None).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
