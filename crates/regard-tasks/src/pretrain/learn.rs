//! Learning from texts that nobody labelled.

use super::hide::Tokens;
use super::{Half, Hidden, Pair, Recipe, pairs};
use crate::data::Lengths;
use crate::data::documents::Document;
use crate::taught::{Taught, Teaching};
use crate::text::Tokenizer;
use crate::train::{Better, Evaluation, Loss};
use burn::tensor::{Device, Int, Tensor, TensorData};
use regard_attention::Mode;
use regard_attention::ops::{CrossEntropy, cross_entropy};
use regard_kernels::rng::Stream;
use regard_models::text::{self, Head, TextModel, Texts};
use regard_models::{Error, Result};
use serde_json::json;

/// Where hiding comes from, among the sites of the generator; a pair's number is added.
const HIDE: u64 = 0x6869_6465_0000_0000;
/// Tokens that are put around a pair.
const AROUND: usize = 3;
/// Pairs that are evaluated at a time.
const EVALUATED: usize = 32;

/// A model that is being pretrained.
pub struct Pretraining {
    recipe: Recipe,
    taught: Taught,
    tokens: Tokens,
    train: Vec<Row>,
    valid: Vec<Row>,
}

/// A pair as the model reads it.
struct Row {
    ids: Vec<u32>,
    types: Vec<u32>,
    /// The word of each token that can be hidden.
    words: Vec<Option<u32>>,
    follows: bool,
}

/// What a batch costs, and what was right of it.
struct Cost {
    words: Tensor<1>,
    follows: Tensor<1>,
    guessed: usize,
    /// `[B, 2]`
    said: Tensor<2>,
}

impl Pretraining {
    /// Makes a model with first values for what a recipe wants.
    pub fn new(recipe: &Recipe, [train, valid]: [Vec<Document>; 2]) -> Result<Pretraining> {
        let tokenizer = recipe.tokenizer(&train)?;
        let special = tokenizer.special();
        let (cls, sep) = special.cls.zip(special.sep).ok_or_else(|| {
            Error::invalid("vocabulary: need one with [CLS] and [SEP], such as wordpiece")
        })?;
        let mask = special.need_mask()?;
        let last = [special.pad, special.unk, Some(cls), Some(sep), Some(mask)];
        let first = last.into_iter().flatten().max().map_or(0, |id| id + 1);
        let tokens = Tokens { mask, words: (first, tokenizer.size() as u32) };
        if tokens.words.0 >= tokens.words.1 {
            return Err(Error::invalid("vocabulary: need words behind the special tokens"));
        }
        let rows = |documents: &[Document]| -> Result<Vec<Row>> {
            let halves: Vec<Vec<Half>> =
                documents.iter().map(|d| sentences(d, &tokenizer)).collect::<Result<_>>()?;
            let all = pairs(&halves, recipe.context - AROUND, recipe.seed);
            Ok(all.into_iter().map(|pair| Row::new(pair, cls, sep)).collect())
        };
        let (train, valid) = (rows(&train)?, rows(&valid)?);
        for (part, rows) in [("learn from", &train), ("hold out", &valid)] {
            if rows.is_empty() {
                let message = format!("there is no pair of sentences to {part}: look at the data");
                return Err(Error::invalid(message));
            }
        }
        let device = Device::flex().autodiff();
        let mut config = recipe.model.clone();
        if !config.is_object() {
            return Err(Error::invalid("model: need a table with at least model_type"));
        }
        config["vocab_size"] = json!(tokenizer.size());
        config["pad_token_id"] = json!(special.pad);
        let model = text::create(&config, Head::Pretraining, recipe.seed, &device)?;
        if let Some(longest) = model.longest().filter(|longest| *longest < recipe.context) {
            let asked = recipe.context;
            return Err(Error::invalid(format!("context: got {asked}, the model has {longest}")));
        }
        let mut taught = Taught::new(model, tokenizer, device);
        if let Some(vectors) = &recipe.vocabulary.vectors {
            taught.begin_with(vectors)?;
        }
        Ok(Pretraining { recipe: recipe.clone(), taught, tokens, train, valid })
    }

    pub(super) fn about(&self) -> String {
        self.taught.about(self.train.len(), "pairs")
    }

    /// A row with some words hidden: others in every step, the same ones in every evaluation.
    fn hidden(&self, row: &Row, number: usize, mode: Mode) -> Hidden {
        let (seed, step) = match mode {
            Mode::Eval => (0, 0),
            Mode::Train { seed, step } => (seed, step),
        };
        let stream = Stream::new(seed, step, HIDE + number as u64);
        self.recipe.hiding.hide(&row.ids, &row.words, self.tokens, stream)
    }

    fn cost(
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
            // Hugging Face's label of a pair that belongs together is 0.
            follows.push(i64::from(!row.follows));
            texts.push_typed(&hidden.ids, &row.types);
        }
        let said = model.forward(&texts, Some(&at), mode);
        let follow = said.follows.expect("a head for pretraining");
        let ids = |numbers: Vec<i64>| {
            let count = numbers.len();
            Tensor::<1, Int>::from_data(TensorData::new(numbers, [count]), device)
        };
        let plain = || CrossEntropy { smoothing: 0.0, ignore: None };
        Cost {
            words: cross_entropy(said.logits.expect("a head for words"), ids(wanted), plain()),
            follows: cross_entropy(follow.clone(), ids(follows), plain()),
            guessed: at.len(),
            said: follow,
        }
    }
}

/// The sentences of a document as tokens. A line is cut after full stops, question marks and
/// exclamation marks that a space follows.
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
    fn new(Pair { first, second, follows }: Pair, cls: u32, sep: u32) -> Row {
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
}

impl Teaching for Pretraining {
    fn taught(&self) -> &Taught {
        &self.taught
    }

    fn taught_mut(&mut self) -> &mut Taught {
        &mut self.taught
    }

    fn lengths(&self) -> Vec<Lengths> {
        self.train.iter().map(|row| Lengths { source: row.ids.len(), target: 0 }).collect()
    }

    fn loss(&self, examples: &[usize], mode: Mode) -> Loss {
        let rows: Vec<(usize, &Row)> = examples.iter().map(|i| (*i, &self.train[*i])).collect();
        let cost = self.cost(self.taught.model(), &rows, mode, &self.taught.device);
        Loss { value: cost.words + cost.follows, tokens: self.tokens(examples) }
    }

    fn tokens(&self, examples: &[usize]) -> usize {
        examples.iter().map(|i| self.train[*i].ids.len()).sum()
    }

    fn evaluate(&self) -> Result<Evaluation> {
        let model = self.taught.model().frozen();
        let numbered: Vec<(usize, &Row)> = self.valid.iter().enumerate().collect();
        let (mut words, mut guessed, mut follows, mut right) = (0.0, 0, 0.0, 0);
        for batch in numbered.chunks(EVALUATED) {
            let cost = self.cost(&*model, batch, Mode::Eval, &Device::flex());
            words += f64::from(cost.words.into_scalar::<f32>()) * cost.guessed as f64;
            follows += f64::from(cost.follows.into_scalar::<f32>()) * batch.len() as f64;
            guessed += cost.guessed;
            let mut said = vec![];
            regard_attention::backend::numbers(cost.said, &mut said);
            let pairs = said.chunks_exact(2).zip(batch);
            right += pairs.filter(|(said, (_, row))| (said[0] > said[1]) == row.follows).count();
        }
        let (words, follows) = (words / guessed.max(1) as f64, follows / self.valid.len() as f64);
        let measures = vec![
            ("valid_loss".to_string(), words + follows),
            ("valid_words".to_string(), words),
            ("valid_follows".to_string(), 100.0 * right as f64 / self.valid.len() as f64),
        ];
        Ok(Evaluation { decides: words + follows, measures, better: Better::Lower, sample: None })
    }
}
