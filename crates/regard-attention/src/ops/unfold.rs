//! Sliding windows of an image as rows (im2col), so that convolution is a matrix product.

use crate::backend::{self, Buffer, Dense, Operands, Operation, ok};
use burn::backend::{Flex, TensorMetadata};
use burn::tensor::{Int, Tensor, TensorData};
use burn_flex::FlexTensor;
use regard_kernels::ops::unfold::Unfold as Kernel;

/// Sliding windows of an image; each pair is `[rows, columns]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Window size.
    pub size: [usize; 2],
    /// Stride between windows.
    pub stride: [usize; 2],
    /// Zero padding on each side of the image.
    pub padding: [usize; 2],
}

#[derive(Clone, Copy, Debug)]
struct Unfold(Kernel);

impl Windows {
    fn kernel(&self, [_, h, w, c]: [usize; 4]) -> Kernel {
        let Windows { size, stride, padding } = *self;
        Kernel { size: [h, w], channels: c, window: size, stride, padding }
    }
}

/// Extracts the windows of each image as rows: pixels row by row, channels last.
///
/// # Shapes
/// `x: [B, H, W, C]` → `[B, H', W', k₀·k₁·C]`
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use regard_attention::ops::{Windows, unfold};
///
/// let x = Tensor::<4>::ones([2, 5, 5, 3], &Device::flex());
/// let windows = Windows { size: [3, 3], stride: [2, 2], padding: [1, 1] };
/// assert_eq!(unfold(x, windows).dims(), [2, 3, 3, 27]);
/// ```
pub fn unfold(x: Tensor<4>, windows: Windows) -> Tensor<4> {
    let kernel = windows.kernel(x.dims());
    if !backend::fused(&x) {
        return composed(x, &kernel);
    }
    backend::apply(Unfold(kernel), vec![x.into_dispatch()], vec![])
}

/// Each element of each window is gathered from the image, which has a zero pixel put before it.
fn composed(x: Tensor<4>, kernel: &Kernel) -> Tensor<4> {
    let ([b, h, w, c], [high, wide]) = (x.dims(), ok(kernel.windows()));
    let Kernel { window, stride, padding, .. } = *kernel;
    let mut places = Vec::with_capacity(high * wide * window[0] * window[1]);
    for (i, j) in (0..high).flat_map(|i| (0..wide).map(move |j| (i, j))) {
        for (a, e) in (0..window[0]).flat_map(|a| (0..window[1]).map(move |e| (a, e))) {
            let row = (i * stride[0] + a).checked_sub(padding[0]).filter(|row| *row < h);
            let column = (j * stride[1] + e).checked_sub(padding[1]).filter(|column| *column < w);
            let place = row.zip(column).map_or(0, |(row, column)| row * w + column + 1);
            places.push(place as i64);
        }
    }
    let device = x.device();
    let count = places.len();
    let places = Tensor::<1, Int>::from_data(TensorData::new(places, [count]), &device);
    let zero = Tensor::zeros([b, 1, c], (&device, x.dtype()));
    let x = Tensor::cat(vec![zero, x.reshape([b, h * w, c])], 1);
    x.select(1, places).reshape([b, high, wide, window[0] * window[1] * c])
}

impl Operation for Unfold {
    type Saved = ();

    fn forward(&self, x: &Operands<Flex>, _: bool) -> (FlexTensor, ()) {
        let images = Dense::new(&x.floats[0]);
        let [high, wide] = ok(self.0.windows());
        let [b, c] = [x.floats[0].shape()[0], x.floats[0].shape()[3]];
        let width = self.0.window[0] * self.0.window[1] * c;
        let mut y = Buffer::new(b * high * wide * width);
        ok(self.0.forward(&images, &mut y));
        (y.tensor([b, high, wide, width]), ())
    }

    fn backward(
        &self,
        x: &Operands<Flex>,
        (): (),
        dy: FlexTensor,
        _: &[bool],
    ) -> Vec<Option<FlexTensor>> {
        let shape = x.floats[0].shape();
        let mut dx = Buffer::new(shape.num_elements());
        ok(self.0.backward(&Dense::new(&dy), &mut dx));
        vec![Some(dx.tensor(shape))]
    }
}
