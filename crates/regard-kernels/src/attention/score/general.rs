//! Luong's general score: `s = scale · qᵀ W k`.

use super::*;
use crate::gemm::micro::Product;

pub(super) const VARIANT: Variant = Variant {
    name: "general",
    params: &[("w", "[H,Dq,Dk]")],
    formula: "scale · qᵀ W k, scale = 1 unless given",
    paper: "Luong et al. 2015, arXiv:1508.04025",
};

/// `s = scale · qᵀ W k`, with a matrix for each head; queries and keys may differ in width.
#[derive(Clone, Copy, Debug)]
pub struct General;

impl Score for General {
    fn params(&self, dims: &Dims) -> Vec<Param> {
        vec![Param::new("w", [1, dims.h, dims.d, dims.dk])]
    }
    fn check(&self, _: &Grid) -> Result<(), Error> {
        Ok(())
    }
    #[allow(private_interfaces)]
    fn lower<'a>(&'a self, grid: &'a Grid, x: Operands<'a>, scale: f32) -> Lowered<'a> {
        let Dims { b, h, t, d, dk, .. } = grid.dims;
        let w = &x.params[0];
        // q′ = qᵀ W: linear in T, so it is done once.
        let mut q = vec![0.0; b * h * t * dk];
        for (row, out) in q.chunks_exact_mut(dk.max(1)).enumerate() {
            let (b, h, i) = (row / (h * t), row / t % h, row % t);
            for c in 0..d {
                let x = x.q.get(b, h, i, c);
                out.iter_mut().enumerate().for_each(|(o, out)| *out += x * w.get(0, h, c, o));
            }
        }
        let (q, k) = (Operand::Made(q, [b, h, t, dk]), Operand::Given(x.k));
        Lowered { pair: Box::new(Product), q, k, scale, weights: vec![], map: None, terms: vec![] }
    }
    #[allow(private_interfaces)]
    fn raise(&self, grid: &Grid, x: Operands, _: f32, grads: Raise) -> Vec<Vec<f32>> {
        let Dims { h, t, d, dk, .. } = grid.dims;
        let w = &x.params[0];
        let mut dw = vec![0.0; h * d * dk];
        for (row, dq) in grads.q.chunks_exact(dk.max(1)).enumerate() {
            let (b, h, i) = (row / (h * t), row / t % h, row % t);
            for c in 0..d {
                // forward: q′[o] += q[c] · w[c, o]
                let q = x.q.get(b, h, i, c);
                let mut sum = 0.0;
                for (o, dq) in dq.iter().enumerate() {
                    sum += dq * w.get(0, h, c, o);
                    dw[(h * d + c) * dk + o] += q * dq;
                }
                // SAFETY: the index is inside the view's shape, and this thread owns it.
                unsafe { *grads.dq.at(b, h, i, c) = sum };
            }
        }
        vec![dw]
    }
}
