//! What the program does with nothing but itself.

use crate::program::{fails, folder, json, regard};
use regard_tasks::audio::{Sound, wav};
use std::path::PathBuf;

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
fn a_sound_gets_a_digit_by_the_model_that_ships() {
    let hum: Vec<f32> = (0..6000).map(|i| 0.3 * (i as f32 * 0.1).sin()).collect();
    let file = folder("digits").join("hum.wav");
    std::fs::write(&file, wav::encode(&Sound { samples: hum, rate: 16000 })).unwrap();
    let said = json(&["recognize", file.to_str().unwrap(), "--top-k", "10", "--json"]);
    let guesses = said["guesses"].as_array().unwrap();
    let sum: f64 = guesses.iter().map(|guess| guess["score"].as_f64().unwrap()).sum();
    assert!(guesses.len() == 10 && (sum - 1.0).abs() < 1e-4, "{said}");
}

#[test]
fn digits_of_a_recording_are_told_by_the_model_that_ships() {
    let data = std::env::var_os("REGARD_DATA").map(PathBuf::from);
    let Some(data) = data.map(|data| data.join("fsdd/recordings")).filter(|data| data.is_dir())
    else {
        return println!("skipped: REGARD_DATA has no fsdd");
    };
    let digits = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
    let file = |digit: usize| data.join(format!("{digit}_jackson_0.wav")).display().to_string();
    let files: Vec<String> = (0..10).map(file).collect();
    let mut ask = vec!["recognize"];
    ask.extend(files.iter().map(String::as_str));
    let said = regard(&ask).out;
    let said = said.lines().map(|line| line.split('\t').next().unwrap());
    let right = said.zip(digits).filter(|(said, digit)| said == digit).count();
    // None of these was trained on, and 99 of 100 such are right.
    assert!(right >= 9, "{right} of 10");
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
