//! `regard embed`: embeddings of texts, and word vectors.

mod words;

use super::texts::{FileFlags, TextSource};
use super::{Global, Outcome, inputs, write_json};
use crate::hub::Hub;
use crate::models;
use anyhow::Result;
use clap::{Args, ValueEnum};
use regard_tasks::embed::{Embedder, Parameters, SentencePooling};
use regard_tasks::pipeline::Pipeline;
use std::io::Write;

const EXAMPLES: &str = "\
Computes one vector per TEXT, or per line of standard input, with a sentence encoder; or looks up
word vectors (--words, --analogy, --similarity). No sentence encoder is built in.

Examples:
  regard embed 'They are watching.' --normalize --model sentence-transformers/all-MiniLM-L6-v2
  regard embed --json --model FOLDER < sentences.txt > vectors.jsonl   # your model and file
  regard embed --words king river --nearest 5       # nearest neighbours; needs data
  regard embed --analogy man king woman             # man is to king as woman is to …; needs data
  regard embed --words cat dog car --one-hot        # one-hot vectors or embeddings; needs data
The first downloads from the Hub. The last three need the data set `glove-subset` (`regard data
glove-subset` tells how to get it), or --vectors FILE.

Prints the components of a vector on one line, separated by spaces, or {\"embedding\": […]} with
--json. A text beyond the model's maximum length is split, and the mean of its parts is returned.
Any text model is accepted; a note tells if it was not trained for embeddings.

--vectors takes a file in GloVe or word2vec format (text, or binary if its name ends in .bin; .gz
after either), or `glove-subset`. Word models can be initialised with the same vectors: recipe key
vocabulary.vectors, as in sst2-words-glove.

If a line of standard input fails, or is empty, the error goes to stderr, an empty line (or
{\"error\": …} with --json) is printed in its place, and the exit code is 1.";

/// Compute embeddings of texts, or look up word vectors
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Flags {
    /// Texts to embed [default: the lines of standard input]
    text: Vec<String>,
    /// Model for texts: a folder, a name listed by `regard models`, or a Hugging Face Hub id
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Look up these words in --vectors, instead of embedding texts
    #[arg(long, value_name = "WORD", num_args = 1..)]
    words: Vec<String>,
    /// Print the N nearest neighbours of each of --words, or the N best answers to --analogy
    /// [default with --analogy: 5]
    #[arg(long, value_name = "N", value_parser = inputs::at_least_one)]
    nearest: Option<usize>,
    /// Solve an analogy: A is to B as C is to …
    #[arg(long, num_args = 3, value_names = ["A", "B", "C"])]
    analogy: Option<Vec<String>>,
    /// Compare one-hot vectors of --words, which are all equally far apart, with embeddings
    #[arg(long)]
    one_hot: bool,
    /// Correlate the vectors with human ratings: 13 benchmarks of the data set `word-similarity`
    #[arg(long)]
    similarity: bool,
    /// Word vectors: a file, or the data set `glove-subset`
    #[arg(long, value_name = "FILE", default_value = "glove-subset")]
    vectors: String,
    /// Pooling of token vectors [default: as in the model's modules.json (sentence-transformers),
    /// or mean]
    #[arg(long, value_enum)]
    pooling: Option<How>,
    /// Scale vectors to unit length [default: as in modules.json]
    #[arg(long)]
    normalize: bool,
    #[command(flatten)]
    file: FileFlags,
    #[command(flatten)]
    hub: Hub,
}

/// Pooling of token vectors.
#[derive(Clone, Copy, ValueEnum)]
pub enum How {
    /// Mean over the tokens
    Mean,
    /// Vector of the first token
    Cls,
    /// Maximum of each component
    Max,
}

impl From<How> for SentencePooling {
    fn from(how: How) -> SentencePooling {
        match how {
            How::Mean => SentencePooling::Mean,
            How::Cls => SentencePooling::Cls,
            How::Max => SentencePooling::Max,
        }
    }
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let of_words = flags.one_hot || flags.similarity || flags.nearest.is_some();
    if of_words || !flags.words.is_empty() || flags.analogy.is_some() {
        flags.file.refuse("embed", "single words")?;
        return words::run(&flags, global, out);
    }
    let model = models::required::<Embedder>(flags.model.as_deref())?;
    let embedder: Embedder = models::open(Some(model), &flags.hub)?;
    let pooling = flags.pooling.map(SentencePooling::from);
    let parameters = Parameters { pooling, normalize: flags.normalize.then_some(true) };
    // Unsupported pooling of the model is reported before the first text.
    let (pooling, _) = embedder.settings(&parameters)?;
    if let Some(untrained) = embedder.0.untrained_note(pooling)? {
        inputs::note(&format!("{model}: {untrained}"));
    }
    let mut unknown = inputs::Unknown::default();
    let source = TextSource::of(&flags.text, &flags.file, Some(model));
    inputs::each(&source, global.json, out, &mut |text, out| {
        unknown.note(embedder.0.tokenizer(), text);
        let response = embedder.run_one(text.to_string(), &parameters)?;
        if global.json {
            return Ok(write_json(out, &response)?);
        }
        let numbers: Vec<String> = response.embedding.iter().map(f32::to_string).collect();
        Ok(writeln!(out, "{}", numbers.join(" "))?)
    })
}
