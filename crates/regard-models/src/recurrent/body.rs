//! Parts that all recurrent encoder–decoders share: encoder, target embedding, decoder and output
//! layer.

use super::{EncoderDecoderConfig, OutputWords, Reader, Readout, Widths};
use crate::checkpoint::Binder;
use burn::module::Module;
use regard_attention::Init;
use regard_attention::layers::Recurrent;

#[derive(Module, Debug)]
pub(crate) struct Body {
    pub encoder: Reader,
    pub words: OutputWords,
    pub decoder: Recurrent,
    pub readout: Readout,
    #[module(skip)]
    pub shape: EncoderDecoderConfig,
}

impl Body {
    /// Makes a decoder with `beside` inputs besides each token's embedding, and a context of width
    /// `context`.
    pub fn new(
        shape: &EncoderDecoderConfig,
        beside: usize,
        context: usize,
        init: &mut Init,
    ) -> Body {
        let widths = Widths { state: shape.hidden_size, context };
        Body {
            encoder: Reader::new(shape, init),
            words: OutputWords::new(shape, init),
            decoder: shape.writer(shape.embedding_size + beside).init(init),
            readout: Readout::new(shape, widths, init),
            shape: shape.clone(),
        }
    }

    /// Binds all tensors; `attention` binds those of the attention.
    pub fn bind(&mut self, b: &mut Binder, attention: impl FnOnce(&mut Binder)) {
        b.at("encoder", |b| self.encoder.bind(b));
        b.at("decoder", |b| {
            b.embedding("embed_tokens", &mut self.words.table);
            b.recurrent("rnn", &mut self.decoder);
            b.at("attention", |b| attention(b));
            self.readout.bind(b);
        });
    }
}
