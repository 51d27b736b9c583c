//! The user's own data: read, checked, split, and written in the format that recipes read.
//!
//! Each task has a row in [`IMPORTERS`]. An importer reads everything, notes every problem with
//! its line ([`Findings`]), and returns an [`Import`]: a summary, the sizes from which
//! [`preset`] chooses a recipe, and a function that writes the parts to a folder. Data are copied
//! there, so that a run keeps its split and its data when the files change.

mod answer;
mod classify;
mod columns;
pub(crate) mod copies;
mod examples;
pub mod findings;
mod glimpse;
pub(crate) mod graph;
pub(crate) mod images;
mod language;
mod media;
mod pairs;
#[cfg(feature = "parquet")]
mod parquet;
pub(crate) mod part_files;
mod parts;
#[cfg(test)]
mod prepared;
pub mod preset;
pub mod reading;
mod rerank;
mod roles;
mod speech;
pub(crate) mod table;
mod tag;
pub mod texts;
mod values;

pub use copies::DATA;
use findings::Place;
pub use findings::{Finding, Findings, Severity};
pub use graph::{GraphTables, read_tables};
pub(crate) use part_files::{PARTS, PartFiles, files_of, note_unread, part_of_name, stem};
pub use preset::Effort;
pub use reading::{Purpose, Reading, TrainedImport};

use crate::data::{Part, ledger};
use crate::evaluation::EvaluationData;
use crate::say;
use crate::train::{LOCK, Lock};
use regard_models::{Error, Result, checkpoint};
use serde::Serialize;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Files of the user, and how to read them.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Request {
    /// Name of the task.
    pub task: String,
    /// Files or a folder: all examples, or the training part if others are given.
    pub data: Vec<PathBuf>,
    /// Files of the validation part; empty to hold out a tenth.
    pub valid: Vec<PathBuf>,
    /// Files of the test part; empty to hold out a tenth.
    pub test: Vec<PathBuf>,
    /// Edges of a graph.
    pub edges: Option<PathBuf>,
    /// Columns that the user chose.
    pub columns: ColumnNames,
    /// Whether the first row of a table names its columns; `None` to detect it.
    pub header: Option<bool>,
    /// Side of images in pixels; `None` to choose it.
    pub image_size: Option<usize>,
    /// Whether rows with problems are left out instead of refused.
    pub skip_bad: bool,
    /// Seed of the split.
    pub seed: u64,
    /// What the files are read for.
    pub purpose: Purpose,
    /// Part to evaluate on, if the data have parts; `None` to choose it.
    pub part: Option<Part>,
}

/// Names of columns, or numbers from 1; several separated by commas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnNames {
    /// Columns of the text.
    pub text: Option<String>,
    /// Column of the label.
    pub label: Option<String>,
    /// Column of the source text, or its language.
    pub source: Option<String>,
    /// Column of the target text or summary, or its language.
    pub target: Option<String>,
    /// Column of the query.
    pub query: Option<String>,
    /// Column of the text that has the answer.
    pub context: Option<String>,
    /// Column of the question.
    pub question: Option<String>,
    /// Column of the answer.
    pub answer: Option<String>,
}

impl Request {
    /// Creates a request for a task.
    pub fn new(task: impl Into<String>) -> Request {
        Request { task: task.into(), ..Request::default() }
    }

    /// Returns the flags that were given and that only some tasks use, with their names.
    fn given(&self) -> Vec<&'static str> {
        let ColumnNames { text, label, source, target, query, context, question, answer } =
            &self.columns;
        let all = [
            ("text", text.is_some()),
            ("label", label.is_some()),
            ("source", source.is_some()),
            ("target", target.is_some()),
            ("query", query.is_some()),
            ("context", context.is_some()),
            ("question", question.is_some()),
            ("answer", answer.is_some()),
            ("edges", self.edges.is_some()),
            ("no-header", self.header.is_some()),
            ("image-size", self.image_size.is_some()),
        ];
        all.into_iter().filter(|(_, given)| *given).map(|(name, _)| name).collect()
    }
}

/// The user's data, read and checked.
#[non_exhaustive]
pub struct Import {
    /// Name of the task; it can differ from the requested one, such as `classify-image` for a
    /// folder of images.
    pub task: &'static str,
    /// Lines that say what was read: columns, labels, counts, split.
    pub summary: Vec<String>,
    /// Number of examples of the training, validation and test part.
    pub parts: [usize; 3],
    /// Sizes from which a recipe is chosen.
    pub size: DataSize,
    keys: Table,
    files: Vec<(&'static str, &'static str)>,
    write: WriteParts,
    record: ImportRecord,
}

/// Writes the parts to a folder.
type WriteParts = Box<dyn Fn(&Path) -> Result<()>>;

/// Parts of an [`Import`] that an importer makes.
pub(crate) struct Draft {
    pub task: &'static str,
    pub summary: Vec<String>,
    pub parts: [usize; 3],
    pub size: DataSize,
    /// Keys of the recipe that follow from the data, without names of files.
    pub keys: Table,
    /// Keys of `[data]` that name a written file, with its name in the folder; an empty name is
    /// the folder.
    pub files: Vec<(&'static str, &'static str)>,
    /// Writes the parts to a folder.
    pub write: WriteParts,
    /// How the files were read.
    pub reading: Reading,
}

impl Draft {
    /// Examples that a model is evaluated on, as one part.
    pub fn to_evaluate(
        task: &'static str,
        summary: Vec<String>,
        count: usize,
        file: &'static str,
        write: WriteParts,
    ) -> Draft {
        let (parts, files) = ([0, 0, count], vec![(EVALUATED, file)]);
        let (size, keys, reading) = (DataSize::default(), Table::new(), Reading::default());
        Draft { task, summary, parts, size, keys, files, write, reading }
    }
}

/// Key of the file that holds the examples to evaluate on.
const EVALUATED: &str = "test";

/// Sizes of the training part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DataSize {
    /// Number of examples.
    pub examples: usize,
    /// Number of units that a training step processes: words (characters where words are not
    /// separated by spaces), images, tenths of a second of sound, nodes.
    pub units: usize,
    /// Units of the longest example.
    pub longest: usize,
    /// Number of labels; 0 if there are none.
    pub labels: usize,
    /// Whether words are not separated by spaces, as in Chinese.
    pub unspaced: bool,
}

impl Import {
    /// Returns the keys of the recipe that follow from the data, which are written to `folder`.
    pub fn recipe_keys(&self, folder: &Path) -> Table {
        let mut keys = self.keys.clone();
        let data = keys.entry("data").or_insert_with(|| Value::Table(Table::new()));
        if let Value::Table(data) = data {
            data.insert("set".into(), Value::String(crate::own::FILES.into()));
            for (key, name) in &self.files {
                let path = if name.is_empty() { folder.to_path_buf() } else { folder.join(name) };
                data.insert((*key).into(), Value::String(path.display().to_string()));
            }
        }
        keys
    }

    /// Returns the data to evaluate on, which are written to `folder`, and the keys of the recipe
    /// that name them.
    pub fn evaluation(&self, folder: &Path) -> (EvaluationData, Table) {
        match self.files.iter().find(|(key, _)| *key == EVALUATED) {
            Some((_, name)) => (EvaluationData::File(folder.join(name)), Table::new()),
            // A graph is several files.
            None => {
                let on = EvaluationData::Set { set: None, part: Some(Part::Test) };
                (on, self.recipe_keys(folder))
            }
        }
    }

    /// Writes the parts to a folder, which is made, with [`RECORD`], which says where they come
    /// from.
    ///
    /// # Errors
    /// If the folder holds files that no import wrote: they are never replaced.
    pub fn write(&self, folder: &Path) -> Result<()> {
        self.write_locked(folder).map(drop)
    }

    /// Writes the parts as [`write`](Import::write) does. Until the lock is dropped, no other
    /// process replaces them.
    ///
    /// # Errors
    /// Those of [`write`](Import::write), or if another process holds the folder.
    pub fn write_locked(&self, folder: &Path) -> Result<Lock> {
        let record = folder.join(RECORD);
        let is_other = |entry: &std::fs::DirEntry| entry.file_name() != LOCK;
        let holds = folder.read_dir().is_ok_and(|files| files.flatten().any(|e| is_other(&e)));
        if holds && !record.is_file() {
            return Err(Error::file(folder, "holds files that no training wrote"));
        }
        std::fs::create_dir_all(folder).map_err(Error::io(folder))?;
        let lock = Lock::acquire(folder)?;
        let mut text = serde_json::to_string_pretty(&ImportRecord {
            folder: folder.to_path_buf(),
            ..self.record.clone()
        })
        .expect("it is plain data");
        text.push('\n');
        checkpoint::write_file(&record, text.as_bytes())?;
        (self.write)(folder)?;
        Ok(lock)
    }
}

/// File beside written parts that says where they come from.
pub const RECORD: &str = "import.json";

/// Origin of imported data.
#[derive(Clone, Debug, Default, Serialize)]
struct ImportRecord {
    task: &'static str,
    /// Folder that the parts were written to, as the recipe names it.
    folder: PathBuf,
    data: Vec<PathBuf>,
    valid: Vec<PathBuf>,
    test: Vec<PathBuf>,
    edges: Option<PathBuf>,
    seed: u64,
    parts: [usize; 3],
    summary: Vec<String>,
    reading: Reading,
}

impl ImportRecord {
    fn new(request: &Request, import: &Import, reading: Reading) -> ImportRecord {
        let whole = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let all = |paths: &[PathBuf]| paths.iter().map(whole).collect();
        ImportRecord {
            task: import.task,
            folder: PathBuf::new(),
            data: all(&request.data),
            valid: all(&request.valid),
            test: all(&request.test),
            edges: request.edges.as_ref().map(whole),
            seed: request.seed,
            parts: import.parts,
            summary: import.summary.clone(),
            reading,
        }
    }
}

/// How a task's data are read.
pub struct Importer {
    /// Name of the task.
    pub task: &'static str,
    /// Flags that it uses, besides those of all tasks.
    pub flags: &'static [&'static str],
    /// The files that it reads, for help texts.
    pub reads: &'static str,
    read: fn(&Request, &mut Findings) -> Result<Option<Draft>>,
}

/// One row for each task.
pub static IMPORTERS: &[Importer] = &[
    Importer {
        task: "classify",
        flags: &["text", "label", "no-header"],
        reads: "a table with a text and a label (.csv, .tsv, .jsonl)",
        read: classify::read,
    },
    Importer { task: "generate", flags: &[], reads: "plain text files", read: language::read },
    Importer {
        task: "classify-image",
        flags: &["label", "no-header", "image-size"],
        reads: "a folder with a sub-folder of PNG or JPEG files for each label, or a table of paths \
                and labels",
        read: images::read,
    },
    Importer {
        task: "recognize",
        flags: &["text", "label", "no-header"],
        reads: "a folder with a sub-folder of WAV files for each label, or a table of paths and \
                texts",
        read: speech::read,
    },
    Importer {
        task: "classify-graph",
        flags: &["label", "edges", "no-header"],
        reads: "a table of nodes with ids, labels and features, and a table of edges",
        read: graph::read,
    },
    Importer {
        task: "translate",
        flags: &["source", "target", "no-header"],
        reads: "a table with a source and a target (.tsv, .csv, .jsonl), two parallel files \
                (train.en and train.fr), or a folder of them",
        read: pairs::translate,
    },
    Importer {
        task: "summarize",
        flags: &["source", "target", "no-header"],
        reads: "a table with a text and its summary (.tsv, .csv, .jsonl), or two parallel files",
        read: pairs::summarize,
    },
    Importer {
        task: "tag",
        flags: &["text", "label"],
        reads: "CoNLL-U, a word and its label on each line (CoNLL-2003), or JSON lines with tokens \
                and tags",
        read: tag::read,
    },
    Importer {
        task: "answer",
        flags: &["context", "question", "answer", "no-header"],
        reads: "SQuAD's JSON, or a table with a context, a question and its answer (.jsonl, .csv, \
                .tsv)",
        read: answer::read,
    },
    Importer {
        task: "rerank",
        flags: &["query", "text", "label", "no-header"],
        reads: "a table with a query, a text and its relevance (.tsv, .csv, .jsonl)",
        read: rerank::read,
    },
];

/// Reads and checks the user's data. `None` if the problems that were found leave nothing to
/// train on.
///
/// # Errors
/// If a file cannot be opened, or the request does not fit the task.
pub fn read(request: &Request) -> Result<(Option<Import>, Findings)> {
    let importer = importer(request)?;
    let task = importer.task;
    let mut findings = Findings::new(request.skip_bad);
    let (draft, files) = ledger::paths(|| (importer.read)(request, &mut findings));
    let mut draft = draft?;
    if let (None, Some(path), false) = (&draft, request.data.first(), findings.has_errors()) {
        findings.error("no examples", Place::whole(path), "has no example");
    }
    if let (Some(draft), true) = (&mut draft, request.data.iter().any(|path| path.is_dir())) {
        draft.summary.extend(files_line(files));
    }
    if let (Some(draft), true) = (&mut draft, task != request.task) {
        draft.summary.insert(0, format!("the data are for the task {task}, which is trained"));
    }
    let import = draft.filter(|_| !findings.has_errors()).map(|draft| {
        let Draft { task, summary, parts, size, keys, files, write, reading } = draft;
        let record = ImportRecord::default();
        let import = Import { task, summary, parts, size, keys, files, write, record };
        Import { record: ImportRecord::new(request, &import, reading), ..import }
    });
    Ok((import, findings))
}

/// Returns the importer of a request.
///
/// # Errors
/// If a file does not exist, or the request does not fit the task.
fn importer(request: &Request) -> Result<&'static Importer> {
    let tasks: Vec<&str> = IMPORTERS.iter().map(|row| row.task).collect();
    let task = task_of(request);
    let Some(importer) = IMPORTERS.iter().find(|row| row.task == task) else {
        return Err(Error::invalid(say::unknown("task", &request.task, &tasks)));
    };
    if let Some(flag) = request.given().into_iter().find(|flag| !importer.flags.contains(flag)) {
        let known: Vec<String> = importer.flags.iter().map(|flag| format!("--{flag}")).collect();
        let takes = if known.is_empty() { "no columns".into() } else { known.join(", ") };
        return Err(Error::invalid(format!(
            "--{flag} does not apply to {}, which takes {takes} and reads {}",
            importer.task, importer.reads
        )));
    }
    if request.data.is_empty() {
        return Err(Error::invalid(format!("--data: need {}", importer.reads)));
    }
    for path in request.data.iter().chain(&request.valid).chain(&request.test).chain(&request.edges)
    {
        let found = std::fs::metadata(path).map_err(Error::io(path))?;
        // Files are read more than once, and opening a pipe waits for its writer.
        if !found.is_file() && !found.is_dir() {
            return Err(Error::file(
                path,
                "is neither a file nor a folder; save its text in a file",
            ));
        }
    }
    check_different(&[
        ("data", &request.data),
        ("valid", &request.valid),
        ("test", &request.test),
    ])?;
    Ok(importer)
}

/// Sentence about the files of a folder that were read.
fn files_line(files: Vec<PathBuf>) -> Option<String> {
    let mut names: Vec<String> = vec![];
    for file in &files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    (!names.is_empty()).then(|| format!("files: {}", say::list(&names, 12)))
}

/// Checks that no file is given twice, in one part or in two.
fn check_different(parts: &[(&str, &Vec<PathBuf>)]) -> Result<()> {
    let mut seen: HashMap<PathBuf, &str> = HashMap::new();
    for (part, path) in parts.iter().flat_map(|(part, all)| all.iter().map(move |p| (*part, p))) {
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        if let Some(first) = seen.insert(real, part) {
            let twice = match first == part {
                true => format!("--{part} names it twice"),
                false => {
                    format!("it is given as --{first} and as --{part}: a part must have its own")
                }
            };
            return Err(Error::file(path, twice));
        }
    }
    Ok(())
}

/// Task of a request: `classify` also stands for labels of images, of recordings and of the nodes
/// of a graph, if the data are such.
fn task_of(request: &Request) -> &str {
    let of_end = |path: &Path| match table::end(path).as_str() {
        "png" | "jpg" | "jpeg" => Some("classify-image"),
        "wav" => Some("recognize"),
        _ => None,
    };
    match &request.data[..] {
        _ if request.task != "classify" => &request.task,
        _ if request.edges.is_some() => "classify-graph",
        [folder] if folder.is_dir() => {
            let found = first_file(folder, 2).and_then(|path| of_end(&path));
            found.unwrap_or(&request.task)
        }
        [table] if request.columns.text.is_none() && table.is_file() => {
            listed(table).and_then(|path| of_end(&path)).unwrap_or(&request.task)
        }
        _ => &request.task,
    }
}

/// First file of images or sounds that a table lists, if each of its first rows lists one.
fn listed(path: &Path) -> Option<PathBuf> {
    const ROWS: usize = 20;
    let folder = path.parent().unwrap_or(Path::new(""));
    let file = |line: String| {
        let cells = line.split([',', ';', '\t', '"']).map(|cell| PathBuf::from(cell.trim()));
        let mut files =
            cells.filter(|cell| ["png", "jpg", "jpeg", "wav"].contains(&table::end(cell).as_str()));
        files.find(|cell| {
            let is_word = !cell.to_string_lossy().contains(char::is_whitespace);
            is_word || folder.join(cell).is_file()
        })
    };
    let lines = crate::data::stream::Lines::open(path).ok()?.take(ROWS + 1);
    let lines: Vec<String> = lines.collect::<Result<_>>().ok()?;
    // The first line may be a header.
    let mut found = lines.into_iter().filter(|line| !line.trim().is_empty()).skip(1).map(file);
    let first = found.next()??;
    found.all(|file| file.is_some()).then_some(first)
}

/// First file of a folder or of the folders in it, by name.
fn first_file(folder: &Path, deep: usize) -> Option<PathBuf> {
    let mut entries: Vec<PathBuf> =
        folder.read_dir().ok()?.flatten().map(|entry| entry.path()).collect();
    entries.retain(|path| {
        !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
    });
    entries.sort();
    let file = entries.iter().find(|path| path.is_file()).cloned();
    file.or_else(|| {
        let folders = entries.iter().filter(|path| deep > 0 && path.is_dir());
        folders.into_iter().find_map(|path| first_file(path, deep - 1))
    })
}

/// Sentence about the sizes of the parts and where they come from.
pub(crate) fn split_line(parts: [usize; 3], held: parts::HeldOut, seed: u64) -> String {
    let [train, valid, test] = parts.map(say::count);
    let split = match (held.valid, held.test) {
        (false, false) => String::new(),
        (true, true) => format!(" (split by seed {seed})"),
        (true, false) => format!(" (valid split from train by seed {seed})"),
        (false, true) => format!(" (test split from train by seed {seed})"),
    };
    format!("{train} train, {valid} valid, {test} test{split}")
}

/// Number of words of a text, or of characters if words are not separated by spaces.
pub(crate) fn units(text: &str, unspaced: bool) -> usize {
    match unspaced {
        true => text.chars().filter(|c| !c.is_whitespace()).count(),
        false => text.split_whitespace().count(),
    }
}

/// Whether most letters of the texts belong to scripts that do not separate words: Chinese,
/// Japanese, Thai and others.
pub(crate) fn is_unspaced<'a>(texts: impl Iterator<Item = &'a str>) -> bool {
    let is_such = |c: &char| {
        matches!(*c as u32, 0x0e00..=0x0eff | 0x1000..=0x109f | 0x1780..=0x17ff | 0x3040..=0x30ff
            | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff | 0x20000..=0x3134f)
    };
    let (mut such, mut all) = (0usize, 0usize);
    for c in texts.take(2000).flat_map(|text| text.chars().take(2000)).filter(|c| c.is_alphabetic())
    {
        all += 1;
        such += usize::from(is_such(&c));
    }
    2 * such > all
}

/// Writes JSON lines.
pub(crate) fn write_lines<T: Serialize>(path: &Path, rows: &[T]) -> Result<()> {
    checkpoint::write_file_with(path, |file| {
        let mut writer = std::io::BufWriter::new(file);
        for row in rows {
            serde_json::to_writer(&mut writer, row)?;
            std::io::Write::write_all(&mut writer, b"\n")?;
        }
        std::io::Write::flush(&mut writer)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_without_spaces_are_recognised() {
        assert!(is_unspaced(["很好吃,下次还来", "ok"].into_iter()));
        assert!(!is_unspaced(["They are watching 电影.", ""].into_iter()));
        assert_eq!((units("很 好", true), units("so good", false)), (2, 2));
    }

    #[test]
    fn flags_of_other_tasks_are_refused() {
        let mut request = Request::new("generate");
        request.columns.label = Some("x".into());
        let error = read(&request).err().unwrap().to_string();
        assert!(error.contains("--label does not apply to generate"), "{error}");
        let error = read(&Request::new("clasify")).err().unwrap().to_string();
        assert!(error.contains("did you mean 'classify'?"), "{error}");
        assert!(read(&Request::new("classify")).err().unwrap().to_string().contains("--data"));
    }

    #[test]
    fn a_file_in_two_parts_is_refused() {
        crate::data::scratch::with_file("a.txt", b"some text\n", |path| {
            let mut request = Request::new("generate");
            (request.data, request.valid) = (vec![path.into()], vec![path.into()]);
            let error = read(&request).err().unwrap().to_string();
            assert!(error.contains("a.txt: it is given as --data and as --valid"), "{error}");
            (request.data, request.valid) = (vec![path.into(), path.into()], vec![]);
            let error = read(&request).err().unwrap().to_string();
            assert!(error.contains("--data names it twice"), "{error}");
        });
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_file_is_refused_before_it_is_opened() {
        let mut request = Request::new("classify");
        request.data = vec!["/dev/zero".into()];
        let error = read(&request).err().unwrap().to_string();
        assert!(error.contains("/dev/zero: is neither a file nor a folder"), "{error}");
    }

    #[test]
    fn a_table_of_files_is_no_table_of_texts() {
        let task = |name: &str, text: &str| {
            crate::data::scratch::with_file(name, text.as_bytes(), |path| {
                let mut request = Request::new("classify");
                request.data = vec![path.into()];
                task_of(&request).to_string()
            })
        };
        for (name, text, wanted) in [
            ("a.csv", "image,label\nimg/1.png,cat\nimg/2.PNG,dog\n", "classify-image"),
            ("b.jsonl", "{\"f\": \"a.wav\"}\n{\"f\": \"b.wav\", \"l\": 1}\n", "recognize"),
            ("c.csv", "text,label\nsee a.png,x\nb,y\n", "classify"),
            ("d.csv", "text,label\n", "classify"),
        ] {
            assert_eq!(task(name, text), wanted, "{name}");
        }
    }

    #[test]
    fn folders_stand_for_their_parts() {
        let folder = std::env::temp_dir().join(format!("regard-parts-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for name in ["train.csv", "dev.csv", "test.csv", "notes.md"] {
            std::fs::write(folder.join(name), "x").unwrap();
        }
        let mut request = Request::new("classify");
        request.data = vec![folder.clone()];
        let files = PartFiles::find(&request, &table::is_table, &mut Findings::new(false)).unwrap();
        assert_eq!(files.of(Part::Valid), [folder.join("dev.csv")]);
        assert_eq!((files.train.len(), files.test.len()), (1, 1));
        request.test = vec![folder.join("test.csv")];
        let error = PartFiles::find(&request, &table::is_table, &mut Findings::new(false))
            .unwrap_err()
            .to_string();
        assert!(error.contains("--test names a file"), "{error}");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn files_in_no_part_are_noted() {
        let folder = std::env::temp_dir().join(format!("regard-unread-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let rows: String = (0..40).map(|i| format!("text {i},{}\n", i % 2)).collect();
        let write = |name: &str| {
            std::fs::write(folder.join(name), format!("text,label\n{rows}")).unwrap();
        };
        ["train.csv", "train_2.csv", "test-set.csv"].into_iter().for_each(write);
        let mut request = Request::new("classify");
        request.data = vec![folder.clone()];
        let (import, findings) = super::read(&request).unwrap();
        let told = findings.text();
        for name in ["train_2.csv: is not read", "test-set.csv: is not read"] {
            assert!(told.contains(name), "{name}: {told}");
        }
        let summary = import.unwrap().summary.join("\n");
        assert!(summary.contains("files: train.csv"), "{summary}");
        write("train.csv.gz");
        let error = super::read(&request).err().unwrap().to_string();
        assert!(error.contains("train.csv.gz: is there with and without .gz"), "{error}");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn longer_names_of_parts_are_understood() {
        let folder = std::env::temp_dir().join(format!("regard-longer-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let write = |name: &str| std::fs::write(folder.join(name), "x").unwrap();
        ["test-drive.csv", "other.csv"].into_iter().for_each(write);
        let mut request = Request::new("classify");
        request.data = vec![folder.clone()];
        let files = PartFiles::find(&request, &table::is_table, &mut Findings::new(false)).unwrap();
        assert_eq!((files.train.len(), files.test.len()), (2, 0), "no training part is named");
        ["train-v1.1.csv", "x_y-ud-dev.csv"].into_iter().for_each(write);
        let files = PartFiles::find(&request, &table::is_table, &mut Findings::new(false)).unwrap();
        assert_eq!(files.train, [folder.join("train-v1.1.csv")]);
        assert_eq!(files.valid, [folder.join("x_y-ud-dev.csv")]);
        assert_eq!(files.test, [folder.join("test-drive.csv")]);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
