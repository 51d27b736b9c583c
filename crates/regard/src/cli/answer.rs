//! `regard answer`: extractive question answering, and answers about stories (bAbI).

use super::binary::read_text;
use super::texts::TextSource;
use super::{Global, Outcome, file_names, inputs, write_json};
use crate::hub::Hub;
use crate::models;
use anyhow::{Result, bail};
use clap::Args;
use regard_tasks::Error;
use regard_tasks::answer::{Answer, Answerer, Asking, Inputs};
use regard_tasks::answer_story::{self, Reply, StoryAnswerer, Support};
use regard_tasks::pipeline::Pipeline;
use std::io::Write;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Answers each QUESTION, or each line of standard input, about a text. The built-in model `stories`
knows the 145 words of the bAbI stories; a model trained on SQuAD finds answers in English texts.

Examples:
  regard answer 'Where is John?' --context 'John took the milk. John went to the hallway.'
  regard answer 'Where is the milk?' --top-k 3 --json --context 'John took the milk.'
  regard answer 'Who wrote Hamlet?' --file article.txt \\
      --model deepset/minilm-uncased-squad2                # your file; downloads from the Hub
  regard answer --context 'Hamlet was written by Shakespeare.' \\
      --model runs/squad-minilm < questions.txt            # regard train squad-minilm

Extractive models print the answer, a tab and its probability; long texts are processed in
overlapping windows. --json prints {answer, score, start, end} with character offsets; with --top-k
also {\"answers\": […]}.

Models for stories (regard train babi) choose one of their known answers, which need not occur in
the text, and also print the sentences they attended to. --json prints {answer, score, support:
[{sentence, text, weight}, …]}, sentences counted from 0. If the answer, or what the question is
about, is not in the story, a note on stderr says so, and {note} with --json.

If a line of standard input fails, the error goes to stderr, an empty line (or {\"error\": …} with
--json) is printed, and the exit code is 1.";

/// Answer questions about a text or a story
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Flags {
    /// Questions [default: the lines of standard input]
    question: Vec<String>,
    /// Text to answer from
    #[arg(long, value_name = "TEXT", conflicts_with = "file")]
    context: Option<String>,
    /// File with the text
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Model: a folder, a name listed by `regard models`, or a Hugging Face Hub id
    /// [default: `stories`, built in]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Number of answers per question, the most probable first
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = inputs::at_least_one)]
    top_k: usize,
    /// Maximum number of tokens of an answer
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = inputs::at_least_one)]
    max_answer_len: usize,
    /// Window size in tokens, including the question
    #[arg(long, value_name = "N", default_value_t = 384)]
    max_seq_len: usize,
    /// Overlap of two windows in tokens
    #[arg(long, value_name = "N", default_value_t = 128)]
    doc_stride: usize,
    /// Allow an empty answer (SQuAD 2)
    #[arg(long)]
    handle_impossible_answer: bool,
    #[command(flatten)]
    hub: Hub,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let context = match (&flags.context, &flags.file) {
        (Some(text), _) => {
            file_names::not_files_but(std::slice::from_ref(text), "--file")?;
            text.clone()
        }
        (_, Some(path)) => read_text(path)?,
        _ => bail!("--context or --file: need the text to answer from"),
    };
    match models::answering(flags.model.as_deref(), &flags.hub)? {
        models::Answering::Story(_) if context.trim().is_empty() => {
            bail!("--context: got an empty text, need a story")
        }
        models::Answering::Story(listener) => about_story(&flags, &listener, &context, global, out),
        models::Answering::Text(answerer) => about_text(&flags, &answerer, &context, global, out),
    }
}

/// The questions.
fn source(flags: &Flags) -> TextSource<'_> {
    TextSource { given: &flags.question, model: flags.model.as_deref(), ..TextSource::default() }
}

/// Answers that are spans of the text.
fn about_text(
    flags: &Flags,
    answerer: &Answerer,
    context: &str,
    global: &Global,
    out: &mut dyn Write,
) -> Result<Outcome> {
    let asking = Asking {
        top_k: flags.top_k,
        max_answer_len: flags.max_answer_len,
        max_seq_len: flags.max_seq_len,
        doc_stride: flags.doc_stride,
        handle_impossible_answer: flags.handle_impossible_answer,
    };
    let source = source(flags);
    inputs::each(&source, global.json, out, &mut |question, out| {
        let inputs = Inputs { question: question.to_string(), context: context.to_string() };
        let response = answerer.run_one(inputs, &asking)?;
        if global.json {
            return Ok(write_json(out, &response)?);
        }
        // One line for each question, empty if there is no answer.
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

/// Answers about a story, from the model's list of answers.
fn about_story(
    flags: &Flags,
    listener: &StoryAnswerer,
    story: &str,
    global: &Global,
    out: &mut dyn Write,
) -> Result<Outcome> {
    let parameters = answer_story::Parameters { top_k: flags.top_k };
    let source = source(flags);
    inputs::each(&source, global.json, out, &mut |question, out| {
        let inputs = Inputs { question: question.to_string(), context: story.to_string() };
        let response = listener.run_one(inputs, &parameters).map_err(|error| {
            // The built-in model knows few words.
            let why = error.to_string();
            match flags.model.is_none() && why.contains("words that the model knows") {
                true => Error::Invalid(format!("{why}. {}", models::downloaded::<Answerer>())),
                false => error,
            }
        })?;
        if let Some(why) = &response.note {
            inputs::note(&format!("{question:?}: {why}"));
        }
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
