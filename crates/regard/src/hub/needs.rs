//! Selection of the needed files of a repository, which often holds the same weights in several
//! formats.

use regard_models::checkpoint;
use regard_tasks::audio::front;
use regard_tasks::decode::GENERATION_FILE;
use regard_tasks::embed::sentence;
use regard_tasks::{classify_image, text, translate};
use std::fmt;
use std::path::PathBuf;

/// A needed part that a model lacks.
#[derive(Debug, PartialEq, Eq)]
pub enum Lack {
    /// No `config.json`.
    Config,
    /// No vocabulary in a supported format, and no image preprocessor.
    Vocabulary,
    /// No weights in a supported format.
    Weights,
    /// A shard that the index of the weights names.
    Shard(String),
    /// Invalid index of the weights, with the message.
    Index(String),
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Lack::Config => write!(f, "it has no {}", checkpoint::CONFIG),
            Lack::Vocabulary => {
                let names: Vec<String> = vocabularies().map(|files| files.join(" with ")).collect();
                let names = names.join(", ");
                let images = classify_image::FILE;
                write!(
                    f,
                    "it has no vocabulary in a supported format: need one of {names}, or for \
                     images {images}"
                )
            }
            Lack::Weights => {
                let names = checkpoint::PLACES.join(", ");
                write!(f, "it has no weights in a supported format: need one of {names}")
            }
            Lack::Shard(name) => {
                write!(f, "its weight index lists {name}, which is not in the repository")
            }
            Lack::Index(message) => write!(f, "{message}"),
        }
    }
}

/// Sets of files that make a vocabulary, in order of preference.
fn vocabularies() -> impl Iterator<Item = &'static [&'static str]> {
    text::vocabulary_files().into_iter().chain(translate::VOCABULARY_FILES)
}

/// Names of all files that a model may have besides its configuration and weights.
pub fn small_files() -> Vec<&'static str> {
    let pooling = "1_Pooling/config.json";
    let settings = [GENERATION_FILE, classify_image::FILE, front::FILE, sentence::MODULES, pooling];
    let settings = settings.into_iter().chain(text::CONFIGURATION_FILES);
    let mut files: Vec<&str> = settings.chain(vocabularies().flatten().copied()).collect();
    files.sort_unstable();
    files.dedup();
    files
}

/// Requests the files of a model in sequence. `get` returns the path of a file, or None if the
/// model has no such file. Of several formats the first available one is taken, as on loading.
/// Weights come last, because they are large: they are not downloaded if another part is missing.
pub fn gather<E>(
    get: &mut dyn FnMut(&str) -> Result<Option<PathBuf>, E>,
) -> Result<Option<Lack>, E> {
    if get(checkpoint::CONFIG)?.is_none() {
        return Ok(Some(Lack::Config));
    }
    for name in [GENERATION_FILE].iter().chain(&text::CONFIGURATION_FILES) {
        get(name)?;
    }
    // Pooling of a sentence-transformers model.
    if let Some(place) = get(sentence::MODULES)? {
        match sentence::files(&place) {
            Ok(files) => {
                for name in files {
                    get(&name)?;
                }
            }
            Err(error) => return Ok(Some(Lack::Index(error.to_string()))),
        }
    }
    let mut found = false;
    for files in vocabularies() {
        if !found {
            found = true;
            for name in files {
                found = found && get(name)?.is_some();
            }
        }
    }
    // An image model has a preprocessor instead of a vocabulary.
    if !found && get(classify_image::FILE)?.is_none() {
        return Ok(Some(Lack::Vocabulary));
    }
    for name in checkpoint::PLACES {
        let Some(place) = get(name)? else { continue };
        if !name.ends_with(".json") {
            return Ok(None);
        }
        let shards = match checkpoint::shards(&place) {
            Ok(shards) => shards,
            Err(error) => return Ok(Some(Lack::Index(error.to_string()))),
        };
        for shard in shards {
            if get(&shard)?.is_none() {
                return Ok(Some(Lack::Shard(shard)));
            }
        }
        return Ok(None);
    }
    Ok(Some(Lack::Weights))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    /// Requested files of a model with these files, and the part that it lacks.
    fn asked(files: &[&str]) -> (Vec<String>, Option<Lack>) {
        let mut asked = vec![];
        let mut get = |name: &str| -> Result<Option<PathBuf>, Infallible> {
            asked.push(name.to_string());
            Ok(files.contains(&name).then(|| PathBuf::from(name)))
        };
        let Ok(lack) = gather(&mut get);
        (asked, lack)
    }

    #[test]
    fn the_first_form_is_taken_and_weights_come_last() {
        let (asked_for, lack) = asked(&[
            "config.json",
            "tokenizer.json",
            "vocab.txt",
            "model.safetensors",
            "pytorch_model.bin",
        ]);
        assert_eq!(lack, None);
        assert!(asked_for.contains(&"tokenizer_config.json".to_string()), "{asked_for:?}");
        assert!(!asked_for.iter().any(|name| name == "vocab.txt" || name.ends_with(".bin")));
        assert_eq!(asked_for.last().unwrap(), "model.safetensors");
        let (asked_for, lack) =
            asked(&["config.json", "preprocessor_config.json", "model.safetensors"]);
        assert_eq!((asked_for.last().unwrap().as_str(), lack), ("model.safetensors", None));
        let (asked_for, lack) =
            asked(&["config.json", "vocab.json", "merges.txt", "pytorch_model.bin"]);
        assert_eq!((asked_for.last().unwrap().as_str(), lack), ("pytorch_model.bin", None));
    }

    #[test]
    fn what_is_lacking_is_told() {
        assert_eq!(asked(&["model.safetensors"]), (vec!["config.json".into()], Some(Lack::Config)));
        let (_, lack) = asked(&["config.json", "vocab.txt", "tf_model.h5"]);
        assert!(lack.unwrap().to_string().contains("model.safetensors"));
        let (asked_for, lack) = asked(&["config.json", "model.safetensors", "vocab.json"]);
        assert!(lack.unwrap().to_string().contains("vocab.json with merges.txt"));
        assert!(!asked_for.contains(&"model.safetensors".to_string()), "before anything large");
        let (_, lack) = asked(&["config.json", "vocab.txt", "model.safetensors.index.json"]);
        assert!(matches!(lack, Some(Lack::Index(_))), "there is no such file to read");
    }
}
