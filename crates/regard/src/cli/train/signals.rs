//! Signals that ask a run to stop: it saves a checkpoint first.

use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The exit code of a run that was asked to stop.
pub const INTERRUPTED: u8 = 130;

#[cfg(unix)]
const STOP: [i32; 3] = [SIGINT, SIGTERM, signal_hook::consts::SIGHUP];
#[cfg(not(unix))]
const STOP: [i32; 2] = [SIGINT, SIGTERM];

/// A flag that Ctrl-C, SIGTERM and SIGHUP set. The second of them ends the program at once.
pub fn listen() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in STOP {
        // `nohup` ignores SIGHUP so that a run outlives its terminal.
        if is_ignored(signal) {
            continue;
        }
        // In this order: the first signal finds the flag unset, and then sets it.
        flag::register_conditional_shutdown(signal, INTERRUPTED.into(), stop.clone())
            .and_then(|_| flag::register(signal, stop.clone()))
            .with_context(|| format!("cannot listen for signal {signal}"))?;
    }
    Ok(stop)
}

/// Whether whoever started the program chose to ignore a signal, where the system tells.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}
