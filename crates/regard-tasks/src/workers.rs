//! Workers × threads: many batches are computed one on each core, few on all cores together.
//!
//! A batch that runs within a parallel region of the pool runs on one core: its own regions do not
//! wait for other threads. Results do not depend on it.

use regard_attention::pool;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of workers for this many items, where a worker needs at least `least` of them: one for
/// each thread, or a single one with all threads.
pub(crate) fn choose(items: usize, least: usize) -> usize {
    match pool::threads() {
        threads if items >= threads * least => threads,
        _ => 1,
    }
}

/// Calls `work(0), …, work(count − 1)` and returns the results in order. With one worker every
/// call has all threads; with more, each worker has one and takes the next item when it is done.
pub(crate) fn map<T: Send + Sync>(
    workers: usize,
    count: usize,
    work: &(dyn Fn(usize) -> T + Sync),
) -> Vec<T> {
    let workers = workers.min(count).min(pool::threads());
    if workers <= 1 {
        return (0..count).map(work).collect();
    }
    let results: Vec<OnceLock<T>> = (0..count).map(|_| OnceLock::new()).collect();
    let next = AtomicUsize::new(0);
    pool::parallel(workers, &|_| {
        loop {
            let item = next.fetch_add(1, Ordering::Relaxed);
            let Some(result) = results.get(item) else { return };
            // Each item is one worker's, so that the place is empty.
            let _ = result.set(work(item));
        }
    });
    results.into_iter().map(|result| result.into_inner().expect("every item was done")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_for_any_number_of_workers() {
        let want: Vec<usize> = (0..37).map(|n| n * n).collect();
        for workers in [1, 2, 3, 64] {
            assert_eq!(map(workers, 37, &|n| n * n), want, "{workers}");
        }
        assert!(map(4, 0, &|n| n).is_empty());
    }

    #[test]
    fn few_items_have_all_threads() {
        assert_eq!(choose(1000 * pool::threads(), 2), pool::threads());
        if pool::threads() > 1 {
            assert_eq!(choose(1, 2), 1);
        }
    }
}
