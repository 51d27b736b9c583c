//! Decoding on tensors, for models whose layers cannot be planned.

use super::{Body, Following, PlannedRows, Texts};
use crate::seq2seq::index;
use burn::tensor::{Device, Int, Tensor};
use regard_attention::layers::KvCache;

/// A body whose layers read tokens after those in a KV cache.
pub(crate) trait Walks: Body {
    /// Returns an empty cache for each layer.
    fn caches(&self) -> Vec<KvCache>;

    /// Reads tokens after those in the caches: `words: [R, new]` → hidden states `[R, new, M]`.
    fn walk(&self, words: Tensor<2, Int>, caches: &mut [KvCache]) -> Tensor<3>;

    /// The rows after their prompts, by a plan if there is one.
    fn planned_or_walk<'a>(&'a self, read: &[&[u32]]) -> Box<dyn Following + 'a> {
        match self.decoder().and_then(|layers| PlannedRows::new(&layers, read)) {
            Some(rows) => Box::new(rows),
            None => Box::new(Walk::new(self, read)),
        }
    }
}

/// Decoding state with a KV cache, on tensors.
struct Walk<'a, M> {
    model: &'a M,
    caches: Vec<KvCache>,
    device: Device,
}

impl<'a, M: Walks> Walk<'a, M> {
    fn new(model: &'a M, read: &[&[u32]]) -> Walk<'a, M> {
        let words = model.words().expect("a decoder has words");
        let mut walk = Walk { model, caches: model.caches(), device: words.table.device() };
        if read.iter().any(|row| !row.is_empty()) {
            let mut texts = Texts::new();
            read.iter().for_each(|row| texts.push(row));
            model.walk(texts.words(&walk.device), &mut walk.caches);
        }
        walk
    }
}

impl<M: Walks> Following for Walk<'_, M> {
    fn step(&mut self, words: Tensor<2, Int>) -> Tensor<2> {
        let x = self.model.walk(words, &mut self.caches);
        let [rows, _, m] = x.dims();
        x.reshape([rows, m])
    }

    fn reorder(&mut self, parents: &[usize]) {
        let rows = index(parents, &self.device);
        self.caches.iter_mut().for_each(|cache| cache.select(rows.clone()));
    }
}

/// Checks that a plan gives the hidden states of the tensors, up to `error`, through steps and
/// changes of the rows after two prompts.
#[cfg(test)]
pub(crate) fn planned_as_walked(model: &impl Walks, prompt: &[u32], error: f32) {
    let device = Device::flex();
    let read: [&[u32]; 2] = [prompt, prompt];
    let mut plan = model.follow(&read).unwrap();
    let mut walk = Walk::new(model, &read);
    let orders: [&[usize]; 5] = [&[0, 1], &[1, 0], &[0, 0, 1], &[2, 1, 0], &[1]];
    let mut rows = 2;
    for (step, parents) in orders.iter().enumerate() {
        let words: Vec<u32> = (0..rows).map(|r| (r * 9 + step as u32 * 4) % 31).collect();
        let words = crate::seq2seq::tokens(&words, &device);
        let got = plan.step(words.clone()).into_data();
        let want = walk.step(words).into_data();
        assert_eq!(got.shape(), want.shape());
        for (got, want) in got.iter::<f32>().zip(want.iter::<f32>()) {
            assert!((got - want).abs() < error, "step {step}: {got} {want}");
        }
        plan.reorder(parents);
        walk.reorder(parents);
        rows = parents.len() as u32;
    }
}
