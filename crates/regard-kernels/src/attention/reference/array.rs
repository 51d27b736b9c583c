//! Arrays over the five axes of a formula, evaluated element by element.

use super::tape::{Number, sum};
use crate::attention::formula::{ArrayOperations, Function, Limit, Operator, Power};
use crate::attention::grid::{Dims, Grid};
use crate::attention::term::Param;
use std::marker::PhantomData;

/// Contiguous, `[B, H, T, S, F]`; an axis of 1 is broadcast.
#[derive(Clone)]
pub(super) struct Array<N> {
    pub data: Vec<N>,
    pub shape: [usize; 5],
}

/// The index of an element in an array of another shape, whose axes are equal or 1.
fn place(mut at: usize, of: [usize; 5], shape: [usize; 5]) -> usize {
    let (mut found, mut step) = (0, 1);
    for axis in (0..5).rev() {
        let index = at % of[axis];
        at /= of[axis];
        found += if shape[axis] == 1 { 0 } else { index * step };
        step *= shape[axis];
    }
    found
}

fn common(x: [usize; 5], y: [usize; 5]) -> [usize; 5] {
    std::array::from_fn(|axis| match (x[axis], y[axis]) {
        (1, n) | (n, 1) => n,
        (n, m) => {
            assert_eq!(n, m, "a formula's shapes fit: {x:?} and {y:?}");
            n
        }
    })
}

impl<N: Number> Array<N> {
    /// A parameter with its axes in their positions.
    pub fn of_param(param: &Param, x: &[N]) -> Array<N> {
        let (mut shape, mut steps, mut step) = ([1; 5], [0; 5], 1);
        for (axis, to) in param.places().into_iter().enumerate().rev() {
            if let Some(to) = to {
                (shape[to], steps[to]) = (param.shape[axis], step);
            }
            step *= param.shape[axis];
        }
        let from = |mut at: usize| {
            let mut found = 0;
            for axis in (0..5).rev() {
                found += at % shape[axis] * steps[axis];
                at /= shape[axis];
            }
            x[found]
        };
        Array { data: (0..shape.iter().product()).map(from).collect(), shape }
    }

    /// Broadcasts the elements to a larger shape.
    fn spread(&self, shape: [usize; 5]) -> Array<N> {
        let from = |at: usize| self.data[place(at, shape, self.shape)];
        Array { data: (0..shape.iter().product()).map(from).collect(), shape }
    }

    fn each(self, f: impl Fn(N) -> N) -> Array<N> {
        Array { data: self.data.into_iter().map(f).collect(), shape: self.shape }
    }

    fn with(&self, other: &Array<N>, f: impl Fn(N, N) -> N) -> Array<N> {
        let shape = common(self.shape, other.shape);
        let (x, y) = (self.spread(shape), other.spread(shape));
        Array { data: x.data.into_iter().zip(y.data).map(|(x, y)| f(x, y)).collect(), shape }
    }
}

/// The cells that a query may attend to, `[B, H, T, S]`.
pub(super) struct Cells<'a, N> {
    pub allowed: Vec<bool>,
    pub grid: &'a Grid,
    pub of: PhantomData<N>,
}

impl<N: Number> Cells<'_, N> {
    fn shape(&self) -> [usize; 5] {
        let Dims { b, h, t, s, .. } = self.grid.dims;
        [b, h, t, s, 1]
    }

    /// Reduces the keys that each query may attend to: `f(values, their keys)`.
    fn rows(&self, x: &Array<N>, f: impl Fn(&[N], &[usize]) -> N) -> Array<N> {
        let [b, h, t, s, _] = self.shape();
        let x = x.spread(self.shape());
        let row = |row: usize| {
            let keys: Vec<usize> = (0..s).filter(|j| self.allowed[row * s + j]).collect();
            let seen: Vec<N> = keys.iter().map(|j| x.data[row * s + j]).collect();
            f(&seen, &keys)
        };
        Array { data: (0..b * h * t).map(row).collect(), shape: [b, h, t, 1, 1] }
    }
}

fn apply<N: Number>(f: Function, x: N) -> N {
    match f {
        Function::Exp => x.exp(),
        Function::Ln => x.ln(),
        Function::Sqrt => x.sqrt(),
        Function::Abs => x.map(x.value().abs(), x.value().signum()),
        Function::Tanh => x.tanh(),
        Function::Sigmoid => N::of(1.0) / (N::of(1.0) + (-x).exp()),
        Function::LeakyRelu(slope) => x.leaky_relu(slope),
        Function::AtLeast(least) if x.value() < least => N::of(least),
        Function::AtLeast(_) => x,
    }
}

impl<N: Number> ArrayOperations for Cells<'_, N> {
    type Array = Array<N>;

    fn numbers(&mut self, numbers: Vec<f64>, shape: [usize; 5]) -> Array<N> {
        Array { data: numbers.into_iter().map(N::of).collect(), shape }
    }

    fn two(&mut self, operator: Operator, x: Array<N>, y: Array<N>) -> Array<N> {
        x.with(&y, |x, y| match operator {
            Operator::Add => x + y,
            Operator::Sub => x - y,
            Operator::Mul => x * y,
            Operator::Div => x / y,
        })
    }

    fn map(&mut self, f: Function, x: Array<N>) -> Array<N> {
        x.each(|x| apply(f, x))
    }

    fn dot(&mut self, x: Array<N>, y: Array<N>) -> Array<N> {
        let shape = common(x.shape, y.shape);
        let one = [shape[0], shape[1], shape[2], shape[3], 1];
        let cell = |at: usize| {
            let first = |shape: [usize; 5]| {
                let [b, h, t, s, f] = shape;
                place(at, one, [b, h, t, s, 1]) * f
            };
            let (x, y) = (&x.data[first(x.shape)..], &y.data[first(y.shape)..]);
            sum(x.iter().zip(y).take(shape[4]).map(|(x, y)| *x * *y))
        };
        Array { data: (0..one.iter().product()).map(cell).collect(), shape: one }
    }

    fn times(&mut self, x: Array<N>, matrix: Array<N>) -> Array<N> {
        let ([b, h, t, _, d], wide) = (x.shape, matrix.shape[4]);
        let shape = [b, h, t, 1, wide];
        let number = |at: usize| {
            let (row, c) = (at / wide, at % wide);
            let first = place(row, [b, h, t, 1, 1], [matrix.shape[0], matrix.shape[1], 1, 1, 1]);
            let column = |i: usize| matrix.data[(first * d + i) * wide + c];
            sum((0..d).map(|i| x.data[row * d + i] * column(i)))
        };
        Array { data: (0..shape.iter().product()).map(number).collect(), shape }
    }

    fn pick(&mut self, x: Array<N>, index: Vec<Option<usize>>) -> Array<N> {
        let [b, _, t, s, _] = self.shape();
        let own = if index.len() == t * s { 1 } else { b };
        let [xb, h, xt, rows, f] = x.shape;
        let shape = [own.max(xb), h, t, s, f];
        let number = |at: usize| {
            let (cell, c) = (at / f, at % f);
            let (j, i, head, b) = (cell % s, cell / s % t, cell / (s * t) % h, cell / (s * t * h));
            let row = index[(b % own * t + i) * s + j]?;
            Some(x.data[(((b % xb * h + head) * xt + i % xt) * rows + row) * f + c])
        };
        let all = (0..shape.iter().product()).map(|at| number(at).unwrap_or(N::of(0.0)));
        Array { data: all.collect(), shape }
    }

    fn inside(&mut self, x: Array<N>, u: Array<N>, limit: Limit) -> Array<N> {
        let inside = |u: N| match limit {
            Limit::AtMost(limit) => u.value() <= limit,
            Limit::Below(limit) => u.value() < limit,
        };
        let cells = u.spread(self.shape()).data;
        self.allowed.iter_mut().zip(cells).for_each(|(allowed, u)| *allowed &= inside(u));
        x.with(&u, |x, u| if inside(u) { x } else { N::of(1.0) })
    }

    fn detach(&mut self, x: Array<N>) -> Array<N> {
        x.each(|x| N::of(x.value()))
    }

    fn masked(&mut self, x: Array<N>, number: f64) -> Array<N> {
        let mut x = x.spread(self.shape());
        let cells = x.data.iter_mut().zip(&self.allowed);
        cells.filter(|(_, allowed)| !**allowed).for_each(|(x, _)| *x = N::of(number));
        x
    }

    fn total(&mut self, x: Array<N>) -> Array<N> {
        self.rows(&x, |seen, _| match seen {
            [] => N::of(1.0),
            seen => sum(seen.iter().copied()),
        })
    }

    fn largest(&mut self, x: Array<N>) -> Array<N> {
        let larger = |x: f64, y: &N| x.max(y.value());
        // For a query without keys any value will do.
        self.rows(&x, |seen, _| match seen {
            [] => N::of(0.0),
            seen => N::of(seen.iter().fold(f64::NEG_INFINITY, larger)),
        })
    }

    fn chosen(&mut self, x: Array<N>) -> Array<N> {
        let [.., s, _] = self.shape();
        let first = self.rows(&x, |seen, keys| {
            let mut best = (f64::NEG_INFINITY, -1.0);
            for (x, key) in seen.iter().zip(keys) {
                if x.value() > best.0 {
                    best = (x.value(), *key as f64);
                }
            }
            N::of(best.1)
        });
        let one = |at: usize| first.data[at / s].value() == (at % s) as f64;
        let cells = (0..self.allowed.len()).map(|at| N::of(f64::from(u8::from(one(at)))));
        Array { data: cells.collect(), shape: self.shape() }
    }

    fn above_threshold(&mut self, x: Array<N>, power: Power) -> Array<N> {
        let tau = self.rows(&x, |seen, _| match (seen, power) {
            ([], _) => N::of(0.0),
            (seen, Power::One) => threshold(seen, |kept| {
                (sum(kept.iter().copied()) - N::of(1.0)) / N::of(kept.len() as f64)
            }),
            (seen, Power::Two) => threshold(seen, |kept| {
                let n = N::of(kept.len() as f64);
                let mean = sum(kept.iter().copied()) / n;
                let squares = sum(kept.iter().map(|z| (*z - mean) * (*z - mean)));
                let rest = (N::of(1.0) - squares) / n;
                if rest.value() <= 0.0 { mean } else { mean - rest.sqrt() }
            }),
        });
        x.with(&tau, |z, tau| match (z.value() > tau.value(), power) {
            (false, _) => N::of(0.0),
            (true, Power::One) => z - tau,
            (true, Power::Two) => (z - tau) * (z - tau),
        })
    }
}

/// The threshold of the largest set of values that all lie above their own threshold.
fn threshold<N: Number>(z: &[N], tau: impl Fn(&[N]) -> N) -> N {
    let mut z = z.to_vec();
    z.sort_by(|x, y| y.value().total_cmp(&x.value()));
    let n = (1..=z.len()).rev().find(|n| tau(&z[..*n]).value() < z[n - 1].value());
    tau(&z[..n.expect("one score lies above its own threshold")])
}
