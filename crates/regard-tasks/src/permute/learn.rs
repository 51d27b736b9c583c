//! Learning to tell words in any order.

use super::choose::{Draws, ranks};
use super::sequences::{Form, Sequence, Sequences};
use super::{Corpus, Recipe};
use crate::data::Lengths;
use crate::data::running::tokens;
use crate::filling::{self, Gap};
use crate::taught::{Taught, Teaching};
use crate::text::Tokenizer;
use crate::train::{Better, Evaluation, Loss};
use burn::tensor::{Device, Int, Tensor, TensorData};
use regard_attention::Mode;
use regard_attention::ops::{CrossEntropy, cross_entropy};
use regard_models::text::{self, Head, TextModel, Texts};
use regard_models::xlnet::{Permuted, Sight};
use regard_models::{Error, Result};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Where draws come from, among the sites of the generator; an example's number is added.
const DRAW: u64 = 0x7065_726d_0000_0000;
/// Tokens that are evaluated at a time.
const EVALUATED: usize = 8192;
/// Tokens of a sample that are shown on either side of a gap.
const SHOWN: usize = 12;

/// A model that is learning to tell words in any order.
pub struct Permutation {
    recipe: Recipe,
    taught: Taught,
    train: Sequences,
    /// The most tokens of each of them.
    lengths: Vec<usize>,
    valid: Sequences,
    /// Gaps in the held-out part, with and, for pairs, without the first part beside them.
    gaps: [Vec<Gap>; 2],
}

/// A sequence, and what of it is told in which order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// What the model reads.
    pub sequence: Sequence,
    /// The places that are told, ascending.
    pub targets: Vec<usize>,
    /// The rank of each token: a target is told from those of lower ranks.
    pub ranks: Vec<u32>,
}

/// What sequences cost.
struct Cost {
    /// The mean over targets.
    mean: Tensor<1>,
    targets: usize,
}

impl Permutation {
    /// Makes a model with first values for what a recipe wants.
    pub fn new(recipe: &Recipe, corpus: &Corpus) -> Result<Permutation> {
        let tokenizer = recipe.tokenizer(corpus)?;
        let form = form(recipe, corpus, &tokenizer)?;
        let [train, valid] = match corpus {
            Corpus::Running(text) => {
                let documents = |texts: &[String]| -> Result<Sequences> {
                    Ok(Sequences::documents(tokens(texts, &tokenizer)?, form))
                };
                [documents(&text.train)?, documents(&text.valid)?]
            }
            Corpus::Pairs(parts) => {
                let ids = |text: &str| -> Result<Vec<u32>> { Ok(tokenizer.encode(text)?.ids) };
                let [train, valid] = parts.each_ref().map(|pairs| -> Result<Sequences> {
                    let pairs =
                        pairs.iter().map(|pair| Ok([ids(&pair.source)?, ids(&pair.target)?]));
                    Ok(Sequences::pairs(pairs.collect::<Result<_>>()?, form))
                });
                [train?, valid?]
            }
        };
        for (part, sequences) in [("learn from", &train), ("hold out", &valid)] {
            if sequences.len() == 0 {
                let message = format!("there is no text to {part}: look at the data");
                return Err(Error::invalid(message));
            }
        }
        let device = Device::flex().autodiff();
        let config = config(recipe, &tokenizer)?;
        let model = text::create(&config, Head::Words, recipe.seed, &device)?;
        if model.permuting().is_none() {
            let kind = &config["model_type"];
            let message = format!("model_type: {kind} has no second stream; need xlnet");
            return Err(Error::invalid(message));
        }
        let gaps = [valid.passages(), valid.passages_alone()];
        let gaps = gaps.map(|passages| recipe.filling.gaps(&passages));
        let (taught, lengths) = (Taught::new(model, tokenizer, device), train.lengths());
        Ok(Permutation { recipe: recipe.clone(), taught, train, lengths, valid, gaps })
    }

    pub(super) fn about(&self) -> String {
        self.taught.about(self.train.len(), "sequences")
    }

    /// What some examples are in a step: the same for the same step of a run, and for every
    /// evaluation.
    pub fn drawn(&self, examples: &[usize], mode: Mode) -> Vec<Told> {
        examples.iter().map(|number| self.told(&self.train, *number, mode)).collect()
    }

    fn told(&self, of: &Sequences, number: usize, mode: Mode) -> Told {
        let mut draws = Draws::new(mode, DRAW + number as u64);
        let sequence = of.draw(number, &mut draws);
        let targets = self.recipe.targets.choose(&sequence.open, &mut draws);
        let ranks = ranks(sequence.ids.len(), &targets, &mut draws);
        Told { sequence, targets, ranks }
    }

    fn cost(&self, model: &dyn TextModel, all: &[Told], mode: Mode, device: &Device) -> Cost {
        // Texts with a memory are read together if they are of one length; all others are anyway.
        let mut parts: BTreeMap<usize, Vec<&Told>> = BTreeMap::new();
        for told in all {
            let Sequence { ids, memory, .. } = &told.sequence;
            let length = if memory.is_empty() { 0 } else { ids.len() };
            parts.entry(length).or_default().push(told);
        }
        let parts = parts.values().map(|part| self.part(model, part, mode, device));
        let parts: Vec<Cost> = parts.collect();
        let targets = parts.iter().map(|part| part.targets).sum();
        let share = |part: Cost| part.mean * (part.targets as f32 / targets as f32);
        let mean = parts.into_iter().map(share).reduce(|sum, part| sum + part);
        Cost { mean: mean.expect("a batch is not empty"), targets }
    }

    fn part(&self, model: &dyn TextModel, all: &[&Told], mode: Mode, device: &Device) -> Cost {
        let (mut texts, mut before) = (Texts::new(), Texts::new());
        let (mut targets, mut wanted, mut ranks) = (vec![], vec![], vec![]);
        for Told { sequence, targets: places, ranks: own } in all {
            let first = texts.tokens();
            texts.push_typed(&sequence.ids, &sequence.types);
            if !sequence.memory.is_empty() {
                before.push(&sequence.memory);
            }
            targets.extend(places.iter().map(|at| first + at));
            wanted.extend(places.iter().map(|at| i64::from(sequence.ids[*at])));
            ranks.push(own.clone());
        }
        let permuting = model.permuting().expect("asked when it was made");
        let memory = (before.tokens() > 0).then(|| permuting.remember(&before, mode));
        let sight = Sight::Ranks(ranks);
        let batch = Permuted { texts: &texts, sight, targets: &targets, memory: memory.as_ref() };
        let logits = permuting.predict(&batch, mode).logits;
        let count = wanted.len();
        let wanted = Tensor::<1, Int>::from_data(TensorData::new(wanted, [count]), device);
        let smoothing = if mode == Mode::Eval { 0.0 } else { self.recipe.train.label_smoothing };
        let options = CrossEntropy { smoothing, ignore: None };
        Cost { mean: cross_entropy(logits, wanted, options), targets: count }
    }

    /// The mean negative log-likelihood of what is told of the held-out part.
    fn validation_loss(&self, model: &dyn TextModel) -> f64 {
        let numbers: Vec<usize> = (0..self.valid.len()).collect();
        let (mut sum, mut count) = (0.0, 0);
        for batch in numbers.chunks((EVALUATED / self.recipe.context).max(1)) {
            let told: Vec<Told> =
                batch.iter().map(|number| self.told(&self.valid, *number, Mode::Eval)).collect();
            let cost = self.cost(model, &told, Mode::Eval, &Device::flex());
            sum += f64::from(cost.mean.into_scalar::<f32>()) * cost.targets as f64;
            count += cost.targets;
        }
        sum / count as f64
    }

    /// What stands around a gap, what was said of it and what had been there.
    fn shown(&self, gap: &Gap, said: &[u32]) -> Result<String> {
        let (ids, hidden) = (&gap.passage.ids, &gap.hidden);
        let text = |ids: &[u32]| self.taught.tokenizer.decode(ids);
        let [before, said, was, after] = [
            text(&ids[hidden.start.saturating_sub(SHOWN)..hidden.start])?,
            text(said)?,
            text(&ids[hidden.clone()])?,
            text(&ids[hidden.end..ids.len().min(hidden.end + SHOWN)])?,
        ];
        Ok(format!("{before} [{said} | {was}] {after}").replace('\n', " / "))
    }
}

impl Teaching for Permutation {
    fn taught(&self) -> &Taught {
        &self.taught
    }

    fn taught_mut(&mut self) -> &mut Taught {
        &mut self.taught
    }

    fn lengths(&self) -> Vec<Lengths> {
        self.lengths.iter().map(|source| Lengths { source: *source, target: 0 }).collect()
    }

    fn loss(&self, examples: &[usize], mode: Mode) -> Loss {
        let told = self.drawn(examples, mode);
        let cost = self.cost(self.taught.model(), &told, mode, &self.taught.device);
        Loss { value: cost.mean, tokens: self.tokens(examples) }
    }

    fn tokens(&self, examples: &[usize]) -> usize {
        examples.iter().map(|i| self.lengths[*i]).sum()
    }

    fn evaluate(&self) -> Result<Evaluation> {
        let model = self.taught.model().frozen();
        let loss = self.validation_loss(&*model);
        let mut measures = vec![("valid_loss".to_string(), loss)];
        let [gaps, alone] = &self.gaps;
        let mut sample = None;
        if !gaps.is_empty() {
            let filled = filling::fill(&*model, gaps)?;
            measures.extend(filled.measures(""));
            sample = Some(self.shown(&gaps[0], &filled.said[0])?);
        }
        if !alone.is_empty() {
            measures.extend(filling::fill(&*model, alone)?.measures("_alone"));
        }
        Ok(Evaluation { measures, decides: loss, better: Better::Lower, sample })
    }
}

fn form(recipe: &Recipe, corpus: &Corpus, tokenizer: &Tokenizer) -> Result<Form> {
    let Recipe { context, memory, .. } = *recipe;
    let parts = match (corpus, recipe.parts) {
        (Corpus::Running(_), None) => return Ok(Form { context, memory, parts: None }),
        (_, parts) => parts.unwrap_or_default(),
    };
    if memory > 0 && matches!(corpus, Corpus::Pairs(_)) {
        let message = format!("memory: got {memory}, need 0: nothing stands before a pair");
        return Err(Error::invalid(message));
    }
    // Vocabularies that are not in the manner of BERT have a beginning and an end instead.
    let special = tokenizer.special();
    let around = special.sep.or(special.eos).zip(special.cls.or(special.bos));
    let (sep, cls) = around.ok_or_else(|| {
        Error::invalid("vocabulary: two parts need one with a separator and a token for the whole")
    })?;
    Ok(Form { context, memory, parts: Some((parts, [sep, cls])) })
}

/// `config.json` of what a recipe wants, for this vocabulary.
fn config(recipe: &Recipe, tokenizer: &Tokenizer) -> Result<Value> {
    let mut config = recipe.model.clone();
    let Value::Object(map) = &mut config else {
        return Err(Error::invalid("model: need a table with at least model_type"));
    };
    let special = tokenizer.special();
    map.insert("vocab_size".into(), json!(tokenizer.size()));
    map.insert("pad_token_id".into(), json!(special.pad));
    map.insert("bos_token_id".into(), json!(special.bos));
    map.insert("eos_token_id".into(), json!(special.eos));
    map.insert("mem_len".into(), json!((recipe.memory > 0).then_some(recipe.memory)));
    Ok(config)
}
