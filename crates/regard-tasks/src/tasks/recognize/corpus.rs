//! Recordings in memory, and their concatenation.

use crate::audio::wav;
use crate::data::ledger;
use crate::data::recordings::Recording;
use regard_attention::Stream;
use regard_attention::pool;
use regard_models::{Error, Result};
use std::sync::{Mutex, PoisonError};

/// A recording at the model's sampling rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Clip {
    /// Audio samples, mono.
    pub samples: Vec<f32>,
    /// Transcript or label.
    pub text: String,
}

/// Recordings of one sampling rate.
#[derive(Clone, Debug, Default)]
pub struct Corpus {
    /// All recordings.
    pub clips: Vec<Clip>,
}

/// Random stream of the choice of concatenated recordings.
const JOIN: u64 = 0x7370_6565_6368_0001;
/// Seed of the concatenations for evaluation, which are always the same.
const EXAM: u64 = 17;
/// Seconds of silence between recordings concatenated for evaluation.
const PAUSE: f32 = 0.1;

impl Corpus {
    /// Reads recordings in parallel; fails with the first error.
    pub fn read(recordings: &[Recording], rate: u32) -> Result<Corpus> {
        let slots: Vec<Mutex<Option<Result<Clip>>>> =
            recordings.iter().map(|_| Mutex::new(None)).collect();
        // Noted here, because the pool's threads keep no ledger.
        recordings.iter().for_each(|recording| ledger::note(&recording.path));
        pool::parallel(recordings.len(), &|i| {
            let Recording { path, text } = &recordings[i];
            let clip = wav::read(path)
                .map(|sound| Clip { samples: sound.at(rate).samples, text: text.clone() });
            *slots[i].lock().unwrap_or_else(PoisonError::into_inner) = Some(clip);
        });
        let clips = slots.into_iter().map(|slot| {
            let clip = slot.into_inner().unwrap_or_else(PoisonError::into_inner);
            clip.expect("every task was run")
        });
        Ok(Corpus { clips: clips.collect::<Result<_>>()? })
    }

    /// Draws the recordings to concatenate to recording `first` in a training step: itself and
    /// others, at most `join` in total.
    pub fn company(&self, first: usize, join: usize, seed: u64, step: u64) -> Vec<usize> {
        let random = Stream::new(seed, step, JOIN.wrapping_add((first as u64) << 16));
        let count = 1 + (random.uniform(0) * join as f32) as usize;
        let other = |i: usize| (random.uniform(i as u64) * self.clips.len() as f32) as usize;
        [first].into_iter().chain((1..count).map(other)).collect()
    }

    /// Concatenates all recordings for evaluation, each used once, 1 to `join` at a time with a
    /// short silence between; the grouping depends only on the number of recordings.
    pub fn joined(&self, join: usize, rate: u32) -> Corpus {
        if join <= 1 {
            return self.clone();
        }
        let random = Stream::new(EXAM, 0, JOIN);
        let mut order: Vec<usize> = (0..self.clips.len()).collect();
        order.sort_by_key(|i| (random.bits(*i as u64), *i));
        let mut rest = &order[..];
        let mut clips = vec![];
        while !rest.is_empty() {
            let draw = random.uniform((1 << 32) + rest.len() as u64);
            let count = (1 + (draw * join as f32) as usize).min(rest.len());
            let (now, after) = rest.split_at(count);
            rest = after;
            let pause = vec![0.0; (PAUSE * rate as f32) as usize];
            let parts: Vec<&[f32]> = now.iter().map(|i| &self.clips[*i].samples[..]).collect();
            let texts: Vec<&str> = now.iter().map(|i| self.clips[*i].text.as_str()).collect();
            clips.push(Clip { samples: parts.join(&pause[..]), text: texts.join(" ") });
        }
        Corpus { clips }
    }

    /// Returns the transcripts or labels of all recordings.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.clips.iter().map(|clip| clip.text.as_str())
    }

    /// Fails if there are no recordings.
    pub(super) fn not_empty(self, what: &str) -> Result<Corpus> {
        match self.clips.is_empty() {
            true => Err(Error::invalid(format!("data: the {what} part has no recordings"))),
            false => Ok(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corpus() -> Corpus {
        let clip = |i: usize| Clip { samples: vec![i as f32; 10 + i], text: format!("n{i}") };
        Corpus { clips: (0..50).map(clip).collect() }
    }

    #[test]
    fn every_recording_is_joined_once() {
        let joined = corpus().joined(4, 100);
        let mut said: Vec<&str> = joined.texts().flat_map(|text| text.split(' ')).collect();
        assert!((13..50).contains(&joined.clips.len()), "{}", joined.clips.len());
        for Clip { samples, text } in &joined.clips {
            let words: Vec<usize> = text.split(' ').map(|n| n[1..].parse().unwrap()).collect();
            assert!(words.len() <= 4);
            let parts: usize = words.iter().map(|i| 10 + i).sum();
            assert_eq!(samples.len(), parts + 10 * (words.len() - 1));
        }
        said.sort_unstable();
        let mut all: Vec<String> = (0..50).map(|i| format!("n{i}")).collect();
        all.sort_unstable();
        assert_eq!(said, all);
        assert_eq!(corpus().joined(4, 100).clips, joined.clips);
        assert_eq!(corpus().joined(1, 100).clips, corpus().clips);
    }

    #[test]
    fn company_is_a_function_of_seed_step_and_number() {
        let corpus = corpus();
        let all: Vec<_> = (0..200).map(|step| corpus.company(7, 3, 1, step)).collect();
        assert!(all.iter().all(|company| company[0] == 7 && company.len() <= 3));
        for count in 1..=3 {
            assert!(all.iter().filter(|company| company.len() == count).count() > 40);
        }
        assert_eq!(corpus.company(7, 3, 1, 5), all[5]);
        assert_eq!(corpus.company(7, 1, 1, 5), [7]);
    }
}
