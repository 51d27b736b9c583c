//! `regard quantize`: a model with weights of 16, 8 or 4 bits, and what it loses.

mod gguf_file;
mod sample;
mod target;

use super::columns::ColumnFlags;
use super::inputs::note;
use super::{Global, Outcome, write_json};
use crate::hub::Hub;
use crate::models;
use crate::show::bytes;
use anyhow::{Result, bail};
use clap::Args;
use regard_kernels::quant::Bits;
use regard_tasks::quantize::{self, Measure, Quality, Quantized, References, Sample};
use regard_tasks::say::many;
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};
use target::Target;

const EXAMPLES: &str = "\
Writes a model whose weight matrices have 16, 8 or 4 bits, and compares it with the original:
perplexity of language models, cosine similarity of an encoder's text vectors, BLEU of translators.
Matrices that lose most keep a higher precision. A model that loses more than the bound is not
written.

Types: int8 (a scale for each output), int8-groups and int4 (a scale for each 32 inputs), bf16 (an
ordinary checkpoint in bfloat16, which transformers reads). gguf:Q8_0, gguf:Q4_0, gguf:F16 and
gguf:F32 write one file for llama.cpp, with tokenizer and chat template: of llama, mistral without a
window, qwen3, gemma3_text, gpt2 and bert. F16 and F32 are not measured.

Examples:
  regard models export en-fr-bahdanau --out floats         # built-in models are in int8 already
  regard quantize floats --to int4 --out int4 --max-loss 20             # built-in sentences
  regard quantize runs/plays --to int8 --out plays8 --data plays.txt    # your run, your text
  regard quantize runs/fr --to int8 --out fr8 --data pairs.tsv  # source, tab, translation
  regard quantize runs/fr --to int8 --out fr8 --data pairs.csv --source en --target fr  # columns
  regard quantize runs/plays --to gguf:Q8_0 --out plays.gguf           # your run, for llama.cpp
  regard translate 'They are watching.' --model int4

To quantise on load, without writing: --storage int8 with any command that opens a model. To get
floating point back, for training or transformers: regard models export int4 --out floats4";

/// Write a model with weights of 16, 8 or 4 bits, after measuring its loss
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Flags {
    /// Model: a folder, a name listed by `regard models`, or a Hugging Face Hub id
    model: String,
    /// Type of the quantised weights: int8, int8-groups, int4, bf16, gguf:Q8_0, gguf:Q4_0, gguf:F16
    /// or gguf:F32
    #[arg(long, value_name = "TYPE", value_parser = target::parse)]
    to: Target,
    /// Output folder; a file for gguf
    #[arg(long, value_name = "PATH")]
    out: PathBuf,
    /// Texts to measure on, one on each line; for a translator with a tab and the translation. Or a
    /// table (.csv, .tsv, .jsonl), or two parallel files for a translator [default: built-in English
    /// sentences]
    #[arg(long, value_name = "FILE")]
    data: Vec<PathBuf>,
    /// Largest accepted loss: relative increase of perplexity (16 and 8 bits 0.005, 4 0.06), 1 − cosine
    /// (0.001, 0.02), or points of BLEU (0.3, 1)
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    max_loss: Option<f64>,
    #[command(flatten)]
    columns: ColumnFlags,
    #[command(flatten)]
    hub: Hub,
}

/// Outcome, as `--json` prints it.
#[derive(Serialize)]
struct Report<'a> {
    model: &'a str,
    out: &'a Path,
    storage: &'static str,
    data: &'a str,
    quality: &'a Quality,
    /// Numbers of tensors in bfloat16, in 8 bits, in 8 bits with groups, and in 4 bits.
    bf16: usize,
    int8: usize,
    int8_groups: usize,
    int4: usize,
    higher_precision: &'a [String],
    bytes_before: usize,
    bytes_after: usize,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    if flags.hub.storage.is_some() {
        bail!("--storage: quantize has --to {}", flags.to.name());
    }
    match flags.to {
        Target::Folder(_) => models::check_out(&flags.out)?,
        Target::Gguf(_) => gguf_file::check_out(&flags.out)?,
    }
    if flags.max_loss.is_some_and(|x| !(x.is_finite() && x >= 0.0)) {
        bail!("--max-loss: need a number of at least 0");
    }
    if let Target::Gguf(kind) = flags.to
        && kind.bits().is_none()
    {
        let given = [("--max-loss", flags.max_loss.is_some()), ("--data", !flags.data.is_empty())];
        if let Some((flag, _)) = given.iter().find(|(_, given)| *given) {
            bail!("{flag}: {} is not quantised, and nothing is measured", flags.to.name());
        }
    }
    let model = models::resolve(&flags.model, &flags.hub)?;
    let sample = sample::read(&flags, &model)?;
    let files = models::adapted(&model, &flags.hub)?;
    let progress = |step: &str| note(step);
    let bits = match flags.to {
        Target::Folder(bits) => bits,
        Target::Gguf(kind) => {
            let made = quantize::to_gguf(files, kind, &sample, flags.max_loss, &progress)?;
            return gguf_file::write(&flags, kind, &sample, &made, global, out);
        }
    };
    let made = quantize::quantize(files.clone(), bits, &sample, flags.max_loss, &progress)?;
    models::write(&flags.out, &files, &made.config, &made.weights, made.precision)?;
    if made.bytes[1] * 10 > made.bytes[0] * 9 {
        note(
            "the model is hardly smaller: only matrices of linear layers and embeddings are \
             quantised, not those of recurrent layers and convolutions",
        );
    }
    match global.json {
        true => write_json(out, &report(&flags, &sample, &made))?,
        false => print(&flags, &sample, &made, out)?,
    }
    Ok(Outcome::Positive)
}

fn report<'a>(flags: &'a Flags, sample: &'a Sample, made: &'a Quantized) -> Report<'a> {
    let of =
        |bits| Bits::ALL.iter().zip(made.quantized).find(|(b, _)| **b == bits).map_or(0, |b| b.1);
    Report {
        model: &flags.model,
        out: &flags.out,
        storage: made.bits.name(),
        data: &sample.name,
        quality: &made.quality,
        bf16: of(Bits::Bf16),
        int8: of(Bits::Int8),
        int8_groups: of(Bits::Int8Groups),
        int4: of(Bits::Int4),
        higher_precision: &made.kept,
        bytes_before: made.bytes[0],
        bytes_after: made.bytes[1],
    }
}

fn print(flags: &Flags, sample: &Sample, made: &Quantized, out: &mut dyn Write) -> Result<()> {
    let [large, small] = made.bytes.map(|n| bytes(n as u64));
    let counts = Bits::ALL.iter().zip(made.quantized).filter(|(_, count)| *count > 0);
    let counts = counts.map(|(bits, count)| format!("{count} in {}", bits.name()));
    let counts: Vec<String> = counts.collect();
    writeln!(
        out,
        "{}: {} of {}, {large} → {small}; tensors: {}",
        flags.out.display(),
        made.bits.name(),
        flags.model,
        counts.join(", ")
    )?;
    print_quality(&made.quality, &made.kept, sample, out)
}

/// Prints what the quantised model loses.
fn print_quality(
    quality: &Quality,
    kept: &[String],
    sample: &Sample,
    out: &mut dyn Write,
) -> Result<()> {
    let Quality { measure, before, after, loss, bound, divergence, tokens, agreement, .. } =
        quality;
    let count = quality.texts.map(|n| many(n, "text"));
    let count = count.or(quality.measured_tokens.map(|n| many(n, "token")));
    writeln!(out, "measured on {} of {}", count.unwrap_or_default(), sample.name)?;
    match measure {
        Measure::Perplexity => writeln!(
            out,
            "perplexity {before:.4} → {after:.4} ({:+.2} %, bound +{:.2} %)",
            100.0 * loss,
            100.0 * bound
        )?,
        Measure::Cosine => {
            writeln!(out, "cosine of text vectors {after:.5} (bound {:.5})", 1.0 - bound)?;
        }
        // The original would have BLEU 100, which says nothing about its quality.
        Measure::Bleu if quality.references == Some(References::Original) => writeln!(
            out,
            "BLEU {after:.2} against the translations of the original model itself, because there \
             are no others (bound {:.2})",
            before - bound
        )?,
        Measure::Bleu => {
            writeln!(out, "BLEU {before:.2} → {after:.2} ({:+.2}, bound −{bound})", -loss)?;
        }
    }
    if let Some(divergence) = divergence {
        writeln!(out, "KL divergence {divergence:.5} nats a token")?;
    }
    if let Some(tokens) = tokens {
        writeln!(out, "cosine of the hidden states of tokens {tokens:.5}")?;
    }
    if let Some(agreement) = agreement {
        let what = match measure {
            Measure::Perplexity => "next tokens",
            Measure::Cosine => "first choices",
            Measure::Bleu => "translations",
        };
        writeln!(out, "the same {what}: {:.1} %", 100.0 * agreement)?;
    }
    if !kept.is_empty() {
        writeln!(out, "in higher precision, because they lose most: {}", kept.join(", "))?;
    }
    Ok(())
}
