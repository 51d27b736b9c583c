//! `regard attend`: who looks at whom.

// Shapes in brackets are help text, which has no links.
#![allow(rustdoc::broken_intra_doc_links)]

mod demo;
mod file;
mod lesson;
mod pictures;
mod span;
mod translation;

use super::{Global, Outcome};
use crate::choice::Choice;
use crate::files::not_an_input;
use crate::hub::Hub;
use crate::show::terminal::When;
use anyhow::{Context, Result, bail};
use clap::Args;
use lesson::Lesson;
use pictures::Pictures;
use span::Span;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Draw an attention map, or give it as JSON
///
/// With --demo: of the words of a sentence, by vectors that need no trained model.
///
/// With --lesson: what attention is for, by an experiment that is computed while you wait.
///
/// With --translate: of a translation; a row for each word that a model wrote, a column for each
/// that it read.
///
/// With a FILE: of the arrays `q` [B,H,T,D], `k` [B,Hk,S,D] and `v` [B,Hk,S,E] in it; without B,
/// or B and H, these are 1. float32; float64, float16 and bfloat16 are converted. Parameters of
/// the score and the biases are arrays of their names, with `params.` in front if you like (and
/// `params.v` for the additive score, because `v` is the values). Masks may name integer arrays:
/// lengths(lens), dense(allowed), edges(indptr, indices).
#[derive(Args)]
#[command(after_help = "\
Examples:
  regard attend --demo
  regard attend --demo 'the cat that the cats chased was chasing a catfish' --html cats.html
  regard attend --lesson pooling --svg lesson.svg
  regard attend --translate 'They are watching.' --model tatoeba-en-fr-transformer --svg map.svg
  regard attend qkv.npz --mask 'causal & window(15, 0)' --head 3
  regard attend qkv.safetensors --score additive --normalize entmax15 --rows 0:8 --json
  regard attend qkv.npz --mask causal --save out.npz

Make such a file with numpy: np.savez('qkv.npz', q=q, k=k, v=v)")]
pub struct Flags {
    /// A .npz or .safetensors file; with --demo or --translate, the text (`-` reads standard input)
    #[arg(value_name = "FILE or TEXT")]
    input: Vec<String>,
    /// Look at the words of a text
    #[arg(long)]
    demo: bool,
    /// Compute and draw a lesson; `pooling` goes from the mean of all points to attention
    #[arg(long, value_name = "NAME", conflicts_with_all = ["demo", "translate", "input", "save"])]
    lesson: Option<Lesson>,
    /// Look at where the words of a translation of a text came from
    #[arg(long, conflicts_with = "demo")]
    translate: bool,
    /// With --translate: a model, as `regard translate` takes it
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// With --translate: tokens, and the end, rather than words
    #[arg(long)]
    tokens: bool,
    /// The batch row to show
    #[arg(long, value_name = "B", default_value_t = 0)]
    batch: usize,
    /// The head to show [default: 0]
    #[arg(long, value_name = "H")]
    head: Option<usize>,
    /// The queries to show, like 3, 3:7, :7 or 3: [default: all, or as many as can be seen]
    #[arg(long, value_name = "A:B")]
    rows: Option<Span>,
    /// The keys to draw; the weights are those among all keys
    #[arg(long, value_name = "A:B")]
    keys: Option<Span>,
    /// Write `out` [B,H,T,E] and `weights` [B,H,T,S] to this .npz; of the weights, only --head
    /// and --rows if given. With --translate: `attention` [T,S] of `tokens` and `source_tokens`,
    /// and `word_attention` of `words` and `source_words`
    #[arg(long, value_name = "OUT.npz", visible_alias = "npz")]
    save: Option<PathBuf>,
    #[command(flatten)]
    pictures: Pictures,
    /// Colours or shades; `auto` heeds NO_COLOR
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    color: When,
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    hub: Hub,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    // What would change nothing must not look as if it did.
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
    let of_models = flags.model.is_some() || flags.hub.offline || flags.hub.revision.is_some();
    if !flags.translate && (of_models || flags.tokens) {
        bail!("attend: --model, --revision, --offline and --tokens are for --translate");
    }
    if let Some(lesson) = flags.lesson {
        if of_files || flags.rows.is_some() || flags.keys.is_some() {
            bail!(
                "attend --lesson: what it attends with is part of the lesson; give a FILE instead"
            );
        }
        lesson::run(lesson, &flags, global, out)?;
        return Ok(Outcome::Positive);
    }
    match (flags.demo, flags.translate, &flags.input[..]) {
        (true, ..) if of_files || flags.save.is_some() => {
            bail!("attend --demo: its heads are fixed; for your own choice, give a FILE");
        }
        (true, ..) => demo::run(&flags, global, out)?,
        (_, true, _) if of_files => {
            let flag = match (flags.head, flags.batch) {
                (Some(_), _) => "--head",
                (None, 1..) => "--batch",
                _ => "the option for the score, mask, bias or normaliser",
            };
            bail!(
                "attend --translate: leave out {flag}: it chooses what is computed from a FILE of q, \
                 k and v; a translation is drawn with the model's own attention"
            );
        }
        (_, true, _) => translation::run(&flags, global, out)?,
        (.., [path]) => file::run(&flags, path.as_ref(), global, out)?,
        (.., []) => {
            bail!("attend: need a .npz or .safetensors FILE, --translate, --lesson or --demo")
        }
        _ => bail!("attend: need one FILE; for a text, add --demo or --translate"),
    }
    Ok(Outcome::Positive)
}

/// The text that was given, if one was: the arguments together, or standard input for `-`.
fn text(input: &[String]) -> Result<Option<String>> {
    match input {
        [] => Ok(None),
        [dash] if dash == "-" => {
            let mut text = String::new();
            // More than any map can show.
            let mut stdin = std::io::stdin().lock().take(1 << 20);
            stdin.read_to_string(&mut text).context("standard input")?;
            Ok(Some(text))
        }
        texts => Ok(Some(texts.join(" "))),
    }
}

/// Queries that a drawing shows unless others are asked for: about a screen.
const MOST_ROWS: usize = 64;
