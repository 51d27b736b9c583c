//! Truncated self-attention over a sequence that is not over (Zhang et al. 2020,
//! arXiv:2002.02562): a row sees `left` rows before it and `right` after it, so that it can be
//! computed as soon as `right` more have come, and what is further back can be forgotten.

use super::call::dims;
use super::{Block, Call, Residual, SelfAttention};
use crate::attention::{Positions, mask};
use burn::tensor::Tensor;

/// How far a row sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// Rows before it.
    pub left: usize,
    /// Rows after it.
    pub right: usize,
}

impl Reach {
    /// The mask.
    pub fn mask(self) -> mask::Mask {
        mask::window(self.left, self.right)
    }
}

/// What [`SelfAttention::forward_streamed`] keeps of a sequence: memory for `left + right` rows.
#[derive(Clone, Debug, Default)]
pub struct StreamPast {
    /// Queries that wait for rows after them.
    waiting: Option<Tensor<4>>,
    /// Keys and values of the rows that someone may still see.
    seen: Option<[Tensor<4>; 2]>,
    /// Keys before the first query that waits.
    before: usize,
    /// Rows that came so far.
    came: usize,
}

/// A part of a sequence that comes in parts.
#[derive(Debug)]
pub struct Stream<'a, P = StreamPast> {
    /// How far a row sees.
    pub reach: Reach,
    /// The parts before.
    pub past: &'a mut P,
    /// Whether no part comes after it.
    pub last: bool,
}

impl SelfAttention {
    /// The rows that more rows complete, in order, and with the `last` ones all that are left. Put
    /// together, they are what [`SelfAttention::forward`] gives with the window of this reach. A part
    /// may complete no row, and the last one may be empty: so neither is a tensor always.
    ///
    /// # Shapes
    /// `x: [B, n, M]` → `[B, n′, M]`, none where there is no row
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use regard_attention::layers::{Call, Reach, SelfAttentionConfig, Stream, StreamPast};
    /// use regard_attention::{Attention, Init};
    ///
    /// let layer = SelfAttentionConfig::new(8, 2).init(&mut Init::new(0, &Device::flex()));
    /// let (reach, mut past) = (Reach { left: 4, right: 2 }, StreamPast::default());
    /// let three = Tensor::<3>::ones([1, 3, 8], &Device::flex());
    /// let dot = Attention::dot();
    /// let mut hear = |x, last| {
    ///     layer.forward_streamed(x, Call::new(&dot), Stream { reach, past: &mut past, last })
    /// };
    /// assert_eq!(hear(Some(three.clone()), false).unwrap().dims(), [1, 1, 8]);
    /// assert_eq!(hear(Some(three), false).unwrap().dims(), [1, 3, 8]);
    /// assert_eq!(hear(None, true).unwrap().dims(), [1, 2, 8]);
    /// ```
    ///
    /// # Panics
    /// With a cache: what is kept is in the stream's past.
    pub fn forward_streamed(
        &self,
        x: Option<Tensor<3>>,
        call: Call,
        Stream { reach, past, last }: Stream,
    ) -> Option<Tensor<3>> {
        assert!(call.cache.is_none(), "self-attention: a stream takes no cache");
        if let Some(x) = x {
            let [_, new, _] = x.dims();
            let [q, k, v] = self.split(self.project(x, &call, past.came));
            past.came += new;
            past.waiting = Some(behind(past.waiting.take(), q));
            past.seen = Some(match past.seen.take() {
                Some([seen_k, seen_v]) => [behind(Some(seen_k), k), behind(Some(seen_v), v)],
                None => [k, v],
            });
        }
        let [_, _, waiting, _] = past.waiting.as_ref()?.dims();
        let ready = if last { waiting } else { waiting.saturating_sub(reach.right) };
        if ready == 0 {
            return None;
        }
        let (queries, keys) = (past.waiting.take()?, past.seen.take()?);
        let batch = queries.dims()[0];
        let stand = Positions::Offsets(vec![past.before as i64; batch]);
        let [k, v] = keys.clone();
        let parts = [rows(queries.clone(), 0, ready), k, v];
        let attention = call.attention.clone().mask(reach.mask()).positions(stand);
        let call = Call { attention: &attention, ..call };
        let attention = call.attention(self.dropout, self.site, dims(&parts));
        let out = call.context(&attention, parts);
        let forgotten = (past.before + ready).saturating_sub(reach.left);
        past.before = past.before + ready - forgotten;
        past.waiting = (ready < waiting).then(|| rows(queries, ready, waiting));
        let all = keys[0].dims()[2];
        past.seen = (forgotten < all).then(|| keys.map(|x| rows(x, forgotten, all)));
        Some(self.out.forward(out))
    }
}

/// The part of a sequence that a [`Block`] keeps while it comes in parts.
#[derive(Clone, Debug, Default)]
pub struct BlockPast {
    attention: StreamPast,
    /// Rows that wait for the output of the attention.
    waiting: Option<Tensor<3>>,
}

/// A part of a sequence that comes in parts, for a [`Block`].
pub type BlockStream<'a> = Stream<'a, BlockPast>;

impl Block {
    /// The rows that more rows complete, as [`SelfAttention::forward_streamed`] gives them.
    ///
    /// # Shapes
    /// `x: [B, n, M]` → `[B, n′, M]`, none where there is no row
    pub fn forward_streamed(
        &self,
        x: Option<Tensor<3>>,
        call: Call,
        Stream { reach, past, last }: BlockStream,
    ) -> Option<Tensor<3>> {
        let mode = call.mode;
        let y = x.clone().map(|x| Residual::new(self.norms, self.entry(), x).input());
        let waiting: Vec<Tensor<3>> = past.waiting.take().into_iter().chain(x).collect();
        past.waiting = (!waiting.is_empty()).then(|| Tensor::cat(waiting, 1));
        let stream = Stream { reach, past: &mut past.attention, last };
        let attended =
            self.attended(call, |call| self.attention.forward_streamed(y, call, stream))?;
        let waiting = past.waiting.take().expect("as many rows wait as queries");
        let ([b, ready, m], [_, all, _]) = (attended.dims(), waiting.dims());
        past.waiting = (ready < all).then(|| waiting.clone().slice([0..b, ready..all, 0..m]));
        let x = waiting.slice([0..b, 0..ready, 0..m]);
        let mut residual = Residual::new(self.norms, None, x);
        self.conclude(&mut residual, attended, mode, None);
        Some(residual.input())
    }
}

fn behind(old: Option<Tensor<4>>, new: Tensor<4>) -> Tensor<4> {
    match old {
        Some(old) => Tensor::cat(vec![old, new], 2),
        None => new,
    }
}

fn rows(x: Tensor<4>, from: usize, to: usize) -> Tensor<4> {
    let [b, h, _, d] = x.dims();
    x.slice([0..b, 0..h, from..to, 0..d])
}
