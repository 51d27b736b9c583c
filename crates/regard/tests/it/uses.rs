//! Models and options that a command can use, but not as they are meant: it says so.

use crate::program::{folder, regard};
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
