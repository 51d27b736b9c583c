//! Log-probabilities of tokens, each given those before it.

use super::Generator;
use crate::batching::Cancel;
use crate::logits::not_finite;
use burn::tensor::activation;
use regard_attention::Mode;
use regard_attention::backend::numbers;
use regard_models::Result;
use regard_models::text::Texts;

impl Generator {
    /// Log-probabilities of `ids[known..]`, each given the tokens before it. Texts of several threads
    /// are read together.
    ///
    /// # Errors
    /// If one is NaN (it may be −∞), or if it is cancelled.
    pub(super) fn logprobs(&self, ids: &[u32], known: usize, cancel: &Cancel) -> Result<Vec<f64>> {
        let found = match self.batching() {
            Some(engine) => {
                let mut session = engine.session(1, ids.len() - 1, cancel)?;
                session.score(ids, known)?
            }
            None => self.logprobs_by_tensors(ids, known),
        };
        match found.iter().find(|x| x.is_nan()) {
            Some(bad) => Err(not_finite(*bad as f32)),
            None => Ok(found),
        }
    }

    fn logprobs_by_tensors(&self, ids: &[u32], known: usize) -> Vec<f64> {
        let at: Vec<usize> = (known - 1..ids.len() - 1).collect();
        let mut texts = Texts::new();
        texts.push(&ids[..ids.len() - 1]);
        let said = self.model.forward(&texts, Some(&at), Mode::Eval);
        let logits = said.logits.expect("a language-model head");
        let mut all = vec![];
        numbers(activation::log_softmax(logits, 1), &mut all);
        let words = all.len() / at.len();
        let of = |(row, next): (&[f32], &u32)| f64::from(row[*next as usize]);
        all.chunks_exact(words).zip(&ids[known..]).map(of).collect()
    }
}
