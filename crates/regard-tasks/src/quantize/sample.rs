//! Texts on which a quantised model is compared with the original.

use regard_models::{Error, Result};

/// A text, and its translation if it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// The text.
    pub text: String,
    /// Its translation.
    pub target: Option<String>,
}

/// Texts on which models are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The texts.
    pub examples: Vec<Example>,
    /// Where they are from, for messages.
    pub name: String,
}

/// English sentences that are built in, for models that come without data.
pub const SENTENCES: &[&str] = &[
    "The train to the coast leaves at eight, and it is usually on time.",
    "She asked whether the library would be open on Sunday.",
    "He has lived in the same house for thirty years.",
    "I don't know where they went after dinner.",
    "A small dog was sleeping under the table in the kitchen.",
    "The doctor told him to drink more water and to walk every day.",
    "We are watching the children play in the garden.",
    "If it rains tomorrow, the match will be played next week.",
    "My brother bought a new bicycle because his old one was stolen.",
    "The committee published its report on the state of the rivers in March.",
    "You should have told me that you were coming.",
    "Three of the four windows on the north side of the building were broken.",
    "Nobody could explain why the lights had gone out.",
    "They were happy to see their friends again after such a long time.",
    "The price of bread has doubled since the beginning of the year.",
    "Could you tell me how to get to the station?",
    "The students wrote a letter to the mayor about the old bridge.",
    "It is difficult to say which of the two answers is right.",
    "Her grandmother taught her to play the piano when she was six.",
    "The ship arrived in the harbour with a cargo of coffee and sugar.",
    "There is a good restaurant on the corner, but it is closed today.",
    "He opened the door slowly and looked into the dark room.",
    "The teacher was surprised that everyone had finished the exercise.",
    "Most of the forest was cut down to make room for farms.",
];

impl Sample {
    /// The sentences that are built in.
    pub fn built_in() -> Sample {
        let example = |text: &&str| Example { text: text.to_string(), target: None };
        let examples = SENTENCES.iter().map(example).collect();
        Sample { examples, name: "the built-in English sentences".into() }
    }

    /// Parses a file: a text on each line, or a text and its translation with a tab between them.
    ///
    /// # Errors
    /// If there is no text, or only some lines have a translation.
    pub fn parse(name: &str, content: &str) -> Result<Sample> {
        let lines = content.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let example = |(at, line): (usize, &str)| {
            let mut columns = line.split('\t');
            let text = columns.next().unwrap_or_default().to_string();
            let target = columns.next().map(str::to_string);
            if columns.next().is_some() {
                return Err(Error::invalid(format!(
                    "{name}: line {} has more than two columns; choose those of a translator by \
                     --source and --target, that of another model by --text",
                    at + 1
                )));
            }
            if text.trim().is_empty() || target.as_ref().is_some_and(|t| t.trim().is_empty()) {
                return Err(Error::invalid(format!("{name}: line {} has an empty text", at + 1)));
            }
            Ok((at + 1, Example { text, target }))
        };
        let examples: Vec<(usize, Example)> = lines.map(example).collect::<Result<_>>()?;
        let Some((_, first)) = examples.first() else {
            return Err(Error::invalid(format!("{name}: holds no text")));
        };
        let paired = first.target.is_some();
        if let Some((line, _)) = examples.iter().find(|(_, e)| e.target.is_some() != paired) {
            let (has, first) = if paired { ("no", "one") } else { ("a", "none") };
            return Err(Error::invalid(format!(
                "{name}: line {line} has {has} second column, line 1 has {first}"
            )));
        }
        let examples = examples.into_iter().map(|(_, example)| example).collect();
        Ok(Sample { examples, name: name.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_pairs_are_told_apart() {
        let texts = Sample::parse("t", "one\n\ntwo\n").unwrap();
        assert_eq!(texts.examples.len(), 2);
        assert_eq!(texts.examples[1], Example { text: "two".into(), target: None });
        let pairs = Sample::parse("p", "one\tun\ntwo\tdeux\n").unwrap();
        assert_eq!(pairs.examples[1].target.as_deref(), Some("deux"));
    }

    #[test]
    fn what_is_odd_is_named_with_its_line() {
        let error = |content: &str| Sample::parse("f", content).unwrap_err().to_string();
        assert!(error("one\tun\ntwo\n").contains("line 2 has no second column"));
        assert!(error("one\n\ntwo\tdeux\n").contains("line 3 has a second column"));
        assert!(error("one\t \n").contains("line 1 has an empty text"));
        assert!(
            error("1\tone\tun\n")
                .contains("line 1 has more than two columns; choose those of a translator")
        );
        assert!(error("\n \n").contains("holds no text"));
    }
}
