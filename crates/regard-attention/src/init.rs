//! Initialisation of parameters, and the randomness of a training step.
//!
//! Both are functions of a seed through one counter-based generator. Burn's global generator is not
//! used, so the same seed gives the same model on every machine.

use burn::module::Param;
use burn::tensor::{Device, Tensor, TensorData};
use regard_kernels::rng::Stream;

/// Bit that is set in the sites of initial values and clear in those of training steps.
const FIRST: u64 = 1 << 63;

/// Initialises parameters. Each parameter draws from its own random stream, numbered in the order
/// of creation.
#[derive(Clone, Debug)]
pub struct Init {
    seed: u64,
    next: u64,
    parameters: u64,
    blank: bool,
    device: Device,
}

/// Initialisation of a weight matrix.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum WeightInit {
    /// Uniform in ±1/√inputs, as in PyTorch's linear layer.
    #[default]
    Uniform,
    /// Uniform in ±√(6/(inputs + outputs)) (Glorot and Bengio 2010).
    Xavier,
    /// Normal with mean 0 and this standard deviation.
    Normal(f32),
}

impl Init {
    /// Creates an initialiser for a device. On an autodiff device parameters require gradients.
    pub fn new(seed: u64, device: &Device) -> Init {
        Init { seed, next: 0, parameters: 0, blank: false, device: device.clone() }
    }

    /// Creates an initialiser that gives zeros, for a model whose weights are about to be loaded.
    /// The zeros take no memory, so shapes can be compared with those of a file before anything is
    /// allocated. Sites are numbered as with [`Init::new`].
    pub fn blank(device: &Device) -> Init {
        Init { blank: true, ..Init::new(0, device) }
    }

    /// Returns a new site: an id, unique within the model, of the stream of random numbers of one
    /// layer.
    pub fn site(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Returns the number of scalar parameters created so far.
    pub fn parameters(&self) -> u64 {
        self.parameters
    }

    /// Creates a parameter whose element `i` (row-major) is `value(stream, i)`, with a stream of
    /// its own.
    pub fn fill<const D: usize>(
        &mut self,
        shape: [usize; D],
        value: impl Fn(Stream, u64) -> f32,
    ) -> Param<Tensor<D>> {
        let stream = Stream::new(self.seed, 0, FIRST | self.site());
        let len = shape.iter().fold(1u64, |len, side| len.saturating_mul(*side as u64));
        self.parameters = self.parameters.saturating_add(len);
        if self.blank && !shape.contains(&0) {
            // One element in memory, whatever the shape.
            return Param::from_tensor(Tensor::<1>::zeros([1], &self.device).expand(shape));
        }
        let values: Vec<f32> = (0..len).map(|i| value(stream, i)).collect();
        Param::from_data(TensorData::new(values, shape), &self.device)
    }

    /// Creates a parameter filled with `value`.
    pub fn constant<const D: usize>(&mut self, shape: [usize; D], value: f32) -> Param<Tensor<D>> {
        self.fill(shape, |_, _| value)
    }

    /// Creates a parameter with values uniform in ±bound.
    pub fn uniform<const D: usize>(&mut self, shape: [usize; D], bound: f32) -> Param<Tensor<D>> {
        self.fill(shape, |stream, i| (2.0 * stream.uniform(i) - 1.0) * bound)
    }

    /// Creates a parameter with normal values of mean 0 and this standard deviation.
    pub fn normal<const D: usize>(
        &mut self,
        shape: [usize; D],
        deviation: f32,
    ) -> Param<Tensor<D>> {
        self.fill(shape, |stream, i| stream.normal(i) * deviation)
    }

    /// Creates a weight matrix `[inputs, outputs]`.
    pub fn weights(&mut self, inputs: usize, outputs: usize, how: WeightInit) -> Param<Tensor<2>> {
        let shape = [inputs, outputs];
        match how {
            WeightInit::Uniform => self.uniform(shape, 1.0 / (inputs as f32).sqrt()),
            WeightInit::Xavier => self.uniform(shape, (6.0 / (inputs + outputs) as f32).sqrt()),
            WeightInit::Normal(deviation) => self.normal(shape, deviation),
        }
    }
}

/// Evaluation or training.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Evaluation: dropout does nothing.
    #[default]
    Eval,
    /// Training: dropout is a function of seed, step and site.
    Train {
        /// Seed of the run.
        seed: u64,
        /// Number of the training step. Two forwards with the same step drop the same elements.
        step: u64,
    },
}

impl Mode {
    /// Returns the random stream of a site in training, `None` in evaluation.
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
            let pair = [init.normal([3, 4], 1.0), init.weights(3, 4, WeightInit::Xavier)];
            pair.map(|x| x.val().to_data().try_to_vec::<f32>().unwrap())
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert_ne!(draw(1)[0], draw(1)[1]);
        assert!(draw(3)[1].iter().all(|x| x.abs() <= (6.0f32 / 7.0).sqrt()));
    }
}
