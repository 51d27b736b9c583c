//! Discrete cosine transform of mel bands: `c_k = s_k Σ_n x_n cos(π k (2n + 1)/(2N))`, with
//! `s_0 = √(1/N)` and the others `√(2/N)` (DCT-II, orthonormal).

use super::mel::FilterBank;
use super::spectrum::{Ends, Frames};

/// Conversion of power to loudness.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loudness {
    /// `ln(x + offset)`
    Log {
        /// Added to the power, so that silence is finite.
        offset: f32,
    },
    /// `10·log10(max(x, 1e-10))`, clamped to at most `range` below the maximum.
    Decibels {
        /// Dynamic range in decibels: 80 in librosa and torchaudio.
        range: f32,
    },
}

impl Loudness {
    /// Converts all values of a sound in place.
    pub fn apply(self, power: &mut [f32]) {
        match self {
            Loudness::Log { offset } => power.iter_mut().for_each(|x| *x = (*x + offset).ln()),
            Loudness::Decibels { range } => {
                power.iter_mut().for_each(|x| *x = 10.0 * x.max(1e-10).log10());
                let least = power.iter().copied().fold(f32::NEG_INFINITY, f32::max) - range;
                power.iter_mut().for_each(|x| *x = x.max(least));
            }
        }
    }
}

/// Matrix of the cosine transform from rows of one width to their first coefficients.
#[derive(Clone, Debug)]
pub struct Cosines {
    width: usize,
    /// `[coefficients, width]`
    table: Vec<f32>,
}

impl Cosines {
    /// Makes the transform from `width` values to the first `coefficients`.
    ///
    /// # Panics
    /// If `coefficients` exceeds `width`.
    pub fn new(width: usize, coefficients: usize) -> Cosines {
        assert!(
            coefficients <= width,
            "cosines: got {coefficients} coefficients, need at most {width}"
        );
        let n = width as f64;
        let number = |k: usize, i: usize| {
            let scale = if k == 0 { (1.0 / n).sqrt() } else { (2.0 / n).sqrt() };
            let turn = std::f64::consts::PI * k as f64 * (2 * i + 1) as f64 / (2.0 * n);
            (scale * turn.cos()) as f32
        };
        let rows = (0..coefficients).flat_map(|k| (0..width).map(move |i| number(k, i)));
        Cosines { width, table: rows.collect() }
    }

    /// Transforms rows: `[rows, width]` → `[rows, coefficients]`
    pub fn apply(&self, rows: &[f32]) -> Vec<f32> {
        let coefficients = |row: &[f32]| -> Vec<f32> {
            let each = self.table.chunks_exact(self.width);
            each.map(|cosines| cosines.iter().zip(row).map(|(c, x)| c * x).sum()).collect()
        };
        rows.chunks_exact(self.width).flat_map(coefficients).collect()
    }
}

/// Division of a sound into frames.
#[derive(Clone, Copy, Debug)]
pub struct Framing<'a> {
    /// Length, step and window of the frames.
    pub frames: &'a Frames,
    /// Treatment of the ends of the sound.
    pub ends: Ends,
}

/// Returns the mel-frequency cepstral coefficients (Davis and Mermelstein 1980) of a sound:
/// `[frames, coefficients]`
pub fn mfcc(
    samples: &[f32],
    framing: Framing,
    bank: &FilterBank,
    loudness: Loudness,
    cosines: &Cosines,
) -> Vec<f32> {
    let mut bands = bank.apply(&framing.frames.power(samples, framing.ends));
    loudness.apply(&mut bands);
    cosines.apply(&bands)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_coefficients_are_a_rotation() {
        let cosines = Cosines::new(5, 5);
        let x = [1.0, -2.0, 0.5, 4.0, 0.25];
        let y = cosines.apply(&x);
        let length = |x: &[f32]| x.iter().map(|x| x * x).sum::<f32>();
        assert!((length(&x) - length(&y)).abs() < 1e-4);
        assert!((y[0] - x.iter().sum::<f32>() / 5f32.sqrt()).abs() < 1e-5);
    }
}
