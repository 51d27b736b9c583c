//! Conversations as a pipeline.

use super::{ASSISTANT, Chat, Message};
use crate::batching::{self, Cancel, Guesses};
use crate::decode::FinishReason;
use crate::generate::{self, Parameters, TOGETHER, TokenLogprob};
use crate::pipeline::Pipeline;
use regard_models::{ModelFiles, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A conversation to answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Inputs {
    /// What was said so far, the first message first.
    pub messages: Vec<Message>,
}

/// An answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// What the assistant says.
    pub message: Message,
    /// Token ids of the answer.
    pub token_ids: Vec<u32>,
    /// Sum of their log-probabilities, after penalties.
    pub score: f32,
    /// Why the answer ended: `eos` at a token that ends a turn, `stop` at a stop string or stop
    /// token, `length` at the maximum length or the end of the context, `cancelled` by the caller.
    pub finish_reason: FinishReason,
    /// Number of tokens of the conversation, as the template writes it.
    pub prompt_tokens: usize,
    /// Number of generated tokens, with the end token if one ended the answer.
    pub completion_tokens: usize,
    /// Each token with its log-probability; only present if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logprobs: Option<Vec<TokenLogprob>>,
    /// Tokens that were guessed and accepted; only present if tokens were guessed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guesses: Option<Guesses>,
    /// Further answers, the best first; only present if several were requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<Response>,
}

impl From<generate::Response> for Response {
    fn from(said: generate::Response) -> Response {
        Response {
            message: Message::new(ASSISTANT, said.generated_text),
            token_ids: said.token_ids,
            score: said.score,
            finish_reason: said.finish_reason,
            prompt_tokens: said.prompt_tokens,
            completion_tokens: said.completion_tokens,
            logprobs: said.logprobs,
            guesses: said.guesses,
            alternatives: said.alternatives.into_iter().map(Response::from).collect(),
        }
    }
}

impl Pipeline for Chat {
    const TASK: &'static str = "chat";

    type Inputs = Inputs;
    /// Those of a text that is continued. `add_special_tokens` has no effect, because the template
    /// writes them, and `truncate` is refused. Without a maximum length, an answer has at most
    /// 4096 tokens, and no more than fit the limit of the KV caches. Without a number of results
    /// there is one, whatever the model's configuration says.
    type Parameters = Parameters;
    type Response = Response;

    fn open(files: ModelFiles) -> Result<Chat> {
        Chat::load(files)
    }

    fn run(&self, inputs: &[Inputs], parameters: &Parameters) -> Result<Vec<Result<Response>>> {
        // Invalid parameters are an error of the request.
        self.options(parameters)?;
        let constraint = parameters.constraint(self.generator())?;
        let cancel = Cancel::new();
        let one = |at: usize| {
            let (messages, constraint) = (&inputs[at].messages, constraint.as_ref());
            let number = parameters.first.wrapping_add(at as u64);
            self.answer(messages, parameters, constraint, number, &cancel, &mut |_| true)
        };
        Ok(batching::for_each(inputs.len(), TOGETHER, one))
    }
}
