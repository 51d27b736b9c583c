//! Models that read texts, or continue them: BERT, GPT-2, XLNet and their relatives, with any
//! head, and models of words and their letters.
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
pub mod recorded;
mod texts;

pub use head::{Family, Head};
pub(crate) use head::{Sizes, Speaker, WordNames, label_count};
pub use old::read_config;
pub use texts::Texts;

use crate::checkpoint::{self, Arrays, Binder, Problem};
use crate::seq2seq::{Decoding, Next};
use crate::xlnet::{Memory, Permuted, Permuting, Predicted};
use crate::{Error, Result, bert, gpt2, memory, sizes, words, xlnet};
use burn::module::{Module, ModuleDisplay, ModuleMapper, Param};
use burn::tensor::{Device, Gradients, Int, Tensor, TensorData};
use head::{Asked, Heads};
use regard_attention::layers::{Embedding, SelfAttention};
use regard_attention::ops::Activation;
use regard_attention::{AdamW, Init, Mode};
use serde_json::{Value, json};
use std::path::Path;

/// What a model says of some texts.
#[derive(Debug)]
pub struct Output {
    /// `[N, M]`: the vector of every token, text after text.
    pub hidden: Tensor<2>,
    /// `[B, M]`: of every text, after the pooler, if the model has one.
    pub pooled: Option<Tensor<2>>,
    /// What the head says: of words `[N, V]`, of tokens `[N, labels]`, of texts `[B, labels]`,
    /// of the ends of an answer `[N, 2]`.
    pub logits: Option<Tensor<2>>,
    /// `[B, 2]`: whether the second part follows the first, or stands there by chance.
    pub follows: Option<Tensor<2>>,
}

/// What went on inside, layer by layer.
#[derive(Debug, Default)]
pub struct Inside {
    /// `[B, T, M]`: what goes into the first layer, and what comes out of each.
    pub hidden: Vec<Tensor<3>>,
    /// `[B, H, T, T]`: where each head of each layer looked.
    pub attention: Vec<Tensor<4>>,
    /// `[B, T]`: how much each token weighs in what is said of its text, if they are weighed.
    pub weights: Option<Tensor<2>>,
}

/// A model that reads texts. Made by [`create`], [`load`] or [`open`], trained and run through
/// this.
pub trait TextModel: Send {
    /// `config.json`
    fn config(&self) -> Value;

    /// What it is for.
    fn head(&self) -> Head;

    /// Reads texts. `at` are the tokens, counted over all texts, that a head for words, tokens or
    /// spans is asked about: all of them by default.
    ///
    /// # Panics
    /// If a text is longer than the model can read.
    fn forward(&self, texts: &Texts, at: Option<&[usize]>, mode: Mode) -> Output;

    /// Reads texts of one length, and tells what went on inside.
    fn look_inside(&self, texts: &Texts) -> (Output, Inside);

    /// Has read the beginnings of some texts, of one length, and is ready to go on, a row for
    /// each; nothing if it is not a model that continues texts.
    fn decode<'a>(&'a self, read: &[&[u32]]) -> Option<Box<dyn Decoding + 'a>>;

    /// The way to learn words in any order, if it has two streams and a head for words (XLNet).
    fn permuting(&self) -> Option<&dyn Permuting>;

    /// Its weights by name.
    fn weights(&self) -> Arrays;

    /// The gradients of its weights, by name; 0 for those that have none.
    fn gradients(&self, grads: &mut Gradients) -> Arrays;

    /// Numbers that training changes.
    fn parameters(&self) -> usize;

    /// Words that it knows; any number if it knows them by their letters alone.
    fn vocabulary(&self) -> usize;

    /// Letters that it knows; 0 if it does not look at them.
    fn alphabet(&self) -> usize;

    /// Puts vectors in the rows of some words.
    ///
    /// # Errors
    /// If it has no table of words, or one of another width, or not these rows.
    fn set_words(&mut self, rows: &[(usize, &[f32])]) -> Result<()>;

    /// Whether it is told which part of a pair a token is of.
    fn is_typed(&self) -> bool;

    /// Whether a parameter of this name may go without a gradient: what other heads need.
    fn may_rest(&self, name: &str) -> bool;

    /// The longest text that it can read, if there is one.
    fn longest(&self) -> Option<usize>;

    /// How each layer attends, in words.
    fn attention(&self) -> Vec<String>;

    /// The same without a tape, for running.
    fn frozen(&self) -> Box<dyn TextModel>;

    /// Keeps the gradients of a part of a batch for the next step.
    fn gather(&self, adamw: &mut AdamW, grads: Gradients);

    /// One step of the optimiser.
    fn update(self: Box<Self>, adamw: &mut AdamW, lr: f64, grads: Gradients) -> Box<dyn TextModel>;
}

/// What a model's own file says of it: the part below the heads.
pub(crate) trait Body: Module + ModuleDisplay + 'static {
    fn family(&self) -> &'static Family;
    fn bind(&mut self, b: &mut Binder);
    /// `[B, T, M]`, or `[1, N, M]` for texts of different lengths.
    fn read(&self, texts: &Texts, mode: Mode, inside: Option<&mut Inside>) -> Tensor<3>;
    /// `[V, M]`: the vectors that words are read with, if there is a table of them.
    fn words(&self) -> Option<&Embedding>;
    /// The same, to be changed.
    fn words_mut(&mut self) -> Option<&mut Embedding>;
    /// Letters that it knows; 0 if it does not look at them.
    fn alphabet(&self) -> usize {
        0
    }
    fn longest(&self) -> Option<usize>;
    /// How each layer attends, in words.
    fn attention(&self) -> Vec<String>;
    /// Whether a parameter may go without a gradient.
    fn may_rest(&self, _name: &str) -> bool {
        false
    }
    /// Has read beginnings, if it continues texts: gives the vectors of what follows.
    fn follow(&self, _read: &[&[u32]]) -> Option<Box<dyn Following + '_>> {
        None
    }
    /// Tells words by a second stream, if it has one.
    fn two_streams(&self) -> Option<&dyn TwoStreams> {
        None
    }
}

/// A body that tells words in any order.
pub(crate) trait TwoStreams {
    /// The vectors `[targets, M]` that words are told from, and what is remembered.
    fn tell(&self, batch: &Permuted, mode: Mode) -> (Tensor<2>, Option<Memory>);
    /// What is remembered of texts of which nothing is told.
    fn remember(&self, texts: &Texts, mode: Mode) -> Memory;
}

/// A body in the middle of writing some rows.
pub(crate) trait Following {
    /// `words: [R, 1]` → `[R, M]`
    fn step(&mut self, words: Tensor<2, Int>) -> Tensor<2>;
    fn reorder(&mut self, parents: &[usize]);
}

/// A body and what stands on it.
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

    fn bind(&mut self, b: &mut Binder) {
        let family = self.body.family();
        b.at(family.prefix, |b| {
            self.body.bind(b);
            self.heads.bind_inside(b);
        });
        self.heads.bind(family, self.head, b);
    }

    fn asked<'a>(&self, at: Option<&'a [usize]>, mode: Mode) -> Asked<'a> {
        let table = self.body.words().map(|words| words.table.val());
        Asked { family: self.body.family(), head: self.head, mode, table, at }
    }

    fn say(&self, x: Tensor<3>, texts: &Texts, at: Option<&[usize]>, mode: Mode) -> Output {
        let [b, t, m] = x.dims();
        self.heads.say(x.reshape([b * t, m]), texts, &self.asked(at, mode))
    }

    fn named(&self) -> Arrays {
        let mut arrays = Arrays::new();
        self.clone().bind(&mut Binder::write(&mut arrays));
        match self.head {
            // Vectors alone are saved under the names that the model itself has.
            Head::Bare => without_prefix(arrays, self.body.family().prefix),
            _ => arrays,
        }
    }
}

impl<B: Body> TextModel for Headed<B> {
    fn config(&self) -> Value {
        let mut json = self.config.clone();
        if let Some(class) = self.body.family().class_of(self.head) {
            json["architectures"] = json!([class]);
        }
        json
    }

    fn head(&self) -> Head {
        self.head
    }

    fn forward(&self, texts: &Texts, at: Option<&[usize]>, mode: Mode) -> Output {
        self.check(texts);
        self.say(self.body.read(texts, mode, None), texts, at, mode)
    }

    fn look_inside(&self, texts: &Texts) -> (Output, Inside) {
        self.check(texts);
        let rows = texts.lengths().len();
        assert_eq!(texts.shape()[0], rows, "look_inside: need texts of one length");
        let mut inside = Inside::default();
        let x = self.body.read(texts, Mode::Eval, Some(&mut inside));
        let said = self.say(x, texts, None, Mode::Eval);
        let weights = self.heads.weights(said.hidden.clone(), texts);
        inside.weights = weights.map(|weights| weights.reshape(texts.shape()));
        (said, inside)
    }

    fn decode<'a>(&'a self, read: &[&[u32]]) -> Option<Box<dyn Decoding + 'a>> {
        if self.head != Head::Words {
            return None;
        }
        let same = read.iter().all(|row| row.len() == read[0].len());
        assert!(same, "decode: need beginnings of one length");
        let following = self.body.follow(read)?;
        let asked = self.asked(None, Mode::Eval);
        Some(Box::new(Telling { following, heads: &self.heads, asked }))
    }

    fn permuting(&self) -> Option<&dyn Permuting> {
        let can = self.head == Head::Words && self.body.two_streams().is_some();
        can.then_some(self)
    }

    fn weights(&self) -> Arrays {
        self.named()
    }

    fn gradients(&self, grads: &mut Gradients) -> Arrays {
        self.clone().map(&mut AsGradients(grads)).named()
    }

    fn parameters(&self) -> usize {
        self.num_params()
    }

    fn vocabulary(&self) -> usize {
        self.body.words().map_or(usize::MAX, |words| words.table.dims()[0])
    }

    fn alphabet(&self) -> usize {
        self.body.alphabet()
    }

    fn set_words(&mut self, rows: &[(usize, &[f32])]) -> Result<()> {
        let words = self.body.words_mut();
        let words = words.ok_or_else(|| Error::invalid("the model has no table of words"))?;
        set_rows(words, rows).map_err(Error::Invalid)
    }

    fn is_typed(&self) -> bool {
        self.body.family().typed
    }

    fn may_rest(&self, name: &str) -> bool {
        name.strip_prefix("body.").is_some_and(|name| self.body.may_rest(name))
    }

    fn longest(&self) -> Option<usize> {
        self.body.longest()
    }

    fn attention(&self) -> Vec<String> {
        self.body.attention()
    }

    fn frozen(&self) -> Box<dyn TextModel> {
        Box::new(self.valid())
    }

    fn gather(&self, adamw: &mut AdamW, grads: Gradients) {
        adamw.gather(self, grads);
    }

    fn update(self: Box<Self>, adamw: &mut AdamW, lr: f64, grads: Gradients) -> Box<dyn TextModel> {
        Box::new(adamw.step(lr, *self, grads))
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
        let body = self.body.two_streams().expect("only those with two streams are asked");
        let (hidden, memory) = body.tell(batch, mode);
        let said = self.heads.say(hidden, &Texts::new(), &self.asked(None, mode));
        Predicted { logits: said.logits.expect("a head for words"), memory }
    }

    fn remember(&self, texts: &Texts, mode: Mode) -> Memory {
        // No gradient goes back into a memory, so that no tape is needed to make one.
        let still = self.body.valid();
        still.two_streams().expect("only those with two streams are asked").remember(texts, mode)
    }
}

/// A body that writes, and the head that tells its words.
struct Telling<'a> {
    following: Box<dyn Following + 'a>,
    heads: &'a Heads,
    asked: Asked<'a>,
}

impl Decoding for Telling<'_> {
    fn step(&mut self, words: Tensor<2, Int>) -> Next {
        let hidden = self.following.step(words);
        let said = self.heads.say(hidden, &Texts::new(), &self.asked);
        Next { logits: said.logits.expect("a head for words"), attention: None }
    }

    fn reorder(&mut self, parents: &[usize]) {
        self.following.reorder(parents);
    }
}

/// Puts vectors in the rows of a table.
fn set_rows(words: &mut Embedding, rows: &[(usize, &[f32])]) -> Result<(), String> {
    let ([entries, width], device) = (words.table.dims(), words.table.device());
    let mut table: Vec<f32> = words.table.val().into_data().try_into_vec().expect("floats");
    for (row, vector) in rows {
        if vector.len() != width {
            let got = vector.len();
            return Err(format!(
                "vectors: got {got} numbers a word, the model's table has {width}"
            ));
        }
        if *row >= entries {
            return Err(format!("vectors: got one for word {row}, the model has {entries} words"));
        }
        table[row * width..(row + 1) * width].copy_from_slice(vector);
    }
    words.table = Param::from_data(TensorData::new(table, [entries, width]), &device);
    Ok(())
}

/// Puts the gradient of each parameter in the place of its value, so that the names of tensors
/// are those of gradients too.
struct AsGradients<'a>(&'a mut Gradients);

impl ModuleMapper for AsGradients<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let value = param.val();
        let gradient = value.grad_remove(self.0).unwrap_or_else(|| value.clone().inner() * 0.0);
        Param::initialized(param.id, gradient)
    }
}

/// How a family of models is made from its configuration.
type Make = fn(&Value, Head, &mut Init) -> Result<Box<dyn Loadable>, String>;

/// Every family.
const FAMILIES: &[(&Family, Make)] = &[
    (&bert::BERT, |json, head, init| {
        made::<bert::Bert>(bert::Config::bert(json)?, json, head, init)
    }),
    (&bert::ROBERTA, |json, head, init| {
        made::<bert::Bert>(bert::Config::roberta(json)?, json, head, init)
    }),
    (&bert::DISTILBERT, |json, head, init| {
        made::<bert::Bert>(bert::Config::distilbert(json)?, json, head, init)
    }),
    (&gpt2::GPT2, |json, head, init| {
        made::<gpt2::Gpt2>(gpt2::Config::read(json)?, json, head, init)
    }),
    (&xlnet::XLNET, |json, head, init| {
        made::<xlnet::Xlnet>(xlnet::Config::read(json, head)?, json, head, init)
    }),
    (&words::BILSTM, |json, head, init| {
        made::<words::Words>(words::Config::bilstm(json)?, json, head, init)
    }),
    (&words::CNN, |json, head, init| {
        made::<words::Words>(words::Config::cnn(json)?, json, head, init)
    }),
];

/// A body that can be made.
pub(crate) trait Made: Body + Sized {
    type Config;
    fn new(config: &Self::Config, init: &mut Init) -> Self;
    fn sizes(config: &Self::Config) -> Sizes;
}

fn made<B: Made>(
    config: B::Config,
    json: &Value,
    head: Head,
    init: &mut Init,
) -> Result<Box<dyn Loadable>, String> {
    let sizes = Sizes { labels: label_count(json)?, ..B::sizes(&config) };
    let labels = ("num_labels", sizes.labels);
    sizes::check_matrices(&[[labels, ("the width", sizes.width)]])?;
    Ok(Box::new(Headed::new(B::new(&config, init), head, &sizes, json, init)))
}

/// A model whose weights can be filled in.
trait Loadable: TextModel {
    fn fill(&mut self, b: &mut Binder);
    fn finish(self: Box<Self>) -> Box<dyn TextModel>;
}

impl<B: Body> Loadable for Headed<B> {
    fn fill(&mut self, b: &mut Binder) {
        self.bind(b);
    }
    fn finish(self: Box<Self>) -> Box<dyn TextModel> {
        self
    }
}

fn family(config: &Value) -> Result<&'static (&'static Family, Make)> {
    let asked = config["model_type"].as_str().unwrap_or("");
    FAMILIES.iter().find(|(family, _)| family.model_type == asked).ok_or_else(|| {
        let names = model_types().join(", ");
        Error::invalid(format!("model_type: got {asked:?}, need one of {names}"))
    })
}

/// The names of all families.
pub fn model_types() -> Vec<&'static str> {
    FAMILIES.iter().map(|(family, _)| family.model_type).collect()
}

/// The keys that a configuration of this family can have: those that decide something, and
/// those that name heads and labels.
pub fn keys(config: &Value) -> Result<Vec<&'static str>> {
    const EVERY: [&str; 5] = ["model_type", "architectures", "num_labels", "id2label", "label2id"];
    let (family, _) = family(config)?;
    Ok(EVERY.into_iter().chain((family.keys)().iter().copied()).collect())
}

/// The head that a configuration names.
pub fn head_of(config: &Value) -> Result<Head> {
    family(config)?.0.head_of(config).map_err(Error::Invalid)
}

/// A model with first values that are a function of the seed.
pub fn create(
    config: &Value,
    head: Head,
    seed: u64,
    device: &Device,
) -> Result<Box<dyn TextModel>> {
    Ok(memory::create(seed, device, |init| make(config, head, init))?.finish())
}

fn make(config: &Value, head: Head, init: &mut Init) -> Result<Box<dyn Loadable>> {
    let (family, make) = family(config)?;
    if family.class_of(head).is_none() {
        let message = format!("{} has no head for {head:?}", family.model_type);
        return Err(Error::Invalid(message.to_lowercase()));
    }
    make(config, head, init).map_err(Error::Invalid)
}

/// A model with weights from a checkpoint. All names and shapes that do not fit are told at once.
///
/// With another head than the one that the configuration names, the body is taken and the new
/// head begins anew, from the seed; but heads for words are one and the same.
pub fn load(
    config: &Value,
    weights: Arrays,
    head: Option<Head>,
    seed: u64,
    device: &Device,
) -> Result<Box<dyn TextModel>> {
    let (model, problems) = fill(config, weights, head, seed, device)?;
    if problems.is_empty() { Ok(model) } else { Err(Error::invalid(crate::misfit(&problems))) }
}

/// The model, and what of the weights did not fit it. An error is one of the configuration.
fn fill(
    config: &Value,
    weights: Arrays,
    head: Option<Head>,
    seed: u64,
    device: &Device,
) -> Result<(Box<dyn TextModel>, Vec<String>)> {
    let (family, _) = family(config)?;
    let named = family.head_of(config).map_err(Error::Invalid)?;
    let head = head.unwrap_or(named);
    let mut weights = with_prefix(weights, family.prefix);
    let inside = format!("{}.", family.prefix);
    let words = |head: Head| matches!(head, Head::Words | Head::Pretraining);
    if head != named && !(words(head) && words(named)) {
        weights.retain(|name, _| name.starts_with(&inside));
    }
    let pooler = format!("{inside}pooler.");
    let new =
        |name: &str| head != named && (!name.starts_with(&inside) || name.starts_with(&pooler));
    let mut init = Init::blank(device);
    if head != named {
        // First values are memory: names and shapes are compared with a model that has none.
        let mut binder = Binder::compare(&weights);
        let mut blank = Init::blank(device);
        make(config, head, &mut blank)?.fill(&mut binder);
        memory::check(blank.parameters())?;
        check_new_head(&binder.problems(), &weights, &new)?;
        init = Init::new(seed, device);
    }
    let mut model = make(config, head, &mut init)?;
    let mut binder = Binder::read(&mut weights, device);
    model.fill(&mut binder);
    let mut problems: Vec<String> =
        binder.problems().iter().filter(|p| !p.is_missing(&new)).map(|p| p.to_string()).collect();
    // What belongs to another head is not missed; what is inside and has no place is.
    let left = weights.keys().filter(|name| name.starts_with(&inside));
    let left = left.filter(|name| !name.starts_with(&pooler) && !is_buffer(name));
    problems.extend(left.map(|name| format!("{name} has no place in this model")));
    Ok((model.finish(), problems))
}

/// Refuses a body that does not fit its weights, and a new head that is far larger than the whole
/// model.
fn check_new_head(
    problems: &[Problem],
    weights: &Arrays,
    new: &dyn Fn(&str) -> bool,
) -> Result<()> {
    let (news, wrong): (Vec<&Problem>, Vec<&Problem>) =
        problems.iter().partition(|problem| problem.is_missing(new));
    if !wrong.is_empty() {
        let wrong: Vec<String> = wrong.iter().map(|problem| problem.to_string()).collect();
        return Err(Error::invalid(crate::misfit(&wrong)));
    }
    let known: usize = weights.values().map(|array| array.data.len()).sum();
    let most = known.saturating_add(NEW_HEAD);
    let size = |problem: &Problem| match problem {
        Problem::Missing { shape, .. } => shape.iter().fold(1, |n: usize, s| n.saturating_mul(*s)),
        _ => 0,
    };
    let asked = news.iter().fold(0, |sum: usize, problem| sum.saturating_add(size(problem)));
    match asked <= most {
        true => Ok(()),
        false => Err(Error::invalid(format!(
            "the new head would have {asked} numbers, need at most {most} for a model of {known}: \
             see num_labels, id2label or vocab_size"
        ))),
    }
}

/// Numbers that a new head may have beyond those that the model has.
const NEW_HEAD: usize = 1 << 24;

/// The model of a folder in the Hugging Face layout.
pub fn open(
    folder: &Path,
    head: Option<Head>,
    seed: u64,
    device: &Device,
) -> Result<Box<dyn TextModel>> {
    let config = read_config(folder)?;
    let of_config = |e: Error| Error::file(folder.join(checkpoint::CONFIG), e.to_string());
    family(&config).map_err(of_config)?;
    let weights = checkpoint::read_weights(folder)?;
    let (model, problems) = fill(&config, weights, head, seed, device).map_err(of_config)?;
    if problems.is_empty() {
        return Ok(model);
    }
    Err(Error::file(checkpoint::weights_file(folder), crate::misfit(&problems)))
}

/// Tensors that old checkpoints have and that are not learned.
fn is_buffer(name: &str) -> bool {
    let buffers = [".position_ids", ".token_type_ids", ".attn.bias", ".attn.masked_bias"];
    buffers.iter().any(|end| name.ends_with(end))
}

/// The names as the newest checkpoints have them: inside the model with its prefix, and norms
/// with weights and biases.
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

/// A function by the name that `config.json` has for it.
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

/// How a layer of self-attention with a dot product attends.
pub(crate) fn dot_in_words(layer: &SelfAttention) -> String {
    let (heads, [inputs, _]) = (layer.heads.queries, layer.out.weight.dims());
    format!("{heads} heads of {}, dot product", inputs / heads)
}
