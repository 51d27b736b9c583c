//! Models of words: each word is an embedding, an encoding of its characters, or both, and the
//! context encoder is a bidirectional LSTM (`bilstm`; Graves and Schmidhuber 2005) or convolutions
//! of several widths (`cnn`; Kim 2014, arXiv:1408.5882).

mod config;
mod letters;

pub use config::Config;

use crate::checkpoint::Binder;
use crate::fields::fields;
use crate::text::{Biases, Body, Family, Head, PooledToken, Probe, Sizes, Texts, WordNames};
use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData};
use config::Context;
use letters::Speller;
use regard_attention::layers::{
    Convolution, ConvolutionConfig, Dropout, Embedding, EmbeddingConfig, Recurrent, RecurrentConfig,
};
use regard_attention::ops::{Activation, Cell};
use regard_attention::{Init, Mode};
use serde_json::Value;

/// Names of the recurrent family.
pub static BILSTM: Family = Family { model_type: "bilstm", class: "BiLstm", ..NAMES };

/// Names of the convolutional family.
pub static CNN: Family = Family { model_type: "cnn", class: "Cnn", ..NAMES };

const NAMES: Family = Family {
    model_type: "",
    keys: fields::<Config>,
    class: "",
    prefix: "words",
    classes: &[
        (Head::Bare, "Model"),
        (Head::Sequence, "ForSequenceClassification"),
        (Head::Tokens, "ForTokenClassification"),
    ],
    typed: false,
    speaker: PooledToken::All,
    pooled: false,
    before_labels: None,
    labels: "classifier",
    token_labels: "classifier",
    span: "qa_outputs",
    labels_bias: true,
    words: WordNames { dense: None, norm: "", table: "", bias: None },
};

/// The encoder without its heads.
#[derive(Module, Debug)]
pub(crate) struct WordEncoder {
    words: Option<Embedding>,
    speller: Option<Speller>,
    rnn: Option<Recurrent>,
    windows: Vec<Convolution>,
    dropout: Dropout,
    unknown: Unknown,
    #[module(skip)]
    family: &'static Family,
    #[module(skip)]
    frozen: bool,
}

/// Word dropout: replaces words by the unknown one in training, so that its embedding is learned.
#[derive(Module, Debug)]
struct Unknown {
    #[module(skip)]
    id: u32,
    #[module(skip)]
    share: f32,
    #[module(skip)]
    site: u64,
}

impl Unknown {
    fn forward(&self, ids: &[u32], mode: Mode) -> Vec<i64> {
        let stream = mode.stream(self.site);
        let one = |(i, id): (usize, &u32)| {
            let lost = stream.is_some_and(|stream| stream.uniform(i as u64) < self.share);
            i64::from(if lost { self.id } else { *id })
        };
        ids.iter().enumerate().map(one).collect()
    }
}

impl WordEncoder {
    fn device(&self) -> Device {
        let of_table = self.words.as_ref().map(|words| words.table.device());
        let of_letters = || self.speller.as_ref().map(|speller| speller.letters.table.device());
        of_table.or_else(of_letters).expect("words have embeddings or characters")
    }

    /// Vectors of all words, without context: `[N, I]`.
    fn begin(&self, texts: &Texts, mode: Mode) -> Tensor<2> {
        let known = self.words.as_ref().map(|words| {
            let ids = self.unknown.forward(texts.ids(), mode);
            let n = ids.len();
            let ids = TensorData::new(ids, [1, n]);
            let x = words.forward(Tensor::<2, Int>::from_data(ids, &self.device()));
            let [_, n, m] = x.dims();
            let x = x.reshape([n, m]);
            if self.frozen { x.detach() } else { x }
        });
        let spelled = self.speller.as_ref().map(|speller| speller.read(texts, mode));
        let parts = [known, spelled].into_iter().flatten().collect();
        self.dropout.forward(Tensor::cat(parts, 1), mode)
    }
}

impl Body for WordEncoder {
    const FAMILIES: &'static [&'static Family] = &[&BILSTM, &CNN];

    type Config = Config;

    fn configure(json: &Value, _head: Head) -> Result<Config, String> {
        match json["model_type"] == CNN.model_type {
            true => Config::cnn(json),
            false => Config::bilstm(json),
        }
    }

    fn new(config: &Config, init: &mut Init) -> WordEncoder {
        let (inputs, table) = (config.input(), config.embedding_size);
        let deviation = 1.0 / (table.max(1) as f32).sqrt();
        let words = EmbeddingConfig { deviation, ..EmbeddingConfig::new(config.vocab_size, table) };
        let rnn = RecurrentConfig {
            layers: config.num_layers,
            bidirectional: true,
            dropout: config.dropout,
            ..RecurrentConfig::new(Cell::Lstm, inputs, config.hidden_size)
        };
        let (outputs, activation) = (config.channels, Activation::Relu);
        let window =
            |width: &usize| ConvolutionConfig { inputs, outputs, width: *width, activation };
        let recurrent = config.context == Context::Recurrent;
        let widths = if recurrent { &[][..] } else { &config.widths };
        WordEncoder {
            words: (table > 0).then(|| words.init(init)),
            speller: config.characters.as_ref().map(|characters| {
                Speller::new(characters, config.alphabet_size, config.embedding_dropout, init)
            }),
            rnn: recurrent.then(|| rnn.init(init)),
            windows: widths.iter().map(|width| window(width).init(init)).collect(),
            dropout: Dropout::new(config.embedding_dropout, init),
            unknown: Unknown {
                id: config.unk_token_id,
                share: config.word_dropout,
                site: init.site(),
            },
            family: config.family(),
            frozen: config.frozen_embeddings,
        }
    }

    fn sizes(config: &Config) -> Sizes {
        Sizes {
            width: config.width(),
            words: config.vocab_size,
            labels: 0,
            eps: 1e-5,
            deviation: 1.0 / (config.width() as f32).sqrt(),
            activation: Activation::Identity,
            dropout: config.classifier_dropout,
            tied: true,
            cap: None,
            pool: Some(config.pool().expect("it was checked when it was read")),
            biases: Biases::ALL,
        }
    }

    fn family(&self) -> &'static Family {
        self.family
    }

    fn bind(&mut self, b: &mut Binder) {
        if let Some(words) = &mut self.words {
            b.embedding("embed_tokens", words);
        }
        if let Some(speller) = &mut self.speller {
            b.at("characters", |b| speller.bind(b));
        }
        if let Some(rnn) = &mut self.rnn {
            b.recurrent("rnn", rnn);
        }
        b.convolutions("windows", &mut self.windows);
    }

    fn read(&self, texts: &Texts, probe: &mut Probe) -> Tensor<3> {
        let mode = probe.mode();
        let (sequences, [b, t]) = (texts.sequences(), texts.shape());
        let x = self.begin(texts, mode);
        let y = match &self.rnn {
            Some(rnn) => {
                sequences.rows(x.clone(), |x, lengths| rnn.forward(x, None, Some(lengths), mode).0)
            }
            None => {
                let windows = self.windows.iter();
                Tensor::cat(windows.map(|w| w.forward(x.clone(), &sequences)).collect(), 1)
            }
        };
        let batch = |x: Tensor<2>| {
            let [_, m] = x.dims();
            x.reshape([b, t, m])
        };
        let (x, y) = (batch(x), batch(y));
        probe.hidden(&x);
        probe.hidden(&y);
        y
    }

    fn words(&self) -> Option<&Embedding> {
        self.words.as_ref()
    }

    fn words_mut(&mut self) -> Option<&mut Embedding> {
        self.words.as_mut()
    }

    fn alphabet(&self) -> usize {
        self.speller.as_ref().map_or(0, |speller| speller.letters.table.dims()[0])
    }

    fn longest(&self) -> Option<usize> {
        None
    }

    /// Empty: only the head attends, if it pools by attention.
    fn attention(&self) -> Vec<String> {
        vec![]
    }

    fn allows_missing_gradient(&self, name: &str) -> bool {
        self.frozen && name == "words.table"
    }
}
