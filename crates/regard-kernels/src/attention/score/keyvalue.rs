//! Key–value score ("soft coding"): `s = scale · (a · q·k + b · q·v)`.

use super::*;
use crate::attention::formula::values;
use crate::gemm::micro::Product;
use crate::memory::room;

pub(super) const ROW: Row<dyn Score> = Row {
    about: Variant {
        name: "keyvalue",
        params: &[("a", "scalar"), ("b", "scalar")],
        settings: &[],
        formula: "scale · (a · (q · k) + b · (q · v)), scale = 1/√D unless given, E = D",
        paper: "–",
    },
    new: |_| Ok(Arc::new(KeyValue)),
    trials: DEFAULTS,
};

/// Key–value score `s = scale · (a · (q·k) + b · (q·v))`, with learned `a` and `b`; values are as
/// wide as keys.
#[derive(Clone, Copy, Debug)]
pub struct KeyValue;

impl Score for KeyValue {
    fn params(&self, _: &Dims) -> Vec<Param> {
        ["a", "b"].map(|name| Param::new(name, [1; 4], "1111")).to_vec()
    }
    fn check(&self, grid: &Grid) -> Result<(), Error> {
        let (d, e) = (grid.dims.d, grid.dims.e);
        if d != e {
            bail!("v: got width E = {e}, need D = {d}: keyvalue scores against values");
        }
        same_width(grid)
    }
    fn default_scale(&self, dims: &Dims) -> f32 {
        1.0 / (dims.d as f32).sqrt()
    }
    fn needs_values(&self) -> bool {
        true
    }
    fn formula(&self) -> Option<Expr> {
        let (by_key, by_value) = (queries().dot(keys()), queries().dot(values()));
        Some(scale() * (param(0) * by_key + param(1) * by_value))
    }
}

impl Lower for KeyValue {
    fn lower<'a>(&'a self, _: &'a Grid, x: ScoreOperands<'a>, scale: f32) -> Lowered<'a> {
        // a·(q·k) + b·(q·v) = q · (a·k + b·v) is linear in S, so it is computed once.
        let (a, b) = (x.params[0].get(0, 0, 0, 0), x.params[1].get(0, 0, 0, 0));
        let mut mixed = x.k.to_vec();
        mixed.iter_mut().zip(x.v.to_vec()).for_each(|(k, v)| *k = a * *k + b * v);
        let (q, k) = (Operand::Given(x.q), Operand::Made(mixed, x.k.shape));
        Lowered { pair: Box::new(Product), q, k, scale, weights: vec![], map: None, terms: vec![] }
    }
    fn raise(&self, _: &Grid, x: ScoreOperands, _: f32, grads: Raise) -> Vec<Vec<f32>> {
        // forward: k′ = a·k + b·v
        let (a, b) = (x.params[0].get(0, 0, 0, 0), x.params[1].get(0, 0, 0, 0));
        let times = |c: f32| -> Vec<f32> {
            let mut out = room(&[grads.k.len()]);
            out.extend(grads.k.iter().map(|x| c * x));
            out
        };
        spread(&times(a), grads.dk, false);
        spread(&times(b), grads.dv, true);
        let along = |y: Vec<f32>| -> f32 {
            // A masked key has no gradient, and may hold any values.
            let terms = grads.k.iter().zip(y).filter(|(x, _)| **x != 0.0);
            terms.map(|(x, y)| f64::from(*x) * f64::from(y)).sum::<f64>() as f32
        };
        vec![vec![along(x.k.to_vec())], vec![along(x.v.to_vec())]]
    }
}
