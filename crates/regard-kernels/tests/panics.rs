//! A panic in a task ends the call with that panic, on the thread that called, and leaves a pool
//! that works. Alone in its binary, so that no other test holds the pool.

use regard_kernels::attention::mask::{self, Cover, Mask, Rule, ScoreBlock};
use regard_kernels::attention::score::{Modified, ScoreCell, ScoreMod};
use regard_kernels::attention::{
    Attention, AttentionInputs, Grid, InputGradients, SavedAttention, Upstream,
};
use regard_kernels::pool::{parallel, set_threads};
use regard_kernels::view::{Error, View, ViewMut};
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

/// A call that takes longer than this hangs; it takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(if cfg!(miri) { 600 } else { 20 });

/// Panics once armed, on one key.
#[derive(Debug)]
struct Trap {
    armed: Arc<AtomicBool>,
    key: usize,
}

impl Trap {
    fn step(&self, key: usize) {
        if self.armed.load(Ordering::Relaxed) && key == self.key {
            // Meanwhile other threads come to wait for this task.
            thread::sleep(Duration::from_millis(10));
            panic!("stepped on it");
        }
    }
}

impl ScoreMod for Trap {
    fn apply(&self, score: f32, cell: ScoreCell) -> f32 {
        self.step(cell.key);
        score
    }
    fn derivative(&self, _: f32, _: ScoreCell) -> f32 {
        1.0
    }
}

/// As a mask it is asked block by block, and every block is asked about.
impl Rule for Trap {
    fn check(&self, _: &Grid) -> Result<(), Error> {
        Ok(())
    }
    fn allows(&self, _: &Grid, _: usize, _: usize, _: usize, key: usize) -> bool {
        self.step(key);
        true
    }
    fn cover(&self, _: &Grid, _: &ScoreBlock) -> Cover {
        Cover::Partial
    }
}

/// An attention that asks the trap.
type Build = fn(Trap) -> Attention;

/// Heads, queries, keys. With one or two heads the backward's blocks of keys are tasks that take
/// turns at the queries; with many, heads are tasks.
const SHAPES: &[[usize; 3]] =
    if cfg!(miri) { &[[1, 4, 300]] } else { &[[1, 200, 900], [2, 130, 700], [12, 70, 300]] };
const THREADS: &[usize] = if cfg!(miri) { &[2] } else { &[2, 4, 1] };
const WIDTH: usize = 8;

/// A forward, and a backward if `saved` has what a forward kept.
fn run(
    attention: &Attention,
    [h, t, s]: [usize; 3],
    saved: Option<&SavedAttention>,
) -> (SavedAttention, Vec<f32>) {
    let numbers = |n: usize| (0..n * WIDTH).map(|i| (i as f32 * 0.37).sin()).collect::<Vec<_>>();
    let (q, k) = (numbers(h * t), numbers(h * s));
    let q_view = View::new(&q, [1, h, t, WIDTH]).unwrap();
    let k_view = View::new(&k, [1, h, s, WIDTH]).unwrap();
    let inputs = AttentionInputs::new(q_view, k_view, k_view);
    let mut out = vec![0.0; q.len()];
    let Some(saved) = saved else {
        let room = ViewMut::new(&mut out, q_view.shape).unwrap();
        let saved = attention.forward(&inputs, &room).unwrap();
        return (saved, out);
    };
    let (mut dk, mut dv) = (vec![0.0; k.len()], vec![0.0; k.len()]);
    let upstream = Upstream { out: Some((q_view, q_view)), ..Upstream::default() };
    let to = InputGradients {
        dq: ViewMut::new(&mut out, q_view.shape).unwrap(),
        dk: ViewMut::new(&mut dk, k_view.shape).unwrap(),
        dv: ViewMut::new(&mut dv, k_view.shape).unwrap(),
    };
    attention.backward(&inputs, saved, &upstream, &to).unwrap();
    out.extend(dk.into_iter().chain(dv));
    (saved.clone(), out)
}

/// Runs `work` on a thread of its own and fails if it does not end.
fn ends<R: Send + 'static>(what: String, work: impl FnOnce() -> R + Send + 'static) -> R {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || send.send(work()));
    receive.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{what} hangs"))
}

fn message(payload: &(dyn std::any::Any + Send)) -> String {
    payload.downcast_ref::<&str>().map_or_else(
        || payload.downcast_ref::<String>().cloned().unwrap_or_default(),
        ToString::to_string,
    )
}

/// Threads that the pool brings to a region of many slow tasks.
fn threads_at_work() -> usize {
    let seen = Mutex::new(HashSet::new());
    parallel(64, &|_| {
        seen.lock().unwrap().insert(thread::current().id());
        thread::sleep(Duration::from_millis(2));
    });
    seen.into_inner().unwrap().len()
}

/// All in one test: the number of threads is the process's.
#[test]
fn a_panic_in_a_task_reaches_the_caller_and_the_next_call_works() {
    let armed = Arc::new(AtomicBool::new(false));
    let trap = |key| Trap { armed: armed.clone(), key };
    let kinds: [(&str, Build); 2] = [
        ("a mask", |trap| Attention::dot().mask(Mask::new(trap) & mask::full())),
        ("a score", |trap| Attention::with_score(Modified(Arc::new(trap)))),
    ];
    for &threads in THREADS {
        set_threads(threads);
        for &shape in SHAPES {
            // One block of keys in the middle, the first, the last.
            for key in [shape[2] / 2, 3, shape[2] - 1] {
                for (kind, attention) in kinds {
                    let what = format!("{kind} at key {key} of {shape:?} on {threads} threads");
                    let attention = attention(trap(key));
                    armed.store(false, Ordering::Relaxed);
                    let (saved, out) = run(&attention, shape, None);
                    let (_, grads) = run(&attention, shape, Some(&saved));
                    for backward in [true, false] {
                        armed.store(true, Ordering::Relaxed);
                        let saved = backward.then(|| saved.clone());
                        let attention = attention.clone();
                        let caught = ends(format!("{what}, backward: {backward}"), move || {
                            let run = || run(&attention, shape, saved.as_ref());
                            catch_unwind(AssertUnwindSafe(run)).map(drop)
                        });
                        let payload = caught.expect_err(&what);
                        assert_eq!(message(&*payload), "stepped on it", "{what}");
                        armed.store(false, Ordering::Relaxed);
                    }
                    let again = run(&attention, shape, None);
                    assert_eq!(again.1, out, "{what}");
                    assert_eq!(run(&attention, shape, Some(&again.0)).1, grads, "{what}");
                }
            }
        }
        // A pool that went on alone would be right, and slow without a word. On a busy machine a
        // thread may come too late for all tasks: it has a few chances.
        let most = |n: &usize| assert!(*n <= threads, "{n} threads, need at most {threads}");
        let mut tries = (0..10).map(|_| threads_at_work()).inspect(most);
        assert!(tries.any(|n| n == threads), "some of {threads} threads never work");
    }
}
