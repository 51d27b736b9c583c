//! Gated recurrent unit (Cho et al. 2014), with the reset gate after the product, as in PyTorch and
//! cuDNN. `x` and `h` are the contributions of input and state to each gate, biases included:
//!
//! ```text
//! r = σ(x_r + h_r)
//! z = σ(x_z + h_z)
//! n = tanh(x_n + r·h_n)
//! h′ = (1 − z)·n + z·h
//! ```

use super::sequence::{Step, StepBack};
use crate::ops::lanes::{get, put};
use crate::simd::{Simd, sigmoid, tanh};

#[inline(always)]
pub(super) fn forward<S: Simd>(s: S, step: Step) {
    let Step { gates, hidden, h, extra, .. } = step;
    let n = h.len();
    let (r_gate, rest) = gates.split_at_mut(n);
    let (z_gate, n_gate) = rest.split_at_mut(n);
    let (h_r, rest) = hidden.split_at(n);
    let (h_z, h_n) = rest.split_at(n);
    let mut i = 0;
    while i < n {
        let r = sigmoid(s, s.add(get(s, r_gate, i), get(s, h_r, i)));
        let z = sigmoid(s, s.add(get(s, z_gate, i), get(s, h_z, i)));
        let inner = get(s, h_n, i);
        let new = tanh(s, s.fma(r, inner, get(s, n_gate, i)));
        // (1 − z)·n + z·h = n + z·(h − n)
        let next = s.fma(z, s.sub(get(s, h, i), new), new);
        put(s, r_gate, i, r);
        put(s, z_gate, i, z);
        put(s, n_gate, i, new);
        put(s, extra, i, inner);
        put(s, h, i, next);
        i += S::LANES;
    }
}

#[inline(always)]
pub(super) fn backward<S: Simd>(s: S, step: StepBack) {
    let StepBack { gates, extra, h, dh, dinput, dhidden, .. } = step;
    let n = dh.len();
    let one = s.splat(1.0);
    let mut i = 0;
    while i < n {
        let r = get(s, &gates[..n], i);
        let z = get(s, &gates[n..2 * n], i);
        let new = get(s, &gates[2 * n..], i);
        let d = get(s, dh, i);
        // h′ = (1 − z)·n + z·h
        let dz = s.mul(d, s.sub(get(s, h, i), new));
        let dn = s.mul(d, s.sub(one, z));
        put(s, dh, i, s.mul(d, z));
        // n = tanh(x_n + r·h_n)
        let da_n = s.mul(dn, s.fnma(new, new, one));
        let dr = s.mul(da_n, get(s, extra, i));
        // r, z = σ(a)
        let da_r = s.mul(dr, s.mul(r, s.sub(one, r)));
        let da_z = s.mul(dz, s.mul(z, s.sub(one, z)));
        for to in [&mut *dinput, &mut *dhidden] {
            put(s, &mut to[..n], i, da_r);
            put(s, &mut to[n..2 * n], i, da_z);
        }
        put(s, &mut dinput[2 * n..], i, da_n);
        put(s, &mut dhidden[2 * n..], i, s.mul(da_n, r));
        i += S::LANES;
    }
}
