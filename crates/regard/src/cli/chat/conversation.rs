//! A conversation, and the files that it is read from and saved to.

use anyhow::{Context, Result, bail};
use regard_models::checkpoint::{read_text, write_file};
use regard_tasks::chat::{ASSISTANT, Inputs, Message, SYSTEM, USER};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Messages so far.
#[derive(Default)]
pub struct Conversation {
    messages: Vec<Message>,
    /// File that it is saved to after each answer.
    file: Option<PathBuf>,
    /// Files that it was read from or saved to, and may replace.
    own: BTreeSet<PathBuf>,
    /// Questions that were dropped.
    dropped: u64,
}

impl Conversation {
    /// Begins with the messages of a file, if there is one. After each answer it is saved to
    /// another or the same.
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
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
                bail!("--save: {}: there is no folder {}", path.display(), folder.display());
            }
            talk.own.extend(load.filter(|load| *load == path).map(Path::to_path_buf));
            talk.file = Some(path.to_path_buf());
        }
        Ok(talk)
    }

    /// Returns the messages.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Returns the file that it is saved to after each answer.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Returns the index of the next question. With the seed it determines the random numbers of
    /// its answer: a conversation that was loaded goes on as it would have, and a question that is
    /// asked again gets another answer.
    pub fn number(&self) -> u64 {
        let asked = self.messages.iter().filter(|message| message.role == USER).count();
        asked as u64 + (self.dropped << 32)
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
    /// If it cannot be saved; it is added all the same.
    pub fn add(&mut self, question: String, answer: String) -> Result<()> {
        self.messages.push(Message::new(USER, question));
        self.messages.push(Message::new(ASSISTANT, answer));
        self.save()
    }

    /// Drops all messages but that of the system. Its file stays as it is until the next answer.
    pub fn reset(&mut self) {
        self.messages.truncate(usize::from(self.has_system()));
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
        self.dropped += 1;
        self.save()?;
        Ok(Some(question))
    }

    /// Saves to a file. One that exists is replaced only if it is the conversation's own, or with
    /// `replace`.
    ///
    /// # Errors
    /// If it exists, or cannot be written.
    pub fn save_to(&mut self, path: &Path, replace: bool) -> Result<()> {
        if path.exists() && !replace && !self.own.contains(path) {
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
        self.own.insert(path.to_path_buf());
        Ok(())
    }

    fn save(&mut self) -> Result<()> {
        match self.file.clone() {
            Some(path) => self.save_to(&path, false).context("--save"),
            None => Ok(()),
        }
    }
}

/// Whether a file has a message in each line.
fn is_lines(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "jsonl")
}

/// Reads messages: a list, an object with nothing but `messages`, or one in each line.
fn read(path: &Path) -> Result<Vec<Message>> {
    let text = read_text(path)?;
    let place = path.display();
    if !is_lines(path) {
        if text.trim_start().starts_with('{') {
            let need = || format!("{place}: need an object with messages, and nothing else");
            return Ok(serde_json::from_str::<Inputs>(&text).with_context(need)?.messages);
        }
        let need = || format!("{place}: need a list of messages with role and content");
        return serde_json::from_str(&text).with_context(need);
    }
    let lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    let message = |(line, number): (&str, usize)| {
        let need = || format!("{place}: line {number}: need a message with role and content");
        serde_json::from_str(line).with_context(need)
    };
    lines.map(message).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use regard_fuzz::Scratch;

    #[test]
    fn each_question_has_a_number_of_its_own() {
        let mut talk = Conversation::default();
        talk.set_system(Some("be kind"));
        assert_eq!(talk.number(), 0);
        talk.add("a".into(), "b".into()).unwrap();
        talk.add("c".into(), "d".into()).unwrap();
        assert_eq!(talk.number(), 2);
        talk.undo().unwrap();
        let again = talk.number();
        assert!(again != 0 && again != 1 && again != 2, "{again}");
        talk.reset();
        assert_ne!(talk.number(), again);
    }

    #[test]
    fn a_loaded_conversation_goes_on_with_the_same_numbers() {
        let scratch = Scratch::default();
        let path = scratch.write(
            "talk.json",
            br#"{"messages": [{"role": "user", "content": "a"},
            {"role": "assistant", "content": "b"}]}"#,
        );
        let talk = Conversation::begin(Some(&path), Some(&path)).unwrap();
        assert_eq!((talk.messages().len(), talk.number()), (2, 1));
    }

    #[test]
    fn what_would_be_lost_is_an_error_and_files_wait_for_an_answer() {
        let scratch = Scratch::default();
        let text = br#"{"messages": [], "tools": ["x"]}"#;
        let path = scratch.write("talk.json", text);
        let error = Conversation::begin(Some(&path), Some(&path)).err().unwrap();
        let error = format!("{error:#}");
        assert!(error.contains("--load") && error.contains("`tools`"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), text);
        let new = scratch.folder().join("new.jsonl");
        let mut talk = Conversation::begin(None, Some(&new)).unwrap();
        assert!(!new.exists());
        talk.add("a".into(), "b".into()).unwrap();
        let saved = std::fs::read_to_string(&new).unwrap();
        assert_eq!(saved.lines().count(), 2);
        talk.reset();
        assert_eq!(std::fs::read_to_string(&new).unwrap(), saved);
        let nowhere = scratch.folder().join("none/new.jsonl");
        let error = Conversation::begin(None, Some(&nowhere)).err().unwrap().to_string();
        assert!(error.contains("there is no folder"), "{error}");
        // Written by somebody else since then.
        let other = scratch.folder().join("other.jsonl");
        let mut talk = Conversation::begin(None, Some(&other)).unwrap();
        scratch.write("other.jsonl", b"theirs");
        let error = talk.add("a".into(), "b".into()).unwrap_err();
        assert!(format!("{error:#}").contains("exists"), "{error:#}");
        assert_eq!(std::fs::read(&other).unwrap(), b"theirs");
    }
}
