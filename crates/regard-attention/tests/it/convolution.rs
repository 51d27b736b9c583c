//! A convolution is attention that is held back.
//!
//! The statement of the notes: a convolutional network is self-attention under restrictions. Its
//! kernel is an attention with fixed weights that looks at a fixed, local field, where
//! self-attention learns how far and at what to look. Cordonnier, Loukas and Jaggi 2020
//! (arXiv:1911.03584) make it exact: a head for each place of the kernel, each of which looks at
//! exactly one pixel, the one that stands so far from its own; what a head takes from there is
//! projected by that place's slice of the kernel, and the heads are summed.
//!
//! Here the pixels are a set of vectors and nine heads of the engine attend to them, by a mask of
//! their own or by scores of relative positions so steep that all other weights are exactly 0.

use crate::close::{Array, close, numbers, random};
use burn::module::Param;
use burn::tensor::{Device, Tensor, TensorData};
use regard_attention::Attention;
use regard_attention::layers::{ImageConvolution, Linear};
use regard_attention::mask::dense_per_head;
use regard_attention::ops::{Activation, Windows};

/// The places of a 3×3 kernel, seen from its middle.
const PLACES: [[isize; 2]; 9] =
    [[-1, -1], [-1, 0], [-1, 1], [0, -1], [0, 0], [0, 1], [1, -1], [1, 0], [1, 1]];

/// An image `[H·W, C]` and a kernel `[9, C, O]`.
struct Problem {
    size: [usize; 2],
    channels: [usize; 2],
    image: Array,
    kernel: Array,
}

impl Problem {
    fn new(size: [usize; 2], channels: [usize; 2]) -> Problem {
        let image = random(1, &[size[0] * size[1], channels[0]]);
        let kernel = random(2, &[9, channels[0], channels[1]]);
        Problem { size, channels, image, kernel }
    }

    /// The pixel so far from a pixel, if it is one.
    fn pixel(&self, from: usize, place: [isize; 2]) -> Option<usize> {
        let [rows, columns] = self.size;
        let row = (from / columns).checked_add_signed(place[0]).filter(|row| *row < rows)?;
        let column = (from % columns).checked_add_signed(place[1]).filter(|c| *c < columns)?;
        Some(row * columns + column)
    }

    /// `y_p = Σ_Δ x_{p+Δ}·K_Δ`, zeros beyond the edges, as the formula says it.
    fn directly(&self) -> Vec<f64> {
        let ([inputs, outputs], pixels) = (self.channels, self.size[0] * self.size[1]);
        let mut y = vec![0.0; pixels * outputs];
        for (at, y) in y.iter_mut().enumerate() {
            for (place, delta) in PLACES.iter().enumerate() {
                let Some(from) = self.pixel(at / outputs, *delta) else { continue };
                *y += (0..inputs)
                    .map(|i| {
                        let weight = (place * inputs + i) * outputs + at % outputs;
                        self.image.values[from * inputs + i] * self.kernel.values[weight]
                    })
                    .sum::<f64>();
            }
        }
        y
    }

    /// Each head's view of all pixels: `[1, 9, H·W, O]`
    fn values(&self) -> Tensor<4> {
        let image: Tensor<2> = tensor(&self.image);
        let kernel: Tensor<3> = tensor(&self.kernel);
        image.unsqueeze::<3>().repeat_dim(0, 9).matmul(kernel).unsqueeze()
    }
}

fn tensor<const D: usize>(x: &Array) -> Tensor<D> {
    let values: Vec<f32> = x.values.iter().map(|x| *x as f32).collect();
    Tensor::from_data(TensorData::new(values, x.shape.clone()), &Device::flex())
}

fn problems() -> Vec<Problem> {
    let sizes = [[1, 1], [5, 7], [7, 5], [1, 9], [9, 11]];
    sizes.into_iter().map(|size| Problem::new(size, [3, 4])).collect()
}

#[test]
fn a_convolution_is_nine_masked_heads() {
    for problem in problems() {
        let n = problem.size[0] * problem.size[1];
        // A head may look at one pixel, the one in its direction. Beyond the edge there is none,
        // and a row without a key is 0: the zeros around an image need no pixels.
        let cells = PLACES.iter().flat_map(|delta| (0..n).map(move |from| (from, delta)));
        let allowed: Vec<bool> = cells
            .flat_map(|(from, delta)| {
                let seen = problem.pixel(from, *delta);
                (0..n).map(move |to| seen == Some(to))
            })
            .collect();
        let nothing = Tensor::<4>::zeros([1, 9, n, 1], &Device::flex());
        let attention = Attention::dot().mask(dense_per_head(allowed));
        let heads = attention.attend(nothing.clone(), nothing, problem.values());
        close("masked", &numbers(heads.sum_dim(1)), &problem.directly(), 1e-5);
    }
}

#[test]
fn a_convolution_is_nine_heads_that_know_relative_positions() {
    // A step away from its pixel costs a head so much that the weight is exactly 0 in single
    // precision, where e^x is 0 below −87.4.
    const STEEP: f64 = 100.0;
    for problem in problems() {
        let [rows, columns] = problem.size;
        let (n, outputs) = (rows * columns, problem.channels[1]);
        // Here the zeros around the image are pixels that can be looked at.
        let (high, wide) = (rows + 2, columns + 2);
        let inner = |at: usize| (at / columns + 1) * wide + at % columns + 1;
        let mut around = Tensor::<4>::zeros([1, 9, high * wide, outputs], &Device::flex());
        let values = problem.values();
        for at in 0..n {
            let pixel = values.clone().slice([0..1, 0..9, at..at + 1, 0..outputs]);
            let to = inner(at);
            around = around.slice_assign([0..1, 0..9, to..to + 1, 0..outputs], pixel);
        }
        // −α·‖k − (q + Δ)‖² without what is the same for all keys is a dot product:
        // 2α·(q + Δ)·k − α·‖k‖².
        let (mut queries, mut keys) = (vec![], vec![]);
        for [down, right] in PLACES {
            for at in (0..n).map(inner) {
                let row = (at / wide) as f64 + down as f64;
                let column = (at % wide) as f64 + right as f64;
                queries.extend([2.0 * STEEP * row, 2.0 * STEEP * column, -STEEP]);
            }
            for at in 0..high * wide {
                let (row, column) = ((at / wide) as f64, (at % wide) as f64);
                keys.extend([row, column, row * row + column * column]);
            }
        }
        let queries = tensor(&Array { values: queries, shape: vec![1, 9, n, 3] });
        let keys = tensor(&Array { values: keys, shape: vec![1, 9, high * wide, 3] });
        let attention = Attention::dot().scale(1.0);
        let (heads, weights) = attention.attend_with_weights(queries, keys, around);
        let weights = numbers(weights);
        assert!(weights.iter().all(|w| *w == 0.0 || *w == 1.0), "a head looks at one pixel");
        assert_eq!(weights.iter().sum::<f64>(), 9.0 * n as f64);
        close("relative", &numbers(heads.sum_dim(1)), &problem.directly(), 1e-5);
    }
}

#[test]
fn the_layer_is_the_same_convolution() {
    for problem in problems() {
        let ([rows, columns], [inputs, outputs]) = (problem.size, problem.channels);
        let kernel: Tensor<3> = tensor(&problem.kernel);
        let weight = Param::from_tensor(kernel.reshape([9 * inputs, outputs]));
        let windows = Windows { size: [3, 3], stride: [1, 1], padding: [1, 1] };
        let linear = Linear::new(weight, None, Activation::Identity);
        let image = tensor::<2>(&problem.image).reshape([1, rows, columns, inputs]);
        let y = ImageConvolution { linear, windows }.forward(image);
        close("layer", &numbers(y), &problem.directly(), 1e-5);
    }
}
