//! Reading of lines, and printing of answers.

use super::conversation::Conversation;
use super::interrupt::Interrupt;
use super::orders::Order;
use crate::cli::inputs::{self, note};
use crate::cli::{Outcome, write_json};
use anyhow::{Context, Result, bail};
use regard_tasks::Error;
use regard_tasks::chat::{ASSISTANT, Chat, Message, Response, USER};
use regard_tasks::constraint::CompiledConstraint;
use regard_tasks::decode::FinishReason;
use regard_tasks::generate::{Parameters, Written};
use std::io::{BufRead, Read, Write, stderr, stdin};

/// Longest line, in bytes.
const LONGEST: u64 = 1 << 24;

/// What is the same for every question.
pub struct Speaker<'a> {
    pub chat: &'a Chat,
    pub parameters: Parameters,
    /// That of the parameters.
    pub constraint: Option<CompiledConstraint>,
    pub json: bool,
    /// Whether pieces of an answer are printed as they come.
    pub streams: bool,
    /// Whether a person reads what is printed.
    pub at_terminal: bool,
    /// Whether lines that begin with / are commands.
    pub commands: bool,
    pub interrupt: Interrupt,
}

impl Speaker<'_> {
    /// Reads questions and commands until the end.
    pub fn talk(&self, talk: &mut Conversation, out: &mut dyn Write) -> Result<Outcome> {
        if self.at_terminal {
            note("type /help for the commands, Ctrl-D to leave");
        }
        while !self.interrupt.ends()
            && let Some(line) = self.read()?
        {
            let done = match line.and_then(|line| self.order(line)) {
                Ok(Order::Quit) => break,
                Ok(Order::Say(text)) => {
                    let answered = self.ask(talk, text, out)?;
                    answered.map(|()| vec![]).map_err(|error| error.to_string())
                }
                Ok(order) => order.apply(talk).map_err(|error| format!("{error:#}")),
                Err(why) => Err(why),
            };
            match done {
                Ok(said) => said.iter().for_each(|said| note(said)),
                Err(why) => self.failed(&why, out)?,
            }
        }
        Ok(match (self.interrupt.ends(), self.interrupt.failed()) {
            (true, _) => Outcome::Interrupted,
            (false, true) => Outcome::Negative,
            (false, false) => Outcome::Positive,
        })
    }

    /// What a line is: without commands, whatever it begins with, a question.
    fn order(&self, line: String) -> Result<Order, String> {
        match self.commands {
            true => Order::of(&line),
            false if line.trim().is_empty() => Ok(Order::Nothing),
            false => Ok(Order::Say(line)),
        }
    }

    /// Reports a question without an answer, or a command that did nothing.
    fn failed(&self, why: &str, out: &mut dyn Write) -> Result<()> {
        let hint = if why.contains("the model's context") && self.commands {
            " (/reset begins a new one, /undo drops the last question)"
        } else if why.starts_with("KV cache: ") {
            " (--max-new-tokens, --kv-cache f16 or int8, --kv-cache-limit)"
        } else {
            ""
        };
        let why = format!("{why}{hint}");
        if self.at_terminal {
            // The person has read it: the exit code need not tell.
            note(&why);
            return Ok(());
        }
        self.interrupt.fail();
        inputs::failed(&why, self.json, out)?;
        Ok(out.flush()?)
    }

    /// Reads a line; `None` at the end of the input.
    fn read(&self) -> Result<Option<Result<String, String>>> {
        if self.at_terminal {
            let _ = write!(stderr(), "> ").and_then(|()| stderr().flush());
        }
        let mut bytes = vec![];
        let read = || stdin().lock().take(LONGEST).read_until(b'\n', &mut bytes);
        if self.interrupt.waiting(read).context(inputs::STANDARD_INPUT)? == 0 {
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
        &self,
        talk: &mut Conversation,
        text: String,
        out: &mut dyn Write,
    ) -> Result<Result<(), Error>> {
        let messages = [talk.messages(), &[Message::new(USER, text.as_str())]].concat();
        let (mut said, mut token_ids, mut problem) = (String::new(), vec![], None);
        let cancel = self.interrupt.answering();
        let answer = self.chat.answer(
            &messages,
            &self.parameters,
            self.constraint.as_ref(),
            talk.number(),
            &cancel,
            &mut |piece: Written| {
                said.push_str(piece.text);
                token_ids.extend(piece.token);
                if self.streams {
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
            Err(_) if cancel.is_cancelled() => match self.chat.prompt(&messages) {
                Ok(prompt) => Response {
                    message: Message::new(ASSISTANT, said),
                    finish_reason: FinishReason::Cancelled,
                    prompt_tokens: prompt.ids().len(),
                    completion_tokens: token_ids.len(),
                    token_ids,
                    ..Response::default()
                },
                Err(error) => return Ok(Err(error)),
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
        if (!stopped || !answer.message.content.is_empty())
            && let Err(error) = talk.add(text, answer.message.content)
        {
            // The answer was given, and the conversation goes on.
            note(&format!("{error:#}"));
            self.interrupt.fail();
        }
        Ok(Ok(()))
    }
}
