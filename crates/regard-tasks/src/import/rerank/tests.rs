use super::*;
use crate::data::ranking;
use crate::data::scratch::with_file;
use crate::import::{self, Import};
use crate::reader::Data;

fn check(name: &str, text: &str) -> (Option<Import>, String) {
    with_file(name, text.as_bytes(), |path| {
        let mut request = Request::new("rerank");
        request.data = vec![path.to_path_buf()];
        let (import, findings) = import::read(&request).unwrap();
        (import, findings.text())
    })
}

/// Pairs of all parts, as the reader of recipes gives them, sorted.
fn written(import: &Import) -> Vec<(String, String, String)> {
    let thread = format!("{:?}", std::thread::current().id()).replace(['(', ')'], "");
    let folder = format!("regard-import-rerank-{}-{thread}", std::process::id());
    let folder = std::env::temp_dir().join(folder);
    import.write(&folder).unwrap();
    let data: Data = import.recipe_keys(&folder)["data"].clone().try_into().unwrap();
    let mut all = vec![];
    for (path, count) in [&data.train, &data.valid, &data.test].into_iter().zip(import.parts) {
        let read = ranking::read(path.as_ref().unwrap()).unwrap();
        assert_eq!(read.len(), count);
        all.extend(
            read.into_iter().map(|pair| (pair.query, pair.text, pair.relevance.to_string())),
        );
    }
    std::fs::remove_dir_all(folder).unwrap();
    all.sort();
    all
}

/// Three texts for each of twenty queries.
fn table(row: impl Fn(usize, usize, usize) -> String) -> String {
    let label = |text: usize| [2, 0, 0][text];
    (0..60).map(|i| row(i / 3, i % 3, label(i % 3))).collect()
}

fn plain() -> String {
    table(|q, t, label| format!("Query {q}?\tText {t}, of {q}.\t{label}\n"))
}

#[test]
fn all_formats_give_the_same_pairs() {
    let wanted = {
        let label = |i: usize| if i.is_multiple_of(3) { "2" } else { "0" };
        let one = |i: usize| {
            (format!("Query {}?", i / 3), format!("Text {}, of {}.", i % 3, i / 3), label(i).into())
        };
        let mut all: Vec<(String, String, String)> = (0..60).map(one).collect();
        all.sort();
        all
    };
    let csv = table(|q, t, label| format!("{label}.0,Query {q}?,\"Text {t}, of\n{q}.\"\n"));
    let json = table(|q, t, label| {
        format!(
            "{{\"question\": \"Query {q}?\", \"answer\": \"Text {t}, of {q}.\", \"label\": {label}}}\n"
        )
    });
    for (name, text, told) in [
        ("a.tsv", plain(), "query: column 1, text: column 2, label: column 3 (no header)"),
        ("b.csv", format!("score,search,passage\n{csv}"), "query: column 'search', text: column"),
        ("c.jsonl", json, "text: column 'answer', label: column 'label'"),
    ] {
        let (import, found) = check(name, &text);
        assert_eq!(found, "", "{name}");
        let import = import.unwrap();
        assert_eq!(import.parts, [48, 6, 6]);
        assert_eq!(written(&import), wanted, "{name}");
        let said = import.summary.join("\n");
        assert!(said.contains(told), "{told}: {said}");
        assert!(
            said.contains("16 queries in the training part, 16 of 48 texts relevant"),
            "{said}"
        );
    }
}

#[test]
fn flags_choose_columns() {
    let text = table(|q, t, label| format!("{label}\tHead {t}\tof {q}\tQuery {q}?\n"));
    with_file("a.tsv", format!("r\th\tb\tq\n{text}").as_bytes(), |path| {
        let mut request = Request::new("rerank");
        request.data = vec![path.to_path_buf()];
        let (import, findings) = import::read(&request).unwrap();
        assert!(import.is_none() && findings.text().contains("--query q --text h --label r"));
        for [query, text, label] in [["q", "h,b", "r"], ["4", "2,3", "1"]] {
            let columns = &mut request.columns;
            (columns.query, columns.text) = (Some(query.into()), Some(text.into()));
            columns.label = Some(label.into());
            let (import, findings) = import::read(&request).unwrap();
            let import = import.unwrap_or_else(|| panic!("{}", findings.text()));
            assert!(import.summary[0].contains("text: column 'h' + column 'b'"));
            assert!(written(&import)[0].1.starts_with("Head 0 of"));
        }
    });
}

#[test]
fn defects_are_named_with_their_lines() {
    let good = plain();
    for (name, text, wanted) in [
        ("a.tsv", format!("{good}q\tt\tyes\n"), "line 61: the label is \"yes\", need a number"),
        ("b.tsv", format!("{good}q\tt\t-1\n"), "line 61: the label is \"-1\""),
        ("c.tsv", format!("{good}q\tt\t101\n"), "line 61: the label is \"101\""),
        ("d.tsv", format!("{good}q\tt\tNaN\n"), "line 61: the label is \"NaN\""),
        ("e.tsv", format!("{good}\tt\t1\n"), "line 61: the query is empty"),
        ("f.tsv", format!("{good}q\t \t1\n"), "line 61: the text is empty"),
        ("g.tsv", format!("{good}q\tt\n"), "line 61: has 2 columns"),
        ("h.tsv", good.replace("\t2\n", "\t0\n"), "no text of the training part is relevant"),
        ("i.tsv", good.replace("\t0\n", "\t1\n"), "every text of the training part is"),
        ("j.tsv", "query\ttext\nx\ty\n".into(), "cannot tell which columns are the query, the"),
        ("k.tsv", "q\ta\t1\nq\tb\t0\n".into(), "no example is left for the validation part"),
    ] {
        let (import, told) = check(name, &text);
        assert!(import.is_none() && told.contains(wanted), "{name}: {wanted}: {told}");
    }
}

#[test]
fn warnings_do_not_stop() {
    let text = plain() + "lone\tx\t1\nlost\tx\t0\n";
    let (import, told) = check("a.tsv", &text.replace("\t2\n", "\t0.5\n"));
    assert!(import.is_some(), "{told}");
    for part in [
        "line 61: the query \"lone\" has no irrelevant text",
        "line 62: the query \"lost\" has no relevant text",
        "the label 0.5 counts as relevant",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
}
