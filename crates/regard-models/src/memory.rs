//! Refuses a model whose training would not fit in memory, before any of it is allocated.

use crate::{Error, Result};
use burn::tensor::Device;
use regard_attention::Init;
use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};

/// Bytes per parameter at the peak of training, which is when a checkpoint is written: weights,
/// gradients, two moments of AdamW, and the copies that go to the file. Measured: 46 with 17
/// million parameters. Activations come on top.
pub const BYTES_PER_PARAMETER: u64 = 48;

thread_local! {
    static LIMIT: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Runs `work`, during which this thread refuses to make a model whose parameters take more than
/// `bytes` to train; `None` is no limit.
pub fn within<T>(bytes: Option<u64>, work: impl FnOnce() -> T) -> T {
    /// Restores the limit, even if `work` panics.
    struct Before(Option<u64>);
    impl Drop for Before {
        fn drop(&mut self) {
            LIMIT.set(self.0);
        }
    }
    let _before = Before(LIMIT.replace(bytes));
    work()
}

/// Memory of the machine in bytes, or of the container if that has less; `None` where it is
/// unknown (anything but Linux).
pub fn of_machine() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let all = line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024;
    Some(of_groups().into_iter().fold(all, u64::min))
}

/// Memory limits of the process's control groups.
fn of_groups() -> Vec<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or("");
    let above = Path::new(own).ancestors().map(|group| Path::new("/sys/fs/cgroup").join(group));
    let mut files: Vec<PathBuf> = above.map(|group| group.join("memory.max")).collect();
    // Version 1 of control groups.
    files.push("/sys/fs/cgroup/memory/memory.limit_in_bytes".into());
    let limit = |file: &PathBuf| fs::read_to_string(file).ok()?.trim().parse().ok();
    files.iter().filter_map(limit).collect()
}

/// Makes a model with seeded initial values. Its parameters are counted first, on a blank model
/// that allocates none.
///
/// # Errors
/// An error of `make`, or a model that is too large to train here.
pub(crate) fn create<M>(
    seed: u64,
    device: &Device,
    make: impl Fn(&mut Init) -> Result<M>,
) -> Result<M> {
    let mut blank = Init::blank(device);
    make(&mut blank)?;
    check(blank.parameters())?;
    make(&mut Init::new(seed, device))
}

/// Refuses a model of so many parameters if it exceeds the [limit](within).
pub(crate) fn check(parameters: u64) -> Result<()> {
    let wanted = parameters.saturating_mul(BYTES_PER_PARAMETER);
    let limit = LIMIT.get().unwrap_or(u64::MAX);
    if wanted <= limit {
        return Ok(());
    }
    let mega = |bytes: u64| bytes.div_ceil(1_000_000);
    Err(Error::invalid(format!(
        "model: {parameters} parameters take about {} MB to train ({BYTES_PER_PARAMETER} bytes each, \
         and activations), the limit is {} MB; --memory raises it",
        mega(wanted),
        mega(limit)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_over_the_limit_is_refused_with_its_size() {
        within(Some(48_000), || check(1000)).unwrap();
        check(u64::MAX).unwrap();
        let error = within(Some(95_000_000), || check(2_000_000)).unwrap_err().to_string();
        assert!(error.contains("2000000 parameters take about 96 MB to train"), "{error}");
        assert!(error.contains("the limit is 95 MB"), "{error}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_memory_of_the_machine_is_known() {
        assert!(of_machine().is_some_and(|bytes| bytes > 100_000_000));
    }
}
