//! `regard answer`: the part of a text that answers a question, or the answer to a question about
//! a story.

use super::{Global, Outcome, inputs, write_json};
use crate::hub::Hub;
use crate::models;
use anyhow::{Context, Result, bail};
use clap::Args;
use regard_tasks::answer::{Answer, Answerer, Asking, Inputs};
use regard_tasks::answer_story::{self, Listener, Reply, Support};
use regard_tasks::pipeline::Pipeline;
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
    match models::answering(flags.model.as_deref(), &flags.hub)? {
        models::Answering::Story(_) if context.trim().is_empty() => {
            bail!("--context: need a story; this one is empty")
        }
        models::Answering::Story(listener) => about_story(&flags, &listener, &context, global, out),
        models::Answering::Text(answerer) => about_text(&flags, &answerer, &context, global, out),
    }
}

/// Answers that stand in a text.
fn about_text(
    flags: &Flags,
    answerer: &Answerer,
    context: &str,
    global: &Global,
    out: &mut dyn Write,
) -> Result<Outcome> {
    let asking = Asking {
        top_k: flags.top_k.max(1),
        max_answer_len: flags.max_answer_len.max(1),
        max_seq_len: flags.max_seq_len,
        doc_stride: flags.doc_stride,
        handle_impossible_answer: flags.handle_impossible_answer,
    };
    inputs::each(&flags.question, global.json, out, &mut |question, out| {
        let inputs = Inputs { question: question.to_string(), context: context.to_string() };
        let response = answerer.run_one(inputs, &asking)?;
        if global.json {
            return Ok(write_json(out, &response)?);
        }
        // Without an answer an empty line: a line out for each question.
        if response.is_empty() {
            return Ok(writeln!(out)?);
        }
        let best = std::slice::from_ref(&response.best);
        for Answer { answer, score, .. } in response.answers.as_deref().unwrap_or(best) {
            writeln!(out, "{answer}\t{score:.4}")?;
        }
        Ok(())
    })
}

/// Answers about a story, which need not stand in it.
fn about_story(
    flags: &Flags,
    listener: &Listener,
    story: &str,
    global: &Global,
    out: &mut dyn Write,
) -> Result<Outcome> {
    let parameters = answer_story::Parameters { top_k: flags.top_k.max(1) };
    inputs::each(&flags.question, global.json, out, &mut |question, out| {
        let inputs = Inputs { question: question.to_string(), context: story.to_string() };
        let response = listener.run_one(inputs, &parameters)?;
        if global.json {
            return Ok(write_json(out, &response)?);
        }
        let best = std::slice::from_ref(&response.best);
        for Reply { answer, score } in response.answers.as_deref().unwrap_or(best) {
            writeln!(out, "{answer}\t{score:.4}")?;
        }
        for Support { sentence, text, weight } in &response.support {
            writeln!(out, "  {sentence}  {weight:.2}  {text}")?;
        }
        Ok(())
    })
}
