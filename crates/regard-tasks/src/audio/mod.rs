//! Sound: files, rates, spectra, and how training changes it.
//!
//! | file | what it knows |
//! |---|---|
//! | `wav` | WAV files, which are never trusted |
//! | `resample` | another rate, as torchaudio has it |
//! | `spectrum` | the power of the frequencies in each frame |
//! | `mel` | bands of frequencies as ears have them |
//! | `cepstrum` | the cosine transform of bands: MFCC |
//! | `front` | from samples to the rows that a model hears, whole or as they come |
//! | `augment` | speed, place, loudness and noise; masks over time and frequency |

pub mod augment;
pub mod cepstrum;
pub mod front;
pub mod mel;
pub mod resample;
pub mod spectrum;
pub mod wav;

pub use augment::Augment;
pub use front::{FrontEnd, Listening, Preprocessor};
pub use resample::resample;

/// A sound of one channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Sound {
    /// Between −1 and 1, unless the file says otherwise.
    pub samples: Vec<f32>,
    /// Samples a second.
    pub rate: u32,
}

impl Sound {
    /// The same at another rate.
    pub fn at(self, rate: u32) -> Sound {
        match self.rate == rate {
            true => self,
            false => Sound { samples: resample(&self.samples, self.rate, rate), rate },
        }
    }

    /// How long it lasts.
    pub fn seconds(&self) -> f64 {
        self.samples.len() as f64 / f64::from(self.rate)
    }
}

/// No rate is lower: a file that says it is would become many times as large at the rate of a
/// model.
pub const SLOWEST: u32 = 1000;
/// No rate is higher: what a file says is not believed beyond it.
pub const FASTEST: u32 = 768_000;
