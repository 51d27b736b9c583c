//! Threads that wait for sessions.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Calls `one` for each number below `count`, on up to `threads` threads at once, and returns the
/// results in order. For work that waits for a [`Session`](super::Session): the threads share the
/// processors, not the work.
pub fn for_each<T: Send>(count: usize, threads: usize, one: impl Fn(usize) -> T + Sync) -> Vec<T> {
    if count <= 1 || threads <= 1 {
        return (0..count).map(one).collect();
    }
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, T)>> = Mutex::new(Vec::with_capacity(count));
    thread::scope(|scope| {
        for _ in 0..threads.min(count) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        break;
                    }
                    let result = one(number);
                    results.lock().expect("no panic while it is held").push((number, result));
                }
            });
        }
    });
    let mut results = results.into_inner().expect("no panic while it was held");
    results.sort_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order() {
        for (count, threads) in [(0, 4), (1, 4), (50, 1), (50, 7)] {
            let want: Vec<usize> = (0..count).map(|i| i * i).collect();
            assert_eq!(for_each(count, threads, |i| i * i), want);
        }
    }
}
