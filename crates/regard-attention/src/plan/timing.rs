//! Time of decoding by part, measured on request.

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Part of decoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// From text to token ids and back.
    Tokenizer,
    /// The encoder, and the making of the plan.
    Encoder,
    /// Products with weights, and what is added to them: bias and activation.
    Products,
    /// Attention to cached keys and values.
    Attention,
    /// The choice of tokens from logits: log-softmax, top k, beams.
    Search,
    /// Embeddings, norms, the cache, and what else a step takes.
    Rest,
}

impl Part {
    /// All parts.
    pub const ALL: [Part; 6] =
        [Part::Tokenizer, Part::Encoder, Part::Products, Part::Attention, Part::Search, Part::Rest];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Part::Tokenizer => "tokenizer",
            Part::Encoder => "encoder",
            Part::Products => "products",
            Part::Attention => "attention",
            Part::Search => "search",
            Part::Rest => "rest",
        }
    }
}

/// Time of each part, summed over threads, and number of decoding steps.
#[derive(Clone, Debug, Default)]
pub struct PartTimes {
    /// In the order of [`Part::ALL`].
    pub times: [Duration; Part::ALL.len()],
    /// Decoding steps.
    pub steps: u64,
}

static MEASURING: AtomicBool = AtomicBool::new(false);
static NANOSECONDS: [AtomicU64; Part::ALL.len()] = [const { AtomicU64::new(0) }; Part::ALL.len()];
static STEPS: AtomicU64 = AtomicU64::new(0);
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

thread_local! {
    static CURRENT: Cell<Option<(Part, Instant)>> = const { Cell::new(None) };
}

/// Runs `work` and returns the time of its parts, on whatever threads. Other decoding at the same
/// time is counted too.
pub fn measure<T>(work: impl FnOnce() -> T) -> (T, PartTimes) {
    let turn = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
    for counter in NANOSECONDS.iter().chain([&STEPS]) {
        counter.store(0, Relaxed);
    }
    let measuring = Measuring::start();
    let result = work();
    drop(measuring);
    let mut found = PartTimes { steps: STEPS.load(Relaxed), ..PartTimes::default() };
    for (time, counter) in found.times.iter_mut().zip(&NANOSECONDS) {
        *time = Duration::from_nanos(counter.load(Relaxed));
    }
    drop(turn);
    (result, found)
}

/// Ends the measurement, also if it panics.
struct Measuring;

impl Measuring {
    fn start() -> Measuring {
        MEASURING.store(true, Relaxed);
        Measuring
    }
}

impl Drop for Measuring {
    fn drop(&mut self) {
        MEASURING.store(false, Relaxed);
    }
}

/// Runs `work` as this part. A part inside of another is not counted for the outer one.
#[inline]
pub fn timed<T>(part: Part, work: impl FnOnce() -> T) -> T {
    if !MEASURING.load(Relaxed) {
        return work();
    }
    let _back = Back(switch(Some(part)));
    work()
}

/// Counts a decoding step.
pub fn count_step() {
    if MEASURING.load(Relaxed) {
        STEPS.fetch_add(1, Relaxed);
    }
}

/// Returns to the outer part, also if the inner one panics.
struct Back(Option<Part>);

impl Drop for Back {
    fn drop(&mut self) {
        switch(self.0);
    }
}

/// Ends the time of this thread's current part, which is returned, and begins another.
fn switch(to: Option<Part>) -> Option<Part> {
    let now = Instant::now();
    let (part, since) = CURRENT.replace(to.map(|part| (part, now)))?;
    NANOSECONDS[part as usize].fetch_add((now - since).as_nanos() as u64, Relaxed);
    Some(part)
}
