//! Log of a training run: `metrics.jsonl` for programs, TensorBoard's event files for plots. Both
//! hold the same values.
//!
//! A run that was stopped and resumed leaves the same `metrics.jsonl` as an uninterrupted run:
//! lines after the checkpoint are removed. Event files are only added; a new one tells TensorBoard
//! from which step on it replaces the older ones.

mod crc32c;
mod event;
mod event_file;
mod jsonl;

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use crate::{Error, Result};
use event_file::EventFile;
use jsonl::JsonLines;

/// Name of the file with one JSON object per line.
pub const METRICS_FILE: &str = "metrics.jsonl";

/// The log of a training run.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("regard-doc-log-{}", std::process::id()));
/// use regard_tasks::train::log::Log;
///
/// let mut log = Log::open(&dir, None)?;
/// log.scalars(1, &[("loss", 2.25), ("learning_rate", 1e-4)])?;
/// log.scalars(2, &[("loss", 2.0), ("learning_rate", 2e-4)])?;
/// assert_eq!(
///     std::fs::read_to_string(dir.join("metrics.jsonl")).unwrap(),
///     "{\"step\":1,\"loss\":2.25,\"learning_rate\":0.0001}\n\
///      {\"step\":2,\"loss\":2.0,\"learning_rate\":0.0002}\n"
/// );
/// # std::fs::remove_dir_all(&dir).unwrap();
/// # Ok::<(), regard_tasks::Error>(())
/// ```
#[derive(Debug)]
pub struct Log {
    lines: JsonLines,
    events: EventFile,
    last_step: Option<u64>,
}

impl Log {
    /// Opens the log in a folder, which is created if needed.
    ///
    /// With `None` a run starts, and a folder that holds the log of another one is an error. With
    /// `Some(step)` a run resumes from the checkpoint of that step: lines up to and including the
    /// step stay, later ones are removed, and a last line cut short by a crash is repaired.
    pub fn open(dir: &Path, resume_at: Option<u64>) -> Result<Log> {
        fs::create_dir_all(dir).map_err(Error::io(dir))?;
        let lines = JsonLines::open(&dir.join(METRICS_FILE), resume_at)?;
        let events = EventFile::create(dir, resume_at, wall_time())?;
        Ok(Log { lines, events, last_step: resume_at })
    }

    /// Writes the values of a step, in the order given, and flushes them.
    ///
    /// A value that is not finite is `null` in `metrics.jsonl`, since JSON cannot express it, and
    /// itself in TensorBoard. Only event files contain the time of day, so that the same run gives
    /// the same `metrics.jsonl`.
    ///
    /// # Panics
    /// If the step is smaller than an earlier one, or a name is `step` or occurs twice.
    pub fn scalars(&mut self, step: u64, values: &[(&str, f64)]) -> Result<()> {
        let last = self.last_step.unwrap_or(0);
        assert!(step >= last, "the log is at step {last} and cannot go back to {step}");
        for (n, (name, _)) in values.iter().enumerate() {
            let is_new = *name != "step" && values[..n].iter().all(|(other, _)| other != name);
            assert!(is_new, "the log of step {step} has {name:?} twice");
        }
        self.last_step = Some(step);
        if self.lines.write(step, values)? {
            self.events.write(step, values, wall_time())?;
        }
        Ok(())
    }
}

/// Returns the seconds since 1970; 0 if the clock is set before that.
fn wall_time() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |t| t.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::log::event_file::tests::read_scalars;
    use std::path::PathBuf;

    /// A folder that is gone when the test is.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let folder = format!("regard-log-{name}-{}", std::process::id());
            let folder = std::env::temp_dir().join(folder);
            _ = fs::remove_dir_all(&folder);
            Folder(folder)
        }

        fn lines(&self) -> String {
            fs::read_to_string(self.0.join(METRICS_FILE)).unwrap()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            _ = fs::remove_dir_all(&self.0);
        }
    }

    fn run(log: &mut Log, steps: std::ops::RangeInclusive<u64>) {
        for step in steps {
            log.scalars(step, &[("loss", 1.0 / step as f64), ("lr", 1e-7 * step as f64)]).unwrap();
            if step % 3 == 0 {
                log.scalars(step, &[("eval/bleu", step as f64 + 0.1)]).unwrap();
            }
        }
    }

    #[test]
    fn resumed_is_never_stopped() {
        let whole = Folder::new("whole");
        run(&mut Log::open(&whole.0, None).unwrap(), 1..=12);
        for (crash, checkpoint) in [(7, 6), (9, 6), (6, 6), (12, 3), (5, 0)] {
            let parts = Folder::new(&format!("parts-{crash}"));
            run(&mut Log::open(&parts.0, None).unwrap(), 1..=crash);
            let mut log = Log::open(&parts.0, Some(checkpoint)).unwrap();
            run(&mut log, checkpoint + 1..=12);
            assert_eq!(parts.lines(), whole.lines(), "stopped at {crash}, from {checkpoint}");
            assert_eq!(read_scalars(&parts.0), read_scalars(&whole.0));
        }
    }

    #[test]
    fn another_run_is_not_overwritten() {
        let folder = Folder::new("twice");
        run(&mut Log::open(&folder.0, None).unwrap(), 1..=2);
        let error = Log::open(&folder.0, None).unwrap_err().to_string();
        assert!(error.contains(METRICS_FILE) && error.contains("another folder"), "{error}");
        assert_eq!(folder.lines().lines().count(), 2);
    }

    #[test]
    fn a_run_that_wrote_nothing_may_begin_again() {
        let folder = Folder::new("nothing");
        drop(Log::open(&folder.0, None).unwrap());
        run(&mut Log::open(&folder.0, None).unwrap(), 1..=1);
        assert_eq!(folder.lines(), "{\"step\":1,\"loss\":1.0,\"lr\":1e-7}\n");
    }

    #[test]
    #[should_panic(expected = "cannot go back to 4")]
    fn steps_do_not_go_back() {
        let folder = Folder::new("back");
        let mut log = Log::open(&folder.0, Some(5)).unwrap();
        _ = log.scalars(4, &[("loss", 1.0)]);
    }

    #[test]
    #[should_panic(expected = "\"loss\" twice")]
    fn a_name_is_there_once() {
        let folder = Folder::new("names");
        let mut log = Log::open(&folder.0, None).unwrap();
        _ = log.scalars(1, &[("loss", 1.0), ("loss", 2.0)]);
    }
}
