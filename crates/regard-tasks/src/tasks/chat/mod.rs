//! Conversations with a language model that was trained for them.

mod pipeline;

pub use crate::text::{ChatTemplate, Message, RenderOptions};
pub use pipeline::{Inputs, Response};

use crate::batching::Cancel;
use crate::constraint::CompiledConstraint;
use crate::decode::{Options, SearchParameters};
use crate::generate::{Generation, Generator, Parameters, Prompt, PromptOptions, Watch};
use regard_models::{Error, ModelFiles, Result};

/// Most tokens of an answer if neither the caller nor the model names a number: memory for them is
/// reserved, so they are fewer where that is little.
const LONGEST: usize = 4096;

/// Role of the model's messages.
pub const ASSISTANT: &str = "assistant";
/// Role of the other speaker's messages.
pub const USER: &str = "user";
/// Role of the message that says how to answer.
pub const SYSTEM: &str = "system";

/// A language model with its chat template.
pub struct Chat {
    generator: Generator,
    template: ChatTemplate,
}

impl Chat {
    /// Opens a model with the chat template in its files.
    ///
    /// # Errors
    /// If it is no language model, or has no template.
    pub fn load(files: impl Into<ModelFiles>) -> Result<Chat> {
        let files = crate::train::files(files)?;
        let generator = Generator::load(files.clone())?;
        let template = ChatTemplate::of(&files, generator.tokenizer())?.ok_or_else(|| {
            Error::file(
                files.place(),
                "has no chat template, neither chat_template.jinja nor chat_template in \
                 tokenizer_config.json: need a model that was trained for conversations, or the \
                 template that it was trained with (--chat-template FILE)",
            )
        })?;
        Ok(Chat::new(generator, template))
    }

    /// Creates one of a model and a template. An answer also ends at the token with which the template
    /// ends what the assistant says, and at the end token of the tokenizer: `generation_config.json`
    /// may lack them.
    pub fn new(mut generator: Generator, template: ChatTemplate) -> Chat {
        let ends = [generator.tokenizer().special().eos, end_of_turn(&generator, &template)];
        ends.into_iter().flatten().for_each(|end| generator.end_at(end));
        Chat { generator, template }
    }

    /// Returns the language model.
    pub fn generator(&self) -> &Generator {
        &self.generator
    }

    /// Returns the language model, to change its limits.
    pub fn generator_mut(&mut self) -> &mut Generator {
        &mut self.generator
    }

    /// Returns the chat template.
    pub fn template(&self) -> &ChatTemplate {
        &self.template
    }

    /// Makes the prompt of a conversation, up to where the assistant begins to speak.
    ///
    /// # Errors
    /// If the template refuses the conversation or writes nothing for it, or it does not fit the
    /// model's context: nothing of it is dropped.
    pub fn prompt(&self, messages: &[Message]) -> Result<Prompt> {
        if messages.is_empty() {
            return Err(Error::invalid("messages: need at least one"));
        }
        let text = self.template.render(messages, RenderOptions::default())?;
        // An empty prompt would be answered with something else.
        if text.trim().is_empty() {
            return Err(Error::invalid(
                "the chat template writes nothing for this conversation: need roles that it knows, \
                 or another template",
            ));
        }
        // The template writes the special tokens.
        let how = PromptOptions { add_special_tokens: false, truncate: true };
        let prompt = self.generator.prompt(&text, how)?;
        let (tokens, most) = (prompt.ids().len() + prompt.truncated(), self.generator.context());
        if tokens >= most {
            return Err(Error::invalid(format!(
                "the conversation has {tokens} tokens, and the model's context of {most} must hold \
                 them and an answer: begin a new one, or shorten it"
            )));
        }
        Ok(prompt)
    }

    /// Returns the options of answers: those of the model, overridden by the parameters. There is
    /// one answer unless the parameters ask for more: a conversation goes on with one.
    ///
    /// # Errors
    /// As [`Parameters::options`].
    pub fn options(&self, parameters: &Parameters) -> Result<Options> {
        let count = parameters.search.num_return_sequences.or(Some(1));
        let search = SearchParameters { num_return_sequences: count, ..parameters.search.clone() };
        Parameters { search, ..parameters.clone() }.options(&self.generator)
    }

    /// Most tokens of an answer.
    fn longest(
        &self,
        prompt: &Prompt,
        options: &Options,
        parameters: &Parameters,
    ) -> Result<usize> {
        let begun = prompt.ids().len();
        let room = self.generator.context().saturating_sub(begun);
        match (options.max_new_tokens, parameters.search.max_length) {
            (Some(new), _) => Ok(new.min(room)),
            (None, Some(length)) if length <= begun => Err(Error::invalid(format!(
                "max_length: got {length}, but the conversation has {begun} tokens already; raise \
                 max_length, or give max_new_tokens"
            ))),
            (None, Some(length)) => Ok((length - begun).min(room)),
            (None, None) => {
                let rows = options.num_beams.max(options.num_return_sequences);
                Ok(self.generator.fitting(rows, begun, LONGEST.min(room)))
            }
        }
    }

    /// Answers a conversation. `constraint` is that of the parameters ([`Parameters::constraint`]),
    /// which is compiled once for many answers; `number` is the index of the input; `watch` gets
    /// the pieces of the answer as they come, and ends it by returning false; `cancel` ends it with
    /// an error, also while the conversation is read.
    ///
    /// # Errors
    /// As [`Chat::prompt`]; if a parameter is invalid, or a step fails.
    pub fn answer(
        &self,
        messages: &[Message],
        parameters: &Parameters,
        constraint: Option<&CompiledConstraint>,
        number: u64,
        cancel: &Cancel,
        watch: &mut Watch,
    ) -> Result<Response> {
        if parameters.truncate {
            return Err(Error::invalid(
                "truncate: a conversation is not truncated; what was said would be missing",
            ));
        }
        let prompt = self.prompt(messages)?;
        let options = self.options(parameters)?;
        let longest = self.longest(&prompt, &options, parameters)?;
        let options = Options { max_new_tokens: Some(longest), ..options };
        let cancel = Some(cancel);
        let how = Generation { number, cancel, constraint, ..Generation::new(&options) };
        let said = self.generator.respond("", &prompt, parameters, &how, watch)?;
        Ok(Response::from(said))
    }
}

/// The token with which a template ends what the assistant says; `None` if it has none.
fn end_of_turn(generator: &Generator, template: &ChatTemplate) -> Option<u32> {
    const WORD: &str = "regard";
    let messages = [Message::new(USER, "a"), Message::new(ASSISTANT, WORD)];
    let options = RenderOptions { add_generation_prompt: false, ..RenderOptions::default() };
    let text = template.render(&messages, options).ok()?;
    let (_, after) = text.rsplit_once(WORD)?;
    let ids = generator.tokenizer().encode(after.trim_start()).ok()?.ids;
    ids.first().copied().filter(|id| !generator.tokenizer().is_text(*id))
}
