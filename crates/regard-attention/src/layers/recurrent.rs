//! Stacked recurrent layers: tanh-RNN, GRU (Cho et al. 2014), LSTM (Hochreiter and Schmidhuber
//! 1997), in one direction or both.

use super::{Dropout, Weight};
use crate::backend;
use crate::init::{Init, Mode};
use crate::ops::{self, Cell, DirectionWeights, States};
use crate::plan::PlannedRecurrent;
use burn::module::{Module, Param};
use burn::tensor::Tensor;

/// Configuration of [`Recurrent`].
#[derive(Clone, Debug)]
pub struct RecurrentConfig {
    /// Recurrent cell: tanh-RNN, GRU or LSTM.
    pub cell: Cell,
    /// `I`, the number of input features.
    pub input: usize,
    /// `H`, the number of hidden units per direction.
    pub hidden: usize,
    /// Number of stacked layers. Default 1.
    pub layers: usize,
    /// Whether the layers are bidirectional. Default false.
    pub bidirectional: bool,
    /// Whether there are biases. Default true.
    pub bias: bool,
    /// Dropout probability between layers. Default 0.
    pub dropout: f32,
}

/// Parameters of one direction of one layer, named and laid out as in PyTorch. `G` is the number of
/// gates.
#[derive(Module, Debug)]
pub struct RecurrentWeights {
    /// Input weights `[G·H, I]`.
    pub weight_ih: Weight,
    /// Recurrent weights `[G·H, H]`.
    pub weight_hh: Weight,
    /// Input bias `[G·H]`.
    pub bias_ih: Option<Param<Tensor<1>>>,
    /// Recurrent bias `[G·H]`.
    pub bias_hh: Option<Param<Tensor<1>>>,
}

/// One recurrent layer with one or two directions.
#[derive(Module, Debug)]
pub struct RecurrentLayer {
    /// Forward direction, then, if bidirectional, the backward direction.
    pub directions: Vec<RecurrentWeights>,
}

/// Stacked recurrent layers.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use regard_attention::{Init, Mode, layers::RecurrentConfig, ops::Cell};
///
/// let config = RecurrentConfig { bidirectional: true, ..RecurrentConfig::new(Cell::Gru, 3, 4) };
/// let layer = config.init(&mut Init::new(0, &Device::flex()));
/// let x = Tensor::<3>::ones([2, 5, 3], &Device::flex());
/// let (y, last) = layer.forward(x, None, Some(&[5, 2]), Mode::Eval);
/// assert_eq!((y.dims(), last.h.dims()), ([2, 5, 8], [2, 2, 4]));
/// ```
#[derive(Module, Debug)]
pub struct Recurrent {
    /// Layers, from input to output.
    pub layers: Vec<RecurrentLayer>,
    /// Dropout between layers.
    pub dropout: Dropout,
    /// Recurrent cell: tanh-RNN, GRU or LSTM.
    #[module(skip)]
    pub cell: Cell,
}

/// States of all layers and directions.
///
/// # Shapes
/// `[layers·directions, B, H]`, as in PyTorch
#[derive(Clone, Debug)]
pub struct LayerStates {
    /// Hidden states `h`.
    pub h: Tensor<3>,
    /// Cell states `c` of the LSTM; `None` for the other cells.
    pub c: Option<Tensor<3>>,
}

impl RecurrentConfig {
    /// Creates a configuration of one unidirectional layer with biases.
    pub fn new(cell: Cell, input: usize, hidden: usize) -> RecurrentConfig {
        let (layers, bidirectional, bias, dropout) = (1, false, true, 0.0);
        RecurrentConfig { cell, input, hidden, layers, bidirectional, bias, dropout }
    }

    /// Initialises the layers, uniform in ±1/√H as in PyTorch.
    pub fn init(&self, init: &mut Init) -> Recurrent {
        let RecurrentConfig { cell, hidden, bias, .. } = *self;
        let (directions, gates) = (1 + usize::from(self.bidirectional), cell.gates() * hidden);
        let bound = 1.0 / (hidden as f32).sqrt();
        let layers = (0..self.layers).map(|layer| {
            let input = if layer == 0 { self.input } else { directions * hidden };
            let directions = (0..directions).map(|_| RecurrentWeights {
                weight_ih: init.uniform([gates, input], bound).into(),
                weight_hh: init.uniform([gates, hidden], bound).into(),
                bias_ih: bias.then(|| init.uniform([gates], bound)),
                bias_hh: bias.then(|| init.uniform([gates], bound)),
            });
            RecurrentLayer { directions: directions.collect() }
        });
        let layers = layers.collect();
        Recurrent { layers, dropout: Dropout::new(self.dropout, init), cell }
    }
}

impl RecurrentWeights {
    fn direction(&self) -> DirectionWeights {
        let biases = match (&self.bias_ih, &self.bias_hh) {
            (Some(input), Some(hidden)) => Some([input.val(), hidden.val()]),
            _ => None,
        };
        DirectionWeights { input: self.weight_ih.val(), hidden: self.weight_hh.val(), biases }
    }
}

/// States of one layer: `[layers·directions, B, H]` → `[B, directions·H]`.
fn of_layer(all: &Tensor<3>, layer: usize, directions: usize) -> Tensor<2> {
    let [_, b, h] = all.dims();
    let from = layer * directions;
    let part = all.clone().slice([from..from + directions, 0..b, 0..h]);
    part.swap_dims(0, 1).reshape([b, directions * h])
}

/// `[B, directions·H]` → `[directions, B, H]`
fn by_direction(states: Tensor<2>, directions: usize) -> Tensor<3> {
    let [b, wide] = states.dims();
    states.reshape([b, directions, wide / directions]).swap_dims(0, 1)
}

impl Recurrent {
    /// Whether a weight is stored or quantised, so that it cannot be trained.
    fn is_fixed(&self) -> bool {
        let weights = self.layers.iter().flat_map(|layer| &layer.directions);
        let mut weights = weights.flat_map(|of| [&of.weight_ih, &of.weight_hh]);
        weights.any(|weight| weight.param().is_none())
    }

    /// Runs sequences through all layers, from the states `start`, or from zeros if it is `None`.
    /// Past its length, a row's output is 0 and its state does not change.
    ///
    /// # Shapes
    /// `x: [B, T, I]`, lengths `[B]` → `[B, T, directions·H]`, and the states after the last step
    pub fn forward(
        &self,
        x: Tensor<3>,
        start: Option<&LayerStates>,
        lengths: Option<&[usize]>,
        mode: Mode,
    ) -> (Tensor<3>, LayerStates) {
        if self.is_fixed() && !x.is_autodiff() && backend::fused(&x) {
            return PlannedRecurrent::new(self).sequences(x, start, lengths);
        }
        let (mut x, mut h, mut c) = (x, vec![], vec![]);
        for (i, layer) in self.layers.iter().enumerate() {
            let directions: Vec<_> = layer.directions.iter().map(|w| w.direction()).collect();
            let n = directions.len();
            let start = start.map(|start| States {
                h: of_layer(&start.h, i, n),
                c: start.c.as_ref().map(|c| of_layer(c, i, n)),
            });
            if i > 0 {
                // Each layer has its own dropout mask.
                let site = self.dropout.site ^ (i as u64) << 32;
                x = Dropout { site, ..self.dropout.clone() }.forward(x, mode);
            }
            let (y, last) = ops::recurrent(self.cell, x, &directions, start, lengths);
            x = y;
            h.push(by_direction(last.h, n));
            c.extend(last.c.map(|c| by_direction(c, n)));
        }
        let c = (!c.is_empty()).then(|| Tensor::cat(c, 0));
        (x, LayerStates { h: Tensor::cat(h, 0), c })
    }
}
