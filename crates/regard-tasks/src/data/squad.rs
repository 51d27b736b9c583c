//! Questions about paragraphs of articles, in the JSON of SQuAD, versions 1.1 and 2.0.
//!
//! Version 2.0 also has questions that the paragraph does not answer.

use std::ops::Range;
use std::path::Path;

use regard_models::{Error, Result};
use serde::Deserialize;

use super::split::Part;
use super::stream;

/// A file of articles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Squad {
    /// `1.1` or `v2.0`.
    pub version: String,
    /// Articles, in the order of the file.
    pub articles: Vec<Article>,
}

/// An article.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Article {
    /// Title, with `_` for spaces.
    pub title: String,
    /// Paragraphs with questions.
    pub paragraphs: Vec<Paragraph>,
}

/// A paragraph and questions about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paragraph {
    /// Text of the paragraph, which contains the answers.
    pub context: String,
    /// The questions.
    pub questions: Vec<Question>,
}

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Identifier, which matches predictions to questions.
    pub id: String,
    /// The question.
    pub text: String,
    /// Whether the paragraph does not answer it.
    pub impossible: bool,
    /// Reference answers by annotators; empty if it is impossible.
    pub answers: Vec<ReferenceAnswer>,
}

/// An answer: a span of the paragraph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferenceAnswer {
    /// Text of the span.
    pub text: String,
    /// Start in characters, as given in the file.
    pub start: usize,
    /// Byte range in the paragraph; `None` if the text there differs.
    pub place: Option<Range<usize>>,
}

impl Squad {
    /// Reads a file; one whose name ends in `.gz` is decompressed.
    pub fn read(path: impl AsRef<Path>) -> Result<Squad> {
        let path = path.as_ref();
        let file: file::Whole = serde_json::from_reader(stream::open(path)?)
            .map_err(|e| Error::file(path, e.to_string()))?;
        let paragraph = |paragraph: file::Paragraph| {
            let offsets = byte_offsets(&paragraph.context);
            let question = |question: file::Question| {
                if question.is_impossible && !question.answers.is_empty() {
                    let id = question.id;
                    let message = format!("question {id:?} is impossible and has answers");
                    return Err(Error::file(path, message));
                }
                let answer = |answer: file::Answer| {
                    let (text, start) = (answer.text, answer.answer_start);
                    let from = offsets.get(start).copied();
                    let place = from.map(|from| from..from.saturating_add(text.len()));
                    let is_there = |place: &Range<usize>| {
                        paragraph.context.get(place.clone()) == Some(text.as_str())
                    };
                    ReferenceAnswer { place: place.filter(is_there), start, text }
                };
                Ok(Question {
                    id: question.id,
                    text: question.question,
                    impossible: question.is_impossible,
                    answers: question.answers.into_iter().map(answer).collect(),
                })
            };
            let questions = paragraph.qas.into_iter().map(question).collect::<Result<_>>()?;
            Ok(Paragraph { questions, context: paragraph.context })
        };
        let article = |article: file::Article| {
            let paragraphs = article.paragraphs.into_iter().map(paragraph);
            Ok(Article { title: article.title, paragraphs: paragraphs.collect::<Result<_>>()? })
        };
        let articles = file.data.into_iter().map(article).collect::<Result<_>>()?;
        Ok(Squad { version: file.version, articles })
    }

    /// Returns the articles of one part. Of the 48 of the development set of version 1.1, in the
    /// order of the file, 34 are for training, the next 4 for validation and the last 10 for the
    /// test; of another number, the same fractions. Questions about one article are all in one
    /// part, so that a model was not trained on the articles of the test.
    pub fn part(&self, part: Part) -> &[Article] {
        let count = self.articles.len();
        let test = count - count * 10 / 48;
        let valid = test - count * 4 / 48;
        match part {
            Part::Train => &self.articles[..valid],
            Part::Valid => &self.articles[valid..test],
            Part::Test => &self.articles[test..],
        }
    }

    /// Returns the number of answers without a byte range, which cannot be trained on.
    pub fn misplaced(&self) -> usize {
        let questions = self.articles.iter().flat_map(Article::questions);
        let answers = questions.flat_map(|(_, question)| &question.answers);
        answers.filter(|answer| answer.place.is_none()).count()
    }
}

impl Article {
    /// Iterates over all questions, each with its paragraph.
    pub fn questions(&self) -> impl Iterator<Item = (&str, &Question)> {
        self.paragraphs.iter().flat_map(|paragraph| {
            let context = paragraph.context.as_str();
            paragraph.questions.iter().map(move |question| (context, question))
        })
    }
}

/// Byte offset of each character, and the length of the text.
fn byte_offsets(text: &str) -> Vec<usize> {
    text.char_indices().map(|(byte, _)| byte).chain([text.len()]).collect()
}

/// JSON structure of the file; other keys are ignored.
mod file {
    use super::Deserialize;

    #[derive(Deserialize)]
    pub(super) struct Whole {
        #[serde(default)]
        pub version: String,
        pub data: Vec<Article>,
    }

    #[derive(Deserialize)]
    pub(super) struct Article {
        #[serde(default)]
        pub title: String,
        pub paragraphs: Vec<Paragraph>,
    }

    #[derive(Deserialize)]
    pub(super) struct Paragraph {
        pub context: String,
        pub qas: Vec<Question>,
    }

    #[derive(Deserialize)]
    pub(super) struct Question {
        pub id: String,
        pub question: String,
        #[serde(default)]
        pub is_impossible: bool,
        #[serde(default)]
        pub answers: Vec<Answer>,
    }

    #[derive(Deserialize)]
    pub(super) struct Answer {
        pub text: String,
        pub answer_start: usize,
    }
}

#[cfg(test)]
mod tests {
    use super::super::scratch::with_file;
    use super::*;

    fn read(text: &str) -> Result<Squad, String> {
        with_file("squad.json", text.as_bytes(), |path| Squad::read(path))
            .map_err(|e| e.to_string())
    }

    const FILE: &str = r#"{"version": "v2.0", "data": [{"title": "Café", "paragraphs": [{
        "context": "À Köln, the café is 50 m away.", "document_id": 3, "qas": [
        {"id": "a", "question": "Where?", "is_impossible": false, "answers": [
            {"text": "Köln", "answer_start": 2}, {"text": "café", "answer_start": 12},
            {"text": "Köln", "answer_start": 3}, {"text": "away.", "answer_start": 25},
            {"text": "away..", "answer_start": 25}, {"text": "x", "answer_start": 999}]},
        {"id": "b", "question": "Who?", "is_impossible": true, "answers": [],
         "plausible_answers": [{"text": "Köln", "answer_start": 2}]}]}]}]}"#;

    #[test]
    fn answers_are_found_in_bytes() {
        let squad = read(FILE).unwrap();
        assert_eq!(squad.version, "v2.0");
        let questions: Vec<_> = squad.articles[0].questions().collect();
        let (context, where_is) = questions[0];
        let found: Vec<Option<&str>> =
            where_is.answers.iter().map(|a| a.place.clone().map(|p| &context[p])).collect();
        assert_eq!(found, [Some("Köln"), Some("café"), None, Some("away."), None, None]);
        assert_eq!(squad.misplaced(), 3);
        assert!(!where_is.impossible && questions[1].1.impossible);
        assert!(questions[1].1.answers.is_empty());
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, message) in [
            ("{\"data\": 3}", "squad.json: invalid type: integer `3`"),
            ("{\n\"data\": [\n", "line 3"),
            (FILE.replace("\"qas\"", "\"asked\"").as_str(), "missing field `qas`"),
            (FILE.replace("\"answer_start\": 999", "\"answer_start\": -1").as_str(), "-1"),
            (
                FILE.replace("is_impossible\": false", "is_impossible\": true").as_str(),
                "question \"a\"",
            ),
            ("[".repeat(100_000).as_str(), "line 1"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn an_article_is_in_one_part() {
        let article = |i| Article { title: format!("Title_{i}"), paragraphs: Vec::new() };
        for (count, sizes) in
            [(48, [34, 4, 10]), (442, [314, 36, 92]), (3, [3, 0, 0]), (0, [0, 0, 0])]
        {
            let articles: Vec<Article> = (0..count).map(article).collect();
            let squad = Squad { version: "1.1".into(), articles };
            let parts = [Part::Train, Part::Valid, Part::Test].map(|part| squad.part(part));
            assert_eq!(parts.map(<[Article]>::len), sizes);
            assert_eq!(parts.concat(), squad.articles, "in order, each once");
        }
    }
}
