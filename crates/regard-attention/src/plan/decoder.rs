//! A decoder on slices, for any number of sequences at once.
//!
//! Each sequence has its own cache and may be at any position. A call processes a chunk of tokens
//! of each: products see the rows of all chunks, attention sees each sequence alone. Every result
//! depends on its own sequence only, bit for bit: not on the other sequences, nor on how a prompt
//! is divided into chunks.

use super::decoder_layer::{DecoderLayer, PlannedLayer};
use super::sequence::{CacheMemory, CacheType, SequenceCache, most_pages};
use super::{Floats, PlannedNorm, PlannedResidual, PlannedTable};
use crate::layers::{Embedding, Norm, NormPlacement};
use regard_kernels::attention::PageShape;

/// The layers of a decoder.
#[derive(Clone, Debug)]
pub struct DecoderLayers<'a> {
    /// Token embeddings.
    pub words: &'a Embedding,
    /// Learned positions, which are added.
    pub positions: Option<&'a Embedding>,
    /// Factor of the token embeddings.
    pub embedding_scale: Option<f32>,
    /// Blocks.
    pub layers: Vec<DecoderLayer<'a>>,
    /// Norm after the last block.
    pub last: &'a Norm,
}

/// Tokens of one sequence to process.
pub struct Chunk<'a> {
    /// Cache of the sequence. The tokens are appended to it.
    pub cache: &'a mut SequenceCache,
    /// Tokens, at least one.
    pub tokens: &'a [u32],
    /// Whether they are a part of a prompt, rather than generated. (Both give the same results
    /// within rounding.)
    pub prompt: bool,
    /// Number of last tokens whose hidden states are returned.
    pub wanted: usize,
}

/// Place of a chunk in a call.
pub(super) struct Span {
    /// First row.
    pub first: usize,
    pub len: usize,
    /// Position of the first token in its sequence.
    pub position: usize,
}

/// Buffers of a decoder, which calls use one after another.
pub struct Work {
    pub(super) residual: PlannedResidual,
    pub(super) qkv: Floats,
    pub(super) context: Floats,
    pub(super) part: Floats,
    pub(super) normed: Floats,
    pub(super) spans: Vec<Span>,
    /// Hidden states that were wanted.
    hidden: Floats,
}

impl Default for Work {
    fn default() -> Work {
        Work {
            residual: PlannedResidual::new(NormPlacement::Pre),
            qkv: Floats::new(),
            context: Floats::new(),
            part: Floats::new(),
            normed: Floats::new(),
            spans: vec![],
            hidden: Floats::new(),
        }
    }
}

/// A decoder on slices. It is made once, and may be used by several threads, each with its own
/// [`Work`].
pub struct PlannedDecoder {
    words: PlannedTable,
    positions: Option<PlannedTable>,
    embedding_scale: Option<f32>,
    /// Norm before the first block.
    entry: PlannedNorm,
    layers: Vec<PlannedLayer>,
    /// The norm after each block.
    norms: Vec<PlannedNorm>,
    shape: PageShape,
    windows: Vec<Option<usize>>,
    memory: CacheMemory,
}

impl PlannedDecoder {
    /// Plans a decoder; `None` if a block has no norm before its attention, a relative bias or
    /// post-norm, or if blocks have different heads.
    ///
    /// # Panics
    /// If the weights are not on the CPU in single precision.
    pub fn new(decoder: &DecoderLayers) -> Option<PlannedDecoder> {
        let blocks = || decoder.layers.iter().map(|layer| layer.block);
        let can = |block: &crate::layers::Block| {
            block.norms == NormPlacement::Pre && block.distances.is_none()
        };
        if !blocks().all(can) {
            return None;
        }
        let entries: Option<Vec<&Norm>> = blocks().map(|x| x.attention_norm.as_ref()).collect();
        let entries = entries?;
        let layers: Vec<PlannedLayer> = decoder.layers.iter().map(PlannedLayer::new).collect();
        let (heads, width) = layers.first()?.heads();
        if layers.iter().any(|layer| layer.heads() != (heads, width)) {
            return None;
        }
        let after = entries.iter().skip(1).copied().chain([decoder.last]);
        Some(PlannedDecoder {
            words: PlannedTable::new(decoder.words),
            positions: decoder.positions.map(PlannedTable::new),
            embedding_scale: decoder.embedding_scale,
            entry: PlannedNorm::new(entries[0]),
            norms: after.map(PlannedNorm::new).collect(),
            shape: PageShape { heads: heads.keys, width },
            windows: layers.iter().map(PlannedLayer::window).collect(),
            layers,
            memory: CacheMemory::default(),
        })
    }

    /// `M`, the width of a hidden state.
    pub fn width(&self) -> usize {
        self.words.width()
    }

    /// Creates the empty cache of a sequence.
    pub fn sequence(&self, kind: CacheType) -> SequenceCache {
        SequenceCache::new(&self.windows, kind, self.shape, &self.memory)
    }

    /// Returns the most bytes that the cache of a sequence of `len` tokens may take, which is fed
    /// chunks of at most `chunk` tokens.
    pub fn sequence_bytes(&self, kind: CacheType, len: usize, chunk: usize) -> usize {
        let pages =
            self.windows.iter().map(|window| most_pages(*window, len, chunk)).sum::<usize>();
        pages.saturating_mul(kind.page_bytes(self.shape))
    }

    /// Returns the bytes that the caches of all sequences take.
    pub fn cache_bytes(&self) -> usize {
        self.memory.bytes()
    }

    /// Processes a chunk of each sequence, and returns the wanted hidden states, after the last
    /// norm, in order.
    ///
    /// # Shapes
    /// → `[Σ wanted, M]`
    ///
    /// # Panics
    /// If a chunk has no tokens or wants more rows than that, if a token is not in the vocabulary,
    /// or if a position is beyond the model's longest text.
    pub fn forward<'w>(&self, chunks: &mut [Chunk], work: &'w mut Work) -> &'w [f32] {
        work.spans.clear();
        let (mut first, mut ids) = (0, vec![]);
        for Chunk { cache, tokens, wanted, .. } in &*chunks {
            let len = tokens.len();
            assert!(len > 0 && *wanted <= len, "decoder: got a chunk of {len}, {wanted} wanted");
            work.spans.push(Span { first, len, position: cache.len() });
            first += len;
            ids.extend_from_slice(tokens);
        }
        self.embed(&ids, work);
        work.residual.start(&work.part, Some(&self.entry));
        for (number, (layer, next)) in self.layers.iter().zip(&self.norms).enumerate() {
            layer.forward(number, chunks, work, next);
        }
        let m = self.words.width();
        let Work { residual, hidden, spans, .. } = work;
        hidden.set_len(chunks.iter().map(|chunk| chunk.wanted).sum::<usize>() * m);
        let mut to = 0;
        for (chunk, span) in chunks.iter_mut().zip(&*spans) {
            chunk.cache.advance(span.len);
            let from = (span.first + span.len - chunk.wanted) * m;
            let rows = &residual.input()[from..from + chunk.wanted * m];
            hidden[to..to + rows.len()].copy_from_slice(rows);
            to += rows.len();
        }
        hidden
    }

    /// Looks up the embeddings of tokens, into `work.part`.
    fn embed(&self, ids: &[u32], work: &mut Work) {
        let Work { part: x, normed: place, spans, .. } = work;
        self.words.forward(ids, x);
        if let Some(scale) = self.embedding_scale {
            x.iter_mut().for_each(|x| *x *= scale);
        }
        if let Some(table) = &self.positions {
            let places = spans.iter().flat_map(|span| span.position..span.position + span.len);
            let places: Vec<u32> = places.map(|place| place as u32).collect();
            table.forward(&places, place);
            x.iter_mut().zip(&**place).for_each(|(x, place)| *x += place);
        }
    }
}
