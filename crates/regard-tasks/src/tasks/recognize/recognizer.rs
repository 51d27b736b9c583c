//! Inference of speech recognition, on whole recordings or streaming.

use super::Names;
use super::evaluate::BEAMS;
use super::names::BLANK;
use crate::audio::Sound;
use crate::audio::front::{self, FrontEnd, Listening, Preprocessor};
use crate::decode::ctc::PrefixBeam;
use crate::logits::{Label, finite, ranked};
use crate::train;
use burn::tensor::activation::log_softmax;
use burn::tensor::{Device, Tensor};
use regard_attention::layers::PoolingState;
use regard_attention::{Mode, backend};
use regard_models::speech::{Sounds, Speech, SpeechHead, SpeechStream};
use regard_models::{Error, ModelFiles, Network, Result, zoo};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A candidate label or transcript.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Candidate")]
pub struct SpeechCandidate {
    /// Label or transcript.
    pub text: String,
    /// Probability, 0 to 1.
    pub score: f64,
}

/// Speech model with its feature extraction and its output names.
pub struct Recognizer {
    model: Speech,
    front: FrontEnd,
    names: Names,
}

impl Recognizer {
    /// Creates a recognizer from a model, its feature extraction and its output names.
    pub fn new(model: Speech, front: FrontEnd, names: Names) -> Result<Recognizer> {
        let (hears, given) = (model.settings().feature_size, front.width());
        if hears != given {
            return Err(Error::invalid(format!(
                "{}: got {given} features per row, the model expects {hears}",
                front::FILE
            )));
        }
        if names.len() != model.labels() {
            let (named, said) = (names.len(), model.labels());
            return Err(Error::invalid(format!("id2label: got {named} names for {said} classes")));
        }
        Ok(Recognizer { model, front, names })
    }

    /// Opens a model: from a folder, which may be a training run's, or a built-in one.
    pub fn load(model: impl Into<ModelFiles>) -> Result<Recognizer> {
        let files = train::files(model)?;
        let model = *zoo::open::<Speech>(files.clone(), &Device::flex())?;
        let told = |message: String| Error::file(files.place(), message);
        let front = FrontEnd::new(Preprocessor::load(&files)?).map_err(told)?;
        let names = Names::new(model.settings().head, &model.config());
        names
            .and_then(|names| Recognizer::new(model, front, names))
            .map_err(|e| told(e.to_string()))
    }

    /// Returns the model.
    pub fn model(&self) -> &Speech {
        &self.model
    }

    /// Returns the feature extraction.
    pub fn front(&self) -> &FrontEnd {
        &self.front
    }

    /// Returns the output names.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Returns the number of trainable parameters.
    pub fn parameters(&self) -> usize {
        self.model.parameters()
    }

    /// Returns the most probable labels or transcripts of a sound, at most `top_k`, the best first.
    ///
    /// # Errors
    /// If the model outputs NaN or infinite values.
    pub fn recognize(&self, sound: &Sound, top_k: usize) -> Result<Vec<SpeechCandidate>> {
        let mut sounds = Sounds::new(self.front.width());
        sounds.push(&self.front.rows(sound));
        let logits = self.model.forward(&sounds, Mode::Eval).logits;
        match self.model.settings().head {
            SpeechHead::Labels => self.labels(logits, top_k),
            SpeechHead::Ctc => {
                let mut beam = self.beam();
                self.read(&mut beam, logits)?;
                Ok(self.texts(&beam, top_k))
            }
        }
    }

    /// Starts a streaming recognition at the front end's sampling rate. The final result equals
    /// that of [`Recognizer::recognize`] on the whole sound.
    pub fn listen(&self) -> Streaming<'_> {
        let so_far = match self.model.settings().head {
            SpeechHead::Labels => SoFar::Pooled(PoolingState::default()),
            SpeechHead::Ctc => SoFar::Texts(self.beam()),
        };
        Streaming {
            recognizer: self,
            front: self.front.listen(),
            hearing: self.model.begin(),
            so_far,
        }
    }

    fn labels(&self, logits: Tensor<2>, top_k: usize) -> Result<Vec<SpeechCandidate>> {
        let mut scores = vec![];
        backend::numbers(logits, &mut scores);
        let all = ranked(&scores, |label| self.names.label(label).to_string())?;
        let guess = |Label { label, score }| SpeechCandidate { text: label, score };
        Ok(all.into_iter().take(top_k).map(guess).collect())
    }

    fn beam(&self) -> PrefixBeam {
        PrefixBeam::new(BEAMS, BLANK)
    }

    fn read(&self, beam: &mut PrefixBeam, logits: Tensor<2>) -> Result<()> {
        let mut rows = vec![];
        backend::numbers(log_softmax(logits, 1), &mut rows);
        finite(&rows)?;
        rows.chunks_exact(self.model.labels()).for_each(|row| beam.push(row));
        Ok(())
    }

    fn texts(&self, beam: &PrefixBeam, top_k: usize) -> Vec<SpeechCandidate> {
        let guess = |(letters, log): (Vec<u32>, f64)| SpeechCandidate {
            text: self.names.text(&letters),
            score: log.exp(),
        };
        beam.best(top_k).into_iter().map(guess).collect()
    }
}

/// A streaming recognition.
pub struct Streaming<'a> {
    recognizer: &'a Recognizer,
    front: Listening<'a>,
    hearing: SpeechStream,
    so_far: SoFar,
}

/// State of the output head.
enum SoFar {
    /// Pooled features of all rows, for a label on request.
    Pooled(PoolingState),
    /// Beam of transcripts, extended row by row.
    Texts(PrefixBeam),
}

impl Streaming<'_> {
    /// Processes more samples; `last` also flushes the rows that wait for right context.
    ///
    /// # Errors
    /// If the model outputs NaN or infinite values.
    pub fn hear(&mut self, samples: &[f32], last: bool) -> Result<()> {
        let rows = self.front.hear(samples, last);
        let model = &self.recognizer.model;
        let Some(encoded) = model.hear(&rows, &mut self.hearing, last) else { return Ok(()) };
        match &mut self.so_far {
            SoFar::Pooled(pooled) => model.pool(encoded, pooled),
            SoFar::Texts(beam) => self.recognizer.read(beam, model.say(encoded))?,
        }
        Ok(())
    }

    /// Returns the most probable labels or transcripts so far; empty while too little was
    /// processed.
    ///
    /// # Errors
    /// If the model outputs NaN or infinite values.
    pub fn guesses(&self, top_k: usize) -> Result<Vec<SpeechCandidate>> {
        match &self.so_far {
            SoFar::Pooled(pooled) => match self.recognizer.model.say_pooled(pooled) {
                Some(logits) => self.recognizer.labels(logits, top_k),
                None => Ok(vec![]),
            },
            SoFar::Texts(beam) => Ok(self.recognizer.texts(beam, top_k)),
        }
    }
}
