//! Audio: files, resampling, spectra, features and augmentation.
//!
//! | file | contents |
//! |---|---|
//! | `wav` | WAV files, which are not trusted |
//! | `resample` | resampling as in torchaudio |
//! | `spectrum` | power spectrum of each frame |
//! | `mel` | mel filter banks |
//! | `cepstrum` | cosine transform of mel bands: MFCC |
//! | `front` | from samples to the rows of features of a model, whole or streaming |
//! | `augment` | speed, offset, gain and noise; masks over time and frequency |

pub mod augment;
pub mod cepstrum;
pub mod front;
pub mod mel;
pub mod resample;
pub mod spectrum;
pub mod wav;

pub use augment::AudioAugment;
pub use front::{FrontEnd, Listening, Preprocessor};
pub use resample::resample;

/// A mono sound.
#[derive(Clone, Debug, PartialEq)]
pub struct Sound {
    /// Samples, usually between −1 and 1.
    pub samples: Vec<f32>,
    /// Sampling rate in Hertz.
    pub rate: u32,
}

impl Sound {
    /// Resamples to another rate.
    pub fn at(self, rate: u32) -> Sound {
        match self.rate == rate {
            true => self,
            false => Sound { samples: resample(&self.samples, self.rate, rate), rate },
        }
    }

    /// Returns the peak level in dBFS: 0 is a sample of 1 or −1, and each halving is 6 dB less.
    /// `None` if the sound is silent.
    pub fn peak_level(&self) -> Option<f64> {
        let peak = self.samples.iter().fold(0.0f32, |peak, sample| peak.max(sample.abs()));
        (peak > 0.0).then(|| 20.0 * f64::from(peak).log10())
    }

    /// Returns the duration in seconds.
    pub fn seconds(&self) -> f64 {
        self.samples.len() as f64 / f64::from(self.rate)
    }
}

/// Lowest sampling rate in Hertz: a file with a lower one would become many times as large at the
/// rate of a model.
pub const SLOWEST: u32 = 1000;
/// Highest sampling rate in Hertz; a file with a higher one is rejected.
pub const FASTEST: u32 = 768_000;
