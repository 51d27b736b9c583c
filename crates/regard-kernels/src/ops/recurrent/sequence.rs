//! Indices of the steps of each sequence, and one step of one row.

use super::{Cell, Recurrent, RecurrentGradients, SavedRecurrent, State, StateMut, gru, lstm, rnn};
use crate::gemm::{Matrix, MatrixMut};
use crate::scratch::Scratch;
use crate::simd::{Kernel, Simd, dispatch};
use crate::view::{Error, bail};
use std::ops::Range;

/// The valid steps of a batch, sequences concatenated without padding.
pub(super) struct Sequences<'a> {
    layer: Recurrent<'a>,
    /// Offset of each sequence among the valid steps, and the total at the end.
    starts: Vec<usize>,
}

impl<'a> Sequences<'a> {
    pub fn new(layer: &Recurrent<'a>) -> Result<Sequences<'a>, Error> {
        let super::Shape { batch, steps, input, hidden } = layer.shape;
        let gh = layer.cell.gates() * hidden;
        let w = layer.weights;
        let biases = [w.input_bias, w.hidden_bias].into_iter().flatten();
        if w.input.len() != gh * input
            || w.hidden.len() != gh * hidden
            || biases.into_iter().any(|b| b.len() != gh)
        {
            bail!(
                "recurrent: {:?} of width {hidden} on inputs of {input} needs weights \
                 [{gh}, {input}] and [{gh}, {hidden}] and biases [{gh}]",
                layer.cell
            );
        }
        let mut starts = vec![0];
        match layer.lengths {
            None => starts.extend((1..=batch).map(|b| b * steps)),
            Some(lengths) if lengths.len() != batch => {
                bail!("recurrent: {} lengths for a batch of {batch}", lengths.len());
            }
            Some(lengths) => {
                for (row, len) in lengths.iter().enumerate() {
                    if *len > steps {
                        bail!("recurrent: row {row} has length {len}, but there are {steps} steps");
                    }
                    starts.push(starts[row] + len);
                }
            }
        }
        Ok(Sequences { layer: *layer, starts })
    }

    pub fn batch(&self) -> usize {
        self.layer.shape.batch
    }

    /// Number of valid steps of all rows.
    pub fn valid(&self) -> usize {
        self.starts[self.batch()]
    }

    pub fn len(&self, row: usize) -> usize {
        self.starts[row + 1] - self.starts[row]
    }

    pub fn longest(&self, rows: &Range<usize>) -> usize {
        rows.clone().map(|row| self.len(row)).max().unwrap_or(0)
    }

    /// Index of the valid step that a row takes at a step of the recurrence.
    pub fn at(&self, row: usize, step: usize) -> usize {
        let forward = if self.layer.reverse { self.len(row) - 1 - step } else { step };
        self.starts[row] + forward
    }

    /// Index of that step in `[B·T]`.
    pub fn position(&self, row: usize, step: usize) -> usize {
        row * self.layer.shape.steps + self.at(row, step) - self.starts[row]
    }

    /// The output of that step.
    ///
    /// # Safety
    /// No other reference to it may be in use.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn output<'y>(&self, y: &'y MatrixMut, row: usize, step: usize) -> &'y mut [f32] {
        let to = y.at(self.position(row, step), 0);
        // SAFETY: inside of `y`, whose shape and row-major order were checked.
        unsafe { std::slice::from_raw_parts_mut(to, self.layer.shape.hidden) }
    }

    /// Clears a row's outputs past its length.
    ///
    /// # Safety
    /// No other reference to them may be in use.
    pub unsafe fn clear_padding(&self, y: &MatrixMut, row: usize) {
        for step in self.len(row)..self.layer.shape.steps {
            let to = y.at(row * self.layer.shape.steps + step, 0);
            // SAFETY: as in `output`.
            unsafe { std::slice::from_raw_parts_mut(to, self.layer.shape.hidden) }.fill(0.0);
        }
    }

    /// The valid rows of `[B, T, I]`; `None` if all are valid.
    pub fn gather(&self, x: &[f32]) -> Option<Scratch> {
        let width = self.layer.shape.input;
        if self.valid() * width == x.len() {
            return None;
        }
        let mut out = Scratch::new(self.valid() * width);
        for row in 0..self.batch() {
            let (from, n) = (row * self.layer.shape.steps * width, self.len(row) * width);
            let to = self.starts[row] * width;
            out[to..to + n].copy_from_slice(&x[from..from + n]);
        }
        Some(out)
    }

    /// Copies valid rows back into `[B, T, I]`, zeros elsewhere.
    pub fn scatter(&self, from: &[f32], x: &mut [f32]) {
        let width = self.layer.shape.input;
        let stride = self.layer.shape.steps * width;
        for row in 0..self.batch() {
            let (at, n) = (self.starts[row] * width, self.len(row) * width);
            let to = &mut x[row * stride..(row + 1) * stride];
            to[..n].copy_from_slice(&from[at..at + n]);
            to[n..].fill(0.0);
        }
    }

    /// Some rows of a state, or zeros.
    pub fn load(&self, state: Option<&[f32]>, rows: &Range<usize>) -> Scratch {
        let h = self.layer.shape.hidden;
        let mut out = Scratch::zeroed(rows.len() * h);
        if let Some(state) = state {
            out.copy_from_slice(&state[rows.start * h..rows.end * h]);
        }
        out
    }

    /// The state before a step: the one after the previous step, or the initial one.
    pub fn previous(
        &self,
        start: Option<&[f32]>,
        states: &[f32],
        row: usize,
        previous: Option<usize>,
        to: &mut [f32],
    ) {
        let h = self.layer.shape.hidden;
        match (previous, start) {
            (Some(at), _) => to.copy_from_slice(&states[at..at + h]),
            (None, Some(start)) => to.copy_from_slice(&start[row * h..(row + 1) * h]),
            (None, None) => to.fill(0.0),
        }
    }

    pub fn check_forward(
        &self,
        x: &[f32],
        start: &State,
        y: &MatrixMut,
        end: &StateMut,
    ) -> Result<(), Error> {
        let super::Shape { batch, steps, input, hidden } = self.layer.shape;
        if x.len() != batch * steps * input {
            bail!("recurrent: x has {} floats, not [{batch}, {steps}, {input}]", x.len());
        }
        if y.shape() != [batch * steps, hidden] || y.col != 1 {
            bail!("recurrent: y is {:?}, not row-major [{batch}·{steps}, {hidden}]", y.shape());
        }
        let states = [start.h, start.c, end.h.as_deref(), end.c.as_deref()];
        self.check_states(states)
    }

    pub fn check_backward(
        &self,
        saved: &SavedRecurrent,
        dend: &State,
        dy: Option<Matrix>,
        to: &RecurrentGradients,
    ) -> Result<(), Error> {
        let SavedRecurrent { x, start, tape } = *saved;
        let super::Shape { batch, steps, input, hidden } = self.layer.shape;
        let gh = self.layer.cell.gates() * hidden;
        let x_len = batch * steps * input;
        let lengths = [
            ("x", Some(x.len()), x_len),
            ("the gradient of x", to.x.as_ref().map(|d| d.len()), x_len),
            ("the gradient of the input weight", to.input.as_ref().map(|d| d.len()), gh * input),
            ("the gradient of the state weight", to.hidden.as_ref().map(|d| d.len()), gh * hidden),
            ("the gradient of the input bias", to.input_bias.as_ref().map(|d| d.len()), gh),
            ("the gradient of the state bias", to.hidden_bias.as_ref().map(|d| d.len()), gh),
        ];
        for (name, got, want) in lengths {
            if got.is_some_and(|got| got != want) {
                bail!("recurrent: {name} has {} floats, not {want}", got.unwrap_or(0));
            }
        }
        if let Some(dy) = dy
            && (dy.shape() != [batch * steps, hidden] || dy.col != 1)
        {
            bail!("recurrent: dy is {:?}, not row-major [{batch}·{steps}, {hidden}]", dy.shape());
        }
        let extra = if self.layer.cell == Cell::Rnn { 0 } else { self.valid() * hidden };
        if tape.gates.len() < self.valid() * gh || tape.extra.len() < extra {
            bail!("recurrent: the tape is not that of a forward of this layer and batch");
        }
        self.check_states([start.h, start.c, dend.h, dend.c])?;
        self.check_states([to.start.h.as_deref(), to.start.c.as_deref(), None, None])
    }

    fn check_states(&self, states: [Option<&[f32]>; 4]) -> Result<(), Error> {
        let super::Shape { batch, hidden, .. } = self.layer.shape;
        for state in states.into_iter().flatten() {
            if state.len() != batch * hidden {
                bail!("recurrent: a state has {} floats, not [{batch}, {hidden}]", state.len());
            }
        }
        Ok(())
    }
}

/// Forward step of one row.
pub(super) struct Step<'a> {
    pub kind: Cell,
    /// In: the contribution of the input. Out: the gate values.
    pub gates: &'a mut [f32],
    /// Contribution of the state.
    pub hidden: &'a [f32],
    /// State before the step; on return, after it.
    pub h: &'a mut [f32],
    /// Cell state before the step; on return, after it.
    pub c: &'a mut [f32],
    /// Further values saved for the backward.
    pub extra: &'a mut [f32],
}

/// Backward step of one row.
pub(super) struct StepBack<'a> {
    pub kind: Cell,
    pub gates: &'a [f32],
    /// The state after the step.
    pub state: &'a [f32],
    pub extra: &'a [f32],
    /// Hidden and cell state before the step.
    pub h: &'a [f32],
    pub c: &'a [f32],
    pub dy: Option<&'a [f32]>,
    /// In: the gradient of the state after the step, without `dy`. Out: the gradient of the state
    /// before the step, without the gates' contribution.
    pub dh: &'a mut [f32],
    pub dc: &'a mut [f32],
    /// Out: gradients of the contributions of the input and of the state to the gates.
    pub dinput: &'a mut [f32],
    pub dhidden: &'a mut [f32],
}

pub(super) fn forward_row(step: Step) {
    dispatch(step);
}

pub(super) fn backward_row(step: StepBack) {
    dispatch(step);
}

impl Kernel for Step<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        match self.kind {
            Cell::Rnn => rnn::forward(s, self),
            Cell::Gru => gru::forward(s, self),
            Cell::Lstm => lstm::forward(s, self),
        }
    }
}

impl Kernel for StepBack<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        if let Some(dy) = self.dy {
            crate::ops::lanes::add_to(s, self.dh, dy);
        }
        match self.kind {
            Cell::Rnn => rnn::backward(s, self),
            Cell::Gru => gru::backward(s, self),
            Cell::Lstm => lstm::backward(s, self),
        }
    }
}
