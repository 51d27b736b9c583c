//! `train TASK --data FILE`: own data in one command, and every defect named with its line.

use crate::program::{Ran, command, fails, finish, folder};
use std::fs;
use std::path::Path;

/// Runs the program in a folder of its own.
fn at(here: &Path, args: &[&str]) -> Ran {
    let mut command = command(args);
    command.current_dir(here).env_remove("REGARD_DATA").env("HF_HUB_OFFLINE", "1");
    finish(command)
}

fn fresh(test: &str) -> std::path::PathBuf {
    let here = folder(test);
    let _ = fs::remove_dir_all(&here);
    fs::create_dir_all(&here).unwrap();
    here
}

/// Rows of news: topic, title, description.
fn news(count: usize) -> String {
    const TOPICS: [&str; 2] = ["sports", "money"];
    const WORDS: [&str; 2] = ["match goal team", "bank market price"];
    let one = |i: usize| {
        format!("{},Title {i},\"About the {}, part {i}\"\n", TOPICS[i % 2], WORDS[i % 2])
    };
    (0..count).map(one).collect()
}

const SHORT: [&str; 6] =
    ["--set", "train.steps=6", "--set", "train.eval_every=3", "--set", "train.warmup=1"];

#[test]
fn one_command_trains_evaluates_and_says_what_is_next() {
    let here = fresh("own_train");
    fs::write(here.join("news.csv"), format!("category,headline,summary\n{}", news(60))).unwrap();
    let flags =
        ["train", "classify", "--data", "news.csv", "--text", "headline,summary", "--quick"];
    let ran = at(&here, &[&flags[..], &SHORT].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    for part in [
        "text: column 'headline' + 'summary', label: column 'category'; 2 labels",
        "48 train, 6 valid, 6 test (split by seed 0)",
        "recipe for classify (quick): cnn",
    ] {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
    for part in
        ["confusion", "sports", "Next:\n  regard classify 'A text.' --model runs/news-classify"]
    {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    let run = here.join("runs/news-classify");
    for name in ["recipe.toml", "model/config.json", "data/train.jsonl", "data/import.json"] {
        assert!(run.join(name).is_file(), "{name}");
    }
    // Every printed command works.
    let ran = at(&here, &["classify", "A goal.", "--model", "runs/news-classify"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(at(&here, &["eval", "news-classify", "--data", "news.csv"]).code, 0);
    assert_eq!(at(&here, &["runs", "runs/news-classify"]).code, 0);
    // The recipe can be used again, and the run is not overwritten.
    let recipe = run.join("recipe.toml").display().to_string();
    let ran = at(&here, &["train", &recipe, "--out", "runs/again"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let ran = at(&here, &flags);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("--out runs/news-classify-2"), "{}", ran.err);
}

#[test]
fn the_data_of_several_seeds_are_not_replaced() {
    let here = fresh("own_seeds");
    fs::write(here.join("news.csv"), format!("category,title,text\n{}", news(60))).unwrap();
    let flags = ["train", "classify", "--data", "news.csv", "--quick", "--out", "runs/x"];
    let all = [&flags[..], &SHORT, &["--seeds", "2"]].concat();
    let ran = at(&here, &all);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let train = here.join("runs/x/data/train.jsonl");
    let before = fs::read(&train).unwrap();
    let ran = at(&here, &[&all[..], &["--seed", "2"]].concat());
    assert_eq!(ran.code, 2, "{}", ran.out);
    let way = "with the seeds 0, 1, which share the data in runs/x/data. To add seeds: regard \
               train --resume runs/x --seeds N; for new runs: --out runs/x-2";
    assert!(ran.err.contains(way), "{}", ran.err);
    assert_eq!(fs::read(&train).unwrap(), before);
    // The command of the message adds a seed, with the same data.
    let ran = at(&here, &["train", "--resume", "runs/x", "--seeds", "3"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("(already trained)"), "{}", ran.err);
    // Other data than those that a seed was trained on are refused.
    fs::write(&train, [&before[..], b"{\"text\": \"x\", \"label\": \"money\"}\n"].concat())
        .unwrap();
    let ran = at(&here, &["train", "--resume", "runs/x", "--seeds", "3"]);
    assert_eq!(ran.code, 2, "{}", ran.out);
    assert!(ran.err.contains("train.jsonl changed after the run was trained"), "{}", ran.err);
    // A command that is refused leaves the plan of the seeds.
    let plan = || fs::read_to_string(here.join("runs/x/seeds-plan.json")).unwrap();
    let before = plan();
    assert!(before.contains("\"count\":3"), "{before}");
    let ran = at(&here, &["train", "--resume", "runs/x", "--seeds", "2"]);
    assert_eq!((ran.code, plan()), (2, before), "{}", ran.err);
}

/// A run reads its own data after it was moved, and from another folder.
#[test]
fn a_run_keeps_its_data_where_it_is() {
    let here = fresh("own_moved");
    fs::write(here.join("news.csv"), format!("category,title,text\n{}", news(60))).unwrap();
    let flags = ["train", "classify", "--data", "news.csv", "--quick", "--out", "runs/x"];
    let ran = at(&here, &[&flags[..], &SHORT].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    fs::rename(here.join("runs/x"), here.join("runs/y")).unwrap();
    // Another run in the old place must not give its data.
    fs::write(here.join("news.csv"), format!("category,title,text\n{}", news(90))).unwrap();
    let ran = at(&here, &[&flags[..], &SHORT].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    for (folder, run) in [(here.clone(), "runs/y"), (here.join("runs"), "y")] {
        let ran = at(&folder, &["eval", run, "--json"]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let said: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(said["asked"], 6, "{said:#}");
        assert!(!ran.err.contains("changed since"), "{}", ran.err);
    }
    let more = ["train", "--resume", "runs/y", "--set", "train.steps=8"];
    let ran = at(&here, &more);
    assert_eq!(ran.code, 0, "{}", ran.err);
}

#[test]
fn a_given_part_without_good_rows_is_refused() {
    let here = fresh("own_empty_part");
    fs::write(here.join("news.csv"), format!("category,title,text\n{}", news(60))).unwrap();
    fs::write(here.join("test.csv"), "category,title,text\n,A title,A text\n").unwrap();
    let flags = ["train", "classify", "--data", "news.csv", "--test", "test.csv", "--skip-bad"];
    let ran = at(&here, &[&flags[..], &["--quick"]].concat());
    assert_eq!(ran.code, 2, "{}", ran.out);
    assert!(ran.err.contains("no example is left of the test part that was given"), "{}", ran.err);
    assert!(!here.join("runs").exists());
}

#[test]
fn a_check_writes_nothing() {
    let here = fresh("own_check");
    fs::write(here.join("news.csv"), format!("category,title,text\n{}", news(40))).unwrap();
    let ran = at(&here, &["train", "classify", "--data", "news.csv", "--dry-run"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("task = \"classify\""), "{}", ran.out);
    assert!(!here.join("runs").exists());
    // What is checked is what would be trained.
    let check = ["train", "classify", "--data", "news.csv", "--dry-run"];
    for json in [&[][..], &["--json"]] {
        for set in ["train.steps=0", "nonsense=1"] {
            let ran = at(&here, &[&check[..], json, &["--set", set]].concat());
            assert_eq!(ran.code, 2, "{set}: {}", ran.out);
        }
    }
    let ran = at(&here, &[&check[..], &["--json", "--set", "train.steps=5"]].concat());
    let said: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(said["recipe"]["train"]["steps"], 5);
    let ran = at(&here, &[&check[..], &["--set", "train.steps=5"]].concat());
    assert!(ran.err.contains(", 5 steps, "), "{}", ran.err);
    let whole = at(&here, &[&check[..], &["--json"]].concat());
    let whole: serde_json::Value = serde_json::from_str(&whole.out).unwrap();
    let seconds = |said: &serde_json::Value| said["seconds"].as_f64().unwrap();
    assert!(seconds(&said) < seconds(&whole), "{said} {whole}");
    // A model that is too large leaves no data behind.
    let ran = at(&here, &["train", "classify", "--data", "news.csv", "--memory", "1KB"]);
    assert_eq!(ran.code, 2, "{}", ran.out);
    assert!(!here.join("runs/news-classify").exists(), "{}", ran.err);
    let ran = at(&here, &["train", "classify", "--data", "news.csv", "--dry-run", "--json"]);
    let said: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&said["fine"], &said["parts"]["train"]), (&true.into(), &32.into()));
    fs::write(here.join("bad.csv"), "category,text\nx,\ny,fine\n").unwrap();
    let ran = at(&here, &["train", "classify", "--data", "bad.csv", "--dry-run", "--json"]);
    let said: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((ran.code, &said["fine"]), (1, &false.into()));
    assert_eq!(said["findings"][0]["line"], 2);
}

#[test]
fn files_that_no_import_wrote_are_not_replaced() {
    let here = fresh("own_keep");
    fs::create_dir_all(here.join("project/data")).unwrap();
    let mine = here.join("project/data/train.jsonl");
    let rows: String = (0..30)
        .map(|i| format!("{{\"text\": \"some text {i}\", \"label\": \"{}\"}}\n", i % 2))
        .collect();
    fs::write(&mine, &rows).unwrap();
    let flags = ["train", "classify", "--data", "project/data/train.jsonl", "--out", "project"];
    let ran = at(&here, &flags);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("holds files that no training wrote"), "{}", ran.err);
    assert_eq!(fs::read_to_string(&mine).unwrap(), rows);
}

#[test]
fn a_task_needs_data_and_data_need_a_task() {
    let here = fresh("own_words");
    fs::write(here.join("news.csv"), news(10)).unwrap();
    for (args, wanted) in [
        (&["train", "classify"][..], "regard train classify --data FILE"),
        (&["train", "news.csv"], "regard train classify --data news.csv"),
        (&["train", "sst2-words", "--data", "news.csv"], "--data goes with a task"),
        (&["train", "clasify", "--data", "news.csv"], "did you mean 'classify'?"),
        (&["train", "generate", "--data", "news.csv", "--label", "x"], "--label does not apply"),
        (&["train", "classify", "--data", "none.csv"], "none.csv"),
        (&["train", "answer", "--data", "news.csv", "--text", "a"], "--text does not apply"),
        (&["train", "--resume", "runs/x", "--data", "news.csv"], "cannot be used with '--data"),
        (&["train", "classify", "--data", "news.csv", "--resume", "x"], "cannot be used with"),
    ] {
        let ran = at(&here, args);
        assert_eq!(ran.code, 2, "{args:?}: {}{}", ran.out, ran.err);
        assert!(ran.err.contains(wanted), "{args:?}: {wanted}: {}", ran.err);
    }
    fails(&["train", "sort-10", "--quick"], &["--data"]);
}

/// Task, name, contents, flags, and the finding.
type Defect<'a> = (&'a str, &'a str, Vec<u8>, &'a [&'a str], &'a str);

/// A broken file of each kind: name, contents, flags, and the finding with its line.
#[test]
fn each_defect_is_reported_with_its_line_and_nothing_is_trained() {
    let here = fresh("own_defects");
    let good = news(30);
    let utf16: Vec<u8> =
        [0xff, 0xfe].into_iter().chain("text,label\n".bytes().flat_map(|b| [b, 0])).collect();
    let text = |parts: &[&str]| parts.concat().into_bytes();
    let conll = "John\tB-PER\nsleeps\tO\n\n".repeat(10);
    let edges = "source,target\na,b\nb,c\n";
    fs::write(here.join("edges.csv"), edges).unwrap();
    fs::write(here.join("ghost.csv"), "source,target\na,b\nb,zz\n").unwrap();
    fs::write(here.join("short.fr"), "un\ndeux\n").unwrap();
    fs::create_dir_all(here.join("pictures/cat")).unwrap();
    fs::create_dir_all(here.join("pictures/dog")).unwrap();
    let png = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/shapes/circle/00.png");
    for name in ["cat/a.png", "cat/b.png", "cat/c.png", "dog/d.png"] {
        fs::copy(&png, here.join("pictures").join(name)).unwrap();
    }
    fs::write(here.join("pictures/dog/broken.png"), &fs::read(&png).unwrap()[..60]).unwrap();
    let wav = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/tones/rising/00.wav");
    for name in ["yes", "no"] {
        fs::create_dir_all(here.join("sounds").join(name)).unwrap();
        for i in 0..3 {
            fs::copy(&wav, here.join(format!("sounds/{name}/{i}.wav"))).unwrap();
        }
    }
    fs::write(here.join("sounds/no/cut.wav"), &fs::read(&wav).unwrap()[..30]).unwrap();
    let header = "category,title,body\n";
    let nodes = "id,label,size\na,x,1\nb,y,2\nc,x,3\n";
    let rows: Vec<Defect> = vec![
        ("classify", "a.csv", text(&[header, &good, "x,,\n"]), &[], "line 32: the text is empty"),
        ("classify", "b.csv", text(&[header, &good, ",t,b\n"]), &[], "line 32: the label is empty"),
        ("classify", "c.csv", text(&[header, &good, "x,y\n"]), &[], "line 32: has 2 columns"),
        ("classify", "d.csv", text(&[header, &good, "x,a, b,c\n"]), &[], "line 32: has 4 columns"),
        (
            "classify",
            "e.csv",
            text(&[header, &good, "x,\"open,b\n"]),
            &[],
            "quotation marks of line 32",
        ),
        (
            "classify",
            "f.csv",
            text(&[header, &good, "x,\"a\"b,c\n"]),
            &[],
            "line 32: got \"b\" after a quotation",
        ),
        (
            "classify",
            "g.csv",
            [header.as_bytes(), b"x,caf\xe9,y\n", good.as_bytes()].concat(),
            &[],
            "line 2: not UTF-8 at byte 6",
        ),
        ("classify", "h.csv", utf16, &[], "is UTF-16; convert it"),
        (
            "classify",
            "i.csv",
            text(&["text,label\na,x\nb,x\nc,x\n"]),
            &[],
            "line 2: every row has the label \"x\"",
        ),
        (
            "classify",
            "j.csv",
            text(&[header, &good]),
            &["--label", "title", "--text", "body"],
            "looks like text, not labels",
        ),
        (
            "classify",
            "k.csv",
            text(&[header, &good]),
            &["--label", "kategory"],
            "did you mean 'category'?",
        ),
        (
            "classify",
            "l.jsonl",
            text(&["{\"text\": \"a\", \"label\": \"x\"}\n{\"text\": \"b\"\n"]),
            &[],
            "line 2: is not JSON",
        ),
        (
            "classify",
            "m.jsonl",
            text(&["{\"text\": \"a\", \"label\": \"x\"}\n{\"text\": \"b\"}\n"]),
            &[],
            "line 2: the label is empty",
        ),
        ("classify", "n.csv", b"".to_vec(), &[], "has no rows"),
        ("classify", "o.csv", b"PK\x03\x04rest".to_vec(), &[], "spreadsheet"),
        ("translate", "p.tsv", text(&["one\tun\n", "two\t\n", "three\ttrois\n"]), &[], "line 2"),
        ("translate", "q.en", text(&["one\ntwo\nthree\n"]), &["--data", "short.fr"], "short.fr"),
        ("tag", "r.conll", text(&[&conll, "Mary\n\n"]), &[], "line 31"),
        (
            "answer",
            "s.jsonl",
            text(&["{\"context\": \"A cat.\", \"question\": \"Who?\", \"answer\": \"dog\"}\n"]),
            &[],
            "line 1",
        ),
        ("rerank", "t.csv", text(&["query,text,label\nq,t,1\nq,u,often\n"]), &[], "line 3"),
        ("classify-graph", "u.csv", text(&[nodes]), &["--edges", "ghost.csv"], "line 3"),
        (
            "classify-graph",
            "v.csv",
            text(&[nodes, "d,x,tall\n"]),
            &["--edges", "edges.csv"],
            "line 5",
        ),
        ("classify-graph", "w.csv", text(&[nodes, "a,x,4\n"]), &["--edges", "edges.csv"], "line 5"),
        ("classify-image", "pictures", vec![], &[], "broken.png"),
        ("recognize", "sounds", vec![], &[], "cut.wav"),
        ("generate", "x.txt", b"too short\n".to_vec(), &[], "a language model needs at least"),
        (
            "generate",
            "y.txt",
            [&b"line\n".repeat(900)[..], b"\xff\xfe\n"].concat(),
            &[],
            "line 901: not UTF-8",
        ),
    ];
    for (task, name, bytes, flags, wanted) in rows {
        if !bytes.is_empty() || !here.join(name).exists() {
            fs::write(here.join(name), bytes).unwrap();
        }
        let ran = at(&here, &[&["train", task, "--data", name, "--quick"], flags].concat());
        assert_eq!(ran.code, 2, "{task} {name}: {}{}", ran.out, ran.err);
        assert!(ran.err.contains(wanted), "{task} {name}: {wanted}: {}", ran.err);
        assert!(ran.err.contains(name) || ran.err.contains("short.fr"), "{name}: {}", ran.err);
        assert!(ran.err.contains("nothing was trained"), "{name}: {}", ran.err);
        assert!(!here.join("runs").exists(), "{name} left a run");
    }
}
