//! `eval RUN --data FILE`: a file is read as the files of training were, and it is said how.

use crate::program::{Ran, command, finish, folder};
use std::fs;
use std::path::{Path, PathBuf};

/// Runs the program in a folder of its own.
fn at(here: &Path, args: &[&str]) -> Ran {
    let mut command = command(args);
    command.current_dir(here).env_remove("REGARD_DATA").env("HF_HUB_OFFLINE", "1");
    finish(command)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Trains two steps; the run is runs/mine.
fn train(here: &Path, args: &[&str]) -> Ran {
    let short = ["--quick", "--out", "runs/mine", "--set", "train.steps=2"];
    let more = ["--set", "train.eval_every=2", "--set", "train.warmup=1"];
    let ran = at(here, &[&["train"][..], args, &short, &more].concat());
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    ran
}

/// Evaluates the run; standard error says each of `read`, standard output each of `shown`.
fn evaluates(here: &Path, args: &[&str], read: &[&str], shown: &[&str]) {
    let ran = at(here, &[&["eval", "runs/mine"][..], args].concat());
    assert_eq!(ran.code, 0, "{args:?}: {}{}", ran.out, ran.err);
    for part in read {
        assert!(ran.err.contains(part), "{args:?} should say {part:?}: {}", ran.err);
    }
    for part in shown {
        assert!(ran.out.contains(part), "{args:?} should print {part:?}: {}", ran.out);
    }
    assert!(!ran.out.contains("regard-eval"), "the copy is not shown: {}", ran.out);
}

/// Fails with code 2, and says each of these.
fn refuses(here: &Path, args: &[&str], says: &[&str]) {
    let ran = at(here, args);
    assert_eq!(ran.code, 2, "{args:?}: {}{}", ran.out, ran.err);
    for part in says {
        assert!(ran.err.contains(part), "{args:?} should say {part:?}: {}", ran.err);
    }
}

/// Reviews with semicolons, and commas in the texts.
fn reviews(from: usize, count: usize) -> String {
    let one = |i: usize| {
        let (word, label) = [("good", "gut"), ("bad", "schlecht")][i % 2];
        format!("{i};A {word} meal, and a {word} waiter, number {i};{label}\n")
    };
    (from..from + count).map(one).collect()
}

#[test]
fn a_table_with_semicolons_and_an_id_is_read_as_in_training() {
    let here = folder("own_eval_table");
    fs::write(here.join("train.csv"), format!("nr;bericht;wertung\n{}", reviews(0, 60))).unwrap();
    let columns = ["--text", "bericht", "--label", "wertung"];
    train(&here, &[&["classify", "--data", "train.csv"][..], &columns].concat());
    let record = fs::read_to_string(here.join("runs/mine/data/import.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    let reading = &record["reading"];
    assert_eq!(reading["columns"]["text"][0]["name"], "bericht");
    assert_eq!((&reading["separator"], &reading["header"]), (&";".into(), &true.into()));
    assert_eq!(reading["labels"], serde_json::json!(["gut", "schlecht"]));
    // Another order of the columns.
    let rows: String =
        (0..8).map(|i| format!("{};x, y, {i};{i}\n", ["gut", "schlecht"][i % 2])).collect();
    fs::write(here.join("new.csv"), format!("wertung;bericht;nr\n{rows}")).unwrap();
    let read = ["text: column 'bericht', label: column 'wertung'", "8 texts"];
    evaluates(&here, &["--data", "new.csv"], &read, &["8 texts of new.csv in", "accuracy"]);
    // As many commas as semicolons in the first row.
    fs::write(here.join("bare.csv"), reviews(100, 6)).unwrap();
    let read = ["text: column 2, label: column 3, no header", "6 texts"];
    evaluates(&here, &["--data", "bare.csv", "--no-header"], &read, &["6 texts of bare.csv"]);
    let lines = "{\"wertung\": \"gut\", \"bericht\": \"good\", \"label\": 3}\n";
    fs::write(here.join("new.jsonl"), lines).unwrap();
    evaluates(&here, &["--data", "new.jsonl"], &["1 text"], &["1 texts of new.jsonl"]);
    // The file of training is told.
    evaluates(
        &here,
        &["--data", "train.csv"],
        &["the run was trained on train.csv"],
        &["60 texts"],
    );
}

#[test]
fn a_missing_column_and_an_unknown_label_are_errors() {
    let here = folder("own_eval_errors");
    fs::write(here.join("train.csv"), format!("nr;bericht;wertung\n{}", reviews(0, 60))).unwrap();
    let columns = ["--text", "bericht", "--label", "wertung"];
    train(&here, &[&["classify", "--data", "train.csv"][..], &columns].concat());
    fs::write(here.join("other.csv"), "id;text;wertung\n1;good;gut\n").unwrap();
    let other = ["eval", "runs/mine", "--data", "other.csv"];
    let says = ["other.csv", "no column \"bericht\"", "\"id\", \"text\", \"wertung\"", "--text"];
    refuses(&here, &other, &says);
    evaluates(&here, &["--data", "other.csv", "--text", "text"], &["column 'text'"], &["1 texts"]);
    let rows = "nr;bericht;wertung\n1;good;gut\n2;so;mittel\n3;so so;mittel\n";
    fs::write(here.join("labels.csv"), rows).unwrap();
    let labels = ["eval", "runs/mine", "--data", "labels.csv"];
    refuses(&here, &labels, &["unknown label (2)", "line 3", "\"mittel\"", "--skip-bad"]);
    let read = ["2 rows left out (--skip-bad)"];
    evaluates(&here, &["--data", "labels.csv", "--skip-bad"], &read, &["1 texts of labels.csv"]);
    let set = [&labels[..], &["--set", "data.text=bericht"]].concat();
    refuses(&here, &set, &["--set data.text", "--text"]);
    refuses(&here, &["eval", "runs/mine", "--data", "none.csv"], &["none.csv"]);
    refuses(&here, &[&other[..], &["--part", "valid"]].concat(), &["--part valid", "no parts"]);
    // Parts of a folder.
    fs::create_dir_all(here.join("parts")).unwrap();
    for (name, count) in [("train.csv", 9), ("dev.csv", 7), ("test.csv", 5)] {
        let text = format!("nr;bericht;wertung\n{}", reviews(0, count));
        fs::write(here.join("parts").join(name), text).unwrap();
    }
    let part = ["the data have parts: read is the test part"];
    evaluates(&here, &["--data", "parts"], &part, &["5 texts of parts"]);
    let part = ["read is the validation part"];
    evaluates(&here, &["--data", "parts", "--part", "valid"], &part, &["7 texts of parts"]);
    refuses(
        &here,
        &["eval", "--model", "en-fr", "--data", "other.csv", "--text", "text"],
        &["--text does not apply to translate", "--source, --target"],
    );
}

#[test]
fn a_translator_is_not_measured_on_its_ids() {
    let here = folder("own_eval_pairs");
    let rows = |from: usize, count: usize| -> String {
        let one = |i: usize| format!("{i}\tThe number {i} is here.\tLe nombre {i} est ici.\n");
        (from..from + count).map(one).collect()
    };
    fs::write(here.join("train.tsv"), rows(0, 60)).unwrap();
    let columns = ["--source", "2", "--target", "3"];
    train(&here, &[&["translate", "--data", "train.tsv"][..], &columns].concat());
    fs::write(here.join("new.tsv"), rows(100, 5)).unwrap();
    let read =
        ["source: column 2, target: column 3 (no header)", "first: 'The number 100", "5 pairs"];
    let set = ["--set", "decode.num_beams=1", "--set", "decode.max_length=12"];
    let args = [&["--data", "new.tsv"][..], &set].concat();
    evaluates(&here, &args, &read, &["5 sentences of new.tsv in", "BLEU"]);
    fs::write(here.join("two.tsv"), "One.\tUn.\n").unwrap();
    let says = ["two.tsv", "has no column 3, from which the run reads the target"];
    refuses(&here, &["eval", "runs/mine", "--data", "two.tsv"], &says);
    let args = [&["--data", "two.tsv", "--source", "1", "--target", "2"][..], &set].concat();
    evaluates(&here, &args, &["source: column 1, target: column 2"], &["1 sentences of two.tsv"]);
}

#[test]
fn folders_of_images_and_of_sounds_are_read() {
    for (test, task, data, end, unit) in [
        ("own_eval_images", "classify-image", "examples/shapes", "png", "images"),
        ("own_eval_sounds", "recognize", "examples/tones", "wav", "recordings"),
    ] {
        let here = folder(test);
        let all = root().join(data);
        let ran = train(&here, &[task, "--data", all.to_str().unwrap()]);
        // The command to use next names a file that is there.
        let next = ran.out.lines().find(|line| line.contains(&format!(".{end} --model runs/mine")));
        let next = next.unwrap_or_else(|| panic!("{}", ran.out)).trim().to_string();
        let words: Vec<&str> = next.split_whitespace().skip(1).collect();
        let used = at(&here, &words);
        assert_eq!(used.code, 0, "{next}: {}", used.err);
        // Two labels of three.
        let mut labels: Vec<PathBuf> =
            fs::read_dir(&all).unwrap().map(|entry| entry.unwrap().path()).collect();
        labels.sort();
        for from in &labels[..2] {
            let to = here.join("new").join(from.file_name().unwrap());
            fs::create_dir_all(&to).unwrap();
            for name in [format!("00.{end}"), format!("01.{end}")] {
                fs::copy(from.join(&name), to.join(&name)).unwrap();
            }
        }
        let wanted = format!("4 {unit} of new in");
        evaluates(&here, &["--data", "new"], &["new: a folder for each label"], &[&wanted]);
        fs::rename(here.join("new").join(labels[0].file_name().unwrap()), here.join("new/other"))
            .unwrap();
        let args = ["eval", "runs/mine", "--data", "new"];
        refuses(&here, &args, &["unknown label (2)", "\"other\"", "--skip-bad"]);
        let wanted = format!("2 {unit} of new in");
        evaluates(&here, &["--data", "new", "--skip-bad"], &["2 files left out"], &[&wanted]);
    }
}

#[test]
fn columns_of_words_are_those_of_training() {
    let here = folder("own_eval_conll");
    // The word, its part of speech, its entity, and a number.
    let sentence = |name: &str, city: &str| {
        format!("{name} NN B-PER 1\nlives VB O 2\nin IN O 3\n{city} NN B-LOC 4\n. . O 5\n\n")
    };
    let names = ["John", "Mary", "Paul", "Anna"];
    let cities = ["Paris", "Rome", "Berlin", "London", "Vienna"];
    let all = names.iter().flat_map(|name| cities.map(|city| sentence(name, city)));
    fs::write(here.join("train.conll"), all.collect::<String>()).unwrap();
    train(&here, &["tag", "--data", "train.conll", "--label", "3"]);
    fs::write(here.join("new.conll"), sentence("Eve", "Rome")).unwrap();
    let read = ["label: column 3, text: column 1", "1 sentence, 5 words", "B-PER 1"];
    evaluates(&here, &["--data", "new.conll"], &read, &["5 words of new.conll in"]);
    fs::write(here.join("narrow.conll"), "Eve B-PER\nsings O\n").unwrap();
    let narrow = ["eval", "runs/mine", "--data", "narrow.conll"];
    refuses(&here, &narrow, &["narrow.conll", "has no column 3", "--label"]);
    evaluates(&here, &["--data", "narrow.conll", "--label", "2"], &["column 2"], &["2 words"]);
    fs::write(here.join("new.jsonl"), "{\"tokens\": [\"Eve\"], \"tags\": [\"B-PER\"]}\n").unwrap();
    evaluates(&here, &["--data", "new.jsonl"], &["label: key 'tags'"], &["1 words of new.jsonl"]);
}

#[test]
fn questions_are_read_from_json_and_json_lines() {
    let here = folder("own_eval_squad");
    let lines: String = (0..20)
        .map(|i| {
            format!(
                "{{\"context\": \"the cat {i} sat on the mat\", \"question\": \"who {i} sat ?\", \
                 \"answer\": \"the cat\"}}\n"
            )
        })
        .collect();
    fs::write(here.join("train.jsonl"), &lines).unwrap();
    let model = root().join("fixtures/reading/BertModel").display().to_string();
    train(&here, &["answer", "--data", "train.jsonl", "--from", &model]);
    let squad = "{\"version\": \"1.1\", \"data\": [{\"title\": \"t\", \"paragraphs\": [{\"context\": \
                 \"a dog barked\", \"qas\": [{\"id\": \"a\", \"question\": \"what barked ?\", \
                 \"answers\": [{\"text\": \"a dog\", \"answer_start\": 0}]}]}]}]}";
    fs::write(here.join("new.json"), squad).unwrap();
    let read = ["first: 'what barked ?' → 'a dog'", "1 question about 1 paragraph"];
    evaluates(&here, &["--data", "new.json"], &read, &["1 questions of new.json in"]);
    fs::write(here.join("new.jsonl"), &lines).unwrap();
    evaluates(&here, &["--data", "new.jsonl"], &["20 questions"], &["20 questions of new.jsonl"]);
}

/// Fields that flags chose are read again, not those with known names.
#[test]
fn questions_with_other_names_are_read_again() {
    let here = folder("own_eval_fields");
    let row = |i: usize, field: &str| {
        format!(
            "{{\"text\": \"nothing\", \"{field}\": \"the cat {i} sat on the mat\", \"frage\": \
             \"who {i} sat ?\", \"antwort\": \"the cat\"}}\n"
        )
    };
    let lines: String = (0..20).map(|i| row(i, "absatz")).collect();
    fs::write(here.join("train.jsonl"), &lines).unwrap();
    let model = root().join("fixtures/reading/BertModel").display().to_string();
    let names = ["--context", "absatz", "--question", "frage", "--answer", "antwort"];
    let args = [&["answer", "--data", "train.jsonl", "--from", &model][..], &names].concat();
    train(&here, &args);
    let lines: String = (20..23).map(|i| row(i, "absatz")).collect();
    fs::write(here.join("new.jsonl"), &lines).unwrap();
    evaluates(&here, &["--data", "new.jsonl"], &["3 questions"], &["3 questions of new.jsonl"]);
    fs::write(here.join("odd.jsonl"), row(1, "absatzz")).unwrap();
    refuses(
        &here,
        &["eval", "runs/mine", "--data", "odd.jsonl"],
        &["odd.jsonl", "absatz", "--context"],
    );
}

/// Two kinds of fruit, in two rings; `labels` is whether the table has a column of labels.
fn fruit(count: usize, labels: bool) -> (String, String) {
    let mut nodes =
        String::from(if labels { "name,kind,height,weight\n" } else { "weight,height,name\n" });
    let mut edges = String::from("a,b\n");
    for i in 0..count {
        for (letter, kind, height) in [("a", "apple tree", 1), ("b", "berry bush", 0)] {
            nodes += &match labels {
                true => format!("{letter}{i},{kind},{height},0.{i}\n"),
                false => format!("0.{i},{height},{letter}{i}\n"),
            };
            edges += &format!("{letter}{i},{letter}{}\n", (i + 1) % count);
        }
    }
    (nodes, edges)
}

#[test]
fn graphs_of_tables_are_evaluated_and_labelled_by_id() {
    let here = folder("own_eval_graph");
    let write = |name: &str, text: &str| fs::write(here.join(name), text).unwrap();
    let (nodes, edges) = fruit(12, true);
    write("nodes.csv", &nodes);
    write("edges.csv", &edges);
    let ran = train(&here, &["classify-graph", "--data", "nodes.csv", "--edges", "edges.csv"]);
    let next = "regard classify --graph nodes.csv --edges edges.csv --model runs/mine";
    assert!(ran.out.contains(next), "{}", ran.out);
    let words: Vec<&str> = next.split_whitespace().skip(1).collect();
    let ran = at(&here, &words);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let first: Vec<&str> = ran.out.lines().next().unwrap().split('\t').collect();
    assert_eq!(first[0], "a0", "{}", ran.out);
    assert!(["apple tree", "berry bush"].contains(&first[1]), "{}", ran.out);
    assert_eq!(ran.out.lines().count(), 24);
    // Another graph, in another order, without labels.
    let (nodes, edges) = fruit(5, false);
    write("new.csv", &nodes);
    write("links.csv", &edges);
    let graph = ["classify", "--graph", "new.csv", "--edges", "links.csv", "--model", "runs/mine"];
    let ran = at(&here, &[&graph[..], &["--node", "b3", "--json"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    let said: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(said["node"], "b3");
    assert!(ran.err.contains("id: column 'name'") && ran.err.contains("2 features"), "{}", ran.err);
    let none = [&graph[..], &["--node", "c9"]].concat();
    refuses(&here, &none, &["--node", "there is no node \"c9\""]);
    // Evaluation needs the labels.
    let args = ["eval", "runs/mine", "--data", "new.csv", "--edges", "links.csv"];
    refuses(&here, &args, &["new.csv", "no column \"kind\"", "--label"]);
    let (nodes, edges) = fruit(6, true);
    write("new.csv", &nodes);
    write("links.csv", &edges);
    let read = ["label: column 'kind'", "12 nodes, 12 edges", "12 labels"];
    evaluates(&here, &args[2..], &read, &["12 labels of new.csv in", "accuracy"]);
    write("lacks.csv", &nodes.replace("weight", "mass"));
    let lacks = ["eval", "runs/mine", "--data", "lacks.csv", "--edges", "links.csv"];
    refuses(&here, &lacks, &["lacks.csv", "no column \"weight\"", "the features"]);
    // The names of both files are those of the user.
    let ran = at(&here, &["runs"]);
    assert!(ran.out.contains("nodes.csv, edges.csv"), "{}", ran.out);
    let ran = at(&here, &["runs", "mine"]);
    assert!(ran.out.contains(next), "{}", ran.out);
    // Worst examples go by their ids.
    let ran = at(&here, &["eval", "runs/mine", "--details"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let is_id = |line: &str| line.starts_with("   node a") || line.starts_with("   node b");
    assert!(ran.out.lines().any(is_id), "{}", ran.out);
}

/// A number of an example in a copy is of no use in the user's file.
#[test]
fn worst_examples_have_the_line_of_the_file() {
    let here = folder("own_eval_lines");
    let row =
        |i: usize| format!("a {} text {i},{}\n", ["fine", "bad"][i % 2], ["yes", "no"][i % 2]);
    let rows: String = (0..60).map(row).collect();
    fs::write(here.join("mine.csv"), format!("text,label\n{rows}")).unwrap();
    let ran = train(&here, &["classify", "--data", "mine.csv"]);
    // Each shown text is on the line that is told.
    let check = |printed: &str, file: &str| {
        let lines: Vec<String> =
            fs::read_to_string(here.join(file)).unwrap().lines().map(String::from).collect();
        let told: Vec<&str> = printed
            .lines()
            .filter_map(|line| line.trim().strip_prefix(&format!("{file}:")))
            .collect();
        assert!(!told.is_empty(), "{printed}");
        for each in told {
            let (line, text) = each.split_once(": ").unwrap();
            let line: usize = line.parse().unwrap();
            assert!(lines[line - 1].starts_with(text), "{each}: {}", lines[line - 1]);
        }
    };
    check(&ran.out, "mine.csv");
    fs::write(here.join("new.csv"), "id,text,label\n7,a fine text,no\n8,a bad text,yes\n").unwrap();
    let eval = |args: &[&str]| at(&here, &[&["eval", "runs/mine"][..], args].concat());
    let ran = eval(&["--details"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    check(&ran.out, "mine.csv");
    let ran = eval(&["--data", "new.csv", "--details"]);
    assert!(ran.out.contains("new.csv:2: a fine text"), "{}{}", ran.out, ran.err);
    let ran = eval(&["--data", "new.csv", "--json"]);
    assert!(ran.out.contains("\"place\":\"new.csv:"), "{}", ran.out);
}
