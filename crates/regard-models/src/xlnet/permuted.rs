//! Permutation language modelling by two-stream attention (section 2.3 of the paper).
//!
//! The *content* stream encodes the tokens; each attends to itself and those before it in the
//! order. The *query* stream knows only the positions of targets; it attends to the same keys, but
//! not to the target's own. Only targets have a query.

use super::Xlnet;
use super::questions::Questions;
use crate::text::{Texts, TwoStreams};
use burn::tensor::Tensor;
use regard_attention::Mode;
use regard_attention::layers::Call;
use regard_attention::mask::{Mask, dense_per_row, ranked};

/// A model for permutation language modelling, from
/// [`TextModel::permuting`](crate::text::TextModel::permuting), which only a model with two
/// streams and a head for words supports.
///
/// ```
/// use burn::tensor::Device;
/// use regard_attention::Mode;
/// use regard_models::text::{Head, Texts, create};
/// use regard_models::xlnet::{Permuted, Sight};
/// use serde_json::json;
///
/// let config = json!({
///     "model_type": "xlnet", "vocab_size": 30, "d_model": 16, "n_layer": 2, "n_head": 2,
///     "d_inner": 32,
/// });
/// let model = create(&config, Head::Words, 7, &Device::flex()).unwrap();
/// let mut texts = Texts::new();
/// texts.push(&[5, 6, 7, 8]);
/// let batch = Permuted {
///     texts: &texts,
///     sight: Sight::Orders(vec![vec![2, 0, 3, 1]]),
///     targets: &[1, 3],
///     memory: None,
/// };
/// let said = model.permuting().unwrap().predict(&batch, Mode::Eval);
/// assert_eq!(said.logits.dims(), [2, 30]);
/// ```
pub trait Permuting {
    /// Predicts the targets of a batch, each from the tokens before it in the order.
    ///
    /// # Panics
    /// If the parts of the batch do not fit each other.
    fn predict(&self, batch: &Permuted, mode: Mode) -> Predicted;

    /// Encodes texts of one length without a permutation, and returns the memory for the texts that
    /// follow them. There are no targets, and no gradient flows back.
    ///
    /// # Panics
    /// If the texts are of different lengths.
    fn remember(&self, texts: &Texts, mode: Mode) -> Memory;
}

/// A batch of texts, with targets and the order of prediction.
#[derive(Clone, Debug)]
pub struct Permuted<'a> {
    /// Texts; with a memory or with [`Sight::Cells`] they must have one length.
    pub texts: &'a Texts,
    /// Tokens that each prediction may use.
    pub sight: Sight,
    /// Tokens to predict, as indices over all texts, each at most once.
    pub targets: &'a [usize],
    /// Memory of the preceding texts, visible to all tokens.
    pub memory: Option<&'a Memory>,
}

/// Tokens that the prediction of a token may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sight {
    /// For each text of `n` tokens a permutation of `0..n`: a token is predicted from those before.
    Orders(Vec<Vec<usize>>),
    /// For each text the rank of each token: a token is predicted from those of a lower rank.
    /// Content vectors of one rank attend to each other, so tokens that are no targets should have
    /// one rank, the lowest: they are then encoded bidirectionally.
    Ranks(Vec<Vec<u32>>),
    /// `[B, T, T]`: whether the token at a position is predicted from the one at another. (The
    /// opposite of `perm_mask` in Hugging Face's library, where 1 masks.) A token without any
    /// visible token is predicted from its position alone.
    Cells(Vec<bool>),
}

/// Memory of the preceding texts: the inputs of each layer, detached from the gradient.
#[derive(Clone, Debug)]
pub struct Memory {
    /// `[B, tokens, M]` each.
    layers: Vec<Tensor<3>>,
}

/// Result of a prediction.
#[derive(Debug)]
pub struct Predicted {
    /// `[targets, V]`: logits.
    pub logits: Tensor<2>,
    /// Memory for the texts that follow these, row by row; `None` if texts have different lengths.
    pub memory: Option<Memory>,
}

impl Memory {
    /// Makes a memory from `[B, tokens, M]` for each layer.
    pub fn new(layers: Vec<Tensor<3>>) -> Memory {
        Memory { layers: layers.into_iter().map(Tensor::detach).collect() }
    }

    /// Number of tokens of each text.
    pub fn tokens(&self) -> usize {
        self.layers.first().map_or(0, |x| x.dims()[1])
    }

    /// Inputs of each layer, `[B, tokens, M]`.
    pub fn layers(&self) -> &[Tensor<3>] {
        &self.layers
    }
}

impl Permuted<'_> {
    /// Whether texts have one length, so that each is a row of a batch.
    fn even(&self) -> bool {
        self.texts.shape()[0] == self.texts.lengths().len()
    }

    fn check(&self) {
        let (lengths, tokens) = (self.texts.lengths(), self.texts.tokens());
        match &self.sight {
            Sight::Orders(orders) => {
                assert_eq!(orders.len(), lengths.len(), "permuted: need an order for each text");
                for (row, (order, n)) in orders.iter().zip(lengths).enumerate() {
                    let mut all = order.clone();
                    all.sort_unstable();
                    assert!(all.into_iter().eq(0..*n), "permuted: order {row}: need 0..{n}");
                }
            }
            Sight::Ranks(ranks) => {
                assert_eq!(ranks.len(), lengths.len(), "permuted: need ranks for each text");
                for (row, (ranks, n)) in ranks.iter().zip(lengths).enumerate() {
                    assert_eq!(ranks.len(), *n, "permuted: row {row} needs a rank for each token");
                }
            }
            Sight::Cells(cells) => {
                assert!(self.even(), "permuted: cells need texts of one length");
                let [b, t] = self.texts.shape();
                assert_eq!(cells.len(), b * t * t, "permuted: need B·T·T = {b}·{t}·{t} cells");
            }
        }
        assert!(!self.targets.is_empty(), "permuted: need at least one target");
        let mut told = vec![false; tokens];
        for at in self.targets {
            assert!(*at < tokens, "permuted: got target {at}, there are {tokens} tokens");
            assert!(!std::mem::replace(&mut told[*at], true), "permuted: got target {at} twice");
        }
        if let Some(memory) = self.memory {
            assert!(self.even(), "permuted: a memory needs texts of one length");
            let rows = memory.layers.first().map_or(0, |x| x.dims()[0]);
            assert_eq!(rows, lengths.len(), "permuted: the memory is of {rows} texts");
            let even = memory.layers.iter().all(|x| x.dims() == memory.layers[0].dims());
            assert!(even, "permuted: the layers' memories are of different sizes");
        }
    }

    /// Masks of the content stream and of the query stream.
    fn masks(&self, asked: &Questions) -> [Mask; 2] {
        let ranks = match &self.sight {
            Sight::Orders(orders) => orders.iter().map(|order| ranks(order)).collect(),
            Sight::Ranks(ranks) => ranks.clone(),
            Sight::Cells(cells) => {
                let all: Vec<usize> = (0..self.texts.tokens()).collect();
                return [self.dense(cells, &all, true), self.dense(cells, &asked.tokens(), false)];
            }
        };
        // Texts in one row do not attend to each other, so their ranks need not be comparable.
        let rows = if self.even() { ranks } else { vec![ranks.concat()] };
        [false, true].map(|strict| ranked(&rows, strict))
    }

    /// `[B, T, S]`: mask of the tokens `of`, after a memory that is visible to all; with `own`,
    /// each token attends to itself.
    fn dense(&self, cells: &[bool], of: &[usize], own: bool) -> Mask {
        let ([_, t], memory) = (self.texts.shape(), self.memory.map_or(0, Memory::tokens));
        let row = |at: &usize| {
            let mut seen = vec![true; memory];
            seen.extend_from_slice(&cells[at * t..][..t]);
            seen[memory + at % t] |= own;
            seen
        };
        dense_per_row(of.iter().flat_map(row).collect::<Vec<bool>>())
    }
}

/// Rank of each token in an order.
fn ranks(order: &[usize]) -> Vec<u32> {
    let mut ranks = vec![0; order.len()];
    order.iter().zip(0..).for_each(|(at, rank)| ranks[*at] = rank);
    ranks
}

impl TwoStreams for Xlnet {
    fn tell(&self, batch: &Permuted, mode: Mode) -> (Tensor<2>, Option<Memory>) {
        batch.check();
        let (texts, apart) = (batch.texts, apart(mode));
        let ([_, m], told) = (self.unknown.dims(), batch.targets.len());
        let memory = batch.memory.map_or(0, Memory::tokens);
        let scene = self.scene(texts, memory, mode);
        let asked = Questions::new(batch, &self.device());
        let [content_mask, query_mask] = self.masks(batch, &asked);
        let mut content = self.begin(texts, mode);
        let unknown = self.unknown.val().expand([told, m]);
        let mut query: Tensor<3> = self.dropout[0].forward(unknown, apart).unsqueeze();
        let mut kept = vec![];
        for (number, layer) in self.layers.iter().enumerate() {
            let known = self.remember(batch.memory, number, content.clone());
            kept.push(self.keep(&known, memory));
            let (score, keys) = (layer.score(&scene), layer.keys(known));
            let attention = asked.attention(score.clone(), memory).mask(query_mask.clone());
            let queries = asked.ask(layer.queries(query.clone()));
            let call = Call::new(&attention).mode(apart);
            let seen = asked.answers(layer.look(call, queries, keys.clone()));
            query = layer.conclude(query, seen, apart);
            // The content stream's output of the last layer is not used.
            if number + 1 < self.layers.len() {
                let attention = score.mask(content_mask.clone());
                let call = Call::new(&attention).mode(mode);
                let seen = layer.look(call, layer.queries(content.clone()), keys);
                content = layer.conclude(content, seen, mode);
            }
        }
        let told = self.dropout[2].forward(query.reshape([told, m]), mode);
        (told, batch.even().then_some(Memory { layers: kept }))
    }

    fn remember(&self, texts: &Texts, mode: Mode) -> Memory {
        let even = texts.shape()[0] == texts.lengths().len();
        assert!(even, "permuted: a memory needs texts of one length");
        let (scene, mask) = (self.scene(texts, 0, mode), self.seen(texts, 0));
        let mut x = self.begin(texts, mode);
        let mut kept = vec![];
        for (number, layer) in self.layers.iter().enumerate() {
            kept.push(self.keep(&x, 0));
            // The last layer's output is not part of the memory.
            if number + 1 < self.layers.len() {
                let attention = layer.score(&scene).mask(mask.clone());
                let (queries, keys) = (layer.queries(x.clone()), layer.keys(x.clone()));
                let seen = layer.look(Call::new(&attention).mode(mode), queries, keys);
                x = layer.conclude(x, seen, mode);
            }
        }
        Memory { layers: kept }
    }
}

impl Xlnet {
    /// Masks of the content stream and of the query stream, with the model's own rules.
    fn masks(&self, batch: &Permuted, asked: &Questions) -> [Mask; 2] {
        let masks = batch.masks(asked);
        if batch.even() && !self.rules.left_to_right {
            return masks;
        }
        let memory = batch.memory.map_or(0, Memory::tokens);
        masks.map(|mask| mask & self.seen(batch.texts, memory))
    }

    /// Prepends a layer's memory to its content vectors.
    ///
    /// # Shapes
    /// `content: [B, T, M]` → `[B, memory + T, M]`
    fn remember(&self, memory: Option<&Memory>, layer: usize, content: Tensor<3>) -> Tensor<3> {
        let Some(Memory { layers }) = memory else { return content };
        let (got, need) = (layers.len(), self.layers.len());
        assert_eq!(got, need, "permuted: a memory of {got} layers, the model has {need}");
        Tensor::cat(vec![layers[layer].clone(), content], 1)
    }

    /// Memory of a layer from its `[B, memory + T, M]`: the last tokens, up to the end of the
    /// reused part of the text.
    fn keep(&self, known: &Tensor<3>, memory: usize) -> Tensor<3> {
        let [b, s, m] = known.dims();
        let end = self.rules.reused.map_or(s, |first| s.min(memory + first));
        let start = self.rules.remembered.map_or(0, |most| end.saturating_sub(most));
        known.clone().detach().slice([0..b, start..end, 0..m])
    }
}

/// Returns the same step with another seed, so that the two streams have independent dropout.
fn apart(mode: Mode) -> Mode {
    match mode {
        Mode::Train { seed, step } => Mode::Train { seed: !seed, step },
        Mode::Eval => Mode::Eval,
    }
}
