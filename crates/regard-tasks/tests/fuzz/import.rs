//! Files of the user that training imports.

use regard_fuzz::{Scratch, fuzz};
use regard_tasks::import::{self, Request};

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

#[test]
fn fuzz_import() {
    let scratch = Scratch::default();
    fuzz!("import", |bytes: &[u8]| {
        let read = READERS.map(|(task, name)| {
            let mut request = Request::new(task);
            request.data = vec![scratch.write(name, bytes)];
            import::read(&request).is_ok_and(|(import, _)| import.is_some())
        });
        read.contains(&true)
    });
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

/// A table that takes a few bytes in the file may take many in memory, up to a limit.
#[cfg(feature = "parquet")]
#[test]
fn fuzz_parquet() {
    let limits = regard_fuzz::Limits { memory: 256 << 20, ..regard_fuzz::Limits::default() };
    let scratch = Scratch::default();
    fuzz!("parquet", limits, |bytes: &[u8]| {
        let mut request = Request::new("classify");
        request.data = vec![scratch.write("x.parquet", bytes)];
        import::read(&request).is_ok_and(|(import, _)| import.is_some())
    });
}
