//! Speed of sequences together: beside one alone, and beside a prompt that is read.

use super::cancel::Cancel;
use super::engine::BatchEngine;
use super::session::Session;
use crate::Result;
use regard_attention::Stream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Tokens that each sequence reads before it writes.
const PROMPT: usize = 16;

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
    /// If they have no room, or a step failed.
    pub fn tokens_per_second(&self, sequences: usize, new: usize) -> Result<f64> {
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
    /// If they have no room, or a step failed.
    pub fn pace_beside(&self, writers: usize, new: usize, prompt: usize) -> Result<PaceBeside> {
        let steps = prompt / self.limits().prompt_tokens_beside.max(1);
        // More than any of them writes until the prompt is read.
        let longest = self.plan().longest().unwrap_or(usize::MAX);
        let length = (PROMPT + new + 4 * steps + 1000).min(longest);
        drop(self.session(writers + 1, length.max(prompt), &Cancel::new())?);
        let counts: Vec<AtomicUsize> = (0..writers).map(|_| AtomicUsize::new(0)).collect();
        let (done, failed) = (AtomicBool::new(false), AtomicBool::new(false));
        let found = Mutex::new(None);
        let write = |number: usize| -> Result<()> {
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
            let wait = |tokens: usize| {
                let behind = || now().iter().any(|n| *n < tokens);
                while behind() && !failed.load(Ordering::SeqCst) {
                    thread::sleep(Duration::from_millis(1));
                }
            };
            // The first tokens are warm-up.
            wait(4);
            let (began, before) = (Instant::now(), now());
            wait(4 + new);
            let (between, middle) = (began.elapsed().as_secs_f64(), now());
            let mut session = self.session(1, prompt, &Cancel::new())?;
            let (began, from) = (Instant::now(), now());
            session.read(&[&self.draw(prompt, 1 << 21)])?;
            let (seconds, to) = (began.elapsed().as_secs_f64(), now());
            let (alone, beside) = (pace(&before, &middle, between), pace(&from, &to, seconds));
            Ok(PaceBeside { alone, beside, seconds })
        };
        self.on_threads(writers + 1, &|number| {
            if number == writers {
                let pace = watch();
                done.store(true, Ordering::SeqCst);
                *found.lock().unwrap_or_else(PoisonError::into_inner) = Some(pace?);
                return Ok(());
            }
            write(number).inspect_err(|_| failed.store(true, Ordering::SeqCst))
        })?;
        let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(found.expect("it was measured"))
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
