//! Borrowed matrices with any strides.

use crate::storage::Dense;
use crate::view::{Error, bail};
use std::marker::PhantomData;

/// Read-only view of a matrix `[rows, cols]` with any strides; a transpose is a view.
#[derive(Clone, Copy)]
pub struct Matrix<'a> {
    start: *const f32,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    /// Stride between rows, in floats.
    pub(crate) row: isize,
    /// Stride between columns, in floats.
    pub(crate) col: isize,
    owner: PhantomData<&'a [f32]>,
}

// SAFETY: a `Matrix` is a shared borrow of floats.
unsafe impl Send for Matrix<'_> {}
// SAFETY: as above.
unsafe impl Sync for Matrix<'_> {}

/// Checks that `[rows, cols]` with `[row, col]` strides lies within `len` floats from `offset`.
fn check(
    len: usize,
    [rows, cols]: [usize; 2],
    [row, col]: [isize; 2],
    offset: usize,
) -> Result<(), Error> {
    if rows == 0 || cols == 0 {
        return Ok(());
    }
    // In 128 bits, so that the check cannot overflow.
    let ends = [(rows, row), (cols, col)].map(|(n, step)| (n as i128 - 1) * step as i128);
    let low = offset as i128 + ends.iter().map(|e| (*e).min(0)).sum::<i128>();
    let high = offset as i128 + ends.iter().map(|e| (*e).max(0)).sum::<i128>();
    if low < 0 || high >= len as i128 {
        bail!(
            "a matrix [{rows}, {cols}] with strides [{row}, {col}] from {offset} does not lie \
             within {len} floats"
        );
    }
    Ok(())
}

impl<'a> Matrix<'a> {
    /// Creates a view of a row-major matrix.
    ///
    /// # Errors
    /// If `data` does not have exactly `rows·cols` floats.
    pub fn new(data: &'a [f32], rows: usize, cols: usize) -> Result<Matrix<'a>, Error> {
        if rows.checked_mul(cols) != Some(data.len()) {
            bail!("a matrix [{rows}, {cols}] cannot be made of {} floats", data.len());
        }
        Matrix::strided(data, [rows, cols], [cols as isize, 1], 0)
    }

    /// Creates a view of a matrix whose first element is `data[offset]`.
    ///
    /// # Errors
    /// If an element lies outside `data`.
    pub fn strided(
        data: &'a [f32],
        shape: [usize; 2],
        strides: [isize; 2],
        offset: usize,
    ) -> Result<Matrix<'a>, Error> {
        check(data.len(), shape, strides, offset)?;
        // SAFETY: just checked.
        Ok(unsafe { Matrix::from_raw(data.as_ptr().wrapping_add(offset), shape, strides) })
    }

    /// Creates a view from a pointer to its first element.
    ///
    /// # Safety
    /// Every element that shape and strides reach from `start` must be readable for `'a`.
    pub unsafe fn from_raw(start: *const f32, shape: [usize; 2], strides: [isize; 2]) -> Self {
        let ([rows, cols], [row, col]) = (shape, strides);
        Matrix { start, rows, cols, row, col, owner: PhantomData }
    }

    /// Returns the numbers of rows and columns.
    pub fn shape(&self) -> [usize; 2] {
        [self.rows, self.cols]
    }

    /// Returns the transpose, in the same memory.
    pub fn t(self) -> Matrix<'a> {
        let Matrix { rows, cols, row, col, .. } = self;
        Matrix { rows: cols, cols: rows, row: col, col: row, ..self }
    }

    /// Returns the rows `from..to`.
    ///
    /// # Panics
    /// If they are out of bounds.
    pub fn slice_rows(self, from: usize, to: usize) -> Matrix<'a> {
        assert!(from <= to && to <= self.rows, "rows {from}..{to} of a matrix of {}", self.rows);
        Matrix { start: self.at(from, 0), rows: to - from, ..self }
    }

    /// Without the first `n` columns.
    #[inline(always)]
    pub(crate) fn skip_cols(self, n: usize) -> Matrix<'a> {
        Matrix { start: self.at(0, n), cols: self.cols - n, ..self }
    }

    /// The rows as lines of memory. They must be contiguous.
    #[inline(always)]
    pub(crate) fn lines(self) -> Dense<'a, f32> {
        Dense::from_raw(self.start, self.row)
    }

    /// Returns the address of an element, which may be out of bounds.
    #[inline(always)]
    pub fn at(&self, row: usize, col: usize) -> *const f32 {
        self.start.wrapping_offset(row as isize * self.row + col as isize * self.col)
    }

    /// Returns one element.
    ///
    /// # Panics
    /// If the index is out of bounds.
    #[inline(always)]
    pub fn get(&self, row: usize, col: usize) -> f32 {
        assert!(row < self.rows && col < self.cols, "index outside of the matrix");
        // SAFETY: the index is inside the shape, which was checked against the memory.
        unsafe { *self.at(row, col) }
    }

    /// Returns a row as a slice; `None` if rows are not contiguous.
    pub fn row(&self, row: usize) -> Option<&'a [f32]> {
        assert!(row < self.rows, "row {row} of a matrix of {}", self.rows);
        // SAFETY: the row is inside the shape, which was checked against the memory.
        let slice = || unsafe { std::slice::from_raw_parts(self.at(row, 0), self.cols) };
        (self.col == 1 || self.cols <= 1).then(slice)
    }
}

/// Mutable view of a matrix `[rows, cols]`; either rows or columns must be contiguous.
pub struct MatrixMut<'a> {
    start: *mut f32,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    /// Stride between rows, in floats.
    pub(crate) row: isize,
    /// Stride between columns, in floats.
    pub(crate) col: isize,
    owner: PhantomData<&'a mut [f32]>,
}

// SAFETY: a `MatrixMut` is a unique borrow of floats; tasks that share it write different tiles.
unsafe impl Send for MatrixMut<'_> {}
// SAFETY: as above.
unsafe impl Sync for MatrixMut<'_> {}

impl<'a> MatrixMut<'a> {
    /// Creates a view of a row-major matrix.
    ///
    /// # Errors
    /// If `data` does not have exactly `rows·cols` floats.
    pub fn new(data: &'a mut [f32], rows: usize, cols: usize) -> Result<MatrixMut<'a>, Error> {
        if rows.checked_mul(cols) != Some(data.len()) {
            bail!("a matrix [{rows}, {cols}] cannot be made of {} floats", data.len());
        }
        MatrixMut::strided(data, [rows, cols], [cols as isize, 1], 0)
    }

    /// Creates a view of a matrix whose first element is `data[offset]`. One stride must be 1 and
    /// the other must step over the whole row (or column), so that no two elements share memory.
    pub fn strided(
        data: &'a mut [f32],
        shape: [usize; 2],
        strides: [isize; 2],
        offset: usize,
    ) -> Result<MatrixMut<'a>, Error> {
        check(data.len(), shape, strides, offset)?;
        let ([rows, cols], [row, col]) = (shape, strides);
        let by_rows = (col == 1 || cols <= 1) && (row >= cols as isize || rows <= 1);
        let by_cols = (row == 1 || rows <= 1) && (col >= rows as isize || cols <= 1);
        if !by_rows && !by_cols {
            bail!(
                "an output [{rows}, {cols}] cannot have strides [{row}, {col}]: one must be 1, \
                 and the other as long as a row or column"
            );
        }
        // A single column or row has no stride; it gets the one that it would have.
        let col = if by_rows { 1 } else { col };
        let row = if by_rows { row } else { 1 };
        let start = data.as_mut_ptr().wrapping_add(offset);
        Ok(MatrixMut { start, rows, cols, row, col, owner: PhantomData })
    }

    /// Returns the numbers of rows and columns.
    pub fn shape(&self) -> [usize; 2] {
        [self.rows, self.cols]
    }

    /// Returns the transpose, in the same memory.
    pub fn t(self) -> MatrixMut<'a> {
        let MatrixMut { rows, cols, row, col, .. } = self;
        MatrixMut { rows: cols, cols: rows, row: col, col: row, ..self }
    }

    /// Reborrows the view for a shorter lifetime.
    pub fn reborrow(&mut self) -> MatrixMut<'_> {
        MatrixMut { owner: PhantomData, ..*self }
    }

    /// Returns a read-only view.
    pub fn as_ref(&self) -> Matrix<'_> {
        // SAFETY: what may be written may be read.
        unsafe { Matrix::from_raw(self.start, [self.rows, self.cols], [self.row, self.col]) }
    }

    /// Returns the address of an element, which may be out of bounds. Tasks must write disjoint
    /// elements.
    #[inline(always)]
    pub fn at(&self, row: usize, col: usize) -> *mut f32 {
        self.start.wrapping_offset(row as isize * self.row + col as isize * self.col)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_must_lie_within_its_memory() {
        let data: Vec<f32> = (0..12).map(|i| i as f32).collect();
        let a = Matrix::new(&data, 3, 4).unwrap();
        assert_eq!((a.get(1, 2), a.t().get(2, 1), a.slice_rows(1, 3).get(0, 2)), (6.0, 6.0, 6.0));
        assert!(Matrix::new(&data, 3, 5).is_err());
        assert!(Matrix::strided(&data, [3, 4], [4, 1], 1).is_err());
        assert!(Matrix::strided(&data, [3, 4], [-4, 1], 8).is_ok());
        assert!(Matrix::strided(&data, [2, 2], [isize::MAX, 1], 0).is_err());
    }

    #[test]
    fn an_output_may_not_overlap_itself() {
        let mut data = vec![0f32; 12];
        assert!(MatrixMut::strided(&mut data, [3, 4], [4, 1], 0).is_ok());
        assert!(MatrixMut::strided(&mut data, [4, 3], [1, 4], 0).is_ok());
        assert!(MatrixMut::strided(&mut data, [3, 4], [3, 1], 0).is_err());
        assert!(MatrixMut::strided(&mut data, [3, 4], [0, 1], 0).is_err());
        assert!(MatrixMut::strided(&mut data, [3, 2], [4, 2], 0).is_err());
    }
}
