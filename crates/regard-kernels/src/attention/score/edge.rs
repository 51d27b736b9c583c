//! Graph attention: `s = scale · LeakyReLU(a_q · q + a_k · k)`.

use super::additive::LeakyOfSum;
use super::*;
use crate::attention::pair::ByFeature;

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
    let mut out = Vec::with_capacity(b * heads * n);
    for b in 0..b {
        for head in 0..heads {
            let a: Vec<f32> = (0..d).map(|c| a.get(0, head, 0, c)).collect();
            for i in 0..n {
                let row = a.iter().enumerate().map(|(c, a)| a * rows.get(b, head / group, i, c));
                out.push(row.sum());
            }
        }
    }
    (out, [b, heads, n, 1])
}

/// From the gradient of `a_h · row`: adds to the rows' and returns the one of `a`.
fn unproject(rows: &View, a: &View, group: usize, dp: &[f32], to: &ViewMut) -> Vec<f32> {
    let [b, h, n, d] = rows.shape;
    let heads = h * group;
    spread(&vec![0.0; b * h * n * d], to, false);
    let mut da = vec![0.0; heads * d];
    for (at, dp) in dp.iter().enumerate() {
        let (b, head, i) = (at / (heads * n), at / n % heads, at % n);
        for c in 0..d {
            // forward: p += a[c] · row[c]
            da[head * d + c] += dp * rows.get(b, head / group, i, c);
            // SAFETY: the index is inside the view's shape, and this thread owns it.
            unsafe { *to.at(b, head / group, i, c) += dp * a.get(0, head, 0, c) };
        }
    }
    da
}

impl Score for Edge {
    fn params(&self, dims: &Dims) -> Vec<Param> {
        ["a_q", "a_k"].map(|name| Param { name, shape: [1, dims.h, 1, dims.d] }).to_vec()
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
