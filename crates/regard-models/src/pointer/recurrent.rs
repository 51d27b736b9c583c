//! LSTM encoder and decoder of a pointer network.

use super::Config;
use crate::checkpoint::Binder;
use burn::module::Module;
use burn::tensor::Tensor;
use regard_attention::layers::{LayerStates, Recurrent, RecurrentConfig};
use regard_attention::ops::Cell;
use regard_attention::{Init, Mode};

#[derive(Module, Debug)]
pub(super) struct Lstm {
    reads: Recurrent,
    points: Recurrent,
}

impl Lstm {
    pub fn new(config: &Config, init: &mut Init) -> Lstm {
        let Config { hidden_size: m, encoder_layers: layers, dropout, .. } = *config;
        let of = |hidden, bidirectional| RecurrentConfig {
            layers,
            dropout,
            bidirectional,
            ..RecurrentConfig::new(Cell::Lstm, m, hidden)
        };
        Lstm { reads: of(m / 2, true).init(init), points: of(m, false).init(init) }
    }

    pub fn bind(&mut self, b: &mut Binder) {
        b.recurrent("encoder", &mut self.reads);
        b.recurrent("decoder", &mut self.points);
    }

    /// Encodes points; returns their states, and the decoder's initial states: the final ones of
    /// both directions, concatenated.
    ///
    /// # Shapes
    /// `[B, S, M]` → `[B, S, M]`
    pub fn read(&self, x: Tensor<3>, lengths: &[i64], mode: Mode) -> (Tensor<3>, LayerStates) {
        let lengths: Vec<usize> = lengths.iter().map(|n| *n as usize).collect();
        let (y, last) = self.reads.forward(x, None, Some(&lengths), mode);
        let layers = self.reads.layers.len();
        let both = |states: Tensor<3>| {
            let [_, b, half] = states.dims();
            states.reshape([layers, 2, b, half]).swap_dims(1, 2).reshape([layers, b, 2 * half])
        };
        (y, LayerStates { h: both(last.h), c: last.c.map(both) })
    }

    /// Runs the decoder from `states`; returns its outputs and new states.
    ///
    /// # Shapes
    /// `x: [R, T, M]` → `[R, T, M]`
    pub fn point(
        &self,
        x: Tensor<3>,
        states: &LayerStates,
        mode: Mode,
    ) -> (Tensor<3>, LayerStates) {
        self.points.forward(x, Some(states), None, mode)
    }
}
