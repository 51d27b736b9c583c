//! Quantisation of a model, with a measurement of what it costs.
//!
//! All weight matrices are quantised and the model is compared with the original on a sample:
//! perplexity for language models, cosine similarity of text vectors for encoders, BLEU for
//! translators. If it loses more than the bound, every matrix is quantised alone, and those that
//! lose most keep a higher precision.

mod gguf_file;
mod measure;
mod sample;

pub use gguf_file::{GgufFile, to_gguf};
pub use sample::{Example, SENTENCES, Sample};

use crate::{say, train};
use burn::tensor::Device;
use measure::Subject;
use regard_attention::quant::Bits;
use regard_models::checkpoint::{Arrays, Dtype, Precision};
use regard_models::{Error, ModelFiles, Network, Result, checkpoint, zoo};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Name of our format in `quantization_config`.
pub const METHOD: &str = "regard";
/// Key of `config.json` for it.
const KEY: &str = "quantization_config";

/// What is compared between the original and the quantised model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// Perplexity of a causal language model; the loss is its relative increase.
    Perplexity,
    /// Cosine similarity of a text's vector, the mean of its hidden states; the loss is 1 − cosine.
    Cosine,
    /// BLEU of a translator; the loss is the difference in points.
    Bleu,
}

/// Translations that BLEU is measured against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum References {
    /// References of the sample.
    Data,
    /// Translations of the model before quantisation, for a sample without translations: its BLEU is 100.
    Original,
}

impl Measure {
    /// Largest loss that is accepted by default.
    pub fn bound(self, bits: Bits) -> f64 {
        match (self, bits) {
            (Measure::Perplexity, Bits::Bf16 | Bits::Int8 | Bits::Int8Groups) => 0.005,
            (Measure::Perplexity, Bits::Int4) => 0.06,
            (Measure::Cosine, Bits::Bf16 | Bits::Int8 | Bits::Int8Groups) => 0.001,
            (Measure::Cosine, Bits::Int4) => 0.02,
            (Measure::Bleu, Bits::Bf16 | Bits::Int8 | Bits::Int8Groups) => 0.3,
            (Measure::Bleu, Bits::Int4) => 1.0,
        }
    }
}

/// Comparison of a quantised model with the original.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Quality {
    /// What is compared.
    pub measure: Measure,
    /// Value of the original.
    pub before: f64,
    /// Value of the quantised model.
    pub after: f64,
    /// Translations that BLEU is measured against, for translators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub references: Option<References>,
    /// What is lost; see [`Measure`].
    pub loss: f64,
    /// Largest accepted loss.
    pub bound: f64,
    /// Mean Kullback–Leibler divergence of the next token's distribution, in nats, for language
    /// models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub divergence: Option<f64>,
    /// Mean cosine similarity of the hidden states of single tokens, for encoders.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<f64>,
    /// Share of equal first choices: next tokens, labels, or whole translations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agreement: Option<f64>,
    /// Number of texts or sentences that were measured; `None` for language models, which read a
    /// running text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub texts: Option<usize>,
    /// Number of tokens that were measured; `None` for translators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_tokens: Option<usize>,
}

/// A quantised model.
pub struct Quantized {
    /// Configuration, with `quantization_config`.
    pub config: Value,
    /// Weights.
    pub weights: Arrays,
    /// Precision of the weights that are not quantised.
    pub precision: Precision,
    /// Number of bits of the quantised weights.
    pub bits: Bits,
    /// Comparison with the original.
    pub quality: Quality,
    /// Numbers of tensors in each of [`Bits::ALL`].
    pub quantized: [usize; Bits::ALL.len()],
    /// Names of matrices that keep a higher precision because they lose most.
    pub kept: Vec<String>,
    /// Size of the weights in bytes, before and after.
    pub bytes: [usize; 2],
}

/// Quantises a model. `max_loss` replaces the default bound ([`Measure::bound`]); `progress` is
/// called with a description of each step.
///
/// # Errors
/// If the model is quantised already, cannot be measured, or loses more than the bound with half of
/// its matrices in higher precision.
pub fn quantize(
    files: impl Into<ModelFiles>,
    bits: Bits,
    sample: &Sample,
    max_loss: Option<f64>,
    progress: &dyn Fn(&str),
) -> Result<Quantized> {
    let files = train::files(files)?;
    let config = files.config()?;
    let of_file = files.kinds()?.into_iter().find(|kind| kind.is_quantized());
    let named = |error: Error| Error::file(files.path(checkpoint::CONFIG), error.to_string());
    if of_file.is_some() || is_quantized(&config).map_err(named)? {
        let of_file = of_file.map_or(String::new(), |kind| format!(" ({})", kind.name()));
        return Err(Error::file(
            files.path(checkpoint::CONFIG),
            format!(
                "the model is quantised already{of_file}. To convert it to floating point first: \
                 regard models export {} --out FLOATS",
                say::quoted(files.place().display())
            ),
        ));
    }
    progress("measuring the original");
    let subject = Subject::open(&files, sample)?;
    let names = candidates(&files)?;
    if names.is_empty() {
        return Err(Error::invalid("the model has no weight matrix of at least 32 × 32"));
    }
    let bound = max_loss.unwrap_or_else(|| subject.measure().bound(bits));
    let higher = (bits == Bits::Int4).then_some(Bits::Int8);
    let plan = |kept: &BTreeSet<String>, name: &str| match kept.contains(name) {
        true => higher,
        false => Some(bits),
    };
    progress(&format!("quantising {} matrices to {}", names.len(), bits.name()));
    let mut kept = BTreeSet::new();
    let loss = subject.loss(&|name| plan(&kept, name))?;
    // A loss that is not a number is too large.
    if loss.is_nan() || loss > bound {
        progress(&format!("loses {loss:.4}, more than {bound}: quantising each matrix alone"));
        kept = least_kept(&subject, &names, bits, bound, higher)?;
    }
    progress("comparing with the original");
    let (network, mut quality) = subject.compare(&|name| plan(&kept, name))?;
    quality.bound = bound;
    let before = files.weights()?;
    let half = before.values().all(|a| !a.is_float() || a.dtype() == Dtype::F16);
    let weights = network.weights();
    let precision = if half { Precision::Half } else { Precision::Single };
    let kept: Vec<String> = kept.into_iter().collect();
    let mut config = config;
    // A model in bfloat16 is an ordinary one: other programs read it as it is.
    if bits != Bits::Bf16 {
        config[KEY] = json!({
            "quant_method": METHOD,
            "bits": bits.bits(),
            "modules_in_higher_precision": kept,
            "quality": quality,
        });
    }
    if let Some(group) = bits.group() {
        config[KEY]["group_size"] = json!(group);
    }
    let size = |arrays: &Arrays, unit: Option<usize>| {
        let one = |a: &checkpoint::Array| match unit.filter(|_| !a.is_quantized()) {
            Some(unit) => a.count() * unit,
            None => a.size(),
        };
        arrays.values().map(one).sum()
    };
    let unit = if half { 2 } else { 4 };
    let bytes = [size(&before, None), size(&weights, Some(unit))];
    let of = |bits| weights.values().filter(|array| array.quantized_bits() == Some(bits)).count();
    let quantized = Bits::ALL.map(of);
    Ok(Quantized { config, weights, precision, bits, quality, quantized, kept, bytes })
}

/// Names of the matrices that can be quantised.
fn candidates(files: &ModelFiles) -> Result<Vec<String>> {
    let mut network = zoo::open::<dyn Network>(files.clone(), &Device::flex())?;
    let names = std::cell::RefCell::new(vec![]);
    network.quantize(&|name| {
        names.borrow_mut().push(name.to_string());
        None
    });
    Ok(names.into_inner())
}

/// The fewest matrices that must keep a higher precision, by how much each loses alone.
fn least_kept(
    subject: &Subject,
    names: &[String],
    bits: Bits,
    bound: f64,
    higher: Option<Bits>,
) -> Result<BTreeSet<String>> {
    let mut alone = vec![];
    for name in names {
        alone.push((subject.loss(&|other| (other == name).then_some(bits))?, name));
    }
    alone.sort_by(|a, b| b.0.total_cmp(&a.0));
    let worst = |n: usize| alone[..n].iter().map(|(_, name)| (*name).clone()).collect();
    let loss_without = |kept: &BTreeSet<String>| {
        subject.loss(&|name| if kept.contains(name) { higher } else { Some(bits) })
    };
    let most = names.len().div_ceil(2);
    // A loss in BLEU is not smaller with every further matrix: of half of them, fewer are tried too.
    let (mut low, mut high, mut least) = (0, None, f64::INFINITY);
    for kept in (1..=most).rev().step_by((most / 8).max(1)) {
        let loss = loss_without(&worst(kept))?;
        least = least.min(loss);
        if loss <= bound {
            high = Some(kept);
            break;
        }
    }
    let Some(mut high) = high else {
        let what = match subject.measure() {
            Measure::Perplexity => "of its perplexity",
            Measure::Cosine => "of its cosine",
            Measure::Bleu => "points of BLEU",
        };
        return Err(Error::invalid(format!(
            "in {} the model loses {least:.4} {what} even with up to {most} of {} matrices in \
             higher precision, and the bound is {bound}; nothing was written. To measure on your \
             own texts: --data FILE; to accept a larger loss: --max-loss X",
            bits.name(),
            names.len()
        )));
    };
    while high - low > 1 {
        let middle = (low + high) / 2;
        match loss_without(&worst(middle))? <= bound {
            true => high = middle,
            false => low = middle,
        }
    }
    Ok(worst(high))
}

/// Whether the configuration says that [`quantize`] made the weights.
///
/// # Errors
/// If it says that another program quantised them: such weights cannot be read.
pub fn is_quantized(config: &Value) -> Result<bool> {
    let Some(of) = config.get(KEY).filter(|of| !of.is_null()) else { return Ok(false) };
    match &of["quant_method"] {
        method if method == METHOD => Ok(true),
        method => Err(Error::invalid(format!(
            "{KEY}.quant_method: got {method}, need {METHOD:?}; weights that other programs \
             quantised cannot be read: need the model in floating point, or as a GGUF file"
        ))),
    }
}

/// Returns the type of the weights that [`quantize`] made, as the configuration says it.
pub fn bits(config: &Value) -> Option<Bits> {
    let of = (config[KEY]["bits"].as_u64(), config[KEY]["group_size"].is_u64());
    // 4 bits always have groups, and the first files did not say so.
    let is = |bits: &Bits| match bits {
        Bits::Bf16 => of.0 == Some(16),
        Bits::Int8 => of == (Some(8), false),
        Bits::Int8Groups => of == (Some(8), true),
        Bits::Int4 => of.0 == Some(4),
    };
    Bits::ALL.into_iter().find(is)
}

/// Returns the weights in floating point, for `transformers` and for training: the inverse of
/// [`quantize`] but for what it lost.
///
/// # Errors
/// If another program quantised the weights.
pub fn dequantize(mut config: Value, weights: Arrays) -> Result<(Value, Arrays)> {
    is_quantized(&config)?;
    if let Some(config) = config.as_object_mut() {
        config.remove(KEY);
    }
    let float = |(name, array): (String, checkpoint::Array)| (name, array.dequantized());
    Ok((config, weights.into_iter().map(float).collect()))
}
