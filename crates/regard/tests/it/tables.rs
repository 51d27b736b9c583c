//! Tables where texts are expected: a column is read, and whole rows are never taken for texts.

use crate::program::{command, fails, finish, folder, json, piped, regard};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

fn golden(name: &str) -> String {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/reading");
    all.join(name).display().to_string()
}

/// Verbs with a golden model that can run them.
const VERBS: [(&str, &str); 4] = [
    ("classify", "BertForSequenceClassification"),
    ("tag", "BertForTokenClassification"),
    ("embed", "BertModel"),
    ("fill", "BertForMaskedLM"),
];

const TEXTS: [&str; 3] = ["the [MASK], the cat", "ann is in [MASK]", "a [MASK] house"];

/// The texts as a plain file, and as tables of several kinds.
fn tables(home: &Path) -> (PathBuf, Vec<PathBuf>) {
    let put = |name: &str, text: String| {
        fs::write(home.join(name), text).unwrap();
        home.join(name)
    };
    let rows = |row: &dyn Fn(usize, &str) -> String| -> String {
        TEXTS.iter().enumerate().map(|(i, text)| row(i, text)).collect()
    };
    let all = vec![
        put("a.csv", format!("nr,wort\n{}", rows(&|i, text| format!("{i},\"{text}\"\n")))),
        put("b.csv", format!("nr;wort\n{}", rows(&|i, text| format!("{i};{text}\n")))),
        put("c.csv", format!("sep=;\nnr;wort\n{}", rows(&|i, text| format!("{i};{text}\n")))),
        put("d.tsv", format!("nr\twort\n{}", rows(&|i, text| format!("{i}\t{text}\n")))),
        put("e.jsonl", rows(&|i, text| format!("{{\"nr\": {i}, \"wort\": \"{text}\"}}\n"))),
    ];
    (put("plain.txt", rows(&|_, text| format!("{text}\n"))), all)
}

#[test]
fn a_column_gives_what_its_lines_give() {
    let home = folder("tables_columns");
    let (plain, tables) = tables(&home);
    for (verb, model) in VERBS {
        let model = golden(model);
        let base = [verb, "--json", "--model", &model];
        let wanted = piped(&base, &fs::read(&plain).unwrap());
        assert_eq!(wanted.status.code(), Some(0), "{verb}");
        let wanted = String::from_utf8(wanted.stdout).unwrap();
        assert_eq!(wanted.lines().count(), 3);
        let file = plain.to_str().unwrap();
        assert_eq!(regard(&[&base[..], &["--file", file]].concat()).out, wanted, "{verb} --file");
        for table in &tables {
            let file = table.to_str().unwrap();
            let ran = regard(&[&base[..], &["--file", file, "--text", "wort"]].concat());
            assert_eq!((ran.code, &ran.out), (0, &wanted), "{verb} {file}: {}", ran.err);
            assert!(ran.err.contains("text: column wort; 3 rows"), "{}", ran.err);
            // On standard input the kind of the table is seen from its first line.
            let args = [&base[..], &["--file", "-", "--text", "wort"]].concat();
            let ran = piped(&args, &fs::read(table).unwrap());
            let said = String::from_utf8_lossy(&ran.stderr).into_owned();
            assert_eq!(String::from_utf8(ran.stdout).unwrap(), wanted, "{verb} {file}: {said}");
        }
    }
}

#[test]
fn translations_and_rankings_take_a_column_too() {
    let home = folder("tables_translate");
    let file = home.join("x.csv");
    fs::write(&file, "id;text\n1;They are watching.\n2;I am hungry.\n").unwrap();
    let file = file.to_str().unwrap();
    let wanted = piped(&["translate"], b"They are watching.\nI am hungry.\n").stdout;
    let ran = regard(&["translate", "--file", file]);
    assert_eq!((ran.code, ran.out), (0, String::from_utf8(wanted).unwrap()), "{}", ran.err);
    let model = golden("BertModel");
    let said = json(&["rerank", "hungry", "--texts", file, "--model", &model, "--json"]);
    let texts: Vec<&str> =
        said["results"].as_array().unwrap().iter().map(|r| r["text"].as_str().unwrap()).collect();
    assert!(texts.contains(&"I am hungry.") && texts.len() == 2, "{texts:?}");
}

/// The command of the message is run, with standard input from the same file.
#[test]
fn rows_of_a_table_are_refused_with_a_command_that_works() {
    let home = folder("tables_refused");
    let (plain, tables) = tables(&home);
    let (verb, model) = ("classify", golden("BertForSequenceClassification"));
    let wanted = piped(&[verb, "--model", &model], &fs::read(&plain).unwrap()).stdout;
    let wanted = String::from_utf8(wanted).unwrap();
    for table in &tables {
        let name = table.file_name().unwrap().to_str().unwrap();
        let mut asked = command(&[verb, "--model", &model]);
        asked.current_dir(&home).stdin(Stdio::from(fs::File::open(table).unwrap()));
        let ran = finish(asked);
        assert_eq!((ran.code, &*ran.out), (2, ""), "{name}: {}", ran.err);
        assert!(ran.err.contains("looks like a table"), "{name}: {}", ran.err);
        let proposed = format!("regard classify --model {model} --file - --text wort");
        assert!(ran.err.contains(&proposed), "{name}: {}", ran.err);
        let args: Vec<&str> = proposed.split(' ').skip(1).collect();
        let ran = piped(&args, &fs::read(table).unwrap());
        assert_eq!(String::from_utf8(ran.stdout).unwrap(), wanted, "{name}");
        // The way out for lines that only look like a table.
        let ran = piped(&[verb, "--lines", "--model", &model], &fs::read(table).unwrap());
        let lines = fs::read_to_string(table).unwrap().lines().count();
        assert_eq!(String::from_utf8(ran.stdout).unwrap().lines().count(), lines, "{name}");
    }
    // Other verbs, each with its own way to standard input.
    let table = fs::read(&tables[1]).unwrap();
    let rerank = golden("BertModel");
    for args in [
        &["translate"][..],
        &["tag"],
        &["score"],
        &["generate"],
        &["rerank", "x", "--model", &rerank],
        &["answer", "--context", "John went home."],
    ] {
        let ran = piped(args, &table);
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains("looks like a table") && ran.stdout.is_empty(), "{args:?}: {said}");
    }
    // The flag of `rerank` has another name.
    let ran = piped(&["rerank", "x", "--model", &rerank], &table);
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(said.contains("--texts - --text wort"), "{said}");
    let ran = piped(&["rerank", "x", "--model", &rerank, "--texts", "-", "--text", "wort"], &table);
    assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn lines_with_commas_stay_texts() {
    let model = golden("BertForSequenceClassification");
    for text in [
        "Yes, please\nNo, thanks\nWell, why not\n",
        "He came; he saw; he won.\nShe left; he stayed; all slept.\nIt rained; we ran; you fell.\n",
        "Paris,France\nRome,Italy\nBerlin,Germany\n",
        "a\tb\n",
    ] {
        let ran = piped(&["classify", "--model", &model], text.as_bytes());
        assert_eq!(ran.status.code(), Some(0), "{text}");
        let out = String::from_utf8(ran.stdout).unwrap();
        assert_eq!(out.lines().count(), text.lines().count(), "{text}");
        assert!(!String::from_utf8_lossy(&ran.stderr).contains("table"), "{text}");
    }
}

#[test]
fn what_does_not_fit_is_told() {
    let home = folder("tables_told");
    let (_, tables) = tables(&home);
    let (file, model) = (tables[1].to_str().unwrap(), golden("BertForSequenceClassification"));
    let base = ["classify", "--model", &model, "--file", file];
    fails(&base, &["b.csv", "which column is the text", "\"nr\", \"wort\"", "--text NAME"]);
    let with = |more: &[&'static str]| [&base[..], more].concat();
    fails(&with(&["--text", "wrt"]), &["b.csv", "--text", "did you mean 'wort'?"]);
    fails(&with(&["--text", "wort", "--lines"]), &["--lines"]);
    fails(&with(&["a text"]), &["\"a text\"", "--file", "one of them"]);
    fails(&["classify", "x", "--model", &model, "--text", "wort"], &["--file"]);
    fails(&["classify", file, "--model", &model], &["b.csv is a table", &format!("--file {file}")]);
    fails(&["classify", "--image", "x.png", "--file", file], &["--file", "not for images"]);
    fails(&["embed", "--words", "king", "--file", file], &["--file", "not for single words"]);
    let numbers = home.join("n.jsonl");
    fs::write(&numbers, "{\"text\": \"a\"}\n{\"text\": 5}\n").unwrap();
    let numbers = numbers.to_str().unwrap();
    fails(
        &["classify", "--model", &model, "--file", numbers],
        &["n.jsonl: line 2: \"text\" is a number, 5; need a text"],
    );
}
