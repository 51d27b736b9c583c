//! Odd inputs that a new user tries: each is an error or a note that says what was found.

use crate::program::fails;

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
