//! The table of importers, and which of them reads the files of a request.

use super::findings::Findings;
use super::imported::Draft;
use super::request::Request;
use super::{answer, classify, graph, images, language, pairs, rerank, speech, table, tag};
use crate::say;
use regard_models::{Error, Result};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// How a task's data are read.
pub struct Importer {
    /// Name of the task.
    pub task: &'static str,
    /// Flags that it uses, besides those of all tasks.
    pub flags: &'static [&'static str],
    /// The files that it reads, for help texts.
    pub reads: &'static str,
    pub(super) read: fn(&Request, &mut Findings) -> Result<Option<Draft>>,
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

/// Returns the importer of a request.
///
/// # Errors
/// If a file does not exist, or the request does not fit the task.
pub(super) fn importer(request: &Request) -> Result<&'static Importer> {
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
pub(super) fn task_of(request: &Request) -> &str {
    let of_end = |path: &Path| match table::end(path).as_str() {
        "png" | "jpg" | "jpeg" => Some("classify-image"),
        "wav" => Some("recognize"),
        _ => None,
    };
    match &request.data[..] {
        // A run reads what it was trained on, whatever the files are.
        _ if request.task != "classify" || request.like().is_some() => &request.task,
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
