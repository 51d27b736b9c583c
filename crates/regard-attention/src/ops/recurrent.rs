//! Recurrent layers over whole sequences: tanh-RNN, GRU and LSTM, in one direction or both.
//!
//! Weights, biases and the order of gates are PyTorch's.

use crate::backend::{self, Buffer, Dense, Operands, Operation, ok};
use burn::backend::{Flex, TensorMetadata};
use burn::tensor::Tensor;
use burn_flex::FlexTensor;
use regard_kernels::gemm::{Matrix, MatrixMut};
pub use regard_kernels::ops::recurrent::Cell;
use regard_kernels::ops::recurrent::{
    CellWeights, Recurrent, RecurrentGradients, SavedRecurrent, Shape, State, StateMut, Tape,
};
use std::sync::Arc;

/// Parameters of one direction, in PyTorch's layout.
///
/// # Shapes
/// `G` is 1 for the RNN, 3 for the GRU (`r, z, n`), 4 for the LSTM (`i, f, g, o`).
#[derive(Clone, Debug)]
pub struct DirectionWeights {
    /// Input weights `weight_ih`, `[G·H, I]`.
    pub input: Tensor<2>,
    /// Recurrent weights `weight_hh`, `[G·H, H]`.
    pub hidden: Tensor<2>,
    /// Biases `bias_ih` and `bias_hh`, `[G·H]` each; `None` for none.
    pub biases: Option<[Tensor<1>; 2]>,
}

/// States before the first step or after the last.
///
/// # Shapes
/// `[B, H]`, or for both directions `[B, 2·H]`: forward, then backward.
#[derive(Clone, Debug)]
pub struct States {
    /// Hidden states `h`.
    pub h: Tensor<2>,
    /// Cell states `c` of the LSTM; `None` for the other cells.
    pub c: Option<Tensor<2>>,
}

/// Runs sequences through one recurrent layer.
///
/// A second direction runs backwards, each row from its own last step. Past its length, a row's
/// output is 0 and its state does not change. Initial states are zeros if `start` is `None`.
///
/// # Shapes
/// `x: [B, T, I]`, lengths `[B]` → `[B, T, H]` (or `[B, T, 2·H]`), and the states after the last
/// step
pub fn recurrent(
    cell: Cell,
    x: Tensor<3>,
    directions: &[DirectionWeights],
    start: Option<States>,
    lengths: Option<&[usize]>,
) -> (Tensor<3>, States) {
    let [b, t, _] = x.dims();
    assert!(matches!(directions.len(), 1 | 2), "recurrent: need one direction or two");
    let h = directions[0].hidden.dims()[1];
    let wide = directions.len() * h;
    if let Some(start) = &start {
        let has_c = start.c.is_some();
        assert_eq!(start.h.dims(), [b, wide], "recurrent: shape of the initial h");
        assert_eq!(has_c, cell == Cell::Lstm, "recurrent: an LSTM has a c, other cells do not");
    }
    if !backend::fused(&x) {
        return composed::run(cell, x, directions, start, lengths);
    }
    let operation = Run {
        cell,
        directions: directions.len(),
        biased: directions[0].biases.is_some(),
        lengths: lengths.map(|lengths| Arc::new(lengths.to_vec())),
    };
    let mut floats = vec![x.into_dispatch()];
    for DirectionWeights { input, hidden, biases } in directions {
        floats.extend([input.clone().into_dispatch(), hidden.clone().into_dispatch()]);
        floats.extend(biases.iter().flatten().map(|b| b.clone().into_dispatch()));
    }
    if let Some(States { h, c }) = start {
        floats.push(h.into_dispatch());
        floats.extend(c.map(Tensor::into_dispatch));
    }
    let all: Tensor<2> = backend::apply::<2, _>(operation, floats, vec![]);
    let rows = |from: usize, to: usize| all.clone().slice([from..to, 0..wide]);
    let y = rows(0, b * t).reshape([b, t, wide]);
    let c = (cell == Cell::Lstm).then(|| rows(b * t + b, b * t + 2 * b));
    (y, States { h: rows(b * t, b * t + b), c })
}

/// Operands: `x`, for each direction two weights and optionally two biases, then optionally the
/// initial states. The result has rows `[B·T, ·]` of outputs, then `[B, ·]` of final states.
#[derive(Clone, Debug)]
struct Run {
    cell: Cell,
    directions: usize,
    biased: bool,
    lengths: Option<Arc<Vec<usize>>>,
}

/// Tapes of the directions.
#[derive(Clone)]
struct Tapes(Arc<Vec<Tape>>);

impl std::fmt::Debug for Tapes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tapes of {} directions", self.0.len())
    }
}

/// The operands as slices.
struct Slices {
    x: Dense,
    weights: Vec<Vec<Dense>>,
    /// `[directions][h, c]`, each `[B, H]`
    start: Vec<Vec<Vec<f32>>>,
    shape: Shape,
}

/// Columns of a direction: `[N, directions·H]` → `[N, H]`.
fn columns(all: &[f32], wide: usize, from: usize, h: usize) -> Vec<f32> {
    all.chunks_exact(wide).flat_map(|row| row[from..from + h].to_vec()).collect()
}

impl Run {
    fn each(&self) -> usize {
        if self.biased { 4 } else { 2 }
    }

    fn states(&self) -> usize {
        if self.cell == Cell::Lstm { 2 } else { 1 }
    }

    fn slices(&self, floats: &[FlexTensor]) -> Slices {
        let shape = floats[0].shape();
        let hidden = floats[2].shape()[1];
        let shape = Shape { batch: shape[0], steps: shape[1], input: shape[2], hidden };
        let (weights, rest) = floats[1..].split_at(self.directions * self.each());
        let weights = weights.chunks(self.each());
        let start = (0..self.directions).map(|direction| {
            let wide = self.directions * hidden;
            let part = |x| columns(&Dense::new(x), wide, direction * hidden, hidden);
            rest.iter().map(part).collect()
        });
        Slices {
            x: Dense::new(&floats[0]),
            weights: weights.map(|w| w.iter().map(Dense::new).collect()).collect(),
            start: start.collect(),
            shape,
        }
    }

    fn kernel<'a>(&'a self, slices: &'a Slices, direction: usize) -> Recurrent<'a> {
        let w = &slices.weights[direction];
        Recurrent {
            cell: self.cell,
            weights: CellWeights {
                input: &w[0],
                hidden: &w[1],
                input_bias: w.get(2).map(|b| &**b),
                hidden_bias: w.get(3).map(|b| &**b),
            },
            shape: slices.shape,
            lengths: self.lengths.as_ref().map(|lengths| &lengths[..]),
            reverse: direction == 1,
        }
    }
}

fn state<'a>(parts: &'a [Vec<f32>]) -> State<'a> {
    State { h: parts.first().map(|x| &x[..]), c: parts.get(1).map(|x| &x[..]) }
}

impl Operation for Run {
    type Saved = Tapes;

    fn forward(&self, x: &Operands<Flex>, _: bool) -> (FlexTensor, Tapes) {
        let slices = self.slices(&x.floats);
        let Shape { batch: b, steps: t, hidden: h, .. } = slices.shape;
        let wide = self.directions * h;
        let mut out = Buffer::new((b * t + self.states() * b) * wide);
        let (y, ends) = out.split_at_mut(b * t * wide);
        let mut tapes = vec![];
        for direction in 0..self.directions {
            let strides = [wide as isize, 1];
            let room = ok(MatrixMut::strided(y, [b * t, h], strides, direction * h));
            let mut last = vec![vec![0.0; b * h]; self.states()];
            let (last_h, last_c) = last.split_first_mut().expect("there is an h");
            let end = StateMut { h: Some(last_h), c: last_c.first_mut().map(|c| &mut c[..]) };
            let mut tape = Tape::default();
            let kernel = self.kernel(&slices, direction);
            let start = state(&slices.start[direction]);
            ok(kernel.forward(&slices.x, start, room, end, &mut tape));
            tapes.push(tape);
            for (row, values) in last.iter().flat_map(|x| x.chunks_exact(h)).enumerate() {
                ends[row * wide + direction * h..][..h].copy_from_slice(values);
            }
        }
        (out.tensor([b * t + self.states() * b, wide]), Tapes(Arc::new(tapes)))
    }

    fn backward(
        &self,
        x: &Operands<Flex>,
        tapes: Tapes,
        dy: FlexTensor,
        _: &[bool],
    ) -> Vec<Option<FlexTensor>> {
        let slices = self.slices(&x.floats);
        let Shape { batch: b, steps: t, hidden: h, .. } = slices.shape;
        let wide = self.directions * h;
        let dy = Dense::new(&dy);
        let (dy, dends) = dy.split_at(b * t * wide);
        let mut dx: Option<Buffer> = None;
        let mut found = vec![];
        let mut dstart = vec![vec![0.0; b * wide]; self.states()];
        for direction in 0..self.directions {
            let matrix = ok(Matrix::strided(dy, [b * t, h], [wide as isize, 1], direction * h));
            let dend: Vec<Vec<f32>> = dends
                .chunks_exact(b * wide)
                .map(|part| columns(part, wide, direction * h, h))
                .collect();
            let w = &slices.weights[direction];
            let mut room: Vec<Buffer> = w.iter().map(|w| Buffer::new(w.len())).collect();
            let mut share = Buffer::new(slices.x.len());
            let mut before = vec![vec![0.0; b * h]; self.states()];
            let (before_h, before_c) = before.split_first_mut().expect("there is an h");
            let mut room_of = room.iter_mut();
            let mut next = || room_of.next().map(|x| &mut x[..]);
            let to = RecurrentGradients {
                x: Some(&mut share),
                input: next(),
                hidden: next(),
                input_bias: next(),
                hidden_bias: next(),
                start: StateMut { h: Some(before_h), c: before_c.first_mut().map(|c| &mut c[..]) },
            };
            let kernel = self.kernel(&slices, direction);
            let start = state(&slices.start[direction]);
            let saved = SavedRecurrent { x: &slices.x, start, tape: &tapes.0[direction] };
            ok(kernel.backward(saved, Some(matrix), state(&dend), to));
            // Both directions have the same input.
            dx = Some(match dx.take() {
                None => share,
                Some(mut sum) => {
                    sum.iter_mut().zip(share.iter()).for_each(|(sum, x)| *sum += x);
                    sum
                }
            });
            let first = 1 + direction * self.each();
            let shapes = x.floats[first..first + self.each()].iter().map(|w| w.shape());
            found.extend(room.into_iter().zip(shapes).map(|(g, shape)| Some(g.tensor(shape))));
            for (all, part) in dstart.iter_mut().zip(&before) {
                for (row, values) in part.chunks_exact(h).enumerate() {
                    all[row * wide + direction * h..][..h].copy_from_slice(values);
                }
            }
        }
        let dx = dx.expect("there is a direction").tensor(x.floats[0].shape());
        let mut all = vec![Some(dx)];
        all.extend(found);
        let given = x.floats.len() - all.len();
        all.extend(dstart.into_iter().take(given).map(|values| {
            let mut room = Buffer::new(b * wide);
            room.copy_from_slice(&values);
            Some(room.tensor([b, wide]))
        }));
        all
    }
}

/// Composed of Burn's operations, step by step.
mod composed {
    use super::{Cell, DirectionWeights, States};
    use burn::tensor::{Bool, Tensor, TensorData, activation::sigmoid};

    pub fn run(
        cell: Cell,
        x: Tensor<3>,
        directions: &[DirectionWeights],
        start: Option<States>,
        lengths: Option<&[usize]>,
    ) -> (Tensor<3>, States) {
        let h = directions[0].hidden.dims()[1];
        let part = |x: &Tensor<2>, i: usize| {
            let b = x.dims()[0];
            x.clone().slice([0..b, i * h..(i + 1) * h])
        };
        let mut all = vec![];
        for (i, direction) in directions.iter().enumerate() {
            let start = start
                .as_ref()
                .map(|s| States { h: part(&s.h, i), c: s.c.as_ref().map(|c| part(c, i)) });
            let run = Sequence { lengths, reverse: i == 1 };
            all.push(one(cell, x.clone(), direction, start, run));
        }
        let c = all.iter().map(|(_, s)| s.c.clone()).collect::<Option<Vec<_>>>();
        let states = States {
            h: Tensor::cat(all.iter().map(|(_, s)| s.h.clone()).collect(), 1),
            c: c.map(|c| Tensor::cat(c, 1)),
        };
        (Tensor::cat(all.into_iter().map(|(y, _)| y).collect(), 2), states)
    }

    /// Valid steps of each row, and whether to run from the last to the first.
    struct Sequence<'a> {
        lengths: Option<&'a [usize]>,
        reverse: bool,
    }

    fn one(
        cell: Cell,
        x: Tensor<3>,
        DirectionWeights { input, hidden, biases }: &DirectionWeights,
        start: Option<States>,
        Sequence { lengths, reverse }: Sequence,
    ) -> (Tensor<3>, States) {
        let ([b, t, i], [_, h]) = (x.dims(), hidden.dims());
        let zeros = || Tensor::<2>::zeros([b, h], (&x.device(), x.dtype()));
        let start =
            start.unwrap_or_else(|| States { h: zeros(), c: (cell == Cell::Lstm).then(zeros) });
        let (mut now, mut c) = (start.h, start.c);
        let mut y = vec![zeros().unsqueeze_dim::<3>(1); t];
        for step in 0..t {
            let step = if reverse { t - 1 - step } else { step };
            let x = x.clone().slice([0..b, step..step + 1, 0..i]).reshape([b, i]);
            let mut gates = x.matmul(input.clone().transpose());
            let mut recurrent = now.clone().matmul(hidden.clone().transpose());
            if let Some([of_input, of_hidden]) = biases {
                gates = gates + of_input.clone().unsqueeze();
                recurrent = recurrent + of_hidden.clone().unsqueeze();
            }
            let part = |x: &Tensor<2>, i: usize| x.clone().slice([0..b, i * h..(i + 1) * h]);
            let gate = |i: usize| part(&gates, i) + part(&recurrent, i);
            let (next, next_c) = match cell {
                Cell::Rnn => (gate(0).tanh(), None),
                Cell::Gru => {
                    let (r, z) = (sigmoid(gate(0)), sigmoid(gate(1)));
                    let n = (part(&gates, 2) + r * part(&recurrent, 2)).tanh();
                    (n.clone() + z * (now.clone() - n), None)
                }
                Cell::Lstm => {
                    let old = c.clone().expect("the LSTM has a c");
                    let next = sigmoid(gate(1)) * old + sigmoid(gate(0)) * gate(2).tanh();
                    (sigmoid(gate(3)) * next.clone().tanh(), Some(next))
                }
            };
            let over: Vec<bool> =
                (0..b).map(|row| lengths.is_some_and(|lengths| step >= lengths[row])).collect();
            let over = Tensor::<2, Bool>::from_data(TensorData::new(over, [b, 1]), &now.device());
            let over = over.expand([b, h]);
            y[step] = next.clone().mask_fill(over.clone(), 0.0).unsqueeze_dim(1);
            now = next.mask_where(over.clone(), now);
            c = next_c.map(|next| next.mask_where(over, c.take().expect("the LSTM has a c")));
        }
        (Tensor::cat(y, 1), States { h: now, c })
    }
}
