//! Questions about texts that contain the answers.

mod columns;
mod formats;
mod spans;

pub(super) use formats::{ANSWERS, CONTEXT, QUESTION};

use super::examples::{
    Example, check_parts, divide, mean, part_files, percentile, skipped, text_key,
};
use super::findings::{Findings, Place, numbered};
use super::reading::{Reading, part_told};
use super::table::{PARQUET, end};
use super::{DataSize, Draft, PartFiles, Request, is_unspaced, split_line, units};
use crate::data::Part;
use crate::say;
use formats::Asked;
use regard_models::{Result, checkpoint};
use serde_json::json;
use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::path::Path;
use std::rc::Rc;
use toml::{Table as Keys, Value};

/// Number of articles from which they, and not paragraphs, are kept together by a split.
const ARTICLES: usize = 20;

/// A paragraph with its questions.
struct Paragraph {
    title: String,
    context: String,
    questions: Vec<(String, Question)>,
    /// Whether the paragraphs of an article stay together.
    by_article: bool,
    file: Rc<Path>,
    line: Option<u64>,
}

/// A question; without answers the context does not answer it.
#[derive(Debug, PartialEq)]
struct Question {
    text: String,
    answers: Vec<Answer>,
}

/// An answer and its place in characters.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
struct Answer {
    text: String,
    answer_start: usize,
}

impl Example for Paragraph {
    const KEY: &'static str = "paragraph";

    fn key(&self) -> String {
        text_key(&self.context)
    }

    fn group(&self) -> String {
        match self.by_article && !self.title.is_empty() {
            true => self.title.clone(),
            false => self.key(),
        }
    }

    fn place(&self) -> Place<'_> {
        Place { file: &self.file, line: self.line }
    }
}

/// Reads the files of a request.
pub(super) fn read(request: &Request, findings: &mut Findings) -> Result<Option<Draft>> {
    let is_read = |path: &Path| {
        ["json", "jsonl", "ndjson", "csv", "tsv", "tab", PARQUET].contains(&end(path).as_str())
    };
    let files = PartFiles::find(request, &is_read, findings)?;
    let mut ids = Ids::default();
    let (mut columns, mut reading) = (None, None);
    let mut all = [vec![], vec![], vec![]];
    for (part, paragraphs) in [Part::Train, Part::Valid, Part::Test].into_iter().zip(&mut all) {
        for path in files.of(part) {
            let asked = match end(path).as_str() {
                "json" | "jsonl" | "ndjson" => {
                    formats::read(path, request, &mut reading, findings)?
                }
                _ => columns::read(path, request, &mut columns, &mut reading, findings)?,
            };
            collect(asked, path, &mut ids, paragraphs, findings);
        }
    }
    let Some(first) = all[0].first() else { return Ok(None) };
    let told = first.questions.first().map_or(String::new(), |(_, question)| {
        let answer = question.answers.first().map_or("(no answer)", |answer| &answer.text);
        format!("first: '{}' → '{}'", say::short(&question.text, 60), say::short(answer, 40))
    });
    if request.like().is_some() {
        let [all, ..] = all;
        let count = questions(&all).count();
        let paragraphs = say::many(all.len(), "paragraph");
        let mut summary =
            vec![told, format!("{} about {paragraphs}", say::many(count, "question"))];
        summary.extend(files.chosen.map(part_told));
        summary.extend(skipped(findings));
        let file = "test.json";
        let write = move |folder: &Path| write_part(&folder.join(file), &all);
        let draft = Draft::to_evaluate("answer", summary, count, file, Box::new(write));
        return Ok(Some(Draft { chosen: files.chosen, ..draft }));
    }
    let titles: HashSet<&str> = all[0].iter().map(|paragraph| paragraph.title.as_str()).collect();
    let by_article = titles.iter().filter(|title| !title.is_empty()).count() >= ARTICLES;
    all[0].iter_mut().for_each(|paragraph| paragraph.by_article = by_article);
    let (held, given_test) = (files.held_out(), files.test.clone());
    let all = divide(all, false, held, request.seed, findings);
    check_parts(&all, 2, held, findings);
    let sizes = all.each_ref().map(|part| questions(part).count());
    let answerable =
        |part: &[Paragraph]| questions(part).filter(|(_, q)| !q.answers.is_empty()).count();
    for (part, name) in all.iter().zip(["training", "validation"]) {
        if let (Some(any), 0) = (part.first(), answerable(part)) {
            let message = format!("no question of the {name} part has an answer");
            findings.error("no answers", Place::whole(&any.file), message);
        }
    }
    let together = if by_article { "articles" } else { "paragraphs" };
    let split = split_line(sizes, held, request.seed);
    let mut summary = vec![
        told,
        format!("questions: {}", split.replace("(split ", &format!("(split by {together} and "))),
    ];
    let unspaced = is_unspaced(all[0].iter().map(|paragraph| paragraph.context.as_str()));
    let lengths = lengths(&all[0], unspaced);
    summary.push(format!(
        "{} in the training part, mean length of text and question: {:.0} {}",
        say::many(all[0].len(), "paragraph"),
        mean(&lengths),
        if unspaced { "characters" } else { "words" }
    ));
    let lacking = sizes[0] - answerable(&all[0]);
    if lacking > 0 {
        let many = say::many(lacking, "question");
        summary.push(format!("{many} of the training part without an answer in the text"));
    }
    summary.extend(skipped(findings));
    let size = DataSize {
        examples: sizes[0],
        units: lengths.iter().sum(),
        longest: lengths.iter().copied().max().unwrap_or(0),
        labels: 0,
        unspaced,
    };
    // Longer texts are read in windows, which cost more time the longer they are.
    let tokens = (percentile(&lengths, 95) * 3 / 2).next_power_of_two().clamp(128, 384);
    let data = Keys::from_iter([("max_tokens".to_string(), Value::Integer(tokens as i64))]);
    let keys = Keys::from_iter([("data".to_string(), Value::Table(data))]);
    let names = ["train.json", "valid.json", "test.json"];
    let files = part_files(names, sizes);
    let write = move |folder: &Path| {
        let mut parts = all.iter().zip(names).filter(|(part, _)| !part.is_empty());
        parts.try_for_each(|(part, name)| write_part(&folder.join(name), part))
    };
    let (task, write) = ("answer", Box::new(write));
    let reading = reading.unwrap_or_else(|| Reading::of("squad"));
    let draft = Draft::new(task, summary, sizes, write);
    Ok(Some(Draft { size, keys, files, reading, test: given_test, ..draft }))
}

fn questions(part: &[Paragraph]) -> impl Iterator<Item = (&Paragraph, &Question)> {
    part.iter().flat_map(|paragraph| paragraph.questions.iter().map(move |(_, q)| (paragraph, q)))
}

/// Units of each question with its context.
fn lengths(part: &[Paragraph], unspaced: bool) -> Vec<usize> {
    let mut all = vec![];
    for paragraph in part {
        let context = units(&paragraph.context, unspaced);
        let each = paragraph.questions.iter().map(|(_, q)| context + units(&q.text, unspaced));
        all.extend(each);
    }
    all
}

/// Ids of the questions that were read, with their places.
#[derive(Default)]
struct Ids {
    seen: HashMap<String, (Rc<Path>, Option<u64>)>,
    given: usize,
}

impl Ids {
    /// Id of a question, a new one if it has none.
    fn of(&mut self, asked: &Asked, file: &Rc<Path>) -> Result<String, String> {
        let id = asked.id.clone().unwrap_or_else(|| {
            loop {
                self.given += 1;
                let id = format!("q{}", self.given);
                if !self.seen.contains_key(&id) {
                    break id;
                }
            }
        });
        if let Some((other, line)) = self.seen.get(&id) {
            let line = line.map_or(String::new(), |line| format!("{} of ", numbered(other, line)));
            return Err(format!("question {id:?}: its id is also in {line}{}", other.display()));
        }
        self.seen.insert(id.clone(), (file.clone(), asked.line));
        Ok(id)
    }
}

/// Puts questions about the same text together.
fn collect(
    asked: Vec<Asked>,
    path: &Path,
    ids: &mut Ids,
    paragraphs: &mut Vec<Paragraph>,
    findings: &mut Findings,
) {
    let file: Rc<Path> = path.into();
    let mut places: HashMap<(String, String), usize> = HashMap::new();
    for asked in asked {
        let id = match ids.of(&asked, &file) {
            Ok(id) => id,
            Err(message) => {
                findings.row("duplicate id", Place { file: path, line: asked.line }, message);
                continue;
            }
        };
        let Asked { title, context, question, line, .. } = asked;
        let at = *places.entry((title.clone(), context.clone())).or_insert_with(|| {
            let (questions, by_article, file) = (vec![], false, file.clone());
            paragraphs.push(Paragraph { title, context, questions, by_article, file, line });
            paragraphs.len() - 1
        });
        paragraphs[at].questions.push((id, question));
    }
}

/// Writes a part in the format of SQuAD. A paragraph without a title is an article.
fn write_part(path: &Path, part: &[Paragraph]) -> Result<()> {
    let mut articles: Vec<(&str, Vec<&Paragraph>)> = vec![];
    let mut places: HashMap<&str, usize> = HashMap::new();
    for paragraph in part {
        let title = paragraph.title.as_str();
        match places.get(title).filter(|_| !title.is_empty()) {
            Some(at) => articles[*at].1.push(paragraph),
            None => {
                places.insert(title, articles.len());
                articles.push((title, vec![paragraph]));
            }
        }
    }
    let question = |(id, question): &(String, Question)| {
        json!({
            "id": id, "question": question.text, "answers": question.answers,
            "is_impossible": question.answers.is_empty(),
        })
    };
    let paragraph = |paragraph: &&Paragraph| {
        let questions: Vec<_> = paragraph.questions.iter().map(question).collect();
        json!({ "context": paragraph.context, "qas": questions })
    };
    let article = |(title, paragraphs): &(&str, Vec<&Paragraph>)| {
        let paragraphs: Vec<_> = paragraphs.iter().map(paragraph).collect();
        json!({ "title": title, "paragraphs": paragraphs })
    };
    let all: Vec<_> = articles.iter().map(article).collect();
    let whole = json!({ "version": "v2.0", "data": all });
    checkpoint::write_file_with(path, |file| {
        let mut writer = std::io::BufWriter::new(file);
        serde_json::to_writer(&mut writer, &whole)?;
        writer.write_all(b"\n")?;
        writer.flush()
    })
}

#[cfg(test)]
mod tests;
