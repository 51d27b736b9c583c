//! Source texts whose words may be copied, and target texts.

use burn::tensor::{Device, Int, Tensor, TensorData};

/// Source texts as word ids. Words outside the vocabulary get ids from its size on, per text and
/// in any order, equal words the same id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyBatch {
    texts: Vec<Vec<u32>>,
}

impl CopyBatch {
    /// Creates a batch of source texts.
    ///
    /// # Panics
    /// If a text has no words.
    pub fn new(texts: Vec<Vec<u32>>) -> CopyBatch {
        assert!(texts.iter().all(|text| !text.is_empty()), "a text must have at least one word");
        CopyBatch { texts }
    }

    /// Number of texts.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether the batch has no texts.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Word ids of text `at`.
    pub fn text(&self, at: usize) -> &[u32] {
        &self.texts[at]
    }

    /// Number of words of the longest text.
    pub fn longest(&self) -> usize {
        self.texts.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Size of the extended vocabulary: the vocabulary of `words` and all words of the texts.
    pub fn extended(&self, words: usize) -> usize {
        self.texts.iter().flatten().map(|word| *word as usize + 1).max().unwrap_or(0).max(words)
    }

    pub(super) fn lengths(&self) -> Vec<usize> {
        self.texts.iter().map(Vec::len).collect()
    }

    /// `[B, S]`: ids with unknown words replaced by `unknown`, which is also the padding.
    pub(super) fn known(&self, words: usize, unknown: u32, device: &Device) -> Tensor<2, Int> {
        let wide = self.longest();
        let mut ids = Vec::with_capacity(self.len() * wide);
        for text in &self.texts {
            ids.extend(text.iter().map(|word| known(*word, words, unknown)));
            ids.resize(ids.len() + wide - text.len(), i64::from(unknown));
        }
        Tensor::from_data(TensorData::new(ids, [self.len(), wide]), device)
    }

    /// `[B, T, S]`: 1 where a source position has the target word, else 0.
    pub(super) fn places(&self, wanted: &CopyTargets, device: &Device) -> Tensor<3> {
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

/// Target texts.
pub(super) struct CopyTargets<'a> {
    rows: &'a [Vec<u32>],
    pub longest: usize,
    words: usize,
    unknown: u32,
}

impl CopyTargets<'_> {
    pub fn new(rows: &[Vec<u32>], words: usize, unknown: u32) -> CopyTargets<'_> {
        CopyTargets { rows, longest: rows.iter().map(Vec::len).max().unwrap_or(0), words, unknown }
    }

    /// `[B·T]`: `of` each target word, and `behind` at padding.
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

    /// `[B, T]`: the decoder's inputs, the target words shifted right by one.
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

    /// `[B·T]`: target ids with unknown words replaced.
    pub fn targets(&self, device: &Device) -> Tensor<1, Int> {
        let ids = self.each(|word| known(word, self.words, self.unknown), 0);
        let n = ids.len();
        Tensor::from_data(TensorData::new(ids, [n]), device)
    }

    /// `[B·T]`: 1 where the target word is in the vocabulary.
    pub fn known(&self, device: &Device) -> Tensor<1> {
        let all = self.each(|word| f32::from((word as usize) < self.words), 0.0);
        self.flat(all, device)
    }

    /// `[B·T]`: 1 where there is a target word, 0 at padding.
    pub fn counts(&self, device: &Device) -> Tensor<1> {
        let all = self.each(|_| 1.0, 0.0);
        self.flat(all, device)
    }
}
