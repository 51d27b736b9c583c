//! What was written so far: all hypotheses of a sentence, as a tree that is read backwards.
//!
//! A row of the search is the number of a node. Going on with a hypothesis twice, or dropping it,
//! copies nothing: tokens and attention are gathered once, for what is returned.

use super::{Hypothesis, Options};
use crate::{Error, Result};

/// No node: nothing has been written.
pub(super) const ROOT: u32 = u32::MAX;

/// A token that was written after `parent`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub parent: u32,
    pub token: u32,
    /// What the model gave to the token.
    pub log_prob: f32,
    /// Where it looked when it wrote the token: a row of the attention.
    pub look: u32,
}

/// All hypotheses of a sentence.
#[derive(Debug, Default)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    /// `[looks, S]`: siblings share theirs.
    attention: Vec<f32>,
    looks: u32,
    /// `S`, without padding; `None` if the model does not tell.
    keys: Option<usize>,
}

/// A hypothesis that will not go on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    /// Its last node.
    pub node: u32,
    pub score: f32,
    /// Whether the last token ends the sentence.
    pub ended: bool,
}

impl Tree {
    /// Writes a token.
    pub fn push(&mut self, node: Node) -> u32 {
        self.nodes.push(node);
        u32::try_from(self.nodes.len() - 1).expect("fewer than four thousand million tokens")
    }

    /// Keeps where a row looked, and gives the number to refer to it by.
    pub fn look(&mut self, row: Option<&[f32]>) -> u32 {
        if let Some(row) = row {
            self.attention.extend_from_slice(row);
            self.keys = Some(row.len());
        }
        self.looks += 1;
        self.looks - 1
    }

    /// The nodes of a hypothesis, last first.
    fn backwards(&self, mut at: u32) -> impl Iterator<Item = &Node> {
        std::iter::from_fn(move || {
            let node = self.nodes.get(at as usize)?;
            at = node.parent;
            Some(node)
        })
    }

    /// Appends the tokens of a hypothesis.
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

    /// `β·Σ_j ln(min(Σ_t a_tj, 1))`. A source token that was never looked at counts as if it had
    /// got the smallest float, because nothing may be compared with −∞.
    fn coverage(&self, at: u32, beta: f32) -> Result<f32> {
        if beta == 0.0 {
            return Ok(0.0);
        }
        let Some(keys) = self.keys else {
            return Err(Error::invalid(format!(
                "coverage_penalty: got {beta}, but this model does not tell where it looks; \
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

    /// The score of a hypothesis that stops here.
    pub fn score(&self, at: u32, sum: f32, length: usize, options: &Options) -> Result<f32> {
        let coverage = self.coverage(at, options.coverage_penalty)?;
        let score = sum / options.divisor(length) + coverage;
        // What cannot be compared comes last.
        Ok(if score.is_nan() { f32::NEG_INFINITY } else { score })
    }

    /// What the caller sees.
    pub fn hypothesis(&self, done: Done) -> Hypothesis {
        let mut path: Vec<&Node> = self.backwards(done.node).collect();
        path.reverse();
        let token_log_probs: Vec<f32> = path.iter().map(|node| node.log_prob).collect();
        let attention = path.iter().filter_map(|node| Some(self.look_of(node)?.to_vec())).collect();
        let words = path.len() - usize::from(done.ended);
        Hypothesis {
            tokens: path[..words].iter().map(|node| node.token).collect(),
            score: done.score,
            // Not `sum`, which is −0 for nothing.
            log_prob: token_log_probs.iter().fold(0.0, |a, b| a + b),
            token_log_probs,
            attention,
            finished: done.ended,
        }
    }
}
