//! `regard bench`: one module for each benchmark.

mod attention;
mod images;
mod regression;
mod split;
mod step;
mod texts;
mod together;
mod translate;

use super::{Global, Outcome};
use anyhow::Result;
use clap::{Args, Subcommand};
use std::io::Write;

/// Measure speed and memory
#[derive(Args)]
pub struct Flags {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Attention(attention::Flags),
    Step(step::Flags),
    Regression(regression::Flags),
    Images(images::Flags),
    Texts(texts::Flags),
    Together(together::Flags),
    Translate(translate::Flags),
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    match flags.what {
        What::Attention(flags) => attention::run(flags, global, out),
        What::Step(flags) => step::run(flags, global, out),
        What::Regression(flags) => regression::run(flags, global, out),
        What::Images(flags) => images::run(flags, global, out),
        What::Texts(flags) => texts::run(flags, global, out),
        What::Together(flags) => together::run(flags, global, out),
        What::Translate(flags) => translate::run(flags, global, out),
    }
}
