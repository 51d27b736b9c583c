//! Inputs of one attention call: queries, keys, values and parameters.

use anyhow::{Context, Result, bail};
use regard_kernels::attention::{
    Attention, AttentionInputs, Dims, InputGradients, ParamGradients, SavedAttention, Selection,
    Upstream, Values,
};
use regard_kernels::rng::Stream;
use regard_kernels::view::{View, ViewMut};

/// Arrays of one attention call, contiguous.
pub struct OwnedInputs {
    /// Sizes B, H, Hk, T, S, D, Dk and E.
    pub dims: Dims,
    /// `[B, H, T, D]`
    pub q: Vec<f32>,
    /// `[B, Hk, S, Dk]`
    pub k: Vec<f32>,
    /// `[B, Hk, S, E]`
    pub v: Vec<f32>,
    /// Parameters with their shapes, in the order of [`Attention::params`].
    pub params: Vec<(Vec<f32>, [usize; 4])>,
}

/// Allocates zeros of a shape; returns an error if they do not fit into memory.
pub fn zeros(what: &str, shape: [usize; 4]) -> Result<Vec<f32>> {
    let mut zeros = vec![];
    let count = shape.iter().try_fold(1usize, |n, axis| n.checked_mul(*axis));
    match count.filter(|count| zeros.try_reserve_exact(*count).is_ok()) {
        Some(count) => zeros.resize(count, 0.0),
        None => bail!("{what} of shape {shape:?} does not fit into memory"),
    }
    Ok(zeros)
}

impl OwnedInputs {
    /// Draws standard normal inputs, and parameters in valid ranges.
    pub fn random(attention: &Attention, dims: Dims, seed: u64) -> Result<OwnedInputs> {
        let draw = |what: &str, shape: [usize; 4], site: u64, scale: f32| -> Result<Vec<f32>> {
            let stream = Stream::new(seed, 0, site);
            let mut numbers = zeros(what, shape)?;
            numbers.iter_mut().enumerate().for_each(|(i, x)| *x = scale * stream.normal(i as u64));
            Ok(numbers)
        };
        let Dims { b, h, hk, t, s, d, dk, e } = dims;
        // First, because these allocations check whether the shape fits into memory.
        let q = draw("q", [b, h, t, d], 1, 1.0)?;
        let k = draw("k", [b, hk, s, dk], 2, 1.0)?;
        let v = draw("v", [b, hk, s, e], 3, 1.0)?;
        let mut params = vec![];
        for (at, param) in attention.params(&dims).into_iter().enumerate() {
            let numbers = match param.values {
                // Wide enough that no distance between random rows is at a kernel's edge.
                Values::Width => vec![2.2 * (d as f32).sqrt()],
                Values::Centres => {
                    (0..b * t).map(|at| (at % t) as f32 + s as f32 - t as f32).collect()
                }
                Values::Any => draw(param.name, param.shape, 10 + at as u64, 0.5)?,
            };
            params.push((numbers, param.shape));
        }
        Ok(OwnedInputs { dims, q, k, v, params })
    }

    /// Shapes of queries, keys, values and the output.
    pub fn shapes(&self) -> [[usize; 4]; 4] {
        let Dims { b, h, hk, t, s, d, dk, e } = self.dims;
        [[b, h, t, d], [b, hk, s, dk], [b, hk, s, e], [b, h, t, e]]
    }

    /// Views of the arrays, as [`Attention::forward`] takes them.
    pub fn inputs(&self) -> Result<AttentionInputs<'_>> {
        let [q, k, v, _] = self.shapes();
        let params = self.params.iter().map(|(data, shape)| View::new(data, *shape));
        Ok(AttentionInputs {
            q: View::new(&self.q, q).context("q")?,
            k: View::new(&self.k, k).context("k")?,
            v: View::new(&self.v, v).context("v")?,
            params: params.collect::<Result<_, _>>()?,
        })
    }

    /// Allocates the output.
    pub fn room(&self) -> Result<Vec<f32>> {
        zeros("out", self.shapes()[3])
    }

    /// Computes the output into `out`.
    pub fn forward(&self, attention: &Attention, out: &mut [f32]) -> Result<SavedAttention> {
        Ok(attention.forward(&self.inputs()?, &ViewMut::new(out, self.shapes()[3])?)?)
    }

    /// Computes the attention weights of some heads and rows, for every batch row.
    pub fn weights(
        &self,
        attention: &Attention,
        saved: &SavedAttention,
        heads: &[usize],
        rows: &[usize],
    ) -> Result<Vec<f32>> {
        let shape = [self.dims.b, heads.len(), rows.len(), self.dims.s];
        let mut weights = zeros("weights", shape)?;
        let asked = Selection { heads: Some(heads), rows: Some(rows) };
        let room = ViewMut::new(&mut weights, shape)?;
        attention.weights(&self.inputs()?, saved, asked, &room)?;
        Ok(weights)
    }

    /// Computes the gradients of `q`, `k` and `v` into `grads`; returns those of the parameters.
    pub fn backward(
        &self,
        attention: &Attention,
        out: &[f32],
        saved: &SavedAttention,
        dout: &[f32],
        grads: &mut [Vec<f32>; 3],
    ) -> Result<ParamGradients> {
        let [q, k, v, o] = self.shapes();
        let [dq, dk, dv] = grads;
        let to = InputGradients {
            dq: ViewMut::new(dq, q)?,
            dk: ViewMut::new(dk, k)?,
            dv: ViewMut::new(dv, v)?,
        };
        let upstream = Upstream {
            out: Some((View::new(out, o)?, View::new(dout, o)?)),
            ..Upstream::default()
        };
        Ok(attention.backward(&self.inputs()?, saved, &upstream, &to)?)
    }

    /// Allocates the gradients of `q`, `k` and `v`.
    pub fn gradient_room(&self) -> Result<[Vec<f32>; 3]> {
        let [q, k, v, _] = self.shapes();
        Ok([zeros("dq", q)?, zeros("dk", k)?, zeros("dv", v)?])
    }
}
