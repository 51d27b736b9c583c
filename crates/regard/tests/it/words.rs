//! The verbs that read texts, with models of words.

use crate::program::{fails, folder, json, regard};
use regard_tasks::recipe;
use std::path::Path;

/// A model of words and their characters that has learned nothing, by a recipe.
fn model(test: &str, task: &str, ends: &str, data: &str) -> String {
    let characters = "characters = { kind = 'cnn', embedding_size = 4, channels = 5 }";
    model_with(test, task, ends, data, characters)
}

/// A model of words with further keys.
fn model_with(test: &str, task: &str, ends: &str, data: &str, keys: &str) -> String {
    let place = folder(test);
    let file = place.join(format!("data.{ends}"));
    std::fs::write(&file, data).unwrap();
    let text = format!(
        "name = 'tiny'\ntask = '{task}'\nseed = 1\n[data]\nset = 'files'\ntrain = '{0}'\n\
         valid = '{0}'\n[vocabulary]\nkind = 'treebank'\nsize = 90\nlowercase = true\n[model]\n\
         model_type = 'bilstm'\nembedding_size = 6\nhidden_size = 5\nattention_size = 4\n\
         {keys}",
        file.display()
    );
    let recipe = recipe::task(recipe::parse(&text, &[], &|_| None).unwrap()).unwrap();
    let path = place.join("model");
    std::fs::create_dir_all(&path).unwrap();
    recipe.prepare().unwrap().learner.save(&path).unwrap();
    path.to_str().unwrap().to_string()
}

#[test]
fn the_words_that_decide_are_told() {
    let model = model("why", "classify", "tsv", "a good film\t1\nnot so good\t0\n");
    let text = "Isn't it a GOOD film?";
    let said = json(&["classify", text, "--attention-weights", "--model", &model, "--json"]);
    let words = said["words"].as_array().unwrap();
    let written: Vec<&str> = words.iter().map(|word| word["word"].as_str().unwrap()).collect();
    assert_eq!(written, ["Is", "n't", "it", "a", "GOOD", "film", "?"]);
    assert_eq!((&words[4]["start"], &words[4]["end"]), (&11.into(), &15.into()));
    let sum: f64 = words.iter().map(|word| word["weight"].as_f64().unwrap()).sum();
    assert!((sum - 1.0).abs() < 1e-5 && said["label"].is_string());
    let text = regard(&["classify", "a good film", "--why", "--model", &model]).out;
    let weights: Vec<f64> = text.lines().skip(1).map(|l| l[2..8].parse().unwrap()).collect();
    assert!(weights.len() == 3 && weights.is_sorted_by(|a, b| a >= b), "{text}");
    let bert = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/reading/BertForSequenceClassification");
    let bert = bert.to_str().unwrap();
    let told = ["--attention-weights", "by attention"];
    fails(&["classify", "text", "--why", "--model", bert], &told);
}

/// A model of whole words says little about a text of other words; one of characters reads them.
#[test]
fn a_text_of_unknown_words_is_noted() {
    let data = "a good film\t1\nnot so good\t0\n";
    let words = model_with("words_unknown", "classify", "tsv", data, "");
    let ran = regard(&["classify", "a frobnicated qwerty film xyzzy", "--model", &words]);
    let told = "3 of 5 words of \"a frobnicated qwerty film xyzzy\" are not in the vocabulary: \
                frobnicated, qwerty, xyzzy";
    assert!(ran.code == 0 && ran.err.contains(told), "{}{}", ran.out, ran.err);
    let ran = regard(&["classify", "a very good film", "--model", &words]);
    assert!(ran.code == 0 && !ran.err.contains("vocabulary"), "{}", ran.err);
    let characters = model("words_spelled", "classify", "tsv", data);
    let ran = regard(&["classify", "frobnicated qwerty", "--model", &characters]);
    assert!(ran.code == 0 && !ran.err.contains("vocabulary"), "{}", ran.err);
}

#[test]
fn labels_without_beginnings_are_those_of_words() {
    let row =
        |n: usize, form: &str, tag: &str| format!("{n}\t{form}\t_\t{tag}\t_\t_\t_\t_\t_\t_\n");
    let data = row(1, "Ann", "X") + &row(2, "sees", "X") + &row(3, "Bob", "X") + "\n";
    let model = model("tags", "tag", "conllu", &data);
    let text = regard(&["tag", "Ann doesn't see Carl.", " ", "--model", &model]).out;
    assert_eq!(text, "Ann/X does/X n't/X see/X Carl/X ./X\n\n");
    let text = regard(&["tag", "Ann sees", "--by", "entities", "--model", &model]).out;
    assert_eq!(text, "Ann sees/X\n");
}
