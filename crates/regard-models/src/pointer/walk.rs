//! Decoding of a pointer network, step by step.

use super::points::{Points, Walked, rows};
use super::{PointerNet, Read};
use crate::seq2seq::{Change, Rows, index};
use crate::transformer::decoding::Kept;
use burn::tensor::Tensor;
use regard_attention::layers::LayerStates;
use regard_attention::mask::dense_per_row;
use regard_attention::{Mode, ops};

/// Decoding state of a pointer network.
pub struct PointerDecoding<'a> {
    net: &'a PointerNet,
    /// `[B, S, M]`
    memory: Tensor<3>,
    /// `[B, S, M]`: keys of the pointer.
    keys: Tensor<3>,
    state: State,
    /// Points that each row has selected.
    walked: Vec<Walked>,
}

/// State of the decoder between two steps.
enum State {
    Attention(Kept),
    Lstm(Box<LayerStates>, Rows),
}

impl State {
    fn rows(&self) -> &Rows {
        match self {
            State::Attention(kept) => &kept.rows,
            State::Lstm(_, rows) => rows,
        }
    }
}

impl<'a> PointerDecoding<'a> {
    pub(super) fn new(net: &'a PointerNet, points: &Points) -> PointerDecoding<'a> {
        let Read { memory, lengths, states } = net.read(points, Mode::Eval);
        let state = match (&net.attention, states) {
            (Some(layers), _) => {
                State::Attention(Kept::new(&layers.decoder, memory.clone(), lengths))
            }
            (None, states) => {
                let states = states.expect("an LSTM leaves its states");
                State::Lstm(Box::new(states), Rows::new(points.len()))
            }
        };
        let choice = net.config.choice;
        let walked = points.counts().iter().map(|n| Walked::new(*n, choice)).collect();
        PointerDecoding { net, keys: net.head.keys(memory.clone()), memory, state, walked }
    }

    /// Number of choices in the largest set, with the marker.
    pub fn width(&self) -> usize {
        self.memory.dims()[1]
    }

    /// Feeds each row its last choice ([`super::MARKER`] at the start, later a point's index plus
    /// 1), and returns the weights of the next one. Forbidden choices have weight 0.
    ///
    /// # Shapes
    /// `at: [R]` → `[R, S]`
    pub fn step(&mut self, at: &[u32]) -> Tensor<2> {
        let ([b, s, m], r, device) = (self.memory.dims(), at.len(), self.memory.device());
        let beams = self.state.rows().beams();
        assert_eq!(r, b * beams, "one choice for each row");
        let told = at.iter().enumerate().map(|(row, at)| (row / beams, *at));
        let told = rows(told, s, [r, 1], &device);
        let x = ops::embedding(self.memory.clone().reshape([b * s, m]), told, None);
        let x = match &mut self.state {
            State::Attention(kept) => {
                let layers = self.net.attention.as_ref().expect("it began with attention");
                layers.decoder.step(x, kept, false).0
            }
            State::Lstm(states, _) => {
                let lstm = self.net.lstm.as_ref().expect("it began with an LSTM");
                let (x, next) = lstm.point(x, states, Mode::Eval);
                **states = next;
                x
            }
        };
        let mut allowed = Vec::with_capacity(r * s);
        for (walked, at) in self.walked.iter_mut().zip(at) {
            walked.visit(*at);
            allowed.extend(walked.row(s));
        }
        // Rows of one set are queries of one attention, so that its keys are stored once.
        let x = x.reshape([b, beams, m]);
        self.net.head.forward(x, self.keys.clone(), dense_per_row(allowed)).reshape([r, s])
    }

    /// Reorders rows for beam search: row `i` continues from the state of row `parents[i]`.
    pub fn reorder(&mut self, parents: &[usize]) {
        let device = self.memory.device();
        self.walked = parents.iter().map(|row| self.walked[*row].clone()).collect();
        let change = match &mut self.state {
            State::Attention(kept) => kept.reorder(parents),
            State::Lstm(states, rows) => {
                let from = index(parents, &device);
                **states = LayerStates {
                    h: states.h.clone().select(1, from.clone()),
                    c: states.c.take().map(|c| c.select(1, from)),
                };
                rows.reorder(parents)
            }
        };
        if let Change::Keep(kept) = change {
            let rows = index(&kept, &device);
            self.memory = self.memory.clone().select(0, rows.clone());
            self.keys = self.keys.clone().select(0, rows);
        }
    }
}
