//! One step of many rows, without a tape: decoding, and weights that are not trained.

use super::Cell;
use super::sequence::{Step, forward_row};
use crate::pool::{Parts, parallel_ranges};
use crate::scratch::Scratch;
use crate::view::{Error, bail};

/// Gate values per task, so that waking another thread pays off.
const WORTH: usize = 1 << 14;

/// Finishes a step of the recurrence: from the contributions of input and state to the gates, biases
/// included, to the next state. `gates` is overwritten. Each row is computed by itself, as in
/// [`Recurrent::forward`](super::Recurrent::forward), bit for bit.
///
/// # Shapes
/// `gates, hidden: [N, G·H]`, `h: [N, H]`, `c: [N, H]` for the LSTM, else empty
///
/// # Errors
/// If sizes do not match.
pub fn step(
    cell: Cell,
    width: usize,
    gates: &mut [f32],
    hidden: &[f32],
    h: &mut [f32],
    c: &mut [f32],
) -> Result<(), Error> {
    let wide = cell.gates() * width;
    let rows = h.len().checked_div(width).unwrap_or(0);
    let cells = if cell == Cell::Lstm { rows * width } else { 0 };
    if [h.len(), c.len(), gates.len(), hidden.len()]
        != [rows * width, cells, rows * wide, rows * wide]
    {
        bail!(
            "recurrent: a step of {cell:?} of width {width} got gates of {} and {} floats, h of {}, \
             c of {}",
            gates.len(),
            hidden.len(),
            h.len(),
            c.len()
        );
    }
    let each = cells.checked_div(rows).unwrap_or(0);
    let parts = [gates, h, c].map(Parts::new);
    parallel_ranges(rows, (WORTH / wide.max(1)).max(1), &|from, to| {
        let mut extra = Scratch::new(width);
        for row in from..to {
            // SAFETY: each row is one task's.
            let [gates, h, c] = unsafe {
                [
                    parts[0].part(row * wide, wide),
                    parts[1].part(row * width, width),
                    parts[2].part(row * each, each),
                ]
            };
            let hidden = &hidden[row * wide..(row + 1) * wide];
            forward_row(Step { kind: cell, gates, hidden, h, c, extra: &mut extra });
        }
    });
    Ok(())
}
