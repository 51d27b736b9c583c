//! Sublayers of a Transformer decoder, one step at a time.

use super::{Attending, Floats, HeadRows, PlannedLinear, PlannedNorm, RowCache, attend};
use crate::Heads;
use crate::layers::{CrossAttention, FeedForward, NormPlacement, SelfAttention};

/// Self-attention with a KV cache.
pub struct PlannedSelfAttention {
    qkv: PlannedLinear,
    out: PlannedLinear,
    heads: Heads,
    scale: Option<f32>,
    /// Projections and context of a step.
    room: [Floats; 2],
}

impl PlannedSelfAttention {
    /// Plans a layer. `scale` is that of the scores; `None` for `1/√D`.
    pub fn new(layer: &SelfAttention, scale: Option<f32>) -> PlannedSelfAttention {
        let (qkv, out) = (PlannedLinear::new(&layer.qkv), PlannedLinear::new(&layer.out));
        PlannedSelfAttention { qkv, out, heads: layer.heads, scale, room: Default::default() }
    }

    /// Floats that a position takes in the cache.
    pub fn cached(&self) -> usize {
        2 * self.heads.keys * self.head_width()
    }

    fn head_width(&self) -> usize {
        self.qkv.outputs() / (self.heads.queries + 2 * self.heads.keys)
    }

    /// Computes one position of each row, and appends it to the cache.
    ///
    /// # Shapes
    /// `x: [R, M]` → `y: [R, M]`
    pub fn step(&mut self, x: &[f32], cache: &mut RowCache, y: &mut Floats) {
        let (width, Heads { queries, keys }) = (self.head_width(), self.heads);
        let stride = self.qkv.outputs();
        let [qkv, context] = &mut self.room;
        self.qkv.forward(x, qkv);
        cache.append(qkv, stride, 1);
        let (rows, (data, strides)) = (qkv.len() / stride, cache.data());
        let seen = |first| HeadRows { data, shape: [rows, cache.len()], strides, first };
        let with = Attending {
            q: HeadRows { data: qkv, shape: [rows, 1], strides: [stride, stride], first: 0 },
            k: seen(0),
            v: seen(keys * width),
            heads: Heads { queries, keys },
            width,
            scale: self.scale,
            lengths: None,
        };
        attend(&with, context);
        self.out.forward(context, y);
    }
}

/// Cross-attention to encoder states, whose keys and values are projected once.
pub struct PlannedCrossAttention {
    q: PlannedLinear,
    out: PlannedLinear,
    heads: Heads,
    room: [Floats; 2],
}

impl PlannedCrossAttention {
    /// Plans a layer.
    pub fn new(layer: &CrossAttention) -> PlannedCrossAttention {
        let (q, out) = (PlannedLinear::new(&layer.q), PlannedLinear::new(&layer.out));
        PlannedCrossAttention { q, out, heads: layer.heads, room: Default::default() }
    }

    /// Attends from rows of decoders to sentences of `lengths` valid tokens; the rows of a sentence
    /// follow each other, as many for each.
    ///
    /// # Shapes
    /// `x: [B·beams, M]`, `memory: [B, S, 2·Hk·D]`: keys, then values → `y: [B·beams, M]`
    pub fn step(&mut self, x: &[f32], memory: &[f32], lengths: &[i64], y: &mut Floats) {
        let (stride, sentences) = (self.q.outputs(), lengths.len());
        let width = stride / self.heads.queries;
        let [q, context] = &mut self.room;
        self.q.forward(x, q);
        let (beams, wide) = (q.len() / stride / sentences, 2 * self.heads.keys * width);
        let states = memory.len() / wide / sentences;
        let part = |first| {
            let (shape, strides) = ([sentences, states], [states * wide, wide]);
            HeadRows { data: memory, shape, strides, first }
        };
        let (shape, strides) = ([sentences, beams], [beams * stride, stride]);
        let with = Attending {
            q: HeadRows { data: q, shape, strides, first: 0 },
            k: part(0),
            v: part(wide / 2),
            heads: self.heads,
            width,
            scale: None,
            lengths: Some(lengths),
        };
        attend(&with, context);
        self.out.forward(context, y);
    }
}

/// Feed-forward network without a gate.
pub struct PlannedFeedForward {
    up: PlannedLinear,
    down: PlannedLinear,
    room: Floats,
}

impl PlannedFeedForward {
    /// Plans a network; `None` if it is gated.
    pub fn new(layer: &FeedForward) -> Option<PlannedFeedForward> {
        let (up, down) = (PlannedLinear::new(&layer.up), PlannedLinear::new(&layer.down));
        layer.gate.is_none().then_some(PlannedFeedForward { up, down, room: Floats::new() })
    }

    /// # Shapes
    /// `x: [R, M]` → `y: [R, M]`
    pub fn step(&mut self, x: &[f32], y: &mut Floats) {
        self.up.forward(x, &mut self.room);
        self.down.forward(&self.room, y);
    }
}

/// Residual stream; see [`layers::Residual`](crate::layers::Residual).
pub struct PlannedResidual {
    norms: NormPlacement,
    sum: Floats,
    input: Floats,
    spare: [Floats; 2],
}

impl PlannedResidual {
    /// Creates a stream.
    pub fn new(norms: NormPlacement) -> PlannedResidual {
        PlannedResidual {
            norms,
            sum: Floats::new(),
            input: Floats::new(),
            spare: Default::default(),
        }
    }

    /// Starts a step at `x`. `first` is the norm before the first sublayer; `None` with post-norm.
    pub fn start(&mut self, x: &[f32], first: Option<&PlannedNorm>) {
        self.sum.copy_from(x);
        match first {
            Some(norm) => norm.forward(x, &mut self.input),
            None => self.input.copy_from(x),
        }
    }

    /// Returns the input of the next sublayer; after the last one, the result.
    pub fn input(&self) -> &[f32] {
        &self.input
    }

    /// Adds the output of a sublayer; `norm` follows the addition.
    pub fn add(&mut self, part: &[f32], norm: Option<&PlannedNorm>) {
        // With post-norm, the sum is the normalised one.
        let before = match self.norms {
            NormPlacement::Pre => &self.sum,
            NormPlacement::Post => &self.input,
        };
        let [sum, input] = &mut self.spare;
        match norm {
            Some(norm) => norm.forward_sum(part, before, sum, input),
            None => {
                sum.copy_from(part);
                sum.iter_mut().zip(&**before).for_each(|(sum, x)| *sum += x);
                input.copy_from(sum);
            }
        }
        std::mem::swap(sum, &mut self.sum);
        std::mem::swap(input, &mut self.input);
    }
}
