//! What every model that reads one sequence and writes another can do, whatever it is made of.

use crate::network::Network;
use burn::tensor::{Device, Int, Tensor, TensorData};
use regard_attention::Mode;

/// What is read: rows of token numbers, padded to one length.
#[derive(Clone, Debug)]
pub struct Source {
    /// `[B, S]`
    pub ids: Tensor<2, Int>,
    /// `[B]`: how much of each row is not padding.
    pub lengths: Vec<usize>,
}

impl Source {
    /// The lengths as masks take them.
    pub fn valid(&self) -> Vec<i64> {
        self.lengths.iter().map(|n| *n as i64).collect()
    }
}

/// What a model says when it is told the right words so far (teacher forcing).
#[derive(Debug)]
pub struct Scores {
    /// `[B, T, V]`: of what comes next, before the softmax.
    pub logits: Tensor<3>,
    /// `[B, T]`: the log-probability of where it chose to look, if it learns to look by REINFORCE.
    pub log_prob: Option<Tensor<2>>,
}

/// What a model says of the next word.
#[derive(Debug)]
pub struct Next {
    /// `[R, V]`
    pub logits: Tensor<2>,
    /// `[R, S]`: where it looked, if it looks anywhere and was asked.
    pub attention: Option<Tensor<2>>,
}

/// A model in the middle of writing some rows.
pub trait Decoding {
    /// Feeds one word to each row.
    ///
    /// # Shapes
    /// `words: [R, 1]`
    fn step(&mut self, words: Tensor<2, Int>) -> Next;

    /// Row `i` goes on as what row `parents[i]` was.
    fn reorder(&mut self, parents: &[usize]);
}

/// An encoder–decoder.
pub trait Seq2Seq: Network {
    /// Scores of every next word, given the words before it.
    ///
    /// # Shapes
    /// `words: [B, T]`, beginning with the start token
    fn forward(&self, source: &Source, words: Tensor<2, Int>, mode: Mode) -> Scores;

    /// Reads the source and is ready to write, one row for each of its rows.
    fn decode<'a>(&'a self, source: &Source, look: bool) -> Box<dyn Decoding + 'a>;

    /// The longest row that it can read or write, if there is one.
    fn longest(&self) -> Option<usize> {
        None
    }
}

/// Which rows of a batch belong to which sentence, so that what was read is kept once for each
/// sentence and not once for each of its beams.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    /// The sentence of each row.
    sentence: Vec<usize>,
}

/// How what was read must change to fit the new rows.
pub(crate) enum Change {
    /// Nothing to do.
    None,
    /// Only these sentences are left (or each row has become its own).
    Keep(Vec<usize>),
}

impl Rows {
    pub fn new(sentences: usize) -> Rows {
        Rows { sentence: (0..sentences).collect() }
    }

    pub fn len(&self) -> usize {
        self.sentence.len()
    }

    /// Rows for each sentence: all sentences have the same number, next to each other.
    pub fn beams(&self) -> usize {
        let sentences = self.sentence.last().map_or(1, |last| last + 1);
        self.len() / sentences
    }

    pub fn reorder(&mut self, parents: &[usize]) -> Change {
        let old = self.sentence.last().map_or(0, |last| last + 1);
        let of: Vec<usize> = parents.iter().map(|row| self.sentence[*row]).collect();
        let mut kept: Vec<usize> = of.clone();
        kept.dedup();
        let beams = if kept.is_empty() { 1 } else { of.len() / kept.len() };
        let even = of.len() == kept.len() * beams
            && of.chunks(beams.max(1)).zip(&kept).all(|(rows, s)| rows.iter().all(|x| x == s));
        if !even {
            // Sentences with different numbers of rows: each row gets a copy of its own.
            self.sentence = (0..of.len()).collect();
            return Change::Keep(of);
        }
        self.sentence = (0..of.len()).map(|row| row / beams).collect();
        let same = kept.len() == old && kept.iter().enumerate().all(|(i, s)| i == *s);
        if same { Change::None } else { Change::Keep(kept) }
    }
}

/// Row numbers as an index tensor.
pub(crate) fn index(rows: &[usize], device: &Device) -> Tensor<1, Int> {
    let numbers: Vec<i64> = rows.iter().map(|row| *row as i64).collect();
    Tensor::from_data(TensorData::new(numbers, [rows.len()]), device)
}
