//! Tests with small vocabularies, whose languages can be written out.

mod patterns;
mod schemas;

use super::*;
use crate::text::TokenBytes;
use std::time::{Duration, Instant};

/// Numbers that look random.
struct Numbers(u64);

impl Numbers {
    /// The next number below `end`.
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % end
    }
}

fn vocabulary(tokens: &[Vec<u8>]) -> ConstraintVocabulary {
    ConstraintVocabulary::of(TokenBytes { bytes: tokens.to_vec(), strips: false }).unwrap()
}

/// Each byte, and these pieces.
fn bytes_and(pieces: &[&str]) -> Vec<Vec<u8>> {
    let bytes = (0..=u8::MAX).map(|byte| vec![byte]);
    bytes.chain(pieces.iter().map(|piece| piece.as_bytes().to_vec())).collect()
}

fn regex(pattern: &str) -> Constraint {
    Constraint::Regex(pattern.into())
}

/// The error of a constraint for a vocabulary of bytes, which comes soon.
fn refused(constraint: &Constraint) -> String {
    let begun = Instant::now();
    let message = constraint.compile(&vocabulary(&bytes_and(&[]))).unwrap_err().to_string();
    assert!(begun.elapsed() < Duration::from_secs(5), "{message}");
    message
}

/// Texts that it may go on with, as ids.
fn allowed(state: &mut ConstraintState, tokens: usize) -> Vec<usize> {
    let allowed = state.allowed().unwrap();
    (0..tokens).filter(|token| allowed.allows(*token as u32)).collect()
}
