//! Acoustic features: mel bands of frames, their logarithms or MFCC, each column normalised to
//! mean 0 and standard deviation 1 over the training data.
//!
//! No row depends on samples after its own frame, so that a sound gives the same rows as a whole
//! and when it is streamed.

use super::cepstrum::{Cosines, Loudness};
use super::mel::{Bands, FilterBank, Height, MelScale};
use super::spectrum::{Ends, Frames};
use super::{FASTEST, Sound};
use regard_models::{ModelFiles, Result, checkpoint};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// File of the configuration in a model's folder.
pub const FILE: &str = "preprocessor_config.json";

/// `preprocessor_config.json`: configuration of [`FrontEnd`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Preprocessor {
    /// Sampling rate in Hertz.
    pub sampling_rate: u32,
    /// Number of mel bands.
    pub feature_size: usize,
    /// Samples per frame (size of the Fourier transform).
    pub n_fft: usize,
    /// Samples of the window, centred in the frame.
    pub win_length: usize,
    /// Samples from one frame to the next.
    pub hop_length: usize,
    /// Lowest frequency, in Hertz.
    pub f_min: f64,
    /// Highest frequency, in Hertz; default: half the sampling rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub f_max: Option<f64>,
    /// Mel scale.
    pub mel_scale: MelScale,
    /// Normalisation of the mel filters.
    pub mel_norm: Height,
    /// Added to the power before its logarithm.
    pub log_offset: f32,
    /// Number of MFCC, used instead of the mel bands; `None`: log mel bands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_mfcc: Option<usize>,
    /// Mean of each column over the training data; empty if not known yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mean: Vec<f32>,
    /// Standard deviation of each column over the training data; empty if not known yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub std: Vec<f32>,
}

impl Default for Preprocessor {
    fn default() -> Preprocessor {
        Preprocessor {
            sampling_rate: 16000,
            feature_size: 80,
            n_fft: 400,
            win_length: 400,
            hop_length: 160,
            f_min: 0.0,
            f_max: None,
            mel_scale: MelScale::Slaney,
            mel_norm: Height::Slaney,
            log_offset: 1e-6,
            num_mfcc: None,
            mean: vec![],
            std: vec![],
        }
    }
}

/// Largest number of samples of a frame.
const LARGEST: usize = 1 << 16;
/// Largest number of weights of a filter bank: 128 bands of spectra of 131,072 samples.
const LARGEST_BANK: usize = 1 << 24;

impl Preprocessor {
    /// Reads the configuration in a model's folder.
    pub fn load(model: &ModelFiles) -> Result<Preprocessor> {
        model.parse(FILE, Preprocessor::parse)
    }

    /// Parses the bytes of the file.
    pub fn parse(bytes: &[u8]) -> Result<Preprocessor, String> {
        let read: Preprocessor = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
        read.check().map(|()| read)
    }

    /// Writes the configuration into a model's folder.
    pub fn save(&self, folder: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self).expect("it is plain data") + "\n";
        checkpoint::write_file(&folder.join(FILE), text.as_bytes())
    }

    /// Returns the number of columns of a row.
    pub fn width(&self) -> usize {
        self.num_mfcc.unwrap_or(self.feature_size)
    }

    /// Checks that all values are in range.
    pub fn check(&self) -> Result<(), String> {
        let sizes = [
            ("sampling_rate", self.sampling_rate as usize, FASTEST as usize),
            ("n_fft", self.n_fft, LARGEST),
            ("win_length", self.win_length, self.n_fft),
            ("hop_length", self.hop_length, self.n_fft),
            ("feature_size", self.feature_size, self.n_fft),
            ("num_mfcc", self.width(), self.feature_size),
        ];
        for (name, got, most) in sizes {
            if !(1..=most).contains(&got) {
                return Err(format!("{name}: got {got}, need 1 to {most}"));
            }
        }
        if self.feature_size * self.n_fft > LARGEST_BANK {
            let (bands, samples) = (self.feature_size, self.n_fft);
            return Err(format!(
                "feature_size and n_fft: got {bands} and {samples}, need a product of at most \
                 {LARGEST_BANK}"
            ));
        }
        let (low, high, half) = (self.f_min, self.high(), f64::from(self.sampling_rate) / 2.0);
        if !(0.0 <= low && low < high && high <= half) {
            return Err(format!(
                "f_min and f_max: got {low} and {high}, need 0 ≤ f_min < f_max ≤ {half}"
            ));
        }
        if !(self.log_offset.is_finite() && self.log_offset > 0.0) {
            return Err(format!("log_offset: got {}, need more than 0", self.log_offset));
        }
        for (name, column) in [("mean", &self.mean), ("std", &self.std)] {
            if !column.is_empty() && column.len() != self.width() {
                let (got, need) = (column.len(), self.width());
                return Err(format!("{name}: got {got} values, need {need}"));
            }
            if let Some(bad) = column.iter().find(|x| !x.is_finite()) {
                return Err(format!("{name}: got {bad}, need finite values"));
            }
        }
        if self.std.iter().any(|x| *x <= 0.0) || self.std.len() != self.mean.len() {
            return Err("std: need a value above 0 for each mean".into());
        }
        match FilterBank::new(&self.bands(), self.n_fft / 2 + 1, self.sampling_rate).deaf() {
            None => Ok(()),
            Some(band) => Err(format!(
                "feature_size: got {}, but band {band} is narrower than the resolution of frames \
                 of {} samples; set fewer bands or a larger n_fft",
                self.feature_size, self.n_fft
            )),
        }
    }

    fn high(&self) -> f64 {
        self.f_max.unwrap_or(f64::from(self.sampling_rate) / 2.0)
    }

    fn bands(&self) -> Bands {
        Bands {
            count: self.feature_size,
            low: self.f_min,
            high: self.high(),
            scale: self.mel_scale,
            height: self.mel_norm,
        }
    }
}

/// Computes rows of features from samples.
#[derive(Clone, Debug)]
pub struct FrontEnd {
    preprocessor: Preprocessor,
    frames: Frames,
    bank: FilterBank,
    cosines: Option<Cosines>,
}

impl FrontEnd {
    /// Makes the front end of a configuration.
    ///
    /// # Errors
    /// If [`Preprocessor::check`] fails.
    pub fn new(preprocessor: Preprocessor) -> Result<FrontEnd, String> {
        preprocessor.check()?;
        let Preprocessor { n_fft, win_length, hop_length, feature_size, .. } = preprocessor;
        let frames = Frames::new(n_fft, win_length, hop_length);
        let bank =
            FilterBank::new(&preprocessor.bands(), frames.bins(), preprocessor.sampling_rate);
        let cosines = preprocessor.num_mfcc.map(|count| Cosines::new(feature_size, count));
        Ok(FrontEnd { preprocessor, frames, bank, cosines })
    }

    /// Returns the configuration.
    pub fn preprocessor(&self) -> &Preprocessor {
        &self.preprocessor
    }

    /// Returns the number of columns of a row.
    pub fn width(&self) -> usize {
        self.preprocessor.width()
    }

    /// Returns the rows of a whole sound, concatenated; a sound shorter than a frame is one row.
    pub fn rows(&self, sound: &Sound) -> Vec<f32> {
        let sound = sound.clone().at(self.preprocessor.sampling_rate);
        self.listen().hear(&sound.samples, true)
    }

    /// Starts streaming a sound at the sampling rate of the configuration.
    pub fn listen(&self) -> Listening<'_> {
        Listening { front: self, rest: vec![], heard: false }
    }

    fn of_samples(&self, samples: &[f32]) -> Vec<f32> {
        let mut rows = self.bank.apply(&self.frames.power(samples, Ends::Inside));
        Loudness::Log { offset: self.preprocessor.log_offset }.apply(&mut rows);
        if let Some(cosines) = &self.cosines {
            rows = cosines.apply(&rows);
        }
        let Preprocessor { mean, std, .. } = &self.preprocessor;
        if !mean.is_empty() {
            for row in rows.chunks_exact_mut(mean.len()) {
                let columns = row.iter_mut().zip(mean.iter().zip(std));
                columns.for_each(|(x, (mean, std))| *x = (*x - mean) / std);
            }
        }
        rows
    }
}

/// State of a streamed sound.
#[derive(Clone, Debug)]
pub struct Listening<'a> {
    front: &'a FrontEnd,
    /// Samples from the start of the next frame on.
    rest: Vec<f32>,
    /// Whether a frame was completed.
    heard: bool,
}

impl Listening<'_> {
    /// Adds samples and returns the rows that they complete. If `last`, a sound that is shorter
    /// than a frame is padded with silence.
    pub fn hear(&mut self, samples: &[f32], last: bool) -> Vec<f32> {
        self.rest.extend(samples);
        let frames = &self.front.frames;
        if last && !self.heard && self.rest.len() < frames.size() {
            self.rest.resize(frames.size(), 0.0);
        }
        let count = frames.within(self.rest.len());
        if count == 0 {
            return vec![];
        }
        let rows = self.front.of_samples(&self.rest);
        self.rest.drain(..(count * frames.hop()).min(self.rest.len()));
        self.heard = true;
        rows
    }
}

/// Mean and standard deviation of each column of many rows.
pub fn statistics(rows: &[Vec<f32>], width: usize) -> (Vec<f32>, Vec<f32>) {
    let mut sums = vec![[0f64; 2]; width];
    let mut count = 0f64;
    for row in rows.iter().flat_map(|rows| rows.chunks_exact(width)) {
        count += 1.0;
        for (sums, x) in sums.iter_mut().zip(row) {
            sums[0] += f64::from(*x);
            sums[1] += f64::from(*x).powi(2);
        }
    }
    let each = sums.iter().map(|[sum, squares]| {
        let mean = sum / count.max(1.0);
        // A constant column is not scaled.
        let variance = (squares / count.max(1.0) - mean * mean).max(0.0);
        let std = if variance > 1e-8 { variance.sqrt() } else { 1.0 };
        (mean as f32, std as f32)
    });
    each.unzip()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn front() -> FrontEnd {
        let preprocessor = Preprocessor {
            sampling_rate: 8000,
            feature_size: 24,
            n_fft: 256,
            win_length: 200,
            hop_length: 80,
            ..Preprocessor::default()
        };
        FrontEnd::new(preprocessor).unwrap()
    }

    #[test]
    fn a_sound_is_the_same_whole_and_in_pieces() {
        let front = front();
        let samples: Vec<f32> =
            (0..3001).map(|i| (i as f32 * 0.1).sin() * (i as f32 * 0.003).cos()).collect();
        let whole = front.rows(&Sound { samples: samples.clone(), rate: 8000 });
        assert_eq!(whole.len() % 24, 0);
        for piece in [1, 79, 80, 81, 257, 3000] {
            let mut listening = front.listen();
            let mut rows = vec![];
            for piece in samples.chunks(piece) {
                rows.extend(listening.hear(piece, false));
            }
            rows.extend(listening.hear(&[], true));
            assert_eq!(rows, whole, "pieces of {piece}");
        }
    }

    #[test]
    fn the_shortest_sound_is_a_row() {
        assert_eq!(front().rows(&Sound { samples: vec![0.1], rate: 8000 }).len(), 24);
        assert_eq!(front().rows(&Sound { samples: vec![0.1; 300], rate: 44100 }).len(), 24);
    }

    #[test]
    fn what_cannot_be_meant_is_told() {
        let error = |text: &str| Preprocessor::parse(text.as_bytes()).unwrap_err();
        assert!(error("{\"hop_length\": 0}").contains("hop_length: got 0"));
        assert!(error("{\"win_length\": 500}").contains("win_length: got 500, need 1 to 400"));
        assert!(error("{\"f_max\": 9000}").contains("9000, need 0 ≤ f_min < f_max ≤ 8000"));
        assert!(error("{\"feature_size\": 300}").contains("is narrower than"));
        assert!(error("{\"mean\": [1]}").contains("mean: got 1 values, need 80"));
        assert!(error("{\"hop\": 3}").contains("unknown field"));
        assert!(error("{\"num_mfcc\": 81}").contains("num_mfcc: got 81, need 1 to 80"));
    }

    #[test]
    fn statistics_are_those_of_the_columns() {
        let (mean, std) = statistics(&[vec![1.0, 5.0], vec![3.0, 5.0]], 2);
        assert_eq!((mean, std), (vec![2.0, 5.0], vec![1.0, 1.0]));
    }
}
