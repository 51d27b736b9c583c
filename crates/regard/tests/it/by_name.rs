//! Runs by their names in runs/, for the commands that compare and check them.

use crate::program::{Ran, command, finish, folder};
use std::fs;
use std::path::Path;

fn at(here: &Path, args: &[&str]) -> Ran {
    let mut command = command(args);
    command.current_dir(here).env_remove("REGARD_DATA").env("HF_HUB_OFFLINE", "1");
    finish(command)
}

#[test]
fn runs_are_compared_by_name() {
    let here = folder("by_name_compare");
    let pairs: String =
        (0..60).map(|i| format!("The number {i} is here.\tLe nombre {i} est ici.\n")).collect();
    fs::write(here.join("pairs.tsv"), pairs).unwrap();
    let train = |name: &str, seed: &str| {
        let out = format!("runs/{name}");
        let short = ["--set", "train.steps=2", "--set", "train.eval_every=2"];
        let more = ["--set", "train.warmup=1", "--set", "decode.max_length=12", "--seed", seed];
        let args = ["train", "translate", "--data", "pairs.tsv", "--quick", "--out", &out];
        let ran = at(&here, &[&args[..], &short, &more].concat());
        assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    };
    train("first", "0");
    train("second", "0");
    train("third", "1");
    let ran = at(&here, &["compare", "first", "second", "--json"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let reports: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&reports[0]["name"], &reports[1]["name"]), (&"first".into(), &"second".into()));
    assert_eq!(reports[0]["bleu"], reports[1]["bleu"], "they are equal runs");
    let ran = at(&here, &["compare", "runs/first", "second"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    // Another seed holds out other pairs.
    let ran = at(&here, &["compare", "first", "third"]);
    assert!(ran.code == 2 && ran.err.contains("use different data"), "{}{}", ran.out, ran.err);
    let ran = at(&here, &["compare", "first", "secnod"]);
    assert!(ran.code == 2 && ran.err.contains("did you mean 'second'?"), "{}{}", ran.out, ran.err);
}

#[test]
fn a_checkpoint_in_runs_is_verified_by_name() {
    let here = folder("by_name_verify");
    let from =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/texts/bert-ForPreTraining");
    let to = here.join("runs/mine");
    fs::create_dir_all(&to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
    let [by_name, by_path] = ["mine", "runs/mine"].map(|name| at(&here, &["verify", name]));
    assert_eq!((by_name.code, &by_name.out), (0, &by_path.out), "{}", by_name.err);
    let ran = at(&here, &["verify", "mien"]);
    assert!(ran.code == 2 && ran.err.contains("did you mean 'mine'"), "{}", ran.err);
    let ran = at(&here, &["verify", "en-fr"]);
    assert!(ran.code == 2 && ran.err.contains("regard models export en-fr"), "{}", ran.err);
}
