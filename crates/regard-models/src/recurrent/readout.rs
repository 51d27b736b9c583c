//! The output layer: from the decoder's state to logits.

use super::{EncoderDecoderConfig, ReadoutInputs};
use crate::checkpoint::Binder;
use burn::module::{Module, Param};
use burn::tensor::Tensor;
use regard_attention::layers::{Dropout, Embedding, Linear, LinearConfig};
use regard_attention::ops::Activation;
use regard_attention::{Init, Mode};

#[derive(Module, Debug)]
pub(crate) struct Readout {
    /// From the inputs to the width of an embedding, with `tanh`.
    pub mix: Option<Linear>,
    /// From there to logits; `None` if the embedding table is shared.
    pub out: Option<Linear>,
    /// `[V]`, with a shared embedding table.
    pub bias: Option<Param<Tensor<1>>>,
    pub dropout: Dropout,
}

/// Widths of the inputs of a [`Readout`].
pub(crate) struct Widths {
    pub state: usize,
    pub context: usize,
}

impl Readout {
    pub fn new(shape: &EncoderDecoderConfig, widths: Widths, init: &mut Init) -> Readout {
        let EncoderDecoderConfig { embedding_size: e, decoder_vocab_size: v, .. } = *shape;
        let deep = shape.readout == ReadoutInputs::Deep;
        let told = if deep { widths.state + widths.context + e } else { widths.state };
        // A shared embedding table needs inputs of its width.
        let mixed = deep || (shape.tie_word_embeddings && told != e);
        let mix = LinearConfig { activation: Activation::Tanh, ..LinearConfig::new(told, e) };
        let out = LinearConfig::new(if mixed { e } else { told }, v);
        let tied = shape.tie_word_embeddings;
        Readout {
            mix: mixed.then(|| mix.init(init)),
            out: (!tied).then(|| out.init(init)),
            bias: tied.then(|| init.constant([v], 0.0)),
            dropout: Dropout::new(shape.dropout, init),
        }
    }

    pub fn bind(&mut self, b: &mut Binder) {
        if let Some(mix) = &mut self.mix {
            b.linear("mix", mix);
        }
        if let Some(out) = &mut self.out {
            b.linear("out", out);
        }
        if let Some(bias) = &mut self.bias {
            b.tensor("out.bias", bias);
        }
    }

    /// Computes logits. Without `deep`, only the state is used.
    ///
    /// # Shapes
    /// `state: [B, T, H]`, `context: [B, T, C]`, `words: [B, T, E]` → `[B, T, V]`
    pub fn forward(
        &self,
        told: [Tensor<3>; 3],
        deep: bool,
        words: &Embedding,
        mode: Mode,
    ) -> Tensor<3> {
        let [state, context, word] = told;
        let x = if deep { Tensor::cat(vec![state, context, word], 2) } else { state };
        let x = match &self.mix {
            Some(mix) => mix.forward(x),
            None => x,
        };
        let x = self.dropout.forward(x, mode);
        match (&self.out, &self.bias) {
            (Some(out), _) => out.forward(x),
            (None, bias) => words.table.scores(x, bias.as_ref().map(Param::val)),
        }
    }
}
