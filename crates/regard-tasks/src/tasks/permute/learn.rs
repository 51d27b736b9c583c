//! Learning to tell words in any order.

use super::cost::{Told, cost, told};
use super::exam::{Exam, Marks};
use super::sequences::{Form, Sequences};
use super::{Corpus, Recipe};
use crate::data::Lengths;
use crate::data::running::tokens;
use crate::examine;
use crate::recipe::known_text_keys;
use crate::text::Tokenizer;
use crate::train::taught::Taught;
use crate::train::{Better, Evaluation, Learner, Loss};
use burn::tensor::Device;
use regard_attention::Mode;
use regard_models::text::{self, Head};
use regard_models::{Error, Network, Result};
use serde_json::{Value, json};
use std::path::Path;

/// A model that is learning to tell words in any order.
pub struct Permutation {
    recipe: Recipe,
    taught: Taught,
    train: Sequences,
    /// The most tokens of each of them.
    lengths: Vec<usize>,
    valid: Exam,
}

impl Permutation {
    /// Makes a model with first values for what a recipe wants.
    pub fn new(recipe: &Recipe, corpus: &Corpus) -> Result<Permutation> {
        let tokenizer = recipe.tokenizer(corpus)?;
        let [train, valid] = sequences(recipe, corpus, &tokenizer)?;
        for (part, sequences) in [("learn from", &train), ("hold out", &valid)] {
            if sequences.len() == 0 {
                let message = format!("there is no text to {part}: look at the data");
                return Err(Error::invalid(message));
            }
        }
        let device = Device::flex().autodiff();
        let config = config(recipe, &tokenizer)?;
        known_text_keys(&recipe.model, &config)?;
        let model = text::create(&config, Head::Words, recipe.seed, &device)?;
        if model.permuting().is_none() {
            let kind = &config["model_type"];
            let message = format!("model_type: {kind} has no second stream; need xlnet");
            return Err(Error::invalid(message));
        }
        let valid = Exam::new(recipe, valid);
        let (mut taught, lengths) = (Taught::new(model, tokenizer, device), train.lengths());
        if let Some(vectors) = &recipe.vocabulary.vectors {
            taught.begin_with(vectors)?;
        }
        Ok(Permutation { recipe: recipe.clone(), taught, train, lengths, valid })
    }

    pub(super) fn about(&self) -> String {
        self.taught.about(self.train.len(), "sequences")
    }

    /// What some examples are in a step: the same for the same step of a run, and for every
    /// evaluation.
    pub fn drawn(&self, examples: &[usize], mode: Mode) -> Vec<Told> {
        examples.iter().map(|number| told(&self.recipe, &self.train, *number, mode)).collect()
    }
}

impl Learner for Permutation {
    fn network(&self) -> &dyn Network {
        &*self.taught.model
    }

    fn network_mut(&mut self) -> &mut dyn Network {
        &mut *self.taught.model
    }

    fn lengths(&self) -> Vec<Lengths> {
        self.lengths.iter().map(|source| Lengths { source: *source, target: 0 }).collect()
    }

    fn loss(&self, examples: &[usize], mode: Mode) -> Loss {
        let told = self.drawn(examples, mode);
        let cost = cost(&self.recipe, self.taught.model(), &told, mode, &self.taught.device);
        Loss { value: cost.mean, tokens: self.tokens(examples) }
    }

    fn tokens(&self, examples: &[usize]) -> usize {
        examples.iter().map(|i| self.lengths[*i]).sum()
    }

    fn evaluate(&self) -> Result<Evaluation> {
        let model = self.taught.model().evaluation();
        let Marks { all, first } = self.valid.mark(&self.recipe, &*model)?;
        let shown = first.map(|said| self.valid.shown(&said, &self.taught.tokenizer));
        let (measures, loss) = (examine::measures(&all), all[0].value);
        let sample = shown.transpose()?;
        Ok(Evaluation { measures, decides: loss, better: Better::Lower, also: None, sample })
    }

    fn save_rest(&self, folder: &Path) -> Result<()> {
        self.taught.save_tokenizer(folder)
    }
}

/// What is learned from, and what is held out.
pub(super) fn sequences(
    recipe: &Recipe,
    corpus: &Corpus,
    tokenizer: &Tokenizer,
) -> Result<[Sequences; 2]> {
    let form = form(recipe, corpus, tokenizer)?;
    match corpus {
        Corpus::Running(text) => {
            let documents = |texts: &[String]| -> Result<Sequences> {
                Ok(Sequences::documents(tokens(texts, tokenizer)?, form))
            };
            Ok([documents(&text.train)?, documents(&text.valid)?])
        }
        Corpus::Pairs(parts) => {
            let ids = |text: &str| -> Result<Vec<u32>> { Ok(tokenizer.encode(text)?.ids) };
            let [train, valid] = parts.each_ref().map(|pairs| -> Result<Sequences> {
                let pairs = pairs.iter().map(|pair| Ok([ids(&pair.source)?, ids(&pair.target)?]));
                Ok(Sequences::pairs(pairs.collect::<Result<_>>()?, form))
            });
            Ok([train?, valid?])
        }
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
