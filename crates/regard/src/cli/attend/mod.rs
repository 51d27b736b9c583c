//! `regard attend`: who looks at whom.

// Shapes in brackets are help text, which has no links.
#![allow(rustdoc::broken_intra_doc_links)]

mod demo;
mod file;
mod span;

use super::{Global, Outcome};
use crate::choice::Choice;
use crate::show::terminal::When;
use anyhow::{Result, bail};
use clap::Args;
use span::Span;
use std::io::Write;
use std::path::PathBuf;

/// Draw an attention map, or give it as JSON
///
/// With --demo: of the words of a sentence, by vectors that need no trained model.
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
  regard attend --demo 'the cat that the cats chased was chasing a catfish'
  regard attend qkv.npz --mask 'causal & window(15, 0)' --head 3
  regard attend qkv.safetensors --score additive --normalize entmax15 --rows 0:8 --json
  regard attend qkv.npz --mask causal --save out.npz

Make such a file with numpy: np.savez('qkv.npz', q=q, k=k, v=v)")]
pub struct Flags {
    /// A .npz or .safetensors file; with --demo, the text (`-` reads standard input)
    #[arg(value_name = "FILE or TEXT")]
    input: Vec<String>,
    /// Look at the words of a text
    #[arg(long)]
    demo: bool,
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
    /// and --rows if given
    #[arg(long, value_name = "OUT.npz")]
    save: Option<PathBuf>,
    /// Colours or shades
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    color: When,
    #[command(flatten)]
    choice: Choice,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    match (flags.demo, &flags.input[..]) {
        (true, _) => {
            // What would change nothing must not look as if it did.
            let of_files = flags.save.is_some() || flags.head.is_some() || flags.batch != 0;
            if of_files || !flags.choice.is_default() {
                bail!("attend --demo: its heads are fixed; for your own choice, give a FILE");
            }
            demo::run(&flags, global, out)?;
        }
        (false, [path]) => file::run(&flags, path.as_ref(), global, out)?,
        (false, []) => bail!("attend: need a .npz or .safetensors FILE, or --demo"),
        (false, _) => bail!("attend: need one FILE; for a text, add --demo"),
    }
    Ok(Outcome::Positive)
}

/// Queries that a drawing shows unless others are asked for: about a screen.
const MOST_ROWS: usize = 64;
