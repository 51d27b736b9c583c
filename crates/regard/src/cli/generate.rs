//! `regard generate`: a language model goes on with a text.

use super::inputs::{self, Trouble, Unknown};
use super::search::Search;
use super::{Global, Outcome, write_json};
use crate::hub::Hub;
use crate::models;
use anyhow::Result;
use clap::Args;
use regard_tasks::generate::{Parameters, Writer};
use regard_tasks::pipeline::Pipeline;
use std::cell::Cell;
use std::io::Write;

const EXAMPLES: &str = "\
Examples:
  regard generate 'ROMEO:'                        # by the model that ships
  regard generate 'ROMEO:' --max-new-tokens 200 --do-sample --temperature 0.8 --top-k 40 --seed 7
  regard generate 'Once upon a time' --model gpt2 --num-beams 4 --no-repeat-ngram-size 3
  regard generate --stop $'\\n\\n' --json < prompts.txt --model …

Without PROMPT, each line of standard input is one. A single text is shown as it is written; with
beams, several results or --json it is shown at its end. A text that outgrows the model's window
goes on from the last half of it.

With --json: an object a line for each prompt, with generated_text (prompt included), token_ids
(without the prompt's) and score; with --num-return-sequences also alternatives.

Of standard input, a line that gets no answer is told on standard error, gives an empty line (with
--json an object with error), and makes the exit code 1 at the end.";

/// Go on with a text
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Flags {
    /// What to go on with, each by itself; without it, the lines of standard input
    prompt: Vec<String>,
    /// A model: a folder, a name that `regard models` lists, or an id of the Hugging Face
    /// Hub [default: shakespeare, which ships]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Tokens to write at most, beside the prompt's
    #[arg(long, value_name = "N")]
    max_new_tokens: Option<usize>,
    /// Stop before this text; may be given more than once
    #[arg(long, value_name = "TEXT")]
    stop: Vec<String>,
    #[command(flatten)]
    hub: Hub,
    #[command(flatten)]
    search: Search,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let writer: Writer = models::open(flags.model.as_deref(), &flags.hub)?;
    let mut search = flags.search.parameters(writer.defaults(), global.seed)?;
    search.max_new_tokens = flags.max_new_tokens;
    let options = search.over(writer.defaults())?;
    let mut parameters = Parameters { stop: flags.stop, first: 0, search };
    let as_it_comes = !global.json
        && parameters.stop.is_empty()
        && options.num_beams == 1
        && options.num_return_sequences == 1;
    let mut one = |number: u64, prompt: &str, out: &mut dyn Write| -> Result<(), Trouble> {
        if as_it_comes {
            return stream(&writer, (number, prompt), &options, out);
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
    inputs::each(&flags.prompt, global.json, out, &mut |prompt, out| {
        number += 1;
        let unseen = writer.unseen(prompt)?;
        if unseen > 0 {
            inputs::note(&format!(
                "text {number}: the model does not see the first {unseen} tokens of the prompt, \
                 which is longer than it reads"
            ));
        }
        unknown.note(writer.tokenizer(), prompt);
        one(number - 1, prompt, out)
    })
}

/// Shows a text while it is being written.
fn stream(
    writer: &Writer,
    (number, prompt): (u64, &str),
    options: &regard_tasks::decode::Options,
    out: &mut dyn Write,
) -> Result<(), Trouble> {
    write!(out, "{prompt}")?;
    out.flush()?;
    let mut text = writer.tokenizer().stream();
    let shown = Cell::new(0);
    let mut problem = None;
    let mut show = |id: u32| {
        shown.set(shown.get() + 1);
        let step = |piece: Option<String>| -> Result<()> {
            if let Some(piece) = piece {
                write!(out, "{piece}")?;
                out.flush()?;
            }
            Ok(())
        };
        let done = text.push(id).map_err(anyhow::Error::from).and_then(step);
        problem = problem.take().or(done.err());
    };
    let written = writer.generate(prompt, options, number, &[], &mut show)?;
    // What came last was never read again, so it was not seen above.
    let ids = written.first().map_or(&[][..], |written| &written.ids[..]);
    ids.iter().skip(shown.get()).for_each(|id| show(*id));
    if let Some(problem) = problem {
        return Err(problem.into());
    }
    writeln!(out, "{}", text.finish()?.unwrap_or_default())?;
    Ok(())
}
