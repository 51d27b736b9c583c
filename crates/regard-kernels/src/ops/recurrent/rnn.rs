//! The plain recurrence (Elman 1990): `h′ = tanh(W_ih·x + b_ih + W_hh·h + b_hh)`.

use super::sequence::{Step, StepBack};
use crate::ops::lanes::{get, put};
use crate::simd::{Simd, tanh};

#[inline(always)]
pub(super) fn forward<S: Simd>(s: S, step: Step) {
    let Step { gates, hidden, h, .. } = step;
    let mut i = 0;
    while i < h.len() {
        let v = tanh(s, s.add(get(s, gates, i), get(s, hidden, i)));
        put(s, gates, i, v);
        put(s, h, i, v);
        i += S::LANES;
    }
}

#[inline(always)]
pub(super) fn backward<S: Simd>(s: S, step: StepBack) {
    let StepBack { state, dh, dinput, dhidden, .. } = step;
    let mut i = 0;
    while i < dh.len() {
        // h′ = tanh(a): da = dh′·(1 − h′²)
        let v = get(s, state, i);
        let d = s.mul(get(s, dh, i), s.fnma(v, v, s.splat(1.0)));
        put(s, dinput, i, d);
        put(s, dhidden, i, d);
        put(s, dh, i, s.splat(0.0));
        i += S::LANES;
    }
}
