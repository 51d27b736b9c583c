//! One layer of a planned decoder.

use super::decoder::{Chunk, Span, Work};
use super::{Floats, Part, PlannedLinear, PlannedNorm, timed};
use crate::Heads;
use crate::backend::ok;
use crate::layers::{Block, Rotary};
use crate::ops::{Activation, Angles};
use regard_kernels::attention::mask::{causal, window};
use regard_kernels::attention::score::{Dot, SoftCap};
use regard_kernels::attention::{
    Attention, AttentionInputs, KeyOrValue, Page, PagedOptions, PagedQuery, decode_pages,
};
use regard_kernels::ops::gated::gated;
use regard_kernels::pool::parallel;
use regard_kernels::view::{View, ViewMut};
use std::sync::{Mutex, PoisonError};

/// Floats from which an operation on rows is divided among threads, and of each part. One thread
/// takes some microseconds for as many, about the time to wake another.
const SHARED: usize = 1 << 15;

/// Calls `work` with pieces of whole rows and the number of the first one of each, on all threads if
/// there are many rows.
fn in_pieces(x: &mut [f32], row: usize, work: &(dyn Fn(usize, &mut [f32]) + Sync)) {
    if x.len() < 2 * SHARED {
        return work(0, x);
    }
    let rows = (SHARED / row.max(1)).max(1);
    let pieces: Vec<_> = x.chunks_mut(rows * row).map(Mutex::new).collect();
    parallel(pieces.len(), &|piece| {
        let mut x = pieces[piece].lock().unwrap_or_else(PoisonError::into_inner);
        work(piece * rows, &mut x);
    });
}

/// A block of a decoder, with what is not part of it.
#[derive(Clone, Copy, Debug)]
pub struct DecoderLayer<'a> {
    /// The block, with norms before its sublayers.
    pub block: &'a Block,
    /// Rotary positions.
    pub rotary: Option<&'a Rotary>,
    /// Number of the last tokens that a token attends to, itself included; `None` for all.
    pub window: Option<usize>,
    /// Scale of the scores; `None` for `1/√D`.
    pub scale: Option<f32>,
    /// Soft limit of the scores.
    pub cap: Option<f32>,
}

/// A layer on slices.
pub(super) struct PlannedLayer {
    qkv: PlannedLinear,
    out: PlannedLinear,
    head_norms: Option<[PlannedNorm; 2]>,
    output_norms: Option<[PlannedNorm; 2]>,
    forward_norm: PlannedNorm,
    up: PlannedLinear,
    down: PlannedLinear,
    gate: Option<Activation>,
    rotary: Option<Angles>,
    heads: Heads,
    width: usize,
    window: Option<usize>,
    options: PagedOptions,
    /// Attention of a part of a prompt.
    attention: Attention,
}

impl PlannedLayer {
    pub fn new(layer: &DecoderLayer) -> PlannedLayer {
        let DecoderLayer { block, rotary, window: last, scale, cap } = *layer;
        let (attention, forward) = (&block.attention, &block.forward);
        let both = |norms: &[crate::layers::Norm; 2]| norms.each_ref().map(PlannedNorm::new);
        let heads = attention.heads;
        let width = attention.widths()[0] / heads.queries;
        let mask = match last {
            Some(last) => causal() & window(last - 1, 0),
            None => causal(),
        };
        let score = match cap {
            Some(cap) => Attention::with_score(SoftCap { cap }),
            None => Attention::with_score(Dot),
        };
        PlannedLayer {
            qkv: PlannedLinear::new(&attention.qkv),
            out: PlannedLinear::new(&attention.out),
            head_norms: attention.head_norms.as_ref().map(both),
            output_norms: block.output_norms.as_ref().map(both),
            forward_norm: PlannedNorm::new(&block.forward_norm),
            up: PlannedLinear::new(&forward.up),
            down: PlannedLinear::new(&forward.down),
            gate: forward.gate,
            rotary: rotary.map(|rotary| rotary.angles.clone()),
            heads,
            width,
            window: last,
            options: PagedOptions { heads: heads.queries, scale, cap },
            attention: Attention { mask, scale, ..score },
        }
    }

    pub fn heads(&self) -> (Heads, usize) {
        (self.heads, self.width)
    }

    pub fn window(&self) -> Option<usize> {
        self.window
    }

    /// Adds the layer to the residual stream. `next` is the norm after it.
    pub fn forward(
        &self,
        number: usize,
        chunks: &mut [Chunk],
        work: &mut Work,
        next: &PlannedNorm,
    ) {
        let Work { residual, qkv, context, part, normed, spans, .. } = work;
        self.qkv.forward(residual.input(), qkv);
        self.place(qkv, spans);
        self.store(number, qkv, chunks, spans);
        self.attend(number, qkv, chunks, spans, context);
        self.out.forward(context, part);
        residual.add(self.normed(0, part, normed), Some(&self.forward_norm));
        self.up.forward(residual.input(), qkv);
        match self.gate {
            None => self.down.forward(qkv, part),
            Some(activation) => {
                let hidden = self.up.outputs() / 2;
                context.set_len(qkv.len() / 2);
                ok(gated(activation, qkv, hidden, context));
                self.down.forward(context, part);
            }
        }
        residual.add(self.normed(1, part, normed), Some(next));
    }

    /// The output of a sublayer, normalised if the layer does so.
    fn normed<'a>(&self, which: usize, part: &'a Floats, room: &'a mut Floats) -> &'a [f32] {
        match &self.output_norms {
            None => part,
            Some(norms) => {
                norms[which].forward(part, room);
                room
            }
        }
    }

    /// Normalises queries and keys, and rotates them to their positions.
    fn place(&self, qkv: &mut Floats, spans: &[Span]) {
        let Heads { queries, keys } = self.heads;
        let (d, stride) = (self.width, self.qkv.outputs());
        if self.head_norms.is_none() && self.rotary.is_none() {
            return;
        }
        let positions = spans.iter().flat_map(|span| span.position..span.position + span.len);
        let positions: Vec<usize> = positions.collect();
        in_pieces(qkv, stride, &|first, qkv| {
            if let Some([q, k]) = &self.head_norms {
                let mut room = Floats::new();
                for row in qkv.chunks_exact_mut(stride) {
                    let (of_q, rest) = row.split_at_mut(queries * d);
                    for (norm, rows) in [(q, of_q), (k, &mut rest[..keys * d])] {
                        norm.forward(rows, &mut room);
                        rows.copy_from_slice(&room);
                    }
                }
            }
            if let Some(angles) = &self.rotary {
                let positions = positions[first..].iter().copied().take(qkv.len() / stride);
                angles.rotate_rows(qkv, stride, queries + keys, positions);
            }
        });
    }

    /// Appends keys and values to the caches.
    fn store(&self, number: usize, qkv: &[f32], chunks: &mut [Chunk], spans: &[Span]) {
        let (stride, first) = (self.qkv.outputs(), self.heads.queries * self.width);
        for (chunk, span) in chunks.iter_mut().zip(spans) {
            for i in 0..span.len {
                let row = &qkv[(span.first + i) * stride..][..stride];
                chunk.cache.write(number, span.position + i, &row[first..]);
            }
        }
    }

    /// The context of every row: of prompts by the engine, of generated tokens query by query. Which
    /// of them is used depends on the token alone, not on what else is computed, so that a sequence
    /// gives the same bits whatever it is processed with.
    fn attend(
        &self,
        number: usize,
        qkv: &[f32],
        chunks: &[Chunk],
        spans: &[Span],
        context: &mut Floats,
    ) {
        let (stride, wide) = (self.qkv.outputs(), self.heads.queries * self.width);
        context.set_len(qkv.len() / stride * wide);
        timed(Part::Attention, || {
            let pages: Vec<(Vec<&Page>, usize)> = chunks
                .iter()
                .map(|chunk| {
                    let (pages, from) = chunk.cache.pages(number);
                    (pages.collect(), from)
                })
                .collect();
            let mut queries = vec![];
            let mut rows = vec![];
            for ((chunk, span), (pages, from)) in chunks.iter().zip(spans).zip(&pages) {
                if chunk.prompt {
                    let context = &mut context[span.first * wide..][..span.len * wide];
                    self.attend_prompt(&qkv[span.first * stride..], span, (pages, *from), context);
                    continue;
                }
                for i in 0..span.len {
                    let end = span.position + i + 1;
                    let start = end.saturating_sub(self.window.unwrap_or(usize::MAX));
                    let q = &qkv[(span.first + i) * stride..][..wide];
                    queries.push(PagedQuery { q, pages, keys: start - from..end - from });
                    rows.push(span.first + i);
                }
            }
            if queries.is_empty() {
                return;
            }
            if rows.len() * wide == context.len() {
                return ok(decode_pages(&queries, self.options, context));
            }
            let mut room = Floats::new();
            room.set_len(rows.len() * wide);
            ok(decode_pages(&queries, self.options, &mut room));
            for (row, from) in rows.iter().zip(room.chunks_exact(wide)) {
                context[row * wide..][..wide].copy_from_slice(from);
            }
        });
    }

    /// The context of a part of a prompt, which follows what the pages hold before it.
    fn attend_prompt(
        &self,
        qkv: &[f32],
        span: &Span,
        (pages, from): (&[&Page], usize),
        context: &mut [f32],
    ) {
        let (Heads { queries: h, keys: hk }, d) = (self.heads, self.width);
        let stride = self.qkv.outputs();
        let keys = span.position + span.len - from;
        let mut both = Floats::new();
        both.set_len(2 * hk * keys * d);
        let (k, v) = both.split_at_mut(hk * keys * d);
        // A page of a head is a task: the pages of a long prompt are megabytes.
        let mut parts = vec![];
        for (which, all) in [(KeyOrValue::Key, &mut *k), (KeyOrValue::Value, &mut *v)] {
            for (head, of_head) in all.chunks_exact_mut(keys * d).enumerate() {
                let of_pages = of_head.chunks_mut(Page::POSITIONS * d).zip(pages);
                parts.extend(of_pages.map(|(to, page)| Mutex::new((head, which, to, *page))));
            }
        }
        let copy = |part: usize| {
            let mut part = parts[part].lock().unwrap_or_else(PoisonError::into_inner);
            let (head, which, to, page) = &mut *part;
            ok(page.read(*head, *which, to));
        };
        match 2 * hk * keys * d < SHARED {
            true => (0..parts.len()).for_each(copy),
            false => parallel(parts.len(), &copy),
        }
        drop(parts);
        let strides = [span.len * stride, d, stride, 1].map(|x| x as isize);
        let q = ok(View::strided(qkv, [1, h, span.len, d], strides, 0));
        let strides = [span.len * h * d, d, h * d, 1].map(|x| x as isize);
        let room = ok(ViewMut::strided(context, [1, h, span.len, d], strides));
        let [k, v] = [&*k, &*v].map(|x| ok(View::new(x, [1, hk, keys, d])));
        ok(self.attention.forward(&AttentionInputs::new(q, k, v), &room));
    }
}
