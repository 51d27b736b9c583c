//! Labels or characters of a model, and their indices.

use regard_models::speech::SpeechHead;
use regard_models::{Error, Labels, Result};
use serde_json::Value;
use std::collections::BTreeSet;

/// Index of the CTC blank.
pub const BLANK: usize = 0;

/// Output classes of a model: its labels, or the CTC blank followed by its characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    head: SpeechHead,
    names: Vec<String>,
}

impl Names {
    /// Collects the labels or characters of transcripts.
    pub fn learn<'a>(head: SpeechHead, texts: impl Iterator<Item = &'a str>) -> Names {
        let names: BTreeSet<String> = match head {
            SpeechHead::Labels => texts.map(str::to_string).collect(),
            // The empty string, which stands for the blank, sorts first.
            SpeechHead::Ctc => {
                let letters = texts.flat_map(str::chars).map(|letter| letter.to_string());
                letters.chain([String::new()]).collect()
            }
        };
        Names { head, names: names.into_iter().collect() }
    }

    /// Reads the names from a model's configuration.
    pub fn new(head: SpeechHead, config: &Value) -> Result<Names> {
        let table = &config["id2label"];
        let names = Labels::names(config);
        match table.as_object().is_some_and(|table| table.len() == names.len()) {
            true => Ok(Names { head, names }),
            false => Err(Error::invalid(format!(
                "id2label: got {table}, need a table of names with the keys \"0\", \"1\", …"
            ))),
        }
    }

    /// Returns all names, in index order.
    pub fn all(&self) -> &[String] {
        &self.names
    }

    /// Returns whether the names are labels or characters.
    pub(super) fn head(&self) -> SpeechHead {
        self.head
    }

    /// Returns the number of names, the blank included.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are no names.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the name of a label.
    pub fn label(&self, label: usize) -> &str {
        &self.names[label]
    }

    /// Joins characters to a text.
    pub fn text(&self, letters: &[u32]) -> String {
        letters.iter().map(|letter| self.names[*letter as usize].as_str()).collect()
    }

    /// Encodes a transcript: one index for a label, one per character for CTC. `None` if it
    /// contains an unknown label or character.
    pub fn encode(&self, text: &str) -> Option<Vec<i64>> {
        let number = |name: &str| self.names.iter().position(|known| known == name);
        match self.head {
            SpeechHead::Labels => number(text).map(|label| vec![label as i64]),
            SpeechHead::Ctc => {
                let letter = |c: char| number(c.encode_utf8(&mut [0; 4])).map(|at| at as i64);
                text.chars().map(letter).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn labels_and_letters() {
        let texts = ["two", "one", "two"];
        let labels = Names::learn(SpeechHead::Labels, texts.into_iter());
        assert_eq!((labels.len(), labels.label(0)), (2, "one"));
        assert_eq!(labels.encode("two"), Some(vec![1]));
        assert_eq!(labels.encode("three"), None);
        let letters = Names::learn(SpeechHead::Ctc, texts.into_iter());
        assert_eq!(letters.len(), 6);
        let two = letters.encode("two").unwrap();
        assert_eq!(two, [4, 5, 3]);
        assert_eq!(letters.text(&[4, 5, 3]), "two");
        assert_eq!(letters.encode("twos"), None);
    }

    #[test]
    fn configurations_go_there_and_back() {
        for head in [SpeechHead::Labels, SpeechHead::Ctc] {
            let names = Names::learn(head, ["un", "deux", "été"].into_iter());
            let config = serde_json::to_value(Labels::new(names.all())).unwrap();
            assert_eq!(Names::new(head, &config).unwrap(), names);
        }
        let wrong = json!({ "id2label": { "0": "a", "2": "b" } });
        assert!(
            Names::new(SpeechHead::Labels, &wrong).unwrap_err().to_string().contains("id2label")
        );
    }
}
