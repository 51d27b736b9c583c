//! `regard tokenizer`: training, encoding and decoding.

use super::{Global, Outcome, file_names, write_json};
use crate::files::not_an_input;
use crate::show::table::Table;
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use regard_tasks::data::Lines;
use regard_tasks::text::{Encoding, Normalise, SpaceHandling, Tokenizer, Train, VocabularyKind};
use serde::Serialize;
use std::io::{BufRead, Write, stdin};
use std::iter::once;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Trains a tokenizer.json in the format of Hugging Face's tokenizers, and encodes or decodes with any
such file.

Examples (with your own text files):
  regard tokenizer train --kind bpe --size 8000 --out tokenizer.json english.txt french.txt
  regard tokenizer train --kind char --size 3000 --drop-spaces --simplify --out zh.json zh.txt
  regard tokenizer encode --tokenizer models/en-fr 'They are watching.'  # folder of this repository
  regard tokenizer encode --tokenizer tokenizer.json < text.txt > tokens.txt
  regard tokenizer decode --tokenizer models/en-fr '57 12 940 8'";

/// Train a tokenizer; encode text into tokens and decode ids
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Flags {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Train a tokenizer on text
    Train(Make),
    /// Encode text: tokens, ids and byte offsets
    Encode(Encode),
    /// Decode ids to text
    Decode(Decode),
}

#[derive(Args)]
struct Make {
    /// Algorithm: `word`, `bpe`, `unigram`, `char`, `wordpiece` (BERT), `bytes` (GPT-2) or
    /// `treebank` (English words and their characters)
    #[arg(long)]
    kind: VocabularyKind,
    /// Maximum vocabulary size, including the four special tokens
    #[arg(long, value_name = "N")]
    size: usize,
    /// Minimum frequency of a token
    #[arg(long, value_name = "N", default_value_t = 1)]
    min_frequency: u64,
    /// Convert to lower case
    #[arg(long)]
    lowercase: bool,
    /// Drop spaces, for languages written without them
    #[arg(long)]
    drop_spaces: bool,
    /// Convert traditional Chinese characters to simplified ones
    #[arg(long)]
    simplify: bool,
    /// Output file
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Text files, a sentence per line, also .gz [default: standard input]
    files: Vec<PathBuf>,
}

#[derive(Args)]
struct Encode {
    /// File tokenizer.json, or a folder with one
    #[arg(long, value_name = "FILE")]
    tokenizer: PathBuf,
    /// Texts to encode [default: the lines of standard input]
    text: Vec<String>,
}

#[derive(Args)]
struct Decode {
    /// File tokenizer.json, or a folder with one
    #[arg(long, value_name = "FILE")]
    tokenizer: PathBuf,
    /// Token ids of a text, separated by spaces [default: the lines of standard input]
    ids: Vec<String>,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    match flags.what {
        What::Train(make) => train(&make, global, out)?,
        What::Encode(of) => encode(&of, global, out)?,
        What::Decode(of) => decode(&of, global, out)?,
    }
    Ok(Outcome::Positive)
}

type Texts<'a> = Box<dyn Iterator<Item = regard_tasks::Result<String>> + 'a>;

fn standard_input() -> Texts<'static> {
    Box::new(Lines::new(Box::new(stdin().lock()) as Box<dyn BufRead>, "standard input"))
}

fn train(make: &Make, global: &Global, out: &mut dyn Write) -> Result<()> {
    let files: Vec<&Path> = make.files.iter().map(PathBuf::as_path).collect();
    not_an_input("--out", &make.out, &files)?;
    let spaces = if make.drop_spaces { SpaceHandling::Drop } else { SpaceHandling::Plain };
    let train = Train {
        lowercase: make.lowercase,
        min_frequency: make.min_frequency,
        normalise: Normalise { spaces, simplify: make.simplify, ..Normalise::default() },
        ..Train::new(make.kind, make.size)
    };
    let open = |path: &PathBuf| -> Texts {
        match Lines::open(path) {
            Ok(lines) => Box::new(lines),
            Err(error) => Box::new(once(Err(error))),
        }
    };
    let lines: Texts = match make.files.is_empty() {
        true => standard_input(),
        false => Box::new(make.files.iter().flat_map(open)),
    };
    // The trainer takes only texts, so a read error is stored and reported first.
    let (mut wrong, mut count) = (None, 0u64);
    let read = lines.map_while(|line| {
        count += 1;
        line.map_err(|error| wrong = Some(error)).ok()
    });
    let made = train.run(read);
    if let Some(error) = wrong {
        return Err(error.into());
    }
    let tokenizer = made?;
    tokenizer.save(&make.out)?;
    let (size, path) = (tokenizer.size(), make.out.display());
    if global.json {
        return write_json(out, &Trained { tokenizer: path.to_string(), size, lines: count });
    }
    writeln!(out, "vocabulary of {size} tokens from {count} lines, written to {path}")?;
    Ok(())
}

/// A trained tokenizer, as `--json` prints it.
#[derive(Serialize)]
struct Trained {
    tokenizer: String,
    size: usize,
    lines: u64,
}

/// A text as tokens, as `--json` prints it.
#[derive(Serialize)]
struct Encoded<'a> {
    tokens: &'a [String],
    ids: &'a [u32],
    offsets: &'a [(usize, usize)],
    words: &'a [Option<u32>],
}

/// Tokens as a text, as `--json` prints it.
#[derive(Serialize)]
struct Decoded {
    ids: Vec<u32>,
    text: String,
}

fn load(path: &Path) -> Result<Tokenizer> {
    Ok(Tokenizer::load(path)?)
}

fn encode(of: &Encode, global: &Global, out: &mut dyn Write) -> Result<()> {
    file_names::not_files(&of.text)?;
    let tokenizer = load(&of.tokenizer)?;
    if of.text.is_empty() {
        for line in standard_input() {
            let encoding = tokenizer.encode(&line?)?;
            match global.json {
                true => write_json(out, &encoded(&encoding))?,
                false => writeln!(out, "{}", encoding.tokens.join(" "))?,
            }
        }
        return Ok(());
    }
    for text in &of.text {
        let encoding = tokenizer.encode(text)?;
        if global.json {
            write_json(out, &encoded(&encoding))?;
            continue;
        }
        let mut table = Table::new(["token", "id", "bytes"]);
        let Encoding { tokens, ids, offsets, .. } = &encoding;
        for ((token, id), (start, end)) in tokens.iter().zip(ids).zip(offsets) {
            table.row([token.clone(), id.to_string(), format!("{start}:{end}")]);
        }
        write!(out, "{}", table.render("", None))?;
    }
    Ok(())
}

fn encoded(encoding: &Encoding) -> Encoded<'_> {
    let Encoding { tokens, ids, offsets, words, .. } = encoding;
    Encoded { tokens, ids, offsets, words }
}

fn decode(of: &Decode, global: &Global, out: &mut dyn Write) -> Result<()> {
    let tokenizer = load(&of.tokenizer)?;
    let size = tokenizer.size();
    let texts: Texts = match of.ids.is_empty() {
        true => standard_input(),
        false => Box::new(of.ids.iter().cloned().map(Ok)),
    };
    for text in texts {
        let text = text?;
        let numbers = text.split([' ', ',', '\t', '[', ']']).filter(|part| !part.is_empty());
        let ids: Vec<u32> = numbers
            .map(|part| part.parse().with_context(|| format!("{part:?} is not an id")))
            .collect::<Result<_>>()?;
        if let Some(id) = ids.iter().find(|id| **id as usize >= size) {
            bail!("{}: got the id {id}, need 0 to {}", of.tokenizer.display(), size - 1);
        }
        let text = tokenizer.decode(&ids)?;
        match global.json {
            true => write_json(out, &Decoded { ids, text })?,
            false => writeln!(out, "{text}")?,
        }
    }
    Ok(())
}
