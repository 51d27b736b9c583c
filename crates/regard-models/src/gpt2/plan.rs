//! Decoding step by step on slices: the plan of [`Walk`](super::Walk), which computes the same with
//! tensors and is its oracle.

use super::Gpt2;
use crate::text::Following;
use burn::tensor::{Int, Tensor, TensorData};
use regard_attention::layers::{KvCache, NormPlacement, Weight};
use regard_attention::plan::{
    Floats, PlannedFeedForward, PlannedNorm, PlannedResidual, PlannedSelfAttention, PlannedTable,
    RowCache,
};

/// Decoding state of several rows.
pub(super) struct Planned {
    words: PlannedTable,
    positions: PlannedTable,
    layers: Vec<Layer>,
    residual: PlannedResidual,
    /// Inputs of a step, and outputs of a sublayer.
    room: [Floats; 3],
}

struct Layer {
    attention: PlannedSelfAttention,
    forward: PlannedFeedForward,
    /// Norms before the attention, and after the two additions: that before the feed-forward
    /// network, and that of the next layer.
    norms: [PlannedNorm; 3],
    cache: RowCache,
}

impl Planned {
    /// Plans a model that has read the prompts of `rows` rows into `caches`; `None` if it is not on
    /// the CPU.
    pub fn new(model: &Gpt2, caches: &[KvCache], rows: usize) -> Option<Planned> {
        if !Weight::can_be_stored(&model.words.table.device()) {
            return None;
        }
        let layer = |number: usize| {
            let (block, cache) = (&model.layers[number], &caches[number]);
            let attention = PlannedSelfAttention::new(&block.attention, model.scales[number]);
            let next = model.layers.get(number + 1).and_then(|next| next.attention_norm.as_ref());
            let norms =
                [block.attention_norm.as_ref()?, &block.forward_norm, next.unwrap_or(&model.last)];
            Some(Layer {
                cache: RowCache::of(cache, rows, attention.cached()),
                attention,
                forward: PlannedFeedForward::new(&block.forward)?,
                norms: norms.map(PlannedNorm::new),
            })
        };
        Some(Planned {
            words: PlannedTable::new(&model.words),
            positions: PlannedTable::new(&model.positions),
            layers: (0..model.layers.len()).map(layer).collect::<Option<_>>()?,
            residual: PlannedResidual::new(NormPlacement::Pre),
            room: Default::default(),
        })
    }
}

impl Following for Planned {
    fn step(&mut self, words: Tensor<2, Int>) -> Tensor<2> {
        let device = words.device();
        let ids: Vec<u32> = words.into_data().iter::<i64>().map(|id| id as u32).collect();
        let shape = [ids.len(), self.words.width()];
        let hidden = self.step_slices(&ids).expect("a plan").to_vec();
        Tensor::from_data(TensorData::new(hidden, shape), &device)
    }

    fn step_slices(&mut self, ids: &[u32]) -> Option<&[f32]> {
        let [x, place, part] = &mut self.room;
        self.words.forward(ids, x);
        self.positions.forward(&[self.layers[0].cache.len() as u32], place);
        for row in x.chunks_exact_mut(place.len()) {
            row.iter_mut().zip(&**place).for_each(|(x, place)| *x += place);
        }
        self.residual.start(x, Some(&self.layers[0].norms[0]));
        for Layer { attention, forward, norms, cache } in &mut self.layers {
            attention.step(self.residual.input(), cache, part);
            self.residual.add(part, Some(&norms[1]));
            forward.step(self.residual.input(), part);
            self.residual.add(part, Some(&norms[2]));
        }
        Some(self.residual.input())
    }

    fn reorder(&mut self, parents: &[usize]) {
        self.layers.iter_mut().for_each(|layer| layer.cache.reorder(parents));
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Config, Walk};
    use super::*;
    use crate::seq2seq::tokens;
    use crate::text::Body;
    use burn::tensor::Device;
    use regard_attention::Init;

    #[test]
    fn a_plan_gives_the_hidden_states_of_the_tensors() {
        let device = Device::flex();
        for by_layer in [false, true] {
            let json = serde_json::json!({
                "model_type": "gpt2", "vocab_size": 31, "n_positions": 40, "n_embd": 36,
                "n_layer": 3, "n_head": 3, "scale_attn_by_inverse_layer_idx": by_layer,
            });
            let model = Gpt2::new(&Config::read(&json).unwrap(), &mut Init::new(2, &device));
            for prompt in [vec![], vec![5u32, 6, 7, 30, 2]] {
                let read: [&[u32]; 2] = [&prompt, &prompt];
                let mut plan = model.follow(&read).unwrap();
                let mut walk = Walk { model: &model, caches: vec![KvCache::new(); 3] };
                if !prompt.is_empty() {
                    let ids: Vec<i64> = read.concat().iter().map(|id| i64::from(*id)).collect();
                    walk.read(Tensor::from_data(TensorData::new(ids, [2, prompt.len()]), &device));
                }
                let orders: [&[usize]; 5] = [&[0, 1], &[1, 0], &[0, 0, 1], &[2, 1, 0], &[1]];
                let mut rows = 2;
                for (step, parents) in orders.iter().enumerate() {
                    let words: Vec<u32> =
                        (0..rows).map(|r| (r * 9 + step as u32 * 4) % 31).collect();
                    let got = plan.step(tokens(&words, &device)).into_data();
                    let want = walk.step(tokens(&words, &device)).into_data();
                    let (got, want) = (got.iter::<f32>(), want.iter::<f32>());
                    for (got, want) in got.zip(want) {
                        assert!((got - want).abs() < 2e-5, "step {step}: {got} {want}");
                    }
                    plan.reorder(parents);
                    walk.reorder(parents);
                    rows = parents.len() as u32;
                }
            }
        }
    }
}
