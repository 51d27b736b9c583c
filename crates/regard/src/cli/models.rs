//! `regard models`: what ships, what was trained here, and a model's folder from either.

use super::{Global, Outcome, write_json};
use crate::models::{self, Found, SHIPPED};
use crate::show::table::Table;
use crate::show::terminal;
use anyhow::{Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use regard_models::checkpoint::Precision;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

/// List models, see what a name stands for, or write one to a folder
#[derive(Args)]
#[command(after_help = "\
Examples:
  regard models                                    what there is
  regard models show en-fr                         what a name stands for
  regard models export en-fr --out en-fr           a folder that transformers and we can load
  regard models export runs/mine --out mine --precision half")]
pub struct Flags {
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Subcommand)]
enum What {
    /// What a name or folder stands for
    Show {
        /// A model's name or folder
        model: String,
    },
    /// Write a model's folder: configuration, weights, vocabulary
    Export {
        /// A model's name or folder
        model: String,
        /// The folder to write
        #[arg(long, value_name = "FOLDER")]
        out: PathBuf,
        /// How numbers are stored
        #[arg(long, value_enum, default_value_t = Stored::Single)]
        precision: Stored,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Stored {
    Single,
    Half,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    match flags.what {
        None => list(global, out)?,
        Some(What::Show { model }) => show(&model, global, out)?,
        Some(What::Export { model, out: folder, precision }) => {
            if folder.join("config.json").exists() {
                bail!("--out: {} holds a model already", folder.display());
            }
            let precision = match precision {
                Stored::Single => Precision::Single,
                Stored::Half => Precision::Half,
            };
            models::translator(Some(&model))?.save(&folder, precision)?;
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
            json!({ "name": path.file_name().unwrap_or_default().to_string_lossy(), "folder": path, "ships": false })
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

fn show(asked: &str, global: &Global, out: &mut dyn Write) -> Result<()> {
    let translator = models::translator(Some(asked))?;
    let (config, parameters) = (translator.config(), translator.parameters());
    let found = models::resolve(Some(asked))?;
    if global.json {
        let from = match &found {
            Found::Shipped(model) => json!({ "recipe": model.recipe, "licence": model.licence }),
            Found::Folder(folder) => json!({ "folder": folder }),
        };
        let all = json!({ "from": from, "parameters": parameters, "config": config });
        return write_json(out, &all);
    }
    match &found {
        Found::Shipped(model) => writeln!(
            out,
            "{}: {}\nmade by recipe {}\n{}",
            model.name, model.about, model.recipe, model.licence
        )?,
        Found::Folder(folder) => writeln!(out, "{}", folder.display())?,
    }
    writeln!(out, "{:.2} M parameters\n{config:#}", parameters as f64 / 1e6)?;
    Ok(())
}
