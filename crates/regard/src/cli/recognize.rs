//! `regard recognize`: what is said in a recording.

use super::{Global, Outcome, inputs, write_json};
use crate::hub::Hub;
use crate::models;
use anyhow::{Context, Result, bail};
use clap::Args;
use regard_tasks::attachment::Attachment;
use regard_tasks::audio::wav;
use regard_tasks::pipeline::Pipeline;
use regard_tasks::recognize::{Guess, Parameters, Partial, Recognizer};
use std::io::Write;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  regard recognize seven.wav
  regard recognize --top-k 3 --json a.wav b.wav --model runs/fsdd-truncated
  regard recognize --stream number.wav

A line out for each file, in their order: the label or the text, a tab, its probability; with
--top-k more of them, in the same line. Files are WAV of any rate and number of channels, PCM or
floats; each is brought to the rate of the model, and channels are mixed.

With --stream a file is heard piece by piece, as if it came from a microphone, and what is said so
far is written when it changes: two spaces, the seconds heard, a tab, the text. The last line is
the same as without. A layer waits for the rows that it sees after each, so that the first word
comes late: with digits after 0.7 seconds, which a short recording does not have.

At the first file that cannot be read the program ends, after those before it were told of.

With --json: {\"file\", \"text\", \"score\"}, with --top-k also {\"guesses\": [{\"text\", \"score\"}, …]};
with --stream before it {\"file\", \"seconds\", \"partial\"} for each change.";

/// Tell what is said in recordings
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Flags {
    /// The recordings, - for standard input
    #[arg(value_name = "FILE.wav", required = true)]
    file: Vec<PathBuf>,
    /// A model: a folder, or a name that `regard models` lists [default: digits, which ships]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// So many labels or texts for each, the likeliest first
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = inputs::at_least_one)]
    top_k: usize,
    /// Hear files piece by piece, and tell what is said so far
    #[arg(long)]
    stream: bool,
    /// Milliseconds of a piece
    #[arg(long, value_name = "MS", default_value_t = 100, requires = "stream")]
    chunk: u64,
    #[command(flatten)]
    hub: Hub,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    if !(1..=60_000).contains(&flags.chunk) {
        bail!("--chunk: got {} milliseconds, need 1 to 60000", flags.chunk);
    }
    let recognizer: Recognizer = models::open(flags.model.as_deref(), &flags.hub)?;
    let parameters = Parameters { top_k: flags.top_k };
    for path in flags.file.iter().map(|path| inputs::file(path)) {
        let name = path.display().to_string();
        let input = Attachment { data: wav::read(&path)?, file: Some(name.clone()), index: None };
        let response = match flags.stream {
            false => recognizer.run_one(input, &parameters).map_err(anyhow::Error::from),
            true => recognizer.run_streaming(input, flags.chunk, &parameters, &mut |partial| {
                let Partial { seconds, partial: text, .. } = &partial;
                match global.json {
                    true => write_json(out, &partial),
                    false => Ok(writeln!(out, "  {seconds:.2}\t{text}")?),
                }
            }),
        };
        let response = response.with_context(|| name)?;
        match global.json {
            true => write_json(out, &response)?,
            false => {
                let column = |guess: &Guess| format!("{}\t{:.4}", guess.text, guess.score);
                let columns: Vec<String> = response.all().iter().map(column).collect();
                writeln!(out, "{}", columns.join("\t"))?;
            }
        }
        out.flush()?;
    }
    Ok(Outcome::Positive)
}
