//! Error messages: the key or file, what was found, what is needed,
//! and a command that works.

use crate::program::{Ran, command, fails, finish, folder, json, piped, regard};
use std::fs;
use std::path::{Path, PathBuf};

fn golden(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/reading").join(name);
    folder.display().to_string()
}

/// The root of the repository, which has the folders of the built-in models in models/.
fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
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
    let search = |value: &str, says: &[&str]| {
        let set = format!("decode.early_stopping={value}");
        fails(&["train", "multi30k-transformer", "--dump-config", "--set", &set], says)
    };
    let needs = "need false, true or \"never\"";
    search("often", &[&format!("decode.early_stopping: got \"often\", {needs}")]);
    search("3", &[&format!("decode.early_stopping: {needs}")]);
}

/// The keys of a model are read when it is made, after the data.
#[test]
fn values_of_the_wrong_kind_in_a_model_name_their_key() {
    let home = folder("messages_model");
    let rows: String = (0..20).map(|i| format!("text {i}\t{}\n", ["bad", "good"][i % 2])).collect();
    fs::write(home.join("rows.tsv"), rows).unwrap();
    fs::write(home.join("text.txt"), "To be, or not to be. ".repeat(200)).unwrap();
    let needs = "got \"abc\", need a whole number, 0 or more";
    for (recipe, data, key) in [
        ("sort-10", "", "model.hidden_size"),
        ("molecules-gat", "", "model.hidden_size"),
        ("sst2-words", "data.train=rows.tsv", "model.hidden_size"),
        ("shakespeare-gpt", "data.train=text.txt", "model.n_embd"),
    ] {
        let mut train =
            command(&["train", recipe, "--set", &format!("{key}=abc"), "--out", recipe]);
        if !data.is_empty() {
            train.args(["--set", data]);
        }
        train.current_dir(&home);
        let ran = finish(train);
        assert_eq!(ran.code, 2, "{recipe}: {}{}", ran.out, ran.err);
        says(&ran, &[&format!("{key}: {needs}")]);
        assert!(!ran.err.contains("invalid type"), "{}", ran.err);
    }
    // The same in a model's folder, where the file is named.
    let model = home.join("hull");
    fs::create_dir_all(&model).unwrap();
    for file in ["config.json", "generation_config.json", "model.safetensors"] {
        fs::copy(repository().join("models/hull").join(file), model.join(file)).unwrap();
    }
    let point = || {
        let points = ["0 0", "1 0", "1 1", "0.2 0.3"].join(" ");
        let mut point = command(&["point", &points, "--model", "./hull"]);
        point.current_dir(&home);
        finish(point)
    };
    assert_eq!(point().code, 0, "{}", point().err);
    for (file, key, value, wanted) in [
        ("generation_config.json", "num_beams", "abc", needs),
        ("generation_config.json", "early_stopping", "often", "got \"often\", need false, true or"),
        ("config.json", "hidden_size", "abc", needs),
    ] {
        let whole = fs::read_to_string(model.join(file)).unwrap();
        let mut changed: serde_json::Value = serde_json::from_str(&whole).unwrap();
        changed[key] = value.into();
        fs::write(model.join(file), changed.to_string()).unwrap();
        let ran = point();
        assert_eq!(ran.code, 2, "{}", ran.out);
        says(&ran, &[&format!("./hull/{file}: {key}: {wanted}")]);
        fs::write(model.join(file), whole).unwrap();
    }
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
    says(
        &ran,
        &[
            "data.held_out: got \"\", need sst2-phrases, sst2-sentences, ud-english-ewt-genres or files",
        ],
    );
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
    fails(
        &["attend", "--translate", "x", "--model", "tatoeba-en-fr-transformer"],
        &["--model en-fr"],
    );
    let bert = golden("BertModel");
    let home = folder("messages_heads");
    let put = |name: &str, rows: String| {
        fs::write(home.join(name), rows).unwrap();
        home.join(name).display().to_string()
    };
    let ask = |i: usize| {
        format!("{{\"context\": \"the cat {i}\", \"question\": \"what\", \"answer\": \"cat\"}}\n")
    };
    let label = |i: usize| format!("the cat {i},{}\n", ["a", "b"][i % 2]);
    let [asked, labelled, tagged] = [
        put("asked.jsonl", (0..30).map(ask).collect()),
        put("labelled.csv", "text,label\n".to_string() + &(0..30).map(label).collect::<String>()),
        put("tagged.conll", (0..30).map(|i| format!("cat{i}\tN\nsat\tV\n\n")).collect()),
    ];
    for (verb, file, more) in [
        ("answer", &asked, &["--context", "a text"][..]),
        ("classify", &labelled, &[]),
        ("tag", &tagged, &[]),
    ] {
        let ran = regard(&[&[verb, "a text", "--model", &bert][..], more].concat());
        assert_eq!(ran.code, 2);
        let hint = format!("regard train {verb} --data FILE --from ");
        says(&ran, &["BertModel", &hint]);
        let told = ran.err.split("regard ").last().unwrap().trim();
        let args: Vec<&str> =
            told.split(' ').map(|word| if word == "FILE" { file } else { word }).collect();
        let checked = regard(&[&args[..], &["--dry-run"]].concat());
        assert_eq!(checked.code, 0, "{told}: {}", checked.err);
    }
    // A model that lacks such a head is no start; a model without a head does nothing but embed.
    let words = repository().join("models/en-pos").display().to_string();
    fails(
        &["answer", "a text", "--context", "a", "--model", &words],
        &["regard train answer --data FILE --from sentence-transformers/all-MiniLM-L6-v2"],
    );
    fails(
        &["summarize", "a text", "--model", &bert],
        &["embeds texts (regard embed)", "regard train summarize --data FILE"],
    );
    fails(&["fill", "a [MASK]", "--model", &bert], &["BertModel", "masked tokens"]);
    fails(
        &["answer", "Who wrote Hamlet?", "--context", "Hamlet was written by Shakespeare."],
        &["\"Hamlet\"", "145 words", "--model MODEL", "regard train squad-minilm"],
    );
}

/// In a clone, models/ comes before the built-in models.
#[test]
fn a_folder_for_something_else_says_what_to_do() {
    let here = |args: &[&str]| {
        let mut command = command(args);
        command.current_dir(repository());
        finish(command)
    };
    let translates = "--model: models/en-fr is a model that translates (regard translate); this \
                      command needs a model that ";
    let generates = "--model: models/shakespeare is a model that generates text (regard generate, \
                     regard chat and regard score); this command needs a model that ";
    for (args, begin, needs) in [
        (&["classify", "x", "--model", "en-fr"][..], translates, "classifies texts"),
        (&["tag", "x", "--model", "en-fr"], translates, "tags words"),
        (&["embed", "x", "--model", "en-fr"], translates, "embeds texts"),
        (&["generate", "x", "--model", "en-fr"], translates, "generates text"),
        (&["summarize", "x", "--model", "en-fr"], translates, "summarizes texts"),
        (
            &["answer", "x", "--context", "y", "--model", "en-fr"],
            translates,
            "answers questions about a text",
        ),
        (
            &["point", "0 0 1 0 1 1", "--model", "en-fr"],
            translates,
            "selects or orders points of a set",
        ),
        (&["tag", "x", "--model", "shakespeare"], generates, "tags words"),
        (&["translate", "x", "--model", "shakespeare"], generates, "translates"),
    ] {
        let ran = here(args);
        assert_eq!(ran.code, 2, "{args:?}: {}{}", ran.out, ran.err);
        says(&ran, &[&format!("{begin}{needs}. `regard models` lists all")]);
    }
    let ran = here(&["generate", "x", "--model", "en-pos"]);
    assert_eq!(ran.code, 2);
    says(&ran, &["models/en-pos: bilstm (", "need a causal language model, such as gpt2"]);
    // Commands that take the models of other tasks still do.
    for args in [
        &["embed", "To be", "--model", "shakespeare"][..],
        &["score", "To be", "--model", "shakespeare"],
        &["translate", "Go.", "--model", "en-fr"],
        &["answer", "Where is Mary?", "--context", "Mary went to the office."],
    ] {
        assert_eq!(here(args).code, 0, "{args:?}: {}", here(args).err);
    }
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
    let instead = "Without a network, use a folder, or an id that was downloaded before: --model \
                   FOLDER; for training --from FOLDER or --set from=FOLDER";
    says(&ran, &["cannot be reached", instead]);
}

#[test]
fn options_that_do_not_go_together_name_themselves() {
    fails(&["attend", "--translate", "Go on!", "--head", "3"], &["--head", "FILE", "model's own"]);
    fails(&["attend", "--translate", "Go on!", "--batch", "1"], &["--batch"]);
    for (option, name) in [
        (&["--head", "1"][..], "--head"),
        (&["--batch", "1"], "--batch"),
        (&["--save", "out.npz"], "--save"),
        (&["--rows", "1:2", "--save", "out.npz", "--head", "1"], "--head"),
        (&["--mask", "causal"], "the option for the score, mask, bias or normaliser"),
    ] {
        let told = format!(
            "attend --demo: leave out {name}: it is for a FILE of q, k and v; the demo draws four \
             fixed kinds of attention"
        );
        fails(&[&["attend", "--demo"], option].concat(), &[&told]);
    }
    assert_eq!(regard(&["attend", "--demo", "--rows", "0:2", "--keys", "0:2"]).code, 0);
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
    says(&ran, &["is installed\n\nTo get it by hand:\n  what:"]);
    assert!(!ran.err.contains("is not on this machine"), "{}", ran.err);
    let train = regard(&["train", "--help"]).out + &regard(&["eval", "--help"]).out;
    assert!(train.contains("the source and its reference (--source, --target)"), "{train}");
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
    let read = "source: column 1, target: column 2 (no header)";
    assert!(measured.err.contains(read), "{}", measured.err);
    assert!(measured.out.contains("16–16") || measured.out.contains("–16"), "{}", measured.out);
    assert!(!measured.err.contains("swapped"), "{}", measured.err);
    // Chinese has no spaces: the shortest source is counted in characters, too.
    for (least, left) in [("2", 6), ("6", 2)] {
        let args = ["eval", "--model", "zh-en", "--data", &right, "--min-words", least, "--json"];
        assert_eq!(json(&args)["sentences"], left, "{least}");
    }
    fails(
        &["eval", "--model", "zh-en", "--data", &right, "--min-words", "50"],
        &["--min-words 50: no source has that many characters"],
    );
    fails(
        &["eval", "--model", "en-fr", "--data", &wrong, "--min-words", "50"],
        &["--min-words 50: no source has that many words"],
    );
    let measured = regard(&["eval", "--model", "zh-en", "--data", &wrong]);
    says(&measured, &["wrong.tsv", "look swapped", "--source 2 --target 1"]);
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
    let sets = "its data sets are multi30k, tatoeba-fra-eng, tatoeba-cmn-eng, cmudict";
    let none = "--data: there is no file and no data set \"nofile\" of this task; ";
    fails(&["eval", "--model", "en-fr", "--data", "nofile"], &[&format!("{none}{sets}")]);
    let near = format!("data set \"multi30\" of this task; did you mean 'multi30k'? {sets}");
    fails(&["eval", "--model", "en-fr", "--data", "multi30"], &[&near]);
    fails(
        &["eval", "--model", "shakespeare", "--data", "nofile"],
        &[none, "its data sets are tinyshakespeare, wikitext-2, wikitext-2-raw"],
    );
    fails(
        &["eval", "--model", "shakespeare", "--data", "wikitext-2-raw", "--part", "valid"],
        &["--data wikitext-2-raw: got \"wikitext-2-raw\", need tinyshakespeare or wikitext-2 ("],
    );
}

#[test]
fn a_model_is_not_evaluated_as_a_recipe() {
    let told = "eval: en-fr is a built-in model, not a recipe: regard eval --model en-fr";
    fails(&["eval", "en-fr"], &[told]);
    let mut eval = command(&["eval", "en-fr"]);
    eval.current_dir(repository());
    says(&finish(eval), &[told]);
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
    for (name, mean) in
        [("agnew", "did you mean 'agnews'? "), ("cora-got", "did you mean 'cora-gat'? "), ("?", "")]
    {
        let mut eval = command(&["eval", name]);
        eval.current_dir(&home);
        let ran = finish(eval);
        assert_eq!(ran.code, 2, "{}", ran.out);
        let none = format!("there is no recipe, run or file {name:?}; {mean}");
        says(&ran, &[&format!("{none}`regard recipes` and `regard runs` list them")]);
    }
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
    fails(&["train", table], &["is a data file", "regard train classify --data "]);
    fails(&["tag", table], &["is a table", "regard eval"]);
    fails(&["embed", "a text"], &["--model is required", "all-MiniLM-L6-v2"]);
}
