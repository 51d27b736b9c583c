//! Stories with questions: the twenty bAbI tasks (Weston et al. 2015).
//!
//! A line is `id sentence` or `id question⇥answer⇥ids of the sentences that support it`, and a
//! line with the id 1 starts a story. Questions stand between the sentences of a story: a question
//! is about the sentences before it only.

use std::io::BufRead;
use std::path::{Path, PathBuf};

use regard_models::{Error, Result};

use super::split::Part;
use super::stream::Lines;

/// Numbers and names of the tasks, as in the names of their files.
pub const TASKS: [(usize, &str); 20] = [
    (1, "single-supporting-fact"),
    (2, "two-supporting-facts"),
    (3, "three-supporting-facts"),
    (4, "two-arg-relations"),
    (5, "three-arg-relations"),
    (6, "yes-no-questions"),
    (7, "counting"),
    (8, "lists-sets"),
    (9, "simple-negation"),
    (10, "indefinite-knowledge"),
    (11, "basic-coreference"),
    (12, "conjunction"),
    (13, "compound-coreference"),
    (14, "time-reasoning"),
    (15, "basic-deduction"),
    (16, "basic-induction"),
    (17, "positional-reasoning"),
    (18, "size-reasoning"),
    (19, "path-finding"),
    (20, "agents-motivations"),
];

/// A sentence of a story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Line number in the story, from 1; questions are numbered too, so there are gaps.
    pub id: usize,
    /// The sentence.
    pub text: String,
}

/// A question about a story so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoryQuestion {
    /// The question.
    pub text: String,
    /// The answer: a word, or several of a list or of a path.
    pub answers: Vec<String>,
    /// Numbers ([`Fact::id`]) of the sentences that support the answer.
    pub support: Vec<usize>,
    /// Number of sentences of the story before the question.
    pub after: usize,
}

/// A story.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Story {
    /// Sentences, in order.
    pub facts: Vec<Fact>,
    /// Questions, in order.
    pub questions: Vec<StoryQuestion>,
}

impl Story {
    /// Iterates over the questions, each with the sentences before it.
    pub fn asked(&self) -> impl Iterator<Item = (&[Fact], &StoryQuestion)> {
        self.questions.iter().map(|question| (&self.facts[..question.after], question))
    }
}

/// Returns the file of a task. bAbI has no validation files: use a fraction of the training part.
pub fn file(folder: impl AsRef<Path>, task: usize, part: Part) -> Result<PathBuf> {
    let known = TASKS.iter().find(|(number, _)| *number == task);
    let (_, name) = known.ok_or_else(|| {
        Error::invalid(format!("no task of bAbI has the number {task}; they are 1 to 20"))
    })?;
    let part = match part {
        Part::Train => "train",
        Part::Test => "test",
        Part::Valid => return Err(Error::invalid("bAbI has no files for validation")),
    };
    Ok(folder.as_ref().join(format!("qa{task}_{name}_{part}.txt")))
}

/// Returns the tasks that have a file for a part: a copy of the data may lack some.
pub fn present(folder: impl AsRef<Path>, part: Part) -> Vec<usize> {
    let tasks = TASKS.iter().map(|(task, _)| *task);
    tasks.filter(|&task| file(&folder, task, part).is_ok_and(|file| file.is_file())).collect()
}

/// Reads the stories of a file.
pub fn read(path: impl AsRef<Path>) -> Result<Vec<Story>> {
    stories(Lines::open(path)?)
}

fn stories<R: BufRead>(mut lines: Lines<R>) -> Result<Vec<Story>> {
    let mut stories: Vec<Story> = Vec::new();
    let mut last = 0;
    while let Some(line) = lines.next().transpose()? {
        if line.trim().is_empty() {
            continue;
        }
        let Some((id, text)) = line.split_once(' ') else {
            return Err(lines.error("has no space after its number"));
        };
        let id: usize = id.parse().map_err(|_| lines.error(format!("{id:?} is not a number")))?;
        if id == 1 {
            stories.push(Story::default());
        } else if id != last + 1 {
            return Err(lines.error(format!("number {id} comes after {last}")));
        }
        last = id;
        let Some(story) = stories.last_mut() else {
            return Err(lines.error("a story starts with the number 1"));
        };
        let columns: Vec<&str> = text.split('\t').map(str::trim).collect();
        match columns.as_slice() {
            &[text] if !text.is_empty() => {
                story.facts.push(Fact { id, text: text.to_owned() });
            }
            &[text, answer, support] => {
                let question = question(story, text, answer, support);
                story.questions.push(question.map_err(|e| lines.error(e))?);
            }
            &[_] => return Err(lines.error("the sentence is empty")),
            more => {
                let columns = more.len();
                return Err(lines.error(format!("has {columns} columns; a question has 3")));
            }
        }
    }
    Ok(stories)
}

fn question(
    story: &Story,
    text: &str,
    answer: &str,
    support: &str,
) -> Result<StoryQuestion, String> {
    let answers: Vec<String> = answer.split(',').map(|word| word.trim().to_owned()).collect();
    if text.is_empty() || answers.iter().any(String::is_empty) {
        return Err("the question or its answer is empty".into());
    }
    let is_there = |id: usize| story.facts.binary_search_by_key(&id, |fact| fact.id).is_ok();
    let number = |id: &str| match id.parse() {
        Ok(number) if is_there(number) => Ok(number),
        _ => Err(format!("{id:?} is not the number of a sentence before the question")),
    };
    let support = support.split_whitespace().map(number).collect::<Result<_, _>>()?;
    Ok(StoryQuestion { text: text.to_owned(), answers, support, after: story.facts.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Vec<Story>, String> {
        stories(Lines::new(text.as_bytes(), "in")).map_err(|e| e.to_string())
    }

    #[test]
    fn a_question_sees_the_sentences_before_it() {
        let text = "1 Mary took the milk.\n2 What is Mary carrying? \tmilk\t1\n\
                    3 She got the apple there.\n4 What is Mary carrying?\tmilk,apple\t1 3\n\
                    1 It rains.\n2 Is it dry?\tno\t1\n";
        let stories = parse(text).unwrap();
        assert_eq!(stories.len(), 2);
        let asked: Vec<_> = stories[0].asked().collect();
        let ids = |i: usize| asked[i].0.iter().map(|fact| fact.id).collect::<Vec<_>>();
        assert_eq!((ids(0), ids(1)), (vec![1], vec![1, 3]));
        assert_eq!(asked[0].1.text, "What is Mary carrying?");
        assert_eq!(
            (asked[1].1.answers.join("+"), &asked[1].1.support),
            ("milk+apple".into(), &vec![1, 3])
        );
        assert_eq!(stories[1].facts[0].text, "It rains.");
    }

    #[test]
    fn what_is_wrong_has_its_line() {
        for (text, message) in [
            ("2 A.\n", "line 1: number 2 comes after 0"),
            ("1 A.\n3 B.\n", "line 2: number 3 comes after 1"),
            ("1 A.\nB.\n", "line 2: has no space"),
            ("x A.\n", "line 1: \"x\" is not a number"),
            ("1 \n", "line 1: the sentence is empty"),
            ("1 A.\n2 Q?\tyes\n", "line 2: has 2 columns"),
            ("1 A.\n2 Q?\tyes,\t1\n", "line 2: the question or its answer is empty"),
            ("1 A.\n2 Q?\tyes\t2\n", "line 2: \"2\" is not the number"),
            ("1 Q?\tyes\tone\n", "line 1: \"one\" is not the number"),
            ("0 A.\n", "line 1: number 0 comes after 0"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn files_have_the_names_of_tasks() {
        let path = file("x", 19, Part::Test).unwrap();
        assert_eq!(path, Path::new("x").join("qa19_path-finding_test.txt"));
        assert!(file("x", 21, Part::Test).unwrap_err().to_string().contains("1 to 20"));
        assert!(file("x", 1, Part::Valid).is_err());
        assert!(TASKS.iter().enumerate().all(|(i, (number, _))| i + 1 == *number));
        assert!(present("nowhere", Part::Train).is_empty());
    }
}
