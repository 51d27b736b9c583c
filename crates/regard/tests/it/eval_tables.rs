//! `eval --data TABLE` of models that were not trained on such tables: columns are found by the
//! languages of the model or chosen by flags, and it is said which were read.

use crate::program::{Ran, command, fails, finish, folder, json};
use regard_tasks::audio::{Sound, wav};
use std::fs;
use std::path::Path;

const PAIRS: [(&str, &str); 4] = [
    ("They are watching.", "Ils regardent."),
    ("I am hungry.", "J'ai faim."),
    ("Where are you?", "Où es-tu ?"),
    ("I do not know.", "Je ne sais pas."),
];

/// Writes a table of the pairs.
fn put(here: &Path, name: &str, header: &str, row: &dyn Fn(&str, &str) -> String) {
    let rows: String = PAIRS.iter().map(|(en, fr)| row(en, fr) + "\n").collect();
    fs::write(here.join(name), format!("{header}{rows}")).unwrap();
}

fn eval(here: &Path, args: &[&str]) -> Ran {
    let mut command = command(&[&["eval", "--model", "en-fr", "--json"][..], args].concat());
    command.current_dir(here).env_remove("REGARD_DATA");
    finish(command)
}

/// Evaluates the built-in translator, and returns its chrF; standard error says what was read.
fn chrf(here: &Path, args: &[&str], read: &str) -> f64 {
    let ran = eval(here, args);
    assert_eq!(ran.code, 0, "{args:?}: {}", ran.err);
    assert!(ran.err.contains(read), "{args:?} should say {read:?}: {}", ran.err);
    let said: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(said["sentences"], 4, "{said}");
    said["chrf"].as_f64().unwrap()
}

#[test]
fn a_translator_reads_the_columns_of_its_languages() {
    let here = folder("eval_tables_languages");
    put(&here, "plain.tsv", "", &|en, fr| format!("{en}\t{fr}"));
    put(&here, "reversed.tsv", "fr\ten\n", &|en, fr| format!("{fr}\t{en}"));
    put(&here, "names.csv", "id,French,English\n", &|en, fr| format!("7,\"{fr}\",\"{en}\""));
    put(&here, "one.csv", "reference,en\n", &|en, fr| format!("\"{fr}\",\"{en}\""));
    put(&here, "other.csv", "a,b,c\n", &|en, fr| format!("\"{fr}\",x,\"{en}\""));
    let right = chrf(&here, &["--data", "plain.tsv"], "source: column 1, target: column 2");
    for (file, read) in [
        ("reversed.tsv", "source: column 'en', target: column 'fr'"),
        ("names.csv", "source: column 'English', target: column 'French'"),
        ("one.csv", "source: column 'en', target: column 'reference'"),
    ] {
        assert_eq!(chrf(&here, &["--data", file], read), right, "{file}");
    }
    let own = ["--data", "other.csv", "--source", "c", "--target", "a"];
    assert_eq!(chrf(&here, &own, "source: column 'c', target: column 'a'"), right);
    // Columns that cannot be told apart are not guessed.
    let ran = eval(&here, &["--data", "other.csv"]);
    assert!(ran.code == 2 && ran.err.contains("--source"), "{}", ran.err);
    put(&here, "german.tsv", "de\ten\n", &|en, _| format!("Ja.\t{en}"));
    let ran = eval(&here, &["--data", "german.tsv"]);
    assert_eq!(ran.code, 2, "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("the model translates en to fr"), "{}", ran.err);
    // The first row is a pair, though "hi" is the code of a language.
    fs::write(here.join("hi.tsv"), "Hi.\tSalut !\nI am hungry.\tJ'ai faim.\n").unwrap();
    let ran = eval(&here, &["--data", "hi.tsv"]);
    assert!(ran.code == 0 && ran.err.contains("first: 'Hi.' → 'Salut !'"), "{}", ran.err);
    // Parallel files, in any order.
    for (name, at) in [("test.fr", 1), ("test.en", 0)] {
        let lines: Vec<&str> = PAIRS.iter().map(|(en, fr)| [*en, *fr][at]).collect();
        fs::write(here.join(name), lines.join("\n") + "\n").unwrap();
    }
    let files = ["--data", "test.fr", "--data", "test.en"];
    assert_eq!(chrf(&here, &files, "source: *.en, target: *.fr"), right);
}

#[test]
fn a_classifier_reads_the_columns_that_are_chosen() {
    let model = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/reading/BertForSequenceClassification");
    let model = model.to_str().unwrap();
    let here = folder("eval_tables_labels");
    let file = here.join("mine.csv");
    fs::write(&file, "a,b,c\ngood,x,the cat\nbad,y,the mat\n").unwrap();
    let file = file.to_str().unwrap();
    let args = ["eval", "--model", model, "--data", file, "--text", "c", "--label", "a"];
    let ran = finish(command(&args));
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("text: column 'c', label: column 'a'"), "{}", ran.err);
    assert_eq!(json(&[&args[..], &["--json"]].concat())["asked"], 2);
    fails(&[&args[..], &["--query", "b"]].concat(), &["--query", "--text, --label"]);
    fails(&["eval", "--model", "hull", "--data", file, "--text", "c"], &["--text", "point"]);
}

/// The recipe of a built-in model names its own data set, which has no such columns.
#[test]
fn a_built_in_classifier_reads_the_columns_that_are_chosen() {
    let file = folder("eval_tables_built_in").join("mine.csv");
    let rows = "id,review,kind\n1,Great food,reviews\n2,Dear all,email\n3,I love it,reviews\n";
    fs::write(&file, rows).unwrap();
    let args = ["eval", "--model", "genre", "--data", file.to_str().unwrap()];
    let columns = [&args[..], &["--text", "review", "--label", "kind"]].concat();
    let ran = finish(command(&columns));
    assert!(ran.code == 0 && ran.err.contains("text: column 'review'"), "{}", ran.err);
    assert_eq!(json(&[&columns[..], &["--json"]].concat())["asked"], 3);
    // As the message without the flags proposes.
    fails(&args, &["--text review --label kind"]);
    let set = ["eval", "--model", "genre", "--data", "ud-english-ewt-genres", "--text", "review"];
    fails(&set, &["--text: --data ud-english-ewt-genres is a data set"]);
}

#[test]
fn a_list_of_recordings_may_have_a_header() {
    let here = folder("eval_tables_recordings");
    let hum: Vec<f32> = (0..6000).map(|i| 0.3 * (i as f32 * 0.1).sin()).collect();
    let (first, second) =
        (Sound { samples: hum.clone(), rate: 16000 }, Sound { samples: hum, rate: 8000 });
    fs::write(here.join("a.wav"), wav::encode(&first)).unwrap();
    fs::write(here.join("b.wav"), wav::encode(&second)).unwrap();
    let rows = "a.wav\tone\nb.wav\ttwo\n";
    for (name, text, flags) in [
        ("bare.tsv", rows.to_string(), &[][..]),
        ("bare.txt", rows.to_string(), &[]),
        ("flag.tsv", rows.to_string(), &["--no-header"]),
        ("header.tsv", format!("file\ttext\n{rows}"), &[]),
        ("words.tsv", format!("file\twords\n{rows}"), &["--text", "words"]),
    ] {
        fs::write(here.join(name), text).unwrap();
        let mut command =
            command(&[&["eval", "--model", "digits", "--json", "--data", name], flags].concat());
        command.current_dir(&here);
        let ran = finish(command);
        assert_eq!(ran.code, 0, "{name}: {}", ran.err);
        let said: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(said["asked"], 2, "{name}: {said}");
    }
}
