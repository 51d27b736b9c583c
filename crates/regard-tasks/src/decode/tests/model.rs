//! Models for tests: formulas of all tokens fed so far.

use std::sync::LazyLock;

use crate::decode::{DecodeInput, Hypothesis, Ids, Options, StepAttention, Stepper, decode};

pub static IDS: LazyLock<Ids> = LazyLock::new(|| Ids { bos: 0, eos: vec![1], pad: None });

/// Logits (or attention) after a text, for a sentence.
pub type Formula = dyn Fn(usize, &[u32]) -> Vec<f32>;

/// A model that computes a formula of all tokens it was fed.
pub struct Model<'a> {
    pub vocabulary: usize,
    /// For each row its sentence and the tokens it was fed.
    rows: Vec<(usize, Vec<u32>)>,
    logits: &'a Formula,
    attention: Option<(usize, &'a Formula)>,
    /// Number of rows of each step.
    pub widths: Vec<usize>,
    pub reorders: usize,
}

impl<'a> Model<'a> {
    /// Creates a model that has processed all of each prompt but the last token.
    pub fn new(vocabulary: usize, sentences: &[DecodeInput], logits: &'a Formula) -> Model<'a> {
        let read = |s: &DecodeInput| s.prompt[..s.prompt.len().max(1) - 1].to_vec();
        let rows = sentences.iter().map(|s| (s.index as usize, read(s))).collect();
        Model { vocabulary, rows, logits, attention: None, widths: Vec::new(), reorders: 0 }
    }

    /// Makes it also return attention, over `keys` tokens.
    pub fn looking(self, keys: usize, attention: &'a Formula) -> Model<'a> {
        Model { attention: Some((keys, attention)), ..self }
    }
}

impl Stepper for Model<'_> {
    fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    fn step(&mut self, tokens: &[u32], logits: &mut Vec<f32>) -> Option<StepAttention> {
        assert_eq!(tokens.len(), self.rows.len());
        self.widths.push(tokens.len());
        self.rows.iter_mut().zip(tokens).for_each(|(row, token)| row.1.push(*token));
        let attention = self.attention.map(|(keys, formula)| {
            let padded = |row: &(usize, Vec<u32>)| {
                let mut weights = formula(row.0, &row.1);
                weights.resize(keys, 0.0);
                weights
            };
            StepAttention { weights: self.rows.iter().flat_map(padded).collect(), keys }
        });
        logits.clear();
        logits.extend(self.rows.iter().flat_map(|row| (self.logits)(row.0, &row.1)));
        attention
    }

    fn reorder(&mut self, parents: &[usize]) {
        self.reorders += 1;
        self.rows = parents.iter().map(|parent| self.rows[*parent].clone()).collect();
    }
}

/// Sentences that start with `bos`.
pub fn sentences(count: usize) -> Vec<DecodeInput> {
    (0..count as u64).map(|index| DecodeInput { index, ..DecodeInput::default() }).collect()
}

/// Decodes with a formula.
pub fn run(
    vocabulary: usize,
    sentences: &[DecodeInput],
    options: &Options,
    logits: &Formula,
) -> Vec<Vec<Hypothesis>> {
    let mut model = Model::new(vocabulary, sentences, logits);
    decode(&mut model, sentences, options, &IDS).unwrap()
}

/// The mixing function of `fixtures/make/decode.py`.
pub fn mix(mut x: u32) -> u32 {
    x ^= x >> 16;
    x = x.wrapping_mul(0x7feb_352d);
    x ^= x >> 15;
    x = x.wrapping_mul(0x846c_a68b);
    x ^ (x >> 16)
}

/// A number in −4..4 for a sentence, a text and a token, with 16 bits.
pub fn hash(sentence: usize, text: &[u32], token: usize) -> f32 {
    let mut h = mix(sentence as u32 + 1);
    for word in text.iter().copied().chain([token as u32]) {
        h = mix(h ^ (word + 1));
    }
    (h >> 16) as f32 / 8192.0 - 4.0
}

/// Logits by [`hash`].
pub fn hashed(vocabulary: usize) -> impl Fn(usize, &[u32]) -> Vec<f32> {
    move |sentence, text| (0..vocabulary).map(|token| hash(sentence, text, token)).collect()
}

/// Log-probabilities in double precision.
pub fn log_softmax(logits: &[f32]) -> Vec<f64> {
    let sum: f64 = logits.iter().map(|x| f64::from(*x).exp()).sum();
    logits.iter().map(|x| f64::from(*x) - sum.ln()).collect()
}
