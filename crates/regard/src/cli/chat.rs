//! `regard chat`: a conversation with a language model.

mod conversation;
mod interrupt;
mod orders;
mod speaker;

use super::generate::note_unsupported;
use super::inputs;
use super::search::{LENGTH, Search};
use super::sequences::{CacheFlags, GuessFlags};
use super::{Global, Outcome};
use crate::hub::Hub;
use crate::models;
use anyhow::{Context, Result, bail};
use clap::Args;
use conversation::Conversation;
use interrupt::Interrupt;
use regard_models::checkpoint::read_text;
use regard_tasks::chat::{Chat, ChatTemplate};
use regard_tasks::generate::{Generator, Parameters};
use speaker::Speaker;
use std::io::{IsTerminal, Write, stdin, stdout};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Each line is what you say; the answer is printed as it is generated. Lines that you type and that
begin with / are commands:
  /help          list the commands
  /reset         begin a new conversation (the system message stays)
  /undo          drop the last question and its answer
  /system TEXT   set the system message; without TEXT, remove it
  /save FILE     save the conversation; /save! FILE replaces a file
  /quit          leave, as Ctrl-D does
To say something that begins with /, write a space or another / before it.

Ctrl-C stops an answer; its beginning stays in the conversation. Without an answer, it leaves. If
the answer goes on, another Ctrl-C, a second later, ends the program (exit code 130).

Examples (the first use downloads the model):
  regard chat --model HuggingFaceTB/SmolLM2-135M-Instruct  # download
  regard chat --model HuggingFaceTB/SmolLM2-135M-Instruct --system 'Answer in French.'  # download
  regard chat --model model.gguf --save talk.jsonl   # needs model.gguf; its template is inside
  regard chat --model FOLDER --load talk.jsonl --temperature 0.7 --do-sample --seed 7
  printf 'Hello\\nAnd again\\n' | regard chat --model FOLDER --json
  regard chat --model FOLDER --chat-template chatml.jinja  # FOLDER has none of its own

The model needs a chat template: chat_template.jinja in its folder, chat_template in its
tokenizer_config.json or in its GGUF file, or a file given by --chat-template. It is rendered as by
apply_chat_template of transformers, within limits of time and memory. Dates in it are of UTC.

Nothing that was said is ever dropped: a conversation that no longer fits the model's context is an
error with both numbers. As long as the program runs, a question is read with the answer before it;
what was said earlier is not computed again. Where neither a flag nor the model's max_new_tokens
sets a length, an answer has at most 4096 tokens, and no more than --kv-cache-limit has room for.

--load reads, and --save and /save write JSON: {\"role\": …, \"content\": …} in each line of a .jsonl
file, or a list of these in any other. --save writes after each answer, for the first time after the
first one, and never replaces a file but that of --load. With --seed, a conversation that is loaded
goes on as it would have without a break.

Where standard input is no terminal, each line is a question, whatever it begins with, and its
answer goes to standard output; blank lines are left out. With --commands, lines that begin with /
are commands there too. If a line fails, the error goes to standard error, an empty line (or
{\"error\": …} with --json) to standard output, a question is left out of the conversation, and the
exit code is 1. Ctrl-C stops the answer and, without --commands, the program (130).

--json prints one object per question, when the answer is complete: message (role, content),
token_ids, score, finish_reason (eos: the end of the turn; stop: a stop string; length: the maximum
length; cancelled: Ctrl-C), prompt_tokens (the whole conversation), completion_tokens; with --lookup
or --draft also guesses (guessed, accepted).";

/// Talk with a language model in the terminal
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Flags {
    /// Model: a folder, a GGUF file, a name listed by `regard models`, or a Hugging Face Hub id
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// System message: how the model is to answer
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// Chat template to use instead of the model's, a Jinja file
    #[arg(long, value_name = "FILE")]
    chat_template: Option<PathBuf>,
    /// Conversation to continue
    #[arg(long, value_name = "FILE")]
    load: Option<PathBuf>,
    /// Save the conversation after each answer
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Lines that begin with / are commands, also without a terminal
    #[arg(long)]
    commands: bool,
    #[command(flatten)]
    hub: Hub,
    /// Maximum number of tokens of an answer [default: the model's, or at most 4096]
    #[arg(long, value_name = "N", help_heading = LENGTH)]
    max_new_tokens: Option<usize>,
    /// Stop before this text; can be repeated
    #[arg(long, value_name = "TEXT", help_heading = LENGTH)]
    stop: Vec<String>,
    #[command(flatten)]
    search: Search,
    #[command(flatten)]
    guesses: GuessFlags,
    #[command(flatten)]
    caches: CacheFlags,
}

pub fn run(mut flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    if flags.search.num_return_sequences.is_some_and(|count| count > 1) {
        bail!("--num-return-sequences: a conversation goes on with one answer; leave it out");
    }
    // Whatever generation_config.json says.
    flags.search.num_return_sequences = Some(1);
    let mut talk = Conversation::begin(flags.load.as_deref(), flags.save.as_deref())?;
    if flags.system.is_some() {
        talk.set_system(flags.system.as_deref());
    }
    let mut chat = open(&flags)?;
    flags.caches.apply(chat.generator_mut())?;
    flags.guesses.apply(chat.generator_mut(), &flags.hub)?;
    let chat = chat;
    note_unsupported(chat.generator());
    let mut search = flags.search.parameters(chat.generator().defaults(), global.seed)?;
    search.max_new_tokens = flags.max_new_tokens;
    let stop = Some(flags.stop).filter(|stop| !stop.is_empty());
    let parameters = Parameters { stop, search, ..Parameters::default() };
    let options = chat.options(&parameters)?;
    let typed = stdin().is_terminal();
    let commands = typed || flags.commands;
    let speaker = Speaker {
        streams: !global.json && options.num_beams == 1,
        chat: &chat,
        constraint: parameters.constraint(chat.generator())?,
        parameters,
        json: global.json,
        at_terminal: typed && stdout().is_terminal(),
        commands,
        interrupt: Interrupt::listen(commands)?,
    };
    let outcome = speaker.talk(&mut talk, out)?;
    flags.guesses.report(chat.generator());
    flags.caches.report(chat.generator());
    Ok(outcome)
}

/// Opens the model, with the template that was given or its own.
fn open(flags: &Flags) -> Result<Chat> {
    let model = Some(models::required::<Chat>(flags.model.as_deref())?);
    let Some(path) = &flags.chat_template else { return models::open(model, &flags.hub) };
    let path = inputs::file(path);
    let source = read_text(&path).context("--chat-template")?;
    let generator: Generator = models::open(model, &flags.hub)?;
    let name = path.display().to_string();
    let template = ChatTemplate::new(&source, &name, generator.tokenizer());
    Ok(Chat::new(generator, template.context("--chat-template")?))
}
