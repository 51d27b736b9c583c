//! Truncated self-attention for streaming (Zhang et al. 2020, arXiv:2002.02562): a row attends to
//! `left` rows before it and `right` rows after it, so it can be computed as soon as `right` more
//! rows have arrived, and rows further back can be discarded.

use super::call::dims;
use super::{Block, Call, Residual, SelfAttention};
use crate::attention::{Positions, mask};
use burn::tensor::Tensor;

/// Attention context of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// Number of rows before it.
    pub left: usize,
    /// Number of rows after it, the look-ahead.
    pub right: usize,
}

impl Reach {
    /// Returns the sliding-window mask of this context.
    pub fn mask(self) -> mask::Mask {
        mask::window(self.left, self.right)
    }
}

/// State of [`SelfAttention::forward_streamed`] between the parts of a sequence: memory for
/// `left + right` rows.
#[derive(Clone, Debug, Default)]
pub struct StreamState {
    /// Queries that wait for their look-ahead.
    waiting: Option<Tensor<4>>,
    /// Keys and values that queries may still attend to.
    seen: Option<[Tensor<4>; 2]>,
    /// Number of keys before the first waiting query.
    before: usize,
    /// Number of rows received.
    came: usize,
}

/// Position of a part within a streamed sequence.
#[derive(Debug)]
pub struct StreamPart<'a, P = StreamState> {
    /// Attention context of a row.
    pub reach: Reach,
    /// State left by the earlier parts.
    pub past: &'a mut P,
    /// Whether this is the last part.
    pub last: bool,
}

impl SelfAttention {
    /// Applies the layer to one part of a sequence. Returns the output rows that `x` completes, in
    /// order, and with `last` all that remain. Concatenated, they equal [`SelfAttention::forward`]
    /// with [`Reach::mask`]. A part may complete no row and the last part may be empty, so both
    /// input and output are optional.
    ///
    /// # Shapes
    /// `x: [B, n, M]` → `[B, n′, M]`; `None` for no rows
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use regard_attention::layers::{Call, Reach, SelfAttentionConfig, StreamPart, StreamState};
    /// use regard_attention::{Attention, Init};
    ///
    /// let layer = SelfAttentionConfig::new(8, 2).init(&mut Init::new(0, &Device::flex()));
    /// let (reach, mut past) = (Reach { left: 4, right: 2 }, StreamState::default());
    /// let three = Tensor::<3>::ones([1, 3, 8], &Device::flex());
    /// let dot = Attention::dot();
    /// let mut hear = |x, last| {
    ///     layer.forward_streamed(x, Call::new(&dot), StreamPart { reach, past: &mut past, last })
    /// };
    /// assert_eq!(hear(Some(three.clone()), false).unwrap().dims(), [1, 1, 8]);
    /// assert_eq!(hear(Some(three), false).unwrap().dims(), [1, 3, 8]);
    /// assert_eq!(hear(None, true).unwrap().dims(), [1, 2, 8]);
    /// ```
    ///
    /// # Panics
    /// With a cache, because earlier keys and values are in the stream's state; with an
    /// intervention that adds a mask, because its keys would be counted from the stream's window.
    pub fn forward_streamed(
        &self,
        x: Option<Tensor<3>>,
        call: Call,
        StreamPart { reach, past, last }: StreamPart,
    ) -> Option<Tensor<3>> {
        assert!(call.cache.is_none(), "self-attention: a stream takes no cache");
        assert!(
            call.intervention.is_none_or(|intervention| !intervention.has_mask()),
            "self-attention: an intervention on a stream cannot add a mask; set its reach"
        );
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

/// State of [`Block::forward_streamed`] between the parts of a sequence.
#[derive(Clone, Debug, Default)]
pub struct BlockStreamState {
    attention: StreamState,
    /// Rows that wait for the output of the attention.
    waiting: Option<Tensor<3>>,
}

/// Position of a part within a sequence streamed through a [`Block`].
pub type BlockStream<'a> = StreamPart<'a, BlockStreamState>;

impl Block {
    /// Applies the block to one part of a sequence; see [`SelfAttention::forward_streamed`].
    ///
    /// # Shapes
    /// `x: [B, n, M]` → `[B, n′, M]`; `None` for no rows
    pub fn forward_streamed(
        &self,
        x: Option<Tensor<3>>,
        call: Call,
        StreamPart { reach, past, last }: BlockStream,
    ) -> Option<Tensor<3>> {
        let mode = call.mode;
        let y = x.clone().map(|x| Residual::new(self.norms, self.entry(), x).input());
        let waiting: Vec<Tensor<3>> = past.waiting.take().into_iter().chain(x).collect();
        past.waiting = (!waiting.is_empty()).then(|| Tensor::cat(waiting, 1));
        let stream = StreamPart { reach, past: &mut past.attention, last };
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
