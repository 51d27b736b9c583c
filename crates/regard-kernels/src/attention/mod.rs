//! Every attention as one fused, differentiable operation:
//!
//! ```text
//! out_i = Σ_j normalize_j( score(q_i, k_j) + bias(i, j) | mask(i, j) ) · v_j
//! ```
//!
//! (`| mask`: over the keys `j` that the mask allows.)
//!
//! An [`Attention`] is a choice of score, bias, mask and normaliser. [`Attention::forward`]
//! iterates over blocks of the score matrix and keeps two values per query; [`Attention::backward`]
//! recomputes the scores from them. Memory is linear in the sequence length.
//!
//! ```
//! use regard_kernels::attention::{Attention, AttentionInputs, mask::*};
//! use regard_kernels::view::{View, ViewMut};
//!
//! let (b, h, t, d) = (1, 2, 5, 4);
//! let x: Vec<f32> = (0..b * h * t * d).map(|i| (i as f32).sin()).collect();
//! let x = View::new(&x, [b, h, t, d]).unwrap();
//! let mut out = vec![0.0; b * h * t * d];
//! let attention = Attention::dot().mask(causal() & window(2, 0));
//! attention
//!     .forward(&AttentionInputs::new(x, x, x), &ViewMut::new(&mut out, [b, h, t, d]).unwrap())
//!     .unwrap();
//! // The first query attends only to itself.
//! assert_eq!(&out[..d], &x.to_vec()[..d]);
//! ```

pub mod bias;
pub mod formula;
pub mod mask;
pub mod normalize;
pub mod reference;
pub mod score;
pub mod variants;

mod backward;
mod decode;
mod dropout;
mod edges;
mod engine;
mod forward;
mod graph;
mod grid;
mod listed;
mod pages;
mod pair;
mod reduce;
mod rows;
mod sums;
mod term;
mod tile;
mod weights;

pub use backward::{InputGradients, ParamGradients, Upstream};
pub use decode::{PagedOptions, PagedQuery, RowQuery, RowScore, decode, decode_pages, decode_rows};
pub use dropout::AttentionDropout;
pub use forward::SavedAttention;
pub use graph::Graph;
pub use grid::{Dims, Grid, Positions};
pub use pages::{CacheType, KeyOrValue, Page, PageShape};
pub use reduce::WeightSummary;
pub use term::{Param, Values};
pub use tile::{At, Keys, Spans, Tile};
pub use variants::{Row, Setting, Settings, Variant, catalogue, find};
pub use weights::Selection;

use crate::rng::Stream;
use crate::view::{Error, View, bail};
use bias::Bias;
use mask::{Mask, Rule};
use normalize::{Normalizer, Softmax};
use score::{Dot, Score};
use std::sync::Arc;

/// Keys are processed in blocks that begin at multiples of this. Segments of a row
/// ([`mask::segments`]) that do not cross such a multiple, and longer ones that begin at one, give
/// bitwise the results that they would give alone.
pub const BLOCK: usize = engine::KEYS;

/// Attention with a score, biases, a mask and a normaliser.
#[derive(Clone, Debug)]
pub struct Attention {
    /// Score of a query and a key.
    pub score: Arc<dyn Score>,
    /// Biases added to the scores.
    pub biases: Vec<Arc<dyn Bias>>,
    /// Keys that each query may attend to.
    pub mask: Mask,
    /// Normaliser that maps scores to weights.
    pub normalizer: Arc<dyn Normalizer>,
    /// Scale of the score; `None` for the score's default.
    pub scale: Option<f32>,
    /// Positions of the queries among the keys.
    pub positions: Positions,
    /// Dropout of the weights; `None` for none.
    pub dropout: Option<AttentionDropout>,
}

/// Inputs of an attention.
#[derive(Clone)]
pub struct AttentionInputs<'a> {
    /// Queries, `[B, H, T, D]`.
    pub q: View<'a>,
    /// Keys, `[B, Hk, S, D]`, where `Hk` divides `H`.
    pub k: View<'a>,
    /// Values, `[B, Hk, S, E]`.
    pub v: View<'a>,
    /// Parameters of the score, then of each bias, as listed by [`Attention::params`].
    pub params: Vec<View<'a>>,
}

impl<'a> AttentionInputs<'a> {
    /// Creates inputs without parameters.
    pub fn new(q: View<'a>, k: View<'a>, v: View<'a>) -> AttentionInputs<'a> {
        AttentionInputs { q, k, v, params: vec![] }
    }
}

impl Attention {
    /// Creates scaled dot-product attention: softmax, no mask, no bias.
    pub fn dot() -> Attention {
        Attention::with_score(Dot)
    }

    /// Creates an attention with this score: softmax, no mask, no bias.
    pub fn with_score(score: impl Score + 'static) -> Attention {
        Attention {
            score: Arc::new(score),
            biases: vec![],
            mask: Mask::default(),
            normalizer: Arc::new(Softmax),
            scale: None,
            positions: Positions::End,
            dropout: None,
        }
    }

    /// Sets the mask.
    pub fn mask(self, mask: Mask) -> Attention {
        Attention { mask, ..self }
    }

    /// Adds a bias.
    pub fn bias(mut self, bias: impl Bias + 'static) -> Attention {
        self.biases.push(Arc::new(bias));
        self
    }

    /// Sets the normaliser.
    pub fn normalize(self, normalizer: impl Normalizer + 'static) -> Attention {
        Attention { normalizer: Arc::new(normalizer), ..self }
    }

    /// Sets the scale of the scores, in place of the score's default.
    pub fn scale(self, scale: f32) -> Attention {
        Attention { scale: Some(scale), ..self }
    }

    /// Sets the positions of the queries.
    pub fn positions(self, positions: Positions) -> Attention {
        Attention { positions, ..self }
    }

    /// Drops each weight with probability `p`.
    pub fn dropout(self, p: f32, noise: Stream) -> Attention {
        Attention { dropout: (p != 0.0).then_some(AttentionDropout { p, noise }), ..self }
    }

    /// Returns the parameters of the score and biases, in the order of [`AttentionInputs::params`].
    pub fn params(&self, dims: &Dims) -> Vec<Param> {
        let biases = self.biases.iter().flat_map(|bias| bias.params(dims));
        self.score.params(dims).into_iter().chain(biases).collect()
    }

    /// Returns the common sizes of queries, keys and values.
    ///
    /// # Errors
    /// If the shapes do not match.
    pub fn dims(q: [usize; 4], k: [usize; 4], v: [usize; 4]) -> Result<Dims, Error> {
        let ([b, h, t, d], [kb, hk, s, dk], [vb, vh, vs, e]) = (q, k, v);
        if h == 0 || hk == 0 {
            bail!("q, k: got {h} and {hk} heads, need at least one of each");
        }
        if h % hk != 0 {
            bail!("k: got Hk = {hk} heads, need a divisor of the queries' H = {h}");
        }
        if kb != b {
            bail!("k: got batch {kb}, need the queries' B = {b}");
        }
        if (vb, vh, vs) != (b, hk, s) {
            bail!("v: got [{vb},{vh},{vs},E], need the keys' [{b},{hk},{s},E]");
        }
        if d == 0 || dk == 0 || e == 0 {
            bail!("q, k, v: got widths {d}, {dk}, {e}, need at least 1");
        }
        Ok(Dims { b, h, hk, t, s, d, dk, e })
    }

    /// Checks all arguments before anything is computed.
    ///
    /// # Errors
    /// If a shape or value is invalid; the message names it.
    pub fn check(&self, inputs: &AttentionInputs) -> Result<Grid, Error> {
        let dims = Attention::dims(inputs.q.shape, inputs.k.shape, inputs.v.shape)?;
        let grid = Grid::new(dims, self.positions.clone())?;
        self.score.check(&grid)?;
        self.mask.check(&grid)?;
        self.normalizer.check()?;
        self.biases.iter().try_for_each(|bias| bias.check(&grid))?;
        if let Some(scale) = self.scale
            && !scale.is_finite()
        {
            bail!("scale: got {scale}, need a finite number");
        }
        if let Some(AttentionDropout { p, .. }) = self.dropout
            && !(0.0..1.0).contains(&p)
        {
            bail!("dropout: got {p}, need at least 0 and below 1");
        }
        let params = self.params(&dims);
        if inputs.params.len() != params.len() {
            let names: Vec<_> = params.iter().map(|p| p.name).collect();
            bail!(
                "params: got {}, need {}: {}",
                inputs.params.len(),
                params.len(),
                names.join(", ")
            );
        }
        for (given, Param { name, shape, values, .. }) in inputs.params.iter().zip(&params) {
            if given.shape != *shape {
                bail!("{name}: got shape {:?}, need {shape:?}", given.shape);
            }
            let bad = |x: &f32| !(x.is_finite() && *x > 0.0 && (x * x).is_normal());
            if *values == Values::Width
                && let Some(bad) = given.to_vec().into_iter().find(bad)
            {
                bail!("{name}: got {bad}, need a number well above 0");
            }
        }
        Ok(grid)
    }
}
