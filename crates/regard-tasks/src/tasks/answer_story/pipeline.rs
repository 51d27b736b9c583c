//! Question answering on stories as a pipeline.

use super::absent::absent;
use super::{Reply, StoryAnswer, StoryAnswerer, Support};
use crate::answer::Inputs;
use crate::pipeline::Pipeline;
use regard_models::{Error, ModelFiles, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of a story question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// Maximum number of answers to return, the most probable first; 1 by default.
    pub top_k: usize,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters { top_k: 1 }
    }
}

/// Most probable answer, further ones if `top_k` is above 1, and the attended sentences.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// Most probable answer.
    #[serde(flatten)]
    pub best: Reply,
    /// All answers, the most probable first; only present if `top_k` is above 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<Vec<Reply>>,
    /// Sentences that the model attended to, in story order.
    pub support: Vec<Support>,
    /// Why the answer is a guess: the story does not mention it, or what the question is about.
    /// Only present if there is such a reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Pipeline for StoryAnswerer {
    const TASK: &'static str = "answer-story";

    type Inputs = Inputs;
    type Parameters = Parameters;
    type Response = Response;

    fn open(files: ModelFiles) -> Result<StoryAnswerer> {
        StoryAnswerer::load(files)
    }

    fn run(&self, inputs: &[Inputs], parameters: &Parameters) -> Result<Vec<Result<Response>>> {
        let one = |Inputs { question, context }: &Inputs| {
            let top_k = parameters.top_k.max(1);
            let StoryAnswer { replies, support } = self.answer(question, context, top_k)?;
            let best = replies.first().cloned();
            let none = || Error::invalid("config.json: id2label: the model has no answers");
            let best = best.ok_or_else(none)?;
            let note = absent(question, context, &best.answer);
            Ok(Response { best, answers: (top_k > 1).then_some(replies), support, note })
        };
        Ok(inputs.iter().map(one).collect())
    }
}
