//! Attention as one node of Burn's autodiff graph.

use crate::backend::{Buffer, Operands, Operation, by_rows, ok, view4};
use burn::backend::{Flex, TensorMetadata};
use burn::tensor::{Shape, TensorData};
use burn_flex::FlexTensor;
use regard_kernels::attention::{
    self as spec, AttentionInputs, Dims, InputGradients, SavedAttention, Selection, Upstream,
};
use regard_kernels::pool::parallel;
use regard_kernels::view::{Error, View, ViewMut};
use std::sync::{Arc, Mutex, PoisonError};

/// Numbers of attention heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heads {
    /// `H`, the number of query heads.
    pub queries: usize,
    /// `Hk`, the number of key-value heads, a divisor of `H`.
    pub keys: usize,
}

/// Packing of queries, keys and values into tensors.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Packing {
    /// `q [B,H,T,D]`, `k [B,Hk,S,D]`, `v [B,Hk,S,E]`
    Separate,
    /// `q [B,H,T,D]`, `k [B,Hk,S,D]`, and no values: only the weights are computed.
    Unvalued,
    /// `q [B,T,H·D]`, `kv [B,S,2·Hk·D]`
    KeysWithValues(Heads),
    /// `qkv [B,T,(H + 2·Hk)·D]`
    All(Heads),
}

/// Output of an attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// `[B,H,T,E]`, or `[B,T,H·E]` if the input was packed.
    Context,
    /// `[B,H,T,S]`
    Weights,
    /// `[B,H,T,E + S]`: the context, then the weights.
    Both,
    /// `[B,H,T,E + 2]`: the context, the log-probability of the choice, and its index.
    Choice,
}

/// The operation: operands by [`Packing`], then the parameters of score and biases.
#[derive(Clone, Debug)]
pub(crate) struct Attend {
    pub spec: Arc<spec::Attention>,
    pub packing: Packing,
    pub output: Output,
}

/// Saved by the forward for the backward.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    saved: Arc<SavedAttention>,
    y: FlexTensor,
}

/// Heads `from..from + count` of a tensor `[B, N, C·D]`.
fn heads_of(x: &FlexTensor, all: usize, from: usize, count: usize) -> Result<View<'_>, Error> {
    let (shape, layout) = (x.shape(), x.layout());
    if shape.num_dims() != 3 || !shape[2].is_multiple_of(all) {
        return Err(Error(format!("got shape {shape:?}, need [B, N, {all}·D] for {all} heads")));
    }
    let (d, strides) = (shape[2] / all, layout.strides());
    let [sb, sn, sd] = [strides[0], strides[1], strides[2]];
    let shape = [shape[0], count, shape[1], d];
    let offset = layout.start_offset() as isize + (from * d) as isize * sd;
    View::strided(x.storage(), shape, [sb, d as isize * sd, sn, sd], offset as usize)
}

impl Packing {
    /// Number of operands that hold queries, keys and values.
    fn operands(self) -> usize {
        match self {
            Packing::Separate => 3,
            Packing::Unvalued | Packing::KeysWithValues(_) => 2,
            Packing::All(_) => 1,
        }
    }

    fn inputs<'a>(self, x: &'a [FlexTensor]) -> Result<AttentionInputs<'a>, Error> {
        let (operands, params) = x.split_at(self.operands());
        let (q, k, v) = match self {
            Packing::Separate => (view4(&x[0])?, view4(&x[1])?, view4(&x[2])?),
            Packing::Unvalued => {
                let k = view4(&x[1])?;
                let [b, h, s, _] = k.shape;
                (view4(&x[0])?, k, View::strided(&[0.0], [b, h, s, 1], [0; 4], 0)?)
            }
            Packing::KeysWithValues(Heads { queries, keys }) => {
                let kv = &operands[1];
                let k = heads_of(kv, 2 * keys, 0, keys)?;
                (
                    heads_of(&operands[0], queries, 0, queries)?,
                    k,
                    heads_of(kv, 2 * keys, keys, keys)?,
                )
            }
            Packing::All(Heads { queries, keys }) => {
                let (x, all) = (&operands[0], queries + 2 * keys);
                let k = heads_of(x, all, queries, keys)?;
                (heads_of(x, all, 0, queries)?, k, heads_of(x, all, queries + keys, keys)?)
            }
        };
        let params = params.iter().map(view4).collect::<Result<_, _>>()?;
        Ok(AttentionInputs { q, k, v, params })
    }

    fn packed(self) -> bool {
        matches!(self, Packing::KeysWithValues(_) | Packing::All(_))
    }
}

/// Columns `from..from + width` of a tensor `[B, H, T, W]`.
fn columns(x: &FlexTensor, from: usize, width: usize) -> View<'_> {
    let whole = ok(view4(x));
    let [b, h, t, _] = whole.shape;
    let offset = x.layout().start_offset() as isize + from as isize * whole.strides[3];
    ok(View::strided(x.storage(), [b, h, t, width], whole.strides, offset as usize))
}

impl Attend {
    fn dims(&self, inputs: &AttentionInputs) -> Dims {
        ok(self.spec.check(inputs)).dims
    }

    /// Number of columns of the result besides the context.
    fn more(&self, dims: &Dims) -> usize {
        match self.output {
            Output::Context => 0,
            Output::Weights | Output::Both => dims.s,
            Output::Choice => 2,
        }
    }

    fn context(&self, inputs: &AttentionInputs, dims: &Dims) -> (FlexTensor, SavedAttention) {
        let Dims { b, h, t, e, .. } = *dims;
        let mut out = Buffer::new(b * h * t * e);
        let shape = [b, h, t, e];
        let room = ok(ViewMut::strided(&mut out, shape, by_rows(shape)));
        let saved = ok(self.spec.forward(inputs, &room));
        let y = if self.packing.packed() {
            out.tensor([b, t, h * e])
        } else {
            out.tensor_by_rows(shape)
        };
        (y, saved)
    }

    /// Only the weights; the context is that of empty values.
    fn weights(&self, inputs: &AttentionInputs, dims: &Dims) -> (FlexTensor, SavedAttention) {
        let Dims { b, h, t, s, .. } = *dims;
        let mut unused = Buffer::new(b * h * t);
        let room = ok(ViewMut::new(&mut unused, [b, h, t, 1]));
        let saved = ok(self.spec.forward(inputs, &room));
        let mut weights = Buffer::new(b * h * t * s);
        let room = ok(ViewMut::new(&mut weights, [b, h, t, s]));
        ok(self.spec.weights(inputs, &saved, Selection::default(), &room));
        (weights.tensor([b, h, t, s]), saved)
    }

    /// The context, followed by weights or a choice.
    fn with_more(&self, inputs: &AttentionInputs, dims: &Dims) -> (FlexTensor, SavedAttention) {
        let Dims { b, h, t, s, e, .. } = *dims;
        let wide = e + self.more(dims);
        let mut y = Buffer::new(b * h * t * wide);
        let strides = [h * t * wide, t * wide, wide, 1].map(|x| x as isize);
        let room = ok(ViewMut::strided(&mut y, [b, h, t, e], strides));
        let saved = ok(self.spec.forward(inputs, &room));
        if self.output == Output::Both {
            let rest = y.get_mut(e..).unwrap_or_default();
            let room = ok(ViewMut::strided(rest, [b, h, t, s], strides));
            ok(self.spec.weights(inputs, &saved, Selection::default(), &room));
        } else {
            assert!(!saved.pick.is_empty(), "choose: needs a hard normaliser");
            for (row, y) in y.chunks_exact_mut(wide).enumerate() {
                y[e] = saved.log_prob[row];
                y[e + 1] = saved.pick[row] as f32; // exact: the engine takes fewer than 2²⁴ keys
            }
        }
        (y.tensor([b, h, t, wide]), saved)
    }

    /// Gradients of queries, keys and values, each in `[B, N, H, D]` memory, and of parameters.
    fn backward_into(
        &self,
        room: &mut [Buffer; 3],
        inputs: &AttentionInputs,
        saved: &SavedAttention,
        upstream: &Upstream,
    ) -> Result<spec::ParamGradients, Error> {
        let [dq, dk, dv] = room;
        let view = |room, like: &View| ViewMut::strided(room, like.shape, by_rows(like.shape));
        let (q, k, v) = (&inputs.q, &inputs.k, &inputs.v);
        let to = InputGradients { dq: view(dq, q)?, dk: view(dk, k)?, dv: view(dv, v)? };
        self.spec.backward(inputs, saved, upstream, &to)
    }

    fn upstream<'a>(
        &self,
        y: &'a FlexTensor,
        dy: &'a FlexTensor,
        dims: &Dims,
        log_prob: &'a mut Vec<f32>,
    ) -> Upstream<'a> {
        let Dims { b, h, t, s, e, .. } = *dims;
        match self.output {
            Output::Context if self.packing.packed() => {
                let view = |x: &'a FlexTensor| ok(heads_of(x, h, 0, h));
                Upstream { out: Some((view(y), view(dy))), ..Upstream::default() }
            }
            Output::Context => {
                let out = Some((ok(view4(y)), ok(view4(dy))));
                Upstream { out, ..Upstream::default() }
            }
            Output::Weights => {
                let weights = Some((ok(view4(y)), ok(view4(dy))));
                Upstream { weights, ..Upstream::default() }
            }
            Output::Both => Upstream {
                out: Some((columns(y, 0, e), columns(dy, 0, e))),
                weights: Some((columns(y, e, s), columns(dy, e, s))),
                log_prob: None,
            },
            Output::Choice => {
                let column = columns(dy, e, 1);
                log_prob.extend((0..b * h * t).map(|row| {
                    let (b, h, i) = (row / (h * t), row / t % h, row % t);
                    column.get(b, h, i, 0)
                }));
                let out = Some((columns(y, 0, e), columns(dy, 0, e)));
                Upstream { out, weights: None, log_prob: Some(log_prob) }
            }
        }
    }
}

/// Concatenates arrays along the columns: `[N, a]`, `[N, b]`, … → `[N, a + b + …]`.
fn side_by_side(rows: usize, parts: &[(&[f32], usize)]) -> Buffer {
    let wide: usize = parts.iter().map(|(_, width)| width).sum();
    let mut all = Buffer::new(rows * wide);
    let each = (16 * 1024 / wide.max(1)).max(1);
    let chunks: Vec<_> = all.chunks_mut(each * wide).map(Mutex::new).collect();
    parallel(chunks.len(), &|chunk| {
        let mut to = chunks[chunk].lock().unwrap_or_else(PoisonError::into_inner);
        for (row, to) in to.chunks_exact_mut(wide).enumerate() {
            let (row, mut to) = (chunk * each + row, to);
            for (part, width) in parts {
                let (here, rest) = to.split_at_mut(*width);
                here.copy_from_slice(&part[row * width..][..*width]);
                to = rest;
            }
        }
    });
    drop(chunks);
    all
}

impl Operation for Attend {
    type Saved = Kept;

    fn forward(&self, x: &Operands<Flex>, _: bool) -> (FlexTensor, Kept) {
        let inputs = ok(self.packing.inputs(&x.floats));
        let dims = self.dims(&inputs);
        let (y, saved) = match self.output {
            Output::Context => self.context(&inputs, &dims),
            Output::Weights => self.weights(&inputs, &dims),
            Output::Both | Output::Choice => self.with_more(&inputs, &dims),
        };
        (y.clone(), Kept { saved: Arc::new(saved), y })
    }

    fn backward(
        &self,
        x: &Operands<Flex>,
        Kept { saved, y }: Kept,
        dy: FlexTensor,
        _: &[bool],
    ) -> Vec<Option<FlexTensor>> {
        let inputs = ok(self.packing.inputs(&x.floats));
        let dims = self.dims(&inputs);
        let Dims { b, t, s, d, .. } = dims;
        let mut log_prob = vec![];
        let upstream = self.upstream(&y, &dy, &dims, &mut log_prob);
        let shapes = [inputs.q.shape, inputs.k.shape, inputs.v.shape];
        let len = |shape: [usize; 4]| shape.iter().product();
        let (mut found, params): (Vec<_>, _) = match self.packing {
            Packing::Separate | Packing::Unvalued => {
                let mut room = shapes.map(|shape| Buffer::new(len(shape)));
                let params = self.backward_into(&mut room, &inputs, &saved, &upstream);
                let found = room.into_iter().zip(shapes).take(self.packing.operands());
                (found.map(|(room, shape)| room.tensor_by_rows(shape)).collect(), params)
            }
            Packing::KeysWithValues(Heads { queries, keys }) => {
                let mut room = shapes.map(|shape| Buffer::new(len(shape)));
                let params = self.backward_into(&mut room, &inputs, &saved, &upstream);
                let [dq, dk, dv] = room;
                let dkv = side_by_side(b * s, &[(&dk, keys * d), (&dv, keys * d)]);
                let dq = dq.tensor([b, t, queries * d]);
                (vec![dq, dkv.tensor([b, s, 2 * keys * d])], params)
            }
            Packing::All(Heads { queries, keys }) => {
                let mut room = shapes.map(|shape| Buffer::new(len(shape)));
                let params = self.backward_into(&mut room, &inputs, &saved, &upstream);
                let parts = [queries, keys, keys].map(|heads| heads * d);
                let parts: Vec<_> = room.iter().map(|x| &x[..]).zip(parts).collect();
                let dx = side_by_side(b * t, &parts);
                (vec![dx.tensor([b, t, (queries + 2 * keys) * d])], params)
            }
        };
        let made = |(gradient, given): (Vec<f32>, &FlexTensor)| {
            let shape: Shape = given.shape();
            FlexTensor::from_data(TensorData::new(gradient, shape))
        };
        let given = &x.floats[self.packing.operands()..];
        found.extend(ok(params).params.into_iter().zip(given).map(made));
        found.into_iter().map(Some).collect()
    }
}
