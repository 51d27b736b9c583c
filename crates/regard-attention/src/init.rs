//! First values of parameters, and the randomness of a training step.
//!
//! Both are functions of a seed through the one counter-based generator; Burn's global generator
//! is not used, so the same seed gives the same model on every machine.

use burn::module::Param;
use burn::tensor::{Device, Tensor, TensorData};
use regard_kernels::rng::Stream;

/// Sites of first values have this bit, those of training steps do not.
const FIRST: u64 = 1 << 63;

/// Gives parameters their first values, each from a stream of its own, in order of asking.
#[derive(Clone, Debug)]
pub struct Init {
    seed: u64,
    next: u64,
    parameters: u64,
    blank: bool,
    device: Device,
}

/// How a matrix of weights begins.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Weights {
    /// Uniform within ±1/√inputs, as PyTorch's linear layer.
    #[default]
    Uniform,
    /// Uniform within ±√(6/(inputs + outputs)) (Glorot and Bengio 2010).
    Xavier,
    /// Normal with this deviation.
    Normal(f32),
}

impl Init {
    /// First values from a seed, for a device; on an autodiff device parameters are trainable.
    pub fn new(seed: u64, device: &Device) -> Init {
        Init { seed, next: 0, parameters: 0, blank: false, device: device.clone() }
    }

    /// Zeros instead of first values, for a model whose weights are about to be loaded. They take
    /// no memory, so that sizes can be compared with those of a file before anything is
    /// allocated. Sites are the same as with [`Init::new`].
    pub fn blank(device: &Device) -> Init {
        Init { blank: true, ..Init::new(0, device) }
    }

    /// A number that no other part of the model has: where its randomness comes from.
    pub fn site(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// How many parameters were made so far: numbers, not tensors.
    pub fn parameters(&self) -> u64 {
        self.parameters
    }

    /// A number for each index, from a stream of its own.
    pub fn fill<const D: usize>(
        &mut self,
        shape: [usize; D],
        value: impl Fn(Stream, u64) -> f32,
    ) -> Param<Tensor<D>> {
        let stream = Stream::new(self.seed, 0, FIRST | self.site());
        let len = shape.iter().fold(1u64, |len, side| len.saturating_mul(*side as u64));
        self.parameters = self.parameters.saturating_add(len);
        if self.blank && !shape.contains(&0) {
            // One number in memory, whatever the shape.
            return Param::from_tensor(Tensor::<1>::zeros([1], &self.device).expand(shape));
        }
        let values: Vec<f32> = (0..len).map(|i| value(stream, i)).collect();
        Param::from_data(TensorData::new(values, shape), &self.device)
    }

    /// One value everywhere.
    pub fn constant<const D: usize>(&mut self, shape: [usize; D], value: f32) -> Param<Tensor<D>> {
        self.fill(shape, |_, _| value)
    }

    /// Uniform within ±bound.
    pub fn uniform<const D: usize>(&mut self, shape: [usize; D], bound: f32) -> Param<Tensor<D>> {
        self.fill(shape, |stream, i| (2.0 * stream.uniform(i) - 1.0) * bound)
    }

    /// Normal with this deviation.
    pub fn normal<const D: usize>(
        &mut self,
        shape: [usize; D],
        deviation: f32,
    ) -> Param<Tensor<D>> {
        self.fill(shape, |stream, i| stream.normal(i) * deviation)
    }

    /// A matrix from `inputs` to `outputs`.
    pub fn weights(&mut self, inputs: usize, outputs: usize, how: Weights) -> Param<Tensor<2>> {
        let shape = [inputs, outputs];
        match how {
            Weights::Uniform => self.uniform(shape, 1.0 / (inputs as f32).sqrt()),
            Weights::Xavier => self.uniform(shape, (6.0 / (inputs + outputs) as f32).sqrt()),
            Weights::Normal(deviation) => self.normal(shape, deviation),
        }
    }
}

/// Whether a model is trained or used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Nothing is random.
    #[default]
    Eval,
    /// Dropout drops, as a function of seed, step and site.
    Train {
        /// Of the run.
        seed: u64,
        /// Of the run's steps; an application of the model that shall drop others needs another.
        step: u64,
    },
}

impl Mode {
    /// The randomness of a site, if there is any.
    pub fn stream(self, site: u64) -> Option<Stream> {
        match self {
            Mode::Eval => None,
            Mode::Train { seed, step } => Some(Stream::new(seed, step, site)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_values_are_a_function_of_the_seed() {
        let device = Device::flex();
        let draw = |seed| {
            let mut init = Init::new(seed, &device);
            let pair = [init.normal([3, 4], 1.0), init.weights(3, 4, Weights::Xavier)];
            pair.map(|x| x.val().to_data().try_to_vec::<f32>().unwrap())
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert_ne!(draw(1)[0], draw(1)[1]);
        assert!(draw(3)[1].iter().all(|x| x.abs() <= (6.0f32 / 7.0).sqrt()));
    }
}
