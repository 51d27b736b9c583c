//! Perplexity: the number of equally likely tokens that would give the same loss.
//!
//! ```text
//! perplexity = exp( − Σ log p(token) / tokens )
//! ```

use std::f64::consts::LN_2;

/// Negative log-likelihood of a corpus, in nats. Sums are in f64, so that a million small batches
/// in f32 add up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Perplexity {
    nats: f64,
    tokens: u64,
}

impl Perplexity {
    /// Creates an empty sum.
    pub fn new() -> Perplexity {
        Perplexity::default()
    }

    /// Adds the sum of −log p over `tokens` tokens.
    pub fn add(&mut self, nats: f64, tokens: u64) {
        self.nats += nats;
        self.tokens += tokens;
    }

    /// Adds the mean of −log p over `tokens` tokens, such as the loss of a batch.
    pub fn add_mean(&mut self, nats_per_token: f64, tokens: u64) {
        if tokens > 0 {
            // A mean over no tokens is NaN and must not spoil the sum.
            self.add(nats_per_token * tokens as f64, tokens);
        }
    }

    /// Adds another part of the corpus.
    pub fn merge(&mut self, other: &Perplexity) {
        self.add(other.nats, other.tokens);
    }

    /// Returns the sum of −log p.
    pub fn nats(&self) -> f64 {
        self.nats
    }

    /// Returns the number of tokens.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Returns the mean of −log p, which is the loss; NaN if there is no token.
    pub fn loss(&self) -> f64 {
        self.nats / self.tokens as f64
    }

    /// Returns exp of the loss; NaN if there is no token.
    pub fn perplexity(&self) -> f64 {
        self.loss().exp()
    }

    /// Returns the perplexity per another unit, such as the words of a text tokenised to subwords.
    pub fn perplexity_per(&self, units: u64) -> f64 {
        (self.nats / units as f64).exp()
    }

    /// Returns the bits per another unit, such as the characters or the bytes of the text.
    pub fn bits_per(&self, units: u64) -> f64 {
        self.nats / LN_2 / units as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-12 * b.abs(), "{a} {b}");
    }

    #[test]
    fn a_fair_choice_of_n_has_perplexity_n() {
        for n in [1.0, 2.0, 26.0, 50_257.0_f64] {
            let mut text = Perplexity::new();
            text.add(7.0 * n.ln(), 7);
            text.add_mean(n.ln(), 5);
            near(text.perplexity(), n);
            near(text.bits_per(12), n.log2());
            near(text.perplexity_per(6), n * n);
            assert_eq!(text.tokens(), 12);
        }
    }

    #[test]
    fn small_batches_add_up() {
        // In f32 this sum stops growing at 2²⁴ and the mean would be wrong by a third.
        let mut text = Perplexity::new();
        (0..25_000_000).for_each(|_| text.add(1.0, 1));
        assert_eq!(text.loss(), 1.0);
    }

    #[test]
    fn parts_merge_and_nothing_is_not_a_number() {
        let (mut a, mut b) = (Perplexity::new(), Perplexity::new());
        assert!(a.perplexity().is_nan());
        a.add(1.5, 2);
        b.add(2.5, 2);
        b.add_mean(f64::NAN, 0);
        a.merge(&b);
        assert_eq!((a.nats(), a.tokens(), a.loss()), (4.0, 4, 1.0));
    }
}
