//! Law 4: extra memory is linear in T + S. Alone in its binary, because it counts all allocations.

use regard_kernels::attention::{Attention, AttentionInputs, InputGradients, Upstream, mask::*};
use regard_kernels::view::{View, ViewMut};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;
static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: it only counts what it passes on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(now, Ordering::Relaxed);
        // SAFETY: passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: passed on.
        unsafe { System.dealloc(p, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn memory_is_linear_and_does_not_grow() {
    let (t, d) = (16_384, 16);
    let x: Vec<f32> = (0..t * d).map(|i| (i as f32 * 0.37).sin()).collect();
    let shape = [1, 1, t, d];
    let x = View::new(&x, shape).unwrap();
    let inputs = AttentionInputs::new(x, x, x);
    let attention = Attention::dot().mask(causal());
    let (mut out, mut grads) = (vec![0.0; t * d], [(); 3].map(|()| vec![0.0; t * d]));
    let before = NOW.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let saved = attention.forward(&inputs, &ViewMut::new(&mut out, shape).unwrap()).unwrap();
    let [dq, dk, dv] = &mut grads;
    let [dq, dk, dv] = [dq, dk, dv].map(|x| ViewMut::new(x, shape).unwrap());
    let out = View::new(&out, shape).unwrap();
    let upstream = Upstream { out: Some((out, x)), ..Upstream::default() };
    let to = InputGradients { dq, dk, dv };
    attention.backward(&inputs, &saved, &upstream, &to).unwrap();
    let extra = PEAK.load(Ordering::Relaxed) - before;
    // A T × T matrix would be 1 GiB; the inputs and outputs are 8 MiB together.
    assert!(extra < 24 << 20, "{} MiB of extra memory", extra >> 20);

    // A thousand steps leave nothing behind: heads as tasks, blocks of keys as tasks, lists.
    let data: Vec<f32> = (0..2 * 300 * 8).map(|i| (i as f32 * 0.37).sin()).collect();
    let indptr: Vec<i64> = (0..=300).map(|i| 2 * i).collect();
    let indices: Vec<i64> = (0..300).flat_map(|i: i64| [i / 2, 200 + i / 3]).collect();
    for (shape, mask) in [
        ([1, 2, 16, 8], causal()),
        ([1, 1, 300, 8], causal()),
        ([1, 1, 300, 8], edges(&indptr, &indices)),
    ] {
        let x = View::new(&data, shape).unwrap();
        let (inputs, attention) = (AttentionInputs::new(x, x, x), Attention::dot().mask(mask));
        let n = shape.iter().product();
        let mut room = [(); 4].map(|()| vec![0.0; n]);
        let mut settled = 0;
        for step in 0..1000 {
            let [out, dq, dk, dv] = &mut room;
            let saved = attention.forward(&inputs, &ViewMut::new(out, shape).unwrap()).unwrap();
            let [dq, dk, dv] = [dq, dk, dv].map(|x| ViewMut::new(x, shape).unwrap());
            let to = InputGradients { dq, dk, dv };
            let out = View::new(out, shape).unwrap();
            let upstream = Upstream { out: Some((out, x)), ..Upstream::default() };
            attention.backward(&inputs, &saved, &upstream, &to).unwrap();
            drop(saved);
            match step {
                300 => settled = NOW.load(Ordering::Relaxed),
                999 => {
                    let now = NOW.load(Ordering::Relaxed);
                    assert!(
                        now <= settled + (64 << 10),
                        "{shape:?}: from {settled} to {now} bytes"
                    );
                }
                _ => {}
            }
        }
    }
}
