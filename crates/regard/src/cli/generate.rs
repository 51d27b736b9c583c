//! `regard generate`: text generation with a causal language model.

use super::inputs::{self, InputError, Unknown};
use super::search::{LENGTH, PENALTIES, Search};
use super::sequences::{CacheFlags, GuessFlags};
use super::texts::{FileFlags, TextSource};
use super::together::{self, Alone, Each};
use super::{Global, Outcome, write_json};
use crate::hub::Hub;
use crate::models;
use anyhow::{Result, anyhow};
use clap::Args;
use regard_models::checkpoint;
use regard_tasks::batching::Cancel;
use regard_tasks::generate::{Generation, Generator, Parameters, Response, TokenName, Written};
use regard_tasks::say;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

const EXAMPLES: &str = "\
Continues each PROMPT, or each line of standard input, and prints tokens as they are generated. With
beam search, several results or --json, a text is printed when it is complete.

Examples:
  regard generate 'ROMEO:'                         # built-in model `shakespeare`
  regard generate 'ROMEO:' --max-new-tokens 200 --do-sample --temperature 0.8 --top-k 40 --seed 7
  regard generate 'ROMEO:' --do-sample=false       # the most probable token at each step
  regard generate 'ROMEO:' --do-sample --n 3       # three texts for one prompt
  regard generate 'ROMEO:' --num-beams 4 --no-repeat-ngram-size 3
  regard generate 'ROMEO:' --stop JULIET --logit-bias 'z=-100' --json --logprobs 2
  regard generate '' --regex '[A-Z]{3,8}: [a-z ]{10,20}\\.'  # the text matches the pattern
  regard generate 'A person: ' --model Qwen/Qwen3-0.6B --json-schema person.json  # downloads
  regard generate 'Once upon a time' --model gpt2  # downloads GPT-2 from the Hub
  regard generate --stop $'\\n\\n' --json < prompts.txt  # your file
  regard generate --lookup 8 --kv-cache int8 < prompts.txt  # your file

Flags are named as in Hugging Face generate (presence and frequency penalty, stop and logit bias as
in OpenAI's API). A flag that is not given keeps the model's setting in generation_config.json; a
setting there that is not supported and would change the text is named in a note.

A BOS token comes before the prompt where the model's tokenizer adds one, as Llama's does and
GPT-2's does not; a prompt that begins with it gets no second one.

A prompt longer than the model's context is an error, unless --truncate drops its first tokens. When
the context is full while text is generated, its first half is dropped and generation continues.

The lines of a file are continued together, 16 at a time, and printed in their order; each text is
the same as alone. --lookup and --draft guess several tokens, which the model checks in one pass:
the text is the same, sampled or not. It comes sooner if most guesses are right, later if they are
not; stderr says how many were. --lookup helps where a text repeats itself: quotes, code, lists.

With --regex or --json-schema the whole continuation matches, unless a stop text or the maximum
length ends it early. Only tokens after which a text that matches can follow are allowed; the end
token, and --stop-token, where the text matches. A text that matches and cannot go on ends by itself
(stop), whatever --min-new-tokens says. The pattern is one of Rust's crate regex, without word
boundaries. Of a schema, properties come in its order, and a space may follow a comma or a colon; a
keyword that is not supported is an error.

--json prints one object per prompt: generated_text (including the prompt), token_ids (without the
prompt's), score, finish_reason (eos: the model's end token; stop: a stop string or token, or the
end of what matches; length: the maximum length; no_token: no token was possible), prompt_tokens,
completion_tokens (with the end token); with --logprobs also logprobs, with --num-return-sequences
also alternatives, with --lookup or --draft also guesses (guessed, accepted).

If a line of standard input fails, the error goes to stderr, an empty line (or {\"error\": …} with
--json) is printed, and the exit code is 1.";

const STOPPING: &str = "Stopping";
const MATCHING: &str = "Matching";

/// Generate text from a prompt
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Flags {
    /// Prompts, each continued independently [default: the lines of standard input]
    prompt: Vec<String>,
    /// Model: a folder, a name listed by `regard models`, or a Hugging Face Hub id
    /// [default: `shakespeare`, built in]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Drop the first tokens of a prompt that is longer than the model's context
    #[arg(long)]
    truncate: bool,
    /// With --json, print the log-probability of each token, and of the N most probable ones
    #[arg(long, value_name = "N")]
    logprobs: Option<usize>,
    #[command(flatten)]
    file: FileFlags,
    #[command(flatten)]
    hub: Hub,
    /// Maximum number of new tokens [default: the model's]
    #[arg(long, value_name = "N", help_heading = LENGTH)]
    max_new_tokens: Option<usize>,
    /// Minimum number of new tokens: nothing ends the text before
    #[arg(long, value_name = "N", help_heading = LENGTH)]
    min_new_tokens: Option<usize>,
    /// Stop before this text; can be repeated
    #[arg(long, value_name = "TEXT", help_heading = STOPPING)]
    stop: Vec<String>,
    /// Stop at this token, given by id or text; can be repeated
    #[arg(long, value_name = "TOKEN", help_heading = STOPPING)]
    stop_token: Vec<String>,
    /// Keep the stop text that ended a text
    #[arg(long, help_heading = STOPPING)]
    include_stop: bool,
    /// Generate a text that matches this regular expression
    #[arg(long, value_name = "PATTERN", conflicts_with = "json_schema", help_heading = MATCHING)]
    regex: Option<String>,
    /// Generate JSON that matches the schema in this file, or this schema if it begins with {
    #[arg(long, value_name = "FILE", help_heading = MATCHING)]
    json_schema: Option<String>,
    /// Add X to the logit of a token, given by id or text; can be repeated
    #[arg(long, value_name = "TOKEN=X", value_parser = bias, help_heading = PENALTIES)]
    logit_bias: Vec<(String, f32)>,
    #[command(flatten)]
    search: Search,
    #[command(flatten)]
    guesses: GuessFlags,
    #[command(flatten)]
    caches: CacheFlags,
}

/// Parses `TOKEN=X`; the token may contain `=`.
fn bias(text: &str) -> Result<(String, f32), String> {
    let parts = text.rsplit_once('=').filter(|(token, _)| !token.is_empty());
    let (token, number) = parts.ok_or("need TOKEN=X, such as 'the=-1.5' or 262=-1.5")?;
    let number = number.parse().ok().filter(|x: &f32| x.is_finite());
    let number = number.ok_or_else(|| format!("got {text:?}, need a number after the last ="))?;
    Ok((token.to_string(), number))
}

/// Reads a schema: JSON itself, or the file that has it.
fn schema(text: &str) -> Result<Value> {
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(text).map_err(|e| anyhow!("--json-schema: not JSON: {e}"));
    }
    let read = checkpoint::read_text(Path::new(text))?;
    serde_json::from_str(&read).map_err(|e| anyhow!("--json-schema: {text}: not JSON: {e}"))
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let mut writer: Generator = models::open(flags.model.as_deref(), &flags.hub)?;
    flags.caches.apply(&mut writer)?;
    flags.guesses.apply(&mut writer, &flags.hub)?;
    let writer = writer;
    note_unsupported(&writer);
    let mut search = flags.search.parameters(writer.defaults(), global.seed)?;
    search.max_new_tokens = flags.max_new_tokens;
    search.min_new_tokens = flags.min_new_tokens;
    if flags.logprobs.is_some() && !global.json {
        inputs::note("--logprobs has no effect without --json");
    }
    let parameters = Parameters {
        stop: Some(flags.stop).filter(|stop| !stop.is_empty()),
        include_stop_str_in_output: flags.include_stop,
        stop_tokens: flags.stop_token.iter().map(|text| TokenName::from(&text[..])).collect(),
        logit_bias: flags.logit_bias.into_iter().collect::<BTreeMap<_, _>>(),
        truncate: flags.truncate,
        logprobs: flags.logprobs,
        regex: flags.regex,
        json_schema: flags.json_schema.as_deref().map(schema).transpose()?,
        search,
        ..Parameters::default()
    };
    let options = parameters.options(&writer)?;
    let constraint = parameters.constraint(&writer)?;
    let as_it_comes = !global.json && options.num_beams == 1 && options.num_return_sequences == 1;
    let unknown = RefCell::new(Unknown::default());
    let mut alone = |number: u64, prompt: &str, out: &mut dyn Write| -> Result<(), InputError> {
        unknown.borrow_mut().note(writer.tokenizer(), prompt);
        let parameters = Parameters { first: number, ..parameters.clone() };
        let how = Generation {
            number: parameters.first,
            stop: parameters.stops(&writer),
            include_stop: parameters.include_stop_str_in_output,
            constraint: constraint.as_ref(),
            ..Generation::new(&options)
        };
        stream(&writer, &parameters, &how, prompt, out)
    };
    let cancel = &Cancel::new();
    let compute = |number: u64, prompt: &str| {
        let parameters = Parameters { first: number, ..parameters.clone() };
        writer.run_until(prompt, &parameters, constraint.as_ref(), cancel)
    };
    let mut show = |number: u64,
                    prompt: &str,
                    response: Response,
                    out: &mut dyn Write|
     -> Result<(), InputError> {
        unknown.borrow_mut().note(writer.tokenizer(), prompt);
        note_truncated(number, response.truncated_tokens);
        match global.json {
            true => write_json(out, &response)?,
            false => {
                for result in response.results() {
                    writeln!(out, "{}", result.generated_text)?;
                }
            }
        }
        Ok(out.flush()?)
    };
    let source = TextSource::of(&flags.prompt, &flags.file, flags.model.as_deref());
    let alone = as_it_comes.then_some(&mut alone as &mut Alone);
    let each = Each { compute: &compute, cancel, show: &mut show, alone };
    let outcome = together::each(&source, global.json, out, each)?;
    flags.guesses.report(&writer);
    flags.caches.report(&writer);
    Ok(outcome)
}

/// Notes the settings of a model that are not supported.
pub fn note_unsupported(writer: &Generator) {
    for (key, value) in &writer.generation_config().unsupported {
        inputs::note_once(&format!(
            "generation_config.json: {key} ({}) is not supported; without it the text may differ",
            say::short(&value.to_string(), 40)
        ));
    }
}

/// Notes that a text lost its first tokens.
pub fn note_truncated(number: u64, tokens: usize) {
    if tokens > 0 {
        inputs::note(&format!(
            "text {}: it is longer than the model's context; its first {tokens} tokens are dropped",
            number + 1
        ));
    }
}

/// Prints text as it is generated.
fn stream(
    writer: &Generator,
    parameters: &Parameters,
    how: &Generation,
    prompt: &str,
    out: &mut dyn Write,
) -> Result<(), InputError> {
    let tokens = writer.prompt(prompt, parameters.prompts())?;
    note_truncated(parameters.first, tokens.truncated());
    // The prompt comes with the first text: settings that fail leave no half line.
    let mut begin = prompt;
    let mut problem = None;
    let mut show = |written: Written| {
        let shown = write!(out, "{}{}", std::mem::take(&mut begin), written.text);
        problem = shown.and_then(|()| out.flush()).err();
        problem.is_none()
    };
    writer.generate(&tokens, how, &mut show)?;
    if let Some(problem) = problem {
        return Err(problem.into());
    }
    Ok(writeln!(out, "{begin}")?)
}
