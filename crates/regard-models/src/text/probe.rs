//! Instrumentation of a forward pass: mode, changes to layers, and recorded tensors.

use burn::tensor::{Gradients, Tensor};
use regard_attention::layers::{Call, Intervention, Tap};
use regard_attention::{Attention, Mode};
use std::collections::{BTreeMap, BTreeSet};

/// Instrumentation of one forward pass of a text model.
///
/// ```
/// use burn::tensor::Device;
/// use regard_attention::layers::Intervention;
/// use regard_models::text::{Head, Probe, Texts, create};
/// use serde_json::json;
///
/// let config = json!({
///     "model_type": "bert", "vocab_size": 30, "hidden_size": 16, "num_hidden_layers": 2,
///     "num_attention_heads": 2, "intermediate_size": 32, "num_labels": 3,
/// });
/// let model = create(&config, Head::Sequence, 7, &Device::flex().autodiff()).unwrap();
/// let mut texts = Texts::new();
/// texts.push(&[2, 5, 6, 3]);
/// // Gradient of the first layer's attention weights, without the first head of the second layer.
/// let off = Intervention::new().scale_head(0, 0.0);
/// let mut probe = Probe::default().change(1, off).differentiate(0);
/// let said = model.probe(&texts, None, &mut probe);
/// let gradients = said.logits.unwrap().sum().backward();
/// assert_eq!(probe.gradient(0, &gradients).unwrap().dims(), [1, 2, 4, 4]);
/// ```
#[derive(Debug, Default)]
pub struct Probe {
    mode: Mode,
    /// Whether inputs and attention weights of all layers are recorded.
    records: bool,
    changes: BTreeMap<usize, Intervention>,
    differentiated: BTreeSet<usize>,
    /// Index of the next layer.
    next: usize,
    hidden: Vec<Tensor<3>>,
    taps: BTreeMap<usize, Tap>,
}

impl Probe {
    /// Creates a probe for a mode, which changes nothing and records nothing.
    pub fn new(mode: Mode) -> Probe {
        Probe { mode, ..Probe::default() }
    }

    /// Records inputs and attention weights of all layers.
    pub fn record(self) -> Probe {
        Probe { records: true, ..self }
    }

    /// Changes the attention of a layer. A mask is over the rows of the batch: texts of different
    /// lengths are concatenated to one row.
    pub fn change(mut self, layer: usize, change: Intervention) -> Probe {
        self.changes.insert(layer, change);
        self
    }

    /// Records what is needed for the gradient of a layer's attention weights.
    pub fn differentiate(mut self, layer: usize) -> Probe {
        self.differentiated.insert(layer);
        self
    }

    /// Mode of the forward pass.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Attention weights of a layer, if they were recorded.
    ///
    /// # Shapes
    /// `[B, H, T, T]`, or `[1, H, N, N]` for texts of different lengths
    pub fn weights(&self, layer: usize) -> Option<&Tensor<4>> {
        self.taps.get(&layer)?.weights()
    }

    /// Gradient of a loss with respect to the attention weights of a layer, if it was requested.
    ///
    /// # Shapes
    /// as [`Probe::weights`]
    pub fn gradient(&self, layer: usize, gradients: &Gradients) -> Option<Tensor<4>> {
        self.taps.get(&layer)?.gradient(gradients)
    }

    /// Called before the first layer.
    ///
    /// # Panics
    /// If a layer is named that does not exist.
    pub(crate) fn begin(&mut self, layers: impl FnOnce() -> usize) {
        if let Some(last) = self.changes.keys().chain(&self.differentiated).max() {
            let layers = layers();
            assert!(*last < layers, "probe: got layer {last}, the model has {layers} that attend");
        }
        self.next = 0;
        self.hidden.clear();
        self.taps.clear();
    }

    /// Records the input of the next layer, or the output of the last one.
    ///
    /// # Shapes
    /// `[B, T, M]`
    pub(crate) fn hidden(&mut self, x: &Tensor<3>) {
        if self.records {
            self.hidden.push(x.clone());
        }
    }

    /// Returns the call of the next layer.
    pub(crate) fn call<'a>(&'a mut self, attention: &'a Attention) -> Call<'a> {
        let layer = self.next;
        self.next += 1;
        let call = Call::new(attention).mode(self.mode).intervention(self.changes.get(&layer));
        let tap = match (self.differentiated.contains(&layer), self.records) {
            (true, _) => Tap::with_gradient(),
            (false, true) => Tap::new(),
            (false, false) => return call,
        };
        call.tap(self.taps.entry(layer).or_insert(tap))
    }

    /// Returns the recorded inputs and attention weights.
    pub(crate) fn into_parts(self) -> (Vec<Tensor<3>>, Vec<Tensor<4>>) {
        (self.hidden, self.taps.into_values().filter_map(Tap::into_weights).collect())
    }
}
