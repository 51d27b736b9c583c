//! Heads of text models: their names in Hugging Face's library, and their computation.

use super::{PlannedHead, TextOutput, Texts};
use crate::checkpoint::Binder;
use crate::seq2seq::index;
use burn::module::{Module, Param};
use burn::tensor::Tensor;
use regard_attention::layers::{
    Dropout, Linear, LinearConfig, Norm, NormConfig, Pool, Pooling, PoolingConfig, Weight,
};
use regard_attention::ops::Activation;
use regard_attention::plan::PlannedLinear;
use regard_attention::{Init, Mode, WeightInit};
use serde_json::Value;

/// Head of a text model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// No head: hidden states only.
    Bare,
    /// Logits of tokens: of a masked one, or of the next one.
    Words,
    /// Logits of tokens, and next-sentence prediction (BERT's pretraining).
    Pretraining,
    /// A label for a sequence.
    Sequence,
    /// A label for each token.
    Tokens,
    /// Start and end of an answer (extractive question answering).
    Span,
}

impl Head {
    /// What a model with this head does, after "to".
    pub fn purpose(self) -> &'static str {
        match self {
            Head::Bare => "embed texts",
            Head::Words => "predict words",
            Head::Pretraining => "predict masked words and next sentences",
            Head::Sequence => "classify texts",
            Head::Tokens => "label words",
            Head::Span => "answer questions",
        }
    }
}

/// Names of a family of models in Hugging Face's library, and the structure of its heads.
#[derive(Debug)]
pub struct Family {
    /// `model_type` in `config.json`.
    pub model_type: &'static str,
    /// Keys of `config.json` that are read.
    pub(crate) keys: fn() -> &'static [&'static str],
    /// Prefix of class names.
    pub class: &'static str,
    /// Prefix of the names of the body's tensors.
    pub prefix: &'static str,
    /// Suffix of the class name for each head.
    pub(crate) classes: &'static [(Head, &'static str)],
    /// Whether it has token types, which distinguish the two texts of a pair.
    pub(crate) typed: bool,
    /// Token that represents the sequence (pooling).
    pub(crate) speaker: PooledToken,
    /// Whether the body has a layer over the first token (BERT's pooler).
    pub(crate) pooled: bool,
    /// Layer before the classifier, if any.
    pub(crate) before_labels: Option<BeforeLabels>,
    /// Name of the sequence classifier.
    pub(crate) labels: &'static str,
    /// Name of the token classifier.
    pub(crate) token_labels: &'static str,
    /// Name of the layer for the start and end of an answer.
    pub(crate) span: &'static str,
    /// Whether the sequence classifier has a bias.
    pub(crate) labels_bias: bool,
    /// Names of the language-modelling head.
    pub(crate) words: WordNames,
}

impl Family {
    /// Defaults of recent encoder families; `model_type`, `class` and `keys` are to be filled in.
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
        speaker: PooledToken::First,
        pooled: false,
        before_labels: None,
        labels: "classifier",
        token_labels: "classifier",
        span: "qa_outputs",
        labels_bias: true,
        words: WordNames { dense: None, norm: "", table: "", bias: None },
    };

    /// Defaults of today's decoder families; `model_type`, `class` and `keys` are to be filled in.
    pub(crate) const DECODER: Family = Family {
        classes: &[
            (Head::Bare, "Model"),
            (Head::Words, "ForCausalLM"),
            (Head::Sequence, "ForSequenceClassification"),
            (Head::Tokens, "ForTokenClassification"),
        ],
        speaker: PooledToken::Last,
        labels: "score",
        token_labels: "score",
        labels_bias: false,
        words: WordNames { dense: None, norm: "", table: "lm_head.weight", bias: None },
        ..Family::ENCODER
    };
}

/// Token that represents the sequence (pooling).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PooledToken {
    First,
    Last,
    /// All tokens, by a pooling layer.
    All,
}

/// Names and activation of a layer before the classifier.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BeforeLabels {
    pub dense: &'static str,
    /// Activation; `None` for the one that the configuration has for heads.
    pub activation: Option<Activation>,
    /// Name of the norm after it.
    pub norm: Option<&'static str>,
    /// Heads that have this layer.
    pub heads: &'static [Head],
}

impl BeforeLabels {
    /// Makes a layer before the sequence classifier only, with its own activation.
    pub const fn of_texts(dense: &'static str, activation: Activation) -> BeforeLabels {
        let heads = &[Head::Sequence];
        BeforeLabels { dense, activation: Some(activation), norm: None, heads }
    }
}

/// Names of the tensors of a language-modelling head.
#[derive(Debug)]
pub struct WordNames {
    pub(crate) dense: Option<&'static str>,
    pub(crate) norm: &'static str,
    pub(crate) table: &'static str,
    pub(crate) bias: Option<&'static str>,
}

impl Family {
    /// Class name for a head; `None` if the family does not have it.
    pub(crate) fn class_of(&self, head: Head) -> Option<String> {
        let end = self.classes.iter().find(|(known, _)| *known == head)?.1;
        Some(format!("{}{end}", self.class))
    }

    /// Reads the head from `architectures`; [`Head::Bare`] if there is none.
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

/// Sizes and settings of a model that its heads need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub width: usize,
    pub words: usize,
    pub labels: usize,
    pub eps: f32,
    pub deviation: f32,
    pub activation: Activation,
    pub dropout: f32,
    pub tied: bool,
    /// Soft limit of token logits, `cap · tanh(logit / cap)`.
    pub cap: Option<f32>,
    /// Pooling over all tokens for the sequence classifier, if any.
    pub pool: Option<Pool>,
    pub biases: Biases,
}

/// Biases of the parts of heads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Biases {
    /// Layer before token logits or the classifier.
    pub dense: bool,
    /// Norm after it.
    pub norm: bool,
    /// Token logits.
    pub words: bool,
}

impl Biases {
    pub const ALL: Biases = Biases { dense: true, norm: true, words: true };
}

impl Sizes {
    /// Configuration of a head's norm.
    fn norm(&self) -> NormConfig {
        NormConfig { eps: self.eps, bias: self.biases.norm, ..NormConfig::layer(self.width) }
    }
}

/// Language-modelling head.
#[derive(Module, Debug)]
struct WordHead {
    dense: Option<Linear>,
    norm: Option<Norm>,
    /// `[V, M]`; `None` if it is tied to the input embeddings.
    table: Option<Weight>,
    /// `[V]`
    bias: Option<Param<Tensor<1>>>,
    /// Soft limit of the logits.
    #[module(skip)]
    cap: Option<f32>,
}

/// All layers on top of a body; which of them exist depends on the [`Head`].
#[derive(Module, Debug)]
pub(crate) struct Heads {
    pooler: Option<Linear>,
    words: Option<WordHead>,
    follows: Option<Linear>,
    /// Pools all tokens of a text to one vector.
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
            weights: WeightInit::Normal(deviation),
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

    /// Binds the layers outside the body's prefix.
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
                _ => family.token_labels,
            };
            b.linear(name, labels);
        }
    }

    /// Binds the layers inside the body's prefix. A checkpoint for other tasks may lack them.
    pub fn bind_inside(&mut self, b: &mut Binder) {
        if let Some(pooler) = &mut self.pooler {
            b.linear("pooler.dense", pooler);
        }
    }

    /// Plans the language-modelling head for decoding on slices; `tied` is the table of the input
    /// embeddings. `None` if it is more than one product, or not on the CPU.
    pub fn plan_words(&self, tied: Option<&Weight>) -> Option<PlannedHead> {
        let words = self.words.as_ref()?;
        let table = words.table.as_ref().or(tied)?;
        let alone = words.dense.is_none() && words.norm.is_none();
        let can = alone && Weight::can_be_stored(&table.device());
        let scores = || PlannedLinear::scores(table, words.bias.as_ref());
        can.then(|| PlannedHead { scores: scores(), cap: words.cap })
    }

    /// Computes the head's output from the hidden states of all tokens, `[N, M]`.
    pub fn say(&self, hidden: Tensor<2>, texts: &Texts, of: &HeadInputs) -> TextOutput {
        let HeadInputs { family, head, mode, table, at } = of;
        let pick = |x: &Tensor<2>, rows: &[usize]| x.clone().select(0, index(rows, &x.device()));
        let speaking = |x: &Tensor<2>| {
            let spoken = match (&self.pooling, family.speaker) {
                (Some(pooling), _) => pooling.forward(x.clone(), &texts.sequences()),
                (None, PooledToken::Last) => pick(x, &texts.lasts()),
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
        TextOutput { hidden, pooled, logits, follows }
    }
}

impl Heads {
    /// Pooling weight of each token in its text, `[N]`; `None` without attention pooling.
    pub fn weights(&self, hidden: Tensor<2>, texts: &Texts) -> Option<Tensor<1>> {
        self.pooling.as_ref()?.weights(hidden, &texts.sequences())
    }
}

/// Arguments of [`Heads::say`].
pub(crate) struct HeadInputs<'a> {
    pub family: &'a Family,
    pub head: Head,
    pub mode: Mode,
    /// `[V, M]`: input embeddings, if the language-modelling head is tied to them.
    pub table: Option<Weight>,
    /// Rows of the tokens to compute logits for; `None` for all.
    pub at: Option<&'a [usize]>,
}

impl WordHead {
    fn new(family: &Family, sizes: &Sizes, init: &mut Init) -> WordHead {
        let &Sizes { width, words, deviation, activation, tied, cap, biases, .. } = sizes;
        let names = &family.words;
        let dense = LinearConfig {
            activation,
            bias: biases.dense,
            weights: WeightInit::Normal(deviation),
            ..LinearConfig::new(width, width)
        };
        WordHead {
            dense: names.dense.map(|_| dense.init(init)),
            norm: names.dense.map(|_| sizes.norm().init(init)),
            table: (!tied).then(|| init.normal([words, width], deviation).into()),
            bias: names.bias.filter(|_| biases.words).map(|_| init.constant([words], 0.0)),
            cap,
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
            b.table(names.table, table);
        }
        if let (Some(bias), Some(name)) = (&mut self.bias, names.bias) {
            // An untied table has its own bias in Hugging Face's library.
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
        let logits = table.scores(x, self.bias.as_ref().map(Param::val));
        match self.cap {
            Some(cap) => (logits / cap).tanh() * cap,
            None => logits,
        }
    }
}
