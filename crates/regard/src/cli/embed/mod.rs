//! `regard embed`: a vector for a text, and what vectors of words know.

mod words;

use super::{Global, Outcome, inputs, write_json};
use crate::hub::Hub;
use crate::models;
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use regard_tasks::embed::{Embedder, Parameters, Pooling};
use regard_tasks::pipeline::Pipeline;
use std::io::Write;

const EXAMPLES: &str = "\
Examples:
  regard embed 'They are watching.' --normalize --model sentence-transformers/all-MiniLM-L6-v2
  regard embed --json --model … < sentences.txt > vectors.jsonl
  regard embed --words king river --nearest 5        words that are used alike
  regard embed --analogy man king woman              man is to king as woman is to …
  regard embed --words cat dog car --one-hot         what one-hot vectors do not know
  regard embed --similarity                          how far vectors agree with people

Without TEXT, each line of standard input is one. The numbers of a vector stand on one line,
separated by spaces; with --json: {\"embedding\": […]}. A text that is longer than the model can
read is read in parts, of which the mean is taken.

Of standard input, a line that gets no answer is told on standard error, gives an empty line (with
--json an object with error), and makes the exit code 1 at the end.

Words are looked up in --vectors: a file of GloVe or word2vec (as text, or binary if its name ends in
.bin; .gz after either), or glove-subset, a data set. A model of words can begin with the same
vectors: recipes have a key `vectors` in [vocabulary], as sst2-words-glove has.";

/// Make a vector of a text
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Flags {
    /// The texts; without them, the lines of standard input
    text: Vec<String>,
    /// A model: a folder, a name that `regard models` lists, or an id of the Hugging Face Hub
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Words instead of texts: their vectors in --vectors
    #[arg(long, value_name = "WORD", num_args = 1..)]
    words: Vec<String>,
    /// Of each of --words, the so many nearest words; of --analogy, so many answers
    #[arg(long, value_name = "N")]
    nearest: Option<usize>,
    /// What is to C as B is to A?
    #[arg(long, num_args = 3, value_names = ["A", "B", "C"])]
    analogy: Option<Vec<String>>,
    /// Of --words, what one-hot vectors say: nothing, because all are equally far apart
    #[arg(long)]
    one_hot: bool,
    /// Compare the vectors with people, on the 13 sets of the data set word-similarity
    #[arg(long)]
    similarity: bool,
    /// Vectors of words: a file, or glove-subset
    #[arg(long, value_name = "FILE", default_value = "glove-subset")]
    vectors: String,
    /// How the vectors of a text's tokens become one [default: what modules.json of the model
    /// says, as sentence-transformers writes it; mean, if it has none]
    #[arg(long, value_enum)]
    pooling: Option<How>,
    /// Vectors of length 1 [default: what modules.json says]
    #[arg(long)]
    normalize: bool,
    #[command(flatten)]
    hub: Hub,
}

#[derive(Clone, Copy, ValueEnum)]
enum How {
    /// Their mean
    Mean,
    /// That of the first token
    Cls,
    /// The largest number of each column
    Max,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let of_words = flags.one_hot || flags.similarity || flags.nearest.is_some();
    if of_words || !flags.words.is_empty() || flags.analogy.is_some() {
        return words::run(&flags, global, out);
    }
    let model = flags.model.as_deref();
    let model = model.context("embed: need --model MODEL for texts, or --words WORD…")?;
    let embedder: Embedder = models::open(Some(model), &flags.hub)?;
    let pooling = flags.pooling.map(|how| match how {
        How::Mean => Pooling::Mean,
        How::Cls => Pooling::Cls,
        How::Max => Pooling::Max,
    });
    let parameters = Parameters { pooling, normalize: flags.normalize.then_some(true) };
    // What the model asks for and cannot be done is an error before the first text.
    embedder.settings(&parameters)?;
    let mut unknown = inputs::Unknown::default();
    inputs::each(&flags.text, global.json, out, &mut |text, out| {
        unknown.note(embedder.0.tokenizer(), text);
        let response = embedder.run_one(text.to_string(), &parameters)?;
        if global.json {
            return Ok(write_json(out, &response)?);
        }
        let numbers: Vec<String> = response.embedding.iter().map(f32::to_string).collect();
        Ok(writeln!(out, "{}", numbers.join(" "))?)
    })
}
