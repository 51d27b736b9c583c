//! Minimal reverse-mode automatic differentiation of scalars.

use std::cell::RefCell;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// Scalar type of the reference: `f64`, or [`Var`] for gradients.
pub trait Number:
    Copy
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// Creates a constant.
    fn of(x: f64) -> Self;
    /// Returns the value.
    fn value(self) -> f64;
    /// Returns a function of `x` with this `value`, and the derivative `slope` at `x`.
    fn map(self, value: f64, slope: f64) -> Self;

    /// `eˣ`
    fn exp(self) -> Self {
        let y = self.value().exp();
        self.map(y, y)
    }
    /// `ln x`
    fn ln(self) -> Self {
        self.map(self.value().ln(), 1.0 / self.value())
    }
    /// `tanh x`
    fn tanh(self) -> Self {
        let y = self.value().tanh();
        self.map(y, 1.0 - y * y)
    }
    /// `√x`
    fn sqrt(self) -> Self {
        let y = self.value().sqrt();
        self.map(y, 0.5 / y)
    }
    /// `x`, or `slope·x` if negative.
    fn leaky_relu(self, slope: f64) -> Self {
        let slope = if self.value() < 0.0 { slope } else { 1.0 };
        self.map(slope * self.value(), slope)
    }
}

/// Returns the sum of the items.
pub fn sum<N: Number>(items: impl Iterator<Item = N>) -> N {
    items.fold(N::of(0.0), |x, y| x + y)
}

impl Number for f64 {
    fn of(x: f64) -> f64 {
        x
    }
    fn value(self) -> f64 {
        self
    }
    fn map(self, value: f64, _: f64) -> f64 {
        value
    }
}

/// A recorded operation: up to two operands, and the derivatives by them.
type Step = [(u32, f64); 2];

thread_local! {
    static TAPE: RefCell<Vec<Step>> = const { RefCell::new(Vec::new()) };
}

/// Scalar on this thread's tape.
#[derive(Clone, Copy, Debug)]
pub struct Var {
    at: u32,
    value: f64,
}

/// No operand.
const NONE: u32 = u32::MAX;

impl Var {
    /// Clears the tape; earlier variables must not be used any more.
    pub fn start() {
        TAPE.with_borrow_mut(Vec::clear);
    }

    /// Creates a variable whose gradient can be queried.
    pub fn leaf(x: f64) -> Var {
        push(x, [(NONE, 0.0); 2])
    }

    /// Computes the derivatives of this variable by all earlier ones, for [`Grads::of`].
    pub fn gradients(self) -> Grads {
        TAPE.with_borrow(|tape| {
            let mut grads = vec![0.0; tape.len()];
            if self.at != NONE {
                grads[self.at as usize] = 1.0;
            }
            for (at, step) in tape.iter().enumerate().rev() {
                let upstream: f64 = grads[at];
                if upstream != 0.0 {
                    for (parent, slope) in step.iter().filter(|(parent, _)| *parent != NONE) {
                        grads[*parent as usize] += slope * upstream;
                    }
                }
            }
            Grads(grads)
        })
    }
}

/// Derivatives of one variable.
pub struct Grads(Vec<f64>);

impl Grads {
    /// Returns the derivative by `x`.
    pub fn of(&self, x: Var) -> f64 {
        if x.at == NONE { 0.0 } else { self.0[x.at as usize] }
    }
}

fn push(value: f64, step: Step) -> Var {
    TAPE.with_borrow_mut(|tape| {
        tape.push(step);
        Var { at: tape.len() as u32 - 1, value }
    })
}

impl Number for Var {
    fn of(value: f64) -> Var {
        Var { at: NONE, value }
    }
    fn value(self) -> f64 {
        self.value
    }
    fn map(self, value: f64, slope: f64) -> Var {
        push(value, [(self.at, slope), (NONE, 0.0)])
    }
}

impl Add for Var {
    type Output = Var;
    fn add(self, y: Var) -> Var {
        push(self.value + y.value, [(self.at, 1.0), (y.at, 1.0)])
    }
}
impl Sub for Var {
    type Output = Var;
    fn sub(self, y: Var) -> Var {
        push(self.value - y.value, [(self.at, 1.0), (y.at, -1.0)])
    }
}
impl Mul for Var {
    type Output = Var;
    fn mul(self, y: Var) -> Var {
        push(self.value * y.value, [(self.at, y.value), (y.at, self.value)])
    }
}
impl Div for Var {
    type Output = Var;
    fn div(self, y: Var) -> Var {
        let quotient = self.value / y.value;
        push(quotient, [(self.at, 1.0 / y.value), (y.at, -quotient / y.value)])
    }
}
impl Neg for Var {
    type Output = Var;
    fn neg(self) -> Var {
        push(-self.value, [(self.at, -1.0), (NONE, 0.0)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derivatives_agree_with_differences() {
        fn f<N: Number>(x: N, y: N) -> N {
            let z = (x * y).tanh() + (x / y).exp() - (x + N::of(3.0)).ln() * y.sqrt();
            (-z).leaky_relu(0.2)
        }
        let (x, y, step) = (0.7, 1.3, 1e-6);
        Var::start();
        let (vx, vy) = (Var::leaf(x), Var::leaf(y));
        let grads = f(vx, vy).gradients();
        let by_x = (f(x + step, y) - f(x - step, y)) / (2.0 * step);
        let by_y = (f(x, y + step) - f(x, y - step)) / (2.0 * step);
        assert!((grads.of(vx) - by_x).abs() < 1e-8, "{} {by_x}", grads.of(vx));
        assert!((grads.of(vy) - by_y).abs() < 1e-8, "{} {by_y}", grads.of(vy));
    }
}
