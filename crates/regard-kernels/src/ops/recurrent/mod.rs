//! Recurrent layers over whole sequences, with backpropagation through time.
//!
//! One direction of one layer. The contribution of the input to all gates is one product over all
//! steps; that of the state is one product per step, and the gates are finished in one pass.
//! Weights, biases and the order of gates are PyTorch's, so its checkpoints work unchanged.
//!
//! Rows of a batch have individual lengths. Past its length, a row's state does not change and its
//! output is 0; the input there is ignored. With `reverse` each row runs from its own last step to
//! its first.

mod gru;
mod lstm;
mod rnn;
mod sequence;
mod step;

pub use step::step;

use super::Parts;
use super::linear::sum_rows;
use crate::gemm::{Epilogue, Matrix, MatrixMut, Packed, product};
use crate::pool::parallel;
use crate::scratch::Scratch;
use crate::view::Error;
use sequence::{Sequences, Step, StepBack, backward_row, forward_row};

/// Recurrent cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cell {
    /// Plain RNN, `h′ = tanh(a)`.
    Rnn,
    /// Gated recurrent unit, gates `r, z, n`.
    Gru,
    /// Long short-term memory, gates `i, f, g, o`.
    Lstm,
}

impl Cell {
    /// Returns the number of gates, each of the width of the state: `G` in shapes.
    pub fn gates(self) -> usize {
        match self {
            Cell::Rnn => 1,
            Cell::Gru => 3,
            Cell::Lstm => 4,
        }
    }
}

/// Parameters, in PyTorch's layout.
///
/// # Shapes
/// `input: [G·H, I]`, `hidden: [G·H, H]`, biases `[G·H]`.
#[derive(Clone, Copy)]
pub struct CellWeights<'a> {
    /// Input weights `weight_ih`.
    pub input: &'a [f32],
    /// Recurrent weights `weight_hh`.
    pub hidden: &'a [f32],
    /// Input bias `bias_ih`; `None` for none.
    pub input_bias: Option<&'a [f32]>,
    /// Recurrent bias `bias_hh`; `None` for none.
    pub hidden_bias: Option<&'a [f32]>,
}

/// Sizes of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// `B`, the batch size.
    pub batch: usize,
    /// `T`, the number of steps.
    pub steps: usize,
    /// `I`, the number of input features.
    pub input: usize,
    /// `H`, the number of hidden units.
    pub hidden: usize,
}

/// One direction of a recurrent layer on one batch.
#[derive(Clone, Copy)]
pub struct Recurrent<'a> {
    /// Recurrent cell.
    pub cell: Cell,
    /// Parameters of this direction.
    pub weights: CellWeights<'a>,
    /// Sizes of the batch.
    pub shape: Shape,
    /// Number of valid steps of each row, `[B]`; `None` for all `T`.
    pub lengths: Option<&'a [usize]>,
    /// Whether to run from the last step to the first.
    pub reverse: bool,
}

/// States, `[B, H]` each. The forward takes those before the first step, zeros where `None`; the
/// backward takes the gradients of those after the last step.
#[derive(Clone, Copy, Default)]
pub struct State<'a> {
    /// Hidden state `h`.
    pub h: Option<&'a [f32]>,
    /// Cell state `c` of the LSTM.
    pub c: Option<&'a [f32]>,
}

/// States to write, `[B, H]` each: those after the last step, or the gradients of those before the
/// first.
#[derive(Default)]
pub struct StateMut<'a> {
    /// Hidden state `h`.
    pub h: Option<&'a mut [f32]>,
    /// Cell state `c` of the LSTM.
    pub c: Option<&'a mut [f32]>,
}

/// Values saved by the forward for the backward. The next forward reuses the memory.
#[derive(Default)]
pub struct Tape {
    /// Gate values, `[valid steps, G·H]`.
    gates: Vec<f32>,
    /// State after each step, `[valid steps, H]`.
    states: Vec<f32>,
    /// LSTM: `c` after each step. GRU: `W_hn·h + b_hn`. `[valid steps, H]`.
    extra: Vec<f32>,
}

/// Inputs and tape of a forward, for its backward.
#[derive(Clone, Copy)]
pub struct SavedRecurrent<'a> {
    /// Input, `[B, T, I]`.
    pub x: &'a [f32],
    /// States before the first step.
    pub start: State<'a>,
    /// Tape that the forward wrote.
    pub tape: &'a Tape,
}

/// Outputs of the backward, overwritten; gradients that are `None` are not computed.
#[derive(Default)]
pub struct RecurrentGradients<'a> {
    /// Gradient of the input, `[B, T, I]`.
    pub x: Option<&'a mut [f32]>,
    /// Gradient of `weight_ih`, `[G·H, I]`.
    pub input: Option<&'a mut [f32]>,
    /// Gradient of `weight_hh`, `[G·H, H]`.
    pub hidden: Option<&'a mut [f32]>,
    /// Gradient of `bias_ih`, `[G·H]`.
    pub input_bias: Option<&'a mut [f32]>,
    /// Gradient of `bias_hh`, `[G·H]`.
    pub hidden_bias: Option<&'a mut [f32]>,
    /// Gradients of the states before the first step.
    pub start: StateMut<'a>,
}

/// Resizes a vector; its contents are arbitrary.
fn resize(x: &mut Vec<f32>, len: usize) {
    if x.len() < len {
        x.resize(len, 0.0);
    }
}

impl Recurrent<'_> {
    /// Runs all sequences, and fills the tape for the backward.
    ///
    /// # Shapes
    /// `x: [B, T, I]`, `y: [B·T, H]`, row-major: two directions may share `[B, T, 2H]` memory.
    pub fn forward(
        &self,
        x: &[f32],
        start: State,
        y: MatrixMut,
        end: StateMut,
        tape: &mut Tape,
    ) -> Result<(), Error> {
        let seq = Sequences::new(self)?;
        seq.check_forward(x, &start, &y, &end)?;
        let (h, gh, valid) = (self.shape.hidden, self.gates_width(), seq.valid());
        resize(&mut tape.gates, valid * gh);
        resize(&mut tape.states, valid * h);
        resize(&mut tape.extra, if self.cell == Cell::Rnn { 0 } else { valid * h });

        // The contribution of the input to all gates, for the valid steps only.
        let (packed_x, w) = (seq.gather(x), self.weights);
        let inputs = Matrix::new(packed_x.as_deref().unwrap_or(x), valid, self.shape.input)?;
        let w_input = Matrix::new(w.input, gh, self.shape.input)?.t();
        let gates = MatrixMut::new(&mut tape.gates[..valid * gh], valid, gh)?;
        product(inputs, w_input, gates, Epilogue { bias: w.input_bias, ..Epilogue::default() })?;

        let w_hidden = Packed::new(Matrix::new(w.hidden, gh, h)?.t());
        let parts = [&mut tape.gates, &mut tape.states, &mut tape.extra].map(|v| Parts::new(v));
        let ends = [end.h, end.c].map(|x| x.map(Parts::new));
        let (parts, ends, y) = (&parts, &ends, &y);
        seq.each_chunk(&|rows| {
            let m = rows.len();
            let mut state = seq.load(start.h, &rows);
            let mut cell = seq.load(start.c, &rows);
            let mut hidden = Scratch::new(m * gh);
            for step in 0..seq.longest(&rows) {
                let a = Matrix::new(&state, m, h).expect("its own size");
                let to = MatrixMut::new(&mut hidden, m, gh).expect("its own size");
                let bias = Epilogue { bias: w.hidden_bias, ..Epilogue::default() };
                product(a, &w_hidden, to, bias).expect("shapes were checked");
                for (i, row) in rows.clone().enumerate().filter(|(_, r)| step < seq.len(*r)) {
                    let at = seq.at(row, step);
                    // SAFETY: each sequence is one task's.
                    let [gates, states, extra] = unsafe {
                        let e = if self.cell == Cell::Rnn { 0..0 } else { at * h..(at + 1) * h };
                        [
                            parts[0].slice(at * gh, (at + 1) * gh),
                            parts[1].slice(at * h, (at + 1) * h),
                            parts[2].slice(e.start, e.end),
                        ]
                    };
                    let now = &mut state[i * h..(i + 1) * h];
                    forward_row(Step {
                        kind: self.cell,
                        gates,
                        hidden: &hidden[i * gh..(i + 1) * gh],
                        h: now,
                        c: &mut cell[i * h..(i + 1) * h],
                        extra,
                    });
                    states.copy_from_slice(now);
                    // SAFETY: as above.
                    unsafe { seq.output(y, row, step) }.copy_from_slice(now);
                }
            }
            for (i, row) in rows.enumerate() {
                for (end, from) in ends.iter().zip([&state, &cell]) {
                    if let Some(end) = end {
                        // SAFETY: as above.
                        let end = unsafe { end.slice(row * h, (row + 1) * h) };
                        end.copy_from_slice(&from[i * h..(i + 1) * h]);
                    }
                }
                // SAFETY: as above.
                unsafe { seq.clear_padding(y, row) };
            }
        });
        Ok(())
    }

    /// Computes the gradients for `dy: [B·T, H]` (row-major) and for the states after the last
    /// step.
    pub fn backward(
        &self,
        saved: SavedRecurrent,
        dy: Option<Matrix>,
        dend: State,
        to: RecurrentGradients,
    ) -> Result<(), Error> {
        let seq = Sequences::new(self)?;
        seq.check_backward(&saved, &dend, dy, &to)?;
        let SavedRecurrent { x, start, tape } = saved;
        let (h, gh, valid) = (self.shape.hidden, self.gates_width(), seq.valid());
        let w = self.weights;
        let w_hidden = Packed::new(Matrix::new(w.hidden, gh, h)?);
        // Gradients of the contribution of the input to the gates and, where it differs, of the
        // state's.
        let differs = self.cell == Cell::Gru;
        let mut dinput = Scratch::new(valid * gh);
        let mut dhidden = Scratch::new(if differs { valid * gh } else { 0 });
        let mut before = Scratch::new(valid * h);
        let parts = [&mut dinput, &mut dhidden, &mut before].map(|v| Parts::new(v));
        let ends = [to.start.h, to.start.c].map(|x| x.map(Parts::new));
        let (parts, ends) = (&parts, &ends);
        seq.each_chunk(&|rows| {
            let m = rows.len();
            let mut dh = seq.load(dend.h, &rows);
            let mut dc = seq.load(dend.c, &rows);
            let mut dgates = Scratch::new(m * gh);
            for step in (0..seq.longest(&rows)).rev() {
                for (i, row) in rows.clone().enumerate() {
                    let dgates = &mut dgates[i * gh..(i + 1) * gh];
                    if step >= seq.len(row) {
                        dgates.fill(0.0);
                        continue;
                    }
                    let at = seq.at(row, step);
                    // SAFETY: each sequence is one task's.
                    let [dinput, before] = unsafe {
                        [
                            parts[0].slice(at * gh, (at + 1) * gh),
                            parts[2].slice(at * h, (at + 1) * h),
                        ]
                    };
                    let previous = step.checked_sub(1).map(|s| seq.at(row, s) * h);
                    seq.previous(start.h, &tape.states, row, previous, before);
                    let mut c_before = Scratch::new(h);
                    if self.cell == Cell::Lstm {
                        seq.previous(start.c, &tape.extra, row, previous, &mut c_before);
                    }
                    let kept = if self.cell == Cell::Rnn { 0..0 } else { at * h..(at + 1) * h };
                    backward_row(StepBack {
                        kind: self.cell,
                        gates: &tape.gates[at * gh..(at + 1) * gh],
                        state: &tape.states[at * h..(at + 1) * h],
                        extra: &tape.extra[kept],
                        h: before,
                        c: &c_before,
                        dy: dy.and_then(|dy| dy.row(seq.position(row, step))),
                        dh: &mut dh[i * h..(i + 1) * h],
                        dc: &mut dc[i * h..(i + 1) * h],
                        dinput,
                        dhidden: dgates,
                    });
                    if differs {
                        // SAFETY: as above.
                        let all = unsafe { parts[1].slice(at * gh, (at + 1) * gh) };
                        all.copy_from_slice(dgates);
                    }
                }
                // a = W_hh·h + …: dh += W_hhᵀ·da
                let a = Matrix::new(&dgates, m, gh).expect("its own size");
                let to = MatrixMut::new(&mut dh, m, h).expect("its own size");
                product(a, &w_hidden, to, Epilogue::accumulate()).expect("shapes were checked");
            }
            for (i, row) in rows.enumerate() {
                for (end, from) in ends.iter().zip([&dh, &dc]) {
                    if let Some(end) = end {
                        // SAFETY: as above.
                        let end = unsafe { end.slice(row * h, (row + 1) * h) };
                        end.copy_from_slice(&from[i * h..(i + 1) * h]);
                    }
                }
            }
        });
        let dinput = Matrix::new(&dinput, valid, gh)?;
        let dhidden = if differs { Matrix::new(&dhidden, valid, gh)? } else { dinput };
        // The products of all steps at once: dW_hh = daᵀ·h, dW_ih = daᵀ·x, dx = da·W_ih
        if let Some(dw) = to.hidden {
            let before = Matrix::new(&before, valid, h)?;
            product(dhidden.t(), before, MatrixMut::new(dw, gh, h)?, Epilogue::default())?;
        }
        if let Some(db) = to.hidden_bias {
            sum_rows(dhidden, db);
        }
        if let Some(db) = to.input_bias {
            sum_rows(dinput, db);
        }
        let width = self.shape.input;
        if let Some(dw) = to.input {
            let packed_x = seq.gather(x);
            let inputs = Matrix::new(packed_x.as_deref().unwrap_or(x), valid, width)?;
            product(dinput.t(), inputs, MatrixMut::new(dw, gh, width)?, Epilogue::default())?;
        }
        if let Some(dx) = to.x {
            let mut packed = Scratch::new(valid * width);
            let w_input = Matrix::new(w.input, gh, width)?;
            let out = MatrixMut::new(&mut packed, valid, width)?;
            product(dinput, w_input, out, Epilogue::default())?;
            seq.scatter(&packed, dx);
        }
        Ok(())
    }

    fn gates_width(&self) -> usize {
        self.cell.gates() * self.shape.hidden
    }
}

impl Sequences<'_> {
    /// Runs a task for each group of rows, over all steps: groups share nothing, so they never wait
    /// for each other.
    fn each_chunk(&self, task: &(dyn Fn(std::ops::Range<usize>) + Sync)) {
        let batch = self.batch();
        let chunk = if batch < 32 { 8 } else { 16 };
        parallel(batch.div_ceil(chunk), &|c| task(c * chunk..((c + 1) * chunk).min(batch)));
    }
}

#[cfg(test)]
mod tests;
