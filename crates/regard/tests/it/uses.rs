//! Models and options that a command can use, but not as they are meant: it says so.

use crate::program::{command, fails, finish, folder, regard};
use std::fs;
use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn golden(name: &str) -> String {
    repository().join("fixtures/reading").join(name).display().to_string()
}

#[test]
fn embeddings_of_a_model_for_something_else_are_told() {
    let home = folder("uses_embed");
    let notes = home.join("notes.txt").display().to_string();
    fs::write(&notes, "a cat\na house\n").unwrap();
    for (model, trained) in [
        ("BertForSequenceClassification", "was trained to classify texts, not to embed them"),
        ("BertForTokenClassification", "was trained to label words"),
        ("BertForQuestionAnswering", "was trained to answer questions"),
        ("BertForMaskedLM", "was trained to predict words"),
        ("BertModel", "does not say that it was trained to embed texts"),
    ] {
        let model = golden(model);
        let ran = regard(&["embed", "a cat", "--model", &model]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let mean = "the mean of the token vectors of its last layer";
        assert!(ran.err.contains(trained) && ran.err.contains(mean), "{model}: {}", ran.err);
        let index = home.join("index").display().to_string();
        let _ = fs::remove_file(&index);
        let ran = regard(&["search", &notes, "cat", "--model", &model, "--index", &index]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(ran.err.contains(trained), "{model}: {}", ran.err);
    }
    let ran = regard(&["embed", "a cat", "--pooling", "cls", "--model", &golden("BertModel")]);
    assert!(ran.err.contains("the vector of the first token of its last layer"), "{}", ran.err);
    // A folder of sentence-transformers says how its model embeds.
    let model = home.join("sentences");
    fs::create_dir_all(model.join("1_Pooling")).unwrap();
    for entry in fs::read_dir(golden("BertModel")).unwrap().flatten() {
        fs::copy(entry.path(), model.join(entry.file_name())).unwrap();
    }
    let modules = r#"[{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]"#;
    fs::write(model.join("modules.json"), modules).unwrap();
    fs::write(model.join("1_Pooling/config.json"), "{\"pooling_mode_mean_tokens\": true}").unwrap();
    let ran = regard(&["embed", "a cat", "--model", &model.display().to_string()]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
}

#[test]
fn quantised_weights_are_counted_or_refused() {
    let out = folder("uses_storage").join("model").display().to_string();
    for bits in ["int8", "int4"] {
        fails(
            &["models", "export", "en-pos", "--out", &out, "--storage", bits],
            &[&format!("regard quantize {out} --to {bits} --out {out}-{bits}"), "floating point"],
        );
    }
    assert!(!Path::new(&out).exists());
    // What is proposed works.
    assert_eq!(regard(&["models", "export", "en-pos", "--out", &out]).code, 0);
    let ran = regard(&["quantize", &out, "--to", "int8", "--out", &format!("{out}-int8")]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    fails(&["models", "--storage", "int8"], &["--storage int8"]);
    fails(&["models", "en-fr", "--storage", "int8"], &["regard inspect en-fr --storage int8"]);
    fails(&["attend", "--demo", "--storage", "int8"], &["--storage", "--translate"]);
    let memory = |args: &[&str]| {
        let ran = regard(&[&["inspect", "clothes", "--json"], args].concat());
        let found: serde_json::Value = serde_json::from_str(&ran.out).expect(&ran.err);
        (found["memory"].as_u64().unwrap(), found["parameters"].as_u64().unwrap())
    };
    let (floats, parameters) = memory(&[]);
    let (bytes, _) = memory(&["--storage", "int8"]);
    assert_eq!(floats, 4 * parameters);
    assert!(bytes < floats / 2, "{bytes} of {floats}");
    // The weights of this one are quantised in its file.
    let ran = regard(&["inspect", "en-fr"]);
    assert!(ran.out.contains("6.01 M parameters; 6.2 MB in memory"), "{}", ran.out);
    let ran = regard(&["inspect", "clothes", "--storage", "int8"]);
    let told = format!("{:.1} MB in memory", bytes as f64 / 1e6);
    assert!(ran.out.contains(&told), "{told}: {}", ran.out);
}

/// What is printed after "train one" parses, and trains where its data are there.
#[test]
fn attention_that_a_model_lacks_is_told_with_one_that_has_it() {
    let home = folder("uses_attention");
    let model = golden("BertForSequenceClassification");
    let proposed = "regard train classify --data FILE --set model.pooling=attention";
    fails(
        &["classify", "a cat", "--attention-weights", "--model", &model],
        &["--attention-weights", "does not weigh the words", "The built-in model does", proposed],
    );
    assert_eq!(regard(&["classify", "A fine film.", "--attention-weights"]).code, 0);
    let reviews = repository().join("examples/reviews.csv").display().to_string();
    let words: Vec<&str> = proposed
        .split(' ')
        .skip(1)
        .map(|word| if word == "FILE" { reviews.as_str() } else { word })
        .collect();
    let short = ["--quick", "--out", "run", "--set", "train.steps=2"];
    let mut train = command(&[&words[..], &short].concat());
    train.current_dir(&home);
    let ran = finish(train);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let mut classify =
        command(&["classify", "A fine meal.", "--attention-weights", "--model", "run"]);
    classify.current_dir(&home);
    let ran = finish(classify);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("\tmeal"), "{}", ran.out);
}

#[test]
fn a_family_that_cannot_be_trained_for_a_task_is_told_with_those_that_can() {
    let home = folder("uses_heads");
    let row = |i: usize| {
        format!("{{\"context\": \"the cat {i}\", \"question\": \"what\", \"answer\": \"cat\"}}\n")
    };
    let data = home.join("asked.jsonl").display().to_string();
    fs::write(&data, (0..30).map(row).collect::<String>()).unwrap();
    let model = home.join("en-pos").display().to_string();
    assert_eq!(regard(&["models", "export", "en-pos", "--out", &model]).code, 0);
    let out = home.join("run").display().to_string();
    fails(
        &["train", "answer", "--data", &data, "--from", &model, "--out", &out],
        &["bilstm cannot be trained to answer questions", "bert", "google-bert/bert-base-uncased"],
    );
}
