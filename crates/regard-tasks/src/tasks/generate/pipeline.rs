//! Text generation as a pipeline.

use super::{Generated, Generation, Generator, Prompt, PromptOptions, TokenName, Watch};
use crate::batching::{self, Cancel, Guesses};
use crate::constraint::{CompiledConstraint, Constraint};
use crate::decode::{FinishReason, Options, SearchParameters};
use crate::pipeline::Pipeline;
use regard_models::{Error, ModelFiles, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Most likely tokens that may be asked for.
const MOST_LIKELY: usize = 1024;

/// Parameters of a generation request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// Stop strings: the text ends before the first one. Missing ones are the model's own
    /// (`stop_strings` of `generation_config.json`).
    pub stop: Option<Vec<String>>,
    /// Whether the text keeps the stop string that ended it.
    pub include_stop_str_in_output: bool,
    /// Stop tokens: ids, or texts of one token. They end the text as the model's end token does.
    pub stop_tokens: Vec<TokenName>,
    /// Numbers added to the logits of tokens, by id or text; -100 forbids a token in effect.
    pub logit_bias: BTreeMap<String, f32>,
    /// Regular expression that the whole continuation matches, unless a stop string or the maximum
    /// length ends it early.
    pub regex: Option<String>,
    /// JSON schema that the whole continuation matches, in the same way. A keyword that is not
    /// supported is an error.
    pub json_schema: Option<Value>,
    /// Whether the BOS token comes before the prompt, where the tokenizer adds one.
    pub add_special_tokens: bool,
    /// Whether a prompt longer than the model's context loses its first tokens, instead of being an
    /// error.
    pub truncate: bool,
    /// Returns the log-probability of each token, and this number of the most likely ones.
    pub logprobs: Option<usize>,
    /// Index of the first input. With the seed it determines the random numbers of sampling, so a
    /// list split over several requests gives the same texts as one request.
    pub first: u64,
    /// Search and sampling parameters.
    #[serde(flatten)]
    pub search: SearchParameters,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters {
            stop: None,
            include_stop_str_in_output: false,
            stop_tokens: vec![],
            logit_bias: BTreeMap::new(),
            regex: None,
            json_schema: None,
            add_special_tokens: true,
            truncate: false,
            logprobs: None,
            first: 0,
            search: SearchParameters::default(),
        }
    }
}

/// A generated text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// Prompt followed by its continuation.
    pub generated_text: String,
    /// Token ids of the continuation.
    pub token_ids: Vec<u32>,
    /// Sum of the continuation's log-probabilities, after penalties.
    pub score: f32,
    /// Why the text ended: `eos` at the model's end token, `stop` at a stop string or stop token, or
    /// because a text that matches cannot go on, `length` at the maximum length, `no_token` because
    /// no token was possible.
    pub finish_reason: FinishReason,
    /// Number of tokens of the prompt.
    pub prompt_tokens: usize,
    /// Number of generated tokens, with the end token if one ended the text.
    pub completion_tokens: usize,
    /// Number of tokens that were cut off at the start of the prompt; only present if there are
    /// any.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub truncated_tokens: usize,
    /// Each token with its log-probability; only present if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logprobs: Option<Vec<TokenLogprob>>,
    /// Tokens that were guessed and accepted; only present if tokens were guessed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guesses: Option<Guesses>,
    /// Further results, the best first; only present if several were requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<Response>,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// A token of a continuation with its log-probability.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TokenLogprob {
    /// Token as spelled in the vocabulary.
    pub token: String,
    /// Natural logarithm of its probability by the model, before temperature and penalties.
    pub logprob: f32,
    /// The most likely tokens at its place, the best first; only present if requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub top_logprobs: Vec<TopLogprob>,
}

/// A token that was likely.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TopLogprob {
    /// Token as spelled in the vocabulary.
    pub token: String,
    /// Natural logarithm of its probability by the model.
    pub logprob: f32,
}

impl Response {
    /// Returns all results, the best first.
    pub fn results(&self) -> impl Iterator<Item = &Response> {
        std::iter::once(self).chain(&self.alternatives)
    }
}

impl Parameters {
    /// Returns how prompts become tokens.
    pub fn prompts(&self) -> PromptOptions {
        PromptOptions { add_special_tokens: self.add_special_tokens, truncate: self.truncate }
    }

    /// Returns the options of a model, overridden by these.
    ///
    /// # Errors
    /// If an option is invalid, or names what is no token.
    pub fn options(&self, model: &Generator) -> Result<Options> {
        if let Some(count) = self.logprobs.filter(|count| *count > MOST_LIKELY) {
            let message = format!("logprobs: got {count}, need 0 to {MOST_LIKELY}");
            return Err(Error::invalid(message));
        }
        let mut options = self.search.over(model.defaults())?;
        for name in &self.stop_tokens {
            options.stop_token_ids.push(model.token_id("stop_tokens", name)?);
        }
        let mut named = BTreeMap::new();
        for (name, bias) in &self.logit_bias {
            let token = model.token_id("logit_bias", &TokenName::from(name.as_str()))?;
            if let Some(other) = named.insert(token, name) {
                return Err(Error::invalid(format!(
                    "logit_bias: {other:?} and {name:?} are both token {token}; need one of them"
                )));
            }
            // That of a request replaces the model's.
            options.logit_bias.retain(|(other, _)| *other != token);
            options.logit_bias.push((token, *bias));
        }
        options.check()?;
        Ok(options)
    }

    /// Compiles what the texts must match, if anything is given.
    ///
    /// # Errors
    /// If both a regular expression and a schema are given, or as [`Generator::compile`].
    pub fn constraint(&self, model: &Generator) -> Result<Option<CompiledConstraint>> {
        let constraint = match (&self.regex, &self.json_schema) {
            (None, None) => return Ok(None),
            (Some(regex), None) => Constraint::Regex(regex.clone()),
            (None, Some(schema)) => Constraint::JsonSchema(schema.clone()),
            (Some(_), Some(_)) => {
                return Err(Error::invalid("regex and json_schema: got both, need one of them"));
            }
        };
        model.compile(&constraint).map(Some)
    }

    /// Returns the stop strings: these, or those of the model.
    pub fn stops<'a>(&'a self, model: &'a Generator) -> &'a [String] {
        self.stop.as_deref().unwrap_or(&model.generation_config().stop)
    }
}

impl Generator {
    /// Runs a batch of one, until it is cancelled, with the constraint of the parameters
    /// ([`Parameters::constraint`]), which is compiled once for many texts.
    ///
    /// # Errors
    /// As [`Pipeline::run_one`], or if it is cancelled.
    pub fn run_until(
        &self,
        text: &str,
        parameters: &Parameters,
        constraint: Option<&CompiledConstraint>,
        cancel: &Cancel,
    ) -> Result<Response> {
        let options = parameters.options(self)?;
        let prompt = self.prompt(text, parameters.prompts())?;
        let (number, cancel) = (parameters.first, Some(cancel));
        let how = Generation { number, cancel, constraint, ..Generation::new(&options) };
        self.respond(text, &prompt, parameters, &how, &mut |_| true)
    }

    /// Continues a prompt, with the stop strings and counts that the parameters ask for. The texts of
    /// the response begin with `before`.
    ///
    /// # Errors
    /// As [`Generator::generate`].
    pub fn respond(
        &self,
        before: &str,
        prompt: &Prompt,
        parameters: &Parameters,
        how: &Generation,
        watch: &mut Watch,
    ) -> Result<Response> {
        let how = Generation {
            stop: parameters.stops(self),
            include_stop: parameters.include_stop_str_in_output,
            likely: parameters.logprobs.unwrap_or(0),
            ..*how
        };
        let written = self.generate(prompt, &how, watch)?;
        let counted = |generated| Response {
            prompt_tokens: prompt.ids().len(),
            truncated_tokens: prompt.truncated(),
            ..self.response(before, generated, parameters)
        };
        let mut all = written.into_iter().map(counted);
        let best = all.next().unwrap_or_default();
        let other = |other: Response| Response { guesses: None, ..other };
        Ok(Response { alternatives: all.map(other).collect(), ..best })
    }

    /// Makes the response of one result.
    fn response(&self, prompt: &str, generated: Generated, parameters: &Parameters) -> Response {
        let name = |id: u32| self.tokenizer().token(id).unwrap_or_default();
        let tokens = || {
            let each = generated.ids.iter().zip(&generated.log_probs).enumerate();
            let one = |(at, (id, logprob)): (usize, (&u32, &f32))| TokenLogprob {
                token: name(*id),
                logprob: *logprob,
                top_logprobs: generated.likely.get(at).map_or(vec![], |likely| {
                    let top = likely.iter();
                    top.map(|(id, logprob)| TopLogprob { token: name(*id), logprob: *logprob })
                        .collect()
                }),
            };
            each.map(one).collect()
        };
        Response {
            generated_text: format!("{prompt}{}", generated.text),
            logprobs: parameters.logprobs.map(|_| tokens()),
            completion_tokens: generated.log_probs.len(),
            finish_reason: generated.finish_reason,
            score: generated.score,
            guesses: generated.guesses,
            token_ids: generated.ids,
            ..Response::default()
        }
    }
}

/// Prompts that are continued at once, and texts that are scored at once.
pub const TOGETHER: usize = 16;

impl Pipeline for Generator {
    const TASK: &'static str = "generate";

    type Inputs = String;
    type Parameters = Parameters;
    type Response = Response;

    fn open(files: ModelFiles) -> Result<Generator> {
        Generator::load(files)
    }

    fn run(&self, inputs: &[String], parameters: &Parameters) -> Result<Vec<Result<Response>>> {
        let options = parameters.options(self)?;
        let constraint = parameters.constraint(self)?;
        let one = |at: usize| {
            let (text, number) = (&inputs[at], parameters.first.wrapping_add(at as u64));
            let prompt = self.prompt(text, parameters.prompts())?;
            let constraint = constraint.as_ref();
            let how = Generation { number, constraint, ..Generation::new(&options) };
            self.respond(text, &prompt, parameters, &how, &mut |_| true)
        };
        // Results do not depend on what is generated together.
        Ok(batching::for_each(inputs.len(), TOGETHER, one))
    }
}
