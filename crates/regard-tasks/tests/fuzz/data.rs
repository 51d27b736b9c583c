//! Data sets: tables, annotated texts, graphs, vectors of words.

use regard_fuzz::{Scratch, fuzz, parts};
use regard_tasks::classify_graph::planetoid;
use regard_tasks::data::{
    GraphData, LabelledTexts, Lines, Squad, Tsv, Vectors, babi, conllu, documents, graphs, pairs,
    recordings, similarity,
};
use regard_tasks::import::texts::looks_like_table;
use regard_tasks::point::{PROBLEMS, read as read_points};
use regard_tasks::search::{FileTexts, Index, TextChoice};

/// File extensions of labelled texts.
const TABLES: [&str; 3] = ["x.csv", "x.tsv", "x.jsonl"];

#[test]
fn fuzz_labelled() {
    let scratch = Scratch::default();
    fuzz!("labelled", |bytes: &[u8]| {
        let read = TABLES.map(|name| {
            let path = scratch.write(name, bytes);
            let free = LabelledTexts::read(&path, None).map(|texts| texts.counts());
            let asked = LabelledTexts::read(&path, Some(&["0", "1"]));
            free.is_ok() && asked.is_ok()
        });
        read.contains(&true)
    });
}

#[test]
fn fuzz_pairs() {
    let scratch = Scratch::default();
    fuzz!("pairs", |bytes: &[u8]| {
        let [first, second] = parts(bytes);
        let (first, second) = (scratch.write("0", first), scratch.write("1", second));
        let read = [
            pairs::parallel(&first, &second).is_ok(),
            Tsv::FORWARD.read(&first).is_ok(),
            pairs::cmudict(&first).is_ok(),
            similarity::read(&first).is_ok(),
            recordings::list(&first).is_ok(),
        ];
        read.contains(&true)
    });
}

#[test]
fn fuzz_conllu() {
    fuzz!("conllu", |bytes: &[u8]| {
        conllu::Sentences::new(Lines::new(bytes, "in")).all(|sentence| sentence.is_ok())
    });
}

#[test]
fn fuzz_squad() {
    let scratch = Scratch::default();
    fuzz!("squad", |bytes: &[u8]| Squad::read(scratch.write("x.json", bytes)).is_ok());
}

#[test]
fn fuzz_babi() {
    let scratch = Scratch::default();
    fuzz!("babi", |bytes: &[u8]| babi::read(scratch.write("x.txt", bytes)).is_ok());
}

#[test]
fn fuzz_documents() {
    let scratch = Scratch::default();
    fuzz!("documents", |bytes: &[u8]| {
        let path = scratch.write("x.txt", bytes);
        [documents::DocumentBoundary::WikiText, documents::DocumentBoundary::BlankLines]
            .into_iter()
            .all(|form| {
                let mut all = documents::Documents::open(&[&path], form).unwrap();
                all.all(|document| document.is_ok())
            })
    });
}

/// Each of the seven published files in turn, with valid ones beside it.
#[test]
fn fuzz_planetoid() {
    let scratch = Scratch::default();
    let seed = |name: &str| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/planetoid/");
        std::fs::read(format!("{folder}{name}.pickle")).unwrap()
    };
    let files = [("allx", "sparse"), ("ally", "dense"), ("tx", "sparse"), ("ty", "dense")];
    let files = [&files[..], &[("y", "dense"), ("graph", "lists")]].concat();
    let files: Vec<(String, Vec<u8>)> =
        files.iter().map(|(part, from)| (format!("ind.x.{part}"), seed(from))).collect();
    scratch.write("ind.x.test.index", b"2\n3\n");
    files.iter().for_each(|(name, bytes)| _ = scratch.write(name, bytes));
    let whole = planetoid(scratch.folder(), "x").unwrap();
    assert_eq!((whole.len(), whole.columns), (4, 3));
    fuzz!("planetoid", |bytes: &[u8]| {
        let mut read = 0;
        for (name, seed) in &files {
            scratch.write(name, bytes);
            read += usize::from(planetoid(scratch.folder(), "x").is_ok());
            scratch.write(name, seed);
        }
        read > 0
    });
}

#[test]
fn fuzz_network() {
    let scratch = Scratch::default();
    fuzz!("network", |bytes: &[u8]| {
        let [nodes, edges, whole] = parts(bytes);
        let (nodes, edges) = (scratch.write("0", nodes), scratch.write("1", edges));
        let whole = scratch.write("2", whole);
        let one = GraphData::read(&nodes, &edges).map(|network| network.label_names());
        let many = graphs::read(&whole, &nodes, &edges);
        one.is_ok() && many.is_ok()
    });
}

#[test]
fn fuzz_vectors_text() {
    fuzz!("vectors-text", |bytes: &[u8]| Vectors::from_text(Lines::new(bytes, "in"), None).is_ok());
}

#[test]
fn fuzz_vectors_binary() {
    fuzz!("vectors-binary", |bytes: &[u8]| Vectors::from_binary(bytes, "in", None).is_ok());
}

#[test]
fn fuzz_points() {
    let scratch = Scratch::default();
    fuzz!("points", |bytes: &[u8]| {
        let path = scratch.write("x.txt", bytes);
        let read = PROBLEMS.iter().filter(|problem| read_points(&path, **problem).is_ok());
        read.count() > 0
    });
}

#[test]
fn fuzz_search_index() {
    fuzz!("search-index", |bytes: &[u8]| Index::from_bytes(bytes.to_vec()).is_ok());
}

#[test]
fn fuzz_search_texts() {
    fuzz!("search-texts", |bytes: &[u8]| {
        let names = TABLES.iter().chain(&["x.txt"]);
        looks_like_table(bytes, &["text".to_string()], false);
        let read = |name: &&str| {
            [None, Some("2")].map(|columns| {
                let choice = TextChoice { columns, flag: "column", ..TextChoice::default() };
                FileTexts::read(bytes, name, &choice)
            })
        };
        names.filter(|name| read(name).iter().any(Result::is_ok)).count() > 0
    });
}
