//! A model that is given a sound, whole or as it comes.

use super::Names;
use super::measure::BEAMS;
use super::names::BLANK;
use crate::Embedded;
use crate::audio::Sound;
use crate::audio::front::{self, FrontEnd, Listening, Preprocessor};
use crate::decode::ctc::PrefixBeam;
use crate::reading::softmax;
use crate::train;
use burn::tensor::activation::log_softmax;
use burn::tensor::{Device, Tensor};
use regard_attention::{Mode, backend};
use regard_models::speech::{Head, Hearing, Sounds, Speech};
use regard_models::{Error, Model, Result, checkpoint};
use std::path::Path;

/// What may have been said.
#[derive(Clone, Debug, PartialEq)]
pub struct Guess {
    /// A label, or a text.
    pub text: String,
    /// How sure the model is.
    pub score: f64,
}

/// A model that hears, with its front end and its names.
pub struct Recognizer {
    model: Speech,
    front: FrontEnd,
    names: Names,
}

impl Recognizer {
    /// From a model, how it hears, and what its numbers stand for.
    pub fn new(model: Speech, front: FrontEnd, names: Names) -> Result<Recognizer> {
        let (hears, given) = (model.config().feature_size, front.width());
        if hears != given {
            return Err(Error::invalid(format!(
                "{}: rows of {given} numbers, the model hears {hears}",
                front::FILE
            )));
        }
        if names.len() != model.labels() {
            let (named, said) = (names.len(), model.labels());
            return Err(Error::invalid(format!("id2label: {named} names for {said} classes")));
        }
        Ok(Recognizer { model, front, names })
    }

    /// Reads a folder: a model's, or a training run's.
    pub fn load(folder: &Path) -> Result<Recognizer> {
        let folder = &train::resolve(folder)?;
        let model = Speech::open(folder, &Device::flex())?;
        let told = |message: String| Error::file(folder, message);
        let front = FrontEnd::new(Preprocessor::load(folder)?).map_err(told)?;
        let names = Names::new(model.config().head, &model.json());
        names
            .and_then(|names| Recognizer::new(model, front, names))
            .map_err(|e| told(e.to_string()))
    }

    /// A model that is part of the program.
    pub fn embedded(model: &Embedded) -> Result<Recognizer> {
        let preprocessor = Preprocessor::parse(model.file(front::FILE)?).map_err(Error::Invalid)?;
        let front = FrontEnd::new(preprocessor).map_err(Error::Invalid)?;
        let model = Speech::load(&model.config()?, model.weights()?, &Device::flex())?;
        let names = Names::new(model.config().head, &model.json())?;
        Recognizer::new(model, front, names)
    }

    /// Whether a folder holds such a model.
    pub fn is_in(folder: &Path) -> Result<bool> {
        Ok(Speech::is_of(&checkpoint::read_config(&train::resolve(folder)?)?))
    }

    /// Its model.
    pub fn model(&self) -> &Speech {
        &self.model
    }

    /// How it hears.
    pub fn front(&self) -> &FrontEnd {
        &self.front
    }

    /// What it can say.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Numbers that training changes.
    pub fn parameters(&self) -> usize {
        self.model.parameters()
    }

    /// The likeliest labels or texts of a sound, so many at most, the likeliest first.
    pub fn recognize(&self, sound: &Sound, top_k: usize) -> Vec<Guess> {
        let mut sounds = Sounds::new(self.front.width());
        sounds.push(&self.front.rows(sound));
        let logits = self.model.forward(&sounds, Mode::Eval).logits;
        match self.model.config().head {
            Head::Labels => self.labels(logits, top_k),
            Head::Ctc => {
                let mut beam = self.beam();
                self.read(&mut beam, logits);
                self.texts(&beam, top_k)
            }
        }
    }

    /// Begins to hear a sound as it comes, at the rate that the front end has. What comes of it in
    /// the end is what [`Recognizer::recognize`] says of the whole.
    pub fn listen(&self) -> Streaming<'_> {
        let so_far = match self.model.config().head {
            Head::Labels => SoFar::Rows(vec![]),
            Head::Ctc => SoFar::Texts(self.beam()),
        };
        Streaming {
            recognizer: self,
            front: self.front.listen(),
            hearing: self.model.begin(),
            so_far,
        }
    }

    fn labels(&self, logits: Tensor<2>, top_k: usize) -> Vec<Guess> {
        let mut scores = vec![];
        backend::numbers(logits, &mut scores);
        let each = softmax(&scores).into_iter().enumerate();
        let guess = |(i, score)| Guess { text: self.names.label(i).to_string(), score };
        let mut all: Vec<Guess> = each.map(guess).collect();
        all.sort_by(|a, b| b.score.total_cmp(&a.score));
        all.truncate(top_k);
        all
    }

    fn beam(&self) -> PrefixBeam {
        PrefixBeam::new(BEAMS, BLANK)
    }

    fn read(&self, beam: &mut PrefixBeam, logits: Tensor<2>) {
        let mut rows = vec![];
        backend::numbers(log_softmax(logits, 1), &mut rows);
        rows.chunks_exact(self.model.labels()).for_each(|row| beam.push(row));
    }

    fn texts(&self, beam: &PrefixBeam, top_k: usize) -> Vec<Guess> {
        let guess = |(letters, log): (Vec<u32>, f64)| Guess {
            text: self.names.text(&letters),
            score: log.exp(),
        };
        beam.best(top_k).into_iter().map(guess).collect()
    }
}

/// A sound that is not over.
pub struct Streaming<'a> {
    recognizer: &'a Recognizer,
    front: Listening<'a>,
    hearing: Hearing,
    so_far: SoFar,
}

/// What has come of a sound so far.
enum SoFar {
    /// Rows that are weighed for a label when someone asks.
    Rows(Vec<Tensor<2>>),
    /// Texts, row by row.
    Texts(PrefixBeam),
}

impl Streaming<'_> {
    /// Hears more samples; the `last` ones complete what was waiting for more.
    pub fn hear(&mut self, samples: &[f32], last: bool) {
        let rows = self.front.hear(samples, last);
        let model = &self.recognizer.model;
        let Some(encoded) = model.hear(&rows, &mut self.hearing, last) else { return };
        match &mut self.so_far {
            SoFar::Rows(rows) => rows.push(encoded),
            SoFar::Texts(beam) => self.recognizer.read(beam, model.say(encoded)),
        }
    }

    /// The likeliest labels or texts of what was heard; none as long as too little was.
    pub fn guesses(&self, top_k: usize) -> Vec<Guess> {
        match &self.so_far {
            SoFar::Rows(rows) if rows.is_empty() => vec![],
            SoFar::Rows(rows) => {
                let all = self.recognizer.model.say(Tensor::cat(rows.clone(), 0));
                self.recognizer.labels(all, top_k)
            }
            SoFar::Texts(beam) => self.recognizer.texts(beam, top_k),
        }
    }
}
