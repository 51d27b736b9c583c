//! Command line of `regard train`: a new run, or a resumed one.

use super::{Flags, own};
use crate::cli::Global;
use crate::cli::say::quoted;
use crate::recipe;
use anyhow::{Result, anyhow, bail};
use regard_tasks::recipe::{Table, Task};
use regard_tasks::say;
use regard_tasks::train::{self, Lock, SettingDifference};
use std::path::{Path, PathBuf};

/// Default folder of runs.
const RUNS: &str = "runs";

/// Recipe and folder of the run.
pub struct Plan {
    pub recipe: Box<dyn Task>,
    pub folder: PathBuf,
    pub resume: bool,
    /// Lock of the imported data, held until the command ends.
    pub data: Option<Lock>,
}

impl Plan {
    pub fn new(flags: &Flags, global: &Global) -> Result<Plan> {
        Plan::find(flags, global)?.checked()
    }

    /// Checks the options before the data are read, which can take long.
    pub fn checked(self) -> Result<Plan> {
        self.recipe.options().check()?;
        Ok(self)
    }

    fn find(flags: &Flags, global: &Global) -> Result<Plan> {
        let Some(run) = &flags.resume else {
            let name = flags.recipe.as_deref().expect("clap asks for one");
            if own::is_task(name) && !Path::new(name).is_file() {
                bail!(
                    "{name} is a task: add your data, as in `regard train {name} --data FILE`, or \
                     name a recipe listed by `regard recipes`"
                );
            }
            let mut table = recipe::table(name, &flags.overrides())?;
            flags.check_lora(table.get("task").and_then(|task| task.as_str()).unwrap_or(name))?;
            if let Some(from) = &flags.own.from {
                set_origin(&mut table, name, from)?;
            }
            let recipe = regard_tasks::recipe::task(table);
            let mut recipe = recipe.map_err(|message| anyhow!("{name}: {message}"))?;
            if let Some(seed) = global.seed {
                recipe.set_seed(seed);
            }
            let folder = match &flags.out {
                Some(folder) => folder.clone(),
                None => default_folder(recipe.name())?,
            };
            return Ok(Plan { recipe, folder, resume: false, data: None });
        };
        let folder = match (run, &flags.out, &flags.recipe) {
            (Some(_), Some(_), _) => {
                bail!("--resume RUN names the run's folder already; --out is for a new run")
            }
            (Some(run), None, _) => find_run(run)?,
            (None, Some(folder), _) => folder.clone(),
            (None, None, Some(name)) => {
                default_folder(recipe::resolve_task(name, &flags.overrides)?.name())?
            }
            (None, None, None) => {
                bail!("--resume: name the run's folder, as in: regard train --resume runs/try")
            }
        };
        let recipe = resumed(flags, global, &folder)?;
        Ok(Plan { recipe, folder, resume: true, data: None })
    }
}

/// Sets the pretrained model that a recipe starts from.
fn set_origin(table: &mut Table, name: &str, from: &str) -> Result<()> {
    if !table.contains_key("from") {
        let has_key = |text: &str| text.lines().any(|line| line.starts_with("from ="));
        let all = recipe::RECIPES.iter().filter(|(_, text)| has_key(text));
        let all: Vec<&str> = all.map(|(name, _)| *name).collect();
        bail!(
            "--from: {name} trains a model from scratch; recipes that start from a pretrained one: \
             {}. For your own data: regard train classify --data FILE --from {}",
            all.join(", "),
            quoted(from)
        );
    }
    table.insert("from".into(), from.into());
    // It is a commit of the model that the recipe names.
    table.remove("revision");
    Ok(())
}

/// Returns the recipe of a resumed run: its own, with the overrides that are allowed to change.
fn resumed(flags: &Flags, global: &Global, folder: &Path) -> Result<Box<dyn Task>> {
    let recorded = recorded(flags, folder)?;
    if recorded.is_none() && flags.recipe.is_some() && train::checkpoints(folder).is_empty() {
        bail!("{}: holds no run to continue; to begin one, leave out --resume", folder.display());
    }
    let mut asked = match (&flags.recipe, &recorded) {
        (Some(name), _) => recipe::table(name, &flags.overrides)?,
        (None, Some(recorded)) => recipe::over(recorded.clone(), &flags.overrides)?,
        (None, None) => bail!("{}: holds no run: there is no recipe.toml", folder.display()),
    };
    // The commit of a Hub model was recorded when the run began.
    if let Some(revision) = recorded.as_ref().and_then(|recorded| recorded.get("revision")) {
        asked.entry("revision").or_insert(revision.clone());
    }
    let named = |message: String| match &flags.recipe {
        Some(name) => anyhow!("{name}: {message}"),
        None => anyhow!("{}: {message}", folder.join(train::RECIPE).display()),
    };
    let task = |table: Table| regard_tasks::recipe::task(table).map_err(named);
    let mut recipe = task(asked)?;
    if let Some(seed) = global.seed {
        recipe.set_seed(seed);
    }
    let Some(recorded) = recorded else { return Ok(recipe) };
    let mut recorded = task(recorded)?;
    if flags.seeds.is_some() {
        // The seed of each run is set later.
        recorded.set_seed(recipe.seed());
    }
    let differences = train::differences(&train::table(&*recorded), &train::table(&*recipe));
    let set: Vec<&str> =
        flags.overrides.iter().filter_map(|each| Some(each.split('=').next()?.trim())).collect();
    let is_meant =
        |each: &&SettingDifference| each.is_allowed() && set.contains(&each.key.as_str());
    let refused: Vec<&SettingDifference> =
        differences.iter().filter(|each| !is_meant(each)).collect();
    if refused.is_empty() {
        return Ok(recipe);
    }
    let error = train::refuse(folder, refused);
    bail!("{error}\nTo continue with the original settings: {}", command(folder, flags, global));
}

/// Recipe recorded by a run; of several seeds, that of the first.
fn recorded(flags: &Flags, folder: &Path) -> Result<Option<Table>> {
    let own = match flags.seeds {
        None => folder.to_path_buf(),
        Some(_) => folder.join(format!("seed-{}", first_seed(folder).unwrap_or(0))),
    };
    Ok(if train::is_run(&own) { Some(train::recorded(&own)?) } else { None })
}

/// Smallest seed of the runs in a folder.
fn first_seed(folder: &Path) -> Option<u64> {
    let names =
        folder.read_dir().ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter_map(|name| name.strip_prefix("seed-")?.parse().ok()).min()
}

/// Command that resumes a run.
pub fn command(folder: &Path, flags: &Flags, global: &Global) -> String {
    let mut text = format!("regard train --resume {}", quoted(folder.display()));
    if let Some(seeds) = flags.seeds {
        text += &format!(" --seeds {seeds}");
        if let Some(seed) = global.seed {
            text += &format!(" --seed {seed}");
        }
    }
    if let Some(bytes) = flags.memory {
        text += &format!(" --memory {bytes}");
    }
    text
}

/// Finds a run by its folder, or by its name in `runs/`.
fn find_run(run: &str) -> Result<PathBuf> {
    let (folder, named) = (PathBuf::from(run), Path::new(RUNS).join(run));
    for part in [&folder, &named] {
        let above = match part.parent() {
            Some(above) if above.as_os_str().is_empty() => Path::new("."),
            Some(above) => above,
            None => continue,
        };
        if part.is_dir() && !train::is_run(part) && train::is_run(above) {
            bail!(
                "--resume: {} is a part of a run; name the run: regard train --resume {}",
                part.display(),
                quoted(above.display())
            );
        }
    }
    match (folder.is_dir(), named.is_dir()) {
        (true, _) => Ok(folder),
        (false, true) => Ok(named),
        (false, false) => {
            let runs = train::runs(Path::new(RUNS)).unwrap_or_default();
            let runs: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
            bail!(
                "--resume: neither {run} nor {} is a folder; {}`regard runs` lists all",
                named.display(),
                say::did_you_mean(run, &runs)
            )
        }
    }
}

/// Default folder of a run: `runs/` and the recipe's name, which must not lead outside of it.
pub fn default_folder(name: &str) -> Result<PathBuf> {
    let is_plain = |c: char| c.is_alphanumeric() || "-_.+ ".contains(c);
    let begins = name.chars().next().is_some_and(char::is_alphanumeric);
    if !begins || name.len() > 200 || !name.chars().all(is_plain) {
        bail!(
            "name: {:?} cannot name the run's folder; use letters, digits, '-', '_', '.' and '+', \
             beginning with a letter or digit, or give --out FOLDER",
            name.chars().take(80).collect::<String>()
        );
    }
    Ok(Path::new(RUNS).join(name))
}
