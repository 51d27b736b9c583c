//! `regard rerank`: texts by their relevance to a query.

use super::{Global, Outcome, inputs, write_json};
use crate::hub::Hub;
use crate::models;
use anyhow::{Context, Result, bail};
use clap::Args;
use regard_tasks::data::Lines;
use regard_tasks::pipeline::Pipeline;
use regard_tasks::rerank::{Inputs, Parameters, Ranked, Reranker};
use std::io::{BufReader, Write, stdin};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  regard rerank 'Who wrote Hamlet?' --texts passages.txt --model runs/squad-rerank
  regard rerank 'Who wrote Hamlet?' --top-n 3 --json --model … < passages.txt
  regard rerank 'how to bake bread' --model sentence-transformers/all-MiniLM-L6-v2 < titles.txt

Each line of --texts, or of standard input, is a text. A line out for each, the most relevant first:
score, tab, number of the line from 1, tab, text.

A model with a head for sequences (regard train squad-rerank, or a cross-encoder of the Hub) reads
the query and a text together; its score is the probability that the text is relevant, or with
--raw-scores its logit. Any other encoder gives the cosine of two embeddings.

With --json: {\"results\": [{\"index\", \"score\", \"text\"}, …]}, indices from 0.";

/// Rank texts by their relevance to a query
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Flags {
    /// The query
    query: String,
    /// A file with a text on each line [default: standard input]
    #[arg(long, value_name = "FILE")]
    texts: Option<PathBuf>,
    /// A model: a folder, a name that `regard models` lists, or an id of the Hugging Face Hub
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// The most relevant texts only
    #[arg(long, value_name = "N", value_parser = inputs::at_least_one)]
    top_n: Option<usize>,
    /// Logits instead of probabilities
    #[arg(long)]
    raw_scores: bool,
    #[command(flatten)]
    hub: Hub,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let reranker: Reranker = models::open(flags.model.as_deref(), &flags.hub)?;
    let texts = texts(&flags)?;
    let parameters =
        Parameters { top_n: flags.top_n, raw_scores: flags.raw_scores, return_text: true };
    let cut = |text: &String| {
        let unread = match &reranker {
            Reranker::CrossEncoder(reader) => reader.unread(&flags.query, Some(text))?,
            // Embeddings read a long text in parts.
            Reranker::Embeddings(_) => 0,
        };
        Ok(usize::from(unread > 0))
    };
    let cut: usize = texts.iter().map(cut).sum::<Result<usize, regard_tasks::Error>>()?;
    if cut > 0 {
        inputs::note(&format!(
            "{cut} of {} texts are cut, because they are longer than the model reads",
            texts.len()
        ));
    }
    let response = reranker.run_one(Inputs { query: flags.query, texts }, &parameters)?;
    if global.json {
        write_json(out, &response)?;
        return Ok(Outcome::Positive);
    }
    for Ranked { index, score, text } in &response.results {
        writeln!(out, "{score:.4}\t{}\t{}", index + 1, text.as_deref().unwrap_or_default())?;
    }
    Ok(Outcome::Positive)
}

/// The texts of the file or of standard input; an empty line is an error.
fn texts(flags: &Flags) -> Result<Vec<String>> {
    let lines: Vec<String> = match &flags.texts {
        Some(path) => Lines::open(inputs::file(path))?.collect::<Result<_, _>>()?,
        None => Lines::new(BufReader::new(stdin().lock()), "standard input")
            .collect::<Result<_, _>>()?,
    };
    if let Some(at) = lines.iter().position(|line| line.trim().is_empty()) {
        let of = flags.texts.as_ref().map_or("standard input".into(), |p| p.display().to_string());
        return Err(regard_tasks::Error::invalid(format!("line {} is empty", at + 1))).context(of);
    }
    if lines.is_empty() {
        bail!("rerank: got no texts, need a text on each line of --texts or of standard input");
    }
    Ok(lines)
}
