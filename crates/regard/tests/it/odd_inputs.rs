//! Odd inputs that a new user tries: each is an error or a note that says what was found.

use crate::program::{fails, piped};

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
fn a_text_without_context_has_no_perplexity() {
    fails(&["score", ""], &["text 1: got 0 tokens, need at least two"]);
    fails(&["score", "a"], &["text 1: got 1 token, need at least two"]);
    let ran = piped(&["score"], b"to be\n\nor not\n");
    assert_eq!(ran.status.code(), Some(1));
    let lines = String::from_utf8(ran.stdout).unwrap();
    let lines: Vec<bool> = lines.lines().map(str::is_empty).collect();
    assert_eq!(lines, [false, true, false]);
}
