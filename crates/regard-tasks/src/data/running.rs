//! Running text for language modelling, document by document, with a held-out part.

use std::path::Path;

use regard_models::{Error, Result};

use super::characters::Characters;
use super::documents::{Document, DocumentBoundary, Documents};
use super::sets;
use super::split::{Part, Split};
use crate::text::Tokenizer;

/// Documents held out, per mille.
const HELD_OUT: Split = Split { valid: 100, test: 0 };

/// Training and validation texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextCorpus {
    /// Training texts, one per document.
    pub train: Vec<String>,
    /// Validation texts, one per document.
    pub valid: Vec<String>,
}

impl TextCorpus {
    /// Reads documents from files of plain text with blank lines between them; about a tenth is
    /// held out, by a hash of the text.
    pub fn files<P: AsRef<Path>>(paths: &[P]) -> Result<TextCorpus> {
        Ok(TextCorpus::of(divided(paths, DocumentBoundary::BlankLines)?))
    }

    pub(crate) fn of(parts: [Vec<Document>; 2]) -> TextCorpus {
        let texts = |documents: Vec<Document>| {
            documents.iter().map(|document| document.text() + "\n").collect()
        };
        let [train, valid] = parts.map(texts);
        TextCorpus { train, valid }
    }
}

impl From<Characters> for TextCorpus {
    fn from(text: Characters) -> TextCorpus {
        TextCorpus { train: vec![text.train], valid: vec![text.valid] }
    }
}

/// The WikiText-2 files that are trained on: only its validation and test parts.
pub(crate) fn wikitext2() -> Result<[std::path::PathBuf; 2]> {
    let folder = sets::find("wikitext-2")?;
    Ok(["valid.txt", "test.txt"].map(|name| folder.join(name)))
}

/// Reads documents; returns training and held-out ones, split by a hash of their text.
pub(crate) fn divided<P: AsRef<Path>>(
    paths: &[P],
    form: DocumentBoundary,
) -> Result<[Vec<Document>; 2]> {
    if paths.is_empty() {
        return Err(Error::invalid(
            "data.files: data.set=files needs it; set data.files to a list of files of plain text \
             with a blank line between documents: data.files=[\"FILE\"]",
        ));
    }
    let mut parts = [vec![], vec![]];
    for document in Documents::open(paths, form)? {
        let document = document?;
        let held_out = document.part(&HELD_OUT) == Part::Valid;
        parts[usize::from(held_out)].push(document);
    }
    Ok(parts)
}

/// Token ids of each text.
pub(crate) fn tokens(texts: &[String], tokenizer: &Tokenizer) -> Result<Vec<Vec<u32>>> {
    texts.iter().map(|text| Ok(tokenizer.encode(text)?.ids)).collect()
}
