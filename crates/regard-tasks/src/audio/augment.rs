//! Data augmentation of sounds: random speed, offset, gain and noise; and masks over time and
//! frequency (SpecAugment, Park et al. 2019, arXiv:1904.08779).
//!
//! All of it is a function of a random stream, which is seeded by (seed, step, example).

use super::resample;
use regard_attention::Stream;
use regard_models::{Error, Result};
use serde::{Deserialize, Serialize};

/// `[augment]` of a recipe. By default nothing is changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AudioAugment {
    /// Largest change of speed, in percent, either way.
    pub speed: u32,
    /// Longest silence before and after the sound, in seconds.
    pub silence: f32,
    /// Largest change of loudness, in decibels, either way.
    pub gain: f32,
    /// Lowest signal-to-noise ratio, in decibels; the highest is 40 more. `None`: no noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise: Option<f32>,
    /// Number of masks over time.
    pub time_masks: usize,
    /// Longest mask over time, in rows.
    pub time_mask: usize,
    /// Number of masks over frequency.
    pub frequency_masks: usize,
    /// Widest mask over frequency, in columns.
    pub frequency_mask: usize,
}

/// Range of the signal-to-noise ratio above its lowest value, in decibels.
const SOFTER: f32 = 40.0;

/// Indices of the random draws. Masks come after all others.
const SPEED: u64 = 0;
const BEFORE: u64 = 1;
const AFTER: u64 = 2;
const GAIN: u64 = 3;
const NOISE: u64 = 4;
const MASKS: u64 = 16;
/// Index of the first draw of noise, one per sample, far from the others.
const SAMPLES: u64 = 1 << 32;

impl AudioAugment {
    /// Checks that all values are in range.
    pub fn check(&self) -> Result<()> {
        let wrong = |what: String| Err(Error::invalid(format!("augment.{what}")));
        if self.speed > 50 {
            return wrong(format!("speed: got {} percent, need at most 50", self.speed));
        }
        for (name, value, most) in [("silence", self.silence, 60.0), ("gain", self.gain, 60.0)] {
            if !(0.0..=most).contains(&value) {
                return wrong(format!("{name}: got {value}, need 0 to {most}"));
            }
        }
        match self.noise {
            Some(noise) if !(-20.0..=100.0).contains(&noise) => {
                wrong(format!("noise: got {noise}, need −20 to 100"))
            }
            _ => Ok(()),
        }
    }

    /// Returns a randomly changed copy of a sound.
    pub fn sound(&self, samples: &[f32], rate: u32, random: Stream) -> Vec<f32> {
        let between = |index: u64, most: f32| (2.0 * random.uniform(index) - 1.0) * most;
        let most = self.speed as f32;
        let percent = 100 + between(SPEED, most + 0.5).round().clamp(-most, most) as i32;
        let sound = resample(samples, percent.max(1) as u32, 100);
        let quiet =
            |index| vec![0.0; (random.uniform(index) * self.silence * rate as f32) as usize];
        let mut sound = [quiet(BEFORE), sound, quiet(AFTER)].concat();
        let factor = 10f32.powf(between(GAIN, self.gain) / 20.0);
        sound.iter_mut().for_each(|x| *x *= factor);
        if let Some(least) = self.noise {
            let power = sound.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>();
            let level = (power / sound.len().max(1) as f64).sqrt() as f32;
            let below = least + SOFTER * random.uniform(NOISE);
            let level = level * 10f32.powf(-below / 20.0);
            let noisy = |(i, x): (usize, &mut f32)| *x += level * random.normal(SAMPLES + i as u64);
            sound.iter_mut().enumerate().for_each(noisy);
        }
        sound
    }

    /// Masks random rows and columns: they become 0, which is the mean.
    pub fn hide(&self, rows: &mut [f32], width: usize, random: Stream) {
        let count = rows.len() / width.max(1);
        let run = |mask: usize, most: usize, of: usize| {
            // The first draw is the length, from 0 to the most, the second the position.
            let at = MASKS + 2 * mask as u64;
            let length = (random.uniform(at) * (most.min(of) + 1) as f32) as usize;
            let first = (random.uniform(at + 1) * (of - length + 1) as f32) as usize;
            first..first + length
        };
        for mask in 0..self.time_masks {
            let hidden = run(mask, self.time_mask, count);
            rows[hidden.start * width..hidden.end * width].fill(0.0);
        }
        for mask in 0..self.frequency_masks {
            let hidden = run(self.time_masks + mask, self.frequency_mask, width);
            rows.chunks_exact_mut(width).for_each(|row| row[hidden.clone()].fill(0.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn augment() -> AudioAugment {
        AudioAugment {
            speed: 10,
            silence: 0.1,
            gain: 6.0,
            noise: Some(20.0),
            time_masks: 2,
            time_mask: 5,
            frequency_masks: 1,
            frequency_mask: 3,
        }
    }

    #[test]
    fn a_function_of_seed_step_and_example() {
        let samples: Vec<f32> = (0..2000).map(|i| (i as f32 * 0.3).sin()).collect();
        let sound = |seed, step, i| augment().sound(&samples, 8000, Stream::new(seed, step, i));
        assert_eq!(sound(1, 2, 3), sound(1, 2, 3));
        for other in [sound(2, 2, 3), sound(1, 3, 3), sound(1, 2, 4)] {
            assert_ne!(sound(1, 2, 3), other);
        }
        for step in 0..20 {
            let n = sound(1, step, 0).len();
            assert!((1800..=2223 + 1600).contains(&n), "{n} samples");
        }
        assert_eq!(AudioAugment::default().sound(&samples, 8000, Stream::new(1, 2, 3)), samples);
    }

    #[test]
    fn noise_is_as_far_below_as_it_says() {
        let augment = AudioAugment { noise: Some(20.0), ..AudioAugment::default() };
        let samples = vec![0.5; 20_000];
        for step in 0..10 {
            let noisy = augment.sound(&samples, 8000, Stream::new(1, step, 0));
            let power = noisy.iter().map(|x| (x - 0.5).powi(2)).sum::<f32>() / 20_000.0;
            let below = 20.0 * (0.5 / power.sqrt()).log10();
            assert!((19.8..60.5).contains(&below), "{below} decibels");
        }
    }

    #[test]
    fn masks_hide_runs_of_rows_and_columns() {
        let (count, width) = (30, 8);
        let mut most = (0, 0);
        for step in 0..50 {
            let mut rows = vec![1.0; count * width];
            augment().hide(&mut rows, width, Stream::new(1, step, 0));
            let hidden = rows.chunks(width).filter(|row| row.iter().all(|x| *x == 0.0)).count();
            let column = |c: usize| rows.iter().skip(c).step_by(width).all(|x| *x == 0.0);
            let columns = (0..width).filter(|c| column(*c)).count();
            assert!(hidden <= 10 && columns <= 3, "{hidden} rows, {columns} columns");
            most = (most.0.max(hidden), most.1.max(columns));
        }
        assert!(most.0 > 5 && most.1 == 3, "{most:?}");
        // Fewer rows than a mask may have, and none at all.
        augment().hide(&mut [1.0; 16], 8, Stream::new(1, 0, 0));
        augment().hide(&mut [], 8, Stream::new(1, 0, 0));
    }

    #[test]
    fn what_cannot_be_meant_is_told() {
        let error = |augment: AudioAugment| augment.check().unwrap_err().to_string();
        assert!(error(AudioAugment { speed: 60, ..augment() }).contains("augment.speed: got 60"));
        assert!(error(AudioAugment { gain: f32::NAN, ..augment() }).contains("augment.gain"));
        assert!(error(AudioAugment { noise: Some(-90.0), ..augment() }).contains("augment.noise"));
        augment().check().unwrap();
    }
}
