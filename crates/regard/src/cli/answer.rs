//! `regard answer`: the part of a text that answers a question, or the answer to a question about
//! a story.

use super::{Global, Outcome, inputs, write_json};
use crate::hub::Hub;
use crate::models;
use anyhow::{Context, Result, bail};
use clap::Args;
use regard_models::text::Head;
use regard_tasks::answer::{Answer, Asking};
use regard_tasks::answer_story::{Heard, Listener, Reply, Support};
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  regard answer 'Who wrote Hamlet?' --context 'Hamlet was written by Shakespeare.' --model …
  regard answer 'Who wrote Hamlet?' --file article.txt --top-k 3 --model …
  regard answer --json --context … --model … < questions.txt
  regard answer 'Where is John?' --context 'John took the milk. John went to the hall.'

Without QUESTION, each line of standard input is one. A long text is read in windows that overlap.

With --json: {answer, score, start, end}, places counted in characters; with --top-k also
{\"answers\": […]}.

A model that was trained for stories (`regard train babi`) knows some words and gives one of some
answers, which need not stand in the text. It tells which sentences it looked at; with --json
{answer, score, support: [{sentence, text, weight}, …]}, sentences counted from 0.

Of standard input, a line that gets no answer is told on standard error, gives an empty line (with
--json an object with error), and makes the exit code 1 at the end.";

/// Find the answer to a question in a text, or to one about a story
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Flags {
    /// The questions; without them, the lines of standard input
    question: Vec<String>,
    /// The text in which the answer stands
    #[arg(long, value_name = "TEXT", conflicts_with = "file")]
    context: Option<String>,
    /// A file with that text
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// A model: a folder, a name that `regard models` lists, or an id of the Hugging Face
    /// Hub [default: stories, which ships]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// So many answers for each, the likeliest first
    #[arg(long, value_name = "N", default_value_t = 1)]
    top_k: usize,
    /// Tokens of an answer at most
    #[arg(long, value_name = "N", default_value_t = 15)]
    max_answer_len: usize,
    /// Tokens that are read at once, with those of the question
    #[arg(long, value_name = "N", default_value_t = 384)]
    max_seq_len: usize,
    /// Tokens that two windows of a long text share
    #[arg(long, value_name = "N", default_value_t = 128)]
    doc_stride: usize,
    /// There may be no answer
    #[arg(long)]
    handle_impossible_answer: bool,
    #[command(flatten)]
    hub: Hub,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let context = match (&flags.context, &flags.file) {
        (Some(text), _) => {
            inputs::not_files_but(std::slice::from_ref(text), "--file")?;
            text.clone()
        }
        (_, Some(path)) => {
            std::fs::read_to_string(path).with_context(|| path.display().to_string())?
        }
        _ => bail!("--context or --file: need a text in which the answer stands"),
    };
    if let Some(listener) = models::listener(flags.model.as_deref(), &flags.hub)? {
        if context.trim().is_empty() {
            bail!("--context: need a story; this one is empty");
        }
        return told(&flags, &listener, &context, global, out);
    }
    let reader = models::reader(flags.model.as_deref(), &flags.hub, Head::Span)?;
    let asking = Asking {
        top_k: flags.top_k.max(1),
        max_answer_len: flags.max_answer_len.max(1),
        max_seq_len: flags.max_seq_len,
        doc_stride: flags.doc_stride,
        handle_impossible_answer: flags.handle_impossible_answer,
    };
    inputs::each(&flags.question, global.json, out, &mut |question, out| {
        let answers = reader.answer(question, &context, &asking)?;
        if global.json {
            let nothing = Answer { answer: String::new(), score: 0.0, start: 0, end: 0 };
            let mut best = object(answers.first().unwrap_or(&nothing));
            if flags.top_k > 1 {
                best["answers"] = answers.iter().map(object).collect();
            }
            return Ok(write_json(out, &best)?);
        }
        if answers.is_empty() {
            writeln!(out)?;
        }
        for Answer { answer, score, .. } in &answers {
            writeln!(out, "{answer}\t{score:.4}")?;
        }
        Ok(())
    })
}

/// The answers of a model that is told a story.
fn told(
    flags: &Flags,
    listener: &Listener,
    story: &str,
    global: &Global,
    out: &mut dyn Write,
) -> Result<Outcome> {
    inputs::each(&flags.question, global.json, out, &mut |question, out| {
        let Heard { replies, support } = listener.answer(question, story, flags.top_k.max(1))?;
        let object = |r: &Reply| json!({ "answer": r.answer, "score": r.score });
        if global.json {
            let mut best = object(&replies[0]);
            if flags.top_k > 1 {
                best["answers"] = replies.iter().map(object).collect();
            }
            best["support"] = support
                .iter()
                .map(|s| json!({ "sentence": s.sentence, "text": s.text, "weight": s.weight }))
                .collect();
            return Ok(write_json(out, &best)?);
        }
        for Reply { answer, score } in &replies {
            writeln!(out, "{answer}\t{score:.4}")?;
        }
        for Support { sentence, text, weight } in &support {
            writeln!(out, "  {sentence}  {weight:.2}  {text}")?;
        }
        Ok(())
    })
}

fn object(a: &Answer) -> Value {
    json!({ "answer": a.answer, "score": a.score, "start": a.start, "end": a.end })
}
