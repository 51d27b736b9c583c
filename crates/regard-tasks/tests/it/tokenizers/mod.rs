//! Tokenizers: equal to those of transformers, exact in their offsets, robust to broken files.

mod golden;
mod hostile;
mod properties;

use crate::small::Folder;
use regard_tasks::text::Tokenizer;
use std::fs;
use std::path::{Path, PathBuf};

/// Folder of data sets; prints a line and returns none if it is not set.
fn data() -> Option<PathBuf> {
    let asked = std::env::var_os("REGARD_DATA").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let found =
        [asked, Some(beside)].into_iter().flatten().find(|root| root.join("vocab").is_dir());
    if found.is_none() {
        regard_fuzz::skip("REGARD_DATA has no vocab");
    }
    found
}

/// A tokenizer of a folder with copies of files, and with a configuration.
fn opened(name: &str, files: &[(PathBuf, &str)], config: &str) -> Tokenizer {
    let folder = Folder::new(&format!("tokenizer-{name}"));
    for (from, to) in files {
        fs::copy(from, folder.0.join(to)).unwrap();
    }
    if !config.is_empty() {
        fs::write(folder.0.join("tokenizer_config.json"), config).unwrap();
    }
    Tokenizer::load(&folder.0).unwrap()
}

/// The published tokenizers whose vocabularies are here, from their oldest files. The name of a
/// test makes folders of its own.
fn published(root: &Path, test: &str) -> [(&'static str, Tokenizer); 4] {
    let file = |name: &str| root.join("vocab").join(name);
    let bert = |name: &str, config: &str| {
        let vocabulary = file(&format!("{name}-vocab.txt"));
        opened(&format!("{test}-{name}"), &[(vocabulary, "vocab.txt")], config)
    };
    let gpt2 = [(file("gpt2-encoder.json"), "vocab.json"), (file("gpt2-vocab.bpe"), "merges.txt")];
    let xlnet = [(file("xlnet-base-cased/spiece.model"), "spiece.model")];
    [
        ("bert-base-uncased", bert("bert-base-uncased", "")),
        ("bert-base-chinese", bert("bert-base-chinese", r#"{"do_lower_case": false}"#)),
        ("gpt2", opened(&format!("{test}-gpt2"), &gpt2, "")),
        ("xlnet-base-cased", opened(&format!("{test}-xlnet"), &xlnet, "")),
    ]
}
