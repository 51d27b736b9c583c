//! Download addresses of data sets. A set without a row here has to be fetched by hand: it is a
//! repository, an archive that has to be converted, or a page with a form.

use super::sets::{KnownFile, Set};
use regard_models::{Error, Result};
use std::env;

/// The environment variable that names a mirror: a URL below which every set has its folder.
pub const MIRROR: &str = "REGARD_DATA_SOURCE";

/// Layout of a set's files at its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DownloadLayout {
    /// Separate files: the name of a file is appended to the address.
    Files,
    /// One zip archive, with the files in any of its folders.
    Zip,
}

/// Download address of a set's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// URL without a trailing slash.
    pub from: String,
    /// Layout of the files at the URL.
    pub form: DownloadLayout,
    /// Files that are available there.
    pub files: Vec<KnownFile>,
}

/// Name of a set, its URL, the layout, and the available files; an empty list means all files.
type Row = (&'static str, &'static str, DownloadLayout, &'static [&'static str]);

const ADDRESSES: &[Row] = &[
    (
        "cmudict",
        "https://raw.githubusercontent.com/cmusphinx/cmudict/master",
        DownloadLayout::Files,
        &[],
    ),
    (
        "fashion-mnist",
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
        DownloadLayout::Files,
        &[
            "train-images-idx3-ubyte.gz",
            "train-labels-idx1-ubyte.gz",
            "t10k-images-idx3-ubyte.gz",
            "t10k-labels-idx1-ubyte.gz",
        ],
    ),
    (
        "multi30k",
        "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw",
        DownloadLayout::Files,
        &[],
    ),
    ("squad", "https://rajpurkar.github.io/SQuAD-explorer/dataset", DownloadLayout::Files, &[]),
    ("tatoeba-cmn-eng", "https://www.manythings.org/anki/cmn-eng.zip", DownloadLayout::Zip, &[]),
    (
        "tatoeba-fra-eng",
        "http://d2l-data.s3-accelerate.amazonaws.com/fra-eng.zip",
        DownloadLayout::Zip,
        &["fra.txt"],
    ),
    (
        "tinyshakespeare",
        "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare",
        DownloadLayout::Files,
        &[],
    ),
    (
        "ud-english-ewt",
        "https://raw.githubusercontent.com/UniversalDependencies/UD_English-EWT/r2.16",
        DownloadLayout::Files,
        &[],
    ),
    (
        "word-similarity",
        "https://raw.githubusercontent.com/mfaruqui/eval-word-vectors/master/data/word-sim",
        DownloadLayout::Files,
        &[],
    ),
];

impl Set {
    /// Returns where its files can be downloaded: from the mirror that the environment names, or
    /// from where they are published. `None` if they have to be fetched by hand.
    pub fn address(&self) -> Result<Option<Address>> {
        if let Some(mirror) = env::var_os(MIRROR).filter(|mirror| !mirror.is_empty()) {
            return self.mirrored(&mirror.to_string_lossy()).map(Some);
        }
        let row = ADDRESSES.iter().find(|row| row.0 == self.name);
        Ok(row.map(|(_, from, form, names)| {
            let asked = |file: &KnownFile| names.is_empty() || names.contains(&file.path);
            let files = self.files().filter(asked).collect();
            Address { from: from.to_string(), form: *form, files }
        }))
    }

    fn mirrored(&self, mirror: &str) -> Result<Address> {
        if !["http://", "https://"].iter().any(|start| mirror.starts_with(start)) {
            return Err(Error::invalid(format!(
                "{MIRROR}: got {mirror:?}, need a URL that begins with http:// or https://"
            )));
        }
        let from = format!("{}/{}", mirror.trim_end_matches('/'), self.name);
        Ok(Address { from, form: DownloadLayout::Files, files: self.files().collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::sets::{SETS, set};

    #[test]
    fn every_address_is_of_a_known_set_and_names_known_files() {
        for (name, from, _, names) in ADDRESSES {
            let set = set(name).unwrap();
            assert!(from.starts_with("http") && !from.ends_with('/'), "{from}");
            for name in *names {
                assert!(set.files().any(|file| file.path == *name), "{name}");
            }
        }
        let names: Vec<_> = ADDRESSES.iter().map(|row| row.0).collect();
        assert!(names.is_sorted(), "{names:?}");
    }

    #[test]
    fn a_mirror_has_every_set() {
        for set in SETS {
            let address = set.mirrored("http://localhost:1/data/").unwrap();
            assert_eq!(address.from, format!("http://localhost:1/data/{}", set.name));
            assert_eq!(address.files.len(), set.files().count());
        }
        let error = SETS[0].mirrored("ftp://x").unwrap_err().to_string();
        assert!(error.contains(MIRROR), "{error}");
    }
}
