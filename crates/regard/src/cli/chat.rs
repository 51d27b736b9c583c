//! `regard chat`: a conversation with a language model.

mod conversation;
mod interrupt;
mod orders;

use super::generate::note_unsupported;
use super::inputs::{self, note};
use super::search::{LENGTH, Search};
use super::sequences::{CacheFlags, GuessFlags};
use super::{Global, Outcome, write_json};
use crate::hub::Hub;
use crate::models;
use anyhow::{Context, Result, bail};
use clap::Args;
use conversation::Conversation;
use interrupt::Interrupt;
use orders::Order;
use regard_models::checkpoint::read_text;
use regard_tasks::Error;
use regard_tasks::chat::{ASSISTANT, Chat, ChatTemplate, Message, Response, USER};
use regard_tasks::decode::FinishReason;
use regard_tasks::generate::{Generator, Parameters, Written};
use std::io::{BufRead, IsTerminal, Read, Write, stderr, stdin, stdout};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Each line is what you say; the answer is printed as it is generated. Lines that begin with / are
commands:
  /help          list the commands
  /reset         begin a new conversation (the system message stays)
  /undo          drop the last question and its answer
  /system TEXT   set the system message; without TEXT, remove it
  /save FILE     save the conversation; /save! FILE replaces a file
  /quit          leave, as Ctrl-D does
To say something that begins with /, write a space or another / before it.

Ctrl-C stops an answer; its beginning stays in the conversation. Without an answer, it leaves.

Examples (the first use downloads the model):
  regard chat --model HuggingFaceTB/SmolLM2-135M-Instruct  # download
  regard chat --model HuggingFaceTB/SmolLM2-135M-Instruct --system 'Answer in French.'  # download
  regard chat --model model.gguf --save talk.jsonl   # needs model.gguf; its template is inside
  regard chat --model FOLDER --load talk.jsonl --temperature 0.7 --do-sample --seed 7
  printf 'Hello\\nAnd again\\n' | regard chat --model FOLDER --json
  regard chat --model FOLDER --chat-template chatml.jinja  # FOLDER has none of its own

The model needs a chat template: chat_template.jinja in its folder, chat_template in its
tokenizer_config.json or in its GGUF file, or a file given by --chat-template. It is rendered as by
apply_chat_template of transformers, within limits of time and memory.

Nothing that was said is ever dropped: a conversation that no longer fits the model's context is an
error with both numbers. What was said before is not computed again, as long as the program runs.

--load reads, and --save and /save write JSON: {\"role\": …, \"content\": …} in each line of a .jsonl
file, or a list of these in any other.

Without a terminal, each line of standard input is a question, and its answer goes to standard
output; blank lines are left out. If a question fails, the error goes to standard error, it is left
out of the conversation, and the exit code is 1.

--json prints one object per question, when the answer is complete: message (role, content),
token_ids, score, finish_reason (eos: the end of the turn; stop: a stop string; length: the maximum
length; cancelled: Ctrl-C), prompt_tokens (the whole conversation), completion_tokens; with --lookup
or --draft also guesses (guessed, accepted).";

/// Longest line, in bytes.
const LONGEST: u64 = 1 << 24;

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
    #[command(flatten)]
    hub: Hub,
    /// Maximum number of tokens of an answer [default: the model's, or 4096]
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

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    if flags.search.num_return_sequences.is_some_and(|count| count > 1) {
        bail!("--num-return-sequences: a conversation goes on with one answer; leave it out");
    }
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
    let options = parameters.options(chat.generator())?;
    let mut speaker = Speaker {
        streams: !global.json && options.num_beams == 1,
        chat: &chat,
        parameters,
        json: global.json,
        at_terminal: stdin().is_terminal() && stdout().is_terminal(),
        interrupt: Interrupt::listen()?,
        turns: 0,
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

/// What is the same for every question.
struct Speaker<'a> {
    chat: &'a Chat,
    parameters: Parameters,
    json: bool,
    /// Whether pieces of an answer are printed as they come.
    streams: bool,
    at_terminal: bool,
    interrupt: Interrupt,
    /// Questions so far.
    turns: u64,
}

impl Speaker<'_> {
    /// Reads questions and commands until the end.
    fn talk(&mut self, talk: &mut Conversation, out: &mut dyn Write) -> Result<Outcome> {
        if self.at_terminal {
            note("type /help for the commands, Ctrl-D to leave");
        }
        let mut outcome = Outcome::Positive;
        while let Some(line) = self.read()? {
            let order = line.and_then(|line| Order::of(&line));
            let done = match order {
                Ok(Order::Nothing) => continue,
                Ok(Order::Quit) => break,
                Ok(Order::Say(text)) => match self.ask(talk, text, out)? {
                    Ok(()) => continue,
                    Err(error) => {
                        self.failed(&error.to_string(), out)?;
                        Err(())
                    }
                },
                Ok(order) => order.apply(talk).map_err(|error| note(&format!("{error:#}"))),
                Err(why) => {
                    note(&why);
                    Err(())
                }
            };
            match done {
                Ok(said) => said.iter().for_each(|said| note(said)),
                // At a terminal, the person has read it.
                Err(()) if self.at_terminal => {}
                Err(()) => outcome = Outcome::Negative,
            }
        }
        Ok(outcome)
    }

    /// Reports a question without an answer.
    fn failed(&self, why: &str, out: &mut dyn Write) -> Result<()> {
        if !self.at_terminal {
            inputs::failed(why, self.json, out)?;
            return Ok(out.flush()?);
        }
        let hint = match why.contains("the model's context") {
            true => " (/reset begins a new one, /undo drops the last question)",
            false => "",
        };
        note(&format!("{why}{hint}"));
        Ok(())
    }

    /// Reads a line; `None` at the end of the input.
    fn read(&self) -> Result<Option<Result<String, String>>> {
        if self.at_terminal {
            let _ = write!(stderr(), "> ").and_then(|()| stderr().flush());
        }
        let mut bytes = vec![];
        let read = stdin().lock().take(LONGEST).read_until(b'\n', &mut bytes);
        if read.context(inputs::STANDARD_INPUT)? == 0 {
            if self.at_terminal {
                let _ = writeln!(stderr());
            }
            return Ok(None);
        }
        if bytes.len() as u64 == LONGEST {
            bail!("{}: a line has more than {LONGEST} bytes", inputs::STANDARD_INPUT);
        }
        let line = String::from_utf8(bytes).map_err(|_| "the line is not UTF-8".to_string());
        Ok(Some(line.map(|line| line.trim_end_matches(['\n', '\r']).to_string())))
    }

    /// Asks a question and prints the answer. The outer error ends the program, the inner one is of
    /// this question.
    fn ask(
        &mut self,
        talk: &mut Conversation,
        text: String,
        out: &mut dyn Write,
    ) -> Result<Result<(), Error>> {
        let messages = [talk.messages(), &[Message::new(USER, text.as_str())]].concat();
        let number = self.turns;
        self.turns += 1;
        let (mut said, mut problem) = (String::new(), None);
        let cancel = self.interrupt.answering();
        let streams = self.streams;
        let answer = self.chat.answer(
            &messages,
            &self.parameters,
            number,
            &cancel,
            &mut |piece: Written| {
                said.push_str(piece.text);
                if streams {
                    let shown = write!(out, "{}", piece.text).and_then(|()| out.flush());
                    problem = shown.err();
                }
                problem.is_none() && !cancel.is_cancelled()
            },
        );
        self.interrupt.answered();
        if let Some(problem) = problem {
            return Err(problem.into());
        }
        let answer = match answer {
            Ok(answer) => answer,
            // It was stopped while the conversation was read, or between two tokens.
            Err(_) if cancel.is_cancelled() => Response {
                message: Message::new(ASSISTANT, said),
                finish_reason: FinishReason::Cancelled,
                ..Response::default()
            },
            Err(error) => return Ok(Err(error)),
        };
        match (self.json, self.streams) {
            (true, _) => write_json(out, &answer)?,
            (false, true) => writeln!(out)?,
            (false, false) => writeln!(out, "{}", answer.message.content)?,
        }
        out.flush()?;
        let stopped = answer.finish_reason == FinishReason::Cancelled;
        if stopped {
            note("stopped");
        }
        // A question that was stopped before its answer began is taken back.
        if !stopped || !answer.message.content.is_empty() {
            talk.add(text, answer.message.content)?;
        }
        Ok(Ok(()))
    }
}
