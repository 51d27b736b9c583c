//! `regard generate`: text generation with a causal language model.

use super::inputs::{self, InputError, Unknown};
use super::search::Search;
use super::texts::{FileFlags, TextSource};
use super::{Global, Outcome, write_json};
use crate::hub::Hub;
use crate::models;
use anyhow::Result;
use clap::Args;
use regard_tasks::generate::{Generator, Parameters};
use regard_tasks::pipeline::Pipeline;
use std::cell::Cell;
use std::io::Write;

const EXAMPLES: &str = "\
Continues each PROMPT, or each line of standard input, and prints tokens as they are generated. With
beam search, several results, --stop or --json, a text is printed when it is complete.

Examples:
  regard generate 'ROMEO:'                         # built-in model `shakespeare`
  regard generate 'ROMEO:' --max-new-tokens 200 --do-sample --temperature 0.8 --top-k 40 --seed 7
  regard generate 'ROMEO:' --num-beams 4 --no-repeat-ngram-size 3
  regard generate 'Once upon a time' --model gpt2  # downloads GPT-2 from the Hub
  regard generate --stop $'\\n\\n' --json < prompts.txt  # your file

When the context window is full, its first half is dropped and generation continues.

--json prints one object per prompt: generated_text (including the prompt), token_ids (without the
prompt's), score; with --num-return-sequences also alternatives.

If a line of standard input fails, the error goes to stderr, an empty line (or {\"error\": …} with
--json) is printed, and the exit code is 1.";

/// Generate text from a prompt
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Flags {
    /// Prompts, each continued independently [default: the lines of standard input]
    prompt: Vec<String>,
    /// Model: a folder, a name listed by `regard models`, or a Hugging Face Hub id
    /// [default: `shakespeare`, built in]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Maximum number of new tokens [default: the model's]
    #[arg(long, value_name = "N")]
    max_new_tokens: Option<usize>,
    /// Stop before this text; can be repeated
    #[arg(long, value_name = "TEXT")]
    stop: Vec<String>,
    #[command(flatten)]
    file: FileFlags,
    #[command(flatten)]
    hub: Hub,
    #[command(flatten)]
    search: Search,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let writer: Generator = models::open(flags.model.as_deref(), &flags.hub)?;
    let mut search = flags.search.parameters(writer.defaults(), global.seed)?;
    search.max_new_tokens = flags.max_new_tokens;
    let options = search.over(writer.defaults())?;
    let mut parameters = Parameters { stop: flags.stop, first: 0, search };
    let as_it_comes = !global.json
        && parameters.stop.is_empty()
        && options.num_beams == 1
        && options.num_return_sequences == 1;
    let mut one = |number: u64, prompt: &str, out: &mut dyn Write| -> Result<(), InputError> {
        if as_it_comes {
            return stream(&writer, number, prompt, &options, out);
        }
        parameters.first = number;
        let response = writer.run_one(prompt.to_string(), &parameters)?;
        match global.json {
            true => write_json(out, &response)?,
            false => {
                for result in response.results() {
                    writeln!(out, "{}", result.generated_text)?;
                }
            }
        }
        out.flush()?;
        Ok(())
    };
    let (mut number, mut unknown) = (0, Unknown::default());
    let source = TextSource::of(&flags.prompt, &flags.file, flags.model.as_deref());
    inputs::each(&source, global.json, out, &mut |prompt, out| {
        number += 1;
        let unseen = writer.unseen(prompt)?;
        if unseen > 0 {
            inputs::note(&format!(
                "text {number}: the prompt is longer than the model's context; its first {unseen} \
                 tokens are ignored"
            ));
        }
        unknown.note(writer.tokenizer(), prompt);
        one(number - 1, prompt, out)
    })
}

/// Prints tokens as they are generated.
fn stream(
    writer: &Generator,
    number: u64,
    prompt: &str,
    options: &regard_tasks::decode::Options,
    out: &mut dyn Write,
) -> Result<(), InputError> {
    let mut text = writer.tokenizer().stream();
    let shown = Cell::new(0);
    let mut problem = None;
    let mut show = |id: u32| {
        // The prompt comes with the first token: settings that fail leave no half line.
        let begin = if shown.replace(shown.get() + 1) == 0 { prompt } else { "" };
        let step = |piece: Option<String>| -> Result<()> {
            write!(out, "{begin}{}", piece.unwrap_or_default())?;
            Ok(out.flush()?)
        };
        let done = text.push(id).map_err(anyhow::Error::from).and_then(step);
        problem = problem.take().or(done.err());
    };
    let written = writer.generate(prompt, options, number, &[], &mut show)?;
    // The last tokens were not fed back to the model, so the callback has not seen them.
    let ids = written.first().map_or(&[][..], |written| &written.ids[..]);
    ids.iter().skip(shown.get()).for_each(|id| show(*id));
    if let Some(problem) = problem {
        return Err(problem.into());
    }
    let begin = if shown.get() == 0 { prompt } else { "" };
    writeln!(out, "{begin}{}", text.finish()?.unwrap_or_default())?;
    Ok(())
}
