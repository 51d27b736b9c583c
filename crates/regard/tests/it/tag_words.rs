//! Files in CoNLL format: `tag` labels their words as they are, and takes no line for a sentence.

use crate::program::{fails, folder, piped, regard};
use std::fs;
use std::path::Path;

const COLUMNS: &str = "-DOCSTART- -X- O\n\nThey PRP B-NP\nca MD B-VP\nn't RB I-VP\nsleep VB I-VP\n\n\
                       Dogs NNS B-NP\nbark VBP B-VP\n";

fn line(id: &str, form: &str, misc: &str) -> String {
    format!("{id}\t{form}\t_\t_\t_\t_\t_\t_\t_\t{misc}\n")
}

/// The same sentences as CoNLL-U, without labels.
fn treebank() -> String {
    "# sent_id = 1\n# text = They can't sleep\n".to_string()
        + &line("1", "They", "_")
        + &line("2-3", "can't", "_")
        + &line("2", "ca", "_")
        + &line("3", "n't", "_")
        + &line("4", "sleep", "_")
        + "\n# sent_id = 2\n"
        + &line("1", "Dogs", "_")
        + &line("2", "bark", "_")
}

fn words(line: &str) -> Vec<&str> {
    line.split(' ').map(|part| part.rsplit_once('/').expect("word/LABEL").0).collect()
}

#[test]
fn words_of_conll_files_are_tagged_as_they_are() {
    let home = folder("tag_words");
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/reading");
    let golden = golden.join("BertForTokenClassification").display().to_string();
    for (name, text, format) in [
        ("a.conll", COLUMNS.to_string(), "CoNLL columns"),
        ("b.txt", COLUMNS.to_string(), "CoNLL columns"),
        ("c.tsv", COLUMNS.replace(' ', "\t"), "CoNLL columns"),
        ("d.conllu", treebank(), "CoNLL-U"),
        ("e.txt", treebank(), "CoNLL-U"),
        (
            "f.conll",
            "word\ttag\nThey\t_\nca\t_\nn't\t_\nsleep\t_\n\nDogs\t_\nbark\t_\n".into(),
            "CoNLL",
        ),
        ("g.conll", "1 They X\n2 ca X\n3 n't X\n4 sleep X\n\n1 Dogs X\n2 bark X\n".into(), "CoNLL"),
    ] {
        let file = home.join(name).display().to_string();
        fs::write(&file, &text).unwrap();
        for model in [&["tag", "--by", "words"][..], &["tag", "--by", "words", "--model", &golden]]
        {
            let ran = regard(&[model, &["--file", &file]].concat());
            assert_eq!(ran.code, 0, "{name}: {}", ran.err);
            let found: Vec<Vec<&str>> = ran.out.lines().map(words).collect();
            assert_eq!(found, [&["They", "ca", "n't", "sleep"][..], &["Dogs", "bark"]], "{name}");
            assert!(ran.err.contains(format) && ran.err.contains("--lines"), "{}", ran.err);
            let piped = piped(model, text.as_bytes());
            if name != "f.conll" && name != "g.conll" {
                assert_eq!(String::from_utf8(piped.stdout).unwrap(), ran.out, "{name}");
            }
        }
        let ran = regard(&["tag", "--file", &file, "--lines"]);
        assert_eq!(ran.out.lines().count(), text.lines().count(), "{name} --lines");
    }
    let file = home.join("a.conll").display().to_string();
    let ran = regard(&["tag", "--file", &file]);
    assert_eq!(ran.out.lines().next(), Some("They/PRON ca/AUX n't/PART sleep/VERB"));
    // Other tag sets are recognised by their capitals; the name of a file is no text.
    let penn = b"They PRP\nsleep VBP\n. .\n\nDogs NNS\nbark VBP\n";
    let tagged = String::from_utf8(piped(&["tag"], penn).stdout).unwrap();
    assert!(tagged.starts_with("They/PRON sleep/VERB ./PUNCT\nDogs/NOUN "), "{tagged}");
    fails(&["tag", &file], &[&format!("regard tag --file {file}")]);
    fails(&["tag", "--file", &file, "--by", "tokens"], &["--by words"]);
    fails(&["tag", "--file", &file, "--text", "7"], &["--text: there is no column \"7\""]);
}

#[test]
fn a_sentence_with_a_problem_has_its_line_and_the_next_one_is_tagged() {
    let home = folder("tag_words_problems");
    let file = home.join("a.conll").display().to_string();
    fs::write(&file, "They PRON\nsleep\n\nDogs NOUN\n").unwrap();
    let ran = regard(&["tag", "--file", &file]);
    assert_eq!((ran.code, ran.out.lines().count()), (1, 2), "{}", ran.err);
    assert!(ran.err.contains("line 2: has 1 column, the first line has 2"), "{}", ran.err);
    fs::write(&file, "\n\n").unwrap();
    fails(&["tag", "--file", &file], &["has no sentences"]);
}

#[test]
fn short_texts_stay_texts() {
    for text in [
        "Good morning\nHello there\nThank you\n",
        "Yes\nNo\nMaybe\n",
        "Dogs bark loudly\n",
        "GO AWAY\nHELP ME\nOH NO\n",
    ] {
        let ran = piped(&["tag"], text.as_bytes());
        let (out, err) = (String::from_utf8(ran.stdout).unwrap(), String::from_utf8(ran.stderr));
        assert_eq!(out.lines().count(), text.lines().count(), "{text}");
        assert!(!err.unwrap().contains("CoNLL"), "{text}");
    }
}
