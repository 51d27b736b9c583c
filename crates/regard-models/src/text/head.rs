//! What is put on top of a model that reads: what each kind is called in Hugging Face's library,
//! and what it computes.

use super::{Output, Texts};
use crate::checkpoint::Binder;
use crate::seq2seq::index;
use burn::module::{Module, Param};
use burn::tensor::Tensor;
use regard_attention::layers::{
    Dropout, Linear, LinearConfig, Norm, NormConfig, Pool, Pooling, PoolingConfig, Weight,
};
use regard_attention::ops::Activation;
use regard_attention::{Init, Mode, Weights};
use serde_json::Value;

/// What a model is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// Vectors, and no more.
    Bare,
    /// Words: the hidden one, or the next one.
    Words,
    /// Words, and whether a second text follows the first (BERT's pretraining).
    Pretraining,
    /// A label for a text.
    Sequence,
    /// A label for each token.
    Tokens,
    /// Where an answer begins and where it ends.
    Span,
}

/// What heads are called in a family of models, and which token speaks for a text.
#[derive(Debug)]
pub struct Family {
    /// `model_type` in `config.json`.
    pub model_type: &'static str,
    /// The keys of `config.json` that decide something.
    pub(crate) keys: fn() -> &'static [&'static str],
    /// What names of classes begin with.
    pub class: &'static str,
    /// What names of tensors of the model itself begin with.
    pub prefix: &'static str,
    /// How the names of classes end.
    pub(crate) classes: &'static [(Head, &'static str)],
    /// Whether it is told which part of a pair a token is of.
    pub(crate) typed: bool,
    /// Which token speaks for a text.
    pub(crate) speaker: Speaker,
    /// Whether there is a layer over the first token inside the model (BERT's pooler).
    pub(crate) pooled: bool,
    /// The layer before labels.
    pub(crate) before_labels: Option<BeforeLabels>,
    /// The labels of a text.
    pub(crate) labels: &'static str,
    /// The ends of an answer.
    pub(crate) span: &'static str,
    /// Whether they have a bias.
    pub(crate) labels_bias: bool,
    /// What words are told with.
    pub(crate) words: WordNames,
}

impl Family {
    /// The names that encoders of today have in common; what a family calls itself is missing.
    pub(crate) const ENCODER: Family = Family {
        model_type: "",
        keys: || &[],
        class: "",
        prefix: "model",
        classes: &[
            (Head::Bare, "Model"),
            (Head::Words, "ForMaskedLM"),
            (Head::Sequence, "ForSequenceClassification"),
            (Head::Tokens, "ForTokenClassification"),
            (Head::Span, "ForQuestionAnswering"),
        ],
        typed: false,
        speaker: Speaker::First,
        pooled: false,
        before_labels: None,
        labels: "classifier",
        span: "qa_outputs",
        labels_bias: true,
        words: WordNames { dense: None, norm: "", table: "", bias: None },
    };
}

/// Which token speaks for a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaker {
    First,
    Last,
    /// All together, by a layer that pools them.
    All,
}

/// A layer before labels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BeforeLabels {
    pub dense: &'static str,
    /// Its function, if not the one that the configuration names for heads.
    pub activation: Option<Activation>,
    /// The norm after it.
    pub norm: Option<&'static str>,
    /// The heads that have it.
    pub heads: &'static [Head],
}

impl BeforeLabels {
    /// Before the labels of a text alone, with a function of its own.
    pub const fn of_texts(dense: &'static str, activation: Activation) -> BeforeLabels {
        let heads = &[Head::Sequence];
        BeforeLabels { dense, activation: Some(activation), norm: None, heads }
    }
}

/// What the parts of a head for words are called.
#[derive(Debug)]
pub struct WordNames {
    pub(crate) dense: Option<&'static str>,
    pub(crate) norm: &'static str,
    pub(crate) table: &'static str,
    pub(crate) bias: Option<&'static str>,
}

impl Family {
    /// The name of the class for a head.
    pub(crate) fn class_of(&self, head: Head) -> Option<String> {
        let end = self.classes.iter().find(|(known, _)| *known == head)?.1;
        Some(format!("{}{end}", self.class))
    }

    /// The head that a configuration names; vectors alone if it names none.
    pub(crate) fn head_of(&self, config: &Value) -> Result<Head, String> {
        let Some(class) = config["architectures"][0].as_str() else { return Ok(Head::Bare) };
        let ends = || self.classes.iter();
        let known = ends().find(|(_, end)| class.strip_prefix(self.class) == Some(end));
        known.map(|(head, _)| *head).ok_or_else(|| {
            let names: Vec<String> =
                ends().map(|(_, end)| format!("{}{end}", self.class)).collect();
            format!("architectures: got {class:?}, need one of {}", names.join(", "))
        })
    }
}

/// What heads need to know of a model.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    pub width: usize,
    pub words: usize,
    pub labels: usize,
    pub eps: f32,
    pub deviation: f32,
    pub activation: Activation,
    pub dropout: f32,
    pub tied: bool,
    /// How all tokens speak for a text, if they do.
    pub pool: Option<Pool>,
    pub biases: Biases,
}

/// Which parts of heads have biases.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Biases {
    /// The layer before words or labels.
    pub dense: bool,
    /// The norm after it.
    pub norm: bool,
    /// Words.
    pub words: bool,
}

impl Biases {
    pub const ALL: Biases = Biases { dense: true, norm: true, words: true };
}

impl Sizes {
    /// The norm of a head.
    fn norm(&self) -> NormConfig {
        NormConfig { eps: self.eps, bias: self.biases.norm, ..NormConfig::layer(self.width) }
    }
}

/// Tells words.
#[derive(Module, Debug)]
struct WordHead {
    dense: Option<Linear>,
    norm: Option<Norm>,
    /// `[V, M]`, unless words are told with the vectors that they are read with.
    table: Option<Weight>,
    /// `[V]`
    bias: Option<Param<Tensor<1>>>,
}

/// All that may stand on top of a model; which of it is there, its [`Head`] says.
#[derive(Module, Debug)]
pub(crate) struct Heads {
    pooler: Option<Linear>,
    words: Option<WordHead>,
    follows: Option<Linear>,
    /// One vector of all tokens of a text.
    pooling: Option<Pooling>,
    before: Option<Linear>,
    before_norm: Option<Norm>,
    labels: Option<Linear>,
    dropout: Dropout,
}

impl Heads {
    pub fn new(family: &Family, head: Head, sizes: &Sizes, init: &mut Init) -> Heads {
        let &Sizes { width, deviation, .. } = sizes;
        let layer = |outputs| LinearConfig {
            weights: Weights::Normal(deviation),
            ..LinearConfig::new(width, outputs)
        };
        let active =
            |activation, init: &mut Init| LinearConfig { activation, ..layer(width) }.init(init);
        let words = matches!(head, Head::Words | Head::Pretraining);
        let pooler =
            family.pooled && matches!(head, Head::Bare | Head::Pretraining | Head::Sequence);
        let before = family.before_labels.filter(|before| before.heads.contains(&head));
        let dense = |activation, init: &mut Init| {
            let bias = sizes.biases.dense;
            LinearConfig { activation, bias, ..layer(width) }.init(init)
        };
        let labels = match head {
            Head::Sequence => {
                Some(LinearConfig { bias: family.labels_bias, ..layer(sizes.labels) })
            }
            Head::Tokens => Some(layer(sizes.labels)),
            Head::Span => Some(layer(2)),
            _ => None,
        };
        Heads {
            pooler: pooler.then(|| active(Activation::Tanh, init)),
            words: words.then(|| WordHead::new(family, sizes, init)),
            follows: (head == Head::Pretraining).then(|| layer(2).init(init)),
            pooling: sizes
                .pool
                .filter(|_| head == Head::Sequence)
                .map(|pool| PoolingConfig { width, pool }.init(init)),
            before: before.map(|before| dense(before.activation.unwrap_or(sizes.activation), init)),
            before_norm: before.and_then(|before| before.norm).map(|_| sizes.norm().init(init)),
            labels: labels.map(|labels| labels.init(init)),
            dropout: Dropout::new(sizes.dropout, init),
        }
    }

    /// What stands outside of the model itself.
    pub fn bind(&mut self, family: &Family, head: Head, b: &mut Binder) {
        if let Some(words) = &mut self.words {
            words.bind(&family.words, b);
        }
        if let Some(follows) = &mut self.follows {
            b.linear("cls.seq_relationship", follows);
        }
        if let Some(pooling) = &mut self.pooling {
            b.pooling("pooling", pooling);
        }
        if let (Some(before), Some(names)) = (&mut self.before, family.before_labels) {
            b.linear(names.dense, before);
            b.optional_norm(names.norm.unwrap_or_default(), &mut self.before_norm);
        }
        if let Some(labels) = &mut self.labels {
            let name = match head {
                Head::Sequence => family.labels,
                Head::Span => family.span,
                _ => "classifier",
            };
            b.linear(name, labels);
        }
    }

    /// What stands inside, with the model's own prefix. A checkpoint for other tasks may lack it.
    pub fn bind_inside(&mut self, b: &mut Binder) {
        if let Some(pooler) = &mut self.pooler {
            b.linear("pooler.dense", pooler);
        }
    }

    /// From the vectors of all tokens, `[N, M]`, to what the head says.
    pub fn say(&self, hidden: Tensor<2>, texts: &Texts, of: &Asked) -> Output {
        let Asked { family, head, mode, table, at } = of;
        let pick = |x: &Tensor<2>, rows: &[usize]| x.clone().select(0, index(rows, &x.device()));
        let speaking = |x: &Tensor<2>| {
            let spoken = match (&self.pooling, family.speaker) {
                (Some(pooling), _) => pooling.forward(x.clone(), &texts.sequences()),
                (None, Speaker::Last) => pick(x, &texts.lasts()),
                (None, _) => pick(x, &texts.firsts()),
            };
            match &self.pooler {
                Some(pooler) => pooler.forward(spoken),
                None => spoken,
            }
        };
        let labels = |mut x: Tensor<2>| {
            if let Some(before) = &self.before {
                x = before.forward(x);
            }
            if let Some(norm) = &self.before_norm {
                x = norm.forward(x);
            }
            let labels = self.labels.as_ref().expect("heads with labels have them");
            Some(labels.forward(self.dropout.forward(x, *mode)))
        };
        let wanted = match at {
            Some(at) => pick(&hidden, at),
            None => hidden.clone(),
        };
        let pooled = self.pooler.as_ref().map(|_| speaking(&hidden));
        let follows = self
            .follows
            .as_ref()
            .map(|layer| layer.forward(pooled.clone().expect("pretraining has a pooler")));
        let logits = match head {
            Head::Bare => None,
            Head::Words | Head::Pretraining => {
                let words = self.words.as_ref().expect("heads for words have it");
                Some(words.forward(wanted, table.as_ref()))
            }
            Head::Sequence => labels(pooled.clone().unwrap_or_else(|| speaking(&hidden))),
            Head::Tokens | Head::Span => labels(wanted),
        };
        Output { hidden, pooled, logits, follows }
    }
}

impl Heads {
    /// The weight of each token in what is said of its text, `[N]`, if they are weighed.
    pub fn weights(&self, hidden: Tensor<2>, texts: &Texts) -> Option<Tensor<1>> {
        self.pooling.as_ref()?.weights(hidden, &texts.sequences())
    }
}

/// What is asked of the heads.
pub(crate) struct Asked<'a> {
    pub family: &'a Family,
    pub head: Head,
    pub mode: Mode,
    /// `[V, M]`, the vectors that words are read with, if they are told with them.
    pub table: Option<Weight>,
    /// The tokens that are asked about; all of them by default.
    pub at: Option<&'a [usize]>,
}

impl WordHead {
    fn new(family: &Family, sizes: &Sizes, init: &mut Init) -> WordHead {
        let &Sizes { width, words, deviation, activation, tied, biases, .. } = sizes;
        let names = &family.words;
        let dense = LinearConfig {
            activation,
            bias: biases.dense,
            weights: Weights::Normal(deviation),
            ..LinearConfig::new(width, width)
        };
        WordHead {
            dense: names.dense.map(|_| dense.init(init)),
            norm: names.dense.map(|_| sizes.norm().init(init)),
            table: (!tied).then(|| init.normal([words, width], deviation).into()),
            bias: names.bias.filter(|_| biases.words).map(|_| init.constant([words], 0.0)),
        }
    }

    fn bind(&mut self, names: &WordNames, b: &mut Binder) {
        if let (Some(dense), Some(name)) = (&mut self.dense, names.dense) {
            b.linear(name, dense);
        }
        if let Some(norm) = &mut self.norm {
            b.norm(names.norm, norm);
        }
        if let Some(table) = &mut self.table {
            b.weight(names.table, table);
        }
        if let (Some(bias), Some(name)) = (&mut self.bias, names.bias) {
            // A table of its own has a bias of its own in Hugging Face's library.
            let own = names.table.replace("weight", "bias");
            let untied = self.table.is_some() && b.has(&own);
            b.tensor(if untied { &own } else { name }, bias);
        }
    }

    fn forward(&self, mut x: Tensor<2>, table: Option<&Weight>) -> Tensor<2> {
        if let (Some(dense), Some(norm)) = (&self.dense, &self.norm) {
            x = norm.forward(dense.forward(x));
        }
        let table = self.table.as_ref().or(table).expect("a head for words has a table");
        table.scores(x, self.bias.as_ref().map(Param::val))
    }
}
