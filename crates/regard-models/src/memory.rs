//! Refuses a model that cannot be trained in the memory there is, before any of it is allocated.

use crate::{Error, Result};
use burn::tensor::Device;
use regard_attention::Init;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that training takes for each parameter at its peak, which is when a checkpoint is
/// written: weights, gradients, two moments of AdamW, and the copies that go to the file.
/// Measured: 46 with 17 million parameters. Activations come on top.
pub const BYTES_PER_PARAMETER: u64 = 48;

/// What [`set_limit`] said; 0 for the memory of the machine.
static LIMIT: AtomicU64 = AtomicU64::new(0);

/// Sets how much memory the training of a model may take for its parameters, in bytes.
pub fn set_limit(bytes: u64) {
    LIMIT.store(bytes, Ordering::Relaxed);
}

/// How much memory the training of a model may take for its parameters, in bytes: what
/// [`set_limit`] said, or the memory of the machine. `None` where neither is known.
pub fn limit() -> Option<u64> {
    match LIMIT.load(Ordering::Relaxed) {
        0 => of_machine(),
        bytes => Some(bytes),
    }
}

/// The memory of the machine, or of the container if that has less.
fn of_machine() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let all = line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024;
    let container = fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let container = container.and_then(|text| text.trim().parse::<u64>().ok());
    Some(all.min(container.unwrap_or(all)))
}

/// Makes a model with first values from a seed. Its parameters are counted first, with a model
/// that takes no memory.
///
/// # Errors
/// Those of `make`, and a model that is too large to be trained here.
pub(crate) fn create<M>(
    seed: u64,
    device: &Device,
    make: impl Fn(&mut Init) -> Result<M>,
) -> Result<M> {
    let mut blank = Init::blank(device);
    make(&mut blank)?;
    check(blank.numbers(), limit())?;
    make(&mut Init::new(seed, device))
}

fn check(parameters: u64, limit: Option<u64>) -> Result<()> {
    let (wanted, limit) =
        (parameters.saturating_mul(BYTES_PER_PARAMETER), limit.unwrap_or(u64::MAX));
    if wanted <= limit {
        return Ok(());
    }
    let mega = |bytes: u64| bytes.div_ceil(1_000_000);
    Err(Error::invalid(format!(
        "model: {parameters} parameters take about {} MB to train ({BYTES_PER_PARAMETER} bytes each, \
         and activations), the limit is {} MB",
        mega(wanted),
        mega(limit)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_over_the_limit_is_refused_with_its_size() {
        check(1000, Some(48_000)).unwrap();
        check(u64::MAX, None).unwrap();
        let error = check(2_000_000, Some(95_000_000)).unwrap_err().to_string();
        assert!(error.contains("2000000 parameters take about 96 MB to train"), "{error}");
        assert!(error.contains("the limit is 95 MB"), "{error}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_memory_of_the_machine_is_known() {
        assert!(of_machine().is_some_and(|bytes| bytes > 100_000_000));
    }
}
