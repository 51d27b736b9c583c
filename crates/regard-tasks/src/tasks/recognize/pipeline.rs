//! Speech recognition as a pipeline.

use super::{Recognizer, SpeechCandidate};
use crate::attachment::Attachment;
use crate::audio::Sound;
use crate::pipeline::Pipeline;
use regard_models::{Error, ModelFiles, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of a recognition request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// Maximum number of labels or transcripts to return, the most probable first; 1 by default.
    pub top_k: usize,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters { top_k: 1 }
    }
}

/// Predicted label or transcript of a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// Name of the recording as given in the request; absent if none was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Most probable label or transcript.
    #[serde(flatten)]
    pub best: SpeechCandidate,
    /// All candidates, the most probable first; only present if `top_k` is above 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guesses: Option<Vec<SpeechCandidate>>,
}

/// Intermediate result of a streaming recognition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Partial {
    /// Name of the recording as given in the request; absent if none was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Seconds of audio processed so far.
    pub seconds: f64,
    /// Label or transcript so far.
    pub partial: String,
}

impl Response {
    /// Creates a response from candidates, the most probable first.
    ///
    /// # Errors
    /// If there are no candidates.
    pub fn new(
        file: Option<String>,
        guesses: Vec<SpeechCandidate>,
        top_k: usize,
    ) -> Result<Response> {
        let best = guesses.first().cloned();
        let best = best.ok_or_else(|| Error::invalid("nothing was recognized"))?;
        Ok(Response { file, best, guesses: (top_k > 1).then_some(guesses) })
    }

    /// Returns all candidates, the most probable first.
    pub fn all(&self) -> &[SpeechCandidate] {
        self.guesses.as_deref().unwrap_or(std::slice::from_ref(&self.best))
    }
}

impl Pipeline for Recognizer {
    const TASK: &'static str = "recognize";

    type Inputs = Attachment<Sound>;
    type Parameters = Parameters;
    type Response = Response;

    fn open(files: ModelFiles) -> Result<Recognizer> {
        Recognizer::load(files)
    }

    fn run(
        &self,
        inputs: &[Attachment<Sound>],
        parameters: &Parameters,
    ) -> Result<Vec<Result<Response>>> {
        let top_k = parameters.top_k.max(1);
        let one = |input: &Attachment<Sound>| {
            Response::new(input.file.clone(), self.recognize(&input.data, top_k)?, top_k)
        };
        Ok(inputs.iter().map(one).collect())
    }
}

impl Recognizer {
    /// Recognizes a recording piece by piece, as from a microphone, and calls `tell` with the
    /// intermediate result whenever it changes.
    pub fn run_streaming<E: From<Error>>(
        &self,
        input: Attachment<Sound>,
        milliseconds: u64,
        parameters: &Parameters,
        tell: &mut dyn FnMut(Partial) -> Result<(), E>,
    ) -> Result<Response, E> {
        let rate = self.front().preprocessor().sampling_rate;
        let sound = input.data.at(rate);
        let piece = (u64::from(rate) * milliseconds / 1000).max(1) as usize;
        let mut streaming = self.listen();
        let (mut heard, mut so_far) = (0, String::new());
        for samples in sound.samples.chunks(piece) {
            streaming.hear(samples, false)?;
            heard += samples.len();
            if let Some(best) = streaming.guesses(1)?.pop()
                && best.text != so_far
            {
                let seconds = heard as f64 / f64::from(rate);
                let (file, partial) = (input.file.clone(), best.text.clone());
                tell(Partial { file, seconds, partial })?;
                so_far = best.text;
            }
        }
        streaming.hear(&[], true)?;
        let top_k = parameters.top_k.max(1);
        Ok(Response::new(input.file, streaming.guesses(top_k)?, top_k)?)
    }
}
