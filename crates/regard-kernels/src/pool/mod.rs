//! Thread pool.
//!
//! A parallel region is a number of tasks that threads claim in ascending order from a shared
//! counter. The result of a task must depend on its number alone; then results do not depend on the
//! number of threads or on which of them ran a task.
//!
//! Workers wait for the next region by spinning briefly, because the regions of a training step
//! follow each other within microseconds, and then sleep.

mod parts;
mod stop;
mod turns;

pub(crate) use parts::Parts;
pub(crate) use stop::checkpoint;
pub use stop::{Interrupted, interruptible};
pub(crate) use turns::Turns;

use crate::view::{Error, bail};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, TryLockError};
use std::time::{Duration, Instant};

/// Time that a worker spins before it sleeps. Waking up takes 5 to 50 µs.
const SPIN: Duration = Duration::from_micros(100);

/// Maximum number of threads. Each one costs memory and is a limited resource of the system.
pub const MAX_THREADS: usize = 1024;

struct Job {
    /// The task, with its lifetime erased: `parallel` does not return before every thread has left.
    task: *const (dyn Fn(usize) + Sync),
    tasks: usize,
    next: AtomicUsize,
    /// Number of workers inside this job.
    inside: AtomicUsize,
    /// Set when the remaining tasks need not run: one has panicked, or the caller is interrupted.
    stop: AtomicBool,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

// SAFETY: the pointer is dereferenced only between publication and the end of `parallel`, while
// the closure it points to is alive; the closure itself is `Sync`.
unsafe impl Send for Job {}
// SAFETY: as above.
unsafe impl Sync for Job {}

impl Job {
    fn work(&self) {
        while stop::wanted() {
            let task = self.next.fetch_add(1, Ordering::Relaxed);
            if task >= self.tasks {
                return;
            }
            // SAFETY: see `task`.
            let run = || unsafe { (*self.task)(task) };
            if let Err(payload) = catch_unwind(AssertUnwindSafe(run)) {
                self.stop.store(true, Ordering::Relaxed);
                // Tasks that gave up because of a panic do not hide it.
                if !stop::gave_up(&*payload) {
                    self.panic.lock().unwrap().get_or_insert(payload);
                }
            }
        }
    }
}

struct Pool {
    /// The current job, if workers may join one.
    slot: Mutex<Option<Arc<Job>>>,
    wake: Condvar,
    /// Number of published jobs, so that spinning workers need not take the lock.
    published: AtomicUsize,
    sleeping: AtomicUsize,
    workers: Mutex<usize>,
    /// Held by the thread that runs a region; a second one runs its tasks alone.
    busy: Mutex<()>,
    threads: AtomicUsize,
}

impl Pool {
    /// A pool without workers. It is never freed, because threads keep references to it.
    fn leaked(threads: usize) -> *mut Pool {
        Box::leak(Box::new(Pool {
            slot: Mutex::new(None),
            wake: Condvar::new(),
            published: AtomicUsize::new(0),
            sleeping: AtomicUsize::new(0),
            workers: Mutex::new(0),
            busy: Mutex::new(()),
            threads: AtomicUsize::new(threads),
        }))
    }
}

/// Null before the first region.
static POOL: AtomicPtr<Pool> = AtomicPtr::new(null_mut());

#[inline]
fn pool() -> &'static Pool {
    // SAFETY: what is stored there is never freed.
    unsafe { POOL.load(Ordering::Acquire).as_ref() }.unwrap_or_else(first_pool)
}

#[cold]
fn first_pool() -> &'static Pool {
    let asked = asked().unwrap_or_else(|Error(message)| panic!("{message}"));
    let cores = || std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    let new = Pool::leaked(asked.unwrap_or_else(cores));
    let set = POOL.compare_exchange(null_mut(), new, Ordering::AcqRel, Ordering::Acquire);
    // SAFETY: both are pools that are never freed. If another thread was faster, ours is forgotten.
    unsafe { &*set.err().unwrap_or(new) }
}

/// Replaces the pool in the child of a fork, which must call this: the pool's threads do not exist
/// there, and locks that they held stay locked. The new pool has as many threads.
pub fn after_fork() {
    if !POOL.load(Ordering::Acquire).is_null() {
        POOL.store(Pool::leaked(threads()), Ordering::Release);
    }
}

/// Returns the value of the environment variable `REGARD_NUM_THREADS`, `None` if it is not set.
///
/// # Errors
/// If it is not a number of threads. Programs should check it at start, since the first region
/// panics with the same message.
pub fn asked() -> Result<Option<usize>, Error> {
    let Some(asked) = std::env::var_os("REGARD_NUM_THREADS").filter(|asked| !asked.is_empty())
    else {
        return Ok(None);
    };
    let number = asked.to_str().and_then(|text| text.parse().ok());
    match number.filter(|n| (1..=MAX_THREADS).contains(n)) {
        Some(number) => Ok(Some(number)),
        None => bail!("REGARD_NUM_THREADS: got {asked:?}, need a number from 1 to {MAX_THREADS}"),
    }
}

/// Returns the number of threads of parallel regions: `REGARD_NUM_THREADS`, or the number of cores.
pub fn threads() -> usize {
    pool().threads.load(Ordering::Relaxed)
}

/// Sets the number of threads of later regions. Results do not depend on it.
///
/// # Panics
/// If it is 0 or more than [`MAX_THREADS`].
pub fn set_threads(threads: usize) {
    assert!(
        (1..=MAX_THREADS).contains(&threads),
        "set_threads: got {threads}, need 1 to {MAX_THREADS}"
    );
    pool().threads.store(threads, Ordering::Relaxed);
}

fn worker(pool: &'static Pool, index: usize) {
    let mut seen = 0;
    loop {
        let started = Instant::now();
        while pool.published.load(Ordering::Acquire) == seen && started.elapsed() < SPIN {
            for _ in 0..32 {
                std::hint::spin_loop();
            }
        }
        let mut slot = pool.slot.lock().unwrap();
        while pool.published.load(Ordering::Acquire) == seen {
            pool.sleeping.fetch_add(1, Ordering::Relaxed);
            slot = pool.wake.wait(slot).unwrap();
            pool.sleeping.fetch_sub(1, Ordering::Relaxed);
        }
        seen = pool.published.load(Ordering::Acquire);
        // Joining happens under the lock, so a closed job is never joined.
        let job = slot.clone().filter(|_| index + 1 < threads());
        if let Some(job) = &job {
            job.inside.fetch_add(1, Ordering::Relaxed);
        }
        drop(slot);
        if let Some(job) = job {
            // SAFETY: the guard is dropped before the job.
            let entered = unsafe { stop::enter(&job.stop) };
            job.work();
            drop(entered);
            job.inside.fetch_sub(1, Ordering::Release);
        }
    }
}

/// Runs `task(0), …, task(tasks − 1)` on all threads and returns when all are done.
///
/// Inside a region, or while another thread runs one, the tasks run on the calling thread. A panic
/// in a task is passed to the caller once every thread has left; tasks that have not begun by then
/// are not run.
pub fn parallel(tasks: usize, task: &(dyn Fn(usize) + Sync)) {
    let pool = pool();
    let threads = threads();
    if tasks > 1 && threads > 1 {
        // A guard that is dropped in a panic poisons its lock, which is harmless here.
        let busy = match pool.busy.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        if let Some(busy) = busy {
            let outcome = together(pool, threads, tasks, task);
            drop(busy);
            match outcome {
                Ok(()) => return,
                Err(Some(payload)) => resume_unwind(payload),
                Err(None) => stop::give_up(),
            }
        }
    }
    for each in 0..tasks {
        checkpoint();
        task(each);
    }
}

/// Runs a region on several threads. The error is the panic of a task, or `None` if the region was
/// stopped.
fn together(
    pool: &'static Pool,
    threads: usize,
    tasks: usize,
    task: &(dyn Fn(usize) + Sync),
) -> Result<(), Option<Box<dyn Any + Send>>> {
    spawn_up_to(pool, threads - 1);
    // SAFETY: only the lifetime changes; the job is left by every thread before this returns.
    let task: *const (dyn Fn(usize) + Sync) = unsafe {
        std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(task)
    };
    let job = Arc::new(Job {
        task,
        tasks,
        next: AtomicUsize::new(0),
        inside: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
        panic: Mutex::new(None),
    });
    // SAFETY: declared after the job, and so dropped before it.
    let _entered = unsafe { stop::enter(&job.stop) };
    *pool.slot.lock().unwrap() = Some(job.clone());
    pool.published.fetch_add(1, Ordering::Release);
    // A worker between its last check and its wait holds the lock: take it once, then check.
    drop(pool.slot.lock().unwrap());
    if pool.sleeping.load(Ordering::Relaxed) > 0 {
        pool.wake.notify_all();
    }
    job.work();
    *pool.slot.lock().unwrap() = None;
    let mut waited = 0u32;
    while job.inside.load(Ordering::Acquire) != 0 {
        std::hint::spin_loop();
        waited = waited.wrapping_add(1);
        if waited.is_multiple_of(4096) {
            // Called for its side effect: an interruption tells the other threads to stop.
            stop::wanted();
            std::thread::yield_now();
        }
    }
    match job.panic.lock().unwrap().take() {
        Some(payload) => Err(Some(payload)),
        None if job.stop.load(Ordering::Relaxed) => Err(None),
        None => Ok(()),
    }
}

fn spawn_up_to(pool: &'static Pool, wanted: usize) {
    let mut workers = pool.workers.lock().unwrap();
    while *workers < wanted {
        let index = *workers;
        let name = format!("regard-{}", index + 1);
        let spawned = std::thread::Builder::new().name(name).spawn(move || worker(pool, index));
        if spawned.is_err() {
            return; // fewer threads, the same result
        }
        *workers += 1;
    }
}

/// Runs `task(from, to)` over `len` items in ranges of `piece` items, on all threads.
pub fn parallel_ranges(len: usize, piece: usize, task: &(dyn Fn(usize, usize) + Sync)) {
    let pieces = len.div_ceil(piece.max(1));
    parallel(pieces, &|p| task(p * piece, ((p + 1) * piece).min(len)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn every_task_runs_once() {
        for round in 0..if cfg!(miri) { 8 } else { 2000 } {
            let sum = AtomicU64::new(0);
            let tasks = round % 70;
            parallel(tasks, &|t| {
                sum.fetch_add(1 + t as u64, Ordering::Relaxed);
            });
            assert_eq!(sum.into_inner(), (tasks * (tasks + 1) / 2) as u64);
        }
    }

    #[test]
    fn a_nested_region_works_alone() {
        let sum = AtomicU64::new(0);
        parallel(8, &|_| {
            parallel(8, &|_| {
                sum.fetch_add(1, Ordering::Relaxed);
            });
        });
        assert_eq!(sum.into_inner(), 64);
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_pool_goes_on() {
        let caught = catch_unwind(|| parallel(16, &|t| assert!(t != 7, "task seven")));
        assert!(caught.is_err());
        every_task_runs_once();
    }
}
