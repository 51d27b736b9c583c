//! Formulas of scores, biases and normalisers, as expressions.
//!
//! Each is defined once, in the file of its score, bias or normaliser, and is evaluated in two
//! ways: by the slow reference in `f64`, which the kernels are tested against, and with a tensor
//! library's operations on devices without kernels. The kernels do not use it.
//!
//! ```
//! use regard_kernels::attention::formula::{keys, queries, scale};
//!
//! let scaled_dot_product = scale() * queries().dot(keys());
//! # let _ = scaled_dot_product;
//! ```
//!
//! Every subexpression is an array over five axes, `[B, H, T, S, F]`: batch rows, query heads,
//! queries, keys and features. An axis that it does not depend on is 1 and is broadcast: queries
//! are `[B, H, T, 1, D]`, keys `[B, H, 1, S, D]` (a key head repeated for each query head that
//! shares it), scores `[B, H, T, S, 1]`. Parameters have the axes of
//! [`Param::axes`](super::Param::axes).

mod evaluate;

pub use evaluate::{ArrayOperations, FormulaInputs, FormulaWeights, known, weights};

use super::graph::Graph;
use super::grid::Grid;
use crate::rng::Stream;
use std::ops::{Add, Div, Mul, Neg, Sub};
use std::sync::Arc;

/// Expression. Clones are cheap, and a shared subexpression is evaluated once.
#[derive(Clone)]
pub struct Expr(Arc<Node>);

/// The key index that a cell `[b, i, j]` refers to, if any.
type Index = Box<dyn Fn(&Grid, [usize; 3]) -> Option<usize> + Send + Sync>;
/// The value of a cell `[b, h, i, j]`.
type Cell = Box<dyn Fn(&Grid, [usize; 4]) -> f64 + Send + Sync>;

enum Node {
    Leaf(Leaf),
    Number(f64),
    /// Values that are not parameters, and whether they differ between heads.
    Cells(Cell, bool),
    Two(Operator, Expr, Expr),
    Map(Function, Expr),
    Dot(Expr, Expr),
    Times(Expr, Expr),
    Pick(Expr, Index),
    Inside(Expr, Expr, Limit),
    Detach(Expr),
    Total(Expr),
    Largest(Expr),
    Chosen(Expr),
    Threshold(Expr, Power),
}

#[derive(Clone, Copy)]
enum Leaf {
    Queries,
    Keys,
    Values,
    Scale,
    Param(usize),
    Scores,
}

/// Binary operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `x + y`
    Add,
    /// `x − y`
    Sub,
    /// `x · y`
    Mul,
    /// `x / y`
    Div,
}

/// Elementwise function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Function {
    /// `eˣ`
    Exp,
    /// `ln x`
    Ln,
    /// `√x`
    Sqrt,
    /// `|x|`
    Abs,
    /// `tanh x`
    Tanh,
    /// `1/(1 + e^{−x})`
    Sigmoid,
    /// `x`, or the negative slope times `x` if negative.
    LeakyRelu(f64),
    /// `max(x, least)`
    AtLeast(f64),
}

/// Upper limit of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// `u ≤ limit`
    AtMost(f64),
    /// `u < limit`
    Below(f64),
}

/// Power above a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Power {
    /// `max(z − τ, 0)`
    One,
    /// `max(z − τ, 0)²`
    Two,
}

/// Returns the queries, `[B, H, T, 1, D]`.
pub fn queries() -> Expr {
    Expr::new(Node::Leaf(Leaf::Queries))
}

/// Returns the keys, `[B, H, 1, S, D]`.
pub fn keys() -> Expr {
    Expr::new(Node::Leaf(Leaf::Keys))
}

/// Returns the values, `[B, H, 1, S, E]`.
pub fn values() -> Expr {
    Expr::new(Node::Leaf(Leaf::Values))
}

/// Returns the scale that was given, or the score's default.
pub fn scale() -> Expr {
    Expr::new(Node::Leaf(Leaf::Scale))
}

/// Returns a parameter of the score or bias, by its index in its `params`.
pub fn param(number: usize) -> Expr {
    Expr::new(Node::Leaf(Leaf::Param(number)))
}

/// Returns the scores with biases, `[B, H, T, S, 1]`: the input of a normaliser. Masked cells hold
/// a large negative value.
pub fn scores() -> Expr {
    Expr::new(Node::Leaf(Leaf::Scores))
}

/// Returns a constant.
pub fn number(x: f64) -> Expr {
    Expr::new(Node::Number(x))
}

/// Returns a function of each query's position and each key, `[B, 1, T, S, 1]`.
pub fn places(f: impl Fn(f64, f64) -> f64 + Send + Sync + 'static) -> Expr {
    let cell =
        move |grid: &Grid, [b, _, i, j]: [usize; 4]| f(f64::from(grid.position(b, i)), j as f64);
    Expr::new(Node::Cells(Box::new(cell), false))
}

/// Returns Gumbel noise, a function of a cell's index alone, `[B, H, T, S, 1]`.
pub fn gumbel_noise(noise: Stream) -> Expr {
    let cell = move |grid: &Grid, place: [usize; 4]| f64::from(noise.gumbel(grid.cell(place)));
    Expr::new(Node::Cells(Box::new(cell), true))
}

impl Expr {
    fn new(node: Node) -> Expr {
        Expr(Arc::new(node))
    }

    fn map(self, f: Function) -> Expr {
        Expr::new(Node::Map(f, self))
    }

    /// Computes the dot product over features: `[…, D]`, `[…, D]` → `[…, 1]`.
    pub fn dot(self, other: Expr) -> Expr {
        Expr::new(Node::Dot(self, other))
    }

    /// Multiplies a row by a matrix: `[…, 1, D]`, `[…, D, F]` → `[…, 1, F]`.
    pub fn times(self, matrix: Expr) -> Expr {
        Expr::new(Node::Times(self, matrix))
    }

    /// Gathers along the axis of keys: for each batch row `b`, query `i` and key `j`, the row
    /// `index(grid, [b, i, j])`; zeros where it is `None`.
    pub fn pick(
        self,
        index: impl Fn(&Grid, [usize; 3]) -> Option<usize> + Send + Sync + 'static,
    ) -> Expr {
        Expr::new(Node::Pick(self, Box::new(index)))
    }

    /// Scatters a row for each edge of a graph over the cells; zeros where there is no edge.
    pub fn by_edge(self, graph: Arc<Graph>) -> Expr {
        self.pick(move |_, [_, i, j]| graph.edge(i, j, 0))
    }

    /// Masks cells where `u` is beyond the limit, with the score −∞. In the expression they hold 1.
    pub fn inside(self, u: Expr, limit: Limit) -> Expr {
        Expr::new(Node::Inside(self, u, limit))
    }

    /// Stops the gradient.
    pub fn detach(self) -> Expr {
        Expr::new(Node::Detach(self))
    }

    /// Sums over the keys that a query may attend to; 1 for a query without any, so that it can be
    /// a divisor.
    pub fn total(self) -> Expr {
        Expr::new(Node::Total(self))
    }

    /// Returns the maximum over the keys that a query may attend to, without a gradient.
    pub fn largest(self) -> Expr {
        Expr::new(Node::Largest(self))
    }

    /// Returns 1 at the maximum over the keys that a query may attend to (the first of equal ones),
    /// 0 elsewhere; without a gradient.
    pub fn chosen(self) -> Expr {
        Expr::new(Node::Chosen(self))
    }

    /// Computes `max(z − τ, 0)` to a power, with `τ` such that a query's weights sum to 1.
    pub fn above_threshold(self, power: Power) -> Expr {
        Expr::new(Node::Threshold(self, power))
    }

    /// `eˣ`
    pub fn exp(self) -> Expr {
        self.map(Function::Exp)
    }

    /// `ln x`
    pub fn ln(self) -> Expr {
        self.map(Function::Ln)
    }

    /// `√x`
    pub fn sqrt(self) -> Expr {
        self.map(Function::Sqrt)
    }

    /// `|x|`
    pub fn abs(self) -> Expr {
        self.map(Function::Abs)
    }

    /// `tanh x`
    pub fn tanh(self) -> Expr {
        self.map(Function::Tanh)
    }

    /// `1/(1 + e^{−x})`
    pub fn sigmoid(self) -> Expr {
        self.map(Function::Sigmoid)
    }

    /// `x`, or `slope · x` if negative.
    pub fn leaky_relu(self, slope: f32) -> Expr {
        self.map(Function::LeakyRelu(f64::from(slope)))
    }

    /// `max(x, least)`
    pub fn at_least(self, least: f64) -> Expr {
        self.map(Function::AtLeast(least))
    }
}

impl Add for Expr {
    type Output = Expr;
    fn add(self, y: Expr) -> Expr {
        Expr::new(Node::Two(Operator::Add, self, y))
    }
}
impl Sub for Expr {
    type Output = Expr;
    fn sub(self, y: Expr) -> Expr {
        Expr::new(Node::Two(Operator::Sub, self, y))
    }
}
impl Mul for Expr {
    type Output = Expr;
    fn mul(self, y: Expr) -> Expr {
        Expr::new(Node::Two(Operator::Mul, self, y))
    }
}
impl Div for Expr {
    type Output = Expr;
    fn div(self, y: Expr) -> Expr {
        Expr::new(Node::Two(Operator::Div, self, y))
    }
}
impl Neg for Expr {
    type Output = Expr;
    fn neg(self) -> Expr {
        number(-1.0) * self
    }
}

/// Formula of a normaliser, over [`scores`].
pub struct Normalized {
    /// Weights; masked cells are set to exactly 0 afterwards.
    pub weights: Expr,
    /// Log-probability of the choice, `[B, H, T, 1, 1]`; `None` unless the normaliser chooses.
    pub log_prob: Option<Expr>,
}

impl From<Expr> for Normalized {
    fn from(weights: Expr) -> Normalized {
        Normalized { weights, log_prob: None }
    }
}
