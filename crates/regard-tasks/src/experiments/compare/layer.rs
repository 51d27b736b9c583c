//! The layers that are compared: from a sequence of vectors to one of the same width.

use burn::module::Module;
use burn::tensor::Tensor;
use regard_attention::layers::{
    Call, Convolution, ConvolutionConfig, Recurrent, RecurrentConfig, SelfAttention,
    SelfAttentionConfig, Sequences,
};
use regard_attention::mask::{Mask, full, window};
use regard_attention::ops::{Activation, Cell};
use regard_attention::{Attention, Init, Mode};

/// Neighbours that a truncated attention sees on each side.
pub const REACH: usize = 8;
/// Rows of a convolution's window.
pub const WINDOW: usize = 3;
/// Heads of an attention.
const HEADS: usize = 2;

/// Which layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A recurrence with `tanh`.
    Tanh,
    /// Long short-term memory.
    Lstm,
    /// A convolution over three neighbours.
    Convolution,
    /// Self-attention of all with all.
    Global,
    /// Self-attention within a window: truncated.
    Truncated,
}

impl Kind {
    /// All, in the order in which they are told.
    pub const ALL: [Kind; 5] =
        [Kind::Tanh, Kind::Lstm, Kind::Convolution, Kind::Global, Kind::Truncated];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Tanh => "RNN",
            Kind::Lstm => "LSTM",
            Kind::Convolution => "CNN",
            Kind::Global => "self-attention",
            Kind::Truncated => "truncated",
        }
    }

    /// How its cost grows with the length L, the width d and the window w, by its definition.
    pub fn growth(self) -> &'static str {
        match self {
            Kind::Tanh | Kind::Lstm => "L·d²",
            Kind::Convolution => "L·w·d²",
            Kind::Global => "L²·d",
            Kind::Truncated => "L·w·d",
        }
    }

    /// Which positions attend to which, if it attends.
    pub fn mask(self) -> Option<Mask> {
        match self {
            Kind::Global => Some(full()),
            Kind::Truncated => Some(window(REACH, REACH)),
            _ => None,
        }
    }

    /// The layer with its first values.
    pub fn init(self, width: usize, init: &mut Init) -> SequenceLayer {
        let parts = match self {
            Kind::Tanh => {
                Parts::Recurrent(RecurrentConfig::new(Cell::Rnn, width, width).init(init))
            }
            Kind::Lstm => {
                Parts::Recurrent(RecurrentConfig::new(Cell::Lstm, width, width).init(init))
            }
            Kind::Convolution => {
                let activation = Activation::Relu;
                let sizes =
                    ConvolutionConfig { inputs: width, outputs: width, width: WINDOW, activation };
                Parts::Convolution(sizes.init(init))
            }
            Kind::Global | Kind::Truncated => {
                Parts::Attention(SelfAttentionConfig::new(width, HEADS).init(init))
            }
        };
        SequenceLayer { parts, kind: self }
    }
}

/// What a layer is made of.
#[allow(clippy::large_enum_variant, reason = "a comparison has a handful of layers")]
#[derive(Module, Debug)]
pub enum Parts {
    /// From position to position.
    Recurrent(Recurrent),
    /// From neighbours.
    Convolution(Convolution),
    /// From wherever it looks.
    Attention(SelfAttention),
}

/// One of the layers.
#[derive(Module, Debug)]
pub struct SequenceLayer {
    /// Its weights.
    pub parts: Parts,
    /// Which.
    #[module(skip)]
    pub kind: Kind,
}

impl SequenceLayer {
    /// # Shapes
    /// `x: [B, T, M]` → the same
    pub fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        match &self.parts {
            Parts::Recurrent(layer) => layer.forward(x, None, None, Mode::Eval).0,
            Parts::Convolution(layer) => {
                let [b, t, m] = x.dims();
                let rows = layer.forward(x.reshape([b * t, m]), &Sequences::new(&vec![t; b]));
                rows.reshape([b, t, m])
            }
            Parts::Attention(layer) => {
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
        for kind in Kind::ALL {
            let layer = kind.init(16, &mut Init::new(0, &Device::flex()));
            let y = layer.forward(Tensor::<3>::ones([2, 9, 16], &Device::flex()));
            assert_eq!(y.dims(), [2, 9, 16], "{}", kind.name());
        }
    }
}
