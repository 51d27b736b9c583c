//! Files in CoNLL format: `tag` labels their words as they are, and takes no line for a sentence.

use crate::program::{command, fails, folder, piped, regard};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

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
        // Sentences that are split into words.
        "I agree .\nYou win .\nWe lost .\n",
        "Go !\nRun !\nStop !\n",
        "buy AAPL now\nsell TSLA now\nhold MSFT now\n",
        "buy AAPL\nsell TSLA\nhold MSFT\n",
        "take I-95 north\ntake I-80 west\ntake I-5 south\n",
        "iPhone X\nModel X\nMalcolm X\n",
        // Too few lines to tell, and a last line without an end.
        "Dogs NOUN\nbark VERB",
    ] {
        let ran = piped(&["tag"], text.as_bytes());
        let (out, err) = (String::from_utf8(ran.stdout).unwrap(), String::from_utf8(ran.stderr));
        assert_eq!(out.lines().count(), text.lines().count(), "{text}");
        assert!(!err.unwrap().contains("CoNLL"), "{text}");
    }
}

fn started(args: &[&str]) -> Child {
    let mut command = command(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the binary starts")
}

/// A run with these lines on standard input, written one after the other with pauses.
fn slowly(args: &[&str], text: &str) -> (String, String) {
    let mut child = started(args);
    let mut input = child.stdin.take().unwrap();
    for (at, line) in text.split_inclusive('\n').enumerate() {
        input.write_all(line.as_bytes()).unwrap();
        // The model is loaded before the first line is read.
        std::thread::sleep(Duration::from_millis(if at == 0 { 500 } else { 40 }));
    }
    drop(input);
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr))
}

/// Standard input is recognised independently of the pieces in which it arrives.
#[test]
fn lines_that_arrive_one_after_the_other_are_read_as_those_of_a_file() {
    let tab_separated = COLUMNS.replace(' ', "\t");
    for (text, is_words) in [
        (COLUMNS, true),
        (&tab_separated, true),
        (&treebank(), true),
        ("They PRP\nsleep VBP\n. .\n\nDogs NNS\nbark VBP\n", true),
        ("Dogs NOUN\nbark VERB\n\nCats NOUN\nsleep VERB", true),
        ("GO AWAY\nHELP ME\nOH NO\n", false),
        ("Dogs NOUN\nbark VERB\nThey sleep all day.\nSo do we.\n", false),
        ("I agree .\nYou win .\nWe lost .\n", false),
    ] {
        let at_once = String::from_utf8(piped(&["tag"], text.as_bytes()).stdout).unwrap();
        let (out, err) = slowly(&["tag"], text);
        assert_eq!(out, at_once, "{text}");
        assert_eq!(err.contains("CoNLL"), is_words, "{text}: {err}");
        if !is_words {
            assert_eq!(out.lines().count(), text.lines().count(), "{text}");
        }
    }
    // A table stays refused, with its column.
    let (out, err) = slowly(&["tag"], "text\tlabel\ngood\tPOS\nbad\tNEG\n");
    assert!(out.is_empty() && err.contains("looks like a table"), "{out}{err}");
    assert!(err.contains("regard tag --file - --text text < "), "{err}");
}

/// Texts are labelled as they arrive, although their first line is looked at.
#[test]
fn a_text_does_not_wait_for_the_next() {
    let mut child = started(&["tag"]);
    let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut output = BufReader::new(output);
    for text in ["They are watching.\n", "So are we.\n"] {
        input.write_all(text.as_bytes()).unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(words(line.trim_end()).concat(), text.trim_end().replace(' ', ""), "{line}");
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}
