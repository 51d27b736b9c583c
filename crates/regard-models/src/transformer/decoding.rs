//! Writing word by word, with keys and values kept.

use super::Transformer;
use super::stack::{Decoder, Seen};
use crate::look::Place;
use crate::seq2seq::{Change, Decoding, Next, Rows, Source, index};
use burn::tensor::{Int, Tensor};
use regard_attention::layers::{Cache, Call};
use regard_attention::{Attention, Mode};

/// What layers that write keep between two steps.
pub(crate) struct Kept {
    /// For each layer `[B, S, 2·M]`: keys and values of what was read.
    remembered: Vec<Tensor<3>>,
    /// For each layer: keys and values of what was written.
    caches: Vec<Cache>,
    /// `[B]`: how much of what was read is not padding.
    pub lengths: Vec<i64>,
    /// Which rows belong to which sentence.
    pub rows: Rows,
}

impl Kept {
    /// Ready to write about what was read.
    ///
    /// # Shapes
    /// `memory: [B, S, M]`
    pub fn new(decoder: &Decoder, memory: Tensor<3>, lengths: Vec<i64>) -> Kept {
        let layers = &decoder.layers;
        Kept {
            remembered: layers.iter().map(|l| l.cross.remember(memory.clone())).collect(),
            caches: layers.iter().map(|_| Cache::new()).collect(),
            rows: Rows::new(lengths.len()),
            lengths,
        }
    }

    /// Words written so far.
    pub fn written(&self) -> usize {
        self.caches[0].len()
    }

    /// Row `i` goes on as what row `parents[i]` was; what became of the sentences.
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
    /// The next position of each row; `look` asks where the layer of the alignment looked.
    ///
    /// # Shapes
    /// `x: [R, 1, M]` → the same
    pub fn step(&self, x: Tensor<3>, kept: &mut Kept, look: bool) -> (Tensor<3>, Seen) {
        let ([r, _, m], b, beams) = (x.dims(), kept.lengths.len(), kept.rows.beams());
        let place = Place { lengths: &kept.lengths, first: kept.written(), one_number: true };
        let mut sum = self.residual(x);
        let mut seen = Seen::default();
        for (i, layer) in self.layers.iter().enumerate() {
            let (past, norms) = (Attention::dot(), self.norms(i));
            let call = Call::new(&past).cache(&mut kept.caches[i]);
            sum.add(layer.attention.forward(sum.input(), call), norms[0]);
            // Beams of one sentence ask together, so that what was read is there once.
            let asks = sum.input().reshape([b, beams, m]);
            let look = (Mode::Eval, look && i == self.alignment);
            let out = layer.look(asks, kept.remembered[i].clone(), &place, look, &mut seen);
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
