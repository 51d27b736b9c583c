//! Recipes: valid and invalid ones.

use crate::resumed::small;
use regard_tasks::recipe;
use regard_tasks::translate::{Recipe, Translation};
use std::path::Path;

const RECIPE: &str = "name = \"small\"\ntask = \"translate\"\n\
    [data]\nset = \"files\"\n[vocabulary.shared]\nkind = \"word\"\n\
    [model]\nmodel_type = \"luong\"\nembedding_size = 4\nhidden_size = 4\n\
    [train]\nsteps = 10\n";

fn parse(overrides: &[&str]) -> Result<Recipe, String> {
    let overrides: Vec<String> = overrides.iter().map(|text| text.to_string()).collect();
    Recipe::parse(RECIPE, &overrides)
}

#[test]
fn values_stand_in_for_others() {
    let recipe = parse(&[
        "train.steps = 7",
        "train.schedule=linear",
        "model.hidden_size=6",
        "model.attention.kind=window",
        "model.attention.left=1",
        "model.attention.right = 2",
        "decode.num_beams=3",
        "name=another",
        "about=\"a, b = c\"",
    ])
    .unwrap();
    assert_eq!((recipe.train.steps, recipe.decode.num_beams), (7, 3));
    assert_eq!(recipe.model["hidden_size"], 6);
    assert_eq!((recipe.name.as_str(), recipe.about.as_str()), ("another", "a, b = c"));
    let model = Translation::new(&recipe, small()).unwrap().model().config();
    assert_eq!(model["attention"]["kind"], "window");
    assert_eq!(model["attention"]["right"], 2);
}

#[test]
fn what_nobody_knows_is_named() {
    let rows: &[(&[&str], &[&str])] = &[
        (&["train.step=7"], &["step", "steps"]),
        (&["trian.steps=7"], &["trian"]),
        (&["data.sett=files"], &["sett"]),
        (&["vocabulary.shared.sise=9"], &["sise"]),
        (&["decode.beams=9"], &["beams", "num_beams"]),
        (&["evaluate.by=rouge"], &["rouge", "bleu"]),
        (&["task=paint"], &["paint", "translate"]),
        (&["train.schedule=steep"], &["steep", "cosine"]),
        (&["train.steps"], &["KEY=VALUE"]),
        (&["train.=3"], &["train."]),
        (&["name.first=3"], &["name"]),
        (&["train.steps=many"], &["train.steps: got \"many\", need a whole number"]),
    ];
    for (overrides, parts) in rows {
        let error = parse(overrides).unwrap_err();
        for part in *parts {
            assert!(error.contains(part), "{overrides:?}: no {part:?} in {error}");
        }
    }
}

#[test]
fn what_a_model_does_not_know_is_named() {
    let rows: &[(&[&str], &[&str])] = &[
        (&["model.hiden_size=7"], &["hiden_size", "hidden_size"]),
        (&["model.model_type=rnn", "model.attention.kind=sparsemax"], &["attention"]),
        (&["model.attention.kind=sparsemax", "model.attention.left=3"], &["attention", "left"]),
        (&["model.attention.kind=window"], &["left"]),
        (&["model.model_type=lstm"], &["lstm", "bahdanau"]),
        (&["model.share_encoder_decoder_embeddings=true"], &["share_encoder_decoder_embeddings"]),
        (&["model=3"], &["model"]),
        (&["vocabulary.shared.kind=syllable"], &["syllable", "unigram"]),
        (&["vocabulary.source.kind=word"], &["vocabulary", "shared"]),
    ];
    for (overrides, parts) in rows {
        let made = parse(overrides).and_then(|recipe| {
            Translation::new(&recipe, small()).map(|_| ()).map_err(|e| e.to_string())
        });
        let error = made.unwrap_err();
        for part in *parts {
            assert!(error.contains(part), "{overrides:?}: no {part:?} in {error}");
        }
    }
}

#[test]
fn numbers_that_cannot_be_meant() {
    for (text, part) in [
        ("train.steps=0", "train.steps"),
        ("train.lr=-1.0", "train.lr"),
        ("train.lr=nan", "train.lr"),
        ("train.label_smoothing=1.0", "train.label_smoothing"),
        ("train.beta2=1.5", "train.beta2"),
        ("train.keep=0", "train.keep"),
        ("train.floor=2.0", "train.floor"),
    ] {
        let error = parse(&[text]).unwrap().train.check().unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn every_recipe_reads_and_says_the_same_again() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recipes");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "toml") {
            continue;
        }
        let table = recipe::read(&path, &[]).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let read = recipe::task(table).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert_eq!(path.file_stem().unwrap().to_str(), Some(read.name()));
        read.options().check().unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        // A run saves the recipe that it had, whatever it was based on.
        let text = read.to_toml();
        let table = recipe::parse(&text, &[], &|_| None)
            .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let again = recipe::task(table).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert_eq!(again.to_toml(), text, "{}", path.display());
        assert_eq!(again.to_json(), read.to_json(), "{}", path.display());
        count += 1;
    }
    assert!(count >= 8, "only {count}");
}
