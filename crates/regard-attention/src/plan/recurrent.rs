//! Recurrent layers on slices: step by step for decoding, and whole sequences where weights are
//! stored or quantised, which the operation of training does not take.

use super::{Floats, Part, PlannedLinear, timed};
use crate::backend::{Buffer, Dense, ok, on_cpu};
use crate::layers::{LayerStates, Recurrent, RecurrentWeights};
use crate::ops::Cell;
use burn::backend::Flex;
use burn::tensor::Tensor;
use regard_kernels::ops::recurrent::step;

/// Products of one direction of a layer.
struct Direction {
    input: PlannedLinear,
    hidden: PlannedLinear,
}

impl Direction {
    fn new(weights: &RecurrentWeights) -> Direction {
        Direction {
            input: PlannedLinear::scores(&weights.weight_ih, weights.bias_ih.as_ref()),
            hidden: PlannedLinear::scores(&weights.weight_hh, weights.bias_hh.as_ref()),
        }
    }
}

/// Stacked recurrent layers.
pub struct PlannedRecurrent {
    cell: Cell,
    /// Directions of each layer.
    layers: Vec<Vec<Direction>>,
}

/// States of rows in all layers of one direction.
pub struct RecurrentRows {
    /// For each layer `[R, H]`.
    h: Vec<Floats>,
    /// The same for the LSTM, empty for other cells.
    c: Vec<Floats>,
    width: usize,
    /// Contributions of input and state to the gates.
    gates: [Floats; 2],
}

impl RecurrentRows {
    /// Copies the states that decoding starts from.
    pub fn new(states: &LayerStates) -> RecurrentRows {
        let [layers, rows, width] = states.h.dims();
        let of_layers = |all: &Tensor<3>| {
            let all = Dense::new(&on_cpu(all.clone()));
            let layer = |at: usize| {
                let mut floats = Floats::new();
                floats.copy_from(&all[at * rows * width..(at + 1) * rows * width]);
                floats
            };
            (0..layers).map(layer).collect::<Vec<Floats>>()
        };
        let c = match &states.c {
            Some(c) => of_layers(c),
            None => (0..layers).map(|_| Floats::new()).collect(),
        };
        RecurrentRows { h: of_layers(&states.h), c, width, gates: Default::default() }
    }

    /// Returns the states of the last layer, `[R, H]`.
    pub fn last(&self) -> &[f32] {
        self.h.last().expect("there is a layer")
    }

    /// Reorders rows: row `i` continues from the state of row `parents[i]`.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn reorder(&mut self, parents: &[usize]) {
        for floats in self.h.iter_mut().chain(&mut self.c) {
            if !floats.is_empty() {
                floats.select(self.width, parents);
            }
        }
    }
}

impl PlannedRecurrent {
    /// Plans layers.
    ///
    /// # Panics
    /// If they are not on the CPU in single precision.
    pub fn new(layers: &Recurrent) -> PlannedRecurrent {
        let directions = layers.layers.iter().map(|layer| &layer.directions);
        let layers_of = directions.map(|all| all.iter().map(Direction::new).collect());
        PlannedRecurrent { cell: layers.cell, layers: layers_of.collect() }
    }

    /// Computes a step of all rows in layers of one direction; the output is
    /// [`RecurrentRows::last`].
    ///
    /// # Shapes
    /// `x: [R, I]`
    ///
    /// # Panics
    /// If there are not as many rows of states.
    pub fn step(&self, x: &[f32], rows: &mut RecurrentRows) {
        let RecurrentRows { h, c, width, gates: [of_input, of_state] } = rows;
        for (number, layer) in self.layers.iter().enumerate() {
            let (below, now) = h.split_at_mut(number);
            let x = below.last().map_or(x, |below| below);
            let (h, c) = (&mut now[0], &mut c[number]);
            layer[0].input.forward(x, of_input);
            layer[0].hidden.forward(h, of_state);
            timed(Part::Rest, || ok(step(self.cell, *width, of_input, of_state, h, c)));
        }
    }

    /// Runs whole sequences, as [`Recurrent::forward`] does.
    pub(crate) fn sequences(
        &self,
        x: Tensor<3>,
        start: Option<&LayerStates>,
        lengths: Option<&[usize]>,
    ) -> (Tensor<3>, LayerStates) {
        let [b, t, _] = x.dims();
        let lengths = lengths.map_or_else(|| vec![t; b], <[usize]>::to_vec);
        let start = start.map(|start| {
            let c = start.c.as_ref().map(|c| Dense::new(&on_cpu(c.clone())));
            (Dense::new(&on_cpu(start.h.clone())), c)
        });
        let x = Dense::new(&on_cpu(x));
        let mut below = Floats::new();
        below.copy_from(&x);
        let count: usize = self.layers.iter().map(Vec::len).sum();
        let h = self.layers[0][0].hidden.outputs() / self.cell.gates();
        let lstm = self.cell == Cell::Lstm;
        let mut last_h = Buffer::zeroed(count * b * h);
        let mut last_c = Buffer::zeroed(if lstm { count * b * h } else { 0 });
        if let Some((start_h, start_c)) = &start {
            last_h.copy_from_slice(start_h);
            if let Some(c) = start_c {
                last_c.copy_from_slice(c);
            }
        }
        let mut number = 0;
        for layer in &self.layers {
            let wide = layer.len() * h;
            let mut y = Floats::new();
            y.set_len(b * t * wide);
            y.fill(0.0);
            for (at, direction) in layer.iter().enumerate() {
                let states = number * b * h..(number + 1) * b * h;
                let c = if lstm { &mut last_c[states.clone()] } else { &mut [] };
                let run = Run { cell: self.cell, lengths: &lengths, steps: t, reverse: at == 1 };
                let columns = (wide, at * h);
                run.direction(direction, &below, [&mut last_h[states], c], &mut y, columns);
                number += 1;
            }
            below = y;
        }
        let wide = below.len() / (b * t).max(1);
        let mut y = Buffer::new(below.len());
        y.copy_from_slice(&below);
        let tensor =
            |room: Buffer, shape: [usize; 3]| Tensor::from_primitive::<Flex>(room.tensor(shape));
        let c = lstm.then(|| tensor(last_c, [count, b, h]));
        (tensor(y, [b, t, wide]), LayerStates { h: tensor(last_h, [count, b, h]), c })
    }
}

/// Sequences through one direction of a layer.
struct Run<'a> {
    cell: Cell,
    lengths: &'a [usize],
    steps: usize,
    reverse: bool,
}

impl Run<'_> {
    /// `states` are those before the first step, `[B, H]`, and become those after the last; `y` has
    /// rows of `columns.0` floats, this direction's from `columns.1` on.
    fn direction(
        &self,
        direction: &Direction,
        x: &[f32],
        [h, c]: [&mut [f32]; 2],
        y: &mut [f32],
        (wide, first): (usize, usize),
    ) {
        let gate_width = direction.hidden.outputs();
        let width = gate_width / self.cell.gates();
        let [mut all, mut of_input, mut of_state, mut now, mut now_c] =
            [(); 5].map(|()| Floats::new());
        direction.input.forward(x, &mut all);
        let copy = |from: &[f32], to: &mut Floats, rows: &[usize]| {
            to.set_len(if from.is_empty() { 0 } else { rows.len() * width });
            for (to, row) in to.chunks_exact_mut(width).zip(rows) {
                to.copy_from_slice(&from[row * width..(row + 1) * width]);
            }
        };
        for step_number in 0..self.lengths.iter().copied().max().unwrap_or(0) {
            let active = |row: &usize| step_number < self.lengths[*row];
            let rows: Vec<usize> = (0..self.lengths.len()).filter(active).collect();
            let place = |row: usize| {
                let at =
                    if self.reverse { self.lengths[row] - 1 - step_number } else { step_number };
                row * self.steps + at
            };
            of_input.set_len(rows.len() * gate_width);
            for (to, row) in of_input.chunks_exact_mut(gate_width).zip(&rows) {
                to.copy_from_slice(&all[place(*row) * gate_width..][..gate_width]);
            }
            copy(h, &mut now, &rows);
            copy(c, &mut now_c, &rows);
            direction.hidden.forward(&now, &mut of_state);
            ok(step(self.cell, width, &mut of_input, &of_state, &mut now, &mut now_c));
            for (at, row) in rows.iter().enumerate() {
                let from = &now[at * width..(at + 1) * width];
                h[row * width..(row + 1) * width].copy_from_slice(from);
                y[place(*row) * wide + first..][..width].copy_from_slice(from);
                if let Some(from) = now_c.get(at * width..(at + 1) * width) {
                    c[row * width..(row + 1) * width].copy_from_slice(from);
                }
            }
        }
    }
}
