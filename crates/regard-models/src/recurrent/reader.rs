//! The encoder: embedding, recurrent layers, and the decoder's initial states.

use super::{EncoderDecoderConfig, Start};
use crate::checkpoint::Binder;
use crate::seq2seq::Source;
use burn::module::{Module, Param};
use burn::tensor::Tensor;
use regard_attention::layers::{
    Dropout, Embedding, EmbeddingConfig, LayerStates, Linear, LinearConfig, Recurrent,
    RecurrentConfig,
};
use regard_attention::ops::{Activation, Cell};
use regard_attention::{Init, Mode};

#[derive(Module, Debug)]
pub(crate) struct Reader {
    pub words: Embedding,
    pub rnn: Recurrent,
    pub dropout: Dropout,
    /// From the final states of both directions to one, for each layer: `h`, and for the LSTM `c`.
    pub bridge: Vec<Linear>,
    /// Learned initial states, `[L, H]`, for the LSTM `[2·L, H]`.
    pub learned: Option<Param<Tensor<2>>>,
}

/// Encoded source.
pub(crate) struct Read {
    /// `[B, S, W]`: a state for each token.
    pub states: Tensor<3>,
    /// Initial states of the decoder.
    pub start: LayerStates,
    /// `[B]`: tokens that are not padding.
    pub lengths: Vec<i64>,
}

impl Reader {
    pub fn new(shape: &EncoderDecoderConfig, init: &mut Init) -> Reader {
        let EncoderDecoderConfig { embedding_size: e, hidden_size: h, num_layers: layers, .. } =
            *shape;
        let parts = 1 + usize::from(shape.cell.cell() == Cell::Lstm);
        let words = EmbeddingConfig {
            padding: Some(i64::from(shape.pad_token_id)),
            deviation: 0.1,
            ..EmbeddingConfig::new(shape.vocab_size, e)
        };
        let rnn = RecurrentConfig { bidirectional: shape.bidirectional, ..shape.writer(e) };
        let bridged = shape.start == Start::Encoder && shape.bidirectional;
        let bridge = if bridged { parts * layers } else { 0 };
        let narrow =
            LinearConfig { activation: Activation::Tanh, ..LinearConfig::new(shape.memory(), h) };
        let learned = shape.start == Start::Learned;
        Reader {
            words: words.init(init),
            rnn: rnn.init(init),
            dropout: Dropout::new(shape.dropout, init),
            bridge: (0..bridge).map(|_| narrow.init(init)).collect(),
            learned: learned.then(|| init.normal([parts * layers, h], 0.1)),
        }
    }

    pub fn bind(&mut self, b: &mut Binder) {
        b.embedding("embed_tokens", &mut self.words);
        b.recurrent("rnn", &mut self.rnn);
        for (i, layer) in self.bridge.iter_mut().enumerate() {
            b.linear(&format!("bridge.{i}"), layer);
        }
        if let Some(learned) = &mut self.learned {
            b.tensor("start", learned);
        }
    }

    pub fn read(&self, source: &Source, mode: Mode) -> Read {
        let x = self.dropout.forward(self.words.forward(source.ids.clone()), mode);
        let (states, last) = self.rnn.forward(x, None, Some(&source.lengths), mode);
        let start = match &self.learned {
            Some(learned) => self.learned_start(learned, states.dims()[0]),
            None => self.bridged(last),
        };
        Read { states, start, lengths: source.valid() }
    }

    fn learned_start(&self, learned: &Param<Tensor<2>>, b: usize) -> LayerStates {
        let ([rows, h], layers) = (learned.dims(), self.rnn.layers.len());
        let part = |from: usize| {
            let rows = learned.val().slice([from..from + layers, 0..h]);
            rows.reshape([layers, 1, h]).expand([layers, b, h])
        };
        LayerStates { h: part(0), c: (rows > layers).then(|| part(layers)) }
    }

    /// `[L·2, B, H]` → `[L, B, H]`, or unchanged if the encoder has one direction.
    fn bridged(&self, last: LayerStates) -> LayerStates {
        if self.bridge.is_empty() {
            return last;
        }
        let layers = self.rnn.layers.len();
        let narrow = |states: Tensor<3>, linears: &[Linear]| {
            let [_, b, h] = states.dims();
            let each = linears.iter().enumerate().map(|(layer, linear)| {
                let both = states.clone().slice([2 * layer..2 * layer + 2, 0..b, 0..h]);
                linear.forward(both.swap_dims(0, 1).reshape([b, 2 * h])).unsqueeze_dim(0)
            });
            Tensor::cat(each.collect(), 0)
        };
        LayerStates {
            h: narrow(last.h, &self.bridge[..layers]),
            c: last.c.map(|c| narrow(c, &self.bridge[layers..])),
        }
    }
}
