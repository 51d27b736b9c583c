//! `regard attend`: attention maps.

// Shapes in brackets are help text, not links.
#![allow(rustdoc::broken_intra_doc_links)]

mod demo;
mod file;
mod lesson;
mod pictures;
mod span;
mod translation;

use super::say::quoted;
use super::{Global, Outcome};
use crate::choice::AttentionArgs;
use crate::files::not_an_input;
use crate::hub::Hub;
use crate::show::terminal::When;
use anyhow::{Context, Result, bail};
use clap::Args;
use lesson::Lesson;
use pictures::Pictures;
use regard_tasks::say;
use span::Span;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Draw attention maps of a sentence, a translation, or your own q, k and v
///
/// --demo: four kinds of attention between the words of a sentence, without a trained model.
///
/// --lesson: an experiment that shows the purpose of attention, computed while you wait.
///
/// --translate: cross-attention of a translation; a row per target word, a column per source word.
///
/// FILE: attention over the arrays `q` [B,H,T,D], `k` [B,Hk,S,D] and `v` [B,Hk,S,E] of a file, with
/// any score, bias, mask and normaliser. B, or B and H, may be left out if they are 1. Arrays are
/// float32; float64, float16 and bfloat16 are converted. Parameters of the score and biases are
/// arrays named after them, optionally with the prefix `params.` (for the additive score it must
/// be `params.v`, because `v` is the values). Masks may refer to integer arrays: lengths(lens),
/// dense(allowed), edges(indptr, indices).
#[derive(Args)]
#[command(after_help = "\
Examples:
  regard attend --demo
  regard attend --demo 'the cat that the cats chased was chasing a catfish' --html cats.html
  regard attend --lesson pooling --svg lesson.svg
  regard attend --translate 'They are watching.' --svg map.svg        # built-in model `en-fr`
  regard attend qkv.npz --mask 'causal & window(15, 0)' --head 3      # your arrays

To make such a file with numpy: np.savez('qkv.npz', q=q, k=k, v=v)")]
pub struct Flags {
    /// File .npz or .safetensors; with --demo or --translate, the text (`-`: standard input)
    #[arg(value_name = "FILE or TEXT")]
    input: Vec<String>,
    /// Draw attention between the words of a text, without a trained model
    #[arg(long)]
    demo: bool,
    /// Compute and draw a lesson
    #[arg(long, value_name = "NAME", conflicts_with_all = ["demo", "translate", "input", "save"])]
    lesson: Option<Lesson>,
    /// Translate the text, and draw the attention to its words
    #[arg(long, conflicts_with = "demo")]
    translate: bool,
    /// With --translate: model as in `regard translate` [default: `en-fr`, built in]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// With --translate: draw tokens, with the end token, instead of words
    #[arg(long)]
    tokens: bool,
    /// With FILE: batch row to show
    #[arg(long, value_name = "B", default_value_t = 0)]
    batch: usize,
    /// With FILE: head to show [default: 0]
    #[arg(long, value_name = "H")]
    head: Option<usize>,
    /// Queries to show, such as 3, 3:7, :7 or 3: [default: all; a drawing shows the first 64]
    #[arg(long, value_name = "A:B")]
    rows: Option<Span>,
    /// Keys to draw; weights are still normalised over all keys [default: all]
    #[arg(long, value_name = "A:B")]
    keys: Option<Span>,
    /// Write `out` [B,H,T,E] and `weights` [B,H,T,S] to this .npz file; --head and --rows restrict
    /// the weights. With --translate: `attention` [T,S] with `tokens` and `source_tokens`, and
    /// `word_attention` with `words` and `source_words`
    #[arg(long, value_name = "OUT.npz", visible_alias = "npz")]
    save: Option<PathBuf>,
    #[command(flatten)]
    pictures: Pictures,
    /// Use colours; `auto`: if stdout is a terminal and NO_COLOR is not set
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    color: When,
    #[command(flatten)]
    choice: AttentionArgs,
    #[command(flatten)]
    hub: Hub,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    // Flags without effect are refused.
    let of_files = flags.head.is_some() || flags.batch != 0 || !flags.choice.is_default();
    if let Some(to) = &flags.save
        && to.extension().is_none_or(|end| end != "npz")
    {
        bail!("--save: got {}, need a name that ends in .npz", to.display());
    }
    let inputs: Vec<&Path> = flags.input.iter().map(Path::new).collect();
    flags.pictures.check(&inputs)?;
    if let Some(save) = &flags.save {
        not_an_input("--save", save, &inputs)?;
    }
    let hub = &flags.hub;
    let of_hub = hub.offline || hub.revision.is_some() || hub.storage.is_some();
    if !flags.translate && (flags.model.is_some() || of_hub || flags.tokens) {
        bail!(
            "attend: --model, --revision, --offline, --storage and --tokens need --translate: \
             attention of translators is drawn by `regard attend --translate TEXT --model MODEL`. \
             That of a GPT, a BERT or another text model cannot be drawn yet; `regard inspect \
             MODEL` describes it. Of an image: `regard classify --image FILE --attention map.png`"
        );
    }
    if let Some(lesson) = flags.lesson {
        if of_files || flags.rows.is_some() || flags.keys.is_some() {
            let flag = without_effect(&flags);
            bail!("attend --lesson: leave out {flag}: a lesson draws all of its own data");
        }
        lesson::run(lesson, &flags, global, out)?;
        return Ok(Outcome::Positive);
    }
    match (flags.demo, flags.translate, &flags.input[..]) {
        (true, ..) if of_files || flags.save.is_some() => {
            let flag = without_effect(&flags);
            bail!(
                "attend --demo: leave out {flag}: it is for a FILE of q, k and v; the demo draws \
                 four fixed kinds of attention"
            );
        }
        (true, ..) => demo::run(&flags, global, out)?,
        (_, true, _) if of_files => {
            let flag = without_effect(&flags);
            bail!(
                "attend --translate: leave out {flag}: it is for a FILE of q, k and v; a \
                 translation is drawn with the model's own attention"
            );
        }
        (_, true, _) => translation::run(&flags, global, out)?,
        (.., [path]) if is_file_name(path) => file::run(&flags, path.as_ref(), global, out)?,
        (.., []) => {
            bail!("attend: need a .npz or .safetensors FILE, --translate, --lesson or --demo")
        }
        (.., texts) => match texts.iter().any(|text| is_file_name(text)) {
            true => bail!("attend: got {}, need one FILE", say::many(texts.len(), "file")),
            false => bail!(of_text(texts)),
        },
    }
    Ok(Outcome::Positive)
}

/// Whether an argument is a file, or was meant as the name of one and not as a text.
fn is_file_name(text: &str) -> bool {
    let ends = ["npz", "safetensors"];
    let has_end = Path::new(text).extension().is_some_and(|end| ends.iter().any(|e| end == *e));
    Path::new(text).exists() || has_end || (text.contains('/') && !text.contains(' '))
}

/// Message for words where a file is needed.
fn of_text(words: &[String]) -> String {
    let text = words.join(" ");
    format!(
        "attend: there is no file {:?}. To draw the attention of a text: regard attend --translate \
         {}, or without a model: regard attend --demo {1}",
        say::short(&text, 100),
        quoted(&text)
    )
}

/// Name of an option that has no effect without a FILE. --rows, --keys and --save come last: a demo
/// or a translation accepts some of them.
fn without_effect(flags: &Flags) -> &'static str {
    let rows = [
        (flags.head.is_some(), "--head"),
        (flags.batch != 0, "--batch"),
        (!flags.choice.is_default(), "the option for the score, mask, bias or normaliser"),
        (flags.rows.is_some(), "--rows"),
        (flags.keys.is_some(), "--keys"),
        (flags.save.is_some(), "--save"),
    ];
    rows.iter().find(|(given, _)| *given).map_or("the options for a FILE", |(_, name)| *name)
}

/// Returns the input text, if any: the joined arguments, or standard input for `-`.
fn text(input: &[String]) -> Result<Option<String>> {
    match input {
        [] => Ok(None),
        [dash] if dash == "-" => {
            let mut text = String::new();
            // Limit of 1 MiB, more than any map can show.
            let mut stdin = std::io::stdin().lock().take(1 << 20);
            stdin.read_to_string(&mut text).context("standard input")?;
            Ok(Some(text))
        }
        texts => Ok(Some(texts.join(" "))),
    }
}

/// Default number of queries in a terminal drawing.
const MOST_ROWS: usize = 64;
