//! Texts whose words may be copied, and the words that are to be written.

use burn::tensor::{Device, Int, Tensor, TensorData};

/// Texts as numbers of words. Of each text, words that the vocabulary has not are numbered from its
/// size on, in any order, the same word always the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    texts: Vec<Vec<u32>>,
}

impl Copied {
    /// # Panics
    /// If a text has no words.
    pub fn new(texts: Vec<Vec<u32>>) -> Copied {
        assert!(texts.iter().all(|text| !text.is_empty()), "a text of no words cannot be read");
        Copied { texts }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// A text.
    pub fn text(&self, at: usize) -> &[u32] {
        &self.texts[at]
    }

    /// Words of the longest.
    pub fn longest(&self) -> usize {
        self.texts.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// All numbers are below this one, and all of the vocabulary of `words`.
    pub fn extended(&self, words: usize) -> usize {
        self.texts.iter().flatten().map(|word| *word as usize + 1).max().unwrap_or(0).max(words)
    }

    pub(super) fn lengths(&self) -> Vec<usize> {
        self.texts.iter().map(Vec::len).collect()
    }

    /// `[B, S]`: the words as the vocabulary has them; padding is any word, behind the end.
    pub(super) fn known(&self, words: usize, unknown: u32, device: &Device) -> Tensor<2, Int> {
        let wide = self.longest();
        let mut ids = Vec::with_capacity(self.len() * wide);
        for text in &self.texts {
            ids.extend(text.iter().map(|word| known(*word, words, unknown)));
            ids.resize(ids.len() + wide - text.len(), i64::from(unknown));
        }
        Tensor::from_data(TensorData::new(ids, [self.len(), wide]), device)
    }

    /// `[B, T, S]`: 1 where a place of a text has the word that is to be written, else 0.
    pub(super) fn places(&self, wanted: &Wanted, device: &Device) -> Tensor<3> {
        let wide = self.longest();
        let mut here = vec![0.0; self.len() * wanted.longest * wide];
        for (row, (text, words)) in self.texts.iter().zip(wanted.rows).enumerate() {
            for (step, word) in words.iter().enumerate() {
                let cells = &mut here[(row * wanted.longest + step) * wide..][..text.len()];
                cells.iter_mut().zip(text).for_each(|(cell, at)| *cell = f32::from(at == word));
            }
        }
        let shape = [self.len(), wanted.longest, wide];
        Tensor::from_data(TensorData::new(here, shape), device)
    }
}

fn known(word: u32, words: usize, unknown: u32) -> i64 {
    i64::from(if (word as usize) < words { word } else { unknown })
}

/// Words that are to be written.
pub(super) struct Wanted<'a> {
    rows: &'a [Vec<u32>],
    pub longest: usize,
    words: usize,
    unknown: u32,
}

impl Wanted<'_> {
    pub fn new(rows: &[Vec<u32>], words: usize, unknown: u32) -> Wanted<'_> {
        Wanted { rows, longest: rows.iter().map(Vec::len).max().unwrap_or(0), words, unknown }
    }

    /// Something of each word, and something behind the last.
    fn each<T: Clone>(&self, of: impl Fn(u32) -> T, behind: T) -> Vec<T> {
        let row = |row: &Vec<u32>| {
            let mut all: Vec<T> = row.iter().map(|word| of(*word)).collect();
            all.resize(self.longest, behind.clone());
            all
        };
        self.rows.iter().flat_map(row).collect()
    }

    fn flat(&self, numbers: Vec<f32>, device: &Device) -> Tensor<1> {
        let n = numbers.len();
        Tensor::from_data(TensorData::new(numbers, [n]), device)
    }

    /// `[B, T]`: what the decoder is told, each word one step late.
    pub fn inputs(&self, begin: u32, pad: u32, device: &Device) -> Tensor<2, Int> {
        let mut ids = Vec::with_capacity(self.rows.len() * self.longest);
        for row in self.rows {
            let before = row.iter().map(|word| known(*word, self.words, self.unknown));
            let before = std::iter::once(i64::from(begin)).chain(before);
            ids.extend(before.take(row.len()));
            ids.resize(ids.len() + self.longest - row.len(), i64::from(pad));
        }
        Tensor::from_data(TensorData::new(ids, [self.rows.len(), self.longest]), device)
    }

    /// `[B·T]`: the words as the vocabulary has them.
    pub fn targets(&self, device: &Device) -> Tensor<1, Int> {
        let ids = self.each(|word| known(word, self.words, self.unknown), 0);
        let n = ids.len();
        Tensor::from_data(TensorData::new(ids, [n]), device)
    }

    /// `[B·T]`: 1 where the vocabulary has the word.
    pub fn known(&self, device: &Device) -> Tensor<1> {
        let all = self.each(|word| f32::from((word as usize) < self.words), 0.0);
        self.flat(all, device)
    }

    /// `[B·T]`: 1 where there is a word.
    pub fn counts(&self, device: &Device) -> Tensor<1> {
        let all = self.each(|_| 1.0, 0.0);
        self.flat(all, device)
    }
}
