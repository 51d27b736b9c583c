//! Evaluation of formulas with any array type.

use super::{Expr, Function, Leaf, Limit, Node, Operator, Power};
use crate::attention::Attention;
use crate::attention::grid::{Dims, Grid};
use crate::view::{Error, bail};
use std::collections::HashMap;

/// Operations on arrays over the axes `[B, H, T, S, F]`, and the cells that a query may attend to.
/// An axis of 1 is broadcast.
pub trait ArrayOperations {
    /// Array type.
    type Array: Clone;

    /// Creates a constant array.
    fn numbers(&mut self, numbers: Vec<f64>, shape: [usize; 5]) -> Self::Array;

    /// Applies a binary operator.
    fn two(&mut self, operator: Operator, x: Self::Array, y: Self::Array) -> Self::Array;

    /// Applies a function to each element.
    fn map(&mut self, f: Function, x: Self::Array) -> Self::Array;

    /// [`Expr::dot`]
    fn dot(&mut self, x: Self::Array, y: Self::Array) -> Self::Array;

    /// [`Expr::times`]
    fn times(&mut self, x: Self::Array, matrix: Self::Array) -> Self::Array;

    /// [`Expr::pick`]; `index` is `[B or 1, T, S]`, 1 if it is the same for all batch rows.
    fn pick(&mut self, x: Self::Array, index: Vec<Option<usize>>) -> Self::Array;

    /// [`Expr::inside`]; removes cells from those that a query may attend to.
    fn inside(&mut self, x: Self::Array, u: Self::Array, limit: Limit) -> Self::Array;

    /// [`Expr::detach`]
    fn detach(&mut self, x: Self::Array) -> Self::Array;

    /// Returns an array of all cells, `[B, H, T, S, 1]`, with `number` in the masked ones.
    fn masked(&mut self, x: Self::Array, number: f64) -> Self::Array;

    /// [`Expr::total`]
    fn total(&mut self, x: Self::Array) -> Self::Array;

    /// [`Expr::largest`]
    fn largest(&mut self, x: Self::Array) -> Self::Array;

    /// [`Expr::chosen`]
    fn chosen(&mut self, x: Self::Array) -> Self::Array;

    /// [`Expr::above_threshold`]
    fn above_threshold(&mut self, x: Self::Array, power: Power) -> Self::Array;
}

/// Input arrays of an attention.
pub struct FormulaInputs<A> {
    /// Queries, `[B, H, T, 1, D]`.
    pub q: A,
    /// Keys, `[B, H, 1, S, D]`.
    pub k: A,
    /// Values, `[B, H, 1, S, E]`; only few scores use them.
    pub v: Option<A>,
    /// Parameters as listed by [`Attention::params`], each with its axes in their positions.
    pub params: Vec<A>,
}

/// Result of an attention's formulas.
pub struct FormulaWeights<A> {
    /// Weights, `[B, H, T, S, 1]`.
    pub weights: A,
    /// Log-probability of the choice, `[B, H, T, 1, 1]`; `None` unless the normaliser chooses.
    pub log_prob: Option<A>,
}

/// Score of masked cells: its exponential is 0, and it is finite, so that ∞ − ∞ does not occur.
const HIDDEN: f64 = -1e30;

/// Whether score, biases and normaliser all have a formula. Custom ones may have none.
pub fn known(attention: &Attention) -> bool {
    attention.score.formula().is_some() && attention.normalizer.formula().is_some()
}

/// Evaluates the weights by the formulas of score, biases and normaliser, before dropout.
///
/// # Errors
/// If the score or the normaliser has no formula.
pub fn weights<A: ArrayOperations>(
    attention: &Attention,
    grid: &Grid,
    arrays: &mut A,
    given: FormulaInputs<A::Array>,
) -> Result<FormulaWeights<A::Array>, Error> {
    let FormulaInputs { q, k, v, params } = given;
    let scale = attention.scale.unwrap_or_else(|| attention.score.default_scale(&grid.dims));
    let of_score = attention.score.params(&grid.dims).len();
    let leaves = Leaves {
        rows: Some((q, k, v)),
        scale: f64::from(scale),
        params: &params[..of_score],
        scores: None,
    };
    let Some(formula) = attention.score.formula() else {
        bail!("score: {:?} has no formula", attention.score);
    };
    let mut s = evaluate(&formula, grid, arrays, &leaves);
    let (mut from, mut factors) = (of_score, vec![]);
    for bias in &attention.biases {
        let count = bias.params(&grid.dims).len();
        let leaves = Leaves { params: &params[from..from + count], ..Leaves::none() };
        from += count;
        let bias_of = evaluate(&bias.formula(), grid, arrays, &leaves);
        match bias.after() {
            false => s = arrays.two(Operator::Add, s, bias_of),
            true => factors.push(arrays.map(Function::Exp, bias_of)),
        }
    }
    let Some(formula) = attention.normalizer.formula() else {
        bail!("normalize: {:?} has no formula", attention.normalizer);
    };
    let scores = Some(arrays.masked(s, HIDDEN));
    let mut evaluation = Evaluation {
        grid,
        arrays,
        leaves: &Leaves { scores, ..Leaves::none() },
        found: HashMap::new(),
    };
    let mut weights = evaluation.of(&formula.weights);
    let log_prob = formula.log_prob.map(|log_prob| evaluation.of(&log_prob));
    for factor in factors {
        weights = arrays.two(Operator::Mul, weights, factor);
    }
    Ok(FormulaWeights { weights: arrays.masked(weights, 0.0), log_prob })
}

struct Leaves<'a, A> {
    rows: Option<(A, A, Option<A>)>,
    scale: f64,
    params: &'a [A],
    scores: Option<A>,
}

impl<A> Leaves<'_, A> {
    fn none() -> Self {
        Leaves { rows: None, scale: 1.0, params: &[], scores: None }
    }
}

fn evaluate<A: ArrayOperations>(
    formula: &Expr,
    grid: &Grid,
    arrays: &mut A,
    leaves: &Leaves<A::Array>,
) -> A::Array {
    Evaluation { grid, arrays, leaves, found: HashMap::new() }.of(formula)
}

struct Evaluation<'a, A: ArrayOperations> {
    grid: &'a Grid,
    arrays: &'a mut A,
    leaves: &'a Leaves<'a, A::Array>,
    /// Results by the address of a node, which the formula keeps alive.
    found: HashMap<*const Node, A::Array>,
}

impl<A: ArrayOperations> Evaluation<'_, A> {
    fn of(&mut self, part: &Expr) -> A::Array {
        let address = std::sync::Arc::as_ptr(&part.0);
        if let Some(found) = self.found.get(&address) {
            return found.clone();
        }
        let found = self.compute(&part.0);
        self.found.insert(address, found.clone());
        found
    }

    fn compute(&mut self, node: &Node) -> A::Array {
        match node {
            Node::Leaf(leaf) => self.leaf(*leaf),
            Node::Number(x) => self.arrays.numbers(vec![*x], [1; 5]),
            Node::Cells(cell, per_head) => {
                let Dims { b, h, t, s, .. } = self.grid.dims;
                let heads = if *per_head { h } else { 1 };
                let place =
                    |at: usize| [at / (heads * t * s), at / (t * s) % heads, at / s % t, at % s];
                let cells = (0..b * heads * t * s).map(|at| cell(self.grid, place(at))).collect();
                self.arrays.numbers(cells, [b, heads, t, s, 1])
            }
            Node::Two(operator, x, y) => {
                let (x, y) = (self.of(x), self.of(y));
                self.arrays.two(*operator, x, y)
            }
            Node::Map(f, x) => {
                let x = self.of(x);
                self.arrays.map(*f, x)
            }
            Node::Dot(x, y) => {
                let (x, y) = (self.of(x), self.of(y));
                self.arrays.dot(x, y)
            }
            Node::Times(x, matrix) => {
                let (x, matrix) = (self.of(x), self.of(matrix));
                self.arrays.times(x, matrix)
            }
            Node::Pick(x, index) => {
                let x = self.of(x);
                let index = self.index(index);
                self.arrays.pick(x, index)
            }
            Node::Inside(x, u, limit) => {
                let (x, u) = (self.of(x), self.of(u));
                self.arrays.inside(x, u, *limit)
            }
            Node::Detach(x) => {
                let x = self.of(x);
                self.arrays.detach(x)
            }
            Node::Total(x) => {
                let x = self.of(x);
                self.arrays.total(x)
            }
            Node::Largest(x) => {
                let x = self.of(x);
                self.arrays.largest(x)
            }
            Node::Chosen(x) => {
                let x = self.of(x);
                self.arrays.chosen(x)
            }
            Node::Threshold(x, power) => {
                let x = self.of(x);
                self.arrays.above_threshold(x, *power)
            }
        }
    }

    fn leaf(&mut self, leaf: Leaf) -> A::Array {
        let rows = || self.leaves.rows.as_ref().expect("only scores look at rows");
        match leaf {
            Leaf::Queries => rows().0.clone(),
            Leaf::Keys => rows().1.clone(),
            Leaf::Values => rows().2.clone().expect("this score needs values"),
            Leaf::Scale => self.arrays.numbers(vec![self.leaves.scale], [1; 5]),
            Leaf::Param(number) => self.leaves.params[number].clone(),
            Leaf::Scores => self.leaves.scores.clone().expect("only normalisers look at scores"),
        }
    }

    /// Index of every cell; of one batch row if it is the same for all.
    fn index(&self, index: &super::Index) -> Vec<Option<usize>> {
        let Dims { b, t, s, .. } = self.grid.dims;
        let place = |at: usize| [at / (t * s), at / s % t, at % s];
        let mut all: Vec<_> = (0..b * t * s).map(|at| index(self.grid, place(at))).collect();
        let one = t * s;
        if one > 0 && all.chunks(one).all(|row| row == &all[..one]) {
            all.truncate(one);
        }
        all
    }
}
