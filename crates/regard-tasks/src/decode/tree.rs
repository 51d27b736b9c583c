//! Hypotheses of a sentence, as a tree whose nodes point to their parents.
//!
//! A row of the search is the index of a node. Continuing a hypothesis twice, or dropping it,
//! copies nothing: tokens and attention are collected once, for the returned hypotheses.

use super::{FinishReason, Hypothesis, Options};
use crate::{Error, Result};

/// No node: the empty hypothesis.
pub(super) const ROOT: u32 = u32::MAX;

/// A token generated after `parent`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub parent: u32,
    pub token: u32,
    /// Log-probability of the token by the model.
    pub log_prob: f32,
    /// Row of the attention with which the token was generated.
    pub look: u32,
}

/// All hypotheses of a sentence.
#[derive(Debug, Default)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    /// `[looks, S]`: siblings share a row.
    attention: Vec<f32>,
    looks: u32,
    /// For each row of attention the most likely tokens of its step, if they are recorded.
    likely: Vec<Vec<(u32, f32)>>,
    /// `S`, without padding; `None` if the model does not return attention.
    keys: Option<usize>,
}

/// A finished hypothesis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    /// Last node in the tree.
    pub node: u32,
    pub score: f32,
    /// How it ended.
    pub end: End,
}

/// How a hypothesis ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub reason: FinishReason,
    /// Whether the last token is an end token, which is not part of the text.
    pub by_token: bool,
}

impl End {
    pub const LENGTH: End = End { reason: FinishReason::Length, by_token: false };
    pub const NO_TOKEN: End = End { reason: FinishReason::NoToken, by_token: false };
}

impl Tree {
    /// Adds a node and returns its index.
    pub fn push(&mut self, node: Node) -> u32 {
        self.nodes.push(node);
        u32::try_from(self.nodes.len() - 1).expect("fewer than four thousand million tokens")
    }

    /// Stores a row of attention, and the most likely tokens, and returns their index.
    pub fn look(&mut self, row: Option<&[f32]>, likely: Option<Vec<(u32, f32)>>) -> u32 {
        self.likely.extend(likely);
        if let Some(row) = row {
            self.attention.extend_from_slice(row);
            self.keys = Some(row.len());
        }
        self.looks += 1;
        self.looks - 1
    }

    /// Iterates over the nodes of a hypothesis, last first.
    fn backwards(&self, mut at: u32) -> impl Iterator<Item = &Node> {
        std::iter::from_fn(move || {
            let node = self.nodes.get(at as usize)?;
            at = node.parent;
            Some(node)
        })
    }

    /// Appends the tokens of a hypothesis to `into`.
    pub fn tokens(&self, at: u32, into: &mut Vec<u32>) {
        let start = into.len();
        into.extend(self.backwards(at).map(|node| node.token));
        into[start..].reverse();
    }

    fn look_of(&self, node: &Node) -> Option<&[f32]> {
        let keys = self.keys?;
        let from = node.look as usize * keys;
        Some(&self.attention[from..from + keys])
    }

    /// Computes `β·Σ_j ln(min(Σ_t a_tj, 1))`. A source token without any attention counts as the
    /// smallest positive float, because −∞ could not be compared.
    fn coverage(&self, at: u32, beta: f32) -> Result<f32> {
        if beta == 0.0 {
            return Ok(0.0);
        }
        let Some(keys) = self.keys else {
            return Err(Error::invalid(format!(
                "coverage_penalty: got {beta}, but this model returns no attention weights; \
                 leave it at 0"
            )));
        };
        let mut seen = vec![0f32; keys];
        for row in self.backwards(at).filter_map(|node| self.look_of(node)) {
            seen.iter_mut().zip(row).for_each(|(sum, a)| *sum += a);
        }
        let logs = seen.iter().map(|sum| sum.clamp(f32::MIN_POSITIVE, 1.0).ln());
        Ok(beta * logs.fold(0.0, |a, b| a + b))
    }

    /// Computes the score of a hypothesis that ends here.
    pub fn score(&self, at: u32, sum: f32, length: usize, options: &Options) -> Result<f32> {
        let coverage = self.coverage(at, options.coverage_penalty)?;
        let score = sum / options.divisor(length) + coverage;
        // NaN comes last.
        Ok(if score.is_nan() { f32::NEG_INFINITY } else { score })
    }

    /// Builds the hypothesis that is returned.
    pub fn hypothesis(&self, done: Done) -> Hypothesis {
        let mut path: Vec<&Node> = self.backwards(done.node).collect();
        path.reverse();
        let token_log_probs: Vec<f32> = path.iter().map(|node| node.log_prob).collect();
        let attention = path.iter().filter_map(|node| Some(self.look_of(node)?.to_vec())).collect();
        let words = path.len() - usize::from(done.end.by_token);
        let likely =
            path.iter().filter_map(|node| self.likely.get(node.look as usize).cloned()).collect();
        Hypothesis {
            tokens: path[..words].iter().map(|node| node.token).collect(),
            score: done.score,
            // Not `sum`, which is −0 for an empty iterator.
            log_prob: token_log_probs.iter().fold(0.0, |a, b| a + b),
            token_log_probs,
            attention,
            likely,
            finished: matches!(done.end.reason, FinishReason::Eos | FinishReason::Stop),
            finish_reason: done.end.reason,
        }
    }
}
