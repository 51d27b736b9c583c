//! `regard recipes`: list of training recipes, and reference of their keys.

mod markdown;

use super::{Global, Outcome, write_json};
use crate::recipe::{RECIPES, resolve_task};
use crate::show::{table::Table, terminal};
use anyhow::Result;
use clap::Args;
use regard_tasks::keys::{self, Key};
use regard_tasks::recipe::{Published, Task};
use serde::Serialize;
use std::io::Write;

/// List training recipes with their results, or explain recipe keys
#[derive(Args)]
#[command(after_help = "\
Lists the built-in recipes with the result of training them (ours) and the minutes it took. A recipe
is a TOML file with everything that determines a training run.

Examples:
  regard recipes
  regard recipes cora-gat                           # metric, published result, ours, log
  regard recipes --keys                             # explain every key
  regard recipes --keys cora-gat                    # keys of its task
  regard recipes --json | jq -r '.[] | select(.data == \"multi30k\") | .name'

To train one: regard train NAME. To print one in full: regard train NAME --dump-config.")]
pub struct Flags {
    /// Show this recipe: task, data, metric, published and own result, log
    name: Option<String>,
    /// Explain recipe keys; with NAME, only those of its task
    #[arg(long)]
    keys: bool,
    /// Print Markdown: RESULTS.md, or with --keys docs/recipe-keys.md
    #[arg(long, conflicts_with_all = ["name", "json"])]
    markdown: bool,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    if flags.markdown {
        match flags.keys {
            true => markdown::keys(out)?,
            false => markdown::results(&all()?, out)?,
        }
        return Ok(Outcome::Positive);
    }
    if flags.keys {
        let recipe = flags.name.as_ref().map(|name| resolve_task(name, &[])).transpose()?;
        explain(recipe.as_deref(), global, out)?;
        return Ok(Outcome::Positive);
    }
    if let Some(name) = &flags.name {
        let recipe = resolve_task(name, &[])?;
        match global.json {
            true => write_json(out, &Row::new(&*recipe))?,
            false => tell(&*recipe, out)?,
        }
        return Ok(Outcome::Positive);
    }
    let recipes = all()?;
    if global.json {
        let rows: Vec<Row> = recipes.iter().map(|recipe| Row::new(&**recipe)).collect();
        write_json(out, &rows)?;
        return Ok(Outcome::Positive);
    }
    let mut table = Table::new(["name", "about", "ours", "minutes"]);
    for recipe in recipes {
        let result = recipe.result().cloned().unwrap_or_default();
        let number = |x: Option<f64>| x.map_or("–".into(), |x| format!("{x}"));
        let Published { ours, minutes, .. } = result;
        let (name, about) = (recipe.name().to_string(), recipe.about().to_string());
        table.row([name, about, number(ours), number(minutes)]);
    }
    write!(out, "{}", table.render("", terminal::width_of_terminal()))?;
    Ok(Outcome::Positive)
}

/// Every built-in recipe.
fn all() -> Result<Vec<Box<dyn Task>>> {
    RECIPES.iter().map(|(name, _)| resolve_task(name, &[])).collect()
}

/// Prints the reference of recipe keys: all of them, or those of a recipe's task.
fn explain(recipe: Option<&dyn Task>, global: &Global, out: &mut dyn Write) -> Result<()> {
    let mut keys = keys::reference();
    if let Some(recipe) = recipe {
        let has =
            |key: &Key| key.tasks == "all" || key.tasks.split(' ').any(|t| t == recipe.task());
        keys.retain(has);
    }
    if global.json {
        let row = |key: &Key| KeyRow { key: key.name, tasks: key.tasks, about: key.about };
        return write_json(out, &keys.iter().map(row).collect::<Vec<_>>());
    }
    for Key { name, tasks, about } in keys {
        let tasks = if tasks == "all" { String::new() } else { format!(" [{tasks}]") };
        writeln!(out, "{name}{tasks}\n    {about}")?;
    }
    Ok(())
}

/// Prints one recipe with its result.
fn tell(recipe: &dyn Task, out: &mut dyn Write) -> Result<()> {
    let Published { metric, published, ours, minutes, log } =
        recipe.result().cloned().unwrap_or_default();
    let number = |x: Option<f64>| x.map_or("–".into(), |x| format!("{x}"));
    let log = if log.is_empty() { "–".into() } else { format!("recipes/{log}") };
    writeln!(out, "{}: {}", recipe.name(), recipe.about())?;
    for (key, value) in [
        ("task", recipe.task().to_string()),
        ("data", recipe.data().to_string()),
        ("metric", metric),
        ("published", published),
        ("ours", number(ours)),
        ("minutes", number(minutes)),
        ("log", log),
    ] {
        writeln!(out, "{key:<11}{value}")?;
    }
    Ok(())
}

/// A key, as `--json` prints it.
#[derive(Serialize)]
struct KeyRow {
    key: &'static str,
    tasks: &'static str,
    about: &'static str,
}

/// A recipe with its result, as `--json` prints it.
#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    task: &'a str,
    about: &'a str,
    data: &'a str,
    metric: String,
    published: String,
    ours: Option<f64>,
    seed: u64,
    minutes: Option<f64>,
    log: String,
}

impl Row<'_> {
    fn new(recipe: &dyn Task) -> Row<'_> {
        let Published { metric, published, ours, minutes, log } =
            recipe.result().cloned().unwrap_or_default();
        Row {
            name: recipe.name(),
            task: recipe.task(),
            about: recipe.about(),
            data: recipe.data(),
            metric,
            published,
            ours,
            seed: recipe.seed(),
            minutes,
            log,
        }
    }
}
