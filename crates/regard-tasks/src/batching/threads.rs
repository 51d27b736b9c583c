//! Threads that wait for sessions.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;

/// Calls `one` for each number below `count`, on up to `threads` threads at once, and returns the
/// results in order. For work that waits for a [`Session`](super::Session): the threads share the
/// processors, not the work.
pub fn for_each<T: Send>(count: usize, threads: usize, one: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let mut results = Vec::with_capacity(count);
    let kept = in_order(count, threads, one, &mut |_, result| {
        results.push(result);
        Ok::<(), Infallible>(())
    });
    kept.expect("nothing fails");
    results
}

/// As [`for_each`], but hands each result to `done` as soon as it and all before it are there, on
/// the calling thread. After an error of `done`, no further number is begun.
///
/// # Errors
/// The error of `done`.
pub fn in_order<T: Send, E>(
    count: usize,
    threads: usize,
    one: impl Fn(usize) -> T + Sync,
    done: &mut dyn FnMut(usize, T) -> Result<(), E>,
) -> Result<(), E> {
    if count <= 1 || threads <= 1 {
        return (0..count).try_for_each(|number| done(number, one(number)));
    }
    let next = AtomicUsize::new(0);
    let (next, one) = (&next, &one);
    thread::scope(|scope| {
        let (sender, receiver) = channel();
        for _ in 0..threads.min(count) {
            let sender = sender.clone();
            scope.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    // Nobody listens after an error.
                    if number >= count || sender.send((number, one(number))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let (mut early, mut want) = (BTreeMap::new(), 0);
        for (number, result) in receiver {
            early.insert(number, result);
            while let Some(result) = early.remove(&want) {
                if let Err(error) = done(want, result) {
                    next.store(count, Ordering::Relaxed);
                    return Err(error);
                }
                want += 1;
            }
        }
        Ok(())
    })
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

    #[test]
    fn an_error_ends_the_work() {
        for threads in [1, 5] {
            let mut seen = vec![];
            let begun = AtomicUsize::new(0);
            let one = |i: usize| begun.fetch_add(i.min(1), Ordering::Relaxed);
            let ended = in_order(1_000_000, threads, one, &mut |i, _| {
                seen.push(i);
                if i == 3 { Err("three") } else { Ok(()) }
            });
            assert_eq!((ended, seen), (Err("three"), vec![0, 1, 2, 3]));
            assert!(begun.into_inner() < 999_999);
        }
    }
}
