//! Long short-term memory (Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al.
//! 2000). `a` is the sum of the contributions of input and state to each gate:
//!
//! ```text
//! i, f, o = σ(a_i), σ(a_f), σ(a_o)
//! g = tanh(a_g)
//! c′ = f·c + i·g
//! h′ = o·tanh(c′)
//! ```

use super::sequence::{Step, StepBack};
use crate::ops::lanes::{get, put};
use crate::simd::{Simd, sigmoid, tanh};

#[inline(always)]
pub(super) fn forward<S: Simd>(s: S, step: Step) {
    let Step { gates, hidden, h, c, extra, .. } = step;
    let n = h.len();
    let mut at = 0;
    while at < n {
        let mut a = [s.splat(0.0); 4];
        for (gate, a) in a.iter_mut().enumerate() {
            let from = gate * n..(gate + 1) * n;
            *a = s.add(get(s, &gates[from.clone()], at), get(s, &hidden[from], at));
        }
        let a = [sigmoid(s, a[0]), sigmoid(s, a[1]), tanh(s, a[2]), sigmoid(s, a[3])];
        for (gate, a) in a.iter().enumerate() {
            put(s, &mut gates[gate * n..(gate + 1) * n], at, *a);
        }
        let [i, f, g, o] = a;
        let cell = s.fma(f, get(s, c, at), s.mul(i, g));
        put(s, c, at, cell);
        put(s, extra, at, cell);
        put(s, h, at, s.mul(o, tanh(s, cell)));
        at += S::LANES;
    }
}

#[inline(always)]
pub(super) fn backward<S: Simd>(s: S, step: StepBack) {
    let StepBack { gates, extra, c, dh, dc, dinput, dhidden, .. } = step;
    let n = dh.len();
    let one = s.splat(1.0);
    let mut at = 0;
    while at < n {
        let mut gate = [s.splat(0.0); 4];
        for (k, gate) in gate.iter_mut().enumerate() {
            *gate = get(s, &gates[k * n..(k + 1) * n], at);
        }
        let [i, f, g, o] = gate;
        let squashed = tanh(s, get(s, extra, at));
        let d = get(s, dh, at);
        // h′ = o·tanh(c′)
        let d_o = s.mul(d, squashed);
        let through = s.mul(s.mul(d, o), s.fnma(squashed, squashed, one));
        let d_cell = s.add(get(s, dc, at), through);
        // c′ = f·c + i·g
        let d_i = s.mul(d_cell, g);
        let d_f = s.mul(d_cell, get(s, c, at));
        let d_g = s.mul(d_cell, i);
        put(s, dc, at, s.mul(d_cell, f));
        put(s, dh, at, s.splat(0.0));
        // i, f, o = σ(a), g = tanh(a)
        let da = [
            s.mul(d_i, s.mul(i, s.sub(one, i))),
            s.mul(d_f, s.mul(f, s.sub(one, f))),
            s.mul(d_g, s.fnma(g, g, one)),
            s.mul(d_o, s.mul(o, s.sub(one, o))),
        ];
        for (k, da) in da.iter().enumerate() {
            put(s, &mut dinput[k * n..(k + 1) * n], at, *da);
            put(s, &mut dhidden[k * n..(k + 1) * n], at, *da);
        }
        at += S::LANES;
    }
}
