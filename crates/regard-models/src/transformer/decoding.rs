//! Decoding token by token, with a KV cache.

use super::Transformer;
use super::stack::{Decoder, Seen};
use crate::cross_attention::{AttendOptions, QueryPositions};
use crate::seq2seq::{Change, Decoding, Next, Rows, Source, index};
use burn::tensor::{Int, Tensor};
use regard_attention::layers::{Call, KvCache};
use regard_attention::{Attention, Mode};

/// State of the decoder between two steps.
pub(crate) struct Kept {
    /// `[B, S, 2·M]` for each layer: keys and values of the encoder states.
    remembered: Vec<Tensor<3>>,
    /// KV cache of each layer's self-attention.
    caches: Vec<KvCache>,
    /// `[B]`: source tokens that are not padding.
    pub lengths: Vec<i64>,
    /// Assignment of rows to sentences.
    pub rows: Rows,
}

impl Kept {
    /// Projects encoder states to keys and values, and starts with empty caches.
    ///
    /// # Shapes
    /// `memory: [B, S, M]`
    pub fn new(decoder: &Decoder, memory: Tensor<3>, lengths: Vec<i64>) -> Kept {
        let layers = &decoder.layers;
        Kept {
            remembered: layers.iter().map(|l| l.cross.remember(memory.clone())).collect(),
            caches: layers.iter().map(|_| KvCache::new()).collect(),
            rows: Rows::new(lengths.len()),
            lengths,
        }
    }

    /// Number of tokens decoded so far.
    pub fn written(&self) -> usize {
        self.caches[0].len()
    }

    /// Reorders rows for beam search: row `i` continues from the state of row `parents[i]`. Returns
    /// the change of the sentences.
    pub fn reorder(&mut self, parents: &[usize]) -> Change {
        let device = self.remembered[0].device();
        let same =
            parents.len() == self.rows.len() && parents.iter().enumerate().all(|(i, p)| i == *p);
        if !same {
            let rows = index(parents, &device);
            self.caches.iter_mut().for_each(|cache| cache.select(rows.clone()));
        }
        let change = self.rows.reorder(parents);
        if let Change::Keep(kept) = &change {
            let rows = index(kept, &device);
            for remembered in &mut self.remembered {
                *remembered = remembered.clone().select(0, rows.clone());
            }
            self.lengths = kept.iter().map(|sentence| self.lengths[*sentence]).collect();
        }
        change
    }
}

impl Decoder {
    /// Computes the next position of each row; `look` requests the weights of the alignment layer.
    ///
    /// # Shapes
    /// `x: [R, 1, M]` → `[R, 1, M]`
    pub fn step(&self, x: Tensor<3>, kept: &mut Kept, look: bool) -> (Tensor<3>, Seen) {
        let ([r, _, m], b, beams) = (x.dims(), kept.lengths.len(), kept.rows.beams());
        let place =
            QueryPositions { lengths: &kept.lengths, first: kept.written(), one_number: true };
        let mut sum = self.residual(x);
        let mut seen = Seen::default();
        for (i, layer) in self.layers.iter().enumerate() {
            let (past, norms) = (Attention::dot(), self.norms(i));
            let call = Call::new(&past).cache(&mut kept.caches[i]);
            sum.add(layer.attention.forward(sum.input(), call), norms[0]);
            // Beams of one sentence are queries of one attention: its keys are stored once.
            let asks = sum.input().reshape([b, beams, m]);
            let weights = look && i == self.alignment;
            let options = AttendOptions { mode: Mode::Eval, weights };
            let out = layer.look(asks, kept.remembered[i].clone(), &place, options, &mut seen);
            sum.add(out.reshape([r, 1, m]), norms[1]);
            sum.add(layer.forward.forward(sum.input(), Mode::Eval), norms[2]);
        }
        (sum.input(), seen)
    }
}

pub(super) struct Walk<'a> {
    model: &'a Transformer,
    kept: Kept,
    look: bool,
}

impl<'a> Walk<'a> {
    pub fn new(model: &'a Transformer, source: &Source, look: bool) -> Walk<'a> {
        let memory = model.read(source, Mode::Eval);
        Walk { model, kept: Kept::new(&model.decoder, memory, source.valid()), look }
    }
}

impl Decoding for Walk<'_> {
    fn step(&mut self, words: Tensor<2, Int>) -> Next {
        let (decoder, first) = (&self.model.decoder, self.kept.written());
        let x = decoder.vectors.forward(self.model.written(), words, first, Mode::Eval);
        let r = x.dims()[0];
        let (x, seen) = decoder.step(x, &mut self.kept, self.look);
        let attention = seen.weights.map(|weights| {
            let [_, _, s] = weights.dims();
            weights.reshape([r, s])
        });
        Next { logits: self.model.logits(x).squeeze_dim(1), attention }
    }

    fn reorder(&mut self, parents: &[usize]) {
        self.kept.reorder(parents);
    }
}
