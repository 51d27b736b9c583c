//! Texts that are generated or scored together, guesses, and types of KV caches.

use crate::program::{Ran, fails, piped};
use serde_json::Value;

const PROMPTS: &str = "ROMEO:\nTo be, or not to be\n\nFirst Citizen:\nO\nKING RICHARD III:\nO\n";

/// Runs it on lines of standard input, and asks for success.
fn on_lines(args: &[&str], lines: &str) -> Ran {
    let output = piped(args, lines.as_bytes());
    let text = |bytes| String::from_utf8(bytes).expect("text");
    let ran = Ran {
        code: output.status.code().expect("an exit code"),
        out: text(output.stdout),
        err: text(output.stderr),
    };
    assert_eq!(ran.code, 0, "{args:?}: {}", ran.err);
    ran
}

/// What it printed, line by line as JSON.
fn found(ran: &Ran) -> Vec<Value> {
    ran.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn texts(lines: &[Value]) -> Vec<String> {
    lines.iter().map(|line| line["generated_text"].to_string()).collect()
}

#[test]
fn the_lines_of_a_file_give_what_each_gives_alone() {
    let greedy = ["generate", "--json", "--max-new-tokens", "20", "--do-sample=false"];
    for verb in [&greedy[..], &["score", "--json"]] {
        let together = on_lines(verb, PROMPTS).out;
        let alone: String =
            PROMPTS.lines().map(|line| on_lines(verb, &format!("{line}\n")).out).collect();
        assert_eq!(together, alone, "{verb:?}");
    }
}

#[test]
fn samples_are_the_same_with_guesses() {
    let flags = ["generate", "--max-new-tokens", "20", "--do-sample", "--seed", "3", "--json"];
    let plain = found(&on_lines(&flags, PROMPTS));
    assert_ne!(texts(&plain)[4], texts(&plain)[6], "a line twice gives two samples");
    assert!(plain[0].get("guesses").is_none());
    let lookup = [&flags[..], &["--lookup", "5"]].concat();
    // The model is its own draft.
    let draft = [&flags[..], &["--draft", "shakespeare", "--draft-tokens", "3"]].concat();
    for guessing in [lookup, draft] {
        let ran = on_lines(&guessing, PROMPTS);
        let guessed = found(&ran);
        assert_eq!(texts(&guessed), texts(&plain), "{guessing:?}");
        let count = |key: &str| -> u64 {
            guessed.iter().map(|line| line["guesses"][key].as_u64().unwrap()).sum()
        };
        let (made, right) = (count("guessed"), count("accepted"));
        assert!(right <= made, "{made} {right}");
        let told = ran.err.contains(&format!("{right} of {made} guessed tokens"));
        assert!(told || made == 0, "{}", ran.err);
        // It often guesses what is sampled.
        let own = guessing.contains(&"--draft");
        assert!(!own || right > 10, "{made} {right}");
    }
}

#[test]
fn types_and_memory_of_caches_are_as_asked() {
    let flags = ["generate", "--max-new-tokens", "30", "--json"];
    let plain = found(&on_lines(&flags, PROMPTS));
    let half = on_lines(&[&flags[..], &["--kv-cache", "f16"]].concat(), PROMPTS);
    assert!(half.err.contains("KV caches in f16 took up to"), "{}", half.err);
    assert_eq!(found(&half).len(), plain.len());
    // Room for one sequence: the others wait, and the texts are the same.
    let narrow = [&flags[..], &["--kv-cache-limit", "1MB"]].concat();
    assert_eq!(found(&on_lines(&narrow, PROMPTS)), plain);
    fails(
        &["generate", "O", "--kv-cache", "int8", "--kv-cache-limit", "2KB"],
        &["KV cache", "in int8", "the limit is 2.0 kB"],
    );
}

#[test]
fn a_draft_that_does_not_fit_is_refused() {
    fails(&["generate", "O", "--draft", "en-fr"], &["--draft", "en-fr"]);
    fails(&["generate", "O", "--draft-tokens", "3"], &["--draft"]);
}
