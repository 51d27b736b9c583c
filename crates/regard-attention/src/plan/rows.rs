//! Attention of recurrent decoders to the states of an encoder.

use super::{Floats, Part, copied, timed};
use crate::backend::ok;
use burn::tensor::Tensor;
use regard_kernels::attention::decode_rows;
pub use regard_kernels::attention::{RowQuery, RowScore};

/// Keys and values of encoded sentences, and the sentence of each row of a decoder. Sentences are
/// never copied: rows refer to them.
pub struct EncodedSentences {
    /// `[B, S, D]`; `None` if the values are the keys.
    keys: Option<Floats>,
    /// `[B, S, E]`
    values: Floats,
    /// `S`
    states: usize,
    /// `D` and `E`
    widths: [usize; 2],
    /// `[B]`: states that are not padding.
    lengths: Vec<usize>,
    /// Sentence of each row.
    sentence: Vec<usize>,
}

impl EncodedSentences {
    /// Copies keys and values of sentences; without keys, the values are their own. There is a row
    /// for each sentence.
    ///
    /// # Shapes
    /// `keys: [B, S, D]`, `values: [B, S, E]`, `lengths: [B]`
    ///
    /// # Panics
    /// If sizes do not match.
    pub fn new(keys: Option<Tensor<3>>, values: Tensor<3>, lengths: &[i64]) -> EncodedSentences {
        let [b, states, e] = values.dims();
        let d = keys.as_ref().map_or(e, |keys| keys.dims()[2]);
        let lengths: Vec<usize> = lengths.iter().map(|n| (*n).max(0) as usize).collect();
        let fits = |keys: &Tensor<3>| keys.dims()[..2] == [b, states];
        assert!(
            keys.as_ref().is_none_or(fits)
                && lengths.len() == b
                && lengths.iter().all(|n| *n <= states),
            "encoded sentences: got values [{b}, {states}, {e}] and lengths {lengths:?}"
        );
        let floats = |x: Tensor<3>| {
            let mut floats = Floats::new();
            copied(x, &mut floats);
            floats
        };
        EncodedSentences {
            keys: keys.map(floats),
            values: floats(values),
            states,
            widths: [d, e],
            lengths,
            sentence: (0..b).collect(),
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.sentence.len()
    }

    /// Number of states of the longest sentence.
    pub fn states(&self) -> usize {
        self.states
    }

    /// Sentence of a row.
    pub fn sentence(&self, row: usize) -> usize {
        self.sentence[row]
    }

    /// Number of states of a row's sentence.
    pub fn length(&self, row: usize) -> usize {
        self.lengths[self.sentence[row]]
    }

    /// Values of a row's sentence, `[S, E]`.
    pub fn values(&self, row: usize) -> &[f32] {
        self.of(&self.values, row, self.widths[1])
    }

    fn of<'a>(&self, all: &'a [f32], row: usize, width: usize) -> &'a [f32] {
        let each = self.states * width;
        &all[self.sentence[row] * each..][..each]
    }

    /// Makes the query of a row, over all states of its sentence.
    ///
    /// # Shapes
    /// `q: [D]`
    pub fn query<'a>(&'a self, row: usize, q: &'a [f32]) -> RowQuery<'a> {
        let keys = self.keys.as_ref().unwrap_or(&self.values);
        RowQuery {
            q,
            k: self.of(keys, row, self.widths[0]),
            v: self.values(row),
            keys: 0..self.length(row),
            coverage: None,
            gaussian: None,
        }
    }

    /// Attends from all rows, and replaces the contents of `context` and, if they are wanted,
    /// `weights`. `change` may change the query of a row.
    ///
    /// # Shapes
    /// `q: [R, D]` → `context: [R, E]`, `weights: [R, S]`
    ///
    /// # Panics
    /// If sizes do not match.
    pub fn attend<'a>(
        &'a self,
        q: &'a [f32],
        score: RowScore,
        change: impl Fn(usize, RowQuery<'a>) -> RowQuery<'a>,
        context: &mut Floats,
        weights: Option<&mut Floats>,
    ) {
        let rows = self.rows();
        let [d, e] = self.widths;
        assert_eq!(q.len(), rows * d, "attend: needs a query of width {d} for each of {rows} rows");
        context.set_len(rows * e);
        timed(Part::Attention, || {
            let query = |row: usize| change(row, self.query(row, &q[row * d..(row + 1) * d]));
            let queries: Vec<RowQuery> = (0..rows).map(query).collect();
            let weights = weights.map(|weights| {
                weights.set_len(rows * self.states);
                &mut weights[..]
            });
            ok(decode_rows(&queries, score, self.widths, context, weights));
        });
    }

    /// Reorders rows: row `i` continues row `parents[i]`.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn reorder(&mut self, parents: &[usize]) {
        self.sentence = parents.iter().map(|row| self.sentence[*row]).collect();
    }
}
