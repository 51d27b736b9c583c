//! What the program does with nothing but itself.

use crate::program::{fails, folder, json, regard};

#[test]
fn words_are_labelled_by_the_model_that_ships() {
    let said = regard(&["tag", "They are watching the old dog."]);
    assert_eq!(said.out, "They/PRON are/AUX watching/VERB the/DET old/ADJ dog/NOUN ./PUNCT\n");
}

#[test]
fn a_play_goes_on_by_the_model_that_ships() {
    let ask = ["generate", "ROMEO:", "--max-new-tokens", "300", "--seed", "7", "--json"];
    let text = json(&ask)["generated_text"].as_str().unwrap().to_string();
    assert!(text.starts_with("ROMEO:\n") && text.len() > 250, "{text}");
    // Most of what it writes is words that the plays have.
    let words: Vec<&str> = text.split_whitespace().collect();
    let common = ["the", "and", "to", "of", "I", "you", "my", "a", "is", "not", "be", "in"];
    let count = words.iter().filter(|word| common.contains(word)).count();
    assert!(count * 12 > words.len(), "{text}");
    // A line of the plays is likelier than the same letters in disorder.
    let logprob = |text: &str| json(&["score", text, "--json"])["logprob"].as_f64().unwrap();
    assert!(logprob("What is the matter?") > logprob("mattre? is What het") + 10.0);
}

#[test]
fn questions_are_answered_by_the_model_that_ships() {
    let story = "Mary went to the garden. John took the milk. John went to the hallway.";
    let said = json(&["answer", "Where is John?", "--context", story, "--json"]);
    assert_eq!(said["answer"], "hallway");
    let looked = said["support"].as_array().unwrap();
    assert!(looked.iter().any(|sentence| sentence["sentence"] == 2), "{said}");
    fails(&["answer", "Who?", "--context", "a", "--model", "en-pos"], &["en-pos labels words"]);
}

#[test]
fn a_model_that_ships_does_what_it_is_for() {
    fails(&["tag", "a", "--model", "shakespeare"], &["shakespeare goes on with texts"]);
    fails(&["generate", "a", "--model", "en-pos"], &["en-pos labels words"]);
    fails(&["translate", "a", "--model", "en-pos"], &["en-pos labels words"]);
    fails(&["fill", "a", "--model", "en-fr"], &["en-fr translates"]);
    let listed = json(&["models", "--json"]);
    let names: Vec<&str> =
        listed.as_array().unwrap().iter().flat_map(|m| m["name"].as_str()).collect();
    assert!(
        ["en-fr", "shakespeare", "en-pos"].iter().all(|name| names.contains(name)),
        "{names:?}"
    );
}

#[test]
fn a_model_that_ships_can_be_written_to_a_folder() {
    let out = folder("export-shipped").join("tagger");
    let out = out.to_str().unwrap();
    regard(&["models", "export", "en-pos", "--out", out]);
    let again = regard(&["tag", "Dogs bark.", "--model", out]).out;
    assert_eq!(again, regard(&["tag", "Dogs bark."]).out);
}
