//! Signals that stop a run; it saves a checkpoint first.

use crate::cli::INTERRUPTED;
use crate::cli::say::say;
use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

#[cfg(unix)]
const STOP: [i32; 3] = [SIGINT, SIGTERM, signal_hook::consts::SIGHUP];
#[cfg(not(unix))]
const STOP: [i32; 2] = [SIGINT, SIGTERM];

/// Time within which a second signal is ignored: `timeout`, a closing terminal and systemd send
/// signals twice in a row, faster than a user presses Ctrl-C twice.
const TWICE: Duration = Duration::from_secs(1);

/// Returns a flag that Ctrl-C, SIGTERM and SIGHUP set. Another Ctrl-C, at least a second after the
/// first signal, exits immediately.
pub fn listen() -> Result<Arc<AtomicBool>> {
    let (stop, pressed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    for signal in STOP {
        // `nohup` ignores SIGHUP so that a run outlives its terminal.
        if is_ignored(signal) {
            continue;
        }
        let registered = flag::register(signal, stop.clone());
        let registered = registered.and_then(|id| match signal {
            SIGINT => flag::register(signal, pressed.clone()),
            _ => Ok(id),
        });
        registered.with_context(|| format!("cannot listen for signal {signal}"))?;
    }
    let asked = stop.clone();
    thread::spawn(move || watch(&asked, &pressed));
    Ok(stop)
}

fn watch(stop: &AtomicBool, pressed: &AtomicBool) {
    let mut since = None;
    loop {
        thread::sleep(Duration::from_millis(50));
        let again = pressed.swap(false, Relaxed);
        match since {
            None if stop.load(Relaxed) => {
                since = Some(Instant::now());
                say("stopping: saving a checkpoint after this step; Ctrl-C again exits at once");
            }
            Some(since) if again && Instant::elapsed(&since) >= TWICE => {
                std::process::exit(INTERRUPTED.into());
            }
            _ => {}
        }
    }
}

/// Whether the parent process set a signal to be ignored (Linux only; false elsewhere).
pub fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}
