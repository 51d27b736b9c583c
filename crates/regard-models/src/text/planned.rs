//! Decoders on slices: all rows of a search, or sequences that come and go.

use super::Following;
use burn::tensor::{Int, Tensor, TensorData};
use regard_attention::layers::Weight;
use regard_attention::plan::{
    CacheType, Chunk, DecoderLayers, PlannedDecoder, PlannedLinear, SequenceCache, Work,
};

/// A causal language model on slices, with its head. Made once by
/// [`TextModel::plan`](super::TextModel::plan); several threads may use it, each with its own
/// [`Work`].
pub struct DecoderPlan {
    pub(super) decoder: PlannedDecoder,
    pub(super) head: PlannedHead,
    pub(super) longest: Option<usize>,
}

impl DecoderPlan {
    /// Size of the vocabulary.
    pub fn vocabulary(&self) -> usize {
        self.head.scores.outputs()
    }

    /// Longest sequence in tokens; `None` if there is no limit.
    pub fn longest(&self) -> Option<usize> {
        self.longest
    }

    /// Creates the empty cache of a sequence.
    pub fn sequence(&self, kind: CacheType) -> SequenceCache {
        self.decoder.sequence(kind)
    }

    /// Returns the most bytes that the cache of a sequence of `len` tokens may take, which is fed
    /// chunks of at most `chunk` tokens.
    pub fn sequence_bytes(&self, kind: CacheType, len: usize, chunk: usize) -> usize {
        self.decoder.sequence_bytes(kind, len, chunk)
    }

    /// Returns the bytes that the caches of all sequences take.
    pub fn cache_bytes(&self) -> usize {
        self.decoder.cache_bytes()
    }

    /// Processes a chunk of tokens of each sequence, and replaces the contents of `logits` by those
    /// of the wanted rows. A sequence gives the same bits whatever it is processed with.
    ///
    /// # Shapes
    /// `logits: [Σ wanted, V]`
    ///
    /// # Panics
    /// As [`PlannedDecoder::forward`].
    pub fn forward(&self, chunks: &mut [Chunk], work: &mut Work, logits: &mut Vec<f32>) {
        let hidden = self.hidden(chunks, work);
        self.logits(hidden, logits);
    }

    /// As [`DecoderPlan::forward`], without the head: returns the hidden states of the wanted rows.
    ///
    /// # Shapes
    /// → `[Σ wanted, M]`
    ///
    /// # Panics
    /// As [`PlannedDecoder::forward`].
    pub fn hidden<'w>(&self, chunks: &mut [Chunk], work: &'w mut Work) -> &'w [f32] {
        self.decoder.forward(chunks, work)
    }

    /// Replaces the contents of `logits` by those of any hidden states.
    ///
    /// # Shapes
    /// `hidden: [N, M]` → `logits: [N, V]`
    pub fn logits(&self, hidden: &[f32], logits: &mut Vec<f32>) {
        let rows = hidden.len() / self.width();
        // Not cleared first: all of it is overwritten.
        logits.resize(rows * self.vocabulary(), 0.0);
        if rows > 0 {
            self.head.forward(hidden, logits);
        }
    }

    /// `M`, the width of a hidden state.
    pub fn width(&self) -> usize {
        self.decoder.width()
    }
}

/// Language-modelling head on slices.
pub(crate) struct PlannedHead {
    pub scores: PlannedLinear,
    /// Soft limit of the logits.
    pub cap: Option<f32>,
}

impl PlannedHead {
    /// # Shapes
    /// `hidden: [N, M]` → `logits: [N, V]`
    pub fn forward(&self, hidden: &[f32], logits: &mut [f32]) {
        self.scores.forward_into(hidden, logits);
        if let Some(cap) = self.cap {
            logits.iter_mut().for_each(|x| *x = (*x / cap).tanh() * cap);
        }
    }
}

/// Rows of a search on slices.
pub(crate) struct PlannedRows {
    plan: PlannedDecoder,
    rows: Vec<SequenceCache>,
    width: usize,
    work: Work,
}

impl PlannedRows {
    /// Plans a decoder and processes prompts; `None` if it cannot be planned, or is not on the CPU.
    pub fn new(layers: &DecoderLayers, prompts: &[&[u32]]) -> Option<PlannedRows> {
        if !Weight::can_be_stored(&layers.words.table.device()) {
            return None;
        }
        let plan = PlannedDecoder::new(layers)?;
        let mut rows: Vec<SequenceCache> =
            prompts.iter().map(|_| plan.sequence(CacheType::F32)).collect();
        let mut work = Work::default();
        let chunk = |(cache, tokens)| Chunk { cache, tokens, prompt: true, wanted: 0 };
        let parts = rows.iter_mut().zip(prompts.iter().copied());
        let mut chunks: Vec<Chunk> =
            parts.filter(|(_, prompt)| !prompt.is_empty()).map(chunk).collect();
        if !chunks.is_empty() {
            plan.forward(&mut chunks, &mut work);
        }
        Some(PlannedRows { plan, rows, width: layers.words.table.dims()[1], work })
    }
}

impl Following for PlannedRows {
    fn step(&mut self, words: Tensor<2, Int>) -> Tensor<2> {
        let device = words.device();
        let ids: Vec<u32> = words.into_data().iter::<i64>().map(|id| id as u32).collect();
        let shape = [ids.len(), self.width];
        let hidden = self.step_slices(&ids).expect("a plan").to_vec();
        Tensor::from_data(TensorData::new(hidden, shape), &device)
    }

    fn step_slices(&mut self, words: &[u32]) -> Option<&[f32]> {
        let chunk = |(cache, tokens)| Chunk { cache, tokens, prompt: false, wanted: 1 };
        let parts = self.rows.iter_mut().zip(words.chunks(1));
        let mut chunks: Vec<Chunk> = parts.map(chunk).collect();
        Some(self.plan.forward(&mut chunks, &mut self.work))
    }

    fn reorder(&mut self, parents: &[usize]) {
        self.rows = parents.iter().map(|parent| self.rows[*parent].clone()).collect();
    }
}
