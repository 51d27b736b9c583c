//! `regard eval RUN --data FILE` for a run that was trained on files of the user: the file is read
//! as those were, with the columns, the header, the separator and the labels that the run recorded.
//! Tables for other models are read as for training, with the languages of the model.

use super::{Flags, Part};
use crate::cli::inputs::note;
use crate::cli::say::quoted;
use crate::cli::whole_files::{self, ScratchFolder};
use crate::models::ResolvedModel;
use anyhow::{Result, bail};
use regard_tasks::data;
use regard_tasks::evaluation::EvaluationData;
use regard_tasks::import::texts::is_table_name;
use regard_tasks::import::{Import, Places, Purpose, Request, SeenExamples, TrainedImport};
use regard_tasks::recipe::Table;
use regard_tasks::say::{count, many};
use regard_tasks::train;
use std::path::{Path, PathBuf};

/// Keys of a recipe that name columns; of imported files, flags do.
const KEYS: [(&str, &str); 3] =
    [("data.text", "--text"), ("data.label", "--label"), ("data.header", "--no-header")];

/// Examples of the user, written in the format that recipes read.
pub struct OwnExamples {
    /// The data to evaluate on.
    pub on: EvaluationData,
    /// Names of the user's files.
    pub shown: String,
    /// Columns of the source and of the target, by name or number, if there are such.
    pub sides: Option<[String; 2]>,
    /// Places of the examples in the files.
    pub places: Places,
    keys: Table,
    /// Kept until the evaluation is over.
    _folder: ScratchFolder,
}

/// Returns the record of a run's import, if --data names files of the user.
pub fn record(flags: &Flags, run: Option<&Path>) -> Result<Option<TrainedImport>> {
    let is_file = |data: &String| Path::new(data).exists() || data.contains(['/', '\\', '.']);
    match run.filter(|_| flags.data.iter().any(is_file)) {
        Some(run) => Ok(TrainedImport::of_run(run)?),
        None => Ok(None),
    }
}

/// Tasks whose examples are the rows of a table for any model. Those of a classifier are read by
/// its recipe, which has keys for the columns.
const OF_TABLES: [&str; 5] = ["translate", "summarize", "rerank", "answer", "recognize"];

/// Returns what is known about the files of a model that was not trained on imported ones, if
/// --data names tables of its task.
pub fn of_model(flags: &Flags, recipe: &Table, model: &ResolvedModel) -> Option<TrainedImport> {
    let task = recipe.get("task").and_then(|task| task.as_str())?;
    let paths: Vec<&Path> = flags.data.iter().map(Path::new).collect();
    if !OF_TABLES.contains(&task) || paths.is_empty() || !paths.iter().all(|path| path.exists()) {
        return None;
    }
    // SQuAD's JSON is a tree of articles, which recipes read.
    let is_tree = |path: &Path| task == "answer" && has_end(path, "json");
    let is_table = |path: &Path| (is_table_name(path) || has_end(path, "txt")) && !is_tree(path);
    let alone = matches!(paths[..], [path] if path.is_file() && !is_table(path));
    match alone && flags.columns.given().is_empty() {
        true => None,
        false => Some(TrainedImport::of_model(task, languages(recipe, model))),
    }
}

fn has_end(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|end| end.eq_ignore_ascii_case(wanted))
}

/// Languages that a model translates between, as its recipe or its tokenizer says.
fn languages(recipe: &Table, model: &ResolvedModel) -> Option<[String; 2]> {
    let data = recipe.get("data");
    let of_recipe = |key: &str| Some(data?.get(key)?.as_str()?.to_string());
    both_known(["source", "target"].map(of_recipe)).or_else(|| languages_of_model(model))
}

/// Languages that a model translates between, as its tokenizer says.
pub fn languages_of_model(model: &ResolvedModel) -> Option<[String; 2]> {
    const MOST: u64 = 1 << 20;
    let bytes = train::files(model.files()).ok()?.read("tokenizer_config.json", MOST).ok()?;
    let config: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
    let of_config = |key: &str| config.get(key)?.as_str().map(str::to_string);
    both_known(["source_lang", "target_lang"].map(of_config))
}

fn both_known([source, target]: [Option<String>; 2]) -> Option<[String; 2]> {
    Some([source?, target?]).filter(|both| both.iter().all(|each| !each.is_empty()))
}

/// Reads and checks the files, and says what was read.
pub fn read(flags: &Flags, trained: TrainedImport) -> Result<OwnExamples> {
    for (key, flag) in KEYS {
        if flags.overrides.iter().any(|set| set.split('=').next() == Some(key)) {
            bail!("--set {key}: this run was trained with --data; {flag} chooses the columns");
        }
    }
    let mut request = Request::new(trained.task.clone());
    request.data = flags.data.iter().map(PathBuf::from).collect();
    flags.columns.apply(&mut request);
    request.part = flags.part.map(|part| match part {
        Part::Valid => data::Part::Valid,
        Part::Test => data::Part::Test,
    });
    request.purpose = Purpose::Evaluate(trained.clone());
    let import = whole_files::read(&request, "evaluated")?;
    let folder = ScratchFolder::new()?;
    import.write(folder.path())?;
    note_seen(&trained, &import, &request, folder.path());
    let (on, keys) = import.evaluation(folder.path());
    let sides = import.column("source").zip(import.column("target")).map(<[String; 2]>::from);
    let [_, places] = import.places;
    let shown = flags.data.join(", ");
    Ok(OwnExamples { on, shown, sides, places, keys, _folder: folder })
}

/// Notes how many of the examples the run was trained on: their metrics are too good.
fn note_seen(trained: &TrainedImport, import: &Import, request: &Request, written: &Path) {
    // Images and recordings are not listed: their folders are.
    let read = if import.read.is_empty() { &request.data } else { &import.read };
    let is_whole = import.read.is_empty() || request.edges.is_some();
    let is_test = is_whole && import.chosen == Some(data::Part::Test);
    let known = trained.has_read(read).filter(|_| !is_test);
    let is_file = |known: &Path| format!("the run was trained on {}: ", known.display());
    let known = known.map(is_file);
    let only = "without --data, only the test part is evaluated";
    match trained.seen(written) {
        Ok(Some(SeenExamples { seen, all, .. })) if seen > 0 => {
            let (known, seen, all) = (known.unwrap_or_default(), count(seen), many(all, "example"));
            note(&format!(
                "{known}{seen} of {all} are in the training part of this run, so the metrics are \
                 better than on new data; {only}"
            ));
        }
        Ok(Some(_)) => {}
        Ok(None) => {
            if let Some(known) = known {
                note(&format!("{known}examples that it has seen are evaluated too; {only}"));
            }
        }
        Err(error) => note(&format!(
            "{}whether the run was trained on these examples is not known: {error}",
            known.unwrap_or_default()
        )),
    }
}

impl OwnExamples {
    /// Sets the keys of the recipe that name the written files.
    pub fn name_files(&self, recipe: &mut Table) {
        let data = recipe.get_mut("data").and_then(|data| data.as_table_mut());
        let keys = self.keys.get("data").and_then(|keys| keys.as_table());
        let (Some(data), Some(keys)) = (data, keys) else { return };
        keys.iter().for_each(|(key, value)| drop(data.insert(key.clone(), value.clone())));
    }
}

/// Sets the keys of a classifier's recipe for the columns that flags choose. Flags without effect
/// are refused: the files of other tasks have no columns.
pub fn set_columns(flags: &Flags, recipe: &mut Table) -> Result<()> {
    let task = recipe.get("task").and_then(|task| task.as_str()).unwrap_or_default();
    let (task, is_classifier) = (task.to_string(), task == "classify");
    let is_known = |flag: &&str| is_classifier && KEYS.iter().any(|(_, known)| known == flag);
    if let Some(flag) = flags.columns.given().into_iter().find(|flag| !is_known(flag)) {
        let takes = match is_classifier {
            true => "takes --text, --label and --no-header",
            false => "has no columns to choose: regard eval --help lists its files",
        };
        bail!("{flag}: --data of this model, for {task}, {takes}");
    }
    let mut request = Request::new(task);
    flags.columns.apply(&mut request);
    let chosen = flags.columns.given().first().copied();
    if let (Some(flag), Some(set)) = (chosen, flags.data.first())
        && !Path::new(set).exists()
        && !set.contains(['/', '\\', '.'])
    {
        bail!(
            "{flag}: --data {} is a data set, whose columns are known: leave it out",
            quoted(set)
        );
    }
    if let Some(data) = recipe.get_mut("data").and_then(|data| data.as_table_mut()) {
        // Columns are those of a file, and not of the data set that the model was trained on.
        if chosen.is_some() {
            data.insert("set".into(), regard_tasks::own::FILES.into());
            ["held_out", "test_per_mille"].iter().for_each(|key| drop(data.remove(*key)));
        }
        let columns = [("text", request.columns.text), ("label", request.columns.label)];
        for (key, value) in columns {
            if let Some(value) = value {
                data.insert(key.into(), value.into());
            }
        }
        if let Some(header) = request.header {
            data.insert("header".into(), header.into());
        }
    }
    if let [_, second, ..] = &flags.data[..] {
        bail!(
            "--data {}: several files are read for runs that were trained on such files, and for \
             parallel texts; name one",
            quoted(second)
        );
    }
    Ok(())
}
