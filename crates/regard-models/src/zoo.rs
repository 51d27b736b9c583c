//! The registry of networks, and the functions that make one: [`create`], [`load`], [`open`]. Those
//! of [`text`](crate::text) choose a head and then call these.
//!
//! ```
//! use burn::tensor::{Device, Int, Tensor};
//! use regard_attention::Mode;
//! use regard_models::{Seq2Seq, Source, zoo};
//! use serde_json::json;
//!
//! let config = json!({
//!     "model_type": "bahdanau", "vocab_size": 20, "decoder_vocab_size": 30,
//!     "embedding_size": 8, "hidden_size": 16, "bidirectional": true,
//! });
//! let device = Device::flex();
//! let model = zoo::create::<dyn Seq2Seq>(&config, 7, &device).unwrap();
//! let source = Source {
//!     ids: Tensor::from_ints([[5, 6, 7, 2], [8, 9, 2, 0]], &device),
//!     lengths: vec![4, 3],
//! };
//! let words = Tensor::<2, Int>::from_ints([[1, 4, 4], [1, 5, 5]], &device);
//! assert_eq!(model.forward(&source, words, Mode::Eval).logits.dims(), [2, 3, 30]);
//! ```

use crate::adapter::LinearLayer;
use crate::checkpoint::{self, Arrays, Binder, TensorProblem};
use crate::network::{Capability, Definition, InputKind, Network, linear_layers, put};
use crate::text::{Family, Headed};
use crate::{Error, ModelFiles, Result, memory, misfit};
use crate::{
    bahdanau, bert, copying, decoder, gat, gpt2, luong, pointer, rnn, speech, story, transformer,
};
use crate::{modernbert, vit, words, xlnet};
use burn::tensor::Device;
use regard_attention::Init;
use serde_json::Value;

/// A kind of network.
pub(crate) struct Kind {
    reads: InputKind,
    families: fn() -> &'static [&'static Family],
    types: fn() -> Vec<&'static str>,
    task: fn(&Value) -> Result<&'static str, String>,
    make: Make,
    fill: Fill,
    linear: Linear,
}

/// Lists the linear layers of a configuration.
type Linear = fn(&Value, &Arrays) -> Result<Vec<LinearLayer>, String>;

/// Makes a network with initial values.
type Make = fn(&Value, &mut Init) -> Result<Box<dyn Network>, String>;

/// Makes a network with weights.
type Fill = fn(&Value, Arrays, Option<&New>, &Device) -> Result<Fit, String>;

/// All kinds of networks, one per model file.
pub(crate) static KINDS: &[Kind] = &[
    kind::<Headed<bert::Bert>>(),
    kind::<Headed<gpt2::Gpt2>>(),
    kind::<Headed<decoder::Decoder>>(),
    kind::<Headed<modernbert::ModernBert>>(),
    kind::<Headed<xlnet::Xlnet>>(),
    kind::<Headed<words::WordEncoder>>(),
    kind::<rnn::Rnn>(),
    kind::<bahdanau::Bahdanau>(),
    kind::<luong::Luong>(),
    kind::<transformer::Transformer>(),
    kind::<story::Repeated>(),
    kind::<story::Hops>(),
    kind::<vit::Vit>(),
    kind::<speech::Speech>(),
    kind::<gat::Gat>(),
    kind::<pointer::PointerNet>(),
    kind::<copying::PointerGenerator>(),
];

const fn kind<M: Definition>() -> Kind {
    Kind {
        reads: M::READS,
        families: M::families,
        types: <M as Definition>::types,
        task: M::task,
        make: |config, init| {
            let model = M::make(config, None, init)?;
            check_tables(config, &Definition::config(&model))?;
            Ok(Box::new(model))
        },
        fill: fill::<M>,
        linear: |config, weights| {
            let mut init = Init::blank(&Device::flex());
            Ok(linear_layers(M::make(config, Some(weights), &mut init)?))
        },
    }
}

impl Kind {
    /// Values of `model_type` in `config.json`.
    fn types(&self) -> Vec<&'static str> {
        (self.types)()
    }
}

/// Values of `model_type` of all networks.
pub fn model_types() -> Vec<&'static str> {
    KINDS.iter().flat_map(Kind::types).collect()
}

/// Values of `model_type` of networks with this kind of input.
pub(crate) fn types_of(reads: InputKind) -> Vec<&'static str> {
    KINDS.iter().filter(|kind| kind.reads == reads).flat_map(Kind::types).collect()
}

/// Iterates over all families of text models.
pub(crate) fn families() -> impl Iterator<Item = &'static Family> {
    KINDS.iter().flat_map(|kind| (kind.families)()).copied()
}

/// Kind that a configuration names.
fn kind_of(config: &Value) -> Result<&'static Kind> {
    let asked = config["model_type"].as_str().unwrap_or("");
    KINDS.iter().find(|kind| kind.types().contains(&asked)).ok_or_else(|| {
        let names = model_types().join(", ");
        Error::invalid(format!("model_type: got {asked:?}, need one of {names}"))
    })
}

/// Whether a configuration is of a network with this capability.
pub fn is<N: Capability + ?Sized>(config: &Value) -> bool {
    config["model_type"].as_str().is_some_and(|asked| N::types().contains(&asked))
}

/// Task that a model of this configuration is for, by its name in recipes.
pub fn task_of(config: &Value) -> Result<&'static str> {
    (kind_of(config)?.task)(config).map_err(Error::Invalid)
}

/// Lists the linear layers of a model with these weights, without making it.
///
/// # Errors
/// Those of the configuration.
pub fn linear_layers_of(config: &Value, weights: &Arrays) -> Result<Vec<LinearLayer>> {
    (kind_of(config)?.linear)(config, weights).map_err(Error::Invalid)
}

/// Creates a network with seeded initial values.
pub fn create<N: Capability + ?Sized>(
    config: &Value,
    seed: u64,
    device: &Device,
) -> Result<Box<N>> {
    need::<N>(config)?;
    let kind = kind_of(config)?;
    let make = |init: &mut Init| (kind.make)(config, init).map_err(Error::Invalid);
    able(memory::create(seed, device, make)?)
}

/// Loads a network with weights from a checkpoint. An error lists all tensors that are missing,
/// have another shape or are unexpected.
pub fn load<N: Capability + ?Sized>(
    config: &Value,
    weights: Arrays,
    device: &Device,
) -> Result<Box<N>> {
    need::<N>(config)?;
    able(filled(config, weights, None, device)?.whole()?)
}

/// Opens a network from a folder in the Hugging Face layout, or a built-in one. An error names the
/// file that it is about.
pub fn open<N: Capability + ?Sized>(
    files: impl Into<ModelFiles>,
    device: &Device,
) -> Result<Box<N>> {
    let files = files.into();
    let config = files.config()?;
    let of_config = |e: Error| Error::file(files.path(checkpoint::CONFIG), e.to_string());
    need::<N>(&config).map_err(of_config)?;
    let weights = files.weights()?;
    let fit = filled(&config, weights, None, device).map_err(of_config)?;
    let of_weights = |e: Error| Error::file(files.weights_path(), e.to_string());
    able(fit.whole().map_err(of_weights)?)
}

/// Refuses a configuration of a network without this capability.
fn need<N: Capability + ?Sized>(config: &Value) -> Result<()> {
    match is::<N>(config) {
        true => Ok(()),
        false => {
            let (got, names) = (&config["model_type"], N::types().join(", "));
            Err(Error::invalid(format!("model_type: got {got}, need one of {names}")))
        }
    }
}

/// Converts a network to the requested capability.
pub(crate) fn able<N: Capability + ?Sized>(network: Box<dyn Network>) -> Result<Box<N>> {
    // `need` has already compared the type with those of the capability.
    let (got, names) = (network.config()["model_type"].clone(), N::types().join(", "));
    let lacks = || Error::invalid(format!("model_type: got {got}, need one of {names}"));
    N::of(network).ok_or_else(lacks)
}

/// A network, with the tensors of a checkpoint that did not fit it.
pub(crate) struct Fit {
    network: Box<dyn Network>,
    problems: Vec<String>,
}

impl Fit {
    /// Returns the network, if everything fits.
    pub fn whole(self) -> Result<Box<dyn Network>> {
        match self.problems.is_empty() {
            true => Ok(self.network),
            false => Err(Error::invalid(misfit(&self.problems))),
        }
    }
}

/// Parameters that a checkpoint may lack: those of a new head, initialised from a seed.
pub(crate) struct New<'a> {
    pub seed: u64,
    pub is_new: &'a dyn Fn(&str) -> bool,
}

/// Makes the network of a configuration with these weights.
pub(crate) fn filled(
    config: &Value,
    weights: Arrays,
    new: Option<&New>,
    device: &Device,
) -> Result<Fit> {
    (kind_of(config)?.fill)(config, weights, new, device).map_err(Error::Invalid)
}

fn fill<M: Definition>(
    config: &Value,
    mut weights: Arrays,
    new: Option<&New>,
    device: &Device,
) -> Result<Fit, String> {
    let mut init = Init::blank(device);
    let mut model = M::make(config, Some(&weights), &mut init)?;
    check_tables(config, &Definition::config(&model))?;
    if let Some(New { seed, is_new }) = new {
        // Initial values take memory: names and shapes are first compared on a blank model.
        weights = model.rename_on_load(weights);
        let mut binder = Binder::compare(&weights);
        model.bind(&mut binder);
        memory::check(init.parameters()).map_err(|e| e.to_string())?;
        check_new_head(&binder.problems(), &weights, is_new)?;
        model = M::make(config, Some(&weights), &mut Init::new(*seed, device))?;
    }
    // Again, because the new model has not yet seen which optional tensors there are.
    let weights = model.rename_on_load(weights);
    let is_new = |name: &str| new.is_some_and(|new| (new.is_new)(name));
    let problems = put(&mut model, weights, &is_new, device);
    Ok(Fit { network: Box::new(model), problems })
}

/// Most parameters that a new head may have beyond those of the model.
const NEW_HEAD: usize = 1 << 24;

/// Refuses a body that does not fit its weights, and a new head that is far larger than the
/// model.
fn check_new_head(
    problems: &[TensorProblem],
    weights: &Arrays,
    is_new: &dyn Fn(&str) -> bool,
) -> Result<(), String> {
    let (news, wrong): (Vec<&TensorProblem>, Vec<&TensorProblem>) =
        problems.iter().partition(|problem| problem.is_missing(is_new));
    if !wrong.is_empty() {
        let wrong: Vec<String> = wrong.iter().map(|problem| problem.to_string()).collect();
        return Err(misfit(&wrong));
    }
    let known: usize = weights.values().map(|array| array.count()).sum();
    let most = known.saturating_add(NEW_HEAD);
    let size = |problem: &TensorProblem| match problem {
        TensorProblem::Missing { shape, .. } => {
            shape.iter().fold(1, |n: usize, s| n.saturating_mul(*s))
        }
        _ => 0,
    };
    let asked = news.iter().fold(0, |sum: usize, problem| sum.saturating_add(size(problem)));
    match asked <= most {
        true => Ok(()),
        false => Err(format!(
            "the new head would have {asked} parameters, need at most {most} for a model of \
             {known}: see num_labels, id2label or vocab_size"
        )),
    }
}

/// Refuses unknown keys in a table with a `kind`. (Serde ignores them where a kind has no keys.)
fn check_tables(asked: &Value, known: &Value) -> Result<(), String> {
    for (name, table) in asked.as_object().into_iter().flatten() {
        let Some(table) = table.as_object().filter(|table| table.contains_key("kind")) else {
            continue;
        };
        let known = |key: &String| key == "kind" || known[name].get(key).is_some();
        if let Some(key) = table.keys().find(|key| !known(key)) {
            return Err(format!("{name}: {} has no key {key:?}", table["kind"]));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Two kinds of one `model_type` would hide each other.
    #[test]
    fn every_type_is_of_one_kind() {
        let mut types = model_types();
        types.sort_unstable();
        let all = types.len();
        types.dedup();
        assert_eq!((all, all > 15), (types.len(), true), "{types:?}");
    }

    /// The types that messages list for a capability are those of networks that have it.
    #[test]
    fn types_of_a_capability_have_it() {
        let sizes = json!({
            "vocab_size": 9, "decoder_vocab_size": 9, "hidden_size": 4, "num_hidden_layers": 1,
            "num_attention_heads": 1, "num_key_value_heads": 1, "intermediate_size": 4, "d_model": 4, "encoder_layers": 1,
            "decoder_layers": 1, "encoder_attention_heads": 1, "decoder_attention_heads": 1,
            "encoder_ffn_dim": 4, "decoder_ffn_dim": 4, "n_embd": 4, "n_layer": 1, "n_head": 1,
            "d_inner": 4, "num_labels": 2,
        });
        for reads in [InputKind::Texts, InputKind::Pairs, InputKind::Stories] {
            for name in types_of(reads) {
                let mut config = sizes.clone();
                config["model_type"] = json!(name);
                let network = create::<dyn Network>(&config, 1, &Device::flex());
                let network = network.unwrap_or_else(|e| panic!("{name}: {e}"));
                let has = match reads {
                    InputKind::Texts => network.into_text().is_some(),
                    InputKind::Pairs => network.into_seq2seq().is_some(),
                    _ => network.into_story().is_some(),
                };
                assert!(has, "{name}: {reads:?}");
            }
        }
    }
}
