//! Resampling by a sinc with a Hann window over six of its zeros on either side: the defaults of
//! torchaudio.functional.resample.
//!
//! ```text
//! y_n = Σ_j x_j · h(j/f − n/g),   h(t) = b/f · sinc(b·t) · cos²(π·b·t/12),   b = 0.99·min(f, g)
//! ```
//!
//! with `f` and `g` the two rates, and the sum where `|b·t| < 6`.

use regard_attention::pool;
use std::f64::consts::PI;
use std::sync::Mutex;

/// Zeros of the sinc within the window, on either side.
const ZEROS: f64 = 6.0;
/// Fraction of the lower rate's frequencies that is kept.
const ROLLOFF: f64 = 0.99;

/// Samples per parallel task.
const PIECE: usize = 1 << 13;

/// Resamples a sound from one rate to another, both in Hertz.
///
/// # Panics
/// If a rate is 0.
///
/// ```
/// use regard_tasks::audio::resample;
/// assert_eq!(resample(&[0.0; 16000], 16000, 8000).len(), 8000);
/// assert_eq!(resample(&[0.5, 0.25], 8000, 8000), [0.5, 0.25]);
/// ```
pub fn resample(samples: &[f32], from: u32, to: u32) -> Vec<f32> {
    assert!(from > 0 && to > 0, "resample: got rates {from} and {to}, need more than 0");
    let common = divisor(from, to);
    let (from, to) = ((from / common) as usize, (to / common) as usize);
    if from == to {
        return samples.to_vec();
    }
    let filter = Filter::new(from, to);
    let mut out = vec![0.0; (samples.len() * to).div_ceil(from)];
    let pieces: Vec<_> = out.chunks_mut(PIECE).map(Mutex::new).collect();
    pool::parallel(pieces.len(), &|piece| {
        let mut out = pieces[piece].lock().unwrap_or_else(|e| e.into_inner());
        for (i, y) in out.iter_mut().enumerate() {
            *y = filter.at(samples, piece * PIECE + i);
        }
    });
    drop(pieces);
    out
}

fn divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { divisor(b, a % b) }
}

/// Weights of the input samples around each output sample, by phase.
struct Filter {
    from: usize,
    to: usize,
    /// Input samples with a weight, on either side.
    width: usize,
    /// `[to, 2·width + 1]`
    taps: Vec<f32>,
}

impl Filter {
    fn new(from: usize, to: usize) -> Filter {
        let (f, g) = (from as f64, to as f64);
        let base = f.min(g) * ROLLOFF;
        let width = (ZEROS * f / base).ceil() as usize;
        let mut taps = Vec::with_capacity(to * (2 * width + 1));
        for phase in 0..to {
            // The input sample at or before the output, less the width.
            let first = (phase * from / to) as f64 - width as f64;
            for tap in 0..2 * width + 1 {
                let t = ((first + tap as f64) / f - phase as f64 / g) * base;
                taps.push((base / f * window(t) * sinc(t)) as f32);
            }
        }
        Filter { from, to, width, taps }
    }

    fn at(&self, samples: &[f32], n: usize) -> f32 {
        let Filter { from, to, width, .. } = *self;
        let (block, phase) = (n / to, n % to);
        let taps = &self.taps[phase * (2 * width + 1)..][..2 * width + 1];
        let centre = block * from + phase * from / to;
        // Samples beyond the ends are 0.
        let skipped = width.saturating_sub(centre);
        let first = (centre + skipped).saturating_sub(width);
        let heard = samples.get(first..).unwrap_or_default();
        taps[skipped.min(taps.len())..].iter().zip(heard).map(|(w, x)| w * x).sum()
    }
}

fn window(t: f64) -> f64 {
    if t.abs() >= ZEROS { 0.0 } else { (t * PI / ZEROS / 2.0).cos().powi(2) }
}

fn sinc(t: f64) -> f64 {
    if t == 0.0 { 1.0 } else { (PI * t).sin() / (PI * t) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_wave_is_the_same_wave() {
        let wave = |rate: f64, n: usize| -> Vec<f32> {
            (0..n).map(|i| (2.0 * PI * 200.0 * i as f64 / rate).sin() as f32).collect()
        };
        for (from, to) in [(8000, 16000), (16000, 8000), (44100, 8000), (8000, 7919), (10, 9)] {
            let scale = if from < 100 { 800.0 } else { 1.0 };
            let there = resample(&wave(f64::from(from) * scale, 4000), from, to);
            let wanted = wave(f64::from(to) * scale, there.len());
            let edge = there.len() / 8;
            for i in edge..there.len() - edge {
                assert!((there[i] - wanted[i]).abs() < 0.01, "{from} to {to}: at {i}");
            }
        }
    }

    #[test]
    fn the_shortest_sounds() {
        assert!(resample(&[], 3, 2).is_empty());
        assert_eq!(resample(&[0.5], 44100, 8000).len(), 1);
        assert_eq!(resample(&[0.5], 1, 50).len(), 50);
    }
}
