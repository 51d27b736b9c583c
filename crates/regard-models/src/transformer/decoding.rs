//! Writing word by word, with keys and values kept.

use super::Transformer;
use super::stack::{Seen, Sum};
use crate::look::Place;
use crate::seq2seq::{Change, Decoding, Next, Rows, Source, index};
use burn::tensor::{Int, Tensor};
use regard_attention::layers::Cache;
use regard_attention::{Attention, Mode};

pub(super) struct Walk<'a> {
    model: &'a Transformer,
    /// For each layer `[B, S, 2·M]`: keys and values of what was read.
    remembered: Vec<Tensor<3>>,
    /// For each layer: keys and values of what was written.
    caches: Vec<Cache>,
    lengths: Vec<i64>,
    rows: Rows,
    look: bool,
}

impl<'a> Walk<'a> {
    pub fn new(model: &'a Transformer, source: &Source, look: bool) -> Walk<'a> {
        let memory = model.read(source, Mode::Eval);
        let layers = &model.decoder.layers;
        let lengths = source.valid();
        Walk {
            model,
            remembered: layers.iter().map(|l| l.cross.remember(memory.clone())).collect(),
            caches: layers.iter().map(|_| Cache::new()).collect(),
            rows: Rows::new(lengths.len()),
            lengths,
            look,
        }
    }
}

impl Decoding for Walk<'_> {
    fn step(&mut self, words: Tensor<2, Int>) -> Next {
        let (decoder, first) = (&self.model.decoder, self.caches[0].len());
        let x = decoder.vectors.forward(self.model.written(), words, first, Mode::Eval);
        let ([r, _, m], b, beams) = (x.dims(), self.lengths.len(), self.rows.beams());
        let place = Place { lengths: &self.lengths, first, one_number: true };
        let mut sum = Sum::new(decoder.norms, decoder.all_norms(), x);
        let mut seen = Seen::default();
        for (i, layer) in decoder.layers.iter().enumerate() {
            let past = Attention::dot();
            let cache = &mut self.caches[i];
            sum.add(layer.attention.forward_cached(sum.input(), &past, None, cache));
            // Beams of one sentence ask together, so that what was read is there once.
            let asks = sum.input().reshape([b, beams, m]);
            let look = (Mode::Eval, self.look && i == decoder.alignment);
            let out = layer.look(asks, self.remembered[i].clone(), &place, look, &mut seen);
            sum.add(out.reshape([r, 1, m]));
            sum.add(layer.forward.forward(sum.input(), Mode::Eval));
        }
        let attention = seen.weights.map(|weights| {
            let [_, _, s] = weights.dims();
            weights.reshape([r, s])
        });
        Next { logits: self.model.logits(sum.input()).squeeze_dim(1), attention }
    }

    fn reorder(&mut self, parents: &[usize]) {
        let device = self.remembered[0].device();
        let same =
            parents.len() == self.rows.len() && parents.iter().enumerate().all(|(i, p)| i == *p);
        if !same {
            let rows = index(parents, &device);
            self.caches.iter_mut().for_each(|cache| cache.select(rows.clone()));
        }
        if let Change::Keep(kept) = self.rows.reorder(parents) {
            let rows = index(&kept, &device);
            for remembered in &mut self.remembered {
                *remembered = remembered.clone().select(0, rows.clone());
            }
            self.lengths = kept.iter().map(|sentence| self.lengths[*sentence]).collect();
        }
    }
}
