//! Models that encode texts or continue them: BERT, GPT-2, XLNet and their relatives, with any
//! head, and models of words and their characters.
//!
//! ```
//! use burn::tensor::Device;
//! use regard_attention::Mode;
//! use regard_models::text::{Head, Texts, create};
//! use serde_json::json;
//!
//! let config = json!({
//!     "model_type": "bert", "vocab_size": 30, "hidden_size": 16, "num_hidden_layers": 2,
//!     "num_attention_heads": 2, "intermediate_size": 32, "num_labels": 3,
//! });
//! let model = create(&config, Head::Sequence, 7, &Device::flex()).unwrap();
//! let mut texts = Texts::new();
//! texts.push(&[2, 5, 6, 3]);
//! texts.push(&[2, 7, 3]);
//! let said = model.forward(&texts, None, Mode::Eval);
//! assert_eq!(said.logits.unwrap().dims(), [2, 3]);
//! ```

mod head;
mod old;
mod planned;
mod probe;
pub mod recorded;
mod texts;
mod walk;

pub(crate) use head::{BeforeLabels, Biases, PooledToken, Sizes, WordNames};
pub use head::{Family, Head};
pub use old::read_config;
pub use planned::DecoderPlan;
pub(crate) use planned::{PlannedHead, PlannedRows};
pub use probe::Probe;
pub use texts::Texts;
pub(crate) use walk::Walks;
#[cfg(test)]
pub(crate) use walk::planned_as_walked;

use crate::checkpoint::{self, Arrays, Binder};
use crate::labels::label_count;
use crate::network::{Definition, Description, InputKind, Network};
use crate::seq2seq::{Decoding, Next, tokens};
use crate::xlnet::{Memory, Permuted, Permuting, Predicted};
use crate::zoo::{self, Fit, New};
use crate::{Error, ModelFiles, Result, sizes};
use burn::module::{Module, ModuleDisplay, Param};
use burn::tensor::{Device, Int, Tensor, TensorData};
use head::{HeadInputs, Heads};
use regard_attention::layers::{Embedding, SelfAttention, Weight};
use regard_attention::ops::Activation;
use regard_attention::plan::{DecoderLayers, PlannedDecoder};
use regard_attention::{Init, Mode};
use serde_json::{Value, json};

/// Output of a text model.
#[derive(Debug)]
pub struct TextOutput {
    /// `[N, M]`: last hidden state of every token, the texts concatenated.
    pub hidden: Tensor<2>,
    /// `[B, M]`: output of the pooler for every text, if the model has one.
    pub pooled: Option<Tensor<2>>,
    /// Logits of the head: of the vocabulary `[N, V]`, of token labels `[N, labels]`, of sequence
    /// labels `[B, labels]`, of start and end of an answer `[N, 2]`.
    pub logits: Option<Tensor<2>>,
    /// `[B, 2]`: next-sentence logits, whether the second text follows the first or is random.
    pub follows: Option<Tensor<2>>,
}

/// Hidden states and attention weights of all layers.
#[derive(Debug, Default)]
pub struct Inside {
    /// `[B, T, M]`: input of the first layer, and output of each layer.
    pub hidden: Vec<Tensor<3>>,
    /// `[B, H, T, T]`: attention weights of each layer.
    pub attention: Vec<Tensor<4>>,
    /// `[B, T]`: pooling weights of the tokens, if the head pools by attention.
    pub weights: Option<Tensor<2>>,
}

/// A text model. Made by [`create`], [`load`], [`open`] or [`zoo`].
pub trait TextModel: Network {
    /// Head of the model.
    fn head(&self) -> Head;

    /// Runs the model on texts. `at` are the tokens, as indices over all texts, whose logits a head
    /// for words, tokens or spans computes; `None` for all.
    ///
    /// # Panics
    /// If a text is longer than the model's limit.
    fn forward(&self, texts: &Texts, at: Option<&[usize]>, mode: Mode) -> TextOutput;

    /// Runs the model with a probe: changes layers, and records what the probe requests.
    ///
    /// # Panics
    /// As [`TextModel::forward`], and if the probe names a layer that does not exist.
    fn probe(&self, texts: &Texts, at: Option<&[usize]>, probe: &mut Probe) -> TextOutput;

    /// Runs the model on texts of one length, and returns hidden states and attention weights too.
    fn forward_with_attention(&self, texts: &Texts) -> (TextOutput, Inside);

    /// Processes prompts of one length and starts decoding, a row for each; `None` if the model
    /// does not continue texts.
    fn decode<'a>(&'a self, read: &[&[u32]]) -> Option<Box<dyn Decoding + 'a>>;

    /// Plans a causal language model for decoding on slices, for any number of sequences; `None` if
    /// it is none, cannot be planned or is not on the CPU.
    fn plan(&self) -> Option<DecoderPlan>;

    /// Permutation language modelling, if it has two streams and a head for words (XLNet).
    fn permuting(&self) -> Option<&dyn Permuting>;

    /// Size of the vocabulary; `usize::MAX` if words are encoded by their characters alone.
    fn vocabulary(&self) -> usize;

    /// Number of characters in the alphabet; 0 if it does not use characters.
    fn alphabet(&self) -> usize;

    /// Replaces rows of the word embeddings: pairs of an id and its vector.
    ///
    /// # Errors
    /// If it has no word embeddings, or they have another width, or not these rows.
    fn set_words(&mut self, rows: &[(usize, &[f32])]) -> Result<()>;

    /// Whether it has token types, which distinguish the two texts of a pair.
    fn is_typed(&self) -> bool;

    /// Longest text in tokens; `None` if there is no limit.
    fn longest(&self) -> Option<usize>;
}

/// Definition of a text model below its heads, in the model's own file.
pub(crate) trait Body: Module + ModuleDisplay + Sync + 'static {
    /// Families of models with this body.
    const FAMILIES: &'static [&'static Family];

    /// Whether it continues texts ([`Body::follow`]).
    const GENERATES: bool = false;

    type Config;

    /// Reads and checks the `config.json` of one of the families.
    fn configure(json: &Value, head: Head) -> Result<Self::Config, String>;
    fn new(config: &Self::Config, init: &mut Init) -> Self;
    fn sizes(config: &Self::Config) -> Sizes;
    fn family(&self) -> &'static Family {
        Self::FAMILIES[0]
    }
    fn bind(&mut self, b: &mut Binder);
    /// Computes the hidden states `[B, T, M]`, or `[1, N, M]` for texts of different lengths.
    fn read(&self, texts: &Texts, probe: &mut Probe) -> Tensor<3>;
    /// Word embeddings `[V, M]`, if there are any.
    fn words(&self) -> Option<&Embedding>;
    /// Word embeddings, mutable.
    fn words_mut(&mut self) -> Option<&mut Embedding>;
    /// Number of characters in the alphabet; 0 if it does not use characters.
    fn alphabet(&self) -> usize {
        0
    }
    fn longest(&self) -> Option<usize>;
    /// Describes the attention of each layer that attends.
    fn attention(&self) -> Vec<String>;
    /// Whether a parameter may receive no gradient.
    fn allows_missing_gradient(&self, _name: &str) -> bool {
        false
    }
    /// Processes prompts and starts decoding, if it continues texts.
    fn follow(&self, _read: &[&[u32]]) -> Option<Box<dyn Following + '_>> {
        None
    }
    /// The layers of a causal model, if they can be planned.
    fn decoder(&self) -> Option<DecoderLayers<'_>> {
        None
    }
    /// Permutation language modelling by a second stream, if it has one.
    fn two_streams(&self) -> Option<&dyn TwoStreams> {
        None
    }
}

/// A body with two streams, which predicts tokens in any order.
pub(crate) trait TwoStreams {
    /// Returns the hidden states of the targets, `[targets, M]`, and the memory.
    fn tell(&self, batch: &Permuted, mode: Mode) -> (Tensor<2>, Option<Memory>);
    /// Returns the memory of texts without targets.
    fn remember(&self, texts: &Texts, mode: Mode) -> Memory;
}

/// Decoding state of a body.
pub(crate) trait Following {
    /// Feeds a token to each row: `words: [R, 1]` → hidden states `[R, M]`
    fn step(&mut self, words: Tensor<2, Int>) -> Tensor<2>;
    /// As [`Following::step`], on slices; `None`, and nothing is fed, if it works on tensors.
    fn step_slices(&mut self, _words: &[u32]) -> Option<&[f32]> {
        None
    }
    fn reorder(&mut self, parents: &[usize]);
}

/// A body with its heads.
#[derive(Module, Debug)]
pub(crate) struct Headed<B: Body> {
    body: B,
    heads: Heads,
    #[module(skip)]
    head: Head,
    #[module(skip)]
    config: Value,
}

impl<B: Body> Headed<B> {
    fn new(body: B, head: Head, sizes: &Sizes, config: &Value, init: &mut Init) -> Headed<B> {
        let heads = Heads::new(body.family(), head, sizes, init);
        Headed { body, heads, head, config: config.clone() }
    }

    fn asked<'a>(&self, at: Option<&'a [usize]>, mode: Mode) -> HeadInputs<'a> {
        let table = self.body.words().map(|words| words.table.clone());
        HeadInputs { family: self.body.family(), head: self.head, mode, table, at }
    }

    fn say(&self, x: Tensor<3>, texts: &Texts, at: Option<&[usize]>, mode: Mode) -> TextOutput {
        let [b, t, m] = x.dims();
        self.heads.say(x.reshape([b * t, m]), texts, &self.asked(at, mode))
    }
}

impl<B: Body> Definition for Headed<B> {
    const READS: InputKind = InputKind::Texts;

    fn types() -> Vec<&'static str> {
        B::FAMILIES.iter().map(|family| family.model_type).collect()
    }

    fn families() -> &'static [&'static Family] {
        B::FAMILIES
    }

    fn task(config: &Value) -> Result<&'static str, String> {
        let class = config["architectures"][0].as_str().unwrap_or_default();
        let goes_on = ["LMHeadModel", "ForCausalLM"].iter().any(|end| class.ends_with(end));
        match family(config).map_err(|e| e.to_string())?.head_of(config)? {
            Head::Words if goes_on && B::GENERATES => Ok("generate"),
            Head::Words | Head::Pretraining => Ok("fill"),
            // One logit is a relevance: a cross-encoder.
            Head::Sequence if label_count(config)? == 1 => Ok("rerank"),
            Head::Sequence => Ok("classify"),
            Head::Tokens => Ok("tag"),
            Head::Span => Ok("answer"),
            Head::Bare => Err(format!(
                "architectures: got {class:?}, which has no task head; need for example \
                 BertForSequenceClassification"
            )),
        }
    }

    fn make(json: &Value, _weights: Option<&Arrays>, init: &mut Init) -> Result<Headed<B>, String> {
        let head = family(json).map_err(|e| e.to_string())?.head_of(json)?;
        let config = B::configure(json, head)?;
        let sizes = Sizes { labels: label_count(json)?, ..B::sizes(&config) };
        let labels = ("num_labels", sizes.labels);
        sizes::check_matrices(&[[labels, ("the width", sizes.width)]])?;
        Ok(Headed::new(B::new(&config, init), head, &sizes, json, init))
    }

    fn config(&self) -> Value {
        let mut json = self.config.clone();
        if let Some(class) = self.body.family().class_of(self.head) {
            json["architectures"] = json!([class]);
        }
        json
    }

    fn bind(&mut self, b: &mut Binder) {
        let family = self.body.family();
        b.at(family.prefix, |b| {
            self.body.bind(b);
            self.heads.bind_inside(b);
        });
        self.heads.bind(family, self.head, b);
    }

    fn describe(&self) -> Description {
        // With characters alone, the vocabulary is unlimited.
        let vocabulary = Some(self.vocabulary()).filter(|words| *words < usize::MAX);
        let attention = self.body.attention();
        Description { attention, ..Description::of_texts(vocabulary, self.body.longest()) }
    }

    fn rename_on_load(&mut self, weights: Arrays) -> Arrays {
        with_prefix(weights, self.body.family().prefix)
    }

    fn rename_on_save(&self, weights: Arrays) -> Arrays {
        match self.head {
            // Without a head, tensors are saved without the body's prefix.
            Head::Bare => without_prefix(weights, self.body.family().prefix),
            _ => weights,
        }
    }

    fn ignores(&self, name: &str) -> bool {
        // Tensors of other heads are outside the body, except for the pooler.
        let inside = format!("{}.", self.body.family().prefix);
        let pooler = format!("{inside}pooler.");
        !name.starts_with(&inside) || name.starts_with(&pooler) || is_buffer(name)
    }

    fn allows_missing_gradient(&self, name: &str) -> bool {
        name.strip_prefix("body.").is_some_and(|name| self.body.allows_missing_gradient(name))
    }

    fn is_body(&self, name: &str) -> bool {
        name.strip_prefix(self.body.family().prefix).is_some_and(|rest| rest.starts_with('.'))
    }

    fn into_text(self: Box<Self>) -> Option<Box<dyn TextModel>> {
        Some(self)
    }
}

impl<B: Body> TextModel for Headed<B> {
    fn head(&self) -> Head {
        self.head
    }

    fn forward(&self, texts: &Texts, at: Option<&[usize]>, mode: Mode) -> TextOutput {
        self.probe(texts, at, &mut Probe::new(mode))
    }

    fn probe(&self, texts: &Texts, at: Option<&[usize]>, probe: &mut Probe) -> TextOutput {
        self.check(texts);
        probe.begin(|| self.body.attention().len());
        let x = self.body.read(texts, probe);
        self.say(x, texts, at, probe.mode())
    }

    fn forward_with_attention(&self, texts: &Texts) -> (TextOutput, Inside) {
        let rows = texts.lengths().len();
        assert_eq!(texts.shape()[0], rows, "forward_with_attention: need texts of one length");
        let mut probe = Probe::default().record();
        let said = self.probe(texts, None, &mut probe);
        let weights = self.heads.weights(said.hidden.clone(), texts);
        let weights = weights.map(|weights| weights.reshape(texts.shape()));
        let (hidden, attention) = probe.into_parts();
        (said, Inside { hidden, attention, weights })
    }

    fn decode<'a>(&'a self, read: &[&[u32]]) -> Option<Box<dyn Decoding + 'a>> {
        if self.head != Head::Words {
            return None;
        }
        let same = read.iter().all(|row| row.len() == read[0].len());
        assert!(same, "decode: need beginnings of one length");
        let following = self.body.follow(read)?;
        let asked = self.asked(None, Mode::Eval);
        let planned = self.heads.plan_words(self.body.words().map(|words| &words.table));
        Some(Box::new(Telling { following, heads: &self.heads, planned, asked }))
    }

    fn plan(&self) -> Option<DecoderPlan> {
        let words = self.body.words()?;
        if self.head != Head::Words || !Weight::can_be_stored(&words.table.device()) {
            return None;
        }
        Some(DecoderPlan {
            decoder: PlannedDecoder::new(&self.body.decoder()?)?,
            head: self.heads.plan_words(Some(&words.table))?,
            longest: self.body.longest(),
        })
    }

    fn permuting(&self) -> Option<&dyn Permuting> {
        let can = self.head == Head::Words && self.body.two_streams().is_some();
        can.then_some(self)
    }

    fn vocabulary(&self) -> usize {
        self.body.words().map_or(usize::MAX, |words| words.table.dims()[0])
    }

    fn alphabet(&self) -> usize {
        self.body.alphabet()
    }

    fn set_words(&mut self, rows: &[(usize, &[f32])]) -> Result<()> {
        let words = self.body.words_mut();
        let words = words.ok_or_else(|| Error::invalid("the model has no word embeddings"))?;
        set_rows(words, rows).map_err(Error::Invalid)
    }

    fn is_typed(&self) -> bool {
        self.body.family().typed
    }

    fn longest(&self) -> Option<usize> {
        self.body.longest()
    }
}

impl<B: Body> Headed<B> {
    fn check(&self, texts: &Texts) {
        if let Some(most) = self.body.longest() {
            let got = texts.longest();
            assert!(got <= most, "a text of {got} tokens: the model can read {most}");
        }
    }
}

impl<B: Body> Permuting for Headed<B> {
    fn predict(&self, batch: &Permuted, mode: Mode) -> Predicted {
        let body = self.body.two_streams().expect("only models with two streams get here");
        let (hidden, memory) = body.tell(batch, mode);
        let said = self.heads.say(hidden, &Texts::new(), &self.asked(None, mode));
        Predicted { logits: said.logits.expect("a head for words"), memory }
    }

    fn remember(&self, texts: &Texts, mode: Mode) -> Memory {
        // No gradient goes back into a memory, so it is made without autodiff.
        let still = self.body.valid();
        still.two_streams().expect("only models with two streams get here").remember(texts, mode)
    }
}

/// Decoding state of a body, with its language-modelling head.
struct Telling<'a> {
    following: Box<dyn Following + 'a>,
    heads: &'a Heads,
    /// The head on slices, if it is one product.
    planned: Option<PlannedHead>,
    asked: HeadInputs<'a>,
}

impl Decoding for Telling<'_> {
    fn step(&mut self, words: Tensor<2, Int>) -> Next {
        let hidden = self.following.step(words);
        let said = self.heads.say(hidden, &Texts::new(), &self.asked);
        Next { logits: said.logits.expect("a head for words"), attention: None }
    }

    fn step_slices(&mut self, words: &[u32], logits: &mut Vec<f32>) -> Option<Tensor<2>> {
        if let Some(head) = &self.planned
            && let Some(hidden) = self.following.step_slices(words)
        {
            logits.resize(words.len() * head.scores.outputs(), 0.0);
            head.forward(hidden, logits);
            return None;
        }
        self.step(tokens(words, &Device::flex())).into_slices(logits)
    }

    fn reorder(&mut self, parents: &[usize]) {
        self.following.reorder(parents);
    }
}

/// Replaces rows of an embedding table.
fn set_rows(words: &mut Embedding, rows: &[(usize, &[f32])]) -> Result<(), String> {
    let ([entries, width], device) = (words.table.dims(), words.table.device());
    let mut table: Vec<f32> = words.table.val().into_data().try_into_vec().expect("floats");
    for (row, vector) in rows {
        if vector.len() != width {
            let got = vector.len();
            return Err(format!("vectors: got a width of {got}, the model's table has {width}"));
        }
        if *row >= entries {
            return Err(format!("vectors: got one for id {row}, the vocabulary has {entries}"));
        }
        table[row * width..(row + 1) * width].copy_from_slice(vector);
    }
    words.table = Param::from_data(TensorData::new(table, [entries, width]), &device).into();
    Ok(())
}

/// Family that a configuration names.
pub(crate) fn family(config: &Value) -> Result<&'static Family> {
    let asked = config["model_type"].as_str().unwrap_or("");
    zoo::families().find(|family| family.model_type == asked).ok_or_else(|| {
        let names = model_types().join(", ");
        Error::invalid(format!("model_type: got {asked:?}, need one of {names}"))
    })
}

/// Values of `model_type` of all text models.
pub fn model_types() -> Vec<&'static str> {
    zoo::types_of(InputKind::Texts)
}

/// Keys that a configuration of this family can have: those that are read, and those that name
/// heads and labels.
pub fn keys(config: &Value) -> Result<Vec<&'static str>> {
    const EVERY: [&str; 5] = ["model_type", "architectures", "num_labels", "id2label", "label2id"];
    let family = family(config)?;
    Ok(EVERY.into_iter().chain((family.keys)().iter().copied()).collect())
}

/// Head that a configuration names.
pub fn head_of(config: &Value) -> Result<Head> {
    family(config)?.head_of(config).map_err(Error::Invalid)
}

/// Whether models of this family can have a head.
pub fn has_head(config: &Value, head: Head) -> bool {
    family(config).is_ok_and(|family| family.class_of(head).is_some())
}

/// Returns the configuration with the class of this head.
fn with_head(config: &Value, head: Head) -> Result<Value> {
    let family = family(config)?;
    let class = family.class_of(head).ok_or_else(|| {
        let can = zoo::families().filter(|family| family.class_of(head).is_some());
        let can: Vec<&str> = can.map(|family| family.model_type).collect();
        Error::Invalid(format!(
            "a model of the family {} cannot be trained to {}; those of {} can, such as \
             google-bert/bert-base-uncased",
            family.model_type,
            head.purpose(),
            can.join(", ")
        ))
    })?;
    let mut config = config.clone();
    config["architectures"] = json!([class]);
    Ok(config)
}

/// Creates a model with this head and seeded initial values.
pub fn create(
    config: &Value,
    head: Head,
    seed: u64,
    device: &Device,
) -> Result<Box<dyn TextModel>> {
    zoo::create(&with_head(config, head)?, seed, device)
}

/// Loads a model with weights from a checkpoint. An error lists all names and shapes that do not
/// fit.
///
/// With another head than the one that the configuration names, the body is loaded and the new
/// head is initialised from the seed; but heads for words are compatible with each other.
pub fn load(
    config: &Value,
    weights: Arrays,
    head: Option<Head>,
    seed: u64,
    device: &Device,
) -> Result<Box<dyn TextModel>> {
    zoo::able(fill(config, weights, head, seed, device)?.whole()?)
}

/// Loads a model, with a list of the weights that do not fit. An error is one of the configuration.
fn fill(
    config: &Value,
    weights: Arrays,
    head: Option<Head>,
    seed: u64,
    device: &Device,
) -> Result<Fit> {
    let family = family(config)?;
    let named = family.head_of(config).map_err(Error::Invalid)?;
    let head = head.unwrap_or(named);
    let config = with_head(config, head)?;
    // Files of encoders for embeddings may leave out the pooler, which these do not use.
    let is_unpooled = head == Head::Bare && config["add_pooling_layer"] == false;
    if head == named && !is_unpooled {
        return zoo::filled(&config, weights, None, device);
    }
    let mut weights = with_prefix(weights, family.prefix);
    let inside = format!("{}.", family.prefix);
    let words = |head: Head| matches!(head, Head::Words | Head::Pretraining);
    if !(words(head) && words(named)) {
        weights.retain(|name, _| name.starts_with(&inside));
    }
    let pooler = format!("{inside}pooler.");
    let is_new = |name: &str| !name.starts_with(&inside) || name.starts_with(&pooler);
    zoo::filled(&config, weights, Some(&New { seed, is_new: &is_new }), device)
}

/// Opens a model from a folder in the Hugging Face layout, or a built-in one.
pub fn open(
    files: impl Into<ModelFiles>,
    head: Option<Head>,
    seed: u64,
    device: &Device,
) -> Result<Box<dyn TextModel>> {
    let files = files.into();
    let config = files.config()?;
    let of_config = |e: Error| Error::file(files.path(checkpoint::CONFIG), e.to_string());
    family(&config).map_err(of_config)?;
    let weights = files.weights()?;
    let fit = fill(&config, weights, head, seed, device).map_err(of_config)?;
    let of_weights = |e: Error| Error::file(files.weights_path(), e.to_string());
    zoo::able(fit.whole().map_err(of_weights)?)
}

/// Whether a tensor of an old checkpoint is a buffer, not a parameter.
pub(crate) fn is_buffer(name: &str) -> bool {
    let buffers = [
        ".position_ids",
        ".token_type_ids",
        ".attn.bias",
        ".attn.masked_bias",
        ".rotary_emb.inv_freq",
    ];
    buffers.iter().any(|end| name.ends_with(end))
}

/// Renames tensors as in the newest checkpoints: the body with its prefix, and norms with `weight`
/// and `bias`.
pub(crate) fn with_prefix(arrays: Arrays, prefix: &str) -> Arrays {
    let inside = format!("{prefix}.");
    let bare = !arrays.keys().any(|name| name.starts_with(&inside));
    let rename = |name: String| {
        let name = match (name.strip_suffix(".gamma"), name.strip_suffix(".beta")) {
            (Some(norm), _) => format!("{norm}.weight"),
            (_, Some(norm)) => format!("{norm}.bias"),
            _ => name,
        };
        if bare { format!("{inside}{name}") } else { name }
    };
    arrays.into_iter().map(|(name, array)| (rename(name), array)).collect()
}

pub(crate) fn without_prefix(arrays: Arrays, prefix: &str) -> Arrays {
    let inside = format!("{prefix}.");
    let rename = |name: String| name.strip_prefix(&inside).map_or(name.clone(), str::to_string);
    arrays.into_iter().map(|(name, array)| (rename(name), array)).collect()
}

/// Finds an activation function by its name in `config.json`.
pub(crate) fn activation(key: &str, name: &str) -> Result<Activation, String> {
    Ok(match name {
        "gelu" => Activation::Gelu,
        "gelu_new" | "gelu_pytorch_tanh" | "gelu_fast" => Activation::GeluTanh,
        "relu" => Activation::Relu,
        "silu" | "swish" => Activation::Silu,
        "tanh" => Activation::Tanh,
        "elu" => Activation::Elu,
        _ => {
            return Err(format!(
                "{key}: got {name:?}, need gelu, gelu_new, relu, silu, tanh or elu"
            ));
        }
    })
}

/// Describes a layer of dot-product self-attention.
pub(crate) fn dot_in_words(layer: &SelfAttention) -> String {
    let (heads, [inputs, _]) = (layer.heads.queries, layer.out.weight.dims());
    format!("{heads} heads of {}, dot product", inputs / heads)
}
