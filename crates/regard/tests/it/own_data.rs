//! Data of one's own: which files are read, which columns, and that it is said.

use crate::program::{Ran, command, fails, finish, folder, json, piped, regard};
use std::fs;
use std::path::{Path, PathBuf};

/// A run on a machine without any data set.
fn alone(args: &[&str]) -> Ran {
    let mut command = command(args);
    let nothing = Path::new(env!("CARGO_TARGET_TMPDIR"));
    command.env("REGARD_DATA", nothing.join("no-data")).env("HOME", nothing.join("no-home"));
    command.env_remove("XDG_DATA_HOME").current_dir(env!("CARGO_TARGET_TMPDIR"));
    finish(command)
}

const TOPICS: [&str; 4] = ["World", "Sports", "Business", "Science"];

/// Rows of news: topic, title, description.
fn news(from: usize, count: usize, row: &dyn Fn(&str, &str, &str) -> String) -> String {
    let one = |i: usize| {
        let (title, about) = (format!("Title {i} of the day"), format!("What happened, part {i}."));
        row(TOPICS[i % 4], &title, &about)
    };
    (from..from + count).map(one).collect()
}

/// Three files of news with this first row, and the settings that name them.
fn files(
    test: &str,
    header: &str,
    row: &dyn Fn(&str, &str, &str) -> String,
) -> (PathBuf, Vec<String>) {
    let home = folder(test);
    let mut set = vec![];
    for (part, from, count) in [("train", 0, 60), ("valid", 60, 20), ("test", 80, 24)] {
        let path = home.join(format!("{part}.csv"));
        fs::write(&path, format!("{header}{}", news(from, count, row))).unwrap();
        set.push(format!("data.{part}={}", path.display()));
    }
    (home, set)
}

/// Trains a small model of words for two steps.
fn train(home: &Path, settings: &[String], more: &[&str]) -> Ran {
    let run = home.join("run").display().to_string();
    let _ = fs::remove_dir_all(&run);
    let mut args = vec!["train", "sst2-words", "--out", &run];
    let small = ["train.steps=2", "train.eval_every=2", "vocabulary.size=300", "train.average=1"];
    for each in small.into_iter().chain(settings.iter().map(String::as_str)).chain(more.to_vec()) {
        args.extend(["--set", each]);
    }
    alone(&args)
}

fn three(topic: &str, title: &str, about: &str) -> String {
    format!("{topic},{title},\"{about}\"\n")
}

fn says(ran: &Ran, parts: &[&str]) {
    for part in parts {
        assert!(ran.err.contains(part), "should say {part:?}: {}{}", ran.out, ran.err);
    }
}

#[test]
fn own_files_win_over_what_a_recipe_holds_out() {
    let (home, set) = files("own_files", "label,title,description\n", &three);
    let ran = train(&home, &set, &["data.set=files"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let file = |part: &str| home.join(format!("{part}.csv")).display().to_string();
    says(
        &ran,
        &[
            &format!("train  {}: 60 texts", file("train")),
            &format!("valid  {}: 20 texts", file("valid")),
            &format!("test   {}: 24 texts", file("test")),
            "text: column 'title' + 'description', label: column 'label'",
            "4 labels: World (15), Sports (15), Business (15), Science (15)",
        ],
    );
    let recipe = fs::read_to_string(home.join("run/recipe.toml")).unwrap();
    assert!(!recipe.contains("held_out"), "{recipe}");
    let run = home.join("run").display().to_string();
    let measured = alone(&["eval", &run]);
    assert!(measured.out.contains("24 texts of files, test"), "{}{}", measured.out, measured.err);
    let valid = alone(&["eval", &run, "--part", "valid"]);
    assert!(valid.out.contains("20 texts of files, valid"), "{}{}", valid.out, valid.err);
}

/// The name of a recipe stands for its run, and that one for what it has learned from.
#[test]
fn a_run_with_own_data_is_measured_on_them_by_the_name_of_its_recipe() {
    let (home, set) = files("own_by_name", "label,title,description\n", &three);
    let within = |args: &[&str]| {
        let mut command = command(args);
        command.current_dir(&home).env("REGARD_DATA", home.join("no-data"));
        finish(command)
    };
    let small = ["train.steps=2", "train.eval_every=2", "vocabulary.size=300", "train.average=1"];
    let mut args = vec!["train", "sst2-words", "--out", "runs/sst2-words"];
    for each in small.into_iter().chain(set.iter().map(String::as_str)) {
        args.extend(["--set", each]);
    }
    let ran = within(&args);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let measured = within(&["eval", "sst2-words"]);
    assert!(measured.out.contains("24 texts of files, test"), "{}{}", measured.out, measured.err);
    let measured = within(&["eval", "sst2-words", "--part", "valid"]);
    assert!(measured.out.contains("20 texts of files, valid"), "{}{}", measured.out, measured.err);
    // A setting stands above what the run wrote down.
    let other = home.join("other.csv");
    fs::write(&other, format!("label,title,description\n{}", news(200, 8, &three))).unwrap();
    let other = format!("data.test={}", other.display());
    let measured = within(&["eval", "sst2-words", "--set", &other]);
    assert!(measured.out.contains("8 texts of files, test"), "{}{}", measured.out, measured.err);
}

/// As many labels as a set of intents has, and a test file with little of each.
#[test]
fn a_test_file_with_many_labels_is_measured() {
    let home = folder("own_many_labels");
    let mut set = vec![];
    for (part, from, count) in [("train", 0, 154), ("valid", 200, 77), ("test", 300, 100)] {
        let row = |i: usize| format!("question number {i}\tintent_{}\n", i % 77);
        let path = home.join(format!("{part}.tsv"));
        fs::write(&path, (from..from + count).map(row).collect::<String>()).unwrap();
        set.push(format!("data.{part}={}", path.display()));
    }
    let ran = train(&home, &set, &[]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let (run, file) = (home.join("run"), home.join("test.tsv"));
    let (run, file) = (run.to_str().unwrap(), file.to_str().unwrap());
    let measured = alone(&["eval", run]);
    assert!(measured.out.contains("100 texts of files, test"), "{}{}", measured.out, measured.err);
    let measured = alone(&["eval", run, "--data", file]);
    assert!(measured.out.contains("100 texts of "), "{}{}", measured.out, measured.err);
    // Texts that are taken for labels are told by what the model knows.
    fs::write(home.join("other.tsv"), "What is it?\tweather\nWho?\tperson\n").unwrap();
    let other = home.join("other.tsv").display().to_string();
    let measured = alone(&["eval", run, "--data", &other]);
    assert_eq!(measured.code, 2, "{}", measured.out);
    says(&measured, &["other.tsv", "the model has no label", "intent_0"]);
}

#[test]
fn a_recipe_over_a_base_has_its_own_files() {
    let (home, _) = files("own_base", "label,title,description\n", &three);
    let file = |part: &str| format!("{part} = '{}'\n", home.join(format!("{part}.csv")).display());
    let base = alone(&["train", "sst2-words", "--dump-config"]).out;
    fs::write(home.join("below.toml"), base).unwrap();
    let text = format!(
        "name = 'mine'\ntask = 'classify'\nbase = 'below'\n[data]\nset = 'files'\n{}{}",
        file("train"),
        file("valid")
    );
    let mine = home.join("mine.toml");
    fs::write(&mine, &text).unwrap();
    let dumped = alone(&["train", mine.to_str().unwrap(), "--dump-config"]);
    assert!(dumped.code == 0 && !dumped.out.contains("held_out"), "{}{}", dumped.out, dumped.err);
    // What the file says itself is a contradiction.
    fs::write(&mine, text + "held_out = 'sst2-sentences'\n").unwrap();
    fails(&["train", mine.to_str().unwrap()], &["data.held_out", "data.valid"]);
}

#[test]
fn contradictions_and_files_that_are_not_there_are_told() {
    let (home, mut set) = files("own_wrong", "label,title,description\n", &three);
    let ran = train(&home, &set, &["data.set=files", "data.held_out=sst2-sentences"]);
    assert_eq!(ran.code, 2);
    says(&ran, &["data.held_out", "data.valid", "sst2-sentences"]);
    let ran = train(&home, &set, &["data.set=sst2-phrases"]);
    assert_eq!(ran.code, 2);
    says(&ran, &["data.train", "data.set", "sst2-phrases", "data.set=files"]);
    for (at, part) in ["train", "valid", "test"].into_iter().enumerate() {
        let kept = set.clone();
        set[at] = format!("data.{part}=ag/nonexistent.csv");
        let ran = train(&home, &set, &[]);
        assert_eq!(ran.code, 2);
        says(&ran, &[&format!("data.{part}"), "ag/nonexistent.csv"]);
        set = kept;
    }
}

#[test]
fn without_a_validation_file_a_share_is_held_out_and_told() {
    let (home, set) = files("own_share", "label,title,description\n", &three);
    let ran = train(&home, &set[..1], &[]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    says(&ran, &["valid  a tenth of ", "data.valid is not set"]);
    let count = |name: &str| -> usize {
        let line = ran.err.lines().find(|line| line.starts_with(name)).unwrap();
        let text = line.split(": ").find(|part| part.contains(" text")).unwrap();
        text.split(' ').next().unwrap().parse().unwrap()
    };
    assert!(count("train") + count("valid") == 60 && count("valid") > 0, "{}", ran.err);
    // The same share is measured afterwards.
    let run = home.join("run").display().to_string();
    let mut again = command(&["eval", &run, "--json"]);
    again.env("REGARD_DATA", "nowhere");
    let measured: serde_json::Value = serde_json::from_str(&finish(again).out).unwrap();
    assert_eq!(measured["asked"], count("valid"), "{measured}");
}

/// Every task has recipes, and each of them takes files that are named without more.
#[test]
fn a_file_that_is_named_is_read_in_every_task() {
    for (recipe, key, value) in [
        ("sst2-words", "train", "no/such.csv"),
        ("sst2-words", "valid", "no/such.csv"),
        ("sst2-words", "test", "no/such.csv"),
        ("ewt-words", "train", "no/such.conllu"),
        ("ewt-words", "test", "no/such.conllu"),
        ("shakespeare-gpt-small", "train", "no/such.txt"),
        ("wikitext2-bert", "files", "['no/such.txt']"),
        ("wikitext2-xlnet", "files", "['no/such.txt']"),
        ("tatoeba-en-fr-xlnet", "files", "['no/such.txt']"),
        ("multi30k-transformer", "folder", "no/such"),
        ("tatoeba-zh-en-bahdanau", "folder", "no/such"),
        ("cmudict-transformer", "folder", "no/such"),
        ("aeslc-pointer", "folder", "no/such"),
        ("hull-5", "folder", "no/such"),
        ("babi", "folder", "no/such"),
        ("cora-gat", "nodes", "no/such.tsv"),
        ("molecules-gat", "edges", "no/such.tsv"),
        ("fashion-mnist-vit", "folder", "no/such"),
        ("fsdd-truncated", "train", "no/such.tsv"),
        ("fsdd-ctc", "valid", "no/such.tsv"),
        ("squad-minilm", "train", "no/such.json"),
    ] {
        let set = format!("data.{key}={value}");
        let dumped = json(&["train", recipe, "--dump-config", "--json", "--set", &set]);
        assert_eq!(dumped["data"]["set"], "files", "{recipe} {set}");
        if recipe == "squad-minilm" {
            // It begins with a model that is not here.
            continue;
        }
        let run = folder("own_named").join("run").display().to_string();
        let ran = alone(&["train", recipe, "--out", &run, "--set", &set]);
        assert_eq!(ran.code, 2, "{recipe} {set}: {}", ran.err);
        assert!(ran.err.contains("data."), "{recipe} {set}: {}", ran.err);
        // Either this file is missing, or another one has to be named too.
        let told = ran.err.contains("no/such") || ran.err.contains("data.set=files needs it");
        assert!(told, "{recipe} {set}: {}", ran.err);
        // A set that is named as well cannot be meant.
        let own = json(&["train", recipe, "--dump-config", "--json"]);
        let both = format!("data.set={}", own["data"]["set"].as_str().unwrap());
        fails(
            &["train", recipe, "--dump-config", "--set", &set, "--set", &both],
            &[&format!("data.{key}"), "data.set"],
        );
    }
}

#[test]
fn columns_are_found_by_name_and_by_contents_or_asked_for() {
    let label_first = |topic: &str, title: &str, _: &str| format!("{topic},{title}\n");
    let label_last = |topic: &str, title: &str, _: &str| format!("{title},{topic}\n");
    let foreign = |topic: &str, title: &str, about: &str| format!("{topic},\"{about}\",{title}\n");
    let told = "4 labels: World (15), Sports (15), Business (15), Science (15)";
    for (test, header, row) in [
        ("own_label_review", "label,review\n", &label_first as &dyn Fn(&str, &str, &str) -> String),
        ("own_text_label", "text,label\n", &label_last),
        ("own_category", "sentence,category\n", &label_last),
        ("own_bare_first", "", &label_first),
        ("own_bare_last", "", &label_last),
    ] {
        let (home, set) = files(test, header, row);
        let ran = train(&home, &set, &[]);
        assert_eq!(ran.code, 0, "{test}: {}", ran.err);
        says(&ran, &[told, ": 60 texts"]);
    }
    // Three columns without names are not guessed; the message says what to set, and it works.
    let (home, set) = files("own_bare_three", "", &three);
    let ran = train(&home, &set, &[]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    says(&ran, &["train.csv", "Title 0 of the day", "data.text", "data.label"]);
    let ran = train(&home, &set, &["data.text=2,3", "data.label=1"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    says(&ran, &[told, "text: column 2 + 3, label: column 1, no header"]);
    // Names that nobody knows.
    let (home, set) = files("own_foreign", "rubrik,inhalt,titel\n", &foreign);
    let ran = train(&home, &set, &[]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    says(&ran, &["rubrik", "inhalt", "data.text", "data.label"]);
    let ran = train(&home, &set, &["data.text=titel,inhalt", "data.label=rubrik"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    says(&ran, &[told, "text: column 'titel' + 'inhalt', label: column 'rubrik'"]);
    let ran = train(&home, &set, &["data.text=rubrik", "data.label=titel"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    says(&ran, &["column 'titel' has 60 different values in 60 rows", "not labels", "data.label"]);
    let ran = train(&home, &set, &["data.text=titel", "data.label=rubrk"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    says(&ran, &["data.label", "did you mean 'rubrik'?"]);
}

#[test]
fn a_label_that_was_not_learned_makes_a_short_message() {
    let (home, set) = files("own_new_label", "label,title,description\n", &three);
    for part in ["valid", "test"] {
        let path = home.join(format!("{part}.csv"));
        let kept = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{kept}Weather,Rain,\"It rains.\"\n")).unwrap();
        let ran = train(&home, &set, &[]);
        assert_eq!(ran.code, 2, "{}", ran.err);
        says(&ran, &[&format!("{part}.csv: line "), "\"Weather\"", "World, Sports"]);
        fs::write(&path, kept).unwrap();
    }
    // A file of reviews whose columns were exchanged, as long as a book.
    let reviews: String =
        (0..9000).map(|i| format!("{},review number {i} of many, at length\n", i % 2)).collect();
    let file = home.join("reviews.csv");
    fs::write(&file, reviews).unwrap();
    let ran = train(
        &home,
        &[format!("data.train={}", file.display())],
        &["data.text=1", "data.label=2", "data.header=false"],
    );
    assert_eq!(ran.code, 2);
    assert!(ran.err.chars().count() <= 1000, "{} characters", ran.err.chars().count());
}

#[test]
fn what_a_run_reads_is_told_in_the_terms_of_its_task() {
    let home = folder("own_terms");
    let put = |name: &str, text: &str| {
        fs::write(home.join(name), text).unwrap();
        home.join(name).display().to_string()
    };
    let out = home.join("run").display().to_string();
    let run = |recipe: &str, settings: &[&str]| {
        let _ = fs::remove_dir_all(&out);
        let mut args = vec!["train", recipe, "--out", &out];
        for set in ["train.steps=1", "train.eval_every=1", "train.batch_tokens=300"] {
            args.extend(["--set", set]);
        }
        settings.iter().for_each(|set| args.extend(["--set", set]));
        let ran = alone(&args);
        assert_eq!(ran.code, 0, "{recipe}: {}", ran.err);
        ran
    };
    let play = put("play.txt", &"To be, or not to be: that is the question.\n".repeat(40));
    let tiny = ["model.n_embd=8", "model.n_layer=1", "model.n_head=2"];
    let train = format!("data.train={play}");
    let ran = run("shakespeare-gpt-small", &[&[train.as_str()], &tiny[..]].concat());
    says(
        &ran,
        &[
            &format!("train  {play}: 1,548 characters"),
            &format!("valid  the last tenth of {play}: 172 characters"),
        ],
    );

    for (part, count) in [("train", 30), ("valid", 6), ("test", 4)] {
        let lines =
            |word: &str| -> String { (0..count).map(|i| format!("{word} {i}\n")).collect() };
        put(&format!("{part}.en"), &lines("the sentence number"));
        put(&format!("{part}.fr"), &lines("la phrase numéro"));
    }
    let pairs = format!("data.folder={}", home.display());
    let small = ["model.embedding_size=8", "model.hidden_size=8", "vocabulary.shared.size=100"];
    let ran = run("tatoeba-en-fr-bahdanau", &[&[pairs.as_str()], &small[..]].concat());
    let file = |name: &str| home.join(name).display().to_string();
    says(
        &ran,
        &[
            &format!("train  {} and {}: 30 pairs", file("train.en"), file("train.fr")),
            "valid  ",
            "6 pairs",
            "4 pairs",
            "from en to fr, first: \"the sentence number 0\" → \"la phrase numéro 0\"",
        ],
    );
    let measured = alone(&["eval", &out, "--set", "decode.num_beams=1"]);
    assert!(
        measured.out.contains("4 sentences of files, test"),
        "{}{}",
        measured.out,
        measured.err
    );
    let measured =
        alone(&["eval", &out, "--part", "valid", "--set", "decode.num_beams=1", "--json"]);
    let measured: serde_json::Value = serde_json::from_str(&measured.out).unwrap();
    assert_eq!((&measured["data"], &measured["part"]), (&"files".into(), &"valid".into()));

    let mut nodes = String::new();
    for node in 0..20 {
        let part = ["train", "val", "test"][node % 3];
        nodes += &format!("{node}\t{part}\t{}\t{}\n", ["red", "blue"][node % 2], node % 4);
    }
    let (nodes, edges) = (put("nodes.tsv", &nodes), put("edges.tsv", "0 1\n1 2\n3 4\n"));
    let graph = [format!("data.nodes={nodes}"), format!("data.edges={edges}")];
    let ran = run("cora-gat", &[&graph[0], &graph[1]]);
    says(
        &ran,
        &[
            &format!("data   {nodes} and {edges}: 20 nodes, 3 edges, 20 labels"),
            "2 classes: blue (",
        ],
    );

    let row =
        |n: usize, form: &str, tag: &str| format!("{n}\t{form}\t_\t{tag}\t_\t_\t_\t_\t_\t_\n");
    let sentence =
        row(1, "Ann", "PROPN") + &row(2, "sees", "VERB") + &row(3, "Bob", "PROPN") + "\n";
    let words = put("words.conllu", &sentence.repeat(10));
    let tags = [format!("data.train={words}"), format!("data.valid={words}")];
    let ran = run("ewt-words", &[&tags[0], &tags[1], "vocabulary.size=60"]);
    says(&ran, &["10 sentences, 30 words", "2 labels: PROPN (20), VERB (10)"]);
}

#[test]
fn a_file_name_is_no_text() {
    let home = folder("own_name_as_text");
    let file = home.join("texts.txt");
    fs::write(&file, "They are watching.\nI am hungry.\n").unwrap();
    let name = file.to_str().unwrap();
    let run = |args: &[&str]| {
        let ran = regard(args);
        assert_eq!(ran.code, 2, "{args:?}: {}{}", ran.out, ran.err);
        ran.err
    };
    let told = run(&["translate", name, "--model", "en-fr"]);
    // The command that is told works.
    let hint = told.split("lines of the file: ").nth(1).unwrap().lines().next().unwrap();
    assert_eq!(hint, format!("regard translate --model en-fr < {name}"));
    let (args, _) = hint.trim_start_matches("regard ").split_once(" < ").unwrap();
    let args: Vec<&str> = args.split(' ').collect();
    let lines = piped(&args, &fs::read(&file).unwrap());
    assert_eq!(String::from_utf8(lines.stdout).unwrap().lines().count(), 2);
    // Standard input is always text.
    let forced = piped(&args, format!("{name}\n").as_bytes());
    assert_eq!(forced.status.code(), Some(0));
    for verb in ["tag", "generate", "score"] {
        let told = run(&[verb, name]);
        assert!(told.contains(&format!("regard {verb} < {name}")), "{told}");
    }
    let golden = |name: &str| {
        let folder =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/reading").join(name);
        folder.display().to_string()
    };
    for (verb, model) in [
        ("classify", "BertForSequenceClassification"),
        ("fill", "BertForMaskedLM"),
        ("embed", "BertModel"),
    ] {
        let model = golden(model);
        let told = run(&[verb, name, "--model", &model]);
        assert!(told.contains(&format!("regard {verb} --model {model} < {name}")), "{told}");
    }
    let told = run(&["answer", "Where is John?", "--context", name]);
    assert!(told.contains(&format!("--file {name}")), "{told}");
    let told = run(&["answer", name, "--context", "John went home."]);
    assert!(told.contains(&format!("< {name}")), "{told}");
    let told = run(&["summarize", name, "--model", "nowhere"]);
    assert!(told.contains(&format!("regard summarize --model nowhere --file {name}")), "{told}");
}

/// The hashes of a run's data tell an evaluation that a file has changed.
#[test]
fn data_that_changed_since_a_run_are_told_when_it_is_measured() {
    let (home, set) = files("own_changed", "label,title,description\n", &three);
    assert_eq!(train(&home, &set, &[]).code, 0);
    let run = home.join("run").display().to_string();
    let measured = alone(&["eval", &run, "--part", "valid"]);
    assert_eq!((measured.code, measured.err.contains("changed since")), (0, false));
    let valid = home.join("valid.csv");
    let more = fs::read_to_string(&valid).unwrap() + "Sports,Another title,Another text\n";
    fs::write(&valid, more).unwrap();
    let measured = alone(&["eval", &run, "--part", "valid"]);
    assert_eq!(measured.code, 0, "{}", measured.err);
    let changed = format!("1 data file changed since the run began, {} first", valid.display());
    says(&measured, &[&changed]);
    // Files that the run did not read are not compared.
    let measured = alone(&["eval", &run]);
    assert_eq!((measured.code, measured.err.contains("changed")), (0, false), "{}", measured.err);
    // A checkpoint is no run.
    let part = format!("{run}/model");
    let resumed = alone(&["train", "--resume", &part]);
    assert_eq!(resumed.code, 2);
    says(&resumed, &[&format!("name the run: regard train --resume {run}")]);
    // A pair needs two texts.
    let pair = alone(&["classify", "--pair", "one text", "--model", &run]);
    assert_eq!(pair.code, 2, "{}", pair.out);
    says(&pair, &["--pair: there is no tab between"]);
    let lines = piped(&["classify", "--pair", "--model", &run], b"one text\nfirst\tsecond\n");
    let (out, err) = (String::from_utf8(lines.stdout), String::from_utf8(lines.stderr).unwrap());
    assert_eq!((lines.status.code(), out.unwrap().lines().count()), (Some(1), 2), "{err}");
    assert!(err.contains("line 1") && err.contains("there is no tab between"), "{err}");
}

/// A key of a model that does not exist would leave a default in its place.
#[test]
fn misspelt_keys_of_models_and_models_too_large_are_told() {
    let (home, set) = files("own_model_keys", "label,title,description\n", &three);
    let ran = train(&home, &set, &["model.hiden_size=3"]);
    assert_eq!(ran.code, 2, "{}", ran.out);
    says(&ran, &["no such key", "hiden_size", "did you mean 'hidden_size'?"]);
    let run = home.join("large").display().to_string();
    let mut args = vec!["train", "sst2-words", "--memory", "1MB", "--out", &run];
    set.iter().for_each(|each| args.extend(["--set", each]));
    let ran = alone(&args);
    assert_eq!(ran.code, 2, "{}", ran.out);
    says(&ran, &["parameters take about", "to train", "the limit is 1 MB"]);
    args[3] = "a lot";
    assert_eq!(alone(&args).code, 2);
}

/// A recipe can begin with one that is built in, wherever it is.
#[test]
fn a_base_may_be_built_in() {
    let file = folder("own_base").join("mine.toml");
    fs::write(&file, "name = \"mine\"\nbase = \"sst2-words\"\n[train]\nsteps = 7\n").unwrap();
    let ran = alone(&["train", file.to_str().unwrap(), "--dump-config"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("steps = 7") && ran.out.contains("bilstm"), "{}", ran.out);
    fs::write(&file, "name = \"mine\"\nbase = \"nothing\"\n").unwrap();
    fails(&["train", file.to_str().unwrap()], &["no recipe \"nothing\"", "nor built in"]);
}

/// Which number stands for which name is told, and a number is not taken for a name.
#[test]
fn labels_that_are_numbers_are_told_what_they_stand_for() {
    let (home, set) = files("own_numbers", "label,title,description\n", &three);
    assert_eq!(train(&home, &set, &[]).code, 0);
    let run = home.join("run").display().to_string();
    let numbers = home.join("numbers.csv");
    let rows = (0..4).map(|i| format!("{i},A title {i},A text {i}\n"));
    fs::write(&numbers, format!("label,title,description\n{}", rows.collect::<String>())).unwrap();
    let measured = alone(&["eval", &run, "--data", numbers.to_str().unwrap()]);
    assert_eq!(measured.code, 0, "{}", measured.err);
    let told = "they are read as the model's labels: 0 = World, 1 = Sports";
    assert!(measured.out.contains(told), "{}", measured.out);
    let mut settings = vec![format!("data.train={}", numbers.display())];
    settings.push(format!("data.valid={}", numbers.display()));
    let ran = train(&home, &settings, &[]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let others = home.join("others.csv");
    fs::write(&others, "label,title,description\n7,A title,A text\n").unwrap();
    let measured = alone(&["eval", &run, "--data", others.to_str().unwrap()]);
    assert_eq!(measured.code, 2, "{}", measured.out);
    says(&measured, &["the model has no label \"7\""]);
}
