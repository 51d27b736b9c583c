//! A conversation, and the files that it is read from and saved to.

use anyhow::{Context, Result, bail};
use regard_models::checkpoint::{read_text, write_file};
use regard_tasks::chat::{ASSISTANT, Message, SYSTEM, USER};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Messages so far.
#[derive(Default)]
pub struct Conversation {
    messages: Vec<Message>,
    /// File that it is saved to after each answer.
    file: Option<PathBuf>,
    /// Files that it was saved to.
    saved: BTreeSet<PathBuf>,
}

impl Conversation {
    /// Begins with the messages of a file, if there is one, and saves to another or the same.
    ///
    /// # Errors
    /// If the first cannot be read, or the second exists and is not the first.
    pub fn begin(load: Option<&Path>, save: Option<&Path>) -> Result<Conversation> {
        let mut talk = Conversation::default();
        if let Some(path) = load {
            talk.messages = read(path).context("--load")?;
        }
        if let Some(path) = save {
            if path.exists() && load != Some(path) {
                bail!(
                    "--save: {} exists; to continue it: --load {0} --save {0}; otherwise choose \
                     another name",
                    path.display()
                );
            }
            talk.file = Some(path.to_path_buf());
            talk.save_to(path, true).context("--save")?;
        }
        Ok(talk)
    }

    /// Returns the messages.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Sets or removes the system message, which is the first one.
    pub fn set_system(&mut self, text: Option<&str>) {
        if self.has_system() {
            self.messages.remove(0);
        }
        if let Some(text) = text {
            self.messages.insert(0, Message::new(SYSTEM, text));
        }
    }

    fn has_system(&self) -> bool {
        self.messages.first().is_some_and(|message| message.role == SYSTEM)
    }

    /// Adds a question with its answer.
    ///
    /// # Errors
    /// If it cannot be saved.
    pub fn add(&mut self, question: String, answer: String) -> Result<()> {
        self.messages.push(Message::new(USER, question));
        self.messages.push(Message::new(ASSISTANT, answer));
        self.save()
    }

    /// Drops all messages but that of the system.
    ///
    /// # Errors
    /// If it cannot be saved.
    pub fn reset(&mut self) -> Result<()> {
        self.messages.truncate(usize::from(self.has_system()));
        self.save()
    }

    /// Drops the last question and what follows it; returns the question.
    ///
    /// # Errors
    /// If it cannot be saved.
    pub fn undo(&mut self) -> Result<Option<String>> {
        let Some(at) = self.messages.iter().rposition(|message| message.role == USER) else {
            return Ok(None);
        };
        let question = self.messages.swap_remove(at).content;
        self.messages.truncate(at);
        self.save()?;
        Ok(Some(question))
    }

    /// Saves to a file. One that exists is replaced only if it was saved before, or with `replace`.
    ///
    /// # Errors
    /// If it exists, or cannot be written.
    pub fn save_to(&mut self, path: &Path, replace: bool) -> Result<()> {
        if path.exists() && !replace && !self.saved.contains(path) {
            bail!("{0} exists; to replace it: /save! {0}", path.display());
        }
        let bytes = match is_lines(path) {
            true => {
                let line =
                    |message: &Message| serde_json::to_string(message).map(|line| line + "\n");
                self.messages.iter().map(line).collect::<Result<String, _>>()?
            }
            false => serde_json::to_string_pretty(&self.messages)? + "\n",
        };
        write_file(path, bytes.as_bytes())?;
        self.saved.insert(path.to_path_buf());
        Ok(())
    }

    fn save(&mut self) -> Result<()> {
        match self.file.clone() {
            Some(path) => self.save_to(&path, true),
            None => Ok(()),
        }
    }
}

/// Whether a file has a message in each line.
fn is_lines(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "jsonl")
}

/// Reads messages: a list, an object with `messages`, or one in each line.
fn read(path: &Path) -> Result<Vec<Message>> {
    let text = read_text(path)?;
    let place = path.display();
    if !is_lines(path) {
        let mut whole: Value =
            serde_json::from_str(&text).with_context(|| format!("{place}: not JSON"))?;
        if let Some(messages) = whole.get_mut("messages") {
            whole = messages.take();
        }
        let need = || format!("{place}: need a list of messages with role and content");
        return serde_json::from_value(whole).with_context(need);
    }
    let lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    let message = |(line, number): (&str, usize)| {
        let need = || format!("{place}: line {number}: need a message with role and content");
        serde_json::from_str(line).with_context(need)
    };
    lines.map(message).collect()
}
