//! Graph attention: `s = scale · LeakyReLU(a_q · q + a_k · k)`.

use super::additive::LeakyOfSum;
use super::*;
use crate::attention::pair::ByFeature;
use crate::attention::rows::Rows;
use crate::attention::term::sum_over_batch;
use crate::pool::{Parts, parallel};

pub(super) const VARIANT: Variant = Variant {
    name: "edge",
    params: &[("a_q", "[H,D]"), ("a_k", "[H,D]")],
    formula: "scale · LeakyReLU(a_q · q + a_k · k; 0.2), scale = 1 unless given",
    paper: "Veličković et al. 2018, arXiv:1710.10903",
};

/// `s = scale · LeakyReLU(a_q·q + a_k·k)`: each row is one number before pairs are formed.
#[derive(Clone, Copy, Debug)]
pub struct Edge {
    /// Of the negative side.
    pub slope: f32,
}

/// `a_h · row` for every row; `group` query heads share a head of rows.
fn project(rows: &View, a: &View, group: usize) -> (Vec<f32>, [usize; 4]) {
    let [b, h, n, d] = rows.shape;
    let heads = h * group;
    let a = a.to_vec();
    let mut out = vec![0.0; b * heads * n];
    let parts = Parts::new(&mut out);
    parallel(b * heads, &|task| {
        let (b, head) = (task / heads, task % heads);
        let (a, rows) = (&a[head * d..][..d], Rows::of(rows, b, head / group));
        // SAFETY: each task has its own head, and the rows exist.
        unsafe {
            for (i, out) in parts.part(task * n, n).iter_mut().enumerate() {
                *out = a.iter().enumerate().map(|(c, a)| a * rows.get(i, c)).sum();
            }
        }
    });
    (out, [b, heads, n, 1])
}

/// From the gradient of `a_h · row`: writes the rows' and returns the one of `a`.
fn unproject(rows: &View, a: &View, group: usize, dp: &[f32], to: &ViewMut) -> Vec<f32> {
    let [b, h, n, d] = rows.shape;
    let a = a.to_vec();
    let mut each = vec![0.0; b * h * group * d];
    let parts = Parts::new(&mut each);
    parallel(b * h, &|task| {
        let (b, head) = (task / h, task % h);
        let rows = Rows::of(rows, b, head);
        // SAFETY: each task has its own head of rows, with the query heads that share it; the
        // rows exist in both.
        unsafe {
            let da = parts.part(task * group * d, group * d);
            for i in 0..n {
                for c in 0..d {
                    let (row, mut sum) = (rows.get(i, c), 0.0);
                    for g in 0..group {
                        // forward: p += a[c] · row[c]
                        let dp = dp[(task * group + g) * n + i];
                        // A masked key has no gradient, and may hold anything.
                        da[g * d + c] += if dp == 0.0 { 0.0 } else { dp * row };
                        sum += dp * a[(head * group + g) * d + c];
                    }
                    *to.at(b, head, i, c) = sum;
                }
            }
        }
    });
    sum_over_batch(&each, h * group, d)
}

impl Score for Edge {
    fn params(&self, dims: &Dims) -> Vec<Param> {
        ["a_q", "a_k"].map(|name| Param::new(name, [1, dims.h, 1, dims.d])).to_vec()
    }
    #[allow(private_interfaces)]
    fn lower<'a>(&'a self, grid: &'a Grid, x: Operands<'a>, scale: f32) -> Lowered<'a> {
        let (q, q_shape) = project(&x.q, &x.params[0], 1);
        let (k, k_shape) = project(&x.k, &x.params[1], grid.dims.group());
        Lowered {
            pair: Box::new(ByFeature(LeakyOfSum { slope: self.slope })),
            q: Operand::Made(q, q_shape),
            k: Operand::Made(k, k_shape),
            scale: 1.0,
            weights: vec![scale; grid.dims.h],
            map: None,
            terms: vec![],
        }
    }
    #[allow(private_interfaces)]
    fn raise(&self, grid: &Grid, x: Operands, _: f32, grads: Raise) -> Vec<Vec<f32>> {
        vec![
            unproject(&x.q, &x.params[0], 1, &grads.q, grads.dq),
            unproject(&x.k, &x.params[1], grid.dims.group(), &grads.k, grads.dk),
        ]
    }
}
