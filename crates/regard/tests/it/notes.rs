//! Notes on inputs whose results say nothing: silence, empty texts, a question about nobody.

use crate::program::{fails, folder, json, piped, regard};
use regard_tasks::audio::{Sound, wav};

#[test]
fn an_answer_that_is_not_about_the_story_is_noted() {
    let story = "Mary went to the garden. John took the milk. John went to the hallway.";
    let ask = |question: &str| regard(&["answer", question, "--context", story]);
    assert!(!ask("Where is John?").err.contains("note"), "{}", ask("Where is John?").err);
    let ran = ask("Where is Sandra?");
    let noted = "\"Where is Sandra?\": \"Sandra\" of the question is not in the story";
    assert!(ran.code == 0 && ran.err.contains(noted), "{}", ran.err);
    let said = json(&["answer", "Where is Sandra?", "--context", story, "--json"]);
    assert!(said["note"].as_str().unwrap().contains("\"Sandra\""), "{said}");
    let said = json(&["answer", "Where is John?", "--context", story, "--json"]);
    assert!(said.get("note").is_none(), "{said}");
}

#[test]
fn silence_is_not_taken_for_speech() {
    let file = folder("notes_silence").join("silence.wav");
    std::fs::write(&file, wav::encode(&Sound { samples: vec![0.0; 8000], rate: 8000 })).unwrap();
    let ran = regard(&["recognize", file.to_str().unwrap()]);
    assert!(ran.code == 0 && ran.err.contains("the recording is silent"), "{}", ran.err);
    assert!(ran.err.contains("silence.wav: "), "{}", ran.err);
}

#[test]
fn an_empty_text_has_no_embedding() {
    let embed = ["embed", "--model", "wiki-bert", "--json"];
    fails(&[&embed[..], &[""]].concat(), &["text 1: a text without tokens cannot be embedded"]);
    let ran = piped(&embed, b"one\n\n \ntwo\n");
    assert_eq!(ran.status.code(), Some(1));
    let out = String::from_utf8(ran.stdout).unwrap();
    let keys = out.lines().map(|line| line.split('"').nth(1).unwrap()).collect::<Vec<_>>();
    assert_eq!(keys, ["embedding", "error", "error", "embedding"], "lines stay in their places");
    let err = String::from_utf8(ran.stderr).unwrap();
    assert!(err.contains("line 2: a text without tokens") && err.contains("line 3"), "{err}");
}
