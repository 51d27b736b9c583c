//! What the program does with nothing but itself.

use crate::program::{fails, folder, json, piped, regard};
use regard_tasks::audio::{Sound, wav};
use regard_tasks::data::Image;
use std::path::PathBuf;

#[test]
fn words_are_labelled_by_the_model_that_ships() {
    let said = regard(&["tag", "They are watching the old dog."]);
    assert_eq!(said.out, "They/PRON are/AUX watching/VERB the/DET old/ADJ dog/NOUN ./PUNCT\n");
}

#[test]
fn genres_are_told_by_the_model_that_ships() {
    let genre = |text: &str| json(&["classify", text, "--json"])["label"].clone();
    assert_eq!(genre("The food was great and the staff was very friendly."), "reviews");
    assert_eq!(
        genre("Please find attached the revised contract; call me with any questions."),
        "email"
    );
}

#[test]
fn masked_words_are_filled_by_the_models_that_ship() {
    let best = |text: &str, model: &str| {
        let said = json(&["fill", text, "--top-k", "3", "--model", model, "--json"]);
        let list = said["candidates"].as_array().unwrap().clone();
        assert_eq!(list.len(), 3, "{said}");
        let score = |x: &serde_json::Value| x["score"].as_f64().unwrap();
        assert!(list.is_sorted_by(|a, b| score(a) >= score(b)), "{said}");
        let words = list.iter().map(|x| x["token_str"].as_str().unwrap().trim().to_string());
        (words.collect::<Vec<_>>(), list[0]["sequence"].as_str().unwrap().to_string())
    };
    let (words, _) = best("the end of [MASK] war .", "wiki-bert");
    assert!(words.contains(&"the".to_string()), "{words:?}");
    let (words, text) = best("the end of<mask> war .", "wiki-xlnet");
    assert!(words.contains(&"the".to_string()), "{words:?}");
    assert!(text.starts_with("the end of ") && text.ends_with(" war ."), "{text}");
    // A space before the mask makes no difference.
    assert_eq!(best("the end of <mask> war .", "wiki-xlnet"), (words, text));
    let said = json(&["fill", "a <mask> of <mask> war", "--model", "wiki-xlnet", "--json"]);
    assert_eq!(said["candidates"].as_array().unwrap().len(), 2, "{said}");
    fails(&["fill", "nothing", "--model", "wiki-xlnet"], &["<mask>"]);
    // Without a model it says what the default is.
    assert!(regard(&["fill", "a [MASK]"]).err.contains("google-bert/bert-base-uncased"));
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
    fails(&["answer", "Who?", "--context", "a", "--model", "en-pos"], &["en-pos tags words"]);
}

#[test]
fn a_sound_is_heard_by_the_model_that_ships() {
    let hum: Vec<f32> = (0..6000).map(|i| 0.3 * (i as f32 * 0.1).sin()).collect();
    let file = folder("digits").join("hum.wav");
    std::fs::write(&file, wav::encode(&Sound { samples: hum, rate: 16000 })).unwrap();
    let file = file.to_str().unwrap();
    let said = json(&["recognize", file, "--top-k", "3", "--json"]);
    let score = |guess: &serde_json::Value| guess["score"].as_f64().unwrap();
    let scores: Vec<f64> = said["guesses"].as_array().unwrap().iter().map(score).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b) && scores.iter().sum::<f64>() <= 1.0, "{said}");
    let streamed = regard(&["recognize", file, "--stream", "--json"]).out;
    let last: serde_json::Value = serde_json::from_str(streamed.lines().last().unwrap()).unwrap();
    assert_eq!(last["text"], said["text"], "{streamed}");
}

#[test]
fn digits_of_recordings_are_told_by_the_model_that_ships() {
    let data = std::env::var_os("REGARD_DATA").map(PathBuf::from);
    let Some(data) = data.map(|data| data.join("fsdd/recordings")).filter(|data| data.is_dir())
    else {
        return regard_fuzz::skip("REGARD_DATA has no fsdd");
    };
    let digits = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
    // None of these was trained on, and 99 of 100 such are right.
    let file = |digit: usize| data.join(format!("{digit}_jackson_0.wav"));
    let files: Vec<String> = (0..10).map(|digit| file(digit).display().to_string()).collect();
    let mut ask = vec!["recognize"];
    ask.extend(files.iter().map(String::as_str));
    let said = regard(&ask).out;
    let said = said.lines().map(|line| line.split('\t').next().unwrap());
    let right = said.zip(digits).filter(|(said, digit)| said == digit).count();
    assert!(right >= 9, "{right} of 10");
    // A number of several digits, with a pause after each.
    let mut number = vec![];
    for digit in [3, 1, 7] {
        number.extend(wav::read(file(digit)).unwrap().at(8000).samples);
        number.extend([0.0; 1600]);
    }
    let path = folder("digits-number").join("number.wav");
    std::fs::write(&path, wav::encode(&Sound { samples: number, rate: 8000 })).unwrap();
    let heard = regard(&["recognize", path.to_str().unwrap()]).out;
    assert!(heard.starts_with("three one seven\t"), "{heard}");
}

#[test]
fn clothes_are_seen_by_the_model_that_ships() {
    // A grey square is nothing to wear, but has a probability for each kind.
    let picture = Image { size: [40, 40], channels: 3, pixels: vec![90; 4800] };
    let file = folder("clothes").join("square.png");
    picture.write_png(&file).unwrap();
    let file = file.to_str().unwrap();
    let said = json(&["classify", "--image", file, "--top-k", "10", "--json"]);
    let score = |label: &serde_json::Value| label["score"].as_f64().unwrap();
    let sum: f64 = said["labels"].as_array().unwrap().iter().map(score).sum();
    assert!((sum - 1.0).abs() < 1e-6, "{said}");
    let through = piped(&["classify", "--image", "-"], &std::fs::read(file).unwrap());
    assert!(through.stdout.starts_with(said["label"].as_str().unwrap().as_bytes()));

    let data = std::env::var_os("REGARD_DATA").map(PathBuf::from);
    let images = data.map(|data| data.join("fashion-mnist/t10k-images-idx3-ubyte.gz"));
    let Some(images) = images.filter(|images| images.is_file()) else {
        return regard_fuzz::skip("REGARD_DATA has no fashion-mnist");
    };
    let said = regard(&["classify", "--image", images.to_str().unwrap()]).out;
    let said: Vec<&str> = said.lines().map(|line| line.split('\t').next().unwrap()).collect();
    assert_eq!(said.len(), 10_000);
    // The first ten of the test part.
    let wanted = [
        "Ankle boot",
        "Pullover",
        "Trouser",
        "Trouser",
        "Shirt",
        "Trouser",
        "Coat",
        "Shirt",
        "Sandal",
        "Sneaker",
    ];
    let right = said.iter().zip(wanted).filter(|(said, wanted)| *said == wanted).count();
    assert!(right >= 9, "{:?}", &said[..10]);
}

#[test]
fn hulls_and_tours_are_pointed_at_by_the_models_that_ship() {
    // A square with a point inside, at another place and size than those that were learned from.
    let said = json(&["point", "10 10  30 10  30 30  10 30  19 21", "--json"]);
    assert_eq!((&said["answer"], &said["right"]), (&said["solution"], &true.into()), "{said}");
    let ring = "0.9 0.5  0.5 0.9  0.1 0.5  0.5 0.1  0.8 0.8  0.2 0.2  0.2 0.8  0.8 0.2  0.87 0.35  0.13 0.65";
    let said = json(&["point", "--problem", "tsp", ring, "--json"]);
    assert_eq!(said["right"], true, "{said}");
    fails(&["point", "--problem", "hull", ring, "--model", "tsp"], &["trained for tsp"]);
    fails(&["point", "--problem", "sort", "1 2", "--model", "hull"], &["trained for hull"]);
    fails(&["point", "--problem", "sort", "1 2"], &["regard train sort-10"]);
}

#[test]
fn a_model_that_ships_does_what_it_is_for() {
    fails(&["tag", "a", "--model", "shakespeare"], &["shakespeare generates text"]);
    fails(&["generate", "a", "--model", "en-pos"], &["en-pos tags words"]);
    fails(&["translate", "a", "--model", "en-pos"], &["en-pos tags words"]);
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

/// The recipe of `digits` joins recordings; those of the user are evaluated one by one.
#[test]
fn own_recordings_are_not_joined() {
    let home = folder("digits-eval");
    let mut list = String::new();
    for (number, word) in ["one", "two", "three", "four", "five"].iter().enumerate() {
        let hum: Vec<f32> = (0..4000).map(|i| 0.3 * (i as f32 * 0.1).sin()).collect();
        let file = home.join(format!("{number}.wav"));
        std::fs::write(&file, wav::encode(&Sound { samples: hum, rate: 8000 })).unwrap();
        list += &format!("{}\t{word}\n", file.display());
    }
    let table = home.join("list.tsv");
    std::fs::write(&table, list).unwrap();
    let said = regard(&["eval", "--model", "digits", "--data", table.to_str().unwrap()]);
    assert!(said.out.contains("5 recordings of"), "{}{}", said.out, said.err);
}
