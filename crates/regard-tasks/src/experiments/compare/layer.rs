//! The compared layers, each from a sequence of vectors to one of the same width.

use burn::module::Module;
use burn::tensor::Tensor;
use regard_attention::layers::{
    Call, Convolution, ConvolutionConfig, Recurrent, RecurrentConfig, SelfAttention,
    SelfAttentionConfig, Sequences,
};
use regard_attention::mask::{Mask, full, window};
use regard_attention::ops::{Activation, Cell};
use regard_attention::{Attention, Init, Mode};

/// Number of neighbours that truncated attention sees on each side.
pub const REACH: usize = 8;
/// Width of the convolution's window.
pub const WINDOW: usize = 3;
/// Number of attention heads.
const HEADS: usize = 2;

/// Kind of layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerKind {
    /// Recurrent layer with `tanh`.
    Tanh,
    /// Long short-term memory.
    Lstm,
    /// Convolution over three neighbours.
    Convolution,
    /// Self-attention over all positions.
    Global,
    /// Self-attention within a window of 8 positions on each side (truncated).
    Truncated,
}

impl LayerKind {
    /// All kinds, in the order of tables.
    pub const ALL: [LayerKind; 5] = [
        LayerKind::Tanh,
        LayerKind::Lstm,
        LayerKind::Convolution,
        LayerKind::Global,
        LayerKind::Truncated,
    ];

    /// Returns the name, as in tables and probes.
    pub fn name(self) -> &'static str {
        match self {
            LayerKind::Tanh => "RNN",
            LayerKind::Lstm => "LSTM",
            LayerKind::Convolution => "CNN",
            LayerKind::Global => "self-attention",
            LayerKind::Truncated => "truncated",
        }
    }

    /// Returns the complexity in the length L, the width d and the window w.
    pub fn growth(self) -> &'static str {
        match self {
            LayerKind::Tanh | LayerKind::Lstm => "L·d²",
            LayerKind::Convolution => "L·w·d²",
            LayerKind::Global => "L²·d",
            LayerKind::Truncated => "L·w·d",
        }
    }

    /// Returns the attention mask; `None` for a layer without attention.
    pub fn mask(self) -> Option<Mask> {
        match self {
            LayerKind::Global => Some(full()),
            LayerKind::Truncated => Some(window(REACH, REACH)),
            _ => None,
        }
    }

    /// Creates the layer with random weights.
    pub fn init(self, width: usize, init: &mut Init) -> SequenceLayer {
        let parts = match self {
            LayerKind::Tanh => {
                LayerWeights::Recurrent(RecurrentConfig::new(Cell::Rnn, width, width).init(init))
            }
            LayerKind::Lstm => {
                LayerWeights::Recurrent(RecurrentConfig::new(Cell::Lstm, width, width).init(init))
            }
            LayerKind::Convolution => {
                let activation = Activation::Relu;
                let sizes =
                    ConvolutionConfig { inputs: width, outputs: width, width: WINDOW, activation };
                LayerWeights::Convolution(sizes.init(init))
            }
            LayerKind::Global | LayerKind::Truncated => {
                LayerWeights::Attention(SelfAttentionConfig::new(width, HEADS).init(init))
            }
        };
        SequenceLayer { parts, kind: self }
    }
}

/// Weights of a layer.
#[allow(clippy::large_enum_variant, reason = "a comparison has a handful of layers")]
#[derive(Module, Debug)]
pub enum LayerWeights {
    /// Recurrent layer: RNN or LSTM.
    Recurrent(Recurrent),
    /// Convolution over neighbours.
    Convolution(Convolution),
    /// Self-attention under the mask of its kind.
    Attention(SelfAttention),
}

/// One of the compared layers.
#[derive(Module, Debug)]
pub struct SequenceLayer {
    /// Weights of the layer.
    pub parts: LayerWeights,
    /// Kind of layer, which determines the mask.
    #[module(skip)]
    pub kind: LayerKind,
}

impl SequenceLayer {
    /// # Shapes
    /// `x: [B, T, M]` → the same
    pub fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        match &self.parts {
            LayerWeights::Recurrent(layer) => layer.forward(x, None, None, Mode::Eval).0,
            LayerWeights::Convolution(layer) => {
                let [b, t, m] = x.dims();
                let rows = layer.forward(x.reshape([b * t, m]), &Sequences::new(&vec![t; b]));
                rows.reshape([b, t, m])
            }
            LayerWeights::Attention(layer) => {
                let mask = self.kind.mask().expect("it attends");
                layer.forward(x, Call::new(&Attention::dot().mask(mask)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;

    #[test]
    fn every_layer_keeps_the_shape() {
        for kind in LayerKind::ALL {
            let layer = kind.init(16, &mut Init::new(0, &Device::flex()));
            let y = layer.forward(Tensor::<3>::ones([2, 9, 16], &Device::flex()));
            assert_eq!(y.dims(), [2, 9, 16], "{}", kind.name());
        }
    }
}
