//! Decoding step by step: with teacher forcing in training, with predictions in inference.

use super::plan::{Planned, PlannedStep};
use super::{Body, EncoderDecoderConfig, Read, ReadoutInputs};
use crate::cross_attention::AttendOptions;
use crate::network::{Definition, Description};
use crate::seq2seq::{Change, Decoding, Next, Rows, Scores, Seq2Seq, Source, index};
use burn::module::Module;
use burn::tensor::{Int, Tensor};
use regard_attention::layers::{Dropout, Embedding, EmbeddingConfig, LayerStates, Weight};
use regard_attention::{Init, Mode};

/// Target embedding, with dropout.
#[derive(Module, Debug)]
pub(crate) struct OutputWords {
    pub table: Embedding,
    pub dropout: Dropout,
}

impl OutputWords {
    pub fn new(shape: &EncoderDecoderConfig, init: &mut Init) -> OutputWords {
        let table = EmbeddingConfig {
            padding: Some(i64::from(shape.pad_token_id)),
            deviation: 0.1,
            ..EmbeddingConfig::new(shape.decoder_vocab_size, shape.embedding_size)
        };
        OutputWords { table: table.init(init), dropout: Dropout::new(shape.dropout, init) }
    }

    fn forward(&self, ids: Tensor<2, Int>, mode: Mode) -> Tensor<3> {
        self.dropout.forward(self.table.forward(ids), mode)
    }
}

/// Decoding state between two steps.
#[derive(Clone, Debug)]
pub(crate) struct Writing {
    /// States of the decoder's layers, for each row.
    pub hidden: LayerStates,
    /// Last output, if it is fed back: `[R, 1, F]`.
    pub fed: Option<Tensor<3>>,
    /// `[B, S, A]`: keys of the attention.
    pub keys: Tensor<3>,
    /// `[B, S, W]`: values of the attention.
    pub values: Tensor<3>,
    /// `[B]`: source tokens that are not padding.
    pub lengths: Vec<i64>,
    /// Number of tokens decoded so far.
    pub number: usize,
    /// Sentence of each row.
    pub rows: Rows,
}

/// Result of one step.
pub(crate) struct Advanced {
    /// `[R, T, H]`
    pub state: Tensor<3>,
    /// `[R, T, C]`
    pub context: Tensor<3>,
    /// `[R, T, S]`
    pub weights: Option<Tensor<3>>,
    /// `[R, T]`
    pub log_prob: Option<Tensor<2>>,
}

/// A decoder that takes one step at a time.
pub(crate) trait Stepwise: Definition {
    fn body(&self) -> &Body;
    /// Describes the attention to the encoder's states in words.
    fn look_in_words(&self) -> String;
    /// Whether all steps can be computed at once, because none needs the previous one's output.
    fn at_once(&self) -> bool;
    /// Makes the decoding state.
    fn begin(&self, read: Read) -> Writing;
    /// Computes a step. `words: [R, T, E]`, with `T` = 1 unless steps can be computed at once.
    fn advance(&self, writing: &mut Writing, words: Tensor<3>, options: AttendOptions) -> Advanced;
    /// Plans a step on slices; `None` if the model attends in a way that plans do not have.
    fn plan(&self) -> Option<Box<dyn PlannedStep>>;
}

/// Describes a recurrent encoder–decoder.
pub(crate) fn describe(model: &impl Stepwise) -> Description {
    let attention = vec![format!("decoder to encoder: {}", model.look_in_words())];
    Description { attention, ..Description::of_texts(Some(model.body().shape.vocab_size), None) }
}

impl<M: Stepwise> Seq2Seq for M {
    fn forward(&self, source: &Source, words: Tensor<2, Int>, mode: Mode) -> Scores {
        teach(self, self.body().encoder.read(source, mode), words, mode)
    }

    fn decode<'a>(&'a self, source: &Source, look: bool) -> Box<dyn Decoding + 'a> {
        decode(self, self.body().encoder.read(source, Mode::Eval), look)
    }
}

impl Writing {
    pub fn new(read: Read, keys: Tensor<3>) -> Writing {
        let Read { states, start, lengths } = read;
        let rows = Rows::new(lengths.len());
        Writing { hidden: start, fed: None, keys, values: states, lengths, number: 0, rows }
    }

    fn reorder(&mut self, parents: &[usize]) {
        let device = self.values.device();
        let rows = index(parents, &device);
        self.hidden = LayerStates {
            h: self.hidden.h.clone().select(1, rows.clone()),
            c: self.hidden.c.take().map(|c| c.select(1, rows.clone())),
        };
        self.fed = self.fed.take().map(|fed| fed.select(0, rows));
        if let Change::Keep(kept) = self.rows.reorder(parents) {
            let rows = index(&kept, &device);
            self.keys = self.keys.clone().select(0, rows.clone());
            self.values = self.values.clone().select(0, rows);
            self.lengths = kept.iter().map(|sentence| self.lengths[*sentence]).collect();
        }
    }
}

/// Computes all logits with teacher forcing.
fn teach<M: Stepwise>(model: &M, read: Read, ids: Tensor<2, Int>, mode: Mode) -> Scores {
    let words = model.body().words.forward(ids, mode);
    let [b, t, e] = words.dims();
    let options = AttendOptions { mode, weights: false };
    let mut writing = model.begin(read);
    let all = if model.at_once() {
        model.advance(&mut writing, words.clone(), options)
    } else {
        let steps: Vec<Advanced> = (0..t)
            .map(|i| {
                let word = words.clone().slice([0..b, i..i + 1, 0..e]);
                model.advance(&mut writing, word, options)
            })
            .collect();
        let (mut states, mut contexts, mut log_probs) = (vec![], vec![], vec![]);
        for step in steps {
            states.push(step.state);
            contexts.push(step.context);
            log_probs.extend(step.log_prob);
        }
        Advanced {
            state: Tensor::cat(states, 1),
            context: Tensor::cat(contexts, 1),
            weights: None,
            log_prob: (!log_probs.is_empty()).then(|| Tensor::cat(log_probs, 1)),
        }
    };
    Scores { log_prob: all.log_prob.clone(), logits: told(model, all, words, mode) }
}

fn told<M: Stepwise>(model: &M, said: Advanced, words: Tensor<3>, mode: Mode) -> Tensor<3> {
    let deep = model.body().shape.readout == ReadoutInputs::Deep;
    let told = [said.state, said.context, words];
    model.body().readout.forward(told, deep, &model.body().words.table, mode)
}

/// Starts decoding.
fn decode<'a, M: Stepwise>(model: &'a M, read: Read, look: bool) -> Box<dyn Decoding + 'a> {
    let writing = model.begin(read);
    // A plan has no weights to show.
    let plan = || model.plan().filter(|_| Weight::can_be_stored(&writing.values.device()));
    match (!look).then(plan).flatten() {
        Some(step) => Box::new(Planned::new(model.body(), step, &writing)),
        None => Box::new(Walk { writing, model, look }),
    }
}

/// Starts decoding with tensors.
#[cfg(test)]
pub(super) fn walk<M: Stepwise>(model: &M, read: Read) -> impl Decoding + '_ {
    Walk { writing: model.begin(read), model, look: false }
}

/// Decoding with tensors.
pub(super) struct Walk<'a, M> {
    model: &'a M,
    writing: Writing,
    look: bool,
}

impl<M: Stepwise> Decoding for Walk<'_, M> {
    fn step(&mut self, ids: Tensor<2, Int>) -> Next {
        let words = self.model.body().words.forward(ids, Mode::Eval);
        let options = AttendOptions { mode: Mode::Eval, weights: self.look };
        let said = self.model.advance(&mut self.writing, words.clone(), options);
        let attention = said.weights.clone().map(|weights| weights.squeeze_dim(1));
        let logits = told(self.model, said, words, Mode::Eval).squeeze_dim(1);
        Next { logits, attention }
    }

    fn reorder(&mut self, parents: &[usize]) {
        self.writing.reorder(parents);
    }
}
