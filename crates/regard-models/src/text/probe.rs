//! How a model reads: in which mode, and what is kept of its layers.

use burn::tensor::Tensor;
use regard_attention::layers::{Call, Tap};
use regard_attention::{Attention, Mode};

/// One reading of some texts by the layers of a model.
#[derive(Debug, Default)]
pub(crate) struct Probe {
    mode: Mode,
    /// Whether inputs and weights of all layers are kept.
    records: bool,
    hidden: Vec<Tensor<3>>,
    taps: Vec<Tap>,
}

impl Probe {
    /// Keeps nothing.
    pub fn new(mode: Mode) -> Probe {
        Probe { mode, ..Probe::default() }
    }

    /// Keeps inputs and weights of all layers.
    pub fn recording() -> Probe {
        Probe { records: true, ..Probe::default() }
    }

    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The input of the next layer, or the output of the last one.
    ///
    /// # Shapes
    /// `[B, T, M]`
    pub fn hidden(&mut self, x: &Tensor<3>) {
        if self.records {
            self.hidden.push(x.clone());
        }
    }

    /// The application of the next layer.
    pub fn call<'a>(&'a mut self, attention: &'a Attention) -> Call<'a> {
        let call = Call::new(attention).mode(self.mode);
        match self.records {
            false => call,
            true => {
                self.taps.push(Tap::new());
                call.tap(self.taps.last_mut())
            }
        }
    }

    /// What was kept: inputs, and weights.
    pub fn into_parts(self) -> (Vec<Tensor<3>>, Vec<Tensor<4>>) {
        (self.hidden, self.taps.into_iter().filter_map(Tap::into_weights).collect())
    }
}
