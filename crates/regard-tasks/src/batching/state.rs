//! What sessions have asked for, and what they get.

use super::limits::BatchUse;
use super::pace::Pace;
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
    /// Requests by session.
    pub requests: BTreeMap<u64, Request>,
    /// Sessions that wait for an answer, in the order in which they asked.
    pub order: VecDeque<u64>,
    pub answers: BTreeMap<u64, std::result::Result<Answer, String>>,
    /// Sessions that generated in the last step and have not asked again. A step waits for them
    /// once.
    pub expected: Vec<u64>,
    /// Whether a thread computes a step.
    pub busy: bool,
    pub last_step: Option<Instant>,
    /// When tokens were fed last.
    pub last_fed: Option<Instant>,
    pub prompts: Prompts,
    pub pace: Pace,
    pub work: Option<Work>,
    pub count: BatchUse,
}

impl State {
    /// Answers the sessions whose requests a step took and did not complete.
    pub fn fail_lost(&mut self, why: &str) {
        let State { order, requests, answers, .. } = self;
        order.retain(|number| {
            let there = requests.contains_key(number);
            if !there {
                answers.insert(*number, Err(why.to_string()));
            }
            there
        });
    }
}

/// A request in a step.
pub(super) struct Part {
    pub request: Request,
    /// Tokens of a prompt to read now.
    pub now: usize,
}

impl Part {
    fn rows(&mut self) -> &mut [SequenceCache] {
        match &mut self.request {
            Request::Prompt { row, .. } => std::slice::from_mut(row),
            Request::Tokens { rows, .. } => rows,
        }
    }

    /// Number of positions of each row.
    pub fn lengths(&mut self) -> Vec<usize> {
        self.rows().iter().map(SequenceCache::len).collect()
    }

    /// Takes back what a step that failed appended to the rows; returns whether it can.
    pub fn shorten(&mut self, lengths: &[usize]) -> bool {
        let mut rows = self.rows().iter_mut().zip(lengths);
        rows.all(|(row, length)| {
            let can = row.can_truncate(*length);
            if can {
                row.truncate(*length);
            }
            can
        })
    }

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
