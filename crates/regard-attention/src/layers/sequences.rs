//! Ragged sequences concatenated without padding, and the padded batches that some layers need.
//!
//! Characters of words and words of texts have many lengths. Layers that process one row at a time
//! get all rows at once, `[N, M]`; recurrent layers and attention get padded batches of sequences
//! of similar length, so that one long sequence among thousands of short ones does not fill memory
//! with padding. Rows of a batch do not depend on each other, bit for bit, so the batching does not
//! change results.

use crate::ops;
use burn::tensor::{Int, Tensor, TensorData};

/// More padded positions than this, and than real ones, start a new batch.
const SLACK: usize = 1024;

/// Lengths of ragged sequences that are concatenated without padding.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use regard_attention::layers::Sequences;
///
/// let sequences = Sequences::new(&[2, 1]);
/// let x = Tensor::<2>::from_floats([[1.], [2.], [3.]], &Device::flex());
/// let sums = sequences.whole(x, |x, lengths| {
///     assert_eq!((x.dims(), lengths), ([2, 2, 1], &[2, 1][..]));
///     x.slice([0..2, 0..1, 0..1]).reshape([2, 1])
/// });
/// assert_eq!(sums.to_data().try_to_vec::<f32>().unwrap(), [1., 3.]);
/// ```
#[derive(Clone, Debug)]
pub struct Sequences {
    lengths: Vec<usize>,
    firsts: Vec<usize>,
    batches: Vec<Padded>,
}

/// A batch of sequences, padded to the same length.
#[derive(Clone, Debug)]
struct Padded {
    /// Indices of the sequences.
    members: Vec<usize>,
    lengths: Vec<usize>,
    longest: usize,
}

impl Sequences {
    /// Creates sequences of these lengths.
    ///
    /// # Panics
    /// If a length is 0.
    pub fn new(lengths: &[usize]) -> Sequences {
        assert!(lengths.iter().all(|n| *n > 0), "sequences: got a length of 0, need at least 1");
        let sum = |next: &mut usize, length: &usize| {
            *next += length;
            Some(*next - length)
        };
        Sequences {
            firsts: lengths.iter().scan(0, sum).collect(),
            batches: batches(lengths),
            lengths: lengths.to_vec(),
        }
    }

    /// Returns the number of sequences.
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Whether there are no sequences.
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// Returns the length of each sequence.
    pub fn lengths(&self) -> &[usize] {
        &self.lengths
    }

    /// Returns the index of the first row of each sequence.
    pub fn firsts(&self) -> &[usize] {
        &self.firsts
    }

    /// Returns the index of the last row of each sequence.
    pub fn lasts(&self) -> Vec<usize> {
        self.firsts.iter().zip(&self.lengths).map(|(first, n)| first + n - 1).collect()
    }

    /// Applies a function of padded batches and their lengths that returns a row per input row.
    ///
    /// # Shapes
    /// `x: [N, I]`, `f: [B, T, I]` → `[B, T, O]` → `[N, O]`
    pub fn rows(
        &self,
        x: Tensor<2>,
        mut f: impl FnMut(Tensor<3>, &[usize]) -> Tensor<3>,
    ) -> Tensor<2> {
        let flat = |y: Tensor<3>| {
            let [b, t, o] = y.dims();
            y.reshape([b * t, o])
        };
        let each = self.batches.iter().map(|batch| flat(f(self.pad(&x, batch), &batch.lengths)));
        let all = Tensor::cat(each.collect(), 0);
        if self.is_even() {
            return all;
        }
        let mut places = vec![0; x.dims()[0]];
        let mut before = 0;
        for batch in &self.batches {
            for (row, member) in batch.members.iter().enumerate() {
                let first = before + row * batch.longest;
                let rows = self.firsts[*member]..self.firsts[*member] + self.lengths[*member];
                rows.zip(first..).for_each(|(row, place)| places[row] = place);
            }
            before += batch.members.len() * batch.longest;
        }
        gather(all, &places)
    }

    /// Applies a function of padded batches and their lengths that returns a row per sequence.
    ///
    /// # Shapes
    /// `x: [N, I]`, `f: [B, T, I]` → `[B, O]` → `[S, O]`
    pub fn whole(
        &self,
        x: Tensor<2>,
        mut f: impl FnMut(Tensor<3>, &[usize]) -> Tensor<2>,
    ) -> Tensor<2> {
        let each = self.batches.iter().map(|batch| f(self.pad(&x, batch), &batch.lengths));
        let all = Tensor::cat(each.collect(), 0);
        let mut places = vec![0; self.len()];
        let members = self.batches.iter().flat_map(|batch| &batch.members);
        members.enumerate().for_each(|(place, member)| places[*member] = place);
        if places.is_sorted() { all } else { gather(all, &places) }
    }

    /// Returns the window of `width` rows around each row, concatenated, with zero padding at the
    /// ends of each sequence. With an even width, the longer half comes after the row.
    ///
    /// # Shapes
    /// `x: [N, M]` → `[N, width·M]`
    pub fn windows(&self, x: Tensor<2>, width: usize) -> Tensor<2> {
        self.windows_apart(x, width, 1).0
    }

    /// Returns the windows around every `stride`-th row of each sequence, and the sequences with
    /// their new lengths.
    ///
    /// # Shapes
    /// `x: [N, M]` → `[N′, width·M]`
    pub fn windows_apart(
        &self,
        x: Tensor<2>,
        width: usize,
        stride: usize,
    ) -> (Tensor<2>, Sequences) {
        let ([_, m], before) = (x.dims(), (width - 1) / 2);
        let kept: Vec<usize> = self.lengths.iter().map(|n| n.div_ceil(stride)).collect();
        let n = kept.iter().sum::<usize>();
        // Row 0 is the padding.
        let table = Tensor::cat(vec![Tensor::zeros([1, m], (&x.device(), x.dtype())), x], 0);
        let mut ids = Vec::with_capacity(n * width);
        for (first, length) in self.firsts.iter().zip(&self.lengths) {
            for at in (0..*length).step_by(stride) {
                ids.extend((at..at + width).map(|place| match place.checked_sub(before) {
                    Some(place) if place < *length => (first + place + 1) as i64,
                    _ => 0,
                }));
            }
        }
        let ids = Tensor::<2, Int>::from_data(TensorData::new(ids, [n, width]), &table.device());
        let windows = ops::embedding(table, ids, Some(0)).reshape([n, width * m]);
        (windows, if stride == 1 { self.clone() } else { Sequences::new(&kept) })
    }

    /// Whether the rows already form one batch without padding.
    fn is_even(&self) -> bool {
        self.batches.len() <= 1 && self.lengths.iter().all(|n| *n == self.lengths[0])
    }

    /// Pads a batch. Positions past the end of a sequence hold an arbitrary row; callers mask them
    /// by the lengths.
    fn pad(&self, x: &Tensor<2>, batch: &Padded) -> Tensor<3> {
        let [_, m] = x.dims();
        if self.is_even() {
            return x.clone().reshape([batch.members.len(), batch.longest, m]);
        }
        let shape = [batch.members.len(), batch.longest];
        let mut ids = Vec::with_capacity(shape[0] * shape[1]);
        for (member, length) in batch.members.iter().zip(&batch.lengths) {
            let first = self.firsts[*member];
            ids.extend((0..batch.longest).map(|i| (first + i.min(length - 1)) as i64));
        }
        let ids = Tensor::<2, Int>::from_data(TensorData::new(ids, shape), &x.device());
        ops::embedding(x.clone(), ids, None)
    }
}

/// Gathers rows by index.
///
/// # Shapes
/// `x: [N, M]`, `rows: [R]` → `[R, M]`
fn gather(x: Tensor<2>, rows: &[usize]) -> Tensor<2> {
    let [_, m] = x.dims();
    let ids: Vec<i64> = rows.iter().map(|row| *row as i64).collect();
    let ids = Tensor::<2, Int>::from_data(TensorData::new(ids, [1, rows.len()]), &x.device());
    ops::embedding(x, ids, None).reshape([rows.len(), m])
}

/// All sequences in one batch if little of it is padding, otherwise batches by length.
fn batches(lengths: &[usize]) -> Vec<Padded> {
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let full = |padded: usize, real: usize| padded <= 2 * real + SLACK;
    if !full(longest * lengths.len(), lengths.iter().sum()) {
        order.sort_by_key(|i| std::cmp::Reverse(lengths[*i]));
    }
    let mut batches: Vec<Padded> = vec![];
    let mut real = 0;
    for member in order {
        let length = lengths[member];
        let room = batches.last_mut().filter(|batch| {
            let longest = batch.longest.max(length);
            full(longest * (batch.members.len() + 1), real + length)
        });
        match room {
            Some(batch) => {
                batch.members.push(member);
                batch.lengths.push(length);
                batch.longest = batch.longest.max(length);
                real += length;
            }
            None => {
                let (members, lengths) = (vec![member], vec![length]);
                batches.push(Padded { members, lengths, longest: length });
                real = length;
            }
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_within_twice_what_is_there() {
        for lengths in [vec![4000; 3], [vec![5000], vec![1; 3000]].concat(), (1..300).collect()] {
            let batches = batches(&lengths);
            let mut seen: Vec<usize> = batches.iter().flat_map(|b| b.members.clone()).collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..lengths.len()).collect::<Vec<_>>());
            for batch in &batches {
                let real: usize = batch.lengths.iter().sum();
                assert!(batch.longest * batch.members.len() <= 2 * real + SLACK);
            }
        }
    }
}
