//! Answers about stories as a pipeline.

use super::{Heard, Listener, Reply, Support};
use crate::answer::Inputs;
use crate::pipeline::Pipeline;
use regard_models::{Error, ModelFiles, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// Answers to give at most.
    pub top_k: usize,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters { top_k: 1 }
    }
}

/// The likeliest answer, others if they were asked for, and the sentences that were attended to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// The likeliest.
    #[serde(flatten)]
    pub best: Reply,
    /// With `top_k` above 1, all, the likeliest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<Vec<Reply>>,
    /// The sentences that the model attended to, in their order.
    pub support: Vec<Support>,
}

impl Pipeline for Listener {
    const TASK: &'static str = "answer-story";

    type Inputs = Inputs;
    type Parameters = Parameters;
    type Response = Response;

    fn open(files: ModelFiles) -> Result<Listener> {
        Listener::load(files)
    }

    fn run(&self, inputs: &[Inputs], parameters: &Parameters) -> Result<Vec<Result<Response>>> {
        let one = |Inputs { question, context }: &Inputs| {
            let top_k = parameters.top_k.max(1);
            let Heard { replies, support } = self.answer(question, context, top_k)?;
            let best = replies.first().cloned();
            let best = best.ok_or_else(|| Error::invalid("a model without answers"))?;
            Ok(Response { best, answers: (top_k > 1).then_some(replies), support })
        };
        Ok(inputs.iter().map(one).collect())
    }
}
