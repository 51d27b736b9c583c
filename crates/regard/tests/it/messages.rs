//! Error messages: the key or file, what was found, what is needed,
//! and a command that works.

use crate::program::{Ran, command, fails, finish, folder, json, piped, regard};
use std::fs;
use std::path::Path;

fn golden(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/reading").join(name);
    folder.display().to_string()
}

fn says(ran: &Ran, parts: &[&str]) {
    for part in parts {
        assert!(ran.err.contains(part), "should say {part:?}: {}{}", ran.out, ran.err);
    }
}

#[test]
fn values_of_the_wrong_kind_name_their_key() {
    let set = |value: &str, says: &[&str]| {
        fails(&["train", "sst2-words", "--dump-config", "--set", value], says)
    };
    set("train.steps=abc", &["train.steps: got \"abc\", need a whole number"]);
    set("train.steps=-3", &["train.steps: got -3, need a whole number, 0 or more"]);
    set("train.lr=fast", &["train.lr: got \"fast\", need a number"]);
    set("vocabulary.lowercase=maybe", &["vocabulary.lowercase: got \"maybe\", need true or false"]);
    set("data.set=3", &["data.set: got 3, need a text"]);
    set("train.stesp=5", &["train.stesp", "no such key", "did you mean 'steps'?"]);
    set("trian.steps=5", &["trian", "no such key", "did you mean 'train'?"]);
    set("data.trian=x.csv", &["data.trian", "no such key", "did you mean 'train'?"]);
}

#[test]
fn names_that_are_nearly_right_are_told() {
    let recipes = json(&["recipes", "--json"]).as_array().unwrap().len();
    let all = format!("`regard recipes` lists all {recipes}");
    fails(
        &["train", "multi30k-transfomer"],
        &["multi30k-transfomer", "did you mean 'multi30k-transformer'?", &all],
    );
    fails(&["recipes", "cora-got"], &["did you mean 'cora-gat'?"]);
    fails(&["data", "multi30"], &["did you mean 'multi30k'?", "`regard data` lists all"]);
    let train = |set: &str| {
        let mut train = command(&["train", "sst2-words", "--set", set, "--out", "nowhere/at/all"]);
        train.current_dir(folder("messages_names"));
        finish(train)
    };
    let ran = train("data.set=sst2-phrase");
    assert_eq!(ran.code, 2);
    says(&ran, &["data.set: got \"sst2-phrase\"", "did you mean 'sst2-phrases'?"]);
    // What a key that is set to nothing needs is told of that key, where the training data are.
    let rows: String = (0..8).map(|i| format!("text {i}\t{}\n", i % 2)).collect();
    let file = folder("messages_held_out").join("rows.tsv");
    fs::write(&file, rows).unwrap();
    let file = format!("data.train={}", file.display());
    let mut train = command(&["train", "sst2-words", "--set", &file, "--set", "data.held_out="]);
    train.args(["--out", "nowhere"]).current_dir(folder("messages_names"));
    let ran = finish(train);
    assert_eq!(ran.code, 2);
    says(&ran, &["data.held_out: got \"\", need sst2-phrases, sst2-sentences or files"]);
    let mut offline = command(&["translate", "x", "--model", "en-ft"]);
    offline.env("HF_HUB_OFFLINE", "1").env("HF_HOME", folder("messages_hub"));
    let ran = finish(offline);
    assert_eq!(ran.code, 2);
    says(&ran, &["en-ft", "did you mean 'en-fr'?"]);
}

#[test]
fn no_message_is_longer_than_a_screen() {
    let long = "x".repeat(30_000);
    let key = format!("train.{long}=1");
    let value = format!("train.steps={long}");
    let label = format!("data.label={long}");
    let home = folder("messages_long");
    let file = home.join("rows.csv");
    fs::write(&file, format!("{long},{long},{long}\n").repeat(30)).unwrap();
    let file = format!("data.train={}", file.display());
    for args in [
        &["train", &long][..],
        &["recipes", &long],
        &["data", &long],
        &["train", "sst2-words", "--set", &key],
        &["train", "sst2-words", "--set", &value],
        &["train", "sst2-words", "--set", &file, "--out", "nowhere/at/all"],
        &["train", "sst2-words", "--set", &file, "--set", &label, "--out", "nowhere/at/all"],
        &["translate", "x", "--model", &format!("./{long}")],
        &["classify", "x", "--model", &format!("./{long}")],
        &["eval", &long],
        &["attend", "--demo", "--mask", &long],
        &["generate", "x", "--no-such-option", &long],
        &["no-such-verb-at-all"],
    ] {
        let ran = regard(args);
        let length = ran.err.chars().count();
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(length <= 1000 && length > 20, "{length} characters: {}", &ran.err[..900]);
    }
}

#[test]
fn a_model_for_something_else_says_what_to_do() {
    fails(
        &["tag", "a text", "--model", "shakespeare"],
        &["shakespeare", "regard generate", "regard score", "`regard models`"],
    );
    fails(&["classify", "a text"], &["--model", "classifies texts", "regard train sst2-words"]);
    fails(&["fill", "a [MASK]"], &["--model", "masked tokens", "regard train wikitext2-bert"]);
    fails(
        &["attend", "--translate", "x", "--model", "tatoeba-en-fr-transformer"],
        &["--model en-fr"],
    );
    let bert = golden("BertModel");
    for (verb, recipe, more) in [
        ("answer", "squad-minilm", &["--context", "a text"][..]),
        ("classify", "sst2-minilm", &[]),
        ("tag", "ewt-minilm", &[]),
    ] {
        let ran = regard(&[&[verb, "a text", "--model", &bert][..], more].concat());
        assert_eq!(ran.code, 2);
        let hint = format!("regard train {recipe} --set from=");
        says(&ran, &["BertModel", &hint]);
        let told = ran.err.split("regard train ").nth(1).unwrap().trim();
        let args: Vec<&str> = told.split(' ').collect();
        assert_eq!(
            json(&[&["train"], &args[..], &["--dump-config", "--json"]].concat())["name"],
            recipe
        );
    }
    fails(&["fill", "a [MASK]", "--model", &bert], &["BertModel", "masked tokens"]);
    fails(
        &["answer", "Who wrote Hamlet?", "--context", "Hamlet was written by Shakespeare."],
        &["\"Hamlet\"", "145 words", "--model MODEL", "regard train squad-minilm"],
    );
}

#[test]
fn a_recipe_that_begins_with_a_model_of_the_hub_can_begin_with_a_folder() {
    let home = folder("messages_from");
    let mut train = command(&["train", "sst2-minilm", "--out", "run"]);
    // Nobody listens at this port.
    train.env("HF_ENDPOINT", "http://127.0.0.1:9").env("HF_HOME", &home).current_dir(&home);
    for name in ["HF_HUB_OFFLINE", "HF_HUB_CACHE", "http_proxy", "HTTP_PROXY", "all_proxy"] {
        train.env_remove(name);
    }
    let ran = finish(train);
    assert_eq!(ran.code, 2);
    says(&ran, &["cannot be reached", "--set from=FOLDER"]);
}

#[test]
fn options_that_do_not_go_together_name_themselves() {
    fails(&["attend", "--translate", "Go on!", "--head", "3"], &["--head", "FILE", "model's own"]);
    fails(&["attend", "--translate", "Go on!", "--batch", "1"], &["--batch"]);
    fails(
        &["embed", "oil prices", "--nearest", "5"],
        &["--nearest", "--words", "regard embed --words king --nearest 5"],
    );
}

#[test]
fn what_failed_comes_before_what_to_do() {
    let home = folder("messages_fetch");
    let mut fetch = command(&["data", "squad", "--fetch"]);
    fetch.env("REGARD_DATA", &home).env("PATH", &home).env_remove("REGARD_DATA_SOURCE");
    let ran = finish(fetch);
    assert_eq!(ran.code, 2);
    let (why, how) = (ran.err.find("neither curl nor wget"), ran.err.find("To get it by hand"));
    assert!(why.unwrap() < how.unwrap(), "{}", ran.err);
    assert!(!ran.err.contains(".: "), "two messages are glued: {}", ran.err);
    let train = regard(&["train", "--help"]).out + &regard(&["eval", "--help"]).out;
    assert!(train.contains("the source sentence, a tab and its"), "{train}");
}

const CHINESE: [(&str, &str); 6] = [
    ("他在看书。", "He is reading a book."),
    ("我饿了。", "I am hungry."),
    ("你在哪里？", "Where are you?"),
    (
        "今天天气很好，我们去公园散步吧。",
        "The weather is nice today, let's go for a walk in the park.",
    ),
    ("我不知道。", "I do not know."),
    ("她是我的朋友。", "She is my friend."),
];

#[test]
fn a_table_of_lengths_and_swapped_columns() {
    let home = folder("messages_pairs");
    let put = |name: &str, line: &dyn Fn(&(&str, &str)) -> String| {
        let path = home.join(name);
        fs::write(&path, CHINESE.iter().map(line).collect::<String>()).unwrap();
        path.display().to_string()
    };
    let right = put("right.tsv", &|(zh, en)| format!("{zh}\t{en}\n"));
    let wrong = put("wrong.tsv", &|(zh, en)| format!("{en}\t{zh}\n"));
    let measured = regard(&["eval", "--model", "zh-en", "--data", &right]);
    assert_eq!(measured.code, 0, "{}", measured.err);
    assert!(measured.out.contains("characters"), "{}", measured.out);
    assert!(measured.out.contains("column 1 is the source"), "{}", measured.out);
    assert!(measured.out.contains("16–16") || measured.out.contains("–16"), "{}", measured.out);
    assert!(!measured.err.contains("swapped"), "{}", measured.err);
    let measured = regard(&["eval", "--model", "zh-en", "--data", &wrong]);
    says(&measured, &["wrong.tsv", "look swapped", "column 1", "column 2"]);
    let object = json(&["eval", "--model", "zh-en", "--data", &wrong, "--json"]);
    assert!(object["warning"].as_str().unwrap().contains("swapped"), "{object}");
    // English and French have the same letters.
    let french = [
        ("They are watching.", "Ils regardent."),
        ("I am hungry.", "J'ai faim."),
        ("Where are you?", "Où es-tu ?"),
        ("He is my friend.", "C'est mon ami."),
        ("I do not know.", "Je ne sais pas."),
        ("We are reading a book.", "Nous lisons un livre."),
    ];
    for (swapped, name) in [(false, "fr.tsv"), (true, "en.tsv")] {
        let line = |(en, fr): &(&str, &str)| match swapped {
            false => format!("{en}\t{fr}\n"),
            true => format!("{fr}\t{en}\n"),
        };
        let path = home.join(name);
        fs::write(&path, french.iter().map(line).collect::<String>()).unwrap();
        let ran = regard(&["eval", "--model", "en-fr", "--data", path.to_str().unwrap()]);
        assert_eq!(ran.err.contains("look swapped"), swapped, "{name}: {}{}", ran.out, ran.err);
    }
}

#[test]
fn a_file_that_is_not_there_is_told() {
    for file in ["nofile.tsv", "no/file", "nofile.csv"] {
        let says = ["--data", "there is no file", file];
        fails(&["eval", "--model", "en-fr", "--data", file], &says);
    }
}

#[test]
fn a_run_can_be_measured_by_its_name() {
    let home = folder("messages_run");
    let rows: String = (0..12).map(|i| format!("text {i}\t{}\n", ["bad", "good"][i % 2])).collect();
    fs::write(home.join("rows.tsv"), rows).unwrap();
    let mut train = command(&["train", "sst2-words", "--out", "runs/agnews"]);
    for set in [
        "data.train=rows.tsv",
        "data.valid=rows.tsv",
        "train.steps=1",
        "train.eval_every=1",
        "vocabulary.size=60",
        "train.average=1",
    ] {
        train.args(["--set", set]);
    }
    train.current_dir(&home);
    let ran = finish(train);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let mut eval = command(&["eval", "agnews"]);
    eval.current_dir(&home);
    let ran = finish(eval);
    assert!(ran.code == 0 && ran.out.contains("12 texts of files"), "{}{}", ran.out, ran.err);
}

#[test]
fn letters_that_a_model_does_not_know_are_told() {
    let ran = regard(&["generate", "Привет 你好", "--max-new-tokens", "3"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    says(&ran, &["does not know", "8 characters", "П"]);
    let ran = regard(&["score", "Привет"]);
    says(&ran, &["does not know 6 characters"]);
    let lines = piped(&["score"], "Привет\nTo be\n".repeat(20).as_bytes());
    let notes = String::from_utf8(lines.stderr).unwrap();
    assert_eq!(notes.lines().count(), 5, "{notes}");
    assert!(regard(&["generate", "ROMEO:", "--max-new-tokens", "3"]).err.is_empty());
    let ran = regard(&["translate", "我 🙂", "--model", "zh-en"]);
    says(&ran, &["does not know 1 character", "🙂"]);
}

#[test]
fn every_key_of_every_recipe_is_explained() {
    let ran = regard(&["recipes", "--keys"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    for key in ["train.keep", "train.floor", "train.reinforce", "train.accumulate"] {
        assert!(ran.out.contains(key), "{key}");
    }
    let explained = json(&["recipes", "--keys", "--json"]);
    let explained: Vec<&str> =
        explained.as_array().unwrap().iter().map(|row| row["key"].as_str().unwrap()).collect();
    for row in json(&["recipes", "--json"]).as_array().unwrap() {
        let recipe = row["name"].as_str().unwrap();
        let dumped = json(&["train", recipe, "--dump-config", "--json"]);
        for (key, value) in dumped.as_object().unwrap() {
            // The keys of a model are those of its config.json.
            let inner = value.as_object().filter(|_| key != "model");
            let keys: Vec<String> = match inner {
                Some(table) => table.keys().map(|inner| format!("{key}.{inner}")).collect(),
                None => vec![key.clone()],
            };
            for key in keys {
                assert!(explained.contains(&key.as_str()), "{recipe}: {key} is not explained");
            }
        }
    }
}

#[test]
fn flags_that_would_change_nothing_are_told() {
    for (flag, of) in [
        (&["--svg", "x.svg"][..], "--graph"),
        (&["--node", "3"], "--graph"),
        (&["--attention", "x.png"], "--image"),
        (&["--index", "3"], "--image"),
    ] {
        let args = [&["classify", "a text", "--model", "nowhere"][..], flag].concat();
        fails(&args, &[flag[0], &format!("needs {of}")]);
    }
    let ran = finish(command(&["translate", "Go.", "--temperature", "0.5"]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    says(&ran, &["without --do-sample, these have no effect: --temperature"]);
    let ran = finish(command(&["translate", "Go.", "--temperature", "0.5", "--do-sample"]));
    assert_eq!((ran.code, ran.err.contains("no effect")), (0, false));
    fails(
        &["translate", "Go.", "--min-length", "30", "--max-length", "20"],
        &["--min-length 30 is above --max-length 20"],
    );
}

/// What a new user tried, and what would have gone wrong without a word.
#[test]
fn near_misses_are_errors() {
    let here = folder("near-misses");
    let table = here.join("mine.csv");
    std::fs::write(&table, "review,stars\ngood,5\nbad,1\n").unwrap();
    let table = table.to_str().unwrap();
    fails(&["translate", "Hello.", "--attend", "never"], &["--attend=never"]);
    for flags in
        [&["attend", "--demo", "--svg", "map.png"][..], &["attend", "--demo", "--html", "a.svg"]]
    {
        fails(flags, &[flags[3], "need a name that ends in"]);
    }
    fails(&["train", table], &["is a data file", "--set data.train="]);
    fails(&["tag", table], &["is a table", "regard eval"]);
    fails(&["embed", "a text"], &["--model is required", "all-MiniLM-L6-v2"]);
}
