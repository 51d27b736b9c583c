//! `regard rerank`: ranking of texts by relevance to a query.

use super::texts::{FileFlags, TableFlags, TextSource};
use super::{Global, Outcome, inputs, write_json};
use crate::hub::Hub;
use crate::models;
use anyhow::{Context, Result, bail};
use clap::Args;
use regard_tasks::pipeline::Pipeline;
use regard_tasks::rerank::{Inputs, Parameters, Ranked, Reranker};
use std::io::Write;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Scores each line of --texts (or row of a table, --text COLUMN), or of standard input, against the
query, and prints the most relevant first: score, tab, number of the line or row from 1, tab, text.
No model for this is built in.

Examples (texts are your own file; a model is trained before, or downloaded):
  regard rerank 'Who wrote Hamlet?' --texts passages.txt --model runs/squad-rerank
  regard rerank 'baking bread' --top-n 3 --model cross-encoder/ms-marco-MiniLM-L6-v2 < texts.txt
  regard rerank 'how to bake bread' --model sentence-transformers/all-MiniLM-L6-v2 < titles.txt
The first needs regard train squad-rerank; the others download from the Hub.

A cross-encoder (a model with a sequence classification head: regard train squad-rerank, or one of
the Hub) encodes query and text together; the score is the probability that the text is relevant, or
its logit with --raw-scores. With any other encoder, the score is the cosine of two embeddings.

--json prints {\"results\": [{\"index\", \"score\", \"text\"}, …]}, indices from 0.";

/// Rank texts by their relevance to a query
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Flags {
    /// Query to rank for
    query: String,
    /// File with a text on each line, or a table (.csv, .tsv, .jsonl) [default: standard input]
    #[arg(long = "texts", alias = "file", id = "file", value_name = "FILE")]
    texts: Option<PathBuf>,
    /// Each line is a text, even if the lines look like the rows of a table
    #[arg(long)]
    lines: bool,
    #[command(flatten)]
    table: TableFlags,
    /// Model: a folder, a name listed by `regard models`, or a Hugging Face Hub id (required)
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Print only the N most relevant texts [default: all]
    #[arg(long, value_name = "N", value_parser = inputs::at_least_one)]
    top_n: Option<usize>,
    /// Print logits instead of probabilities
    #[arg(long)]
    raw_scores: bool,
    #[command(flatten)]
    hub: Hub,
}

pub fn run(mut flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let reranker: Reranker = models::open(flags.model.as_deref(), &flags.hub)?;
    let texts = texts(&mut flags)?;
    let parameters =
        Parameters { top_n: flags.top_n, raw_scores: flags.raw_scores, return_text: true };
    let cut = |text: &String| {
        let unread = match &reranker {
            Reranker::CrossEncoder(reader) => reader.unread(&flags.query, Some(text))?,
            // Embeddings split a long text.
            Reranker::Embeddings(_) => 0,
        };
        Ok(usize::from(unread > 0))
    };
    let cut: usize = texts.iter().map(cut).sum::<Result<usize, regard_tasks::Error>>()?;
    if cut > 0 {
        inputs::note(&format!(
            "{cut} of {} texts are longer than the model's maximum length and are truncated",
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

/// Reads the texts of the file or of standard input; an empty line is an error.
fn texts(flags: &mut Flags) -> Result<Vec<String>> {
    let (file, table) = (flags.texts.clone(), std::mem::take(&mut flags.table));
    let file = FileFlags { file, lines: flags.lines, table };
    let model = flags.model.as_deref();
    let source = TextSource { file: Some(&file), model, flag: "texts", ..TextSource::default() };
    let mut stream = source.open()?;
    let mut lines = vec![];
    while let Some(line) = stream.next().transpose()? {
        if line.trim().is_empty() {
            let of = file.file.map_or("standard input".into(), |p| p.display().to_string());
            let message = format!("line {} is empty", stream.line());
            return Err(regard_tasks::Error::invalid(message)).context(of);
        }
        lines.push(line);
    }
    if lines.is_empty() {
        bail!("rerank: got no texts, need a text on each line of --texts or of standard input");
    }
    Ok(lines)
}
