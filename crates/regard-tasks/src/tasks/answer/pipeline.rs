//! Extractive question answering as a pipeline.

use super::{Answer, Asking};
use crate::pipeline::Pipeline;
use crate::reader::TextEncoder;
use regard_models::text::Head;
use regard_models::{ModelFiles, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A question and the context that contains its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Inputs {
    /// Question to answer.
    pub question: String,
    /// Context: the text to search for the answer.
    pub context: String,
}

/// Most probable answer, and further ones if `top_k` is above 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// Most probable answer.
    #[serde(flatten)]
    pub best: Answer,
    /// All answers, the most probable first; only present if `top_k` is above 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<Vec<Answer>>,
}

impl Response {
    /// Whether the response is empty: no candidate span was found.
    pub fn is_empty(&self) -> bool {
        self.best.answer.is_empty() && self.best.score == 0.0
    }
}

/// Extractive question answering model.
pub struct Answerer(pub TextEncoder);

impl Pipeline for Answerer {
    const TASK: &'static str = "answer";

    type Inputs = Inputs;
    type Parameters = Asking;
    type Response = Response;

    fn open(files: ModelFiles) -> Result<Answerer> {
        Ok(Answerer(TextEncoder::load(files, Head::Span)?))
    }

    fn run(&self, inputs: &[Inputs], asking: &Asking) -> Result<Vec<Result<Response>>> {
        asking.check()?;
        let one = |Inputs { question, context }: &Inputs| {
            let answers = self.0.answer(question, context, asking)?;
            let nothing = Answer { answer: String::new(), score: 0.0, start: 0, end: 0 };
            let best = answers.first().cloned().unwrap_or(nothing);
            Ok(Response { best, answers: (asking.top_k > 1).then_some(answers) })
        };
        Ok(inputs.iter().map(one).collect())
    }
}
