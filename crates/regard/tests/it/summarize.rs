//! `regard summarize`, from training to a summary.

use crate::program::{fails, folder, json, piped, regard};

/// A run of a few steps on a few mails.
fn run(test: &str) -> String {
    let place = folder(test);
    for name in ["train", "valid", "test"] {
        let mail =
            |i: usize| format!("hello , the word{i} deal is on . thanks\tthe word{i} deal\n");
        let text: String = (0..12).map(mail).collect();
        std::fs::write(place.join(format!("{name}.tsv")), text).unwrap();
    }
    let recipe = place.join("tiny.toml");
    let text = format!(
        "name = 'tiny'\ntask = 'summarize'\nseed = 1\nvocabulary = 14\n[data]\nset = 'files'\n\
         folder = '{}'\n[model]\nmodel_type = 'pointer-generator'\nembedding_size = 8\n\
         hidden_size = 8\n[train]\nsteps = 3\nbatch_tokens = 60\n[decode]\nmax_length = 6\n",
        place.display()
    );
    std::fs::write(&recipe, text).unwrap();
    let run = place.join("run");
    let (recipe, run) = (recipe.to_str().unwrap(), run.to_str().unwrap());
    let trained = regard(&["train", recipe, "--out", run]);
    assert_eq!(trained.code, 0, "{}", trained.err);
    for part in
        ["train.tsv: 12 texts", "valid.tsv: 12 texts", "is summarised as \"the word0 deal\""]
    {
        assert!(trained.err.contains(part), "{part}: {}", trained.err);
    }
    run.to_string()
}

#[test]
fn a_verb_without_a_model_says_what_it_needs() {
    fails(
        &["summarize", "Hello, the deal is on."],
        &["--model is required: need a model that summarizes texts", "regard train aeslc-pointer"],
    );
}

#[test]
fn texts_from_arguments_files_and_standard_input() {
    let model = run("summarize");
    let report = json(&["eval", &model, "--json"]);
    assert_eq!((&report["asked"], &report["unit"]), (&12.into(), &"texts".into()));
    assert!(["rouge1", "rouge2", "rouge_l"].iter().all(|name| report[*name].is_number()));

    let mail = "Hello, the Kowalski deal is on.";
    let said = json(&["summarize", mail, "--model", &model, "--json", "--show-copied"]);
    let words = said["words"].as_array().unwrap();
    assert!(!words.is_empty());
    for word in words {
        let copied = word["copied"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&copied) && word["known"].is_boolean(), "{word}");
    }
    let text = regard(&["summarize", mail, "--model", &model]).out;
    assert_eq!(text.trim_end(), said["summary"].as_str().unwrap());
    let file = std::path::Path::new(&model).join("mail.txt");
    std::fs::write(&file, mail).unwrap();
    let of_file = regard(&["summarize", "--file", file.to_str().unwrap(), "--model", &model]).out;
    assert_eq!(of_file, text);
    let ran = piped(&["summarize", "--model", &model], mail.as_bytes());
    assert_eq!(String::from_utf8(ran.stdout).unwrap(), text);
    let why = regard(&["summarize", mail, "--model", &model, "--why"]).out;
    assert_eq!(why.lines().count(), 1 + words.len(), "{why}");
    assert!(why.contains(" % "), "{why}");

    // Rows of a table are not one text.
    let table =
        "id,body\n1,\"Hello, the first deal is on.\"\n2,\"Hello, the second deal is on.\"\n";
    let ran = piped(&["summarize", "--model", &model], table.as_bytes());
    let told = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!((ran.status.code(), ran.stdout.len()), (Some(2), 0), "{told}");
    assert!(told.contains("looks like a table") && told.contains("--text body --file -"), "{told}");
    let rows =
        piped(&["summarize", "--model", &model, "--text", "body", "--file", "-"], table.as_bytes());
    assert_eq!(String::from_utf8_lossy(&rows.stdout).lines().count(), 2);
    let rows = file.with_file_name("rows.txt");
    std::fs::write(&rows, table).unwrap();
    let rows = rows.to_str().unwrap();
    let command = format!("--file {rows} --model {model} --text body");
    fails(&["summarize", "--file", rows, "--model", &model], &["looks like a table", &command]);
    assert_eq!(regard(&["summarize", table, "--model", &model]).code, 0, "a text may be one");
    fails(&["summarize", " ", "--model", &model], &["text 1: got an empty text"]);
    fails(&["summarize", "--file", "/no/such/file", "--model", &model], &["/no/such/file"]);
    fails(&["summarize", mail], &["--model is required: need a model that summarizes texts"]);
    fails(&["summarize", mail, "--model", &model, "--num-beams", "0"], &["--num-beams"]);
    fails(&["summarize", mail, "--model", "stories"], &["answers questions about stories"]);
}
