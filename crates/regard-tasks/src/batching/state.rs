//! What sessions have asked for, and what they get.

use super::limits::BatchUse;
use super::prompts::Prompts;
use regard_attention::plan::{SequenceCache, Work};
use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

/// What a session asks for.
pub(super) enum Request {
    /// To read a prompt: row, tokens, and how many of them are read.
    Prompt {
        row: SequenceCache,
        tokens: Vec<u32>,
        read: usize,
        /// Tokens whose log-probabilities are wanted.
        scores: Option<Scores>,
    },
    /// To feed tokens to rows, one or several each; logits of all of them are returned.
    Tokens { rows: Vec<SequenceCache>, tokens: Vec<Vec<u32>> },
}

/// Log-probabilities of the tokens after some positions of a prompt.
pub(super) struct Scores {
    /// First of these positions; those after it follow, up to the end of the prompt.
    pub from: usize,
    /// The token after each of them.
    pub next: Vec<u32>,
    /// What is known so far.
    pub logprobs: Vec<f64>,
}

/// What it gets.
#[derive(Default)]
pub(super) struct Answer {
    pub rows: Vec<SequenceCache>,
    pub logits: Vec<f32>,
    pub logprobs: Vec<f64>,
}

#[derive(Default)]
pub(super) struct State {
    /// Sessions that wait for room, in order.
    pub queue: VecDeque<u64>,
    pub next: u64,
    pub sessions: usize,
    /// Bytes reserved by sessions.
    pub reserved: usize,
    /// Requests by session, prompts in the order of `order`.
    pub requests: BTreeMap<u64, Request>,
    pub order: VecDeque<u64>,
    pub answers: BTreeMap<u64, std::result::Result<Answer, String>>,
    /// Sessions that generated in the last step and have not asked again.
    pub expected: Vec<u64>,
    /// Whether a thread computes a step.
    pub busy: bool,
    pub last_step: Option<Instant>,
    /// When tokens were fed last.
    pub last_fed: Option<Instant>,
    pub prompts: Prompts,
    pub work: Option<Work>,
    pub count: BatchUse,
}

/// A request in a step.
pub(super) struct Part {
    pub request: Request,
    /// Tokens of a prompt to read now.
    pub now: usize,
}

impl Part {
    /// Positions of the chunk of a prompt that is read now whose next tokens are to be scored: the
    /// last ones of it. Returns the tokens.
    pub fn scored(&self) -> &[u32] {
        let Request::Prompt { read, scores: Some(scores), .. } = &self.request else {
            return &[];
        };
        let (first, end) = (scores.from.max(*read), *read + self.now);
        if end <= first { &[] } else { &scores.next[first - scores.from..end - scores.from] }
    }
}
