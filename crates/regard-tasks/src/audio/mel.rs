//! Mel filter banks: triangular bands that are equally wide on the mel scale.

use serde::{Deserialize, Serialize};

/// Mel scale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MelScale {
    /// `2595·log10(1 + f/700)`, the Hidden Markov Model Toolkit's (torchaudio's default).
    #[default]
    Htk,
    /// Linear up to 1000 Hz, logarithmic above, the Auditory Toolbox's (librosa's default).
    Slaney,
}

/// Slaney's scale is linear below this frequency; above, 27 mels are a factor of 6.4 (Slaney 1998).
const BREAK: f64 = 1000.0;
const STEP: f64 = 200.0 / 3.0;

impl MelScale {
    fn mel(self, hertz: f64) -> f64 {
        match self {
            MelScale::Htk => 2595.0 * (1.0 + hertz / 700.0).log10(),
            MelScale::Slaney if hertz < BREAK => hertz / STEP,
            MelScale::Slaney => BREAK / STEP + (hertz / BREAK).ln() / (6.4f64.ln() / 27.0),
        }
    }

    fn hertz(self, mel: f64) -> f64 {
        match self {
            MelScale::Htk => 700.0 * (10f64.powf(mel / 2595.0) - 1.0),
            MelScale::Slaney if mel < BREAK / STEP => mel * STEP,
            MelScale::Slaney => BREAK * ((mel - BREAK / STEP) * (6.4f64.ln() / 27.0)).exp(),
        }
    }
}

/// Normalisation of the triangles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Height {
    /// Peak of 1 (torchaudio's default).
    #[default]
    One,
    /// Equal area (librosa's default).
    Slaney,
}

/// Configuration of [`FilterBank`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bands {
    /// Number of bands.
    pub count: usize,
    /// Lowest frequency, in Hertz.
    pub low: f64,
    /// Highest frequency, in Hertz.
    pub high: f64,
    /// Mel scale.
    pub scale: MelScale,
    /// Normalisation of the triangles.
    pub height: Height,
}

/// Weights of the frequencies in each band.
#[derive(Clone, Debug)]
pub struct FilterBank {
    bins: usize,
    /// Index of the first frequency with a weight, and the weights from there on, for each band.
    bands: Vec<(usize, Vec<f32>)>,
}

impl FilterBank {
    /// Makes the bank for spectra of `bins` frequencies at a sampling rate in Hertz.
    pub fn new(bands: &Bands, bins: usize, rate: u32) -> FilterBank {
        let Bands { count, low, high, scale, height } = *bands;
        let (from, to) = (scale.mel(low), scale.mel(high));
        let edge = |i: usize| scale.hertz(from + (to - from) * i as f64 / (count + 1) as f64);
        let hertz = |bin: usize| f64::from(rate) / 2.0 * bin as f64 / (bins - 1).max(1) as f64;
        let band = |i: usize| {
            let [left, middle, right] = [edge(i), edge(i + 1), edge(i + 2)];
            let scale = match height {
                Height::One => 1.0,
                Height::Slaney => 2.0 / (right - left),
            };
            let weight = |bin: usize| {
                let f = hertz(bin);
                let rising = (f - left) / (middle - left);
                let falling = (right - f) / (right - middle);
                (rising.min(falling).max(0.0) * scale) as f32
            };
            let first = (0..bins).find(|bin| weight(*bin) > 0.0).unwrap_or(0);
            let weights = (first..bins).map(weight).take_while(|w| *w > 0.0).collect();
            (first, weights)
        };
        FilterBank { bins, bands: (0..count).map(band).collect() }
    }

    /// Returns a band without any frequency, if there is one: there are too many bands for the
    /// resolution of the spectrum.
    pub fn deaf(&self) -> Option<usize> {
        self.bands.iter().position(|(_, weights)| weights.is_empty())
    }

    /// Returns the power in each band: `[frames, bins]` → `[frames, bands]`.
    pub fn apply(&self, power: &[f32]) -> Vec<f32> {
        let mut out = Vec::with_capacity(power.len() / self.bins.max(1) * self.bands.len());
        for frame in power.chunks_exact(self.bins) {
            out.extend(self.bands.iter().map(|(first, weights)| {
                let heard = weights.iter().zip(&frame[*first..]);
                heard.map(|(w, x)| w * x).sum::<f32>()
            }));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_go_there_and_back() {
        for scale in [MelScale::Htk, MelScale::Slaney] {
            for hertz in [0.0, 100.0, 999.0, 1000.0, 1001.0, 7000.0] {
                assert!((scale.hertz(scale.mel(hertz)) - hertz).abs() < 1e-6, "{hertz}");
            }
        }
        assert!((MelScale::Slaney.mel(1000.0) - 15.0).abs() < 1e-12);
    }

    #[test]
    fn more_bands_than_frequencies_are_noticed() {
        let bands = |count| Bands {
            count,
            low: 0.0,
            high: 4000.0,
            scale: MelScale::Htk,
            height: Height::One,
        };
        assert_eq!(FilterBank::new(&bands(20), 129, 8000).deaf(), None);
        assert!(FilterBank::new(&bands(128), 129, 8000).deaf().is_some());
    }
}
