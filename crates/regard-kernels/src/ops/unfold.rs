//! Sliding windows of an image as rows (im2col): `y_{i,j} = [x_{i·s+a−p, j·s+b−p} for all (a, b)]`,
//! with zero padding. Convolution is then a matrix product.

use super::Parts;
use crate::pool::parallel;
use crate::simd::{Kernel, Simd, dispatch};
use crate::view::{Error, bail};

/// Sliding windows of images; each pair is `[rows, columns]`.
///
/// # Shapes
/// `x: [B, H, W, C]`, `y: [B, H', W', k₀·k₁·C]` with `H' = (H + 2·p₀ − k₀)/s₀ + 1`, `W'` alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfold {
    /// `H` and `W`, the size of an image.
    pub size: [usize; 2],
    /// `C`, the number of channels.
    pub channels: usize,
    /// `k`, the window size.
    pub window: [usize; 2],
    /// `s`, the stride between windows.
    pub stride: [usize; 2],
    /// `p`, the zero padding on each side.
    pub padding: [usize; 2],
}

impl Unfold {
    /// Returns `H'` and `W'`, the numbers of windows.
    ///
    /// # Errors
    /// If a window is empty or does not fit into the padded image, if a stride is 0, or if the
    /// padding is as large as a window.
    pub fn windows(&self) -> Result<[usize; 2], Error> {
        let Unfold { size, window, stride, padding, .. } = *self;
        let mut count = [0; 2];
        for axis in 0..2 {
            let room = size[axis] + 2 * padding[axis];
            if !(1..=room).contains(&window[axis]) || stride[axis] == 0 {
                bail!(
                    "unfold: windows of {window:?} with strides of {stride:?} in an image of \
                       {size:?} with {padding:?} zeros on each side"
                );
            }
            // Windows of padding alone are useless.
            if padding[axis] >= window[axis] {
                bail!("unfold: got a padding of {padding:?}, need fewer than {window:?}");
            }
            count[axis] = (room - window[axis]) / stride[axis] + 1;
        }
        Ok(count)
    }

    /// Extracts the windows of each image.
    ///
    /// # Errors
    /// If shapes do not match.
    pub fn forward(&self, x: &[f32], y: &mut [f32]) -> Result<(), Error> {
        let [rows, columns] = self.check(x.len(), y.len())?;
        let row = columns * self.width();
        let y = Parts::new(y);
        // A task is a row of windows.
        parallel(y.len() / row.max(1), &|task| {
            let image = &x[task / rows * self.image()..][..self.image()];
            // SAFETY: each row of windows is one task's.
            let y = unsafe { y.slice(task * row, (task + 1) * row) };
            y.fill(0.0);
            self.pieces(task % rows, columns, |to, from, len| {
                y[to..to + len].copy_from_slice(&image[from..from + len]);
            });
        });
        Ok(())
    }

    /// Computes `dx`, the sum over all windows that contain an element, in the order of the
    /// windows.
    ///
    /// # Shapes
    /// `dy` as `y`, `dx` as `x` (overwritten).
    pub fn backward(&self, dy: &[f32], dx: &mut [f32]) -> Result<(), Error> {
        let [rows, columns] = self.check(dx.len(), dy.len())?;
        let row = columns * self.width();
        let dx = Parts::new(dx);
        // A task is an image, so its sums are not shared.
        parallel(dx.len() / self.image().max(1), &|task| {
            // SAFETY: each image is one task's.
            let dx = unsafe { dx.slice(task * self.image(), (task + 1) * self.image()) };
            dx.fill(0.0);
            for i in 0..rows {
                let dy = &dy[(task * rows + i) * row..][..row];
                // y[to] = x[from]
                self.pieces(i, columns, |to, from, len| {
                    dispatch(AddTo(&mut dx[from..from + len], &dy[to..to + len]));
                });
            }
        });
        Ok(())
    }

    /// Number of floats of an image.
    fn image(&self) -> usize {
        self.size[0] * self.size[1] * self.channels
    }

    /// Number of floats of a window.
    fn width(&self) -> usize {
        self.window[0] * self.window[1] * self.channels
    }

    /// Copies of a row of windows from its image: offset in the row, offset in the image, and
    /// number of floats. Columns that are neighbours in a window are neighbours in the image.
    fn pieces(&self, i: usize, columns: usize, mut piece: impl FnMut(usize, usize, usize)) {
        let Unfold { size: [h, w], channels: c, window, stride, padding, .. } = *self;
        for j in 0..columns {
            let left = (j * stride[1]) as isize - padding[1] as isize;
            let first = (-left).max(0) as usize;
            let end = window[1].min((w as isize - left).max(0) as usize);
            for a in 0..window[0] {
                let Some(row) = (i * stride[0] + a).checked_sub(padding[0]) else { continue };
                if row < h && first < end {
                    let to = j * self.width() + (a * window[1] + first) * c;
                    let from = (row * w + (left + first as isize) as usize) * c;
                    piece(to, from, (end - first) * c);
                }
            }
        }
    }

    fn check(&self, x: usize, y: usize) -> Result<[usize; 2], Error> {
        let [rows, columns] = self.windows()?;
        let (image, windows) = (self.image(), rows * columns * self.width());
        if image == 0 || !x.is_multiple_of(image) || y != x / image * windows {
            bail!("unfold: {x} floats in images of {image}, {y} in rows of {windows} do not match");
        }
        Ok([rows, columns])
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{close, random};

    fn unfold(size: [usize; 2], channels: usize, sides: [[usize; 2]; 3]) -> Unfold {
        let [window, stride, padding] = sides;
        Unfold { size, channels, window, stride, padding }
    }

    #[test]
    fn windows_are_what_the_formula_says_and_gradients_go_where_they_came_from() {
        let rows = [
            unfold([5, 7], 3, [[3, 3], [2, 2], [1, 1]]),
            unfold([4, 6], 1, [[2, 3], [2, 3], [0, 0]]),
            unfold([7, 3], 20, [[3, 2], [1, 2], [2, 1]]),
            unfold([1, 1], 2, [[3, 3], [1, 1], [1, 1]]),
        ];
        for rule in rows {
            let Unfold { size: [h, w], channels: c, window: [ka, kb], stride, padding } = rule;
            let ([high, wide], images) = (rule.windows().unwrap(), 3);
            let x = random(1, images * h * w * c);
            let dy = random(2, images * high * wide * ka * kb * c);
            let (mut y, mut dx) = (vec![9.0; dy.len()], vec![9.0; x.len()]);
            rule.forward(&x, &mut y).unwrap();
            rule.backward(&dy, &mut dx).unwrap();
            let mut want = vec![0f64; x.len()];
            for at in 0..y.len() {
                let (channel, b, a) = (at % c, at / c % kb, at / c / kb % ka);
                let (j, i) = (at / c / kb / ka % wide, at / c / kb / ka / wide % high);
                let image = at / c / kb / ka / wide / high;
                let row = (i * stride[0] + a).wrapping_sub(padding[0]);
                let column = (j * stride[1] + b).wrapping_sub(padding[1]);
                if row < h && column < w {
                    let from = ((image * h + row) * w + column) * c + channel;
                    assert_eq!(y[at], x[from], "{rule:?} at {at}");
                    want[from] += f64::from(dy[at]);
                } else {
                    assert_eq!(y[at], 0.0, "{rule:?} at {at}");
                }
            }
            close("fold", &dx, &want, 1e-5);
        }
    }

    #[test]
    fn windows_that_cannot_be_are_told() {
        let error = |rule: Unfold| rule.windows().unwrap_err().0;
        assert!(error(unfold([2, 9], 1, [[3, 3], [1, 1], [0, 0]])).contains("windows of [3, 3]"));
        assert!(error(unfold([9, 9], 1, [[3, 3], [1, 0], [1, 1]])).contains("strides of [1, 0]"));
        assert!(error(unfold([9, 9], 1, [[3, 3], [1, 1], [3, 0]])).contains("fewer than"));
        let rule = unfold([2, 2], 1, [[1, 1], [1, 1], [0, 0]]);
        assert!(rule.forward(&[0.0; 5], &mut [0.0; 5]).is_err());
        assert!(rule.backward(&[0.0; 3], &mut [0.0; 4]).is_err());
    }
}
