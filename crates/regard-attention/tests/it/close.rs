//! One check for every differentiable function.
//!
//! In single precision on Flex a function runs on the kernels; in double precision, or on another
//! backend, the same function is composed of Burn's operations. So the second is the truth of the
//! first, values and gradients, and finite differences are the truth of the second.

use burn::tensor::{DType, Device, Tensor, TensorData};
use regard_kernels::rng::Stream;

/// A float array, with any number of axes.
#[derive(Clone, Debug)]
pub struct Array {
    pub values: Vec<f64>,
    pub shape: Vec<usize>,
}

/// Numbers of the scale that activations have.
pub fn random(seed: u64, shape: &[usize]) -> Array {
    let stream = Stream::new(seed, 0, 99);
    let len = shape.iter().product::<usize>() as u64;
    let values = (0..len).map(|i| f64::from(stream.normal(i))).collect();
    Array { values, shape: shape.to_vec() }
}

impl Array {
    fn data(&self) -> TensorData {
        TensorData::new(self.values.clone(), self.shape.clone())
    }
}

/// What a function gave: its values and the gradient of each input.
#[derive(Debug)]
pub struct Got {
    pub y: Vec<f64>,
    pub grads: Vec<Vec<f64>>,
}

/// Inputs as tensors of any rank: a function under test asks for each by its index.
pub struct Inputs {
    tensors: Vec<Any>,
    pub device: Device,
}

enum Any {
    One(Tensor<1>),
    Two(Tensor<2>),
    Three(Tensor<3>),
    Four(Tensor<4>),
}

macro_rules! ask {
    ($($name:ident $variant:ident $d:literal),*) => {
        impl Inputs {
            $(pub fn $name(&self, i: usize) -> Tensor<$d> {
                match &self.tensors[i] {
                    Any::$variant(x) => x.clone(),
                    _ => panic!("input {i} has another rank"),
                }
            })*
        }
    };
}
ask!(one One 1, two Two 2, three Three 3, four Four 4);

fn tensors(arrays: &[Array], device: &Device, dtype: DType) -> Inputs {
    fn make<const D: usize>(x: &Array, device: &Device, dtype: DType) -> Tensor<D> {
        let x = Tensor::<D>::from_data(x.data().convert_dtype(dtype), (device, dtype));
        if device.is_autodiff() { x.require_grad() } else { x }
    }
    let make = |x: &Array| match x.shape.len() {
        1 => Any::One(make(x, device, dtype)),
        2 => Any::Two(make(x, device, dtype)),
        3 => Any::Three(make(x, device, dtype)),
        4 => Any::Four(make(x, device, dtype)),
        n => panic!("{n} axes"),
    };
    Inputs { tensors: arrays.iter().map(make).collect(), device: device.clone() }
}

fn wave(n: usize) -> Vec<f64> {
    (0..n).map(|i| (0.7 * i as f64 + 0.3).sin()).collect()
}

pub fn numbers<const D: usize>(x: Tensor<D>) -> Vec<f64> {
    x.into_data().convert::<f64>().try_to_vec().unwrap()
}

/// Runs a function and, for `Σ y·wave`, its backward.
pub fn run<const D: usize>(
    f: &dyn Fn(&Inputs) -> Tensor<D>,
    arrays: &[Array],
    device: &Device,
    dtype: DType,
) -> Got {
    let x = tensors(arrays, &device.clone().autodiff(), dtype);
    let y = f(&x);
    let weights = TensorData::new(wave(y.shape().num_elements()), y.shape());
    let weights = Tensor::<D>::from_data(weights.convert_dtype(dtype), (&x.device, dtype));
    let grads = (y.clone() * weights).sum().backward();
    let grads = x.tensors.iter().zip(arrays).map(|(x, array)| {
        let found = match x {
            Any::One(x) => x.grad(&grads).map(numbers),
            Any::Two(x) => x.grad(&grads).map(numbers),
            Any::Three(x) => x.grad(&grads).map(numbers),
            Any::Four(x) => x.grad(&grads).map(numbers),
        };
        found.unwrap_or_else(|| vec![0.0; array.values.len()])
    });
    Got { grads: grads.collect(), y: numbers(y) }
}

/// Panics where two arrays differ by more than `limit` of the larger numbers' scale.
pub fn close(what: &str, got: &[f64], want: &[f64], limit: f64) {
    assert_eq!(got.len(), want.len(), "{what}: lengths");
    let scale = want.iter().fold(1.0f64, |m, x| m.max(x.abs()));
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        assert!((got - want).abs() <= limit * scale, "{what}[{i}]: got {got}, want {want}");
    }
}

/// How a function is checked.
#[derive(Clone, Copy)]
pub struct Limits {
    /// Between the kernels and double precision.
    pub kernels: f64,
    /// Between double precision and finite differences; none where the function has kinks or its
    /// gradient is not its derivative.
    pub differences: Option<f64>,
}

pub const USUAL: Limits = Limits { kernels: 2e-5, differences: Some(1e-6) };

/// Kernels against double precision, that against finite differences, another backend too.
pub fn check<const D: usize>(
    what: &str,
    arrays: &[Array],
    limits: Limits,
    f: impl Fn(&Inputs) -> Tensor<D>,
) {
    let flex = Device::flex();
    let truth = run(&f, arrays, &flex, DType::F64);
    let mut backends = vec![("kernels", flex.clone())];
    backends.extend(second().map(|device| ("second backend", device)));
    for (name, device) in backends {
        let got = run(&f, arrays, &device, DType::F32);
        close(&format!("{what}, {name}: y"), &got.y, &truth.y, limits.kernels);
        for (i, (got, want)) in got.grads.iter().zip(&truth.grads).enumerate() {
            close(&format!("{what}, {name}: gradient {i}"), got, want, 4.0 * limits.kernels);
        }
    }
    let Some(limit) = limits.differences else { return };
    let value = |arrays: &[Array]| {
        let y = numbers(f(&tensors(arrays, &flex, DType::F64)));
        y.iter().zip(wave(y.len())).map(|(y, w)| y * w).sum::<f64>()
    };
    for (i, array) in arrays.iter().enumerate() {
        let step = 1e-5;
        // A few numbers of each input are enough: all went through the same code.
        let stride = (array.values.len() / 7).max(1);
        for at in (0..array.values.len()).step_by(stride) {
            let moved = |by: f64| {
                let mut arrays = arrays.to_vec();
                arrays[i].values[at] += by;
                value(&arrays)
            };
            let want = (moved(step) - moved(-step)) / (2.0 * step);
            let got = truth.grads[i][at];
            let what = format!("{what}: input {i}, number {at}");
            close(&what, &[got], &[want], limit);
        }
    }
}

/// A backend without kernels, if the tests are built with one.
fn second() -> Option<Device> {
    #[cfg(feature = "ndarray")]
    #[allow(deprecated)]
    return Some(Device::ndarray());
    #[cfg(not(feature = "ndarray"))]
    None
}
