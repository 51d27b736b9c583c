//! Power spectrum of each frame: `|Σ_n w_n x_{n} e^{−2πi kn/N}|²`, with a Hann window `w` in the
//! middle of a frame of `N` samples, as in librosa and torchaudio.

use realfft::num_complex::Complex;
use realfft::{RealFftPlanner, RealToComplex};
use std::sync::Arc;

/// Padding at the ends of a sound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ends {
    /// No padding: all frames are within the sound, so that later samples change none of them.
    #[default]
    Inside,
    /// Frames are centred at multiples of the hop, with zeros beyond the ends (librosa's default).
    Silence,
    /// Frames are centred at multiples of the hop, with reflection (torchaudio's default).
    Mirror,
}

/// Frames of a sound and their Fourier transform.
#[derive(Clone)]
pub struct Frames {
    /// `N`, samples of a frame.
    size: usize,
    /// Samples from one frame to the next.
    hop: usize,
    /// `[N]`, zeros around the window.
    window: Vec<f32>,
    transform: Arc<dyn RealToComplex<f32>>,
}

impl std::fmt::Debug for Frames {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "Frames {{ size: {}, hop: {} }}", self.size, self.hop)
    }
}

impl Frames {
    /// Makes frames of `size` samples, a `hop` apart, with a window of `width` samples.
    ///
    /// # Panics
    /// If the window is wider than the frame, or an argument is 0.
    pub fn new(size: usize, width: usize, hop: usize) -> Frames {
        assert!(
            0 < width && width <= size && hop > 0,
            "frames: got {size} samples, a window of {width} and a hop of {hop}"
        );
        let before = (size - width) / 2;
        let mut window = vec![0.0; size];
        for (i, w) in window[before..before + width].iter_mut().enumerate() {
            let turn = 2.0 * std::f64::consts::PI * i as f64 / width as f64;
            *w = (0.5 - 0.5 * turn.cos()) as f32;
        }
        Frames { size, hop, window, transform: RealFftPlanner::new().plan_fft_forward(size) }
    }

    /// Returns the number of samples of a frame.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the number of samples from one frame to the next.
    pub fn hop(&self) -> usize {
        self.hop
    }

    /// Returns the number of frequencies of a frame: `N/2 + 1`.
    pub fn bins(&self) -> usize {
        self.size / 2 + 1
    }

    /// Returns the number of whole frames in this number of samples.
    pub fn within(&self, samples: usize) -> usize {
        if samples < self.size { 0 } else { (samples - self.size) / self.hop + 1 }
    }

    /// Returns the power of each frequency in each frame: `[frames, bins]`.
    pub fn power(&self, samples: &[f32], ends: Ends) -> Vec<f32> {
        match ends {
            Ends::Inside => self.inside(samples),
            Ends::Silence => {
                let pad = vec![0.0; self.size / 2];
                self.inside(&[&pad, samples, &pad].concat())
            }
            Ends::Mirror => self.inside(&mirrored(samples, self.size / 2)),
        }
    }

    fn inside(&self, samples: &[f32]) -> Vec<f32> {
        let count = self.within(samples.len());
        let mut power = Vec::with_capacity(count * self.bins());
        let mut frame = vec![0.0; self.size];
        let mut spectrum = vec![Complex::default(); self.bins()];
        let mut scratch = self.transform.make_scratch_vec();
        for t in 0..count {
            let heard = &samples[t * self.hop..][..self.size];
            for ((y, x), w) in frame.iter_mut().zip(heard).zip(&self.window) {
                *y = x * w;
            }
            self.transform
                .process_with_scratch(&mut frame, &mut spectrum, &mut scratch)
                .expect("all lengths come from the transform");
            power.extend(spectrum.iter().map(|c| c.norm_sqr()));
        }
        power
    }
}

/// Reflects a sound at both ends, without repeating the outermost samples. A sound that is too
/// short for that is reflected again.
fn mirrored(samples: &[f32], pad: usize) -> Vec<f32> {
    let n = samples.len() as i64;
    let place = |i: i64| match n {
        1 => 0,
        _ => {
            let i = i.rem_euclid(2 * n - 2);
            i.min(2 * n - 2 - i) as usize
        }
    };
    match n {
        0 => vec![],
        _ => (-(pad as i64)..n + pad as i64).map(|i| samples[place(i)]).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tone_is_where_it_belongs() {
        let frames = Frames::new(256, 200, 80);
        let tone: Vec<f32> =
            (0..1000).map(|i| (i as f32 * 0.125 * std::f32::consts::TAU).sin()).collect();
        let power = frames.power(&tone, Ends::Inside);
        assert_eq!(power.len(), 10 * 129);
        for frame in power.chunks(129) {
            let largest = (0..129).max_by(|a, b| frame[*a].total_cmp(&frame[*b]));
            assert_eq!(largest, Some(32));
        }
    }

    #[test]
    fn mirrors() {
        assert_eq!(mirrored(&[1.0, 2.0, 3.0], 2), [3.0, 2.0, 1.0, 2.0, 3.0, 2.0, 1.0]);
        assert_eq!(mirrored(&[1.0, 2.0], 3), [2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0]);
        assert_eq!(mirrored(&[7.0], 1), [7.0; 3]);
    }
}
