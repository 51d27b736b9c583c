//! `regard models`: what ships, what was trained here, what a name stands for, and a model's
//! folder from any of them.

use super::{Global, Outcome, write_json};
use crate::hub::{Fetch, Hub};
use crate::models::{self, Called, SHIPPED};
use crate::show::table::Table;
use crate::show::{bytes, terminal};
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use regard_models::checkpoint::{self, Precision};
use regard_tasks::train;
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};

/// List models, see what a name stands for, or write one to a folder
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  regard models                                    what there is
  regard models en-fr                              what a name stands for
  regard models google-bert/bert-base-uncased      the same of a model of the Hugging Face Hub
  regard models gpt2 --fetch                       download it, or its newest version
  regard models export en-fr --out en-fr           a folder that transformers and we can load
  regard models export runs/mine --out mine --precision half

A name is a folder, else one in runs/ or models/, else one that ships, else an id of the Hub.
Models of the Hub are kept where Python keeps them (HF_HOME), and a branch stays the commit that it
was when it was downloaded, until --fetch. Environment: HF_HOME, HF_HUB_CACHE, HF_TOKEN,
HF_ENDPOINT, HF_HUB_OFFLINE, HF_HUB_DOWNLOAD_TIMEOUT (seconds that a server may be silent).
Exit code 1: the model is on the Hub, perhaps, but not on this machine."
)]
pub struct Flags {
    #[command(subcommand)]
    what: Option<What>,
    /// What does this name stand for?
    model: Option<String>,
    /// Download it, if it is a model of the Hub
    #[arg(long, requires = "model", conflicts_with = "offline")]
    fetch: bool,
    #[command(flatten)]
    hub: Hub,
}

#[derive(Subcommand)]
enum What {
    /// Write a model's folder: configuration, weights, vocabulary
    Export {
        /// A model, as `--model` takes it
        model: String,
        /// The folder to write
        #[arg(long, value_name = "FOLDER")]
        out: PathBuf,
        /// How numbers are stored
        #[arg(long, value_enum, default_value_t = Stored::Single)]
        precision: Stored,
        #[command(flatten)]
        hub: Hub,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Stored {
    Single,
    Half,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    match (flags.what, flags.model) {
        (None, None) => list(global, out)?,
        (None, Some(model)) => return show(&model, flags.fetch, &flags.hub, global, out),
        (Some(What::Export { model, out: folder, precision, hub }), _) => {
            if folder.join(checkpoint::CONFIG).exists() {
                bail!("--out: {} holds a model already", folder.display());
            }
            let precision = match precision {
                Stored::Single => Precision::Single,
                Stored::Half => Precision::Half,
            };
            models::export(&model, &hub, &folder, precision)?;
            if !global.json {
                writeln!(out, "{model} is in {}", folder.display())?;
            }
        }
    }
    Ok(Outcome::Positive)
}

fn list(global: &Global, out: &mut dyn Write) -> Result<()> {
    let shelved = models::on_shelves();
    if global.json {
        let ships = SHIPPED.iter().map(|model| {
            json!({
                "name": model.name, "about": model.about, "recipe": model.recipe,
                "licence": model.licence, "ships": true,
            })
        });
        let here = shelved.iter().map(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            json!({ "name": name, "folder": path, "ships": false })
        });
        return write_json(out, &ships.chain(here).collect::<Vec<_>>());
    }
    let mut table = Table::new(["name", "what", "from"]);
    for model in SHIPPED {
        table.row([model.name.into(), model.about.into(), format!("recipe {}", model.recipe)]);
    }
    for path in &shelved {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        table.row([name, "trained or put here".into(), path.display().to_string()]);
    }
    write!(out, "{}", table.render("", terminal::width_of_terminal()))?;
    Ok(())
}

/// A model as it is told.
struct Told {
    /// Facts with their names, for the first lines and for the object.
    facts: Vec<(&'static str, String)>,
    /// Names and sizes.
    files: Vec<(String, u64)>,
    config: Value,
}

fn show(
    asked: &str,
    fetch: bool,
    hub: &Hub,
    global: &Global,
    out: &mut dyn Write,
) -> Result<Outcome> {
    let called = models::called(asked)?;
    if let (true, Called::Shipped(_) | Called::Folder(_)) = (fetch, &called) {
        bail!("--fetch: {asked} is on this machine; only models of the Hub can be downloaded");
    }
    let told = match called {
        Called::Shipped(model) => {
            let size = |(name, bytes): &(&str, &[u8])| (name.to_string(), bytes.len() as u64);
            let files = model.files.files;
            let config = files.iter().find(|(name, _)| *name == checkpoint::CONFIG);
            Told {
                facts: vec![
                    ("kind", "ships".into()),
                    ("about", model.about.into()),
                    ("recipe", model.recipe.into()),
                    ("licence", model.licence.into()),
                ],
                files: files.iter().map(size).collect(),
                config: serde_json::from_slice(config.map_or(b"null", |(_, bytes)| bytes))?,
            }
        }
        Called::Folder(folder) => {
            let of_run = train::resolve(&folder)?;
            let kind = if of_run == folder { "folder" } else { "run" };
            told_of_folder(&of_run, vec![("kind", kind.into())])?
        }
        Called::Id(id) => {
            let how = if fetch { Fetch::Newest } else { Fetch::Never };
            match models::from_hub(&id, hub, how) {
                Ok(found) => {
                    let mut facts = vec![("kind", "hub".into()), ("id", id)];
                    facts.push(("revision", hub.revision().to_string()));
                    facts.push(("commit", found.commit));
                    told_of_folder(&found.folder, facts)?
                }
                Err(error) if fetch => return Err(error),
                Err(_) => return not_here(&id, hub, global, out),
            }
        }
    };
    told.write(asked, global, out)?;
    Ok(Outcome::Positive)
}

fn not_here(id: &str, hub: &Hub, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let revision = hub.revision();
    match global.json {
        true => {
            let facts = json!({ "name": id, "kind": "hub", "id": id, "revision": revision });
            write_json(out, &facts)?;
        }
        false => writeln!(
            out,
            "{id}: would be a model of the Hugging Face Hub, and is not on this machine (revision \
             {revision})\nTo download it: regard models {id} --fetch"
        )?,
    }
    Ok(Outcome::Negative)
}

fn told_of_folder(folder: &Path, mut facts: Vec<(&'static str, String)>) -> Result<Told> {
    facts.push(("folder", folder.display().to_string()));
    let mut files = vec![];
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        // Through links: those of the Hub's cache lead to the contents.
        let Ok(about) = std::fs::metadata(entry.path()) else { continue };
        if about.is_file() {
            files.push((entry.file_name().to_string_lossy().into_owned(), about.len()));
        }
    }
    files.sort();
    Ok(Told { facts, files, config: checkpoint::read_config(folder)? })
}

impl Told {
    fn write(&self, name: &str, global: &Global, out: &mut dyn Write) -> Result<()> {
        let total: u64 = self.files.iter().map(|(_, bytes)| bytes).sum();
        if global.json {
            let mut object = json!({ "name": name });
            self.facts.iter().for_each(|(key, fact)| object[*key] = json!(fact));
            let file = |(name, bytes): &(String, u64)| json!({ "name": name, "bytes": bytes });
            object["files"] = self.files.iter().map(file).collect();
            object["bytes"] = json!(total);
            object["config"] = self.config.clone();
            return write_json(out, &object);
        }
        writeln!(out, "{name}")?;
        for (key, fact) in &self.facts {
            writeln!(out, "{key:<13}{fact}")?;
        }
        for key in ["model_type", "architectures"] {
            let said = match &self.config[key] {
                Value::String(said) => said.clone(),
                Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
                _ => continue,
            };
            writeln!(out, "{:<13}{said}", key.trim_end_matches('s').replace("model_type", "type"))?;
        }
        let mut table = Table::new(["file", "size"]);
        for (name, size) in &self.files {
            table.row([name.clone(), bytes(*size)]);
        }
        table.row(["together".into(), bytes(total)]);
        write!(out, "\n{}", table.render("  ", None))?;
        Ok(())
    }
}
