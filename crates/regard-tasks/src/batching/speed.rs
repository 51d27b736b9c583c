//! Speed of sequences together: beside one alone, and beside a prompt that is read.

use super::cancel::Cancel;
use super::engine::BatchEngine;
use super::pace::MOST_STEPS;
use super::session::Session;
use crate::{Error, Result};
use regard_attention::Stream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Tokens that each sequence reads before it writes.
const PROMPT: usize = 16;

/// Tokens that are written before the pace is measured.
const WARM_UP: usize = 4;

/// Marks the end of a thread's work, also if it panics.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Pace of sessions that write while another one reads a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct PaceBeside {
    /// Seconds per token of each session, with the others that write.
    pub alone: Vec<f64>,
    /// Seconds per token of each session, while the prompt is read too.
    pub beside: Vec<f64>,
    /// Seconds until the prompt was read.
    pub seconds: f64,
}

impl BatchEngine {
    fn draw(&self, count: usize, seed: u64) -> Vec<u32> {
        let (draw, words) = (Stream::new(1, seed, 0), self.plan().vocabulary() as u32);
        (0..count as u64).map(|i| draw.bits(i) % words).collect()
    }

    /// Measures the tokens per second of `sequences` threads that each write `new` tokens after a
    /// short random prompt; the prompts do not count.
    ///
    /// # Errors
    /// If they have no room, the model's texts are shorter, or a step failed.
    pub fn tokens_per_second(&self, sequences: usize, new: usize) -> Result<f64> {
        self.has_positions(PROMPT.saturating_add(new).saturating_add(1), "new tokens")?;
        // Sessions that waited for room would wait for others at the barrier.
        drop(self.session(sequences, PROMPT + new + 1, &Cancel::new())?);
        let barrier = Barrier::new(sequences);
        let times = Mutex::new(vec![]);
        let write = |number: usize| -> Result<()> {
            let begun = self.begin(number, PROMPT + new + 1);
            // All of them wait here, whatever happened.
            barrier.wait();
            let began = Instant::now();
            let mut session = begun?;
            let (tokens, mut logits) = (self.draw(new, 1 << 20 | number as u64), vec![]);
            tokens.iter().try_for_each(|token| session.step(&[*token], &mut logits))?;
            let mut times = times.lock().unwrap_or_else(PoisonError::into_inner);
            times.push((began, Instant::now()));
            Ok(())
        };
        self.on_threads(sequences, &write)?;
        let times = times.into_inner().unwrap_or_else(PoisonError::into_inner);
        let began = times.iter().map(|(began, _)| *began).min().expect("there are sequences");
        let ended = times.iter().map(|(_, ended)| *ended).max().expect("there are sequences");
        Ok((sequences * new) as f64 / (ended - began).as_secs_f64())
    }

    /// Measures the pace of `writers` sessions over `new` tokens each, then while a prompt of
    /// `prompt` random tokens is read.
    ///
    /// # Errors
    /// If they have no room, the model's texts are too short for it, nobody writes while the prompt is
    /// read, or a step failed.
    pub fn pace_beside(&self, writers: usize, new: usize, prompt: usize) -> Result<PaceBeside> {
        let steps = prompt.div_ceil(self.limits().prompt_tokens_beside.max(1));
        let least = [PROMPT, WARM_UP, new, steps, 1].into_iter().fold(0, usize::saturating_add);
        self.has_positions(least, "new tokens, and a prompt that takes fewer steps")?;
        self.has_positions(prompt, "tokens of the prompt")?;
        // More than any of them writes until the prompt is read.
        let longest = self.plan().longest().unwrap_or(usize::MAX);
        let length = least.saturating_add(steps.saturating_mul(MOST_STEPS)).saturating_add(1000);
        let length = length.min(longest);
        drop(self.session(writers + 1, length.max(prompt), &Cancel::new())?);
        let counts: Vec<AtomicUsize> = (0..writers).map(|_| AtomicUsize::new(0)).collect();
        let (done, ended) = (AtomicBool::new(false), AtomicBool::new(false));
        let found = Mutex::new(None);
        let write = |number: usize| -> Result<()> {
            let _ends = Ends(&ended);
            let mut session = self.begin(number, length)?;
            let (tokens, mut logits) = (self.draw(length - PROMPT, number as u64), vec![]);
            for token in tokens {
                if done.load(Ordering::SeqCst) {
                    break;
                }
                session.step(&[token], &mut logits)?;
                counts[number].fetch_add(1, Ordering::SeqCst);
            }
            Ok(())
        };
        let now = || -> Vec<usize> { counts.iter().map(|n| n.load(Ordering::SeqCst)).collect() };
        let pace = |before: &[usize], after: &[usize], seconds: f64| -> Vec<f64> {
            before.iter().zip(after).map(|(a, b)| seconds / (b - a) as f64).collect()
        };
        let watch = || -> Result<PaceBeside> {
            let _done = Ends(&done);
            let wait = |tokens: usize| {
                let behind = || now().iter().any(|n| *n < tokens);
                while behind() && !ended.load(Ordering::SeqCst) {
                    thread::sleep(Duration::from_millis(1));
                }
            };
            wait(WARM_UP);
            let (began, before) = (Instant::now(), now());
            wait(WARM_UP + new);
            let (between, middle) = (began.elapsed().as_secs_f64(), now());
            let mut session = self.session(1, prompt, &Cancel::new())?;
            let (began, from) = (Instant::now(), now());
            session.read(&[&self.draw(prompt, 1 << 21)])?;
            let (seconds, to) = (began.elapsed().as_secs_f64(), now());
            let idle =
                |(from, to): (&Vec<usize>, &Vec<usize>)| from.iter().zip(to).any(|(a, b)| a == b);
            if ended.load(Ordering::SeqCst)
                || [(&before, &middle), (&from, &to)].into_iter().any(idle)
            {
                return Err(Error::invalid(
                    "a sequence wrote nothing while the pace was measured; need more new tokens, or a \
                     prompt that takes more steps",
                ));
            }
            let (alone, beside) = (pace(&before, &middle, between), pace(&from, &to, seconds));
            Ok(PaceBeside { alone, beside, seconds })
        };
        self.on_threads(writers + 1, &|number| {
            if number == writers {
                *found.lock().unwrap_or_else(PoisonError::into_inner) = Some(watch()?);
                return Ok(());
            }
            write(number)
        })?;
        let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(found.expect("it was measured"))
    }

    /// Checks that the model has texts of this length.
    fn has_positions(&self, length: usize, fewer: &str) -> Result<()> {
        match self.plan().longest().filter(|longest| *longest < length) {
            None => Ok(()),
            Some(longest) => Err(Error::invalid(format!(
                "the measurement needs texts of {length} tokens, the model's have at most {longest}; \
                 need fewer {fewer}"
            ))),
        }
    }

    /// Begins a session with a prompt of its own.
    fn begin(&self, number: usize, length: usize) -> Result<Session<'_>> {
        let mut session = self.session(1, length, &Cancel::new())?;
        session.read(&[&self.draw(PROMPT, 1 << 22 | number as u64)])?;
        Ok(session)
    }

    fn on_threads(&self, count: usize, one: &(dyn Fn(usize) -> Result<()> + Sync)) -> Result<()> {
        thread::scope(|scope| {
            let threads: Vec<_> =
                (0..count).map(|number| scope.spawn(move || one(number))).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("no thread panics"))
        })
    }
}
