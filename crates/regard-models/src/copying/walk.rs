//! Decoding with the pointer-generator, word by word.

use super::{CopyBatch, Looked, Memory, PointerGenerator, Read};
use crate::seq2seq::index;
use burn::tensor::{Int, Tensor, TensorData, activation};
use regard_attention::layers::LayerStates;
use regard_attention::{Mode, backend};

/// Prediction of the next word of each row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mixed {
    /// `[R, V + more]`: probability of each word of the extended vocabulary; words that only the
    /// source texts have come after those of the vocabulary.
    pub words: Vec<f32>,
    /// `[R, S]`: attention weights over the source.
    pub weights: Vec<f32>,
    /// `[R]`: probability `p_gen` of generating, not copying; 1 for a model that cannot copy.
    pub share: Vec<f32>,
}

/// Decoding state of a pointer-generator.
pub struct CopyDecoding<'a> {
    model: &'a PointerGenerator,
    batch: &'a CopyBatch,
    hidden: LayerStates,
    /// `[R, S, A]`
    keys: Tensor<3>,
    /// `[R, S, W]`
    values: Tensor<3>,
    lengths: Vec<i64>,
    /// `[R, S]`: coverage, the sum of all attention weights so far.
    before: Tensor<2>,
    /// Index of the source text of each row.
    text: Vec<usize>,
}

impl<'a> CopyDecoding<'a> {
    pub(super) fn new(model: &'a PointerGenerator, batch: &'a CopyBatch) -> CopyDecoding<'a> {
        let Read { states, start, lengths } = model.read(batch, Mode::Eval);
        let [b, s, _] = states.dims();
        CopyDecoding {
            model,
            batch,
            hidden: start,
            keys: model.score.keys(states.clone()),
            before: Tensor::zeros([b, s], &states.device()),
            values: states,
            lengths,
            text: (0..b).collect(),
        }
    }

    /// Size of the extended vocabulary.
    pub fn width(&self) -> usize {
        self.batch.extended(self.model.config.shape.vocab_size)
    }

    /// Number of positions of the longest source text.
    pub fn places(&self) -> usize {
        self.keys.dims()[1]
    }

    /// Feeds each row its last word; returns the prediction of the next.
    pub fn step(&mut self, words: &[u32]) -> Mixed {
        let (model, device) = (self.model, self.keys.device());
        let (v, unknown) = (model.config.shape.vocab_size, model.config.unk_token_id);
        let (r, wide, s) = (words.len(), self.width(), self.places());
        let ids: Vec<i64> = words
            .iter()
            .map(|word| i64::from(if (*word as usize) < v { *word } else { unknown }))
            .collect();
        let ids = Tensor::<2, Int>::from_data(TensorData::new(ids, [r, 1]), &device);
        let word = model.reader.words.forward(ids);
        let (state, hidden) =
            model.decoder.forward(word.clone(), Some(&self.hidden), None, Mode::Eval);
        self.hidden = hidden;
        let (keys, values) = (self.keys.clone(), self.values.clone());
        let memory = Memory { keys, values, lengths: &self.lengths };
        let Looked { context, weights, .. } =
            model.look(state.clone(), &memory, Some(self.before.clone()));
        self.before = self.before.clone() + weights.clone().reshape([r, s]);
        let said = [state.clone(), context.clone(), word.clone()];
        let logits = model.readout.forward(said, true, &model.reader.words, Mode::Eval);
        let mut mixed = Mixed { share: vec![1.0; r], ..Mixed::default() };
        if let Some(share) = model.share(context, state, word) {
            backend::numbers(share, &mut mixed.share);
        }
        backend::numbers(weights, &mut mixed.weights);
        let mut known = vec![];
        backend::numbers(activation::softmax(logits, 2), &mut known);
        mixed.words = vec![0.0; r * wide];
        for (row, to) in mixed.words.chunks_exact_mut(wide).enumerate() {
            let (share, weights) = (mixed.share[row], &mixed.weights[row * s..][..s]);
            to.iter_mut().zip(&known[row * v..][..v]).for_each(|(to, p)| *to = share * p);
            if model.gate.is_some() {
                for (word, weight) in self.batch.text(self.text[row]).iter().zip(weights) {
                    to[*word as usize] += (1.0 - share) * weight;
                }
            }
        }
        mixed
    }

    /// Reorders rows for beam search: row `i` continues from the state of row `parents[i]`.
    pub fn reorder(&mut self, parents: &[usize]) {
        let rows = index(parents, &self.keys.device());
        self.hidden = LayerStates {
            h: self.hidden.h.clone().select(1, rows.clone()),
            c: self.hidden.c.take().map(|c| c.select(1, rows.clone())),
        };
        self.keys = self.keys.clone().select(0, rows.clone());
        self.values = self.values.clone().select(0, rows.clone());
        self.before = self.before.clone().select(0, rows);
        self.lengths = parents.iter().map(|row| self.lengths[*row]).collect();
        self.text = parents.iter().map(|row| self.text[*row]).collect();
    }
}
