//! A command that a message proposes works: each is taken from the message and run by a shell.

use crate::program::{Ran, command, finish, folder};
use std::path::{Path, PathBuf};
use std::process::Command;

fn at(here: &Path, args: &[&str]) -> Ran {
    let mut command = command(args);
    command.current_dir(here).env_remove("REGARD_DATA").env("HF_HUB_OFFLINE", "1");
    command.env("HF_HOME", here.join("hf")).stdin(std::process::Stdio::null());
    finish(command)
}

/// Runs what a message proposes.
fn shell(here: &Path, line: &str) -> Ran {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_regard"));
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).current_dir(here);
    shell.env("PATH", format!("{}:{path}", program.parent().unwrap().display()));
    finish(shell)
}

#[test]
fn proposed_commands_work() {
    let here = folder("hints");
    let here = here.as_path();
    std::fs::write(here.join("rows.tsv"), "good\t1\nbad\t0\n").unwrap();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    // FILE stands for data of the user.
    std::fs::copy(examples.join("reviews.csv"), here.join("reviews.csv")).unwrap();
    for (from, to) in [("shapes/circle", "shapes/circle"), ("tones/rising", "tones/rising")] {
        std::fs::create_dir_all(here.join(to)).unwrap();
        for entry in std::fs::read_dir(examples.join(from)).unwrap().flatten().take(2) {
            std::fs::copy(entry.path(), here.join(to).join(entry.file_name())).unwrap();
        }
    }
    // What is typed, the command in the message, and what is added so that it ends soon.
    let rows: [(&[&str], &str, &str); 16] = [
        (&["train", "no-such"], "regard recipes", ""),
        (&["data", "no-such"], "regard data", ""),
        (&["summarize", "a text"], "regard train aeslc-pointer", " --dump-config"),
        (&["eval", "hull-5"], "regard train hull-5", " --dump-config"),
        (&["point", "0 0", "--problem", "sort"], "regard train sort-10", " --dump-config"),
        (&["embed", "x", "--model", "sort-10"], "regard train sort-10", " --dump-config"),
        (&["tag", "x", "--model", "en-fr"], "regard models", ""),
        (
            &["eval", "sst2-words", "--model", "en-pos", "--data", "rows.tsv"],
            "regard train classify --data FILE",
            " --dry-run",
        ),
        (&["tag", "x", "--model", "hull"], "regard train tag --data FILE", " --help"),
        (&["attend", "They are watching."], "regard attend --translate 'They are watching.'", ""),
        (&["attend", "They", "sleep."], "regard attend --demo 'They sleep.'", ""),
        (&["classify", "--image", "shapes"], "regard classify --image shapes/*/*.png", ""),
        (&["recognize", "tones/rising"], "regard recognize tones/rising/*.wav", ""),
        (
            &["summarize", "FILE", "--model", "x"],
            "regard summarize --model x --file FILE --text text",
            " --help",
        ),
        (&["train", "hull-5", "--set", "nonsense=1"], "regard recipes --keys", ""),
        (
            &["answer", "Who is Hamlet?", "--context", "A b."],
            "regard train squad-minilm",
            " --dump-config",
        ),
    ];
    for (typed, proposed, added) in rows {
        let typed: Vec<&str> =
            typed.iter().map(|word| if *word == "FILE" { "reviews.csv" } else { word }).collect();
        let ran = at(here, &typed);
        assert_eq!(ran.code, 2, "{typed:?}: {}{}", ran.out, ran.err);
        let told = ran.err.replace("reviews.csv", "FILE");
        assert!(told.contains(proposed), "{typed:?} should propose {proposed:?}: {}", ran.err);
        let ran = shell(here, &format!("{proposed}{added}").replace("FILE", "reviews.csv"));
        assert_eq!(ran.code, 0, "{proposed}: {}", ran.err);
    }
}

/// Commands for which no model is built in, and the command that the message tells to type. A model
/// of the Hub stands for a folder of that kind here.
#[test]
fn what_a_command_without_a_model_tells_to_type_works() {
    let here = folder("hints-required");
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/reading");
    std::fs::write(here.join("notes.txt"), "a cat\na house\n").unwrap();
    let rows: [(&[&str], &str, &str); 4] = [
        (&["embed", "a cat"], "sentence-transformers/all-MiniLM-L6-v2", "BertModel"),
        (
            &["search", "notes.txt", "two words"],
            "sentence-transformers/all-MiniLM-L6-v2",
            "BertModel",
        ),
        (
            &["rerank", "a cat", "--texts", "notes.txt"],
            "cross-encoder/ms-marco-MiniLM-L6-v2",
            "BertModel",
        ),
        (
            &["answer", "Who is Ann?", "--context", "Ann is a cat."],
            "distilbert/distilbert-base-cased-distilled-squad",
            "BertForQuestionAnswering",
        ),
    ];
    for (typed, id, model) in rows {
        let ran = at(&here, typed);
        assert_eq!(ran.code, 2, "{typed:?}: {}", ran.out);
        let told = ran.err.split("Type: ").nth(1).unwrap_or_else(|| panic!("{}", ran.err));
        let line = told.split(" (downloads").next().unwrap();
        assert!(line.ends_with(&format!("--model {id}")), "{typed:?}: {}", ran.err);
        let folder = fixtures.join(model).display().to_string();
        let ran = shell(&here, &line.replace(id, &folder));
        assert_eq!(ran.code, 0, "{line}: {}", ran.err);
    }
    // A model that is trained first.
    let ran = at(&here, &["summarize", "a text"]);
    let told = ran.err.split("Type: ").nth(1).unwrap_or_else(|| panic!("{}", ran.err));
    let (train, then) = told.split_once(", and then: ").unwrap();
    assert_eq!(then.split("; or").next(), Some("regard summarize 'a text' --model runs/mine"));
    let rows: String =
        (0..30).map(|i| format!("a long text about {i} things\t{i} things\n")).collect();
    std::fs::write(here.join("pairs.tsv"), format!("text\tsummary\n{rows}")).unwrap();
    let short = " --quick --set train.steps=2 --set train.eval_every=2 --set train.warmup=1";
    let ran = shell(&here, &(train.replace("FILE", "pairs.tsv") + short));
    assert_eq!(ran.code, 0, "{train}: {}", ran.err);
    let ran = shell(&here, then.split("; or").next().unwrap());
    assert_eq!(ran.code, 0, "{then}: {}", ran.err);
}

/// Without a network a download cannot work, but its command is understood.
#[test]
fn proposed_downloads_are_understood() {
    let here = folder("hints-downloads");
    let rows: [(&[&str], &str); 2] = [
        (&["embed", "x", "--model", "some/model"], "regard models some/model --fetch"),
        (&["data", "multi30k"], "regard data multi30k --fetch"),
    ];
    for (typed, proposed) in rows {
        let ran = at(&here, typed);
        let said = format!("{}{}", ran.out, ran.err);
        assert!(said.contains(proposed), "{typed:?} should propose {proposed:?}: {said}");
        let args: Vec<&str> = proposed.split(' ').skip(1).chain(["--help"]).collect();
        let ran = at(&here, &args);
        assert_eq!(ran.code, 0, "{proposed}: {}", ran.err);
        assert!(ran.out.contains("--fetch"), "{proposed}: {}", ran.out);
    }
}

/// Without a network, a recipe that starts from a model of the Hub proposes --from and --set from.
#[test]
fn a_recipe_starts_from_the_folder_that_is_proposed() {
    let here = folder("hints_from");
    let dump =
        |from: &[&str]| at(&here, &[&["train", "squad-minilm", "--dump-config"], from].concat());
    let ran = dump(&["--from", "my/FOLDER"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("\nfrom = \"my/FOLDER\"\n"), "{}", ran.out);
    assert_eq!(ran.out, dump(&["--set", "from=my/FOLDER"]).out);
    let ran = at(&here, &["train", "sort-10", "--from", "FOLDER", "--dump-config"]);
    let told = "sort-10 trains a model from scratch; recipes that start from a pretrained one: \
                ewt-minilm, squad-minilm";
    assert!(ran.code == 2 && ran.err.contains(told), "{}", ran.err);
    let ran = at(&here, &["train", "--resume", "runs/x", "--from", "FOLDER"]);
    assert!(ran.code == 2 && ran.err.contains("--resume"), "{}", ran.err);
}
