//! Formulas: what a score, a bias or a normaliser computes, as an expression.
//!
//! Each stands once, in the file of its score, bias or normaliser, and is evaluated in two places:
//! by the slow reference in `f64`, which the kernels are tested against, and with a tensor
//! library's own operations on devices that have no kernels. The kernels know nothing of it.
//!
//! ```
//! use regard_kernels::attention::formula::{keys, queries, scale};
//!
//! let scaled_dot_product = scale() * queries().dot(keys());
//! # let _ = scaled_dot_product;
//! ```
//!
//! Every part of an expression is an array over five axes, `[B, H, T, S, F]`: batch rows, query
//! heads, queries, keys and features. An axis that a part does not depend on is 1 and is repeated
//! where it meets a longer one: queries are `[B, H, T, 1, D]`, keys `[B, H, 1, S, D]` (a key head
//! once for each query head that shares it), scores `[B, H, T, S, 1]`. Parameters have the axes
//! that [`Param::axes`](super::Param::axes) names.

mod evaluate;

pub use evaluate::{Arrays, Given, Weights, known, weights};

use super::graph::Graph;
use super::grid::Grid;
use crate::rng::Stream;
use std::ops::{Add, Div, Mul, Neg, Sub};
use std::sync::Arc;

/// A part of a formula. Copies are cheap, and one that is used twice is evaluated once.
#[derive(Clone)]
pub struct Expr(Arc<Node>);

/// The key at which a cell `[b, i, j]` looks, if at any.
type Index = Box<dyn Fn(&Grid, [usize; 3]) -> Option<usize> + Send + Sync>;
/// A number for a cell `[b, h, i, j]`.
type Cell = Box<dyn Fn(&Grid, [usize; 4]) -> f64 + Send + Sync>;

enum Node {
    Leaf(Leaf),
    Number(f64),
    /// Numbers that are no parameter; own for each head or not.
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

/// An operation of two arrays.
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

/// A function of every number of an array.
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
    /// `x`, or the slope times `x` if negative.
    LeakyRelu(f64),
    /// `max(x, least)`
    AtLeast(f64),
}

/// How far a number may go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// `u ≤ limit`
    AtMost(f64),
    /// `u < limit`
    Below(f64),
}

/// The power of what lies above a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Power {
    /// `max(z − τ, 0)`
    One,
    /// `max(z − τ, 0)²`
    Two,
}

/// `[B, H, T, 1, D]`
pub fn queries() -> Expr {
    Expr::new(Node::Leaf(Leaf::Queries))
}

/// `[B, H, 1, S, D]`
pub fn keys() -> Expr {
    Expr::new(Node::Leaf(Leaf::Keys))
}

/// `[B, H, 1, S, E]`
pub fn values() -> Expr {
    Expr::new(Node::Leaf(Leaf::Values))
}

/// The scale that was given, or the score's own.
pub fn scale() -> Expr {
    Expr::new(Node::Leaf(Leaf::Scale))
}

/// A parameter of the score or bias, by its place in what its `params` lists.
pub fn param(number: usize) -> Expr {
    Expr::new(Node::Leaf(Leaf::Param(number)))
}

/// Scores and biases together, `[B, H, T, S, 1]`: what a normaliser begins with. Masked cells hold
/// a very small number.
pub fn scores() -> Expr {
    Expr::new(Node::Leaf(Leaf::Scores))
}

/// A constant.
pub fn number(x: f64) -> Expr {
    Expr::new(Node::Number(x))
}

/// A number for the position of each query and for each key: `[B, 1, T, S, 1]`.
pub fn places(f: impl Fn(f64, f64) -> f64 + Send + Sync + 'static) -> Expr {
    let cell =
        move |grid: &Grid, [b, _, i, j]: [usize; 4]| f(f64::from(grid.position(b, i)), j as f64);
    Expr::new(Node::Cells(Box::new(cell), false))
}

/// Gumbel noise, a function of a cell's place alone: `[B, H, T, S, 1]`.
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

    /// The sum over features of the products: `[…, D]`, `[…, D]` → `[…, 1]`.
    pub fn dot(self, other: Expr) -> Expr {
        Expr::new(Node::Dot(self, other))
    }

    /// A row times a matrix: `[…, 1, D]`, `[…, D, F]` → `[…, 1, F]`.
    pub fn times(self, matrix: Expr) -> Expr {
        Expr::new(Node::Times(self, matrix))
    }

    /// For each batch row `b`, query `i` and key `j` the part's row `index(grid, [b, i, j])` along
    /// the axis of keys; zeros where there is none.
    pub fn pick(
        self,
        index: impl Fn(&Grid, [usize; 3]) -> Option<usize> + Send + Sync + 'static,
    ) -> Expr {
        Expr::new(Node::Pick(self, Box::new(index)))
    }

    /// A row for each edge of a graph, spread over the cells: zeros where there is no edge.
    pub fn by_edge(self, graph: Arc<Graph>) -> Expr {
        self.pick(move |_, [_, i, j]| graph.edge(i, j, 0))
    }

    /// Cells where `u` is beyond the limit have the score −∞; here they hold 1, which is harmless.
    pub fn inside(self, u: Expr, limit: Limit) -> Expr {
        Expr::new(Node::Inside(self, u, limit))
    }

    /// Without a gradient.
    pub fn detach(self) -> Expr {
        Expr::new(Node::Detach(self))
    }

    /// The sum over the keys that a query may see; 1 for a query without any, so that it can be
    /// divided by.
    pub fn total(self) -> Expr {
        Expr::new(Node::Total(self))
    }

    /// The largest over the keys that a query may see, without a gradient.
    pub fn largest(self) -> Expr {
        Expr::new(Node::Largest(self))
    }

    /// 1 at the largest over the keys that a query may see (the first of equal ones), 0 at the
    /// others; without a gradient.
    pub fn chosen(self) -> Expr {
        Expr::new(Node::Chosen(self))
    }

    /// `max(z − τ, 0)` to a power, with `τ` such that a query's weights sum to 1.
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

/// A normaliser's formula, over [`scores`].
pub struct Normalized {
    /// The weights; masked cells are set to exactly 0 afterwards.
    pub weights: Expr,
    /// The log-probability of a choice, `[B, H, T, 1, 1]`, if the normaliser makes one.
    pub log_prob: Option<Expr>,
}

impl From<Expr> for Normalized {
    fn from(weights: Expr) -> Normalized {
        Normalized { weights, log_prob: None }
    }
}
