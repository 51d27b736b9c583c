//! Sinusoidal positions.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Rows that were computed so far, by width: a row takes as long as a step of a small model.
static KNOWN: Mutex<Vec<(usize, Vec<f32>)>> = Mutex::new(Vec::new());

/// Limit of the rows of a width that are kept; others are computed on every call.
const MOST: usize = 4096;

/// Appends the sinusoids of positions: all sines, then all cosines, as in Marian, which are the
/// paper's columns in another order.
///
/// # Shapes
/// `into: [positions, width]`
pub fn sinusoids(positions: Range<usize>, width: usize, into: &mut Vec<f32>) {
    if positions.end > MOST {
        return into.extend(positions.flat_map(|position| row(position, width)));
    }
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let at = known.iter().position(|(of, _)| *of == width).unwrap_or_else(|| {
        known.push((width, vec![]));
        known.len() - 1
    });
    let table = &mut known[at].1;
    for position in table.len() / width.max(1)..positions.end {
        table.extend(row(position, width));
    }
    into.extend_from_slice(&table[positions.start * width..positions.end * width]);
}

fn row(position: usize, width: usize) -> impl Iterator<Item = f32> {
    let half = width.div_ceil(2);
    (0..width).map(move |column| {
        let pair = if column < half { column } else { column - half };
        let angle = position as f64 / 10000f64.powf(2.0 * pair as f64 / width as f64);
        if column < half { angle.sin() as f32 } else { angle.cos() as f32 }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_rows_are_those_that_are_computed() {
        for width in [1, 6, 7] {
            for positions in [0..3, 2..5, 0..1, MOST - 1..MOST, MOST..MOST + 2] {
                let mut got = vec![9.0];
                sinusoids(positions.clone(), width, &mut got);
                let want: Vec<f32> = positions.flat_map(|p| row(p, width)).collect();
                assert_eq!(got[1..], want);
            }
        }
    }
}
