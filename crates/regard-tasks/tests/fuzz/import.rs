//! Files of the user that training imports.

use regard_fuzz::{Limits, Scratch, fuzz};
use regard_tasks::import::{self, Request, WordColumn, WordFormat, WordSentences};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Tasks with names of files, whose ends choose the readers.
const READERS: [(&str, &str); 11] = [
    ("classify", "x.csv"),
    ("translate", "x.tsv"),
    ("translate", "x.jsonl"),
    ("summarize", "x.csv"),
    ("tag", "x.conll"),
    ("tag", "x.conllu"),
    ("tag", "x.jsonl"),
    ("answer", "x.json"),
    ("answer", "x.jsonl"),
    ("rerank", "x.tsv"),
    ("rerank", "x.csv"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Whether the data of a request can be trained on.
fn is_read(task: &str, data: PathBuf, edges: Option<PathBuf>) -> bool {
    let mut request = Request::new(task);
    (request.data, request.edges) = (vec![data], edges);
    import::read(&request).is_ok_and(|(import, _)| import.is_some())
}

/// Fails if a reader refuses a file of its corpus: mutants of it would test little.
fn accepts_all(target: &str, reader: &dyn Fn(&[u8]) -> bool) {
    for entry in std::fs::read_dir(root().join("fuzz").join(target)).unwrap() {
        let path = entry.unwrap().path();
        assert!(reader(&std::fs::read(&path).unwrap()), "{} is refused", path.display());
    }
}

#[test]
fn fuzz_import() {
    let scratch = Scratch::default();
    let accepted = READERS.map(|_| AtomicBool::new(false));
    fuzz!("import", |bytes: &[u8]| {
        let read = READERS.map(|(task, name)| is_read(task, scratch.write(name, bytes), None));
        for (read, accepted) in read.iter().zip(&accepted) {
            accepted.fetch_or(*read, Ordering::Relaxed);
        }
        read.contains(&true)
    });
    for (reader, accepted) in READERS.iter().zip(&accepted) {
        assert!(accepted.load(Ordering::Relaxed), "{reader:?} refuses every file");
    }
}

#[test]
fn fuzz_import_parallel() {
    let scratch = Scratch::default();
    fuzz!("pairs", |bytes: &[u8]| {
        let [first, second] = regard_fuzz::parts(bytes);
        let mut request = Request::new("translate");
        request.data = vec![scratch.write("x.en", first), scratch.write("x.fr", second)];
        // Seeds are too few pairs to split; that they are read without a panic is enough.
        import::read(&request).is_ok()
    });
}

/// A table of nodes and one of edges.
#[test]
fn fuzz_import_graph() {
    let scratch = Scratch::default();
    let read = |bytes: &[u8]| {
        let [nodes, edges] = regard_fuzz::parts(bytes);
        let edges = scratch.write("edges.csv", edges);
        is_read("classify-graph", scratch.write("nodes.csv", nodes), Some(edges))
    };
    accepts_all("import-graph", &read);
    fuzz!("import-graph", read);
}

/// A table of the paths of images that are there.
#[test]
fn fuzz_import_paths() {
    let scratch = Scratch::default();
    for at in 0..8 {
        let shape = ["circle", "square"][at / 4];
        let from = root().join(format!("examples/shapes/{shape}/0{}.png", at % 4));
        scratch.write(&format!("{at}.png"), &std::fs::read(from).unwrap());
    }
    let read = |bytes: &[u8]| {
        let names = ["x.csv", "x.tsv"];
        names
            .map(|name| is_read("classify-image", scratch.write(name, bytes), None))
            .contains(&true)
    };
    accepts_all("import-paths", &read);
    fuzz!("import-paths", read);
}

/// A table that is one JSON array.
#[test]
fn fuzz_import_json() {
    let scratch = Scratch::default();
    let read = |bytes: &[u8]| is_read("classify", scratch.write("x.json", bytes), None);
    accepts_all("import-json", &read);
    fuzz!("import-json", read);
}

/// A compressed table. A few bytes may be many rows, up to the limit of a table.
#[test]
fn fuzz_import_gz() {
    let scratch = Scratch::default();
    let read = |bytes: &[u8]| is_read("classify", scratch.write("x.csv.gz", bytes), None);
    accepts_all("import-gz", &read);
    let limits = Limits { memory: 512 << 20, ..Limits::default() };
    fuzz!("import-gz", limits, read);
}

/// Whether bytes are recognised and all of their sentences are read, in either format.
fn words_are_read(bytes: &[u8]) -> bool {
    let (name, labels) = (Path::new("standard input"), ["NOUN".to_string()]);
    let (found, taken) = WordFormat::look(name, &mut &bytes[..], &labels).unwrap();
    assert!(bytes.starts_with(&taken));
    let second = WordColumn { asked: Some("2"), recorded: None, header: Some(false) };
    let recorded = WordColumn { recorded: Some(2), ..WordColumn::default() };
    let mut good = false;
    for format in [WordFormat::ConllU, WordFormat::Columns] {
        for column in [WordColumn::default(), second, recorded] {
            let Ok(all) = WordSentences::new(bytes, name, format, column) else { continue };
            // To the end, whatever is wrong with a sentence.
            let mut are_good = true;
            for read in all {
                let sentence = read.map(|read| read.sentence);
                are_good &= matches!(sentence, Ok(Ok(it)) if !it.words.is_empty());
            }
            good |= found == Some(format) && are_good;
        }
    }
    good
}

#[test]
fn fuzz_tag_words() {
    accepts_all("tag-words", &words_are_read);
    fuzz!("tag-words", words_are_read);
}

/// A table that takes a few bytes in the file may take many in memory, up to a limit.
#[cfg(feature = "parquet")]
#[test]
fn fuzz_parquet() {
    let scratch = Scratch::default();
    let read = |bytes: &[u8]| is_read("classify", scratch.write("x.parquet", bytes), None);
    let limits = Limits { memory: 256 << 20, ..Limits::default() };
    fuzz!("parquet", limits, read);
}
