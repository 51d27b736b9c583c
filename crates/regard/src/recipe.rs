//! Built-in recipes, and resolution of recipes by name or file.

use anyhow::{Result, anyhow, bail};
use regard_tasks::recipe::{self, Table, Task};
use regard_tasks::say;
use std::path::Path;

macro_rules! built_in {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../../recipes/", $name, ".toml")))),*]
    };
}

/// Built-in recipes by name: one row for each file in `recipes/`.
pub const RECIPES: &[(&str, &str)] = built_in![
    "aeslc-plain"
    "aeslc-pointer"
    "babi"
    "citeseer-gat"
    "cmudict-transformer"
    "cmudict30k-additive"
    "cmudict30k-entmax"
    "cmudict30k-expanded"
    "cmudict30k-global"
    "cmudict30k-global-tokens"
    "cmudict30k-hard-gumbel"
    "cmudict30k-hard-reinforce"
    "cmudict30k-hard-straight"
    "cmudict30k-local-m"
    "cmudict30k-local-p"
    "cmudict30k-mixed"
    "cmudict30k-none"
    "cmudict30k-sparsemax"
    "cmudict30k-transformer"
    "cmudict30k-window"
    "cora-gat"
    "ewt-bert-scratch"
    "ewt-genre"
    "ewt-minilm"
    "ewt-words"
    "ewt-words-glove"
    "fashion-mnist-vit"
    "fsdd-ctc"
    "fsdd-truncated"
    "hull-10"
    "hull-5"
    "molecules-gat"
    "multi30k-bahdanau"
    "multi30k-rnn"
    "multi30k-transformer"
    "shakespeare-gpt"
    "shakespeare-gpt-small"
    "shakespeare-llama"
    "sort-10"
    "squad-minilm"
    "squad-rerank"
    "sst2-bert-scratch"
    "sst2-minilm"
    "sst2-words"
    "sst2-words-glove"
    "tatoeba-en-fr-bahdanau"
    "tatoeba-en-fr-rnn"
    "tatoeba-en-fr-transformer"
    "tatoeba-en-fr-xlnet"
    "tatoeba-zh-en-bahdanau"
    "tsp-10"
    "wikitext2-bert"
    "wikitext2-gpt"
    "wikitext2-xlnet"
];

/// Whether a recipe of this name is built in.
pub fn is_built_in(asked: &str) -> bool {
    RECIPES.iter().any(|(name, _)| *name == asked)
}

fn built_in(asked: &str) -> Option<String> {
    RECIPES.iter().find(|(name, _)| *name == asked).map(|(_, text)| text.to_string())
}

/// Resolves a recipe of any task from a file or a built-in name, with overrides.
pub fn resolve_task(asked: &str, overrides: &[String]) -> Result<Box<dyn Task>> {
    recipe::task(table(asked, overrides)?).map_err(|message| anyhow!("{asked}: {message}"))
}

/// Reads the recipe that a run recorded, in its folder or beside its model or checkpoint folder.
/// None if the folder is not of a run.
pub fn of_run(folder: &Path, overrides: &[String]) -> Result<Option<Table>> {
    let within = folder
        .file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| name == "model" || name.starts_with("checkpoint-"));
    let above = folder.parent().filter(|_| within);
    let files = [Some(folder), above].into_iter().flatten().map(|f| f.join("recipe.toml"));
    match files.into_iter().find(|file| file.is_file()) {
        Some(file) => Ok(Some(recipe::read(&file, overrides)?)),
        None => Ok(None),
    }
}

/// Applies overrides to a recipe.
pub fn over(table: Table, overrides: &[String]) -> Result<Table> {
    recipe::with(table, overrides).map_err(|message| anyhow!("{message}"))
}

/// Reads the table of a recipe from a file or a built-in name, with overrides.
pub fn table(asked: &str, overrides: &[String]) -> Result<Table> {
    let path = Path::new(asked);
    let ends = |end: &&str| path.extension().is_some_and(|found| found.eq_ignore_ascii_case(end));
    if path.is_file() && ["csv", "tsv", "jsonl", "txt"].iter().any(ends) {
        bail!(
            "{asked} is a data file, need a recipe or a task. To train a classifier on it: regard \
             train classify --data {asked}; `regard train --help` lists the other tasks"
        );
    }
    if path.is_file() {
        return Ok(recipe::read_with(path, overrides, &built_in)?);
    }
    match RECIPES.iter().find(|(name, _)| *name == asked) {
        Some((name, text)) => {
            let table = recipe::parse(text, overrides, &built_in);
            table.map_err(|message| anyhow!("{name}: {message}"))
        }
        // Looks like a path: report the error of the file system.
        None if asked.contains(['/', '\\']) || asked.ends_with(".toml") => {
            Ok(recipe::read(path, overrides)?)
        }
        None => {
            let names: Vec<_> = RECIPES.iter().map(|(name, _)| *name).collect();
            bail!(
                "there is no recipe and no file {:?}; {}`regard recipes` lists all {}",
                say::short(asked, 100),
                say::did_you_mean(asked, &names),
                names.len()
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_built_in_under_its_name() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recipes");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut names: Vec<String> = files
            .filter(|path| path.extension().is_some_and(|end| end == "toml"))
            .map(|path| path.file_stem().unwrap().to_str().unwrap().to_string())
            .collect();
        names.sort();
        assert_eq!(names, RECIPES.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        for (name, _) in RECIPES {
            let recipe = resolve_task(name, &["train.steps=7".into()]).unwrap();
            assert_eq!((recipe.name(), recipe.options().steps), (*name, 7));
            let result = recipe.result().unwrap_or_else(|| panic!("{name} has no [result]"));
            assert!(!result.metric.is_empty() && !result.published.is_empty(), "{name}");
        }
    }

    #[test]
    fn what_is_not_there_is_told_by_what_is() {
        let error = |asked: &str| table(asked, &[]).unwrap_err().to_string();
        assert!(error("multi30k-rmn").contains("did you mean 'multi30k-rnn'?"));
        assert!(error("nothing-like-it").contains("`regard recipes` lists all"));
        assert!(error("no/such.toml").contains("No such file"));
        assert!(table("multi30k-rnn", &["nonsense".into()]).is_err());
    }
}
