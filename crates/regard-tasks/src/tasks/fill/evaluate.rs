//! Sentence pairs as model input, their loss, and evaluation on them.

use super::hide::Tokens;
use super::overlap::Overlap;
use super::{Half, Masked, Masking, SegmentPair, pairs};
use crate::data::documents::Document;
use crate::evaluation::Metric;
use crate::text::Tokenizer;
use burn::tensor::{Device, Int, Tensor, TensorData};
use regard_attention::Mode;
use regard_attention::Stream;
use regard_attention::backend::numbers;
use regard_attention::ops::{CrossEntropy, cross_entropy};
use regard_models::text::{TextModel, Texts};
use regard_models::{Error, Result};

/// Random stream of masking; the pair's index is added.
const HIDE: u64 = 0x6869_6465_0000_0000;
/// Special tokens around a pair: `[CLS]` and two `[SEP]`.
const AROUND: usize = 3;
/// Pairs per evaluation batch.
const EVALUATED: usize = 32;

/// A pair as model input.
pub(super) struct Row {
    pub ids: Vec<u32>,
    types: Vec<u32>,
    /// Word index of each token; `None` for special tokens, which are never masked.
    words: Vec<Option<u32>>,
    pub follows: bool,
}

/// A pair with some tokens masked, as the model sees it in a training step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaskedPair {
    /// Masked input and its targets.
    pub hidden: Masked,
    /// Segment of each token: 0 for the first half, 1 for the second.
    pub types: Vec<u32>,
    /// Whether the second half follows the first in the same document.
    pub follows: bool,
}

/// Makes pairs from documents and masks their tokens.
pub(super) struct Exercise {
    cls: u32,
    sep: u32,
    tokens: Tokens,
    hiding: Masking,
}

/// Settings for cutting documents into pairs.
#[derive(Clone, Copy)]
pub(super) struct Cut {
    pub context: usize,
    pub seed: u64,
    pub copies: u64,
}

/// Losses of a batch, and its predictions.
pub(super) struct Cost {
    pub words: Tensor<1>,
    /// Loss of next-sentence prediction, if the model has that head.
    pub follows: Option<Tensor<1>>,
    /// Logits of the masked tokens, `[masked, V]`, and their targets; only in evaluation.
    guesses: Option<(Tensor<2>, Vec<i64>)>,
    guessed: usize,
    /// Logits of next-sentence prediction, `[B, 2]`.
    said: Option<Tensor<2>>,
}

impl Exercise {
    pub fn new(tokenizer: &Tokenizer, hiding: Masking) -> Result<Exercise> {
        let special = tokenizer.special();
        let (cls, sep) = special.cls.zip(special.sep).ok_or_else(|| {
            Error::invalid("vocabulary: need one with [CLS] and [SEP], such as wordpiece")
        })?;
        let mask = special.need_mask()?;
        let last = [special.pad, special.unk, Some(cls), Some(sep), Some(mask)];
        let first = last.into_iter().flatten().max().map_or(0, |id| id + 1);
        let tokens = Tokens { mask, words: (first, tokenizer.size() as u32) };
        if tokens.words.0 >= tokens.words.1 {
            return Err(Error::invalid("vocabulary: has only special tokens, need others"));
        }
        Ok(Exercise { cls, sep, tokens, hiding })
    }

    /// Cuts documents into pairs of at most `context` tokens, deterministically by the seed; the
    /// documents are cut `copies` times, each time differently.
    pub fn rows(
        &self,
        documents: &[Document],
        tokenizer: &Tokenizer,
        Cut { context, seed, copies }: Cut,
    ) -> Result<Vec<Row>> {
        let halves: Vec<Vec<Half>> =
            documents.iter().map(|d| sentences(d, tokenizer)).collect::<Result<_>>()?;
        let copy = |number: u64| pairs(&halves, context - AROUND, seed.wrapping_add(number << 32));
        let all = (0..copies).flat_map(copy);
        Ok(all.map(|pair| Row::new(pair, self.cls, self.sep)).collect())
    }

    /// Masks some tokens of a row: different ones in every training step, the same ones in every
    /// evaluation.
    pub fn hidden(&self, row: &Row, number: usize, mode: Mode) -> Masked {
        let (seed, step) = match mode {
            Mode::Eval => (0, 0),
            Mode::Train { seed, step } => (seed, step),
        };
        let stream = Stream::new(seed, step, HIDE + number as u64);
        self.hiding.hide(&row.ids, &row.words, self.tokens, stream)
    }

    pub fn cost(
        &self,
        model: &dyn TextModel,
        rows: &[(usize, &Row)],
        mode: Mode,
        device: &Device,
    ) -> Cost {
        let mut texts = Texts::new();
        let (mut at, mut wanted, mut follows): (Vec<usize>, Vec<i64>, Vec<i64>) =
            Default::default();
        for (number, row) in rows {
            let hidden = self.hidden(row, *number, mode);
            let first = texts.tokens();
            at.extend(hidden.places.iter().map(|place| first + place));
            wanted.extend(hidden.wanted.iter().map(|id| i64::from(*id)));
            // As in Hugging Face, label 0 means that the second half follows the first.
            follows.push(i64::from(!row.follows));
            match model.is_typed() {
                true => texts.push_typed(&hidden.ids, &row.types),
                false => texts.push(&hidden.ids),
            }
        }
        let said = model.forward(&texts, Some(&at), mode);
        let logits = said.logits.expect("a language-model head");
        let guesses = (mode == Mode::Eval).then(|| (logits.clone(), wanted.clone()));
        let cost = |logits: Tensor<2>, wanted: Vec<i64>| {
            let data = TensorData::new(wanted, [logits.dims()[0]]);
            let wanted = Tensor::<1, Int>::from_data(data, device);
            cross_entropy(logits, wanted, CrossEntropy { smoothing: 0.0, ignore: None })
        };
        Cost {
            words: cost(logits, wanted),
            follows: said.follows.clone().map(|said| cost(said, follows)),
            guesses,
            guessed: at.len(),
            said: said.follows,
        }
    }

    /// Evaluates a model: masked-token prediction, and next-sentence prediction if the model has
    /// that head.
    ///
    /// The accuracies of the word-overlap baselines are added, if there are any.
    pub fn mark(&self, model: &dyn TextModel, rows: &[Row], by_words: &[Overlap]) -> Vec<Metric> {
        let numbered: Vec<(usize, &Row)> = rows.iter().enumerate().collect();
        let (mut words, mut guessed, mut right) = (0.0, 0, 0);
        let (mut follows, mut told, mut asked) = (0.0, 0, 0);
        let mut list = vec![];
        for batch in numbered.chunks(EVALUATED) {
            let cost = self.cost(model, batch, Mode::Eval, &Device::flex());
            words += f64::from(cost.words.into_scalar::<f32>()) * cost.guessed as f64;
            guessed += cost.guessed;
            if let Some((logits, wanted)) = cost.guesses {
                let [_, size] = logits.dims();
                numbers(logits, &mut list);
                let best = |row: &[f32]| (0..size).max_by(|a, b| row[*a].total_cmp(&row[*b]));
                let guesses = list.chunks_exact(size).map(best).zip(&wanted);
                right += guesses.filter(|(said, w)| *said == Some(**w as usize)).count();
            }
            if let (Some(cost), Some(said)) = (cost.follows, cost.said) {
                follows += f64::from(cost.into_scalar::<f32>()) * batch.len() as f64;
                numbers(said, &mut list);
                let pairs = list.chunks_exact(2).zip(batch);
                told += pairs.filter(|(said, (_, row))| (said[0] > said[1]) == row.follows).count();
                asked += batch.len();
            }
        }
        let share = |part: usize, whole: usize| 100.0 * part as f64 / whole.max(1) as f64;
        let words = words / guessed.max(1) as f64;
        let follows = follows / asked.max(1) as f64;
        let accuracy = share(right, guessed);
        let mut marks = vec![
            Metric { name: "loss", value: words + follows, unit: "nats, sum of both losses" },
            Metric { name: "words", value: words, unit: "nats per masked token" },
            Metric { name: "words_accuracy", value: accuracy, unit: "% of masked tokens" },
        ];
        if asked > 0 {
            let value = share(told, asked);
            marks.push(Metric { name: "follows", value, unit: "% of pairs (next sentence)" });
            marks.extend(by_words.iter().map(|overlap| Metric {
                name: overlap.name,
                value: overlap.accuracy(rows),
                unit: "% of pairs (word overlap)",
            }));
        }
        marks
    }
}

/// Splits a document into tokenised sentences: after full stops, question marks and exclamation
/// marks that are followed by a space.
fn sentences(document: &Document, tokenizer: &Tokenizer) -> Result<Vec<Half>> {
    let mut all = vec![];
    for line in &document.lines {
        for sentence in line
            .split_inclusive(". ")
            .flat_map(|s| s.split_inclusive("? "))
            .flat_map(|s| s.split_inclusive("! "))
        {
            let encoding = tokenizer.encode(sentence)?;
            if encoding.is_empty() {
                continue;
            }
            let words = encoding.words.iter().enumerate();
            let words = words.map(|(i, word)| word.unwrap_or(i as u32)).collect();
            all.push(Half { ids: encoding.ids, words });
        }
    }
    Ok(all)
}

impl Row {
    pub fn new(SegmentPair { first, second, follows }: SegmentPair, cls: u32, sep: u32) -> Row {
        let (a, b) = (first.ids.len(), second.ids.len());
        let mut row = Row { ids: vec![cls], types: vec![0; a + 2], words: vec![None], follows };
        let next = first.words.last().map_or(0, |last| last + 1);
        row.ids.extend(first.ids);
        row.words.extend(first.words.into_iter().map(Some));
        row.ids.push(sep);
        row.words.push(None);
        row.ids.extend(second.ids);
        row.words.extend(second.words.into_iter().map(|word| Some(next + word)));
        row.ids.push(sep);
        row.words.push(None);
        row.types.resize(a + b + AROUND, 1);
        row
    }

    /// Returns the tokens of each half, without special tokens.
    pub fn halves(&self) -> [&[u32]; 2] {
        let second = self.types.iter().position(|half| *half == 1).unwrap_or(self.ids.len());
        [&self.ids[1..second - 1], &self.ids[second..self.ids.len() - 1]]
    }

    pub fn asked(&self, hidden: Masked) -> MaskedPair {
        MaskedPair { hidden, types: self.types.clone(), follows: self.follows }
    }
}
