//! Embedding lookup: `y_n = W_{id_n}`.

use super::Parts;
use crate::pool::{parallel, parallel_ranges};
use crate::simd::{Kernel, Simd, dispatch};
use crate::storage::Stored;
use crate::view::{Error, bail};

/// Embedding lookup.
///
/// # Shapes
/// `table: [V, M]`.
#[derive(Clone, Copy)]
pub struct Embedding<'a> {
    /// Embedding table `W`, in any storage type.
    pub table: Stored<'a>,
}

/// Columns per task of the backward: four cache lines, so that tasks share lines only at their
/// edges.
const COLUMNS: usize = 64;

impl Embedding<'_> {
    /// Computes `y_n = W_{id_n}`.
    ///
    /// # Shapes
    /// `ids: [N]`, `y: [N, M]`.
    ///
    /// # Errors
    /// If shapes do not match, or if an id is not a row of the table.
    pub fn forward(&self, ids: &[i64], y: &mut [f32]) -> Result<(), Error> {
        let [size, width] = self.table.shape();
        check(ids, size * width, width, y.len())?;
        let y = Parts::new(y);
        parallel_ranges(ids.len(), (super::PIECE / width).max(1), &|from, to| {
            for (row, id) in (from..to).zip(&ids[from..to]) {
                // SAFETY: each row is one task's.
                let y = unsafe { y.slice(row * width, (row + 1) * width) };
                self.table.line(*id as usize, y);
            }
        });
        Ok(())
    }
}

/// Computes `dW_v = Σ_{n: id_n = v} dy_n`, added in the order of `n`; the row of the padding id
/// stays 0.
///
/// # Shapes
/// `ids: [N]`, `dy: [N, M]`, `dtable: [V, M]` (overwritten).
pub fn backward(
    ids: &[i64],
    dy: &[f32],
    padding: Option<i64>,
    width: usize,
    dtable: &mut [f32],
) -> Result<(), Error> {
    check(ids, dtable.len(), width, dy.len())?;
    let table = Parts::new(dtable);
    let len = table.len();
    parallel_ranges(len, super::PIECE, &|from, to| {
        // SAFETY: pieces do not overlap.
        unsafe { table.slice(from, to) }.fill(0.0);
    });
    // Each task has some columns of all rows, so tasks are disjoint and each sum keeps its order.
    parallel(width.div_ceil(COLUMNS), &|task| {
        let (from, to) = (task * COLUMNS, ((task + 1) * COLUMNS).min(width));
        for (n, id) in ids.iter().enumerate().filter(|(_, id)| Some(**id) != padding) {
            let row = *id as usize * width;
            // SAFETY: these columns are this task's.
            let sum = unsafe { table.slice(row + from, row + to) };
            dispatch(AddTo(sum, &dy[n * width + from..n * width + to]));
        }
    });
    Ok(())
}

/// `x += y`
struct AddTo<'a>(&'a mut [f32], &'a [f32]);

impl Kernel for AddTo<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        super::lanes::add_to(s, self.0, self.1);
    }
}

fn check(ids: &[i64], table: usize, width: usize, rows: usize) -> Result<(), Error> {
    if width == 0 || !table.is_multiple_of(width) || rows != ids.len() * width {
        let n = ids.len();
        bail!("embedding: table {table}, width {width}, {n} ids and {rows} floats do not match");
    }
    let size = table / width;
    if let Some(n) = ids.iter().position(|id| !(0..size as i64).contains(id)) {
        bail!("embedding: id {} at position {n} is not one of {size} rows", ids[n]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{close, random};
    use crate::storage::{StorageType, tests::matrix};

    #[test]
    fn rows_are_gathered_and_gradients_scattered() {
        for (n, vocabulary, width) in [(1, 1, 1), (3, 5, 7), (17, 4, 33), (200, 9, 150)] {
            let (table, dy) = (random(1, vocabulary * width), random(2, n * width));
            let ids: Vec<i64> = (0..n).map(|i| (i * i * 5 % vocabulary) as i64).collect();
            let mut y = vec![0f32; n * width];
            let rows = Stored::rows(&table, width).unwrap();
            Embedding { table: rows }.forward(&ids, &mut y).unwrap();
            for padding in [None, Some(0)] {
                let mut dtable = vec![1f32; table.len()];
                backward(&ids, &dy, padding, width, &mut dtable).unwrap();
                let mut want = vec![0f64; table.len()];
                for i in 0..n * width {
                    let at = ids[i / width] as usize * width + i % width;
                    assert_eq!(y[i], table[at]);
                    if Some(ids[i / width]) != padding {
                        want[at] += f64::from(dy[i]);
                    }
                }
                close("scatter", &dtable, &want, 1e-5);
            }
        }
    }

    #[test]
    fn rows_of_every_storage_type_are_gathered() {
        for kind in StorageType::ALL {
            for (rows, width) in [(1, 1), (5, 7), (9, 16), (4, 33)] {
                let (bytes, numbers) = matrix(kind, &random(1, rows * width));
                let table = Stored::new(kind, &bytes, [rows, width]).unwrap();
                let ids: Vec<i64> = (0..2 * rows as i64).rev().map(|i| i / 2).collect();
                let mut y = vec![0f32; ids.len() * width];
                Embedding { table }.forward(&ids, &mut y).unwrap();
                let rows = ids.iter().map(|id| &numbers[*id as usize * width..][..width]);
                assert!(y.iter().eq(rows.flatten()), "{kind:?} {width}");
            }
        }
    }

    #[test]
    fn an_id_outside_of_the_table_is_told() {
        let table = Stored::rows(&[0.0; 6], 2).unwrap();
        let error = Embedding { table }.forward(&[0, 3], &mut [0.0; 4]);
        assert_eq!(error.unwrap_err().0, "embedding: id 3 at position 1 is not one of 3 rows");
        assert!(backward(&[-1], &[0.0; 2], None, 2, &mut [0.0; 6]).is_err());
    }
}
