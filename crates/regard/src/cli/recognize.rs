//! `regard recognize`: what is said in a recording.

use super::{Global, Outcome, inputs, write_json};
use crate::hub::Hub;
use crate::models;
use anyhow::{Context, Result, bail};
use clap::Args;
use regard_tasks::audio::{Sound, wav};
use regard_tasks::recognize::{Guess, Recognizer};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};

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
    let recognizer = models::recognizer(flags.model.as_deref(), &flags.hub)?;
    let top_k = flags.top_k;
    for path in flags.file.iter().map(|path| inputs::file(path)) {
        let path = &path;
        let sound = wav::read(path)?;
        let guesses = match flags.stream {
            false => recognizer.recognize(&sound, top_k).map_err(Into::into),
            true => {
                let mut tell = |seconds: f64, text: &str| match global.json {
                    true => write_json(
                        out,
                        &json!({ "file": path, "seconds": seconds, "partial": text }),
                    ),
                    false => Ok(writeln!(out, "  {seconds:.2}\t{text}")?),
                };
                stream(&recognizer, sound, flags.chunk, top_k, &mut tell)
            }
        };
        let guesses = guesses.with_context(|| path.display().to_string())?;
        write(path, &guesses, flags.top_k, global, out)?;
        out.flush()?;
    }
    Ok(Outcome::Positive)
}

/// Hears a sound in pieces, and tells what is said so far when that changes.
fn stream(
    recognizer: &Recognizer,
    sound: Sound,
    milliseconds: u64,
    top_k: usize,
    tell: &mut dyn FnMut(f64, &str) -> Result<()>,
) -> Result<Vec<Guess>> {
    let rate = recognizer.front().preprocessor().sampling_rate;
    let sound = sound.at(rate);
    let piece = (u64::from(rate) * milliseconds / 1000).max(1) as usize;
    let mut streaming = recognizer.listen();
    let (mut heard, mut so_far) = (0, String::new());
    for samples in sound.samples.chunks(piece) {
        streaming.hear(samples, false)?;
        heard += samples.len();
        if let Some(best) = streaming.guesses(1)?.pop()
            && best.text != so_far
        {
            tell(heard as f64 / f64::from(rate), &best.text)?;
            so_far = best.text;
        }
    }
    streaming.hear(&[], true)?;
    Ok(streaming.guesses(top_k)?)
}

fn write(
    path: &Path,
    guesses: &[Guess],
    top_k: usize,
    global: &Global,
    out: &mut dyn Write,
) -> Result<()> {
    let object = |guess: &Guess| json!({ "text": guess.text, "score": guess.score });
    if global.json {
        let mut best = json!({ "file": path });
        if let (Value::Object(best), Some(Value::Object(first))) =
            (&mut best, guesses.first().map(object))
        {
            best.extend(first);
        }
        if top_k > 1 {
            best["guesses"] = guesses.iter().map(object).collect();
        }
        return write_json(out, &best);
    }
    let columns: Vec<String> =
        guesses.iter().map(|guess| format!("{}\t{:.4}", guess.text, guess.score)).collect();
    Ok(writeln!(out, "{}", columns.join("\t"))?)
}
