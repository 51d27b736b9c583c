//! `regard recognize`: speech recognition.

use super::{Global, Outcome, inputs, write_json};
use crate::hub::Hub;
use crate::models;
use anyhow::{Context, Result, bail};
use clap::Args;
use regard_tasks::attachment::Attachment;
use regard_tasks::audio::wav;
use regard_tasks::pipeline::Pipeline;
use regard_tasks::recognize::{Parameters, Partial, Recognizer, SpeechCandidate};
use std::io::Write;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Transcribes WAV files of any sample rate and number of channels, PCM or float; audio is resampled to
the model's rate and mixed to mono. Prints the label or text, a tab and its probability, one line
per file; with --top-k, further pairs on the same line.

Examples:
  regard recognize seven.wav                       # your recording; built-in model `digits`
  regard recognize --top-k 3 --json a.wav b.wav
  regard recognize --stream number.wav
  regard recognize seven.wav --model runs/fsdd-truncated  # regard train fsdd-truncated

--stream processes a file in pieces of --chunk milliseconds, as from a microphone. It prints two
spaces, the seconds processed, a tab and the text whenever the text changes. The last line is the
same as without --stream. The model looks ahead: with the model `digits`, the first partial result
comes after 0.7 seconds, so a shorter recording has none.

Stops at the first unreadable file; results for earlier files are still printed. A note on stderr
says if no speech was recognized, or if a recording is silent.

--json prints {\"file\", \"text\", \"score\"}, with --top-k also {\"guesses\": [{\"text\", \"score\"}, …]}; with
--stream, {\"file\", \"seconds\", \"partial\"} for each change before it.";

/// Transcribe recordings
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Flags {
    /// WAV files; - is standard input
    #[arg(value_name = "FILE.wav", required = true)]
    file: Vec<PathBuf>,
    /// Model: a folder, or a name listed by `regard models` [default: `digits`, built in]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Number of labels or texts per file, the most probable first
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = inputs::at_least_one)]
    top_k: usize,
    /// Process files in pieces, and print partial results
    #[arg(long)]
    stream: bool,
    /// Length of a piece in milliseconds, 1 to 60000
    #[arg(long, value_name = "MS", default_value_t = 100, requires = "stream")]
    chunk: u64,
    #[command(flatten)]
    hub: Hub,
}

/// Peak level in dBFS below which hardly anything but noise is recorded, as training on recordings
/// has it: speech peaks at −30 to 0.
const QUIET: f64 = -60.0;

/// Says that a result means nothing, or why it is empty.
fn unheard(text: &str, level: Option<f64>) -> Option<String> {
    let is_empty = text.trim().is_empty();
    let about = match level {
        None => "the recording is silent: all samples are 0".to_string(),
        Some(level) if level < QUIET => {
            format!("the recording is almost silent: its peak level is {level:.0} dBFS")
        }
        Some(level) if is_empty => format!("the peak level is {level:.0} dBFS"),
        Some(_) => return None,
    };
    Some(if is_empty { format!("no speech was recognized; {about}") } else { about })
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    if !(1..=60_000).contains(&flags.chunk) {
        bail!("--chunk: got {} milliseconds, need 1 to 60000", flags.chunk);
    }
    for path in &flags.file {
        inputs::not_folder(path, &["wav"], "")?;
    }
    let recognizer: Recognizer = models::open(flags.model.as_deref(), &flags.hub)?;
    let parameters = Parameters { top_k: flags.top_k };
    for path in flags.file.iter().map(|path| inputs::file(path)) {
        let name = path.display().to_string();
        let sound = wav::read(&path)?;
        let level = sound.peak_level();
        let input = Attachment { data: sound, file: Some(name.clone()), index: None };
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
        let response = response.with_context(|| name.clone())?;
        if let Some(why) = unheard(&response.best.text, level) {
            inputs::note(&format!("{name}: {why}"));
        }
        match global.json {
            true => write_json(out, &response)?,
            false => {
                let column =
                    |guess: &SpeechCandidate| format!("{}\t{:.4}", guess.text, guess.score);
                let columns: Vec<String> = response.all().iter().map(column).collect();
                writeln!(out, "{}", columns.join("\t"))?;
            }
        }
        out.flush()?;
    }
    Ok(Outcome::Positive)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_and_an_empty_result_are_told() {
        assert_eq!(unheard("seven", Some(-12.0)), None);
        let told = |text: &str, level: Option<f64>| unheard(text, level).unwrap();
        assert_eq!(told("", Some(-12.3)), "no speech was recognized; the peak level is -12 dBFS");
        assert!(told("", None).contains("no speech was recognized; the recording is silent"));
        assert!(told("seven", None).starts_with("the recording is silent"));
        assert!(told("seven", Some(-72.0)).contains("almost silent: its peak level is -72 dBFS"));
    }
}
