//! Word vectors: nearest words, analogies, and correlation with human similarity scores.

use crate::data::{Vectors, sets, similarity};
use crate::metrics::Correlation;
use regard_models::{Error, Result};
use serde::Serialize;
use std::path::Path;

/// Word vectors normalised to unit length.
pub struct WordSpace {
    vectors: Vectors,
    /// `[words, width]`, rows of length 1; 0 where the vector is 0.
    units: Vec<f32>,
}

/// A word with its cosine similarity to a query.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Near {
    /// Word, as in the file of vectors.
    pub word: String,
    /// Cosine similarity, from −1 to 1.
    pub cosine: f64,
}

/// Correlation of word vectors with human scores on one set of pairs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HumanAgreement {
    /// Name of the set.
    pub set: String,
    /// Number of scored pairs.
    pub pairs: usize,
    /// Number of pairs whose words both have a vector.
    pub covered: usize,
    /// Spearman's correlation over the covered pairs; `None` if there are too few.
    pub spearman: Option<f64>,
}

impl WordSpace {
    /// Normalises word vectors.
    pub fn new(vectors: Vectors) -> WordSpace {
        let mut units = Vec::with_capacity(vectors.values().len());
        for row in vectors.values().chunks_exact(vectors.width().max(1)) {
            let length = row.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
            let by = if length > 0.0 { 1.0 / length } else { 0.0 };
            units.extend(row.iter().map(|x| (f64::from(*x) * by) as f32));
        }
        WordSpace { vectors, units }
    }

    /// Returns the vectors as they were read.
    pub fn vectors(&self) -> &Vectors {
        &self.vectors
    }

    /// Returns the index of a word in the vocabulary, which is all that a one-hot vector encodes.
    ///
    /// # Errors
    /// If it has no vector; the message says whether its lower-case form has one.
    pub fn place(&self, word: &str) -> Result<usize> {
        let found = |word: &str| self.vectors.place(word);
        found(word).ok_or_else(|| {
            let lower = word.to_lowercase();
            let hint = match lower != word && found(&lower).is_some() {
                true => format!("; {lower:?} has one"),
                false => String::new(),
            };
            let all = self.vectors.words().len();
            Error::invalid(format!("{word:?} has no vector among {all} words{hint}"))
        })
    }

    fn unit(&self, word: &str) -> Result<&[f32]> {
        let (place, width) = (self.place(word)?, self.vectors.width());
        Ok(&self.units[place * width..][..width])
    }

    /// Returns the words nearest to a word, without the word itself.
    pub fn nearest(&self, word: &str, count: usize) -> Result<Vec<Near>> {
        let unit = self.unit(word)?.to_vec();
        Ok(self.nearest_to(&unit, &[word], count))
    }

    /// Returns the words that are to `c` as `b` is to `a`: those nearest to `b − a + c`, each of
    /// length 1 (Mikolov et al. 2013), without the three.
    pub fn analogy(&self, [a, b, c]: [&str; 3], count: usize) -> Result<Vec<Near>> {
        let (x, y, z) = (self.unit(a)?, self.unit(b)?, self.unit(c)?);
        let sum: Vec<f32> = x.iter().zip(y).zip(z).map(|((x, y), z)| y - x + z).collect();
        Ok(self.nearest_to(&sum, &[a, b, c], count))
    }

    fn nearest_to(&self, point: &[f32], but: &[&str], count: usize) -> Vec<Near> {
        let length = point.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
        let rows = self.units.chunks_exact(self.vectors.width().max(1));
        let mut all: Vec<(usize, f64)> = rows
            .enumerate()
            .map(|(place, row)| {
                let dot: f64 =
                    row.iter().zip(point).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum();
                (place, if length > 0.0 { dot / length } else { 0.0 })
            })
            .filter(|(place, _)| !but.contains(&self.vectors.words()[*place].as_str()))
            .collect();
        // Ties are ordered by frequency, as files are sorted.
        all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        all.truncate(count);
        let word = |place: usize| self.vectors.words()[place].clone();
        all.into_iter().map(|(place, cosine)| Near { word: word(place), cosine }).collect()
    }

    /// Computes the cosine of every pair of words, row by row.
    pub fn cosines(&self, words: &[&str]) -> Result<Vec<Vec<f64>>> {
        words
            .iter()
            .map(|first| {
                let row = |second: &&str| -> Result<f64> {
                    let (x, y) = (self.unit(first)?, self.unit(second)?);
                    Ok(x.iter().zip(y).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum())
                };
                words.iter().map(row).collect()
            })
            .collect()
    }

    /// Computes the correlation on every word similarity set on this machine.
    pub fn agreements(&self) -> Result<Vec<HumanAgreement>> {
        let folder = sets::find("word-similarity")?;
        let mut files: Vec<_> = sets::set("word-similarity")?.files().map(|f| f.path).collect();
        files.sort_unstable();
        let texts = files.into_iter().filter(|file| file.ends_with(".txt"));
        texts.map(|file| self.agreement(&folder.join(file))).collect()
    }

    /// Computes the correlation on one file of pairs. Words are looked up in lower case, since the
    /// vectors are of lower-cased text.
    pub fn agreement(&self, file: &Path) -> Result<HumanAgreement> {
        let pairs = similarity::read(file)?;
        let mut correlation = Correlation::new();
        for pair in &pairs {
            let [first, second] = pair.words.each_ref().map(|word| word.to_lowercase());
            if let Some(cosine) = self.vectors.cosine(&first, &second) {
                correlation.add(cosine, pair.score);
            }
        }
        let set = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let (pairs, covered) = (pairs.len(), correlation.count());
        Ok(HumanAgreement { set, pairs, covered, spearman: correlation.spearman() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::stream::Lines;

    /// Two directions: male to female and common to royal.
    const TEXT: &str = "man 1 0 0.1\nwoman 0 1 0.1\nking 1 0 1\nqueen 0 1 1\nzero 0 0 0\n";

    fn space() -> WordSpace {
        WordSpace::new(Vectors::from_text(Lines::new(TEXT.as_bytes(), "in"), None).unwrap())
    }

    #[test]
    fn near_words_come_first_and_the_asked_one_never() {
        let near = space().nearest("king", 9).unwrap();
        let words: Vec<&str> = near.iter().map(|near| near.word.as_str()).collect();
        assert_eq!(words, ["man", "queen", "woman", "zero"]);
        let wanted = 1.1 / (1.01f64 * 2.0).sqrt();
        assert!((near[0].cosine - wanted).abs() < 1e-6, "{}", near[0].cosine);
        assert_eq!(space().nearest("king", 2).unwrap().len(), 2);
    }

    #[test]
    fn a_woman_is_to_a_queen_as_a_man_is_to_a_king() {
        let said = space().analogy(["man", "king", "woman"], 1).unwrap();
        assert_eq!(said[0].word, "queen");
        assert!(said[0].cosine > 0.9);
    }

    #[test]
    fn words_without_a_vector_are_named() {
        let error = space().nearest("King", 1).unwrap_err().to_string();
        assert!(
            error.contains("\"King\" has no vector among 5 words; \"king\" has one"),
            "{error}"
        );
        assert!(space().analogy(["man", "king", "tree"], 1).is_err());
        assert!(space().cosines(&["man", "tree"]).is_err());
        assert_eq!(space().cosines(&["man", "zero"]).unwrap()[1], [0.0, 0.0]);
    }
}
