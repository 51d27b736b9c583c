//! Decoding step by step on slices: the plan of [`Walk`](super::decoding::Walk), which computes the
//! same with tensors and is its oracle.

use super::Transformer;
use super::sinusoids::sinusoids;
use super::stack::{Decoder, DecoderLayer};
use crate::seq2seq::{Change, Decoding, Next, Rows, Source};
use burn::tensor::{Int, Tensor, TensorData};
use regard_attention::Mode;
use regard_attention::backend::numbers;
use regard_attention::layers::Weight;
use regard_attention::plan::{
    Floats, PlannedCrossAttention, PlannedFeedForward, PlannedLinear, PlannedNorm, PlannedResidual,
    PlannedSelfAttention, PlannedTable, RowCache, copied,
};

/// Decoding state of several rows.
pub(super) struct Planned {
    words: PlannedTable,
    scale: f32,
    /// Learned positions, `[L, M]`; sinusoids without them.
    places: Option<Vec<f32>>,
    layers: Vec<Layer>,
    /// Norm before the first sublayer.
    entry: Option<PlannedNorm>,
    residual: PlannedResidual,
    logits: PlannedLinear,
    /// `[B]`: source tokens that are not padding.
    lengths: Vec<i64>,
    rows: Rows,
    /// Inputs of a step, and outputs of a sublayer.
    room: [Floats; 2],
}

struct Layer {
    attention: PlannedSelfAttention,
    cross: PlannedCrossAttention,
    forward: PlannedFeedForward,
    /// Norms after the additions; see [`Decoder::norms`].
    norms: [Option<PlannedNorm>; 3],
    cache: RowCache,
    /// `[B, S, 2·M]`: keys and values of the encoder states.
    memory: Floats,
}

impl Layer {
    fn new(decoder: &Decoder, number: usize, memory: &Tensor<3>) -> Option<Layer> {
        let DecoderLayer { attention, cross, forward, .. } = &decoder.layers[number];
        let attention = PlannedSelfAttention::new(attention, None);
        let cache = RowCache::new(memory.dims()[0], attention.cached());
        let mut remembered = Floats::new();
        copied(cross.remember(memory.clone()), &mut remembered);
        Some(Layer {
            attention,
            cross: PlannedCrossAttention::new(cross),
            forward: PlannedFeedForward::new(forward)?,
            norms: decoder.norms(number).map(|norm| norm.map(PlannedNorm::new)),
            cache,
            memory: remembered,
        })
    }
}

impl Planned {
    /// Encodes the source and plans its decoding; `None` if the model is not on the CPU, or attends
    /// in a way that plans do not have.
    pub fn new(model: &Transformer, source: &Source) -> Option<Planned> {
        let decoder = &model.decoder;
        if !Weight::can_be_stored(&model.words.table.device())
            || !decoder.layers.iter().all(|layer| layer.looking.is_plain())
        {
            return None;
        }
        let memory = model.read(source, Mode::Eval);
        let layer = |number| Layer::new(decoder, number, &memory);
        let places = decoder.vectors.learned().map(|learned| {
            let mut places = vec![];
            numbers(learned.val(), &mut places);
            places
        });
        let lengths = source.valid();
        Some(Planned {
            words: PlannedTable::new(model.written()),
            scale: decoder.vectors.scale(),
            places,
            layers: (0..decoder.layers.len()).map(layer).collect::<Option<_>>()?,
            entry: decoder.entry(0).map(PlannedNorm::new),
            residual: PlannedResidual::new(decoder.norms),
            logits: PlannedLinear::scores(model.table(), Some(&model.bias)),
            rows: Rows::new(lengths.len()),
            lengths,
            room: Default::default(),
        })
    }

    /// Embeds the next token of each row.
    fn embed(words: &PlannedTable, scale: f32, place: &[f32], ids: &[u32], into: &mut Floats) {
        words.forward(ids, into);
        for row in into.chunks_exact_mut(place.len()) {
            row.iter_mut().zip(place).for_each(|(x, place)| *x = *x * scale + place);
        }
    }
}

impl Decoding for Planned {
    fn step(&mut self, words: Tensor<2, Int>) -> Next {
        let device = words.device();
        let ids: Vec<u32> = words.into_data().iter::<i64>().map(|id| id as u32).collect();
        let mut logits = vec![];
        self.step_slices(&ids, &mut logits);
        let shape = [ids.len(), self.logits.outputs()];
        Next { logits: Tensor::from_data(TensorData::new(logits, shape), &device), attention: None }
    }

    fn step_slices(&mut self, ids: &[u32], logits: &mut Vec<f32>) -> Option<Tensor<2>> {
        let (first, m) = (self.layers[0].cache.len(), self.words.width());
        let [x, part] = &mut self.room;
        let mut place = vec![];
        match &self.places {
            Some(places) => place.extend_from_slice(
                places
                    .get(first * m..(first + 1) * m)
                    .unwrap_or_else(|| panic!("position {first}: there are {}", places.len() / m)),
            ),
            None => sinusoids(first..first + 1, m, &mut place),
        }
        Planned::embed(&self.words, self.scale, &place, ids, x);
        self.residual.start(x, self.entry.as_ref());
        for layer in &mut self.layers {
            let [after_attention, after_cross, after_forward] = &layer.norms;
            layer.attention.step(self.residual.input(), &mut layer.cache, part);
            self.residual.add(part, after_attention.as_ref());
            layer.cross.step(self.residual.input(), &layer.memory, &self.lengths, part);
            self.residual.add(part, after_cross.as_ref());
            layer.forward.step(self.residual.input(), part);
            self.residual.add(part, after_forward.as_ref());
        }
        logits.resize(ids.len() * self.logits.outputs(), 0.0);
        self.logits.forward_into(self.residual.input(), logits);
        None
    }

    fn reorder(&mut self, parents: &[usize]) {
        let old = self.lengths.len();
        self.layers.iter_mut().for_each(|layer| layer.cache.reorder(parents));
        if let Change::Keep(kept) = self.rows.reorder(parents) {
            for layer in &mut self.layers {
                let each = layer.memory.len() / old;
                let mut memory = Floats::new();
                memory.set_len(kept.len() * each);
                if each == 0 {
                    continue;
                }
                for (to, sentence) in memory.chunks_exact_mut(each).zip(&kept) {
                    to.copy_from_slice(&layer.memory[sentence * each..(sentence + 1) * each]);
                }
                layer.memory = memory;
            }
            self.lengths = kept.iter().map(|sentence| self.lengths[*sentence]).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::decoding::Walk;
    use super::*;
    use crate::network::Network;
    use crate::transformer::{Config, NormOrder, PositionEncoding};
    use burn::tensor::Device;
    use regard_attention::Init;
    use regard_attention::quant::Bits;

    fn config(norms: NormOrder, positions: PositionEncoding) -> Config {
        let json = serde_json::json!({
            "model_type": "marian", "vocab_size": 41, "d_model": 48, "encoder_layers": 2,
            "decoder_layers": 3, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
            "encoder_ffn_dim": 72, "decoder_ffn_dim": 72, "scale_embedding": true,
            "max_position_embeddings": 64,
        });
        Config { norms, positions, ..Config::from_json(&json).unwrap() }
    }

    /// The plan against the tensors, over steps with beams, reordering and sentences that end.
    #[test]
    fn a_plan_gives_the_logits_of_the_tensors() {
        let device = Device::flex();
        for norms in [NormOrder::Pre, NormOrder::Post] {
            for positions in [PositionEncoding::Sinusoidal, PositionEncoding::Learned] {
                let model = Transformer::new(&config(norms, positions), &mut Init::new(3, &device));
                let ids = (0..3 * 7).map(|i| 3 + (i * 5) % 37).collect::<Vec<i64>>();
                let ids = Tensor::from_data(TensorData::new(ids, [3, 7]), &device);
                let source = Source { ids, lengths: vec![7, 4, 1] };
                let mut plan = Planned::new(&model, &source).expect("it can be planned");
                let mut walk = Walk::new(&model, &source, false);
                let orders: [&[usize]; 6] = [
                    &[0, 0, 1, 1, 2, 2],
                    &[1, 0, 2, 2, 5, 4],
                    &[0, 1, 2, 3, 4, 5],
                    &[1, 1, 4, 5],
                    &[1, 0, 2, 3],
                    &[2, 3],
                ];
                let (mut rows, mut got, mut want) = (3, vec![], vec![]);
                for (step, parents) in orders.iter().enumerate() {
                    let words: Vec<u32> =
                        (0..rows).map(|r| ((r * 7 + step * 11) % 41) as u32).collect();
                    assert!(plan.step_slices(&words, &mut got).is_none());
                    walk.step_slices(&words, &mut want);
                    assert_eq!((got.len(), want.len()), (rows * 41, rows * 41));
                    for (got, want) in got.iter().zip(&want) {
                        assert!((got - want).abs() < 2e-5, "step {step}: {got} {want}");
                    }
                    plan.reorder(parents);
                    walk.reorder(parents);
                    rows = parents.len();
                }
            }
        }
    }

    /// Quantised weights: rounding of the attention may move an activation to the next of 255
    /// values, so that logits agree less closely.
    #[test]
    fn a_quantised_plan_is_near_the_tensors() {
        let device = Device::flex();
        for bits in Bits::ALL {
            let config = config(NormOrder::Post, PositionEncoding::Sinusoidal);
            let mut model = Transformer::new(&config, &mut Init::new(7, &device));
            Network::quantize(&mut model, &|_| Some(bits));
            let ids = Tensor::from_ints([[5, 9, 30, 2], [8, 7, 2, 0]], &device);
            let source = Source { ids, lengths: vec![4, 3] };
            let mut plan = Planned::new(&model, &source).expect("it can be planned");
            let mut walk = Walk::new(&model, &source, false);
            let (mut got, mut want) = (vec![], vec![]);
            // Rows of a sentence need not be as many for each.
            let orders: [&[usize]; 4] = [&[0, 0, 1], &[2, 0, 1], &[1, 1], &[0]];
            let mut rows = 2;
            for (step, parents) in orders.iter().enumerate() {
                let words: Vec<u32> = (0..rows).map(|r| ((r * 7 + step * 3) % 41) as u32).collect();
                plan.step_slices(&words, &mut got);
                walk.step_slices(&words, &mut want);
                let square = |x: f32| f64::from(x) * f64::from(x);
                let apart: f64 = got.iter().zip(&want).map(|(a, b)| square(a - b)).sum();
                let size: f64 = want.iter().map(|x| square(*x)).sum();
                assert!(apart < 1e-4 * size, "{} step {step}: {apart} {size}", bits.name());
                plan.reorder(parents);
                walk.reorder(parents);
                rows = parents.len();
            }
        }
    }

    /// A sentence gives the same bits alone and in a batch, planned.
    #[test]
    fn a_planned_row_does_not_depend_on_its_neighbours() {
        let device = Device::flex();
        let config = config(NormOrder::Post, PositionEncoding::Sinusoidal);
        let model = Transformer::new(&config, &mut Init::new(5, &device));
        let rows = [vec![4i64, 9, 17, 2, 0, 0], vec![30, 31, 8, 12, 5, 2]];
        let run = |rows: &[Vec<i64>], lengths: Vec<usize>| {
            let ids = TensorData::new(rows.concat(), [rows.len(), rows[0].len()]);
            let source = Source { ids: Tensor::from_data(ids, &device), lengths };
            let mut plan = Planned::new(&model, &source).unwrap();
            let mut all = vec![];
            for step in 0..4u32 {
                let mut logits = vec![];
                plan.step_slices(&vec![1 + step; rows.len()], &mut logits);
                all.push(logits[..41].iter().map(|x| x.to_bits()).collect::<Vec<_>>());
            }
            all
        };
        assert_eq!(run(&rows, vec![4, 6]), run(&[rows[0][..4].to_vec()], vec![4]));
    }
}
