//! Scaled dot product: `s = scale · Σ_d q_d k_d`.

use super::*;
use crate::gemm::micro::Product;

pub(super) const ROW: Row<dyn Score> = Row {
    about: Variant {
        name: "dot",
        params: &[],
        settings: &[],
        formula: "scale · (q · k), scale = 1/√D unless given",
        paper: "Vaswani et al. 2017, arXiv:1706.03762",
    },
    new: |_| Ok(Arc::new(Dot)),
    trials: DEFAULTS,
};

/// Scaled dot product `s = scale · (q · k)`, with `scale = 1/√D` unless given.
#[derive(Clone, Copy, Debug)]
pub struct Dot;

impl Score for Dot {
    fn default_scale(&self, dims: &Dims) -> f32 {
        1.0 / (dims.d as f32).sqrt()
    }
    fn formula(&self) -> Option<Expr> {
        Some(scale() * queries().dot(keys()))
    }
}

impl Lower for Dot {
    fn lower<'a>(&'a self, _: &'a Grid, x: ScoreOperands<'a>, scale: f32) -> Lowered<'a> {
        let (q, k) = (Operand::Given(x.q), Operand::Given(x.k));
        Lowered { pair: Box::new(Product), q, k, scale, weights: vec![], map: None, terms: vec![] }
    }
}
