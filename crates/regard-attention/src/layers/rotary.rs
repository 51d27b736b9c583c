//! Rotary positions (Su et al. 2021) by configuration: base, scaling and partial rotation.

use crate::ops::{self, Angles, Pairs, Places};
use burn::module::Module;
use burn::tensor::Tensor;

/// Configures [`Rotary`] positions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RotaryConfig {
    /// Positions are `0..length`.
    pub length: usize,
    /// `D`, the width of a head.
    pub head_width: usize,
    /// How many of a head's numbers turn, the first ones; GPT-NeoX turns a quarter.
    pub turned: usize,
    /// `θ`, the base of the angles.
    pub base: f32,
    /// How angles were stretched for texts longer than those of training.
    pub scaling: Scaling,
    /// Which numbers are a pair.
    pub pairs: Pairs,
}

/// How angles are stretched for texts longer than those that a model was first trained with.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Scaling {
    /// Not at all.
    #[default]
    None,
    /// All by one factor (Chen et al. 2023, arXiv:2306.15595).
    Linear {
        /// How many times longer texts are.
        factor: f64,
    },
    /// As Llama 3.1: slow pairs by a factor, fast ones not, those between by a part of it.
    Llama3 {
        /// How much slow pairs are stretched.
        factor: f64,
        /// A pair that turns less often than this in a text of the original length is slow.
        low: f64,
        /// A pair that turns more often than this is fast.
        high: f64,
        /// The original length.
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
    /// All numbers of a head turn, halves are pairs, the base is 10000.
    pub fn new(length: usize, head_width: usize) -> RotaryConfig {
        let (base, scaling, pairs) = (10000.0, Scaling::None, Pairs::Halves);
        RotaryConfig { length, head_width, turned: head_width, base, scaling, pairs }
    }

    /// The positions.
    pub fn init(&self) -> Rotary {
        let RotaryConfig { length, head_width, turned, base, scaling, pairs } = *self;
        assert!(turned.is_multiple_of(2), "rotary: {turned} numbers do not fall into pairs");
        let turn = |i: usize| f64::from(base).powf(-2.0 * i as f64 / turned as f64);
        let frequencies = (0..turned / 2).map(|i| scaling.apply(turn(i))).collect();
        Rotary { angles: Angles::with_frequencies(length, head_width, frequencies, pairs) }
    }
}

/// Rotary positions (Su et al. 2021), for the first heads of a packed projection.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use regard_attention::layers::Rotary;
/// use regard_attention::ops::Places;
///
/// let rotary = Rotary::new(16, 8);
/// let x = Tensor::<3>::ones([1, 3, 24], &Device::flex());
/// // Two texts in one row: one of two tokens, and one of a single token.
/// let y = rotary.forward(x, 2, &Places::Each([0, 1, 0].into()));
/// assert_eq!(y.dims(), [1, 3, 24]);
/// ```
#[derive(Module, Debug)]
pub struct Rotary {
    /// Their sines and cosines.
    #[module(skip)]
    pub angles: Angles,
}

impl Rotary {
    /// For positions `0..length` and heads of width `D`: all turn, halves are pairs, the base is
    /// 10000.
    pub fn new(length: usize, width: usize) -> Rotary {
        RotaryConfig::new(length, width).init()
    }

    /// Turns the first `heads` heads.
    ///
    /// # Shapes
    /// `x: [B, T, C·D]` → the same
    pub fn forward(&self, x: Tensor<3>, heads: usize, places: &Places) -> Tensor<3> {
        ops::rotate(x, &self.angles, heads, places)
    }
}
