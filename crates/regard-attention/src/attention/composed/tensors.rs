//! The operations of formulas on Burn's tensors, over the axes `[B, H, T, S, F]`.

use burn::tensor::{Bool, Int, Tensor, TensorData, activation};
use regard_kernels::attention::Param;
use regard_kernels::attention::formula::{ArrayOperations, Function, Limit, Operator, Power};

/// Allowed pairs, device and precision of an evaluation.
pub(super) struct Tensors {
    /// Allowed query–key pairs, `[B, H, T, S]`.
    pub allowed: Tensor<4, Bool>,
    /// A tensor with the device and the precision.
    pub like: Tensor<4>,
}

/// A parameter with its axes moved to their positions.
pub(super) fn of_param(param: &Param, x: Tensor<4>) -> Tensor<5> {
    let places = param.places();
    // Axes in the order of their positions; those without one have size 1 and go anywhere.
    let mut order = [0, 1, 2, 3];
    order.sort_by_key(|axis| places[*axis]);
    let mut shape = [1; 5];
    for (axis, place) in places.into_iter().enumerate() {
        if let Some(place) = place {
            shape[place] = param.shape[axis];
        }
    }
    x.permute(order.map(|axis| axis as isize)).reshape(shape)
}

impl Tensors {
    fn cells(&self) -> [usize; 5] {
        let [b, h, t, s] = self.allowed.dims();
        [b, h, t, s, 1]
    }

    fn masked_cells(&self) -> Tensor<5, Bool> {
        self.allowed.clone().bool_not().reshape(self.cells())
    }
}

/// Replaces zero sums, of rows with no allowed key, by 1, so that division leaves them 0.
fn above_zero(sum: Tensor<5>) -> Tensor<5> {
    let empty = sum.clone().equal_elem(0.0);
    sum.mask_fill(empty, 1.0)
}

impl ArrayOperations for Tensors {
    type Array = Tensor<5>;

    fn numbers(&mut self, numbers: Vec<f64>, shape: [usize; 5]) -> Tensor<5> {
        let (device, dtype) = (self.like.device(), self.like.dtype());
        let numbers = TensorData::new(numbers, shape).convert_dtype(dtype);
        Tensor::from_data(numbers, (&device, dtype))
    }

    fn two(&mut self, operator: Operator, x: Tensor<5>, y: Tensor<5>) -> Tensor<5> {
        match operator {
            Operator::Add => x + y,
            Operator::Sub => x - y,
            Operator::Mul => x * y,
            Operator::Div => x / y,
        }
    }

    fn map(&mut self, f: Function, x: Tensor<5>) -> Tensor<5> {
        match f {
            Function::Exp => x.exp(),
            Function::Ln => x.log(),
            Function::Sqrt => x.sqrt(),
            Function::Abs => x.abs(),
            Function::Tanh => x.tanh(),
            Function::Sigmoid => activation::sigmoid(x),
            Function::LeakyRelu(slope) => activation::leaky_relu(x, slope),
            Function::AtLeast(least) => x.clamp_min(least),
        }
    }

    fn dot(&mut self, x: Tensor<5>, y: Tensor<5>) -> Tensor<5> {
        let ([xb, xh, t, one, d], [yb, yh, other, s, _]) = (x.dims(), y.dims());
        if (one, other) == (1, 1) {
            // Rows of queries and rows of keys: a matrix product.
            let (x, y) = (x.reshape([xb, xh, t, d]), y.reshape([yb, yh, s, d]));
            return x.matmul(y.transpose()).unsqueeze_dim(4);
        }
        // `[B, H, T, S, D]`: the only tensor that grows with all five sizes.
        (x * y).sum_dim(4)
    }

    fn times(&mut self, x: Tensor<5>, matrix: Tensor<5>) -> Tensor<5> {
        let ([b, h, t, _, d], [mb, mh, _, _, wide]) = (x.dims(), matrix.dims());
        let matrix = matrix.reshape([mb, mh, d, wide]);
        x.reshape([b, h, t, d]).matmul(matrix).unsqueeze_dim(3)
    }

    fn pick(&mut self, x: Tensor<5>, index: Vec<Option<usize>>) -> Tensor<5> {
        let [_, _, t, s, _] = self.cells();
        let own = index.len().checked_div(t * s).unwrap_or(1);
        let [xb, h, xt, rows, f] = x.dims();
        // Pairs without a row get a row of zeros, appended at the end.
        let x = match index.contains(&None) || rows == 0 {
            true => {
                let none = self.numbers(vec![0.0; xb * h * xt * f], [xb, h, xt, 1, f]);
                Tensor::cat(vec![x, none], 3)
            }
            false => x,
        };
        let rows = x.dims()[3];
        let index: Vec<i64> = index.into_iter().map(|row| row.unwrap_or(rows - 1) as i64).collect();
        let device = x.device();
        if (xb, xt) == (1, 1) {
            let len = index.len();
            let index = Tensor::<1, Int>::from_data(TensorData::new(index, [len]), &device);
            return x.select(3, index).reshape([h, own, t, s, f]).swap_dims(0, 1);
        }
        let b = own.max(xb);
        let index = TensorData::new(index, [own, 1, t, s, 1]);
        let index = Tensor::<5, Int>::from_data(index, &device).expand([b, h, t, s, f]);
        x.expand([b, h, t, rows, f]).gather(3, index)
    }

    fn inside(&mut self, x: Tensor<5>, u: Tensor<5>, limit: Limit) -> Tensor<5> {
        let inside = match limit {
            Limit::AtMost(limit) => u.lower_equal_elem(limit),
            Limit::Below(limit) => u.lower_elem(limit),
        };
        let cells = inside.clone().expand(self.cells()).reshape(self.allowed.dims());
        self.allowed = self.allowed.clone().bool_and(cells);
        x.mask_fill(inside.bool_not(), 1.0)
    }

    fn detach(&mut self, x: Tensor<5>) -> Tensor<5> {
        x.detach()
    }

    fn masked(&mut self, x: Tensor<5>, number: f64) -> Tensor<5> {
        x.expand(self.cells()).mask_fill(self.masked_cells(), number)
    }

    fn total(&mut self, x: Tensor<5>) -> Tensor<5> {
        above_zero(self.masked(x, 0.0).sum_dim(3))
    }

    fn largest(&mut self, x: Tensor<5>) -> Tensor<5> {
        x.expand(self.cells()).max_dim(3).detach()
    }

    fn chosen(&mut self, x: Tensor<5>) -> Tensor<5> {
        let [.., s, _] = self.cells();
        let first = x.clone().detach().argmax(3);
        let keys = Tensor::<1, Int>::arange(0..s as i64, &x.device()).reshape([1, 1, 1, s, 1]);
        let one = keys.expand(self.cells()).equal(first.expand(self.cells()));
        one.float().cast(self.like.dtype())
    }

    /// Newton's method from below finds the support, the pairs above `τ`. Given the support, `τ` is
    /// a formula of its `z`, which Burn differentiates (Martins and Astudillo 2016; Peters et al.
    /// 2019).
    fn above_threshold(&mut self, z: Tensor<5>, power: Power) -> Tensor<5> {
        let (masked, fixed) = (self.masked_cells(), z.clone().detach());
        let mut tau = fixed.clone().max_dim(3) - 1.0;
        for _ in 0..32 {
            let above = (fixed.clone() - tau.clone()).clamp_min(0.0).mask_fill(masked.clone(), 0.0);
            let (value, slope) = match power {
                Power::Two => (above.clone() * above.clone(), above * 2.0),
                Power::One => (above.clone(), above.greater_elem(0.0).float().cast(fixed.dtype())),
            };
            let slope = above_zero(slope.sum_dim(3));
            tau = tau + ((value.sum_dim(3) - 1.0) / slope).clamp_min(0.0);
        }
        let outside = (fixed.clone() - tau).lower_equal_elem(0.0).bool_or(masked);
        let inside = (fixed * 0.0 + 1.0).mask_fill(outside.clone(), 0.0);
        let count = above_zero(inside.sum_dim(3));
        let mean = z.clone().mask_fill(outside.clone(), 0.0).sum_dim(3) / count.clone();
        match power {
            // Σ (z − τ) = 1 over the support: τ = mean − 1/count
            Power::One => (z - (mean - count.recip())).mask_fill(outside, 0.0),
            // Σ (z − τ)² = 1 over the support: τ = mean − √((1 − Σ (z − mean)²)/count)
            Power::Two => {
                let apart = (z.clone() - mean.clone()).mask_fill(outside.clone(), 0.0);
                let left = -(apart.clone() * apart).sum_dim(3) + 1.0;
                let tau = mean - (left.clamp_min(1e-12) / count).sqrt();
                let above = (z - tau).mask_fill(outside, 0.0);
                above.clone() * above
            }
        }
    }
}
