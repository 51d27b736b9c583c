//! Validation of Hub ids and revisions.

use anyhow::{Result, bail};

/// Maximum length of an id on the Hub, in characters.
const LONGEST: usize = 96;

/// Models of the Hub that can be named without their owner: those of its first years.
const WITHOUT_OWNER: [&str; 32] = [
    "bert-base-cased",
    "bert-base-chinese",
    "bert-base-german-cased",
    "bert-base-german-dbmdz-cased",
    "bert-base-german-dbmdz-uncased",
    "bert-base-multilingual-cased",
    "bert-base-multilingual-uncased",
    "bert-base-uncased",
    "bert-large-cased",
    "bert-large-cased-whole-word-masking",
    "bert-large-cased-whole-word-masking-finetuned-squad",
    "bert-large-uncased",
    "bert-large-uncased-whole-word-masking",
    "bert-large-uncased-whole-word-masking-finetuned-squad",
    "distilbert-base-cased",
    "distilbert-base-cased-distilled-squad",
    "distilbert-base-german-cased",
    "distilbert-base-multilingual-cased",
    "distilbert-base-uncased",
    "distilbert-base-uncased-distilled-squad",
    "distilbert-base-uncased-finetuned-sst-2-english",
    "distilgpt2",
    "distilroberta-base",
    "gpt2",
    "gpt2-large",
    "gpt2-medium",
    "gpt2-xl",
    "roberta-base",
    "roberta-large",
    "roberta-large-mnli",
    "xlnet-base-cased",
    "xlnet-large-cased",
];

/// Whether a name without an owner is that of a model of the Hub.
pub fn is_without_owner(name: &str) -> bool {
    WITHOUT_OWNER.contains(&name)
}

/// Checks a Hub id: `owner/name`, or a name alone. Returns the reason if it is invalid.
pub fn check(id: &str) -> Result<(), &'static str> {
    let parts: Vec<&str> = id.split('/').collect();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let end = |c: char| c == '-' || c == '.';
    match () {
        _ if id.is_empty() => Err("it is empty"),
        _ if id.len() > LONGEST => Err("it is longer than 96 characters"),
        _ if parts.len() > 2 => Err("it has more than one slash"),
        _ if parts.iter().any(|part| part.is_empty()) => Err("a part of it is empty"),
        _ if !parts.iter().all(|part| part.chars().all(plain)) => {
            Err("it has other characters than letters, digits, - _ and .")
        }
        _ if parts.iter().any(|part| part.starts_with(end) || part.ends_with(end)) => {
            Err("a part of it begins or ends with - or .")
        }
        _ if id.contains("--") || id.contains("..") => Err("it has -- or .. in it"),
        _ if id.ends_with(".git") => Err("it ends in .git"),
        _ => Ok(()),
    }
}

/// Checks that a revision can be a branch, tag or commit; it becomes part of a path.
pub fn check_revision(revision: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./+".contains(c);
    let parts = || revision.split('/');
    let fine = revision.chars().all(plain)
        && parts().all(|part| !part.is_empty() && !part.starts_with('.') && !part.ends_with('.'));
    if revision.is_empty() || !fine {
        bail!("--revision: got {revision:?}, need a branch, a tag or a commit, such as main");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_names_with_at_most_one_owner() {
        for id in ["gpt2", "bert-base-uncased", "sentence-transformers/all-MiniLM-L6-v2", "a/b_c.d"]
        {
            assert_eq!(check(id), Ok(()), "{id}");
        }
        let long = "x".repeat(97);
        for id in [
            "", "a/b/c", "/abs", "a/", "./run", "../run", "~/run", "a b", "été", "-a", "a.",
            "a--b", "a..b", "x.git", r"a\b", &long,
        ] {
            assert!(check(id).is_err(), "{id}");
        }
    }

    #[test]
    fn names_without_an_owner_are_ids() {
        assert!(WITHOUT_OWNER.iter().all(|name| check(name).is_ok() && is_without_owner(name)));
        assert!(!is_without_owner("nope") && !is_without_owner("openai-community/gpt2"));
    }

    #[test]
    fn a_revision_stays_where_it_belongs() {
        for revision in ["main", "v1.0", "refs/pr/3", "0123456789abcdef"] {
            assert!(check_revision(revision).is_ok(), "{revision}");
        }
        for revision in ["", "../main", "a//b", "/etc", "a/../b", "a b", "x\n", "."] {
            assert!(check_revision(revision).is_err(), "{revision}");
        }
    }
}
