//! Resizing with Pillow's bilinear filter: when an image is reduced, each new pixel is a weighted
//! mean of all pixels that it covers, with a triangular kernel. The axes are resized in sequence.

use crate::data::Image;

/// Fractional bits of a fixed-point weight.
const PRECISION: u32 = 22;

/// Source pixels of one output pixel, with their weights.
struct Sum {
    first: usize,
    weights: Vec<i64>,
}

/// Returns the weighted sums along one axis.
fn sums(from: usize, to: usize) -> Vec<Sum> {
    let scale = from as f64 / to as f64;
    // The kernel's radius is one source pixel for enlarging, one output pixel for reducing.
    let reach = scale.max(1.0);
    let one = |i: usize| {
        let middle = (i as f64 + 0.5) * scale;
        let first = (middle - reach + 0.5).max(0.0) as usize;
        let end = ((middle + reach + 0.5) as usize).min(from);
        let weight = |at: usize| (1.0 - ((at as f64 - middle + 0.5) / reach).abs()).max(0.0);
        let weights: Vec<f64> = (first..end).map(weight).collect();
        let all: f64 = weights.iter().sum();
        let whole = |w: &f64| (w / all * f64::from(1u32 << PRECISION) + 0.5) as i64;
        Sum { first, weights: weights.iter().map(whole).collect() }
    };
    (0..to).map(one).collect()
}

/// Resizes an image to `[rows, columns]`.
pub fn resize(picture: &Image, size: [usize; 2]) -> Image {
    let [rows, columns] = picture.size;
    // Bytes are rounded in between, so the order matters: Pillow (13) begins with columns, unless
    // rows decrease and columns increase.
    match size[0] < rows && size[1] > columns {
        true => with_columns(&with_rows(picture, size[0]), size[1]),
        false => with_rows(&with_columns(picture, size[1]), size[0]),
    }
}

/// Resizes an image to `to` columns.
fn with_columns(picture: &Image, to: usize) -> Image {
    let Image { size: [rows, columns], channels, .. } = *picture;
    if to == columns {
        return picture.clone();
    }
    let sums = sums(columns, to);
    let mut pixels = Vec::with_capacity(rows * to * channels);
    for row in picture.pixels.chunks_exact(columns * channels) {
        let numbers = sums.iter().flat_map(|sum| (0..channels).map(move |c| (sum, c)));
        pixels.extend(numbers.map(|(sum, c)| sum.of(|at| row[at * channels + c])));
    }
    Image { size: [rows, to], channels, pixels }
}

/// Resizes an image to `to` rows.
fn with_rows(picture: &Image, to: usize) -> Image {
    let Image { size: [rows, columns], channels, ref pixels } = *picture;
    if to == rows {
        return picture.clone();
    }
    let (sums, wide) = (sums(rows, to), columns * channels);
    let numbers = sums.iter().flat_map(|sum| (0..wide).map(move |at| (sum, at)));
    let pixels = numbers.map(|(sum, at)| sum.of(|row| pixels[row * wide + at])).collect();
    Image { size: [to, columns], channels, pixels }
}

impl Sum {
    fn of(&self, pixel: impl Fn(usize) -> u8) -> u8 {
        let half = 1i64 << (PRECISION - 1);
        let each = self.weights.iter().enumerate();
        let sum: i64 = each.map(|(i, weight)| weight * i64::from(pixel(self.first + i))).sum();
        ((sum + half) >> PRECISION).clamp(0, 255) as u8
    }
}
