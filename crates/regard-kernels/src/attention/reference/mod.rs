//! The slow truth: the one formula, written out cell by cell in `f64`.
//!
//! It shares nothing with the fast path but the definition of a mask, and it has no backward:
//! run on [`tape::Var`] it gives the gradients by itself. The fast path is tested against it.

pub mod tape;

use super::graph::Graph;
use super::grid::{Dims, Grid};
use super::mask::{Mask, Rule};
use crate::rng::Stream;
use tape::Number;

/// A score, by its formula.
#[derive(Clone, Debug)]
pub enum Score {
    /// `q·k`
    Dot,
    /// `Σ v tanh(q + k)`
    Additive,
    /// `Σ v LeakyReLU(q + k + e)`, with the features of edges if there is a graph.
    Gatv2(f64, Option<Graph>),
    /// `qᵀ W k`
    General,
    /// `−|q − k|²/(2σ²)`
    Gaussian,
    /// `ln 1[|q − k| ≤ σ]`
    Boxcar,
    /// `ln max(1 − |q − k|²/σ², 0)`
    Epanechnikov,
    /// `a q·k + b q·v`
    KeyValue,
    /// Content, position, and segments by their ids.
    Relative(Option<Vec<i64>>),
    /// `LeakyReLU(a_q·q + a_k·k + e)`, with a number for each edge if there is a graph.
    Edge(f64, Option<Graph>),
    /// `c·tanh(x/c)` of the scaled dot product.
    SoftCap(f64),
}

/// A bias, by its formula.
#[derive(Clone, Debug)]
pub enum Bias {
    /// `−slope·|p − j|`
    Alibi,
    /// `table[clip(j − p)]`
    Table(usize),
    /// A number per cell, own for (batch rows, heads) or not.
    Dense(bool, bool),
    /// A number per edge and head.
    Edge(Vec<i64>, Vec<i64>),
    /// `−(j − c)²/(2σ²)`, or after the normaliser.
    Gaussian(bool),
}

/// A normaliser, by its formula.
#[derive(Clone, Copy, Debug)]
pub enum Normalizer {
    /// `eˢ/Σeˢ`
    Softmax,
    /// `eˢ/(1 + Σeˢ)`
    Softmax1,
    /// The nearest point of the simplex.
    Sparsemax,
    /// α = 1.5.
    Entmax15,
    /// `σ(s)`
    Sigmoid,
    /// `1/n`
    Uniform,
    /// The largest; the softmax's gradient.
    Hard,
    /// The same with noise and a temperature.
    Gumbel(Stream, f64),
    /// A sample; the gradient of its log-probability.
    Reinforce(Stream),
}

/// A whole problem.
pub struct Problem<'a> {
    /// The score.
    pub score: Score,
    /// The biases.
    pub biases: Vec<Bias>,
    /// The normaliser.
    pub normalizer: Normalizer,
    /// The mask.
    pub mask: &'a Mask,
    /// Sizes and positions.
    pub grid: &'a Grid,
    /// The score's scale.
    pub scale: f64,
    /// Dropped weights: probability and choice.
    pub dropout: Option<(f64, Stream)>,
}

/// What an attention gives.
pub struct Output<N> {
    /// `[B, H, T, E]`
    pub out: Vec<N>,
    /// `[B, H, T, S]`
    pub weights: Vec<N>,
    /// `[B, H, T]`, for hard choices.
    pub log_prob: Vec<N>,
}

fn sum<N: Number>(items: impl Iterator<Item = N>) -> N {
    items.fold(N::of(0.0), |x, y| x + y)
}

fn dot<N: Number>(x: &[N], y: &[N]) -> N {
    sum(x.iter().zip(y).map(|(x, y)| *x * *y))
}

/// The graph and the place of the edge from key `j` to query `i`, if there is one.
fn edge_of(graph: &Option<Graph>, i: usize, j: usize) -> Option<(&Graph, usize)> {
    let graph = graph.as_ref()?;
    let row = graph.indptr()[i] as usize..graph.indptr()[i + 1] as usize;
    row.into_iter().find(|e| graph.indices()[*e] == j as i64).map(|edge| (graph, edge))
}

impl Problem<'_> {
    /// Computes everything. Inputs are contiguous, parameters in the fast path's order.
    pub fn run<N: Number>(&self, q: &[N], k: &[N], v: &[N], params: &[Vec<N>]) -> Output<N> {
        let Dims { b, h, t, s, e, .. } = self.grid.dims;
        let mut result = Output { out: vec![], weights: vec![], log_prob: vec![] };
        for (b, h, i) in (0..b * h * t).map(|row| (row / (h * t), row / t % h, row % t)) {
            let allowed: Vec<bool> =
                (0..s).map(|j| self.mask.allows(self.grid, b, h, i, j)).collect();
            let scores: Vec<Option<N>> = (0..s)
                .map(|j| {
                    let score =
                        allowed[j].then(|| self.score((q, k, v), params, [b, h, i, j]))??;
                    Some(score + self.bias(params, [b, h, i, j], false))
                })
                .collect();
            let (mut weights, log_prob) = self.normalize(&scores, [b, h, i]);
            for (j, w) in weights.iter_mut().enumerate().filter(|(j, _)| allowed[*j]) {
                *w = *w * self.bias(params, [b, h, i, j], true).exp();
                if let Some((p, stream)) = self.dropout {
                    let keep = f64::from(stream.uniform(self.cell([b, h, i, j]))) >= p;
                    *w = *w * N::of(if keep { 1.0 / (1.0 - p) } else { 0.0 });
                }
            }
            let head = (b * self.grid.dims.hk + h / self.grid.dims.group()) * s;
            for c in 0..e {
                let seen = (0..s).filter(|j| allowed[*j]);
                result.out.push(sum(seen.map(|j| weights[j] * v[(head + j) * e + c])));
            }
            result.weights.extend(weights);
            result.log_prob.push(log_prob);
        }
        result
    }

    fn cell(&self, [b, h, i, j]: [usize; 4]) -> u64 {
        let Dims { h: heads, t, s, .. } = self.grid.dims;
        ((b * heads + h) * t + i) as u64 * s as u64 + j as u64
    }

    /// `None` is −∞.
    fn score<N: Number>(
        &self,
        (q, k, v): (&[N], &[N], &[N]),
        params: &[Vec<N>],
        [b, h, i, j]: [usize; 4],
    ) -> Option<N> {
        let Dims { h: heads, hk, t, s, d, dk, e, .. } = self.grid.dims;
        let q = &q[((b * heads + h) * t + i) * d..][..d];
        let key = (b * hk + h / self.grid.dims.group()) * s + j;
        let (k, v) = (&k[key * dk..][..dk], &v[key * e..][..e]);
        let of_head = |p: usize| &params[p][h * d..][..d];
        let pairs = || q.iter().zip(k);
        let distance = || sum(pairs().map(|(q, k)| (*q - *k) * (*q - *k)));
        let scale = N::of(self.scale);
        let squared = |x: N| x * x;
        Some(match &self.score {
            Score::Dot => scale * dot(q, k),
            Score::Additive => {
                scale * sum(pairs().zip(of_head(0)).map(|((q, k), v)| *v * (*q + *k).tanh()))
            }
            Score::Gatv2(slope, graph) => {
                let edge = edge_of(graph, i, j);
                let added = edge.map(|(graph, edge)| (h * graph.edges() + edge) * d);
                let each = |(c, (q, k)): (usize, (&N, &N))| {
                    let sum = added.map_or(*q + *k, |at| *q + *k + params[1][at + c]);
                    of_head(0)[c] * sum.leaky_relu(*slope)
                };
                scale * sum(pairs().enumerate().map(each))
            }
            Score::General => {
                let w = &params[0][h * d * dk..][..d * dk];
                scale * sum((0..d).map(|c| q[c] * dot(&w[c * dk..][..dk], k)))
            }
            Score::Gaussian => -scale * distance() / (N::of(2.0) * squared(params[0][0])),
            Score::Boxcar => {
                let near = distance().value() <= params[0][0].value().powi(2);
                return near.then_some(N::of(0.0));
            }
            Score::Epanechnikov => {
                let kernel = N::of(1.0) - distance() / squared(params[0][0]);
                return (kernel.value() > 0.0).then(|| scale * kernel.ln());
            }
            Score::KeyValue => scale * (params[0][0] * dot(q, k) + params[1][0] * dot(q, v)),
            Score::Relative(segments) => {
                let p = self.grid.key_at(b, i).expect("queries stand at keys");
                let rows = params[0].len() / (heads * d);
                let r = &params[0][(h * rows + s - p + j) * d..][..d];
                let with = |add: usize, row: &[N]| {
                    sum(q.iter().zip(of_head(add)).zip(row).map(|((q, a), x)| (*q + *a) * *x))
                };
                let mut score = with(1, k) + with(2, r);
                if let Some(ids) = segments {
                    let differ = usize::from(ids[b * s + p] != ids[b * s + j]);
                    let row = params[3][(2 * h + differ) * d..][..d].to_vec();
                    score = score + with(4, &row);
                }
                scale * score
            }
            Score::Edge(slope, graph) => {
                let mut sum = dot(of_head(0), q) + dot(of_head(1), k);
                if let Some((graph, edge)) = edge_of(graph, i, j) {
                    sum = sum + params[2][h * graph.edges() + edge];
                }
                scale * sum.leaky_relu(*slope)
            }
            Score::SoftCap(cap) => N::of(*cap) * (scale * dot(q, k) / N::of(*cap)).tanh(),
        })
    }

    fn bias<N: Number>(&self, params: &[Vec<N>], [b, h, i, j]: [usize; 4], after: bool) -> N {
        let Dims { h: heads, t, s, .. } = self.grid.dims;
        let p = f64::from(self.grid.position(b, i));
        let mut at = match &self.score {
            Score::Dot | Score::SoftCap(_) => 0,
            Score::KeyValue | Score::Edge(_, None) | Score::Gatv2(_, Some(_)) => 2,
            Score::Edge(_, Some(_)) => 3,
            Score::Relative(segments) => 3 + 2 * usize::from(segments.is_some()),
            _ => 1,
        };
        let mut total = N::of(0.0);
        for bias in &self.biases {
            let (values, take) = (&params[at], if let Bias::Gaussian(_) = bias { 2 } else { 1 });
            let is_after = matches!(bias, Bias::Gaussian(true));
            if is_after == after {
                total = total
                    + match bias {
                        Bias::Alibi => -values[h] * N::of((p - j as f64).abs()),
                        Bias::Table(reach) => {
                            let reach = *reach as f64;
                            let index = (j as f64 - p).clamp(-reach, reach) + reach;
                            values[h * (2 * reach as usize + 1) + index as usize]
                        }
                        Bias::Dense(per_batch, per_head) => {
                            let b = if *per_batch { b } else { 0 };
                            let h_count = if *per_head { heads } else { 1 };
                            let h = if *per_head { h } else { 0 };
                            values[((b * h_count + h) * t + i) * s + j]
                        }
                        Bias::Edge(indptr, indices) => {
                            let row = indptr[i] as usize..indptr[i + 1] as usize;
                            let edge = row.clone().find(|e| indices[*e] == j as i64);
                            edge.map_or(N::of(0.0), |e| values[e * heads + h])
                        }
                        Bias::Gaussian(_) => {
                            let away = N::of(j as f64) - values[b * t + i];
                            let sigma = params[at + 1][0];
                            -(away * away) / (N::of(2.0) * sigma * sigma)
                        }
                    };
            }
            at += take;
        }
        total
    }

    /// Weights (0 where a score is missing), and the log-probability of a choice.
    fn normalize<N: Number>(&self, scores: &[Option<N>], [b, h, i]: [usize; 3]) -> (Vec<N>, N) {
        let zero = N::of(0.0);
        let spread = |weights: &dyn Fn(N, usize) -> N| -> Vec<N> {
            let each = |(j, s): (usize, &Option<N>)| s.map_or(zero, |s| weights(s, j));
            scores.iter().enumerate().map(each).collect()
        };
        let present: Vec<N> = scores.iter().flatten().copied().collect();
        if present.is_empty() {
            return (vec![zero; scores.len()], zero);
        }
        let top = present.iter().map(|s| s.value()).fold(f64::NEG_INFINITY, f64::max);
        match self.normalizer {
            Normalizer::Softmax => {
                let total = sum(present.iter().map(|s| (*s - N::of(top)).exp()));
                (spread(&|s, _| (s - N::of(top)).exp() / total), zero)
            }
            Normalizer::Softmax1 => {
                let total =
                    N::of((-top).exp()) + sum(present.iter().map(|s| (*s - N::of(top)).exp()));
                (spread(&|s, _| (s - N::of(top)).exp() / total), zero)
            }
            Normalizer::Sigmoid => (spread(&|s, _| N::of(1.0) / (N::of(1.0) + (-s).exp())), zero),
            Normalizer::Uniform => (spread(&|_, _| N::of(1.0 / present.len() as f64)), zero),
            Normalizer::Sparsemax => {
                let tau = threshold(present, |kept| {
                    let n = N::of(kept.len() as f64);
                    (sum(kept.iter().copied()) - N::of(1.0)) / n
                });
                (spread(&|s, _| if s.value() > tau.value() { s - tau } else { zero }), zero)
            }
            Normalizer::Entmax15 => {
                let half = N::of(0.5);
                let tau = threshold(present.iter().map(|s| *s * half).collect(), |kept| {
                    let n = N::of(kept.len() as f64);
                    let mean = sum(kept.iter().copied()) / n;
                    let squares = sum(kept.iter().map(|z| (*z - mean) * (*z - mean)));
                    let rest = (N::of(1.0) - squares) / n;
                    if rest.value() <= 0.0 { mean } else { mean - rest.sqrt() }
                });
                let weight = |s: N| (s * half - tau) * (s * half - tau);
                (
                    spread(&|s, _| if (s * half).value() > tau.value() { weight(s) } else { zero }),
                    zero,
                )
            }
            Normalizer::Hard => self.choose(scores, [b, h, i], None, 1.0, true),
            Normalizer::Gumbel(noise, temperature) => {
                self.choose(scores, [b, h, i], Some(noise), temperature, true)
            }
            Normalizer::Reinforce(noise) => self.choose(scores, [b, h, i], Some(noise), 1.0, false),
        }
    }

    /// One key. With `through`, its weight has the gradient of the softmax's; else none.
    fn choose<N: Number>(
        &self,
        scores: &[Option<N>],
        [b, h, i]: [usize; 3],
        noise: Option<Stream>,
        temperature: f64,
        through: bool,
    ) -> (Vec<N>, N) {
        let noisy = |j: usize| noise.map_or(0.0, |n| f64::from(n.gumbel(self.cell([b, h, i, j]))));
        let surrogate: Vec<Option<N>> = (0..scores.len())
            .map(|j| {
                let noise = if through { noisy(j) } else { 0.0 };
                Some((scores[j]? + N::of(noise)) / N::of(temperature))
            })
            .collect();
        let mut pick = None;
        let mut best = f64::NEG_INFINITY;
        for (j, score) in scores.iter().enumerate() {
            let score = score.map_or(f64::NEG_INFINITY, |s| s.value() + noisy(j));
            if score > best {
                (best, pick) = (score, Some(j));
            }
        }
        let soft = Problem {
            normalizer: Normalizer::Softmax,
            biases: vec![],
            score: Score::Dot,
            dropout: None,
            ..*self
        };
        let p = soft.normalize(&surrogate, [b, h, i]).0;
        let one = |j: usize| f64::from(u8::from(pick == Some(j)));
        let weight = |(j, p): (usize, &N)| match through {
            true => N::of(one(j) - p.value()) + *p,
            false => N::of(one(j)),
        };
        let log_prob = pick.map_or(N::of(0.0), |j| p[j].ln());
        (p.iter().enumerate().map(weight).collect(), log_prob)
    }
}

/// The threshold of the largest set of scores that all lie above their own threshold.
fn threshold<N: Number>(mut z: Vec<N>, tau: impl Fn(&[N]) -> N) -> N {
    z.sort_by(|x, y| y.value().total_cmp(&x.value()));
    let n = (1..=z.len()).rev().find(|n| tau(&z[..*n]).value() < z[n - 1].value());
    tau(&z[..n.expect("one score lies above its own threshold")])
}
