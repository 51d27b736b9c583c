//! Driver of the fuzz targets, one for every reader of untrusted files.
//!
//! A target is an ordinary test. It runs its reader over the files in `fuzz/<target>/` unchanged,
//! and then for about a second over mutants of them. It fails if the reader panics, takes more
//! memory than [`Limits`] allows for the size of the input, or takes longer than a few seconds.
//! A failing input is saved in the folder for temporary files, and the failure names it.
//!
//! ```sh
//! cargo test --workspace fuzz                                 # all targets, a second each
//! REGARD_FUZZ_SECONDS=600 cargo test --workspace fuzz::npz    # one target for ten minutes
//! REGARD_FUZZ_TRACE=1 cargo test …                            # save every input before it runs,
//!                                                             # to find what kills the process
//! ```
//!
//! The mutants come from bolero's driver, so `cargo bolero test` can run the same targets under
//! libFuzzer where that is installed.

mod guard;
mod memory;
mod mutate;
mod scratch;

pub use bolero;
pub use guard::{Limits, Target};
pub use memory::{Counting, held, peak_of};
pub use mutate::{Mutant, Mutants};
pub use scratch::{Scratch, parts};

use std::io::Write;
use std::time::Duration;

/// Reports that a test was skipped, and why. `.ci/run` counts these at its end: every skip is
/// appended to the file that `REGARD_SKIPPED` names.
pub fn skip(why: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_string();
    println!("skipped: {why}");
    if let Some(path) = std::env::var_os("REGARD_SKIPPED") {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        let line = format!("{test}: {why}\n");
        file.and_then(|mut file| file.write_all(line.as_bytes())).expect("REGARD_SKIPPED");
    }
}

/// Returns the time that a target runs over mutants: `REGARD_FUZZ_SECONDS`, or one second.
pub fn time() -> Duration {
    match std::env::var("REGARD_FUZZ_SECONDS") {
        Err(_) => Duration::from_secs(1),
        Ok(text) => match text.parse() {
            Ok(seconds) => Duration::from_secs(seconds),
            Err(_) => panic!("REGARD_FUZZ_SECONDS is {text:?}; it must be a whole number"),
        },
    }
}

/// Runs a reader over the corpus of a target and over mutants of it. The reader is a function of
/// `&[u8]` that returns whether it could read the input.
#[macro_export]
macro_rules! fuzz {
    ($name:expr, $reader:expr) => {
        $crate::fuzz!($name, $crate::Limits::default(), $reader)
    };
    ($name:expr, $limits:expr, $reader:expr) => {{
        let target = $crate::Target::open($name, $limits);
        target.run_corpus(&$reader);
        $crate::bolero::check!()
            .with_generator(target.mutants())
            .with_test_time($crate::time())
            .with_shrink_time(std::time::Duration::from_secs(2))
            .for_each(|mutant: &$crate::Mutant| _ = target.run(&mutant.0, &$reader));
    }};
}
