//! The encoder–decoder with a fixed context: the source is encoded in one vector (Cho et al. 2014,
//! arXiv:1406.1078; Sutskever et al. 2014, arXiv:1409.3215).
//!
//! The context is the encoder's last state; it is concatenated with every input of the decoder. A
//! long sentence must fit into it, which is the weakness that attention was made for.

use crate::checkpoint::{Arrays, Binder};
use crate::cross_attention::AttendOptions;
use crate::network::{Definition, Description, InputKind};
use crate::recurrent::{
    Advanced, Beside, Body, EncoderDecoderConfig, PlannedStep, Read, Start, Step, Stepwise,
    Writing, describe,
};
use crate::seq2seq::Seq2Seq;
use burn::module::Module;
use burn::tensor::Tensor;
use regard_attention::Init;
use serde_json::Value;

/// `model_type` in `config.json`.
pub const MODEL_TYPE: &str = "rnn";

/// Configuration of the fixed-context encoder–decoder, as in `config.json`.
pub type Config = EncoderDecoderConfig;

#[derive(Module, Debug)]
pub(crate) struct Rnn {
    body: Body,
}

impl Rnn {
    pub fn new(config: &Config, init: &mut Init) -> Rnn {
        let h = config.hidden_size;
        Rnn { body: Body::new(config, h, h, init) }
    }

    /// Checks a configuration before any tensor is allocated.
    pub fn check(config: &Config) -> Result<(), String> {
        config.check()?;
        if config.start == Start::Learned {
            return Err(
                "start: \"learned\" would ignore the source, because the decoder's initial \
                        state is the context; take \"encoder\""
                    .to_string(),
            );
        }
        Ok(())
    }
}

impl Definition for Rnn {
    const READS: InputKind = InputKind::Pairs;

    fn types() -> Vec<&'static str> {
        vec![MODEL_TYPE]
    }

    fn make(json: &Value, _weights: Option<&Arrays>, init: &mut Init) -> Result<Rnn, String> {
        let config: Config = crate::parse(json)?;
        Rnn::check(&config)?;
        Ok(Rnn::new(&config, init))
    }

    fn config(&self) -> Value {
        crate::config_json(MODEL_TYPE, &self.body.shape)
    }

    fn bind(&mut self, b: &mut Binder) {
        self.body.bind(b, |_| {});
    }

    fn describe(&self) -> Description {
        describe(self)
    }

    fn into_seq2seq(self: Box<Self>) -> Option<Box<dyn Seq2Seq>> {
        Some(self)
    }
}

impl Stepwise for Rnn {
    fn look_in_words(&self) -> String {
        "none; the context is one vector, the encoder's last state".into()
    }

    fn body(&self) -> &Body {
        &self.body
    }

    fn at_once(&self) -> bool {
        true
    }

    fn begin(&self, read: Read) -> Writing {
        // One key and value: the context.
        let [layers, b, h] = read.start.h.dims();
        let context = read.start.h.clone().slice([layers - 1..layers, 0..b, 0..h]);
        let context = context.reshape([b, 1, h]);
        Writing::new(Read { states: context.clone(), lengths: vec![1; b], ..read }, context)
    }

    fn advance(&self, writing: &mut Writing, words: Tensor<3>, options: AttendOptions) -> Advanced {
        let ([r, t, _], [b, _, h]) = (words.dims(), writing.values.dims());
        let context = writing.values.clone().reshape([b, 1, 1, h]);
        let context = context.expand([b, r / b, t, h]).reshape([r, t, h]);
        let input = Tensor::cat(vec![words, context.clone()], 2);
        let (state, hidden) =
            self.body.decoder.forward(input, Some(&writing.hidden), None, options.mode);
        writing.hidden = hidden;
        Advanced { state, context, weights: None, log_prob: None }
    }

    fn plan(&self) -> Option<Box<dyn PlannedStep>> {
        Some(Box::new(Planned))
    }
}

/// A step on slices.
struct Planned;

impl PlannedStep for Planned {
    fn has_keys(&self) -> bool {
        false
    }

    fn advance(&mut self, step: &mut Step) {
        // The only value of a sentence is its context.
        let Step { sentences, context, .. } = step;
        let rows = sentences.rows();
        context.set_len((0..rows).map(|row| sentences.values(row).len()).sum());
        for (row, to) in context.chunks_exact_mut(sentences.values(0).len()).enumerate() {
            to.copy_from_slice(sentences.values(row));
        }
        step.advance_cells(Beside::Context);
        step.state.copy_from(step.rows.last());
    }
}
