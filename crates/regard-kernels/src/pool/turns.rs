//! Slots that several tasks add to in a fixed order.

use super::stop::checkpoint;
use std::sync::atomic::{AtomicUsize, Ordering};

/// For each slot, the task whose turn it is. Turns begin at 0.
pub(crate) struct Turns(Vec<AtomicUsize>);

impl Turns {
    pub fn new(places: usize) -> Turns {
        Turns((0..places).map(|_| AtomicUsize::new(0)).collect())
    }

    /// Returns when all turns before `turn` have ended at this slot. Their writes are visible from
    /// then on.
    ///
    /// Unwinds when the region is stopped: a task that panicked never ends its turn.
    pub fn wait(&self, place: usize, turn: usize) {
        let mut waited = 0u32;
        while self.0[place].load(Ordering::Acquire) != turn {
            std::hint::spin_loop();
            waited = waited.wrapping_add(1);
            if waited.is_multiple_of(1024) {
                checkpoint();
                std::thread::yield_now();
            }
        }
    }

    /// Ends `turn` at a slot, which must have been waited for.
    pub fn pass(&self, place: usize, turn: usize) {
        self.0[place].store(turn + 1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Parts, parallel};
    use super::*;
    use std::panic::catch_unwind;

    const ROUNDS: usize = if cfg!(miri) { 3 } else { 300 };

    /// Each task writes its number to every slot, in its turn.
    #[test]
    fn everyone_has_a_turn_in_order() {
        const PLACES: usize = 3;
        for round in 0..ROUNDS {
            let tasks = 1 + round % 9;
            let mut sums = vec![0u64; PLACES];
            let (parts, turns) = (Parts::new(&mut sums), Turns::new(PLACES));
            parallel(tasks, &|task| {
                for place in 0..PLACES {
                    turns.wait(place, task);
                    // SAFETY: it is this task's turn at the place.
                    let sum = unsafe { &mut parts.part(place, 1)[0] };
                    *sum = 10 * *sum + task as u64 + 1;
                    turns.pass(place, task);
                }
            });
            let want = (1..=tasks as u64).fold(0, |sum, task| 10 * sum + task);
            assert_eq!(sums, [want; PLACES]);
        }
    }

    #[test]
    fn nobody_waits_for_a_task_that_panicked() {
        for round in 0..ROUNDS {
            let caught = catch_unwind(|| {
                let turns = Turns::new(1);
                parallel(8, &|task| {
                    turns.wait(0, task);
                    assert!(task != round % 8, "in the middle of its turn");
                    turns.pass(0, task);
                });
            });
            let payload = caught.unwrap_err();
            assert_eq!(payload.downcast_ref(), Some(&"in the middle of its turn"));
        }
    }
}
