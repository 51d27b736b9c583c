//! Initialises a model's embedding table with pretrained word vectors.

use crate::data::Vectors;
use crate::text::Tokenizer;
use regard_models::checkpoint::Arrays;
use regard_models::text::TextModel;
use regard_models::{Error, Result};
use std::path::Path;

/// The tokenizer of a text model in training.
pub(crate) struct Lexicon {
    pub tokenizer: Tokenizer,
    /// Number of tokens initialised with pretrained vectors; `None` if no vectors were given.
    with_vectors: Option<usize>,
}

impl Lexicon {
    /// Initialises the embeddings of those tokens that the file `vectors` has.
    pub fn new(
        tokenizer: Tokenizer,
        model: &mut dyn TextModel,
        vectors: Option<&str>,
    ) -> Result<Lexicon> {
        let Some(vectors) = vectors else { return Ok(Lexicon { tokenizer, with_vectors: None }) };
        let known = known(&tokenizer, vectors)?;
        let rows: Vec<(usize, &[f32])> = known.iter().map(|(id, row)| (*id, &row[..])).collect();
        model.set_words(&rows)?;
        Ok(Lexicon { with_vectors: Some(rows.len()), tokenizer })
    }

    /// Writes the tokenizer into the model's folder.
    pub fn save(&self, folder: &Path) -> Result<()> {
        self.tokenizer.save(folder.join("tokenizer.json"))
    }

    /// Formats a summary: `count` examples of the kind `what`, vocabulary size, millions of
    /// parameters.
    pub fn about(&self, count: usize, what: &str, millions: f64) -> String {
        let words = self.tokenizer.size();
        let known =
            self.with_vectors.map(|n| format!(" ({n} with vectors, {} without)", words - n));
        let known = known.unwrap_or_default();
        format!("{count} {what}, a vocabulary of {words}{known}, {millions:.2} M parameters")
    }
}

/// Returns the pretrained vectors of a tokenizer's tokens, with their token ids.
pub(crate) fn known(tokenizer: &Tokenizer, vectors: &str) -> Result<Vec<(usize, Vec<f32>)>> {
    let words: Vec<(usize, String)> =
        (0..tokenizer.size()).filter_map(|id| Some((id, tokenizer.token(id as u32)?))).collect();
    let keep = words.iter().map(|(_, token)| token.clone()).collect();
    let vectors = Vectors::named(vectors, Some(&keep))?;
    let row = |(id, token): (usize, String)| Some((id, vectors.get(&token)?.to_vec()));
    Ok(words.into_iter().filter_map(row).collect())
}

/// Copies pretrained vectors into all embedding tables whose names end in one of `tables`. Returns
/// the number of tokens that have a vector.
///
/// # Errors
/// If the model has no such table, or the table's width differs from the vectors'.
pub(crate) fn with_vectors(
    weights: &mut Arrays,
    tables: &[&str],
    tokenizer: &Tokenizer,
    vectors: &str,
) -> Result<usize> {
    let rows = known(tokenizer, vectors)?;
    let width = rows.first().map(|(_, row)| row.len());
    let ends = |name: &str| {
        let is = |table: &&str| {
            name.strip_suffix(*table)
                .is_some_and(|before| before.is_empty() || before.ends_with('.'))
        };
        tables.iter().any(is)
    };
    let mut found = false;
    for (name, array) in weights.iter_mut().filter(|(name, _)| ends(name)) {
        found = true;
        let Some(width) = width else { break };
        if array.shape[..] != [tokenizer.size(), width] {
            let got = &array.shape;
            return Err(Error::invalid(format!(
                "vectors: got width {width}, but {name} of the model has shape {got:?}; its \
                 embeddings need the same width"
            )));
        }
        array.change(|table| {
            for (id, row) in &rows {
                table[id * width..][..width].copy_from_slice(row);
            }
        });
    }
    match found {
        true => Ok(rows.len()),
        false => {
            Err(Error::invalid("vectors: this model has no embedding table they can initialise"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::scratch::with_file;
    use crate::text::{Train, VocabularyKind};
    use regard_models::checkpoint::Array;

    #[test]
    fn known_words_get_their_vectors_and_others_keep_what_they_had() {
        let tokenizer = Train::new(VocabularyKind::WordLevel, 20).run(["cat dog bird"]).unwrap();
        let size = tokenizer.size();
        let table = |width: usize| Array::new(vec![size, width], vec![0.5; size * width]);
        let file = b"cat 1 2\nbird 3 4\nhorse 5 6\n";
        with_file("pretrained_embeddings", file, |path| {
            let name = path.to_str().unwrap();
            let mut weights = Arrays::new();
            weights.insert("encoder.embed_tokens.weight".into(), table(2));
            weights.insert("other.weight".into(), table(2));
            let tables = ["embed_tokens.weight"];
            assert_eq!(with_vectors(&mut weights, &tables, &tokenizer, name).unwrap(), 2);
            let row = |word: &str| {
                let id = (0..size).find(|id| tokenizer.token(*id as u32).as_deref() == Some(word));
                weights["encoder.embed_tokens.weight"].floats().unwrap()[2 * id.unwrap()..][..2]
                    .to_vec()
            };
            assert_eq!((row("cat"), row("bird")), (vec![1.0, 2.0], vec![3.0, 4.0]));
            assert_eq!(row("dog"), [0.5, 0.5]);
            assert!(weights["other.weight"].floats().unwrap().iter().all(|x| *x == 0.5));
            let missing = with_vectors(&mut weights, &["words.weight"], &tokenizer, name);
            assert!(missing.unwrap_err().to_string().contains("no embedding table"));
            weights.insert("words.weight".into(), table(3));
            let narrow = with_vectors(&mut weights, &["words.weight"], &tokenizer, name);
            assert!(narrow.unwrap_err().to_string().contains("width 2"));
        });
    }
}
