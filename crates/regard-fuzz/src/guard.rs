//! One input of a target: run within limits, and saved if it fails.

use crate::Mutants;
use crate::memory::peak_of;
use std::cell::RefCell;
use std::fs;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Limits on memory and time for one input.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum memory per byte of the input, in bytes.
    pub growth: usize,
    /// Maximum memory regardless of the input, in bytes.
    pub memory: usize,
    /// Maximum time per input.
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { growth: 64, memory: 64 << 20, time: Duration::from_secs(5) }
    }
}

/// Memory above which the process ends at once, before the machine runs out of it.
const CAP: usize = 2 << 30;

/// A fuzz target with its corpus.
pub struct Target {
    name: &'static str,
    limits: Limits,
    corpus: Vec<(PathBuf, Vec<u8>)>,
    /// Size of the smallest input that failed.
    failed: Mutex<Option<usize>>,
}

thread_local! {
    /// The current input, for `end_process`.
    static CURRENT: RefCell<Option<(PathBuf, Vec<u8>)>> = const { RefCell::new(None) };
}

impl Target {
    /// Reads the corpus of a target.
    pub fn open(name: &'static str, limits: Limits) -> Target {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz");
        let folder = PathBuf::from(folder).join(name);
        let entries = fs::read_dir(&folder)
            .unwrap_or_else(|e| panic!("{}: the target has no corpus: {e}", folder.display()));
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        let read = |path: PathBuf| (path.clone(), fs::read(&path).unwrap());
        let corpus: Vec<_> = paths.into_iter().map(read).collect();
        assert!(!corpus.is_empty(), "{}: the target's corpus is empty", folder.display());
        Target { name, limits, corpus, failed: Mutex::new(None) }
    }

    /// Runs the reader over the corpus files unchanged. At least one of them must be valid: mutants
    /// of files that are rejected at once would test nothing.
    pub fn run_corpus(&self, reader: &impl Fn(&[u8]) -> bool) {
        let mut good = 0;
        for (path, bytes) in &self.corpus {
            let run = catch_unwind(AssertUnwindSafe(|| self.run(bytes, reader)));
            match run {
                Ok(read) => good += usize::from(read),
                Err(panic) => {
                    eprintln!("{}: failed as it is", path.display());
                    resume_unwind(panic);
                }
            }
        }
        assert!(good > 0, "{}: every file of the corpus is refused", self.name);
    }

    /// The generator of mutants.
    pub fn mutants(&self) -> Mutants {
        Mutants::new(self.corpus.iter().map(|(_, bytes)| bytes.clone()).collect())
    }

    /// Runs the reader over one input, and returns whether it was valid.
    pub fn run(&self, input: &[u8], reader: &impl Fn(&[u8]) -> bool) -> bool {
        let saved = self.saved();
        if std::env::var_os("REGARD_FUZZ_TRACE").is_some() {
            fs::write(&saved, input).unwrap();
        }
        CURRENT.set(Some((saved, input.to_vec())));
        let start = Instant::now();
        let (done, peak) = peak_of(CAP, || catch_unwind(AssertUnwindSafe(|| reader(input))));
        let time = start.elapsed();
        CURRENT.set(None);
        let good = done.unwrap_or_else(|panic| {
            self.save(input);
            resume_unwind(panic)
        });
        let most = input.len().saturating_mul(self.limits.growth) + self.limits.memory;
        if peak > most {
            self.save(input);
            let (name, length) = (self.name, input.len());
            panic!("{name}: {peak} bytes of memory for an input of {length}; at most {most}");
        }
        if time > self.limits.time {
            self.save(input);
            panic!("{}: an input of {} bytes took {time:?}", self.name, input.len());
        }
        good
    }

    fn saved(&self) -> PathBuf {
        std::env::temp_dir().join(format!("regard-fuzz-{}.bin", self.name))
    }

    /// Saves the smallest of the inputs that failed.
    fn save(&self, input: &[u8]) {
        let mut smallest = self.failed.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if smallest.is_none_or(|size| input.len() <= size) {
            *smallest = Some(input.len());
            let path = self.saved();
            match fs::write(&path, input) {
                Ok(()) => eprintln!("{}: the input is in {}", self.name, path.display()),
                Err(e) => eprintln!("{}: {}: {e}", self.name, path.display()),
            }
        }
    }
}

/// Reports the input that needs too much memory, and ends the process: an allocator must not panic.
pub(crate) fn end_process(wanted: isize) -> ! {
    let current = CURRENT.take();
    let (path, input) = current.unwrap_or_default();
    let saved = fs::write(&path, &input);
    // Written directly to the stream: output of `eprintln` in a test would be lost.
    let _ = writeln!(
        std::io::stderr(),
        "{}: an input of {} bytes wants {wanted} bytes more and goes over the cap of {CAP} ({})",
        path.display(),
        input.len(),
        if saved.is_ok() { "saved there" } else { "could not be saved" },
    );
    std::process::abort()
}
