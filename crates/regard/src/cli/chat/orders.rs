//! Lines that a person types, or a script with `--commands`: commands, or what is said.

use super::conversation::Conversation;
use anyhow::Result;
use regard_tasks::say::did_you_mean;
use std::path::PathBuf;

/// The commands, with what they take and do.
const ORDERS: [(&str, &str); 7] = [
    ("/help", "list the commands"),
    ("/reset", "begin a new conversation (the system message stays)"),
    ("/undo", "drop the last question and its answer"),
    ("/system", "TEXT: set the system message; without TEXT, remove it"),
    ("/save", "FILE: save the conversation"),
    ("/save!", "FILE: save it in place of an existing file"),
    ("/quit", "leave, as Ctrl-D does"),
];

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// A blank line.
    Nothing,
    /// Something to answer.
    Say(String),
    Help,
    Reset,
    Undo,
    System(Option<String>),
    Save {
        file: PathBuf,
        replace: bool,
    },
    Quit,
}

impl Order {
    /// Reads a line.
    ///
    /// # Errors
    /// If it begins with / and is no command, or the command lacks something.
    pub fn of(line: &str) -> Result<Order, String> {
        if line.trim().is_empty() {
            return Ok(Order::Nothing);
        }
        if let Some(text) = line.strip_prefix("//") {
            return Ok(Order::Say(format!("/{text}")));
        }
        if !line.starts_with('/') {
            // A space before / is only there to say that it is no command.
            let text = line.strip_prefix(' ').filter(|text| text.starts_with('/'));
            return Ok(Order::Say(text.unwrap_or(line).to_string()));
        }
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        let alone = |order: Order| match rest {
            "" => Ok(order),
            _ => Err(format!("{name} takes nothing after it, got {rest:?}")),
        };
        let save = |replace| match rest {
            "" => Err(format!("{name} needs a file: {name} talk.jsonl")),
            file => Ok(Order::Save { file: file.into(), replace }),
        };
        match name {
            "/help" => alone(Order::Help),
            "/reset" => alone(Order::Reset),
            "/undo" => alone(Order::Undo),
            "/quit" => alone(Order::Quit),
            "/system" => Ok(Order::System(Some(rest.to_string()).filter(|text| !text.is_empty()))),
            "/save" => save(false),
            "/save!" => save(true),
            _ => Err(format!(
                "there is no command {name}; {}/help lists all. To say it: //{}",
                did_you_mean(name, &ORDERS.map(|(name, _)| name)),
                &line[1..]
            )),
        }
    }

    /// Does what a command says; returns what to tell.
    ///
    /// # Errors
    /// If the conversation cannot be saved.
    pub fn apply(self, talk: &mut Conversation) -> Result<Vec<String>> {
        let told = |text: &str| Ok(vec![text.to_string()]);
        match self {
            Order::Help => {
                Ok(ORDERS.iter().map(|(name, does)| format!("{name:8} {does}")).collect())
            }
            Order::Reset => {
                talk.reset();
                let file = talk.file().filter(|file| file.exists());
                let then = file.map_or(String::new(), |file| {
                    format!("; {} stays as it is until the next answer", file.display())
                });
                Ok(vec![format!("a new conversation{then}")])
            }
            Order::Undo => match talk.undo()? {
                Some(text) => Ok(vec![format!("dropped: {text}")]),
                None => told("there is nothing to drop"),
            },
            Order::System(text) => {
                talk.set_system(text.as_deref());
                told(if text.is_some() { "the system message is set" } else { "no system message" })
            }
            Order::Save { file, replace } => {
                talk.save_to(&file, replace)?;
                Ok(vec![format!("saved as {}", file.display())])
            }
            Order::Nothing | Order::Say(_) | Order::Quit => Ok(vec![]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_commands_or_said() {
        let said = |line: &str| match Order::of(line) {
            Ok(Order::Say(text)) => text,
            other => panic!("{line}: {other:?}"),
        };
        assert_eq!(said("a /b"), "a /b");
        assert_eq!(said("//help"), "/help");
        assert_eq!(said(" /help"), "/help");
        assert_eq!(said("  two spaces"), "  two spaces");
        assert_eq!(Order::of("  "), Ok(Order::Nothing));
        assert_eq!(Order::of("/system"), Ok(Order::System(None)));
        assert_eq!(Order::of("/system Be  kind. "), Ok(Order::System(Some("Be  kind.".into()))));
        let save = |replace| Ok(Order::Save { file: "a b.jsonl".into(), replace });
        assert_eq!(Order::of("/save a b.jsonl"), save(false));
        assert_eq!(Order::of("/save! a b.jsonl"), save(true));
        assert!(Order::of("/save").unwrap_err().contains("needs a file"));
        assert!(Order::of("/undo 3").unwrap_err().contains("\"3\""));
        let unknown = Order::of("/rest now").unwrap_err();
        assert!(unknown.contains("no command /rest") && unknown.contains("/reset"), "{unknown}");
        assert!(unknown.contains("//rest now"), "{unknown}");
    }
}
