//! Chat templates: how a model wants a conversation to be written.
//!
//! They are Jinja templates, as in Hugging Face's model folders, and are rendered as by
//! `apply_chat_template` of transformers: blocks are trimmed, `raise_exception`, `strftime_now` and
//! `tojson` exist, special tokens are variables, and values are printed as Python prints them.
//!
//! A template comes with a model, so it is a program that somebody else wrote. Its limits:
//!
//! - [`LARGEST`] bytes, with at most [`TAG_TOKENS`] tokens in a tag: the parser and the compiler call
//!   themselves for each operator of an expression.
//! - `STEPS` instructions, which `minijinja` counts as "fuel".
//! - `BUDGET` bytes that all steps together make or look through. `minijinja` bounds neither: a string
//!   doubles with every `a ~ a`, and a list that holds itself twice, thirty times over, takes minutes
//!   to compare. So every instruction that makes or looks through a value is replaced by a call of a
//!   function here, which takes from the budget before it does the same (see `rewrite.rs`). Output
//!   counts too.
//! - Values nest to a depth of `DEEPEST`, macros to one of `RECURSION`.
//! - Templates cannot load others, and know no file, variable of the environment or network.

mod budget;
mod functions;
mod json;
mod methods;
mod operators;
mod python;
mod rewrite;
mod source;
mod strftime;
#[cfg(test)]
mod tests;

use super::Tokenizer;
use minijinja::machinery::{self, CodeGenerator};
use minijinja::{AutoEscape, Environment, ErrorKind, Value};
use regard_models::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::SystemTime;

pub use source::{CHAT_TEMPLATE_FILE, LARGEST};

/// Most tokens of Jinja in one tag.
pub const TAG_TOKENS: usize = 2000;

/// Instructions that a template may take.
const STEPS: u64 = 1_000_000;

/// Macros within macros; each counts four times, a loop once.
const RECURSION: usize = 200;

/// Stack of the thread that renders: parsing a chain of `elif` takes some hundred bytes for each.
const STACK: usize = 64 << 20;

/// A message of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// Who says it: `system`, `user` or `assistant`, and what else the model's template knows.
    pub role: String,
    /// Text of the message.
    pub content: String,
}

impl Message {
    /// Creates a message.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Message {
        Message { role: role.into(), content: content.into() }
    }
}

/// How a conversation is rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenderOptions {
    /// Whether the text ends where the assistant begins to speak.
    pub add_generation_prompt: bool,
    /// Time that `strftime_now` tells, in UTC.
    pub now: SystemTime,
}

impl Default for RenderOptions {
    fn default() -> RenderOptions {
        RenderOptions { add_generation_prompt: true, now: SystemTime::now() }
    }
}

/// A chat template.
#[derive(Clone, Debug)]
pub struct ChatTemplate {
    source: String,
    /// Where it comes from, for messages.
    place: String,
    /// Special tokens by the names that templates use, such as `bos_token`.
    special: Vec<(&'static str, String)>,
}

impl ChatTemplate {
    /// Creates a template from its text, for the special tokens of a tokenizer. `place` names it in
    /// messages.
    ///
    /// # Errors
    /// If it is too large, or no Jinja template.
    pub fn new(source: &str, place: &str, tokenizer: &Tokenizer) -> Result<ChatTemplate> {
        let template = ChatTemplate {
            source: source::prepared(source)
                .map_err(|e| Error::invalid(format!("{place}: {e}")))?,
            place: place.to_string(),
            special: tokenizer.special_tokens(),
        };
        template.on_own_stack(|| template.compile().map(|_| ()))?;
        Ok(template)
    }

    /// Returns what it was made of.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Writes a conversation as the model was trained to read it, with its special tokens.
    ///
    /// # Errors
    /// If the template refuses the conversation (`raise_exception`), fails, or exceeds a limit.
    pub fn render(&self, messages: &[Message], options: RenderOptions) -> Result<String> {
        self.on_own_stack(|| self.run(messages, options))
    }

    /// Compiles it to instructions within the budget.
    fn compile(&self) -> Result<machinery::Instructions<'_>> {
        let failed = |error: minijinja::Error| self.error(&error);
        let (name, source) = (self.place.as_str(), self.source.as_str());
        source::check_tags(source).map_err(failed)?;
        let tree = machinery::parse(source, name, source::syntax()).map_err(failed)?;
        rewrite::check_constants(&tree).map_err(failed)?;
        let mut code = CodeGenerator::new(name, source);
        code.compile_stmt(&tree);
        rewrite::bounded(&code.finish().0).map_err(failed)
    }

    fn run(&self, messages: &[Message], options: RenderOptions) -> Result<String> {
        let message = |message: &Message| {
            let pairs = [("role", &message.role), ("content", &message.content)];
            Value::from_pairs(pairs.map(|(key, text)| (key, Value::from(text.as_str()))))
        };
        let messages: Vec<Value> = messages.iter().map(message).collect();
        let mut variables = vec![
            ("messages", Value::from(messages)),
            ("add_generation_prompt", Value::from(options.add_generation_prompt)),
            ("tools", Value::from(())),
            ("documents", Value::from(())),
            (strftime::NOW, strftime::seconds(options.now)),
        ];
        variables.extend(self.special.iter().map(|(name, token)| (*name, Value::from(&token[..]))));
        static ENVIRONMENT: OnceLock<Environment<'static>> = OnceLock::new();
        let instructions = self.compile()?;
        let (mut text, blocks) = (String::new(), BTreeMap::new());
        let mut out = machinery::make_string_output(&mut text);
        let root = Value::from_pairs(variables);
        let environment = ENVIRONMENT.get_or_init(functions::environment);
        let ran =
            machinery::eval(environment, &instructions, root, &blocks, &mut out, AutoEscape::None);
        match ran {
            Ok(_) => Ok(text),
            Err(error) => Err(self.error(&error)),
        }
    }

    /// Runs on a thread with a stack that any template within the limits fits.
    fn on_own_stack<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("chat template".into()).stack_size(STACK);
            let running = thread.spawn_scoped(scope, work);
            let failed = |why: &str| Error::invalid(format!("{}: {why}", self.place));
            let running = running.map_err(|e| failed(&format!("no thread to render it: {e}")))?;
            running.join().unwrap_or_else(|_| Err(failed("the template engine failed")))
        })
    }

    /// Error of the template, with its place and line.
    fn error(&self, error: &minijinja::Error) -> Error {
        let what = match (error.kind(), error.detail()) {
            (ErrorKind::OutOfFuel, _) => {
                format!("it takes more than {STEPS} steps; does it loop forever?")
            }
            (_, Some("recursion limit exceeded")) => {
                "it calls itself without an end: macros and loops nest too deeply".to_string()
            }
            (ErrorKind::InvalidOperation, Some(detail)) => detail.to_string(),
            (kind, Some(detail)) => format!("{kind}: {detail}"),
            (kind, None) => kind.to_string(),
        };
        let line = error.line().map_or(String::new(), |line| format!(", line {line}"));
        Error::invalid(format!("{}{line}: {what}", self.place))
    }
}
