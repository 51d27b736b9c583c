//! Rotary position embeddings (Su et al. 2021), with base, scaling and partial rotation.

use crate::ops::{self, Angles, Pairs, TokenPositions};
use burn::module::Module;
use burn::tensor::Tensor;

/// Configuration of [`Rotary`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RotaryConfig {
    /// Number of positions; positions are `0..length`.
    pub length: usize,
    /// `D`, the width of a head.
    pub head_width: usize,
    /// Number of features of a head that are rotated, the first ones. Default `D`; GPT-NeoX rotates
    /// a quarter.
    pub rotary_dim: usize,
    /// `θ`, the base of the frequencies. Default 10000.
    pub base: f32,
    /// Scaling of the frequencies for long contexts. Default [`Scaling::None`].
    pub scaling: Scaling,
    /// Pairing of features. Default [`Pairs::Halves`].
    pub pairs: Pairs,
}

/// Scaling of rotary frequencies, for contexts longer than those of pre-training.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Scaling {
    /// No scaling.
    #[default]
    None,
    /// All frequencies divided by one factor (Chen et al. 2023, arXiv:2306.15595).
    Linear {
        /// Factor by which the context is extended.
        factor: f64,
    },
    /// Llama 3.1's scaling: low frequencies are divided by a factor, high ones are kept, those
    /// between are interpolated.
    Llama3 {
        /// Factor that low frequencies are divided by.
        factor: f64,
        /// Low frequencies: pairs with fewer full rotations than this in the original context
        /// length.
        low: f64,
        /// High frequencies: pairs with more full rotations than this.
        high: f64,
        /// Original context length, in tokens.
        original: f64,
    },
}

impl Scaling {
    fn apply(self, frequency: f64) -> f64 {
        match self {
            Scaling::None => frequency,
            Scaling::Linear { factor } => frequency / factor,
            Scaling::Llama3 { factor, low, high, original } => {
                let turns = original * frequency / std::f64::consts::TAU;
                let fast = ((turns - low) / (high - low)).clamp(0.0, 1.0);
                frequency * (fast + (1.0 - fast) / factor)
            }
        }
    }
}

impl RotaryConfig {
    /// Creates a configuration in which all features of a head rotate, paired by halves, with base
    /// 10000.
    pub fn new(length: usize, head_width: usize) -> RotaryConfig {
        let (base, scaling, pairs) = (10000.0, Scaling::None, Pairs::Halves);
        RotaryConfig { length, head_width, rotary_dim: head_width, base, scaling, pairs }
    }

    /// Returns the scaled frequencies, one for each pair of features: radians per position.
    pub fn frequencies(&self) -> Vec<f64> {
        let RotaryConfig { rotary_dim, base, scaling, .. } = *self;
        let turn = |i: usize| f64::from(base).powf(-2.0 * i as f64 / rotary_dim as f64);
        (0..rotary_dim / 2).map(|i| scaling.apply(turn(i))).collect()
    }

    /// Creates the embedding.
    ///
    /// # Panics
    /// If `rotary_dim` is odd or above `head_width`.
    pub fn init(&self) -> Rotary {
        let RotaryConfig { length, head_width, rotary_dim, pairs, .. } = *self;
        assert!(
            rotary_dim.is_multiple_of(2),
            "rotary: got {rotary_dim} features, need an even number"
        );
        let frequencies = self.frequencies();
        Rotary { angles: Angles::with_frequencies(length, head_width, frequencies, pairs) }
    }
}

/// Rotary position embeddings (Su et al. 2021), applied to the first heads of a packed projection.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use regard_attention::layers::Rotary;
/// use regard_attention::ops::TokenPositions;
///
/// let rotary = Rotary::new(16, 8);
/// let x = Tensor::<3>::ones([1, 3, 24], &Device::flex());
/// // Two sequences packed into one row: one of two tokens, and one of a single token.
/// let y = rotary.forward(x, 2, &TokenPositions::Each([0, 1, 0].into()));
/// assert_eq!(y.dims(), [1, 3, 24]);
/// ```
#[derive(Module, Debug)]
pub struct Rotary {
    /// Cosines and sines of the rotation angles.
    #[module(skip)]
    pub angles: Angles,
}

impl Rotary {
    /// Creates the embedding for positions `0..length` and heads of `width` features: all of them
    /// rotate, paired by halves, with base 10000.
    pub fn new(length: usize, width: usize) -> Rotary {
        RotaryConfig::new(length, width).init()
    }

    /// Rotates the first `heads` heads, with tokens at the positions `places`.
    ///
    /// # Shapes
    /// `x: [B, T, C·D]` → the same
    pub fn forward(&self, x: Tensor<3>, heads: usize, places: &TokenPositions) -> Tensor<3> {
        ops::rotate(x, &self.angles, heads, places)
    }
}
