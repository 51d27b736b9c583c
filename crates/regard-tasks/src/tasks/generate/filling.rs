//! Span infilling: prediction of masked spans in the middle of a text.
//!
//! A gap is a span of masked tokens in a passage whose other tokens, on both sides, are visible.
//! Any autoregressive model can be given the same gaps: a two-stream model predicts the span
//! from both sides, a left-to-right model only from the tokens before it. Both use teacher forcing
//! within the span.

use crate::evaluation::Metric;
use burn::tensor::Tensor;
use regard_attention::Stream;
use regard_attention::{Mode, backend};
use regard_models::text::{TextModel, Texts};
use regard_models::xlnet::{Permuted, Sight};
use regard_models::{Error, Result};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Random stream of the gaps, which are the same for every model.
const GAPS: u64 = 0x6669_6c6c_696e_6701;
/// Tokens per batch.
const AT_ONCE: usize = 8192;

/// Selection of the masked spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Filling {
    /// Number of spans, spread evenly over the validation text; 1000 by default.
    pub spans: usize,
    /// Lengths of the shortest and the longest span, in tokens; `[1, 5]` by default.
    pub lengths: [usize; 2],
}

impl Default for Filling {
    fn default() -> Filling {
        Filling { spans: 1000, lengths: [1, 5] }
    }
}

/// A token sequence, and the range of it in which a span may be masked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Token ids.
    pub ids: Vec<u32>,
    /// Segment of each token, for models with segment embeddings.
    pub types: Vec<u32>,
    /// Range that contains the span and at least one token on either side of it.
    pub open: Range<usize>,
}

/// A passage with a masked span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Whole passage, the masked tokens included.
    pub passage: Passage,
    /// Positions to predict.
    pub hidden: Range<usize>,
}

/// Predictions for some gaps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filled {
    /// Sum of −log p over all masked tokens.
    pub nats: f64,
    /// Number of masked tokens whose correct token was the most probable.
    pub right: usize,
    /// Most probable token for each masked position, gap by gap.
    pub said: Vec<Vec<u32>>,
}

impl Passage {
    /// Cuts documents into pieces of `context` tokens. A shorter remainder is dropped, unless it is
    /// the whole document.
    pub fn running(documents: &[Vec<u32>], context: usize) -> Vec<Passage> {
        let pieces = documents.iter().flat_map(|document| {
            let whole = context.min(document.len());
            document.chunks(context).filter(move |piece| piece.len() == whole)
        });
        let passage = |ids: &[u32]| Passage {
            ids: ids.to_vec(),
            types: vec![0; ids.len()],
            open: 0..ids.len(),
        };
        pieces.map(passage).collect()
    }
}

impl Filling {
    /// Checks that such spans fit into passages of `context` tokens.
    pub fn check(&self, context: usize) -> Result<(), String> {
        let Filling { spans, lengths: [shortest, longest] } = *self;
        if spans == 0 {
            return Err("filling.spans: got 0, need at least 1".into());
        }
        if shortest == 0 || shortest > longest {
            return Err(format!(
                "filling.lengths: got [{shortest}, {longest}], need at least 1 token, the shortest \
                 first"
            ));
        }
        if longest + 2 > context {
            return Err(format!(
                "filling.lengths: got {longest} tokens, need at most context − 2 = {} so that \
                 something is left on both sides",
                context.saturating_sub(2)
            ));
        }
        Ok(())
    }

    /// Masks spans, spread evenly over the passages with room for one. The spans depend only on the
    /// number and lengths of these passages.
    pub fn gaps(&self, passages: &[Passage]) -> Vec<Gap> {
        let [shortest, longest] = self.lengths;
        let passages: Vec<&Passage> =
            passages.iter().filter(|passage| passage.open.len() >= shortest + 2).collect();
        let stream = Stream::new(0, 0, GAPS);
        let draw = |number: usize, below: usize| {
            (f64::from(stream.uniform(number as u64)) * below as f64) as usize
        };
        let gap = |number: usize| {
            let passage = passages[number * passages.len() / self.spans];
            let room = passage.open.len() - 2;
            let length = (shortest + draw(2 * number, longest - shortest + 1)).min(room);
            let first = passage.open.start + 1 + draw(2 * number + 1, room - length + 1);
            Gap { passage: passage.clone(), hidden: first..first + length }
        };
        let some = if passages.is_empty() { 0 } else { self.spans };
        (0..some).map(gap).collect()
    }
}

impl Filled {
    /// Returns the mean of −log p over the masked tokens, in nats.
    pub fn loss(&self) -> f64 {
        self.nats / self.tokens() as f64
    }

    /// Returns the percentage of masked tokens predicted correctly.
    pub fn accuracy(&self) -> f64 {
        100.0 * self.right as f64 / self.tokens() as f64
    }

    /// Returns the number of masked tokens.
    pub fn tokens(&self) -> usize {
        self.said.iter().map(Vec::len).sum()
    }

    /// Returns loss and accuracy as metrics.
    pub(crate) fn marks(&self) -> [Metric; 2] {
        self.marks_named(["span_loss", "span_accuracy"])
    }

    /// Returns both metrics under names for second parts of pairs shown without the first part.
    pub(crate) fn marks_alone(&self) -> [Metric; 2] {
        self.marks_named(["span_loss_alone", "span_accuracy_alone"])
    }

    fn marks_named(&self, [loss, accuracy]: [&'static str; 2]) -> [Metric; 2] {
        [
            Metric { name: loss, value: self.loss(), unit: "nats per token" },
            Metric { name: accuracy, value: self.accuracy(), unit: "% of tokens" },
        ]
    }
}

/// Evaluates infilling; returns no metrics if there are no gaps.
pub(crate) fn marks(model: &dyn TextModel, gaps: &[Gap]) -> Result<Vec<Metric>> {
    if gaps.is_empty() {
        return Ok(vec![]);
    }
    Ok(fill(model, gaps)?.marks().to_vec())
}

/// Predicts the masked tokens of gaps.
///
/// # Errors
/// If the model is not autoregressive, or a passage exceeds its maximum length.
pub fn fill(model: &dyn TextModel, gaps: &[Gap]) -> Result<Filled> {
    if model.permuting().is_none() && model.decode(&[&[]]).is_none() {
        let kind = &model.config()["model_type"];
        let message = format!("model_type: {kind} does not predict tokens in sequence");
        return Err(Error::invalid(message));
    }
    let longest = gaps.iter().map(|gap| gap.passage.ids.len()).max().unwrap_or(0);
    if let Some(most) = model.longest().filter(|most| *most < longest) {
        let message = format!("passage: got {longest} tokens, the model takes at most {most}");
        return Err(Error::invalid(message));
    }
    let mut filled = Filled::default();
    let mut rest = gaps;
    while !rest.is_empty() {
        let mut tokens = 0;
        let fits = rest.iter().take_while(|gap| {
            tokens += gap.passage.ids.len();
            tokens <= AT_ONCE
        });
        let (now, later) = rest.split_at(fits.count().max(1));
        let logits = match model.permuting() {
            Some(_) => from_both_sides(model, now),
            None => from_the_left(model, now),
        };
        filled.add(now, logits);
        rest = later;
    }
    Ok(filled)
}

/// Computes logits of the masked tokens, `[tokens, V]`, with the query stream: the span comes last
/// in the factorisation order, from left to right.
fn from_both_sides(model: &dyn TextModel, gaps: &[Gap]) -> Tensor<2> {
    let (mut texts, mut ranks, mut targets) = (Texts::new(), vec![], vec![]);
    for Gap { passage, hidden } in gaps {
        let first = texts.tokens();
        texts.push_typed(&passage.ids, &passage.types);
        targets.extend(hidden.clone().map(|at| first + at));
        let rank = |at: usize| match hidden.contains(&at) {
            true => (at - hidden.start) as u32 + 1,
            false => 0,
        };
        ranks.push((0..passage.ids.len()).map(rank).collect());
    }
    let sight = Sight::Ranks(ranks);
    let batch = Permuted { texts: &texts, sight, targets: &targets, memory: None };
    let permuting = model.permuting().expect("asked before");
    permuting.predict(&batch, Mode::Eval).logits
}

/// Computes logits of the masked tokens, `[tokens, V]`, from the tokens before the span.
fn from_the_left(model: &dyn TextModel, gaps: &[Gap]) -> Tensor<2> {
    let (mut texts, mut at) = (Texts::new(), vec![]);
    for Gap { passage, hidden } in gaps {
        let first = texts.tokens();
        texts.push(&passage.ids[..hidden.end - 1]);
        at.extend(hidden.clone().map(|hidden| first + hidden - 1));
    }
    model.forward(&texts, Some(&at), Mode::Eval).logits.expect("a language-model head")
}

impl Filled {
    fn add(&mut self, gaps: &[Gap], logits: Tensor<2>) {
        let [_, words] = logits.dims();
        let mut numbers = vec![];
        backend::numbers(logits, &mut numbers);
        let mut rows = numbers.chunks_exact(words);
        for Gap { passage, hidden } in gaps {
            let said = passage.ids[hidden.clone()].iter().map(|wanted| {
                let row = rows.next().expect("a row for each masked token");
                let best = (0..words).max_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap_or(0);
                let sum: f64 = row.iter().map(|x| f64::from(x - row[best]).exp()).sum();
                self.nats += sum.ln() - f64::from(row[*wanted as usize] - row[best]);
                self.right += usize::from(best == *wanted as usize);
                best as u32
            });
            let said = said.collect();
            self.said.push(said);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;
    use regard_models::text::{Head, create};
    use serde_json::json;

    fn documents() -> Vec<Vec<u32>> {
        [100, 7, 1, 64, 33].iter().map(|n| (0..*n).map(|i| i % 19).collect()).collect()
    }

    #[test]
    fn spans_are_within_and_spread_over_all() {
        let passages = Passage::running(&documents(), 32);
        let lengths: Vec<usize> = passages.iter().map(|passage| passage.ids.len()).collect();
        assert_eq!(lengths, [32, 32, 32, 7, 1, 32, 32, 32]);
        let filling = Filling { spans: 700, lengths: [1, 5] };
        let gaps = filling.gaps(&passages);
        assert_eq!((gaps.len(), &gaps), (700, &filling.gaps(&passages)));
        let mut of_length = [0; 6];
        for Gap { passage, hidden } in &gaps {
            assert!(hidden.start > passage.open.start && hidden.end < passage.open.end);
            of_length[hidden.len()] += 1;
        }
        assert!(of_length[0] == 0 && of_length[1..].iter().all(|n| (100..180).contains(n)));
        let short = gaps.iter().filter(|gap| gap.passage.ids.len() == 7).count();
        assert_eq!(short, 100, "each passage has its share, but for the one without room");
        assert!(filling.gaps(&passages[4..5]).is_empty());
    }

    #[test]
    fn a_span_is_told_from_what_may_be_seen() {
        let xlnet = json!({
            "model_type": "xlnet", "vocab_size": 20, "d_model": 16, "n_layer": 2, "n_head": 2,
            "d_inner": 16, "initializer_range": 0.3,
        });
        let gpt = json!({
            "model_type": "gpt2", "vocab_size": 20, "n_embd": 16, "n_layer": 2, "n_head": 2,
            "n_positions": 32, "initializer_range": 0.3,
        });
        let passages = Passage::running(&documents(), 32);
        let gaps = Filling { spans: 6, lengths: [3, 3] }.gaps(&passages);
        for (config, sees_right) in [(xlnet, true), (gpt, false)] {
            let model = create(&config, Head::Words, 1, &Device::flex()).unwrap();
            let told = |change: &dyn Fn(&mut Gap)| {
                let mut gaps = gaps.clone();
                gaps.iter_mut().for_each(change);
                fill(&*model, &gaps).unwrap()
            };
            let known = told(&|_| {});
            assert_eq!((known.tokens(), known.said.len()), (18, 6));
            assert!(known.loss() > 0.0 && (0.0..=100.0).contains(&known.accuracy()));
            let swap = |gap: &mut Gap, at: usize| gap.passage.ids[at] ^= 1;
            let left = told(&|gap| swap(gap, gap.hidden.start - 1));
            let right = told(&|gap| swap(gap, gap.hidden.end));
            assert_ne!(known.nats, left.nats);
            assert_eq!(known.nats != right.nats, sees_right, "{config}");
            // Tokens of a span are not visible before they are predicted.
            let last = told(&|gap| swap(gap, gap.hidden.end - 1));
            assert_eq!(known.said, last.said);
            // A gap gets the same loss alone or in a batch.
            let alone: f64 =
                gaps.iter().map(|gap| fill(&*model, std::slice::from_ref(gap)).unwrap().nats).sum();
            assert!((alone - known.nats).abs() < 1e-3, "{alone} {}", known.nats);
        }
    }

    #[test]
    fn what_cannot_be_filled_is_told() {
        for (filling, needed) in [
            (Filling { spans: 0, ..Filling::default() }, "filling.spans"),
            (Filling { lengths: [0, 3], ..Filling::default() }, "[0, 3]"),
            (Filling { lengths: [4, 3], ..Filling::default() }, "[4, 3]"),
            (Filling { lengths: [1, 7], ..Filling::default() }, "context − 2 = 6"),
        ] {
            let message = filling.check(8).unwrap_err();
            assert!(message.contains(needed), "{message}");
        }
        let bert = json!({
            "model_type": "bert", "vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 1,
            "num_attention_heads": 2, "intermediate_size": 8,
        });
        let gpt = json!({
            "model_type": "gpt2", "vocab_size": 20, "n_embd": 8, "n_layer": 1, "n_head": 2,
            "n_positions": 8,
        });
        let gaps = Filling::default().gaps(&Passage::running(&documents(), 32));
        for (config, needed) in [(bert, "bert"), (gpt, "at most 8")] {
            let model = create(&config, Head::Words, 1, &Device::flex()).unwrap();
            let message = fill(&*model, &gaps).unwrap_err().to_string();
            assert!(message.contains(needed), "{message}");
        }
    }
}
