//! Extractive question answering as a pipeline.

use super::{Answer, Asking};
use crate::pipeline::Pipeline;
use crate::reader::Reader;
use regard_models::text::Head;
use regard_models::{ModelFiles, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A question and the text in which its answer stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Inputs {
    /// The question.
    pub question: String,
    /// The text.
    pub context: String,
}

/// The likeliest answer, and others if they were asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// The likeliest.
    #[serde(flatten)]
    pub best: Answer,
    /// With `top_k` above 1, all, the likeliest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<Vec<Answer>>,
}

impl Response {
    /// Whether no answer was found.
    pub fn is_empty(&self) -> bool {
        self.best.answer.is_empty() && self.best.score == 0.0
    }
}

/// A model that finds the answer to a question in a text.
pub struct Answerer(pub Reader);

impl Pipeline for Answerer {
    const TASK: &'static str = "answer";

    type Inputs = Inputs;
    type Parameters = Asking;
    type Response = Response;

    fn open(files: ModelFiles) -> Result<Answerer> {
        Ok(Answerer(Reader::load(files, Head::Span)?))
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
