//! `regard models`: list of models, details and download of one, and export to a folder.

use super::say::quoted;
use super::{Global, Outcome, write_json};
use crate::hub::{Fetch, Hub};
use crate::models::{self, ModelRef, SHIPPED};
use crate::show::table::Table;
use crate::show::{bytes, terminal};
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use regard_models::checkpoint::{self, Precision};
use regard_tasks::train;
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use std::io::Write;
use std::path::{Path, PathBuf};

/// List models, show or download one, or export one to a folder
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Lists the built-in models and those in runs/ and models/. With a name, shows what it resolves to:
a folder, else a name in runs/ or models/, else a built-in model, else a Hugging Face Hub id.
builtin:NAME is a built-in model, whatever folders there are: regard models builtin:en-fr.

Examples:
  regard models
  regard models en-fr                              # details of a built-in model
  regard models export en-fr --out en-fr           # a folder that transformers can load
  regard models export en-fr --out en-fr-f16 --precision f16
  regard models export MODEL --adapter FOLDER --out MERGED   # with a LoRA adapter merged into it
  regard models gpt2 --fetch                       # download from the Hub, or update to the newest

Hub models are stored in the cache of Python's huggingface_hub (HF_HOME). A branch stays at the
commit that was downloaded until --fetch. Environment variables: HF_HOME, HF_HUB_CACHE, HF_TOKEN,
HF_ENDPOINT, HF_HUB_OFFLINE, HF_HUB_DOWNLOAD_TIMEOUT (seconds without data before giving up).

The exit code is 1 if the name looks like a Hub id but the model is not on this machine."
)]
pub struct Flags {
    #[command(subcommand)]
    what: Option<What>,
    /// Show this model: a folder, a name, or a Hugging Face Hub id
    model: Option<String>,
    /// Download the newest version from the Hub
    #[arg(long, requires = "model", conflicts_with = "offline")]
    fetch: bool,
    #[command(flatten)]
    hub: Hub,
}

#[derive(Subcommand)]
enum What {
    /// Write a model to a folder: configuration, weights, vocabulary
    Export {
        /// Model: a folder, a name listed by `regard models`, or a Hugging Face Hub id
        model: String,
        /// Output folder
        #[arg(long, value_name = "FOLDER")]
        out: PathBuf,
        /// Precision of the weights
        #[arg(long, value_enum, default_value_t = Stored::Single)]
        precision: Stored,
        #[command(flatten)]
        hub: Hub,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Stored {
    #[value(name = "f32", alias = "single")]
    Single,
    #[value(name = "f16", alias = "half")]
    Half,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    match (flags.what, flags.model) {
        (None, None) => {
            flags.hub.refuse_weight_flags("a list of models loads none; leave it out")?;
            list(global, out)?
        }
        (None, Some(model)) => {
            let model_quoted = quoted(&model);
            flags.hub.refuse_weight_flags(&format!(
                "the files of a model are listed as they are; its size when it is quantised: \
                 regard inspect {model_quoted} --storage int8"
            ))?;
            return show(&model, flags.fetch, &flags.hub, global, out);
        }
        (Some(What::Export { model, out: folder, precision, hub }), _) => {
            if let Some(bits) = hub.bits() {
                bail!(
                    "--storage {0}: export writes floating point. Leave it out, and then quantise \
                     what was written: regard quantize {1} --to {0} --out {2}",
                    bits.name(),
                    quoted(folder.display()),
                    quoted(format!("{}-{}", folder.display(), bits.name()))
                );
            }
            models::check_out(&folder)?;
            let precision = match precision {
                Stored::Single => Precision::Single,
                Stored::Half => Precision::Half,
            };
            models::export(&model, &hub, &folder, precision)?;
            if !global.json {
                writeln!(out, "{model}: written to {}", folder.display())?;
            }
        }
    }
    Ok(Outcome::Positive)
}

/// A row of the list, as `--json` prints it.
#[derive(Serialize)]
#[serde(untagged)]
enum Listed<'a> {
    Shipped { name: &'a str, about: &'a str, recipe: &'a str, licence: &'a str, ships: bool },
    Here { name: Cow<'a, str>, folder: &'a Path, ships: bool },
}

fn list(global: &Global, out: &mut dyn Write) -> Result<()> {
    let shelved = models::on_shelves();
    if global.json {
        let ships = SHIPPED.iter().map(|model| Listed::Shipped {
            name: model.name,
            about: model.about,
            recipe: model.recipe,
            licence: model.licence,
            ships: true,
        });
        let here = shelved.iter().map(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            Listed::Here { name, folder: path, ships: false }
        });
        return write_json(out, &ships.chain(here).collect::<Vec<_>>());
    }
    let mut table = Table::new(["name", "description", "recipe or folder"]);
    for model in SHIPPED {
        table.row([model.name.into(), model.about.into(), format!("recipe {}", model.recipe)]);
    }
    for path in &shelved {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        table.row([name, "in this folder".into(), path.display().to_string()]);
    }
    write!(out, "{}", table.render("", terminal::width_of_terminal()))?;
    Ok(())
}

/// A model as `--json` prints it.
#[derive(Serialize)]
struct ModelDetails<'a> {
    name: &'a str,
    #[serde(flatten)]
    facts: Facts,
    #[serde(flatten)]
    contents: Option<Contents>,
}

/// Origin of a model; fields that do not apply are absent.
#[derive(Default, Serialize)]
struct Facts {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    about: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recipe: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    licence: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    folder: Option<String>,
}

/// Files of a model on this machine.
#[derive(Serialize)]
struct Contents {
    files: Vec<File>,
    /// Total size of all files in bytes.
    bytes: u64,
    config: Value,
}

#[derive(PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct File {
    name: String,
    bytes: u64,
}

fn show(
    asked: &str,
    fetch: bool,
    hub: &Hub,
    global: &Global,
    out: &mut dyn Write,
) -> Result<Outcome> {
    let called = models::called(asked)?;
    if let (true, ModelRef::Shipped(_) | ModelRef::Folder(_)) = (fetch, &called) {
        bail!("--fetch: {asked} is on this machine; only models of the Hub can be downloaded");
    }
    let (facts, contents) = match called {
        ModelRef::Shipped(model) => {
            let size = |(name, bytes): &(&str, &[u8])| File {
                name: name.to_string(),
                bytes: bytes.len() as u64,
            };
            let files = model.files.files;
            let config = files.iter().find(|(name, _)| *name == checkpoint::CONFIG);
            let facts = Facts {
                kind: "ships",
                about: Some(model.about),
                recipe: Some(model.recipe),
                licence: Some(model.licence),
                ..Facts::default()
            };
            let config = serde_json::from_slice(config.map_or(b"null", |(_, bytes)| bytes))?;
            (facts, Contents::new(files.iter().map(size).collect(), config))
        }
        ModelRef::Folder(file) if file.is_file() => {
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let bytes = std::fs::metadata(&file).with_context(|| file.display().to_string())?.len();
            let config = train::files(&file)?.config()?;
            let facts = Facts { kind: "file", ..Facts::default() };
            (facts, Contents::new(vec![File { name, bytes }], config))
        }
        ModelRef::Folder(folder) => {
            let of_run = train::resolve(&folder)?;
            let kind = if of_run == folder { "folder" } else { "run" };
            of_folder(&of_run, Facts { kind, ..Facts::default() })?
        }
        ModelRef::Id(id) => {
            let how = if fetch { Fetch::Newest } else { Fetch::Never };
            match models::from_hub(&id, hub, how) {
                Ok(found) => {
                    let facts = Facts { commit: Some(found.commit), ..of_hub(id, hub) };
                    of_folder(&found.folder, facts)?
                }
                Err(error) if fetch => return Err(error),
                Err(_) => return not_here(&id, hub, global, out),
            }
        }
    };
    write(&ModelDetails { name: asked, facts, contents: Some(contents) }, global, out)?;
    Ok(Outcome::Positive)
}

fn of_hub(id: String, hub: &Hub) -> Facts {
    let revision = Some(hub.revision().to_string());
    Facts { kind: "hub", id: Some(id), revision, ..Facts::default() }
}

fn not_here(id: &str, hub: &Hub, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let revision = hub.revision();
    match global.json {
        true => {
            let facts = of_hub(id.to_string(), hub);
            write_json(out, &ModelDetails { name: id, facts, contents: None })?;
        }
        false => writeln!(
            out,
            "{id}: not on this machine; it may be a Hugging Face Hub id (revision {revision})\n\
             To download it: regard models {id} --fetch"
        )?,
    }
    Ok(Outcome::Negative)
}

fn of_folder(folder: &Path, facts: Facts) -> Result<(Facts, Contents)> {
    let mut files = vec![];
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        // Follows links: files of the Hub's cache are links to the contents.
        let Ok(about) = std::fs::metadata(entry.path()) else { continue };
        if about.is_file() {
            let name = entry.file_name().to_string_lossy().into_owned();
            files.push(File { name, bytes: about.len() });
        }
    }
    files.sort();
    let facts = Facts { folder: Some(folder.display().to_string()), ..facts };
    Ok((facts, Contents::new(files, checkpoint::read_config(folder)?)))
}

impl Contents {
    fn new(files: Vec<File>, config: Value) -> Contents {
        Contents { bytes: files.iter().map(|file| file.bytes).sum(), files, config }
    }
}

fn write(told: &ModelDetails, global: &Global, out: &mut dyn Write) -> Result<()> {
    if global.json {
        return write_json(out, told);
    }
    writeln!(out, "{}", told.name)?;
    let Facts { kind, about, recipe, licence, id, revision, commit, folder } = &told.facts;
    for (key, fact) in [
        ("kind", Some(*kind)),
        ("about", *about),
        ("recipe", *recipe),
        ("licence", *licence),
        ("id", id.as_deref()),
        ("revision", revision.as_deref()),
        ("commit", commit.as_deref()),
        ("folder", folder.as_deref()),
    ] {
        if let Some(fact) = fact {
            writeln!(out, "{key:<13}{fact}")?;
        }
    }
    let Some(Contents { files, bytes: total, config }) = &told.contents else { return Ok(()) };
    for key in ["model_type", "architectures"] {
        let said = match &config[key] {
            Value::String(said) => said.clone(),
            Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
            _ => continue,
        };
        writeln!(out, "{:<13}{said}", key.trim_end_matches('s').replace("model_type", "type"))?;
    }
    let mut table = Table::new(["file", "size"]);
    for File { name, bytes: size } in files {
        table.row([name.clone(), bytes(*size)]);
    }
    table.row(["total".into(), bytes(*total)]);
    write!(out, "\n{}", table.render("  ", None))?;
    Ok(())
}
