//! Pairs of source and target: parallel files, tables and pronouncing dictionaries.

use std::collections::HashMap;
use std::path::Path;

use regard_models::{Error, Result};

use super::stream::Lines;

/// One example of a sequence-to-sequence task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Source text.
    pub source: String,
    /// Target text.
    pub target: String,
}

/// Reads two files, line by line; those that end in `.gz` are decompressed. A pair with an empty
/// side is an error: nothing can be learned from it, and it is mostly a sign of misaligned lines.
pub fn parallel(source: impl AsRef<Path>, target: impl AsRef<Path>) -> Result<Vec<Pair>> {
    let (mut sources, mut targets) = (Lines::open(source)?, Lines::open(target)?);
    let mut pairs = Vec::new();
    loop {
        match (sources.next().transpose()?, targets.next().transpose()?) {
            (Some(source), Some(target)) => {
                check(&sources, &source)?;
                check(&targets, &target)?;
                pairs.push(Pair { source, target });
            }
            (None, None) => return Ok(pairs),
            (source, _) => {
                let (short, long) =
                    if source.is_none() { (&sources, &targets) } else { (&targets, &sources) };
                return Err(Error::file(
                    short.name(),
                    format!(
                        "ends after line {}, but {} goes on: the two files must have the same \
                         number of lines",
                        long.number() - 1,
                        long.name().display()
                    ),
                ));
            }
        }
    }
}

fn check<R: std::io::BufRead>(lines: &Lines<R>, text: &str) -> Result<()> {
    if text.trim().is_empty() { Err(lines.error("empty")) } else { Ok(()) }
}

/// Source and target columns of a table, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tsv {
    /// Column of the source.
    pub source: usize,
    /// Column of the target.
    pub target: usize,
}

impl Tsv {
    /// The first column is the source.
    pub const FORWARD: Tsv = Tsv { source: 0, target: 1 };
    /// The second column is the source.
    pub const BACKWARD: Tsv = Tsv { source: 1, target: 0 };

    /// Reads a file of columns separated by tabs. A first line that only names the columns, such
    /// as `source` and `target`, is skipped.
    ///
    /// # Errors
    /// If a line lacks a column; if there are more columns and the source is a number in each line,
    /// as in a file whose first column numbers the lines.
    pub fn read(self, path: impl AsRef<Path>) -> Result<Vec<Pair>> {
        let mut lines = Lines::open(path)?;
        let (mut pairs, mut first, mut numbered) = (Vec::new(), true, true);
        while let Some(line) = lines.next().transpose()? {
            if line.is_empty() {
                continue;
            }
            let columns: Vec<&str> = line.split('\t').collect();
            let column = |i: usize| match columns.get(i) {
                Some(text) if !text.trim().is_empty() => Ok(text.to_string()),
                Some(_) => Err(lines.error(format!("column {} is empty", i + 1))),
                None => Err(lines.error(format!(
                    "has {} columns separated by tabs, need column {}",
                    columns.len(),
                    i + 1
                ))),
            };
            let pair = Pair { source: column(self.source)?, target: column(self.target)? };
            if !(first && is_header(&pair)) {
                numbered &= columns.len() > 2 && pair.source.trim().parse::<u64>().is_ok();
                pairs.push(pair);
            }
            first = false;
        }
        if numbered && !pairs.is_empty() {
            let [source, target] = [self.source + 1, self.target + 1];
            return Err(lines.error(format!(
                "column {source}, the source, is a number in every line; need the source in column \
                 {source} and the target in column {target}: cut the others off, for example with \
                 cut -f 2,3 FILE > NEW"
            )));
        }
        Ok(pairs)
    }
}

/// Common names of columns of pairs.
const COLUMN_NAMES: &[&str] = &[
    "source",
    "target",
    "src",
    "tgt",
    "trg",
    "input",
    "output",
    "reference",
    "translation",
    "sentence",
    "english",
    "french",
    "german",
    "chinese",
    "en",
    "fr",
    "de",
    "zh",
    "text",
    "summary",
    "document",
    "body",
    "subject",
    "title",
    "highlights",
    "word",
    "pronunciation",
];

/// Whether both sides are names of columns, and not the same one.
fn is_header(pair: &Pair) -> bool {
    let [source, target] = [&pair.source, &pair.target].map(|side| side.trim().to_lowercase());
    let known = |side: &str| COLUMN_NAMES.contains(&side);
    known(&source) && known(&target) && source != target
}

/// A source with all its targets, in the order of the pairs: references for an evaluation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Source text.
    pub source: String,
    /// All accepted targets.
    pub targets: Vec<String>,
}

/// Groups pairs by their source, in order of first appearance; a target that occurs twice is kept
/// once.
pub fn group(pairs: &[Pair]) -> Vec<Group> {
    let mut place: HashMap<&str, usize> = HashMap::new();
    let mut groups: Vec<Group> = Vec::new();
    for pair in pairs {
        let i = *place.entry(&pair.source).or_insert_with(|| {
            groups.push(Group { source: pair.source.clone(), targets: Vec::new() });
            groups.len() - 1
        });
        if !groups[i].targets.contains(&pair.target) {
            groups[i].targets.push(pair.target.clone());
        }
    }
    groups
}

/// A word of a pronouncing dictionary with its accepted pronunciations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pronunciations {
    /// The spelling.
    pub word: String,
    /// Phonemes with spaces between them, without the digits of stress; the usual one first.
    pub accepted: Vec<String>,
}

/// Reads a dictionary in the format of CMUdict: `word PH PH …`, a variant as `word(2) PH …`,
/// `#` starts a comment and `;;;` a line of comment.
pub fn cmudict(path: impl AsRef<Path>) -> Result<Vec<Pronunciations>> {
    let mut lines = Lines::open(path)?;
    let mut place: HashMap<String, usize> = HashMap::new();
    let mut words: Vec<Pronunciations> = Vec::new();
    while let Some(line) = lines.next().transpose()? {
        let entry = line.split(" #").next().unwrap_or("").trim();
        if entry.is_empty() || entry.starts_with('#') || entry.starts_with(";;;") {
            continue;
        }
        let mut parts = entry.split_whitespace();
        let word = without_variant(parts.next().unwrap_or(""));
        let without_stress = |p: &str| p.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
        let phonemes: Vec<String> = parts.map(without_stress).collect();
        if phonemes.is_empty() || phonemes.iter().any(String::is_empty) {
            return Err(lines.error(format!("no phonemes after {word:?}")));
        }
        let i = *place.entry(word.to_owned()).or_insert_with(|| {
            words.push(Pronunciations { word: word.to_owned(), accepted: Vec::new() });
            words.len() - 1
        });
        // Variants that differ in stress alone are equal now.
        let phonemes = phonemes.join(" ");
        if !words[i].accepted.contains(&phonemes) {
            words[i].accepted.push(phonemes);
        }
    }
    Ok(words)
}

/// Strips the number of a variant: `read(2)` is a second pronunciation of `read`.
fn without_variant(word: &str) -> &str {
    let digits = |n: &str| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit());
    match word.strip_suffix(')').and_then(|w| w.rsplit_once('(')) {
        Some((word, number)) if !word.is_empty() && digits(number) => word,
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Writes a file, reads it, removes it.
    fn with_file<T>(name: &str, bytes: &[u8], read: impl FnOnce(&Path) -> T) -> T {
        let path = std::env::temp_dir().join(format!("regard-pairs-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        let result = read(&path);
        std::fs::remove_file(path).unwrap();
        result
    }

    fn pair(source: &str, target: &str) -> Pair {
        Pair { source: source.into(), target: target.into() }
    }

    #[test]
    fn columns_both_ways() {
        let text = "Go.\tVa\u{202f}!\tCC-BY\r\n\nRun!\tCours !\n";
        for (columns, wanted) in [
            (Tsv::FORWARD, [pair("Go.", "Va\u{202f}!"), pair("Run!", "Cours !")]),
            (Tsv::BACKWARD, [pair("Va\u{202f}!", "Go."), pair("Cours !", "Run!")]),
        ] {
            assert_eq!(with_file("columns", text.as_bytes(), |p| columns.read(p)).unwrap(), wanted);
        }
    }

    #[test]
    fn names_of_columns_are_no_pair() {
        let read = |text: &str| with_file("header", text.as_bytes(), |p| Tsv::FORWARD.read(p));
        let wanted = [pair("Go.", "Va !"), pair("source", "target")];
        // Only in the first line.
        assert_eq!(read("Source\ttarget\nGo.\tVa !\nsource\ttarget\n").unwrap(), wanted);
        assert_eq!(read("text\ttexte\n").unwrap(), [pair("text", "texte")]);
        assert_eq!(read("sentence\tsentence\n").unwrap().len(), 1);
    }

    #[test]
    fn numbers_of_lines_are_no_sources() {
        let read = |text: &str| with_file("n.tsv", text.as_bytes(), |path| Tsv::FORWARD.read(path));
        let error = read("1\ta\tb\n2\tc\td\n").unwrap_err().to_string();
        assert!(error.contains("is a number in every line"), "{error}");
        assert_eq!(read("1\tone\n2\ttwo\n").unwrap().len(), 2);
        assert_eq!(read("1\ta\tb\nx\tc\td\n").unwrap().len(), 2);
    }

    #[test]
    fn bad_columns_are_named() {
        let rows: [(&[u8], &str); 3] = [
            (b"a\tb\na b\n", "line 2: has 1 columns"),
            (b"a\t \n", "line 1: column 2 is empty"),
            (b"a\tb\n\na\t\xe9\n", "line 3: not UTF-8"),
        ];
        for (i, (bytes, message)) in rows.into_iter().enumerate() {
            let name = format!("bad-{i}");
            let error = with_file(&name, bytes, |p| Tsv::FORWARD.read(p)).unwrap_err().to_string();
            assert!(error.contains(message) && error.contains(&name), "{error}");
        }
    }

    #[test]
    fn two_files_must_go_together() {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all("eins\nzwei\n".as_bytes()).unwrap();
        let gz = gz.finish().unwrap();
        let read = |source: &[u8], name: &str| {
            with_file(name, source, |s| with_file("de.gz", &gz, |t| parallel(s, t)))
        };
        let wanted = [pair("one", "eins"), pair("two", "zwei")];
        assert_eq!(read(b"one\ntwo", "two").unwrap(), wanted);
        for (source, message) in [
            ("one\n", "ends after line 1"),
            ("one\ntwo\nthree\n", "ends after line 2"),
            ("one\n \n", "line 2: empty"),
        ] {
            let error = read(source.as_bytes(), "short").unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn targets_of_a_source_come_together() {
        let pairs = [pair("a", "1"), pair("b", "2"), pair("a", "3"), pair("a", "1")];
        let groups = group(&pairs);
        assert_eq!(groups[0], Group { source: "a".into(), targets: vec!["1".into(), "3".into()] });
        assert_eq!(groups[1], Group { source: "b".into(), targets: vec!["2".into()] });
        assert_eq!(groups.len(), 2);
    }

    #[test]
    fn variants_of_a_word_are_merged() {
        let text = ";;; old comment\n# comment\n'em AH0 M\nread R EH1 D\nread(2) R IY1 D # now\n\
                    a AH0\na(2) EY1\nread(3) R IY0 D\nsmile:) S M\n";
        let words = with_file("dict", text.as_bytes(), |p| cmudict(p)).unwrap();
        let row = |i: usize| (words[i].word.as_str(), words[i].accepted.join(" | "));
        assert_eq!(row(0), ("'em", "AH M".into()));
        assert_eq!(row(1), ("read", "R EH D | R IY D".into()));
        assert_eq!(row(2), ("a", "AH | EY".into()));
        assert_eq!(row(3), ("smile:)", "S M".into()));
        assert_eq!(words.len(), 4);
        let error = with_file("dict2", b"a AH0\nb\n", |p| cmudict(p)).unwrap_err().to_string();
        assert!(error.contains("line 2: no phonemes after \"b\""), "{error}");
    }

    #[test]
    fn real_files() {
        let Ok(root) = std::env::var(crate::data::sets::VARIABLE).map(std::path::PathBuf::from)
        else {
            return regard_fuzz::skip("REGARD_DATA is not set");
        };
        let english_first = Tsv::FORWARD.read(root.join("tatoeba-fra-eng/fra.txt")).unwrap();
        let french_first = Tsv::BACKWARD.read(root.join("tatoeba-fra-eng/fra.txt")).unwrap();
        assert!(english_first.len() > 100_000);
        assert!(english_first.iter().zip(&french_first).all(|(a, b)| a.source == b.target));
        let folder = root.join("multi30k");
        let captions = parallel(folder.join("train.de.gz"), folder.join("train.en.gz")).unwrap();
        assert_eq!(captions.len(), 29_000);
        let words = cmudict(root.join("cmudict/cmudict.dict")).unwrap();
        let phonemes: std::collections::BTreeSet<&str> =
            words.iter().flat_map(|w| &w.accepted).flat_map(|p| p.split(' ')).collect();
        assert_eq!(phonemes.len(), 39, "{phonemes:?}");
        assert!(words.len() > 120_000 && words.iter().any(|w| w.accepted.len() > 2));
    }
}
