//! From pixels to tokens: the stem, the patches, the class token, and positions.

use super::{Config, Halving, Vit};
use crate::checkpoint::Binder;
use burn::tensor::{Device, Tensor};
use regard_attention::Mode;
use regard_attention::layers::sinusoidal;
use regard_attention::ops::{Windows, largest, unfold};

impl Vit {
    /// Embeds images: `[B, C, H, W]` → `[B, T, M]`
    pub(super) fn embed(&self, pixels: Tensor<4>, mode: Mode) -> Tensor<3> {
        let Config { hidden_size: m, num_channels, image_size, .. } = self.config;
        let ([b, c, h, w], [high, wide]) = (pixels.dims(), image_size.both());
        assert_eq!([c, h, w], [num_channels, high, wide], "images of [channels, rows, columns]");
        // With one channel, the layouts are the same.
        let mut x = match c {
            1 => pixels.reshape([b, h, w, c]),
            _ => pixels.permute([0, 2, 3, 1]),
        };
        for layer in &self.stem {
            x = layer.forward(x);
            if self.config.stem_halving == Halving::Max {
                x = largest_of_squares(x);
            }
        }
        let x = self.patches.forward(x);
        let [_, rows, columns, _] = x.dims();
        let mut x = x.reshape([b, rows * columns, m]);
        if let Some(cls) = &self.cls {
            let cls = cls.val().unsqueeze::<3>().expand([b, 1, m]);
            x = Tensor::cat(vec![cls, x], 1);
        }
        let places = match &self.positions {
            Some(table) => table.val(),
            None => sines([rows, columns], m, self.config.first_patch(), &x.device()),
        };
        self.dropout.forward(x + places.unsqueeze(), mode)
    }

    pub(super) fn bind_embeddings(&mut self, b: &mut Binder) {
        let m = self.config.hidden_size;
        if let Some(cls) = &mut self.cls {
            b.shaped("cls_token", &[1, 1, m], cls);
        }
        if let Some(positions) = &mut self.positions {
            let [tokens, _] = positions.dims();
            b.shaped("position_embeddings", &[1, tokens, m], positions);
        }
        for (i, layer) in self.stem.iter_mut().enumerate() {
            b.image_convolution(&format!("stem.{i}"), layer);
        }
        b.image_convolution("patch_embeddings.projection", &mut self.patches);
    }
}

/// Computes 2×2 max pooling; an odd last row or column is dropped.
///
/// # Shapes
/// `[B, H, W, C]` → `[B, H/2, W/2, C]`
fn largest_of_squares(x: Tensor<4>) -> Tensor<4> {
    let [b, _, _, c] = x.dims();
    let squares = unfold(x, Windows { size: [2, 2], stride: [2, 2], padding: [0, 0] });
    let [_, rows, columns, _] = squares.dims();
    let count = b * rows * columns;
    largest(squares.reshape([count * 4, c]), &vec![4; count]).reshape([b, rows, columns, c])
}

/// Returns sinusoidal positions, of rows in the first half of each vector, of columns in the
/// second; zeros for a class token.
///
/// # Shapes
/// `[first + rows·columns, M]`
fn sines([rows, columns]: [usize; 2], m: usize, first: usize, device: &Device) -> Tensor<2> {
    let half = m / 2;
    let shape = [rows, columns, half];
    let of_rows = sinusoidal(rows, half, device).reshape([rows, 1, half]).expand(shape);
    let of_columns = sinusoidal(columns, half, device).reshape([1, columns, half]).expand(shape);
    let table = Tensor::cat(vec![of_rows, of_columns], 2).reshape([rows * columns, m]);
    match first {
        0 => table,
        _ => Tensor::cat(vec![Tensor::zeros([first, m], device), table], 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_keep_their_largest_numbers() {
        // Two channels, the second is the negated first; the last row and column are dropped.
        let numbers = [1., 4., 2., 0., 9., 3., 2., 5., 1., 9., 9., 9., 9., 9., 9.];
        let pixels: Vec<f32> = numbers.iter().flat_map(|x| [*x, -*x]).collect();
        let x = Tensor::<1>::from_floats(pixels.as_slice(), &Device::flex()).reshape([1, 3, 5, 2]);
        let y = largest_of_squares(x);
        assert_eq!(y.dims(), [1, 1, 2, 2]);
        assert_eq!(y.to_data().try_to_vec::<f32>().unwrap(), [4., -1., 5., 0.]);
    }

    #[test]
    fn sines_are_of_rows_and_columns() {
        let table = sines([2, 3], 8, 1, &Device::flex()).to_data().try_to_vec::<f32>().unwrap();
        let row = |at: usize| &table[at * 8..(at + 1) * 8];
        assert_eq!(row(0), [0.0; 8]);
        // The first patch is at row 0 and column 0, the last at row 1 and column 2.
        assert_eq!(row(1), [0., 1., 0., 1., 0., 1., 0., 1.]);
        let wanted = [1f32.sin(), 1f32.cos(), 0.01f32.sin(), 0.01f32.cos()];
        assert!(row(6).iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-6), "{:?}", row(6));
        assert!((row(6)[4] - 2f32.sin()).abs() < 1e-6);
    }
}
