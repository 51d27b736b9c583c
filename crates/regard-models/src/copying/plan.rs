//! A step of the pointer-generator on slices: the plan of [`Walk`](super::walk::Walk), which computes
//! the same with tensors and is its oracle.

use super::{CopyBatch, Mixed, PointerGenerator, Read};
use crate::recurrent::{Beside, PlannedAdditive, PlannedReadout, ReadoutInputs, Step};
use regard_attention::layers::Weight;
use regard_attention::plan::{
    EncodedSentences, Floats, PlannedLinear, PlannedRecurrent, PlannedTable, RecurrentRows,
};

/// Decoding state of several rows.
pub(super) struct Planned {
    words: PlannedTable,
    step: Step,
    score: PlannedAdditive,
    /// Whether the score is given the coverage.
    covers: bool,
    readout: PlannedReadout,
    gate: Option<PlannedLinear>,
    /// `[R, S]`: coverage, the sum of all attention weights so far.
    before: Floats,
    /// Attention weights, inputs of the gate, and its logits.
    room: [Floats; 3],
    logits: Vec<f32>,
}

impl Planned {
    /// Plans decoding from its start; `None` if the model is not on the CPU.
    pub fn new(model: &PointerGenerator, read: &Read) -> Option<Planned> {
        if !Weight::can_be_stored(&read.states.device()) {
            return None;
        }
        let keys = Some(model.score.keys(read.states.clone()));
        let sentences = EncodedSentences::new(keys, read.states.clone(), &read.lengths);
        let mut before = Floats::new();
        before.set_len(sentences.rows() * sentences.states());
        before.fill(0.0);
        let cells = PlannedRecurrent::new(&model.decoder);
        let table = &model.reader.words;
        let covered = model.covered.as_ref().map(|covered| covered.val());
        Some(Planned {
            words: PlannedTable::new(table),
            step: Step::new(cells, RecurrentRows::new(&read.start), sentences),
            covers: covered.is_some(),
            score: PlannedAdditive::new(&model.score, covered),
            readout: PlannedReadout::new(&model.readout, ReadoutInputs::Deep, &table.table),
            gate: model.gate.as_ref().map(PlannedLinear::new),
            before,
            room: Default::default(),
            logits: vec![],
        })
    }

    /// Number of positions of the longest source text.
    pub fn places(&self) -> usize {
        self.step.sentences.states()
    }

    /// Feeds each row its last word, which the vocabulary has.
    pub fn step(&mut self, ids: &[u32], batch: &CopyBatch, mixed: &mut Mixed) {
        let Planned { words, step, score, readout, gate, before, logits, .. } = self;
        let ([weights, told, share], rows) = (&mut self.room, ids.len());
        words.forward(ids, &mut step.word);
        step.advance_cells(Beside::Nothing);
        step.state.copy_from(step.rows.last());
        score.attend(step, before, Some(weights));
        if self.covers {
            before.iter_mut().zip(&**weights).for_each(|(before, weight)| *before += weight);
        }
        readout.forward(rows, step.told(), logits);
        mixed.share.clear();
        match gate {
            None => mixed.share.resize(rows, 1.0),
            Some(gate) => {
                let [state, context, word] = step.told();
                told.join(rows, &[context, state, word]);
                gate.forward(told, share);
                mixed.share.extend(share.iter().map(|x| 1.0 / (1.0 + (-x).exp())));
            }
        }
        mixed.weights.clear();
        mixed.weights.extend_from_slice(weights);
        softmax(logits, readout.outputs());
        let texts = |row: usize| batch.text(step.sentences.sentence(row));
        mixed.mix(logits, batch.extended(readout.outputs()), gate.is_some(), texts);
    }

    pub fn reorder(&mut self, parents: &[usize]) {
        let places = self.places();
        self.before.select(places, parents);
        self.step.rows.reorder(parents);
        self.step.sentences.reorder(parents);
    }
}

/// Softmax of rows of this width.
fn softmax(x: &mut [f32], width: usize) {
    for row in x.chunks_exact_mut(width) {
        let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let mut sum = 0.0;
        for x in &mut *row {
            *x = (*x - most).exp();
            sum += *x;
        }
        row.iter_mut().for_each(|x| *x /= sum);
    }
}

#[cfg(test)]
mod tests {
    use super::super::walk::Walk;
    use super::*;
    use crate::network::Network;
    use crate::zoo;
    use burn::tensor::Device;
    use regard_attention::Mode;
    use regard_attention::quant::Bits;
    use serde_json::json;

    fn model(copy: bool, coverage: bool) -> Box<PointerGenerator> {
        let json = json!({
            "model_type": "pointer-generator", "vocab_size": 43, "embedding_size": 37,
            "hidden_size": 35, "attention_size": 33, "num_layers": 2, "copy": copy,
            "coverage": coverage, "tie_word_embeddings": copy,
        });
        zoo::create::<PointerGenerator>(&json, 5, &Device::flex()).unwrap()
    }

    fn texts() -> CopyBatch {
        CopyBatch::new(vec![vec![4, 43, 5, 44, 43, 9, 30], vec![6, 45, 7], vec![46]])
    }

    const ORDERS: [&[usize]; 6] = [
        &[0, 0, 1, 1, 2, 2],
        &[1, 0, 2, 2, 5, 4],
        &[0, 1, 2, 3, 4, 5],
        &[1, 1, 4, 5, 0],
        &[1, 0, 2],
        &[2, 1],
    ];

    /// The largest difference of probabilities, weights and shares between plan and tensors, with
    /// beams and texts that end.
    fn difference(model: &PointerGenerator) -> f32 {
        let batch = texts();
        let read = || model.read(&batch, Mode::Eval);
        let mut plan = Planned::new(model, &read()).expect("it can be planned");
        let mut walk = Walk::new(model, &batch, read());
        let (mut got, mut want) = (Mixed::default(), Mixed::default());
        let (mut rows, mut most) = (3, 0f32);
        for (step, parents) in ORDERS.iter().enumerate() {
            let words: Vec<u32> = (0..rows).map(|r| ((r * 7 + step * 11) % 43) as u32).collect();
            plan.step(&words, &batch, &mut got);
            walk.step(&words, &mut want);
            assert_eq!((got.words.len(), got.weights.len()), (rows * 47, rows * 7));
            for (got, want) in [
                (&got.words, &want.words),
                (&got.weights, &want.weights),
                (&got.share, &want.share),
            ] {
                assert_eq!(got.len(), want.len());
                most = got.iter().zip(want).map(|(a, b)| (a - b).abs()).fold(most, f32::max);
            }
            plan.reorder(parents);
            walk.reorder(parents);
            rows = parents.len();
        }
        most
    }

    #[test]
    fn a_plan_gives_the_probabilities_of_the_tensors() {
        for (copy, coverage) in [(true, true), (true, false), (false, true), (false, false)] {
            let most = difference(&model(copy, coverage));
            assert!(most < 5e-6, "{copy} {coverage}: {most}");
        }
    }

    #[test]
    fn a_quantised_plan_is_near_the_tensors() {
        for bits in Bits::ALL {
            let mut model = model(true, true);
            Network::quantize(&mut *model, &|_| Some(bits));
            let most = difference(&model);
            assert!(most < 5e-3, "{}: {most}", bits.name());
        }
    }

    /// A text gives the same bits alone and in a batch.
    #[test]
    fn a_planned_row_does_not_depend_on_its_neighbours() {
        let model = model(true, true);
        let run = |batch: &CopyBatch, row: usize| {
            let mut plan = Planned::new(&model, &model.read(batch, Mode::Eval)).unwrap();
            let (mut mixed, mut all) = (Mixed::default(), vec![]);
            for step in 0..4u32 {
                plan.step(&vec![1 + step; batch.len()], batch, &mut mixed);
                let wide = mixed.words.len() / batch.len();
                let words = &mixed.words[row * wide..][..46];
                all.extend(words.iter().map(|x| x.to_bits()));
                all.push(mixed.share[row].to_bits());
            }
            all
        };
        let alone = CopyBatch::new(vec![texts().text(1).to_vec()]);
        assert_eq!(run(&texts(), 1), run(&alone, 0));
    }
}
