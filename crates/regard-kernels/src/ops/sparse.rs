//! Product of a sparse matrix and a dense one: `y_n = Σ_c x_nc · W_c` over the nonzero columns `c`,
//! for instance of bags of words.

use super::Parts;
use crate::pool::parallel_ranges;
use crate::simd::{Kernel, Simd, dispatch};
use crate::view::{Error, bail};

/// Sparsity pattern of a matrix, in CSR and CSC form.
#[derive(Clone, Debug, PartialEq)]
pub struct Sparse {
    /// Columns of each row (CSR).
    by_row: Lists,
    /// Rows of each column (CSC), for the backward.
    by_column: Lists,
    /// Index in `by_row` of each nonzero of `by_column`.
    places: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq)]
struct Lists {
    starts: Vec<u32>,
    index: Vec<u32>,
}

/// Rows of the result per task.
const ROWS: usize = 64;

impl Sparse {
    /// Creates a pattern from the column indices of each row; there are `columns` columns.
    ///
    /// # Errors
    /// If a column index is not below `columns`.
    pub fn new<R: AsRef<[u32]>>(rows: &[R], columns: usize) -> Result<Sparse, Error> {
        let total: usize = rows.iter().map(|row| row.as_ref().len()).sum();
        if total >= u32::MAX as usize || rows.len() >= u32::MAX as usize {
            bail!("sparse: got {total} nonzeros, {} rows, need fewer than 2³² − 1", rows.len());
        }
        let mut by_row = Lists { starts: vec![0], index: Vec::with_capacity(total) };
        let mut counts = vec![0u32; columns + 1];
        for (n, row) in rows.iter().enumerate() {
            for c in row.as_ref() {
                if *c as usize >= columns {
                    bail!("sparse: row {n} has column {c}, need below {columns}");
                }
                counts[*c as usize + 1] += 1;
                by_row.index.push(*c);
            }
            by_row.starts.push(by_row.index.len() as u32);
        }
        for c in 0..columns {
            counts[c + 1] += counts[c];
        }
        let mut next = counts.clone();
        let (mut index, mut places) = (vec![0; total], vec![0; total]);
        for n in 0..rows.len() {
            for place in by_row.starts[n]..by_row.starts[n + 1] {
                let to = &mut next[by_row.index[place as usize] as usize];
                (index[*to as usize], places[*to as usize]) = (n as u32, place);
                *to += 1;
            }
        }
        Ok(Sparse { by_row, by_column: Lists { starts: counts, index }, places })
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.by_row.starts.len().saturating_sub(1)
    }

    /// Returns the number of columns.
    pub fn columns(&self) -> usize {
        self.by_column.starts.len().saturating_sub(1)
    }

    /// Returns the number of nonzeros.
    pub fn places(&self) -> usize {
        self.places.len()
    }

    /// Returns the column indices of a row.
    pub fn row(&self, n: usize) -> &[u32] {
        &self.by_row.index[self.range(n)]
    }

    /// Returns the range of nonzeros that belong to a row.
    pub fn range(&self, n: usize) -> std::ops::Range<usize> {
        self.by_row.starts[n] as usize..self.by_row.starts[n + 1] as usize
    }

    /// Computes `y_n = Σ_c x_nc · W_c`.
    ///
    /// # Shapes
    /// `values: [nonzeros]`, `w: [columns, M]`, `y: [rows, M]`.
    pub fn forward(&self, values: &[f32], w: &[f32], y: &mut [f32]) -> Result<(), Error> {
        let width = self.width(values, w, y)?;
        sums(&self.by_row, values, w, width, y);
        Ok(())
    }

    /// Computes `dW_c = Σ_n x_nc · dy_n`, from `y_n = Σ_c x_nc · W_c`, added in the order of `n`.
    ///
    /// # Shapes
    /// `values: [nonzeros]`, `dy: [rows, M]`, `dw: [columns, M]` (overwritten).
    pub fn backward(&self, values: &[f32], dy: &[f32], dw: &mut [f32]) -> Result<(), Error> {
        let width = self.width(values, dw, dy)?;
        let values: Vec<f32> = self.places.iter().map(|place| values[*place as usize]).collect();
        sums(&self.by_column, &values, dy, width, dw);
        Ok(())
    }

    /// `M`, if all sizes match.
    fn width(&self, values: &[f32], w: &[f32], y: &[f32]) -> Result<usize, Error> {
        let (rows, columns) = (self.rows(), self.columns());
        let width = w.len().checked_div(columns).unwrap_or(0);
        if values.len() != self.places() || w.len() != columns * width || y.len() != rows * width {
            bail!(
                "sparse: {} values, {} and {} floats, need {} values, [{columns}, M] and [{rows}, M]",
                values.len(),
                w.len(),
                y.len(),
                self.places()
            );
        }
        Ok(width)
    }
}

/// `out_n = Σ value · table_index` over the list of each `n`.
fn sums(lists: &Lists, values: &[f32], table: &[f32], width: usize, out: &mut [f32]) {
    let (count, out) = (lists.starts.len() - 1, Parts::new(out));
    parallel_ranges(count, ROWS, &|from, to| {
        // SAFETY: pieces do not overlap.
        let out = unsafe { out.slice(from * width, to * width) };
        dispatch(Sums { lists, values, table, width, first: from, out });
    });
}

struct Sums<'a> {
    lists: &'a Lists,
    values: &'a [f32],
    table: &'a [f32],
    width: usize,
    first: usize,
    out: &'a mut [f32],
}

impl Kernel for Sums<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Sums { lists, values, table, width, first, out } = self;
        for (n, row) in out.chunks_exact_mut(width.max(1)).enumerate() {
            let n = first + n;
            let places = lists.starts[n] as usize..lists.starts[n + 1] as usize;
            let (index, values) = (&lists.index[places.clone()], &values[places]);
            // Four vectors at a time stay in registers during the pass over the list.
            let mut d = 0;
            while d + 4 * S::LANES <= width {
                let mut sum = [s.splat(0.0); 4];
                for (at, x) in index.iter().zip(values) {
                    let line = &table[*at as usize * width + d..][..4 * S::LANES];
                    for (v, sum) in sum.iter_mut().enumerate() {
                        // SAFETY: the line is four vectors long.
                        let w = unsafe { s.load(line.as_ptr().add(v * S::LANES)) };
                        *sum = s.fma(s.splat(*x), w, *sum);
                    }
                }
                for (v, sum) in sum.into_iter().enumerate() {
                    // SAFETY: four vectors end within the row.
                    unsafe { s.store(row.as_mut_ptr().add(d + v * S::LANES), sum) };
                }
                d += 4 * S::LANES;
            }
            while d < width {
                let n = (width - d).min(S::LANES);
                let mut sum = s.splat(0.0);
                for (at, x) in index.iter().zip(values) {
                    let line = &table[*at as usize * width + d..][..n];
                    // SAFETY: the line is `n` long.
                    sum = s.fma(s.splat(*x), unsafe { s.load_part(line.as_ptr(), n) }, sum);
                }
                // SAFETY: `n` floats of the row are left.
                unsafe { s.store_part(row.as_mut_ptr().add(d), n, sum) };
                d += n;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{close, random};

    #[test]
    fn products_and_gradients_are_those_of_the_dense_matrix() {
        for (n, columns, width) in [(1, 1, 1), (3, 5, 7), (150, 40, 64), (70, 9, 83)] {
            let rows: Vec<Vec<u32>> = (0..n)
                .map(|i| {
                    (0..columns as u32)
                        .filter(|c| (*c as usize * 7 + i).is_multiple_of(3))
                        .collect()
                })
                .collect();
            let x = Sparse::new(&rows, columns).unwrap();
            assert_eq!((x.rows(), x.columns()), (n, columns));
            let values = random(1, x.places());
            let (w, dy) = (random(2, columns * width), random(3, n * width));
            let (mut y, mut dw) = (vec![1f32; n * width], vec![1f32; columns * width]);
            x.forward(&values, &w, &mut y).unwrap();
            x.backward(&values, &dy, &mut dw).unwrap();
            let (mut want, mut want_dw) = (vec![0f64; y.len()], vec![0f64; dw.len()]);
            for i in 0..n {
                for (c, value) in x.row(i).iter().zip(&values[x.range(i)]) {
                    for m in 0..width {
                        let (at, of) = (i * width + m, *c as usize * width + m);
                        want[at] += f64::from(*value) * f64::from(w[of]);
                        want_dw[of] += f64::from(*value) * f64::from(dy[at]);
                    }
                }
            }
            close("product", &y, &want, 1e-5);
            close("gradient", &dw, &want_dw, 1e-5);
        }
    }

    #[test]
    fn what_does_not_fit_is_told() {
        let error = Sparse::new(&[vec![0], vec![3]], 3).unwrap_err();
        assert_eq!(error.0, "sparse: row 1 has column 3, need below 3");
        let x = Sparse::new(&[vec![0, 2]], 3).unwrap();
        assert!(x.forward(&[1.0], &[0.0; 6], &mut [0.0; 2]).is_err());
        assert!(x.forward(&[1.0, 2.0], &[0.0; 6], &mut [0.0; 3]).is_err());
    }
}
