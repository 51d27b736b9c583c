//! `regard search`: semantic search over the lines of a file or a column of a table. (Flags of the
//! search of a decoder are in `search.rs`.)

mod index;

use super::embed::How;
use super::say::quoted;
use super::texts::TextSource;
use super::{Global, Outcome, inputs, write_json};
use crate::hub::Hub;
use crate::models::{self, ResolvedModel};
use crate::show::{self, terminal};
use anyhow::{Context, Result, bail};
use clap::Args;
use regard_tasks::embed::SentencePooling;
use regard_tasks::import::texts::looks_like_table;
use regard_tasks::rerank::Reranker;
use regard_tasks::say;
use regard_tasks::search::{FileTexts, Found, Response, Searcher, TOP_K, TextChoice};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Lines of a text that are compared with a table.
const LINES: usize = 30;

const EXAMPLES: &str = "\
Finds the lines of FILE, or the cells of a column of its table, whose embeddings have the highest
cosine similarity to each QUERY, or to each line of standard input. No model for this is built in.

Examples (files are your own; models with a slash are downloaded from the Hub):
  regard search notes.txt 'how to bake bread' --model sentence-transformers/all-MiniLM-L6-v2
  regard search reviews.csv 'slow delivery' --column text --top-k 10 --model FOLDER
  regard search faq.jsonl 'forgot my password' --model FOLDER --rerank FOLDER --candidates 100
  regard search notes.txt --json --model FOLDER < queries.txt   # your model; a query on each line

FILE is a table if its name ends in .csv (with commas, semicolons, or what a first line sep=; says),
.tsv, .jsonl or .json, or if --column is given, and otherwise a text; .gz may follow. Without
--column, the column is the one that is called text or sentence; else those that are called title,
body or the like, joined. A note says which. Empty lines and cells are left out.

The first search embeds every text and keeps the embeddings in FILE.regard-index, so that later ones
embed the query alone. If the file, the column, the model or the pooling has changed, the index is
made again; a file that is no index is never overwritten. Every search compares all texts. A text
beyond the model's maximum length is split, and the mean of its parts is compared.

--rerank scores the best --candidates again: with a cross-encoder by the probability that the text
is relevant to the query (regard rerank), otherwise by the embeddings of that model.

Prints rank, score, line number from 1 and text, separated by tabs; on a terminal in columns, with
texts cut to its width. --json prints {\"query\", \"results\": [{\"line\", \"score\", \"text\"}, …]}.

If a line of standard input fails, the error goes to stderr, an empty line (or {\"error\": …} with
--json) is printed, and the exit code is 1.";

/// Search the lines of a file, or a column of a table, by meaning
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Flags {
    /// File to search: a text, or a table (.csv, .tsv, .jsonl); - is standard input
    file: PathBuf,
    /// Queries [default: the lines of standard input]
    query: Vec<String>,
    /// Embedding model: a folder, a name listed by `regard models`, or a Hugging Face Hub id
    /// (required)
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Columns of a table, by name or number from 1; several are joined: title,body
    #[arg(long, value_name = "COLUMNS")]
    column: Option<String>,
    /// The first row of a table is a text and not a header
    #[arg(long)]
    no_header: bool,
    /// Number of results for a query
    #[arg(long, value_name = "N", default_value_t = TOP_K, value_parser = inputs::at_least_one)]
    top_k: usize,
    /// Where to keep the embeddings [default: FILE.regard-index]
    #[arg(long, value_name = "PATH")]
    index: Option<PathBuf>,
    /// Rank the best candidates again with this model, a cross-encoder or an embedding model
    #[arg(long, value_name = "MODEL")]
    rerank: Option<String>,
    /// Number of candidates for --rerank [default: 50, or --top-k if that is more]
    #[arg(long, value_name = "N", value_parser = inputs::at_least_one, requires = "rerank")]
    candidates: Option<usize>,
    /// Pooling of token vectors [default: as in the model's modules.json (sentence-transformers),
    /// or mean]
    #[arg(long, value_enum)]
    pooling: Option<How>,
    #[command(flatten)]
    hub: Hub,
}

impl Flags {
    /// Number of texts to find before they are ranked again.
    fn candidates(&self) -> Result<usize> {
        const DEFAULT: usize = 50;
        match (&self.rerank, self.candidates) {
            (None, _) => Ok(self.top_k),
            (_, None) => Ok(DEFAULT.max(self.top_k)),
            (_, Some(candidates)) if candidates < self.top_k => {
                bail!("--candidates {candidates} is below --top-k {}", self.top_k)
            }
            (_, Some(candidates)) => Ok(candidates),
        }
    }
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let model = models::required::<Searcher>(flags.model.as_deref())?;
    if flags.file == Path::new("-") && flags.query.is_empty() {
        bail!("search: FILE is standard input, so pass the queries as arguments");
    }
    let candidates = flags.candidates()?;
    let swapped = flags.query.iter().find(|query| Path::new(query).is_file());
    if let (false, Some(file)) = (flags.file.exists(), swapped) {
        bail!(
            "search: there is no file {}, and {file} is one; the file comes first: regard search \
             FILE QUERY",
            flags.file.display()
        );
    }
    let texts = texts(&flags)?;
    let place = index::Place::find(&flags)?;
    let searcher: Searcher = models::open(Some(model), &flags.hub)?;
    let pooling = searcher.pooling(flags.pooling.map(SentencePooling::from))?;
    if let Some(untrained) = searcher.encoder().untrained_note(pooling)? {
        inputs::note(&format!("{model}: {untrained}"));
    }
    // A revision is one of --model.
    let hub = Hub { revision: None, adapter: None, ..flags.hub.clone() };
    let reranker: Option<Reranker> =
        flags.rerank.as_deref().map(|model| open_reranker(model, &hub)).transpose()?;
    let embeddings = place.embeddings(&searcher, &texts, pooling)?;
    let mut unknown = inputs::Unknown::default();
    let (mut cut, mut first) = (false, true);
    let has_heading = flags.query.len() != 1;
    let source = TextSource { given: &flags.query, ..TextSource::default() };
    inputs::each(&source, global.json, out, &mut |query, out| {
        unknown.note(searcher.encoder().tokenizer(), query);
        let nearest = searcher.nearest(query, pooling, &embeddings, candidates)?;
        let text = |row: usize| (texts.texts[row].line, texts.texts[row].text.as_str());
        let mut response = Response::new(query, &nearest, text);
        if let Some(reranker) = &reranker {
            note_cut(reranker, &response, &mut cut)?;
            response.rerank(reranker, flags.top_k)?;
        }
        if global.json {
            return Ok(write_json(out, &response)?);
        }
        if has_heading {
            let between = if std::mem::take(&mut first) { "" } else { "\n" };
            writeln!(out, "{between}{}", plain(query))?;
        }
        Ok(print(out, &response.results, terminal::width_of_terminal())?)
    })
}

/// Reads the texts, and notes which column they are in.
fn texts(flags: &Flags) -> Result<FileTexts> {
    let choice = TextChoice {
        columns: flags.column.as_deref(),
        flag: "column",
        header: flags.no_header.then_some(false),
        ..TextChoice::default()
    };
    let texts = FileTexts::open(inputs::file(&flags.file), &choice)?;
    let file = flags.file.display();
    if let Some(column) = &texts.column {
        let other = if flags.column.is_none() { "; for another one: --column NAME" } else { "" };
        let header = if texts.has_header { "" } else { ", no header" };
        inputs::note(&format!(
            "{file}: searching column {:?}{header} of {}{other}",
            say::short(column, 80),
            say::many(texts.texts.len(), "row")
        ));
        return Ok(texts);
    }
    let lines: Vec<&str> = texts.texts.iter().take(LINES).map(|text| text.text.as_str()).collect();
    if let Some(found) = looks_like_table((lines.join("\n") + "\n").as_bytes(), &[], false) {
        inputs::note(&format!(
            "{file}: looks like a table, and each of its lines is searched as a text; to search a \
             column: --column {}",
            quoted(&found.text)
        ));
    }
    Ok(texts)
}

fn open_reranker(model: &str, hub: &Hub) -> Result<Reranker> {
    const FLAG: &str = "--rerank";
    match models::resolve_as(FLAG, model, hub)? {
        ResolvedModel::Shipped(model) => bail!(
            "{FLAG}: the built-in model {} does not rank texts; pass a folder or a Hub id, as \
             {FLAG} cross-encoder/ms-marco-MiniLM-L6-v2",
            model.name
        ),
        found => Reranker::load(models::stored(&found, hub)?).context(FLAG),
    }
}

/// Notes once that a cross-encoder does not read whole candidates.
fn note_cut(
    reranker: &Reranker,
    response: &Response,
    told: &mut bool,
) -> Result<(), regard_tasks::Error> {
    let Reranker::CrossEncoder(reader) = reranker else { return Ok(()) };
    if *told {
        return Ok(());
    }
    let mut cut = 0;
    for Found { text, .. } in &response.results {
        cut += usize::from(reader.unread(&response.query, Some(text))? > 0);
    }
    if cut > 0 {
        *told = true;
        inputs::note(&format!(
            "--rerank: {cut} of {} are longer than the model's maximum length and are truncated",
            say::many(response.results.len(), "candidate")
        ));
    }
    Ok(())
}

/// Prints results as columns of a terminal of this width, or separated by tabs.
fn print(out: &mut dyn Write, results: &[Found], terminal: Option<usize>) -> io::Result<()> {
    let digits = |number: u64| number.to_string().len();
    let rank_width = digits(results.len() as u64);
    let line_width = results.iter().map(|found| digits(found.line)).max().unwrap_or(0);
    for (rank, Found { line, score, text }) in (1..).zip(results) {
        let text = plain(text);
        match terminal {
            None => writeln!(out, "{rank}\t{score:.4}\t{line}\t{text}")?,
            Some(width) => {
                let left = format!("{rank:>rank_width$}  {score:>7.4}  {line:>line_width$}  ");
                // Some of the text, even if the terminal is too narrow.
                let room = width.saturating_sub(left.len()).max(10);
                writeln!(out, "{left}{}", show::label(&text, room))?;
            }
        }
    }
    Ok(())
}

/// Replaces line ends, tabs and other control characters, which would break a row of output or act
/// on a terminal.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_fit_the_terminal() {
        let found = |line, score, text: &str| Found { line, score, text: text.into() };
        let results = [found(7, 0.98765, "a\tb\nc"), found(1234, -0.5, &"注意 ".repeat(40))];
        let printed = |terminal| {
            let mut out = vec![];
            print(&mut out, &results, terminal).unwrap();
            String::from_utf8(out).unwrap()
        };
        let rows = printed(Some(40));
        let rows: Vec<&str> = rows.lines().collect();
        assert_eq!(rows[0], "1   0.9877     7  a b c");
        assert!(
            rows[1].starts_with("2  -0.5000  1234  注意 ") && rows[1].ends_with('…'),
            "{rows:?}"
        );
        assert!(show::width(rows[1]) <= 40, "{rows:?}");
        let whole = printed(None);
        assert!(whole.starts_with("1\t0.9877\t7\ta b c\n2\t-0.5000\t1234\t注意 "), "{whole}");
        assert_eq!(whole.matches("注意").count(), 40);
    }
}
