//! Images of another size, as Pillow's bilinear filter makes them: when an image becomes smaller,
//! each new pixel is a weighted mean of all that it covers, with weights that fall in a straight
//! line from its middle. One axis comes after the other.

use crate::data::Picture;

/// Bits behind the point of a weight.
const PRECISION: u32 = 22;

/// The pixels that a new one is made of.
struct Sum {
    first: usize,
    weights: Vec<i64>,
}

/// The sums along one axis.
fn sums(from: usize, to: usize) -> Vec<Sum> {
    let scale = from as f64 / to as f64;
    // A filter for enlarging reaches one old pixel to each side, for reducing one new one.
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

/// An image of another size, `[rows, columns]`.
pub fn resize(picture: &Picture, size: [usize; 2]) -> Picture {
    let [rows, columns] = picture.size;
    // Bytes are rounded in between, so that the order tells: Pillow (13) begins with columns, unless
    // there will be fewer rows and more columns.
    match size[0] < rows && size[1] > columns {
        true => with_columns(&with_rows(picture, size[0]), size[1]),
        false => with_rows(&with_columns(picture, size[1]), size[0]),
    }
}

/// The same with so many columns.
fn with_columns(picture: &Picture, to: usize) -> Picture {
    let Picture { size: [rows, columns], channels, .. } = *picture;
    if to == columns {
        return picture.clone();
    }
    let sums = sums(columns, to);
    let mut pixels = Vec::with_capacity(rows * to * channels);
    for row in picture.pixels.chunks_exact(columns * channels) {
        let numbers = sums.iter().flat_map(|sum| (0..channels).map(move |c| (sum, c)));
        pixels.extend(numbers.map(|(sum, c)| sum.of(|at| row[at * channels + c])));
    }
    Picture { size: [rows, to], channels, pixels }
}

/// The same with so many rows.
fn with_rows(picture: &Picture, to: usize) -> Picture {
    let Picture { size: [rows, columns], channels, ref pixels } = *picture;
    if to == rows {
        return picture.clone();
    }
    let (sums, wide) = (sums(rows, to), columns * channels);
    let numbers = sums.iter().flat_map(|sum| (0..wide).map(move |at| (sum, at)));
    let pixels = numbers.map(|(sum, at)| sum.of(|row| pixels[row * wide + at])).collect();
    Picture { size: [to, columns], channels, pixels }
}

impl Sum {
    fn of(&self, pixel: impl Fn(usize) -> u8) -> u8 {
        let half = 1i64 << (PRECISION - 1);
        let each = self.weights.iter().enumerate();
        let sum: i64 = each.map(|(i, weight)| weight * i64::from(pixel(self.first + i))).sum();
        ((sum + half) >> PRECISION).clamp(0, 255) as u8
    }
}
