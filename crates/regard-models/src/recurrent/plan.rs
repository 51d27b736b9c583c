//! Decoding step by step on slices, shared by the recurrent encoder–decoders: the plan of
//! [`Walk`](super::writer::Walk), which computes the same with tensors and is its oracle. Each model's
//! own file defines a step.

use super::{Body, Readout, ReadoutInputs, Writing};
use crate::seq2seq::{Decoding, Next};
use burn::tensor::{Int, Tensor, TensorData};
use regard_attention::layers::{AdditiveAttention, Weight};
use regard_attention::plan::{
    EncodedSentences, Floats, PlannedLinear, PlannedRecurrent, PlannedTable, RecurrentRows,
    RowQuery, RowScore, copied,
};

/// What a step reads and writes.
pub(crate) struct Step {
    pub cells: PlannedRecurrent,
    pub rows: RecurrentRows,
    pub sentences: EncodedSentences,
    /// `[R, E]`: embeddings of the tokens that are fed.
    pub word: Floats,
    /// `[R, C]`: to be written.
    pub context: Floats,
    /// `[R, H]`: to be written, the state from which a token is predicted.
    pub state: Floats,
    /// Number of steps before this one.
    pub number: usize,
    /// Input of the cells.
    input: Floats,
}

impl Step {
    pub fn new(cells: PlannedRecurrent, rows: RecurrentRows, sentences: EncodedSentences) -> Step {
        let [word, context, state, input] = [(); 4].map(|()| Floats::new());
        Step { cells, rows, sentences, word, context, state, number: 0, input }
    }

    /// Feeds the cells the embedding of each row's token, and `beside`.
    pub fn advance_cells(&mut self, beside: Beside) {
        let n = self.sentences.rows();
        let beside = match beside {
            Beside::Nothing => &[],
            Beside::Context => &self.context[..],
            Beside::Floats(floats) => floats,
        };
        self.input.join(n, &[&self.word, beside]);
        self.cells.step(&self.input, &mut self.rows);
    }

    /// The state of the last layer, the context and the token's embedding.
    pub fn told(&self) -> [&[f32]; 3] {
        [&self.state, &self.context, &self.word]
    }
}

/// What is part of the cells' input besides the token's embedding.
pub(crate) enum Beside<'a> {
    Nothing,
    /// The context in [`Step`].
    Context,
    Floats(&'a [f32]),
}

/// Step of a model: writes the context and the state.
pub(crate) trait PlannedStep {
    /// Whether the attention has keys that are not its values.
    fn has_keys(&self) -> bool;
    fn advance(&mut self, step: &mut Step);
    /// Reorders what the model keeps for each row.
    fn reorder(&mut self, _parents: &[usize]) {}
}

/// Additive attention from planned queries.
pub(crate) struct PlannedAdditive {
    query: PlannedLinear,
    v: Floats,
    /// What the coverage of a position is multiplied by.
    covered: Option<Floats>,
    q: Floats,
}

impl PlannedAdditive {
    pub fn new(score: &AdditiveAttention, covered: Option<Tensor<2>>) -> PlannedAdditive {
        let floats = |x: Tensor<2>| {
            let mut floats = Floats::new();
            copied(x, &mut floats);
            floats
        };
        PlannedAdditive {
            query: PlannedLinear::new(&score.query),
            v: floats(score.v.val()),
            covered: covered.map(floats),
            q: Floats::new(),
        }
    }

    /// Attends from the states of the last layer; `coverage: [R, S]` if the score is given it.
    pub fn attend(&mut self, step: &mut Step, coverage: &[f32], weights: Option<&mut Floats>) {
        self.query.forward(step.rows.last(), &mut self.q);
        let Step { sentences, context, .. } = step;
        let states = sentences.states();
        let score = RowScore::Additive { v: &self.v, covered: self.covered.as_deref() };
        let covers = self.covered.is_some();
        let change = |row: usize, query| RowQuery {
            coverage: covers.then(|| &coverage[row * states..(row + 1) * states]),
            ..query
        };
        sentences.attend(&self.q, score, change, context, weights);
    }
}

/// Output layer.
pub(crate) struct PlannedReadout {
    mix: Option<PlannedLinear>,
    out: PlannedLinear,
    deep: bool,
    room: [Floats; 2],
}

impl PlannedReadout {
    pub fn new(readout: &Readout, inputs: ReadoutInputs, table: &Weight) -> PlannedReadout {
        let out = match &readout.out {
            Some(out) => PlannedLinear::new(out),
            None => PlannedLinear::scores(table, readout.bias.as_ref()),
        };
        PlannedReadout {
            mix: readout.mix.as_ref().map(PlannedLinear::new),
            out,
            deep: inputs == ReadoutInputs::Deep,
            room: Default::default(),
        }
    }

    pub fn outputs(&self) -> usize {
        self.out.outputs()
    }

    /// # Shapes
    /// state, context and word: `[R, ·]` → `logits: [R, V]`
    pub fn forward(&mut self, rows: usize, told: [&[f32]; 3], logits: &mut Vec<f32>) {
        let [all, mixed] = &mut self.room;
        let mut x = told[0];
        if self.deep {
            all.join(rows, &told);
            x = all;
        }
        if let Some(mix) = &self.mix {
            mix.forward(x, mixed);
            x = mixed;
        }
        logits.resize(rows * self.out.outputs(), 0.0);
        self.out.forward_into(x, logits);
    }
}

/// Decoding state of several rows.
pub(crate) struct Planned {
    words: PlannedTable,
    readout: PlannedReadout,
    step: Step,
    model: Box<dyn PlannedStep>,
}

impl Planned {
    /// Plans decoding from its start.
    pub fn new(body: &Body, model: Box<dyn PlannedStep>, start: &Writing) -> Planned {
        let keys = model.has_keys().then(|| start.keys.clone());
        let sentences = EncodedSentences::new(keys, start.values.clone(), &start.lengths);
        let cells = PlannedRecurrent::new(&body.decoder);
        let step = Step::new(cells, RecurrentRows::new(&start.hidden), sentences);
        let readout =
            PlannedReadout::new(&body.readout, body.shape.readout, &body.words.table.table);
        Planned { words: PlannedTable::new(&body.words.table), readout, step, model }
    }
}

impl Decoding for Planned {
    fn step(&mut self, words: Tensor<2, Int>) -> Next {
        let device = words.device();
        let ids: Vec<u32> = words.into_data().iter::<i64>().map(|id| id as u32).collect();
        let mut logits = vec![];
        self.step_slices(&ids, &mut logits);
        let shape = [ids.len(), self.readout.outputs()];
        Next { logits: Tensor::from_data(TensorData::new(logits, shape), &device), attention: None }
    }

    fn step_slices(&mut self, ids: &[u32], logits: &mut Vec<f32>) -> Option<Tensor<2>> {
        self.words.forward(ids, &mut self.step.word);
        self.model.advance(&mut self.step);
        self.step.number += 1;
        self.readout.forward(ids.len(), self.step.told(), logits);
        None
    }

    fn reorder(&mut self, parents: &[usize]) {
        self.step.rows.reorder(parents);
        self.step.sentences.reorder(parents);
        self.model.reorder(parents);
    }
}

#[cfg(test)]
mod tests;
