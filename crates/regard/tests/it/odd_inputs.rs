//! Odd inputs that a new user tries: each is an error or a note that says what was found.

use crate::program::{Ran, command, fails, finish, folder, piped};
use std::fs;
use std::path::Path;

fn at(here: &Path, args: &[&str]) -> Ran {
    let mut command = command(args);
    command.current_dir(here).stdin(std::process::Stdio::null());
    finish(command)
}

#[test]
fn numbers_out_of_range_are_named() {
    let story = ["answer", "Where is John?", "--context", "John went to the kitchen."];
    for flag in ["--top-k", "--max-answer-len"] {
        fails(&[&story[..], &[flag, "0"]].concat(), &[flag, "need a number from 1"]);
    }
    fails(&["fill", "a [MASK]", "--top-k", "0"], &["--top-k", "need a number from 1"]);
    fails(&["embed", "--words", "a", "--nearest", "0"], &["--nearest", "need a number from 1"]);
    let generate = ["generate", "a", "--do-sample"];
    for (flag, wanted) in [("--temperature", "temperature: got -1"), ("--top-p", "top_p: got -1")] {
        fails(&[&generate[..], &[flag, "-1"]].concat(), &[wanted]);
    }
    fails(&["generate", "a", "--repetition-penalty", "-1"], &["repetition_penalty: got -1"]);
}

#[test]
fn settings_that_fail_leave_no_half_line() {
    let ran = at(Path::new("."), &["generate", "ROMEO", "--max-length", "1"]);
    assert!(ran.code == 2 && ran.err.contains("max_length"), "{}", ran.err);
    assert_eq!(ran.out, "");
}

#[test]
fn a_text_without_context_is_noted() {
    for text in ["", "a"] {
        let ran = at(Path::new("."), &["score", text]);
        let told = format!("note: {text:?} has no token with a probability");
        assert!(ran.code == 0 && ran.err.contains(&told), "{}", ran.err);
    }
    let ran = at(Path::new("."), &["score", "to be"]);
    assert!(!ran.err.contains("no token with a probability"), "{}", ran.err);
}

#[test]
fn images_and_other_files_are_not_read_as_texts() {
    let here = folder("odd_binary");
    let put = |name: &str, bytes: &[u8]| fs::write(here.join(name), bytes).unwrap();
    put("a.png", b"\x89PNG\r\n\x1a\n\0\0\n\0");
    put("a.wav", b"RIFF\x24\0\0\0WAVEfmt \n");
    put("a.docx", b"PK\x03\x04\n\n");
    put("a.txt", b"\xff\xfeh\0i\0\n\0");
    for (name, told) in [
        (
            "a.png",
            "a.png: is an image, need a text in UTF-8; to classify it: regard classify --image a.png",
        ),
        (
            "a.wav",
            "a.wav: is a recording, need a text in UTF-8; to transcribe it: regard recognize a.wav",
        ),
        ("a.docx", "a.docx: is a zip archive, perhaps a spreadsheet or a document"),
        ("a.txt", "iconv -f UTF-16 -t UTF-8 a.txt > NEW"),
    ] {
        for verb in [&["classify"][..], &["tag"], &["score"], &["answer", "Who?"]] {
            let ran = at(&here, &[verb, &["--file", name]].concat());
            assert_eq!(ran.code, 2, "{verb:?} {name}: {}{}", ran.out, ran.err);
            assert!(ran.err.contains(told) && ran.out.is_empty(), "{verb:?}: {}", ran.err);
        }
    }
    let ran = piped(&["translate"], b"\x89PNG\r\n\x1a\n\0\0\n\0");
    let err = String::from_utf8(ran.stderr).unwrap();
    assert!(err.contains("is an image") && err.contains("--image FILE"), "{err}");
    put("latin.txt", b"caf\xe9\n");
    let ran = at(&here, &["answer", "Who?", "--file", "latin.txt"]);
    assert!(ran.code == 2 && ran.err.contains("latin.txt: line 1: not UTF-8"), "{}", ran.err);
}

#[test]
fn the_name_of_a_missing_file_is_noted() {
    let here = folder("odd_missing");
    let told = "there is no file \"reviews.csv\"; its name is taken as the text itself";
    for verb in [&["classify"][..], &["tag"], &["translate"], &["score"]] {
        let ran = at(&here, &[verb, &["reviews.csv"]].concat());
        assert!(ran.code == 0 && ran.err.contains(told), "{verb:?}: {}", ran.err);
    }
    let ran = at(&here, &["answer", "Where is John?", "--context", "story.txt"]);
    assert!(ran.err.contains("there is no file \"story.txt\""), "{}", ran.err);
}

#[test]
fn a_model_is_not_written_over_a_file() {
    let here = folder("odd_out");
    fs::write(here.join("notes.txt"), "mine").unwrap();
    let told = "--out: notes.txt is a file, need a folder";
    for args in [
        &["models", "export", "hull", "--out", "notes.txt"][..],
        &["quantize", "en-fr-bahdanau", "--to", "int8", "--out", "notes.txt"],
    ] {
        let ran = at(&here, args);
        assert!(ran.code == 2 && ran.err.contains(told), "{args:?}: {}", ran.err);
    }
    assert_eq!(fs::read_to_string(here.join("notes.txt")).unwrap(), "mine");
}
