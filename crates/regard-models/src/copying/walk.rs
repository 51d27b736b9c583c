//! Decoding with the pointer-generator, word by word.

use super::plan::Planned;
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

impl Mixed {
    /// Fills `words` from the probabilities `known` of the words of the vocabulary, `[R, V]`, and
    /// from weights and share. `text` is the source text of a row.
    pub(super) fn mix<'t>(
        &mut self,
        known: &[f32],
        wide: usize,
        copies: bool,
        text: impl Fn(usize) -> &'t [u32],
    ) {
        let rows = self.share.len();
        let (v, s) = (known.len() / rows.max(1), self.weights.len() / rows.max(1));
        self.words.clear();
        self.words.resize(rows * wide, 0.0);
        for (row, to) in self.words.chunks_exact_mut(wide).enumerate() {
            let (share, weights) = (self.share[row], &self.weights[row * s..][..s]);
            to.iter_mut().zip(&known[row * v..][..v]).for_each(|(to, p)| *to = share * p);
            if copies {
                for (word, weight) in text(row).iter().zip(weights) {
                    to[*word as usize] += (1.0 - share) * weight;
                }
            }
        }
    }
}

/// Decoding state of a pointer-generator.
pub struct CopyDecoding<'a> {
    model: &'a PointerGenerator,
    batch: &'a CopyBatch,
    way: Way<'a>,
}

enum Way<'a> {
    Planned(Box<Planned>),
    Tensors(Box<Walk<'a>>),
}

impl<'a> CopyDecoding<'a> {
    pub(super) fn new(model: &'a PointerGenerator, batch: &'a CopyBatch) -> CopyDecoding<'a> {
        let read = model.read(batch, Mode::Eval);
        let way = match Planned::new(model, &read) {
            Some(plan) => Way::Planned(Box::new(plan)),
            None => Way::Tensors(Box::new(Walk::new(model, batch, read))),
        };
        CopyDecoding { model, batch, way }
    }

    /// Size of the extended vocabulary.
    pub fn width(&self) -> usize {
        self.batch.extended(self.model.config.shape.vocab_size)
    }

    /// Number of positions of the longest source text.
    pub fn places(&self) -> usize {
        match &self.way {
            Way::Planned(plan) => plan.places(),
            Way::Tensors(walk) => walk.keys.dims()[1],
        }
    }

    /// Feeds each row its last word; returns the prediction of the next.
    pub fn step(&mut self, words: &[u32]) -> Mixed {
        let mut mixed = Mixed::default();
        self.step_into(words, &mut mixed);
        mixed
    }

    /// As [`CopyDecoding::step`], in the memory of an earlier prediction.
    pub fn step_into(&mut self, words: &[u32], mixed: &mut Mixed) {
        let (v, unknown) = (self.model.config.shape.vocab_size, self.model.config.unk_token_id);
        let known = |word: &u32| if (*word as usize) < v { *word } else { unknown };
        let ids: Vec<u32> = words.iter().map(known).collect();
        match &mut self.way {
            Way::Planned(plan) => plan.step(&ids, self.batch, mixed),
            Way::Tensors(walk) => walk.step(&ids, mixed),
        }
    }

    /// Reorders rows for beam search: row `i` continues from the state of row `parents[i]`.
    pub fn reorder(&mut self, parents: &[usize]) {
        match &mut self.way {
            Way::Planned(plan) => plan.reorder(parents),
            Way::Tensors(walk) => walk.reorder(parents),
        }
    }
}

/// Decoding with tensors.
pub(super) struct Walk<'a> {
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

impl<'a> Walk<'a> {
    pub fn new(model: &'a PointerGenerator, batch: &'a CopyBatch, read: Read) -> Walk<'a> {
        let Read { states, start, lengths } = read;
        let [b, s, _] = states.dims();
        Walk {
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

    /// Feeds each row its last word, which the vocabulary has.
    pub fn step(&mut self, ids: &[u32], mixed: &mut Mixed) {
        let (model, device) = (self.model, self.keys.device());
        let (v, r, s) = (model.config.shape.vocab_size, ids.len(), self.keys.dims()[1]);
        let ids: Vec<i64> = ids.iter().map(|word| i64::from(*word)).collect();
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
        match model.share(context, state, word) {
            Some(share) => backend::numbers(share, &mut mixed.share),
            None => mixed.share = vec![1.0; r],
        }
        backend::numbers(weights, &mut mixed.weights);
        let mut known = vec![];
        backend::numbers(activation::softmax(logits, 2), &mut known);
        let texts = |row: usize| self.batch.text(self.text[row]);
        mixed.mix(&known, self.batch.extended(v), model.gate.is_some(), texts);
    }

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
