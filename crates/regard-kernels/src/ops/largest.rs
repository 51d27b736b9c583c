//! Segment-wise max pooling: `y_s = max_{n ∈ s} x_n`, column by column.
//!
//! Segments are consecutive and of any length, so that characters of words and words of texts are
//! pooled without padding.

use super::Parts;
use crate::pool::parallel_ranges;
use crate::view::{Error, bail};

/// Segments of rows to pool.
#[derive(Clone, Copy)]
pub struct Runs<'a> {
    /// Number of rows of each segment, at least 1.
    pub lengths: &'a [usize],
    /// `M`, the number of columns.
    pub width: usize,
}

impl Runs<'_> {
    /// Computes `y_s = max_{n ∈ s} x_n`, column by column, and the row within the segment that it
    /// came from: the first of several equal ones. A NaN counts as larger than any number.
    ///
    /// # Shapes
    /// `x: [N, M]`, `y: [S, M]`, `rows: [S, M]`.
    ///
    /// # Errors
    /// If shapes do not match, or if a segment is empty.
    pub fn forward(&self, x: &[f32], y: &mut [f32], rows: &mut [u32]) -> Result<(), Error> {
        let firsts = self.check(x.len(), y.len(), rows.len())?;
        let width = self.width;
        let (y, rows) = (Parts::new(y), Parts::new(rows));
        parallel_ranges(self.lengths.len(), (super::PIECE / width).max(1), &|from, to| {
            for (run, length) in (from..to).zip(&self.lengths[from..to]) {
                // SAFETY: each run is one task's.
                let (y, rows) = unsafe {
                    let range = (run * width, (run + 1) * width);
                    (y.slice(range.0, range.1), rows.slice(range.0, range.1))
                };
                let first = firsts[run];
                y.copy_from_slice(&x[first * width..(first + 1) * width]);
                rows.fill(first as u32);
                for row in first + 1..first + length {
                    let x = &x[row * width..(row + 1) * width];
                    for ((x, best), at) in x.iter().zip(&mut *y).zip(&mut *rows) {
                        if *x > *best || (x.is_nan() && !best.is_nan()) {
                            (*best, *at) = (*x, row as u32);
                        }
                    }
                }
            }
        });
        Ok(())
    }

    /// Computes `dx_n = dy_s` where `x_n` was the maximum of its segment, otherwise 0.
    ///
    /// # Shapes
    /// `rows: [S, M]` from the forward, `dy: [S, M]`, `dx: [N, M]` (overwritten).
    pub fn backward(&self, rows: &[u32], dy: &[f32], dx: &mut [f32]) -> Result<(), Error> {
        let firsts = self.check(dx.len(), dy.len(), rows.len())?;
        let width = self.width;
        let dx = Parts::new(dx);
        parallel_ranges(self.lengths.len(), (super::PIECE / width).max(1), &|from, to| {
            let runs = firsts.iter().enumerate().take(to).skip(from);
            for (run, first) in runs.map(|(run, first)| (run, *first)) {
                // SAFETY: the rows of a run are one task's.
                let dx = unsafe { dx.slice(first * width, (first + self.lengths[run]) * width) };
                dx.fill(0.0);
                for column in 0..width {
                    let at = run * width + column;
                    let row = (rows[at] as usize).checked_sub(first);
                    if let Some(dx) = row.and_then(|row| dx.get_mut(row * width + column)) {
                        *dx = dy[at];
                    }
                }
            }
        });
        Ok(())
    }

    /// Returns the first row of each segment.
    fn check(&self, x: usize, y: usize, rows: usize) -> Result<Vec<usize>, Error> {
        let mut firsts = Vec::with_capacity(self.lengths.len());
        let mut next = 0;
        for (run, length) in self.lengths.iter().enumerate() {
            if *length == 0 {
                bail!("largest: segment {run} has no rows, need at least 1");
            }
            firsts.push(next);
            next += length;
        }
        let (runs, width) = (firsts.len(), self.width);
        if width == 0 || x != next * width || y != runs * width || rows != y {
            bail!(
                "largest: {x} floats, {y} results, need {next} rows and {runs} segments of {width}"
            );
        }
        if u32::try_from(next).is_err() {
            bail!("largest: got {next} rows, need fewer than 2³²");
        }
        Ok(firsts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::random;

    #[test]
    fn each_run_has_its_largest_and_its_gradient_goes_there() {
        for (lengths, width) in
            [(vec![1], 1), (vec![3, 1, 5], 7), (vec![2; 40], 33), ((1..90).collect(), 300)]
        {
            let runs = Runs { lengths: &lengths, width };
            let n: usize = lengths.iter().sum();
            let (x, dy) = (random(1, n * width), random(2, lengths.len() * width));
            let (mut y, mut rows) = (vec![0.0; dy.len()], vec![0; dy.len()]);
            runs.forward(&x, &mut y, &mut rows).unwrap();
            let mut dx = vec![1.0; x.len()];
            runs.backward(&rows, &dy, &mut dx).unwrap();
            let (mut first, mut wanted) = (0, vec![0.0; x.len()]);
            for (run, length) in lengths.iter().enumerate() {
                for column in 0..width {
                    let there = |row: &usize| x[row * width + column];
                    let best = (first..first + length)
                        .max_by(|a, b| there(a).total_cmp(&there(b)).then(b.cmp(a)));
                    let (best, at) = (best.unwrap(), run * width + column);
                    assert_eq!((y[at], rows[at] as usize), (there(&best), best));
                    wanted[best * width + column] = dy[at];
                }
                first += length;
            }
            assert_eq!(dx, wanted);
        }
    }

    #[test]
    fn of_equals_the_first_and_a_nan_wins() {
        let x = [1.0, 2.0, 1.0, f32::NAN, -1.0, 5.0];
        let (mut y, mut rows) = ([0.0; 2], [0; 2]);
        Runs { lengths: &[3], width: 2 }.forward(&x, &mut y, &mut rows).unwrap();
        assert_eq!((y[0], rows), (1.0, [0, 1]));
        assert!(y[1].is_nan());
    }

    #[test]
    fn what_does_not_fit_is_told() {
        let (mut y, mut rows) = ([0.0; 4], [0; 4]);
        let error = Runs { lengths: &[2, 0], width: 2 }.forward(&[0.0; 4], &mut y, &mut rows);
        assert_eq!(error.unwrap_err().0, "largest: segment 1 has no rows, need at least 1");
        let error = Runs { lengths: &[2, 1], width: 2 }.forward(&[0.0; 4], &mut y, &mut rows);
        assert!(error.unwrap_err().0.contains("need 3 rows and 2 segments of 2"));
    }
}
