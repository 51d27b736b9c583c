//! Texts that a quantised model is measured on: lines, a column of a table, or pairs of columns.

use super::Flags;
use crate::cli::eval;
use crate::cli::inputs::note;
use crate::cli::whole_files::{self, ScratchFolder};
use crate::models::ResolvedModel;
use anyhow::{Context, Result, bail};
use regard_models::{Seq2Seq, checkpoint, zoo};
use regard_tasks::import::texts::{
    FileText, FileTexts, TextChoice, is_table_name, recorded_reading,
};
use regard_tasks::import::{Purpose, Request, TrainedImport};
use regard_tasks::quantize::{Example, Sample};
use regard_tasks::train;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// Reads the file of --data, or takes the sentences that are built in.
pub fn read(flags: &Flags, model: &ResolvedModel) -> Result<Sample> {
    let Some(path) = flags.data.first() else { return Ok(Sample::built_in()) };
    let is_translator = zoo::is::<dyn Seq2Seq>(&train::files(model.files())?.config()?);
    if flags.data.len() > 1 && !is_translator {
        bail!("--data: got {} files, need one; only a translator takes two", flags.data.len());
    }
    let is_chosen = !flags.columns.given().is_empty() || flags.data.len() > 1;
    // A file of lines without tabs has no columns, whatever its name is.
    let is_table = is_chosen || is_table_name(path) && !has_one_column(path)?;
    match (is_table, is_translator) {
        (false, _) => lines(path),
        (true, true) => pairs(flags, model),
        (true, false) => column(flags, path, model),
    }
}

/// Whether a file in tab-separated columns has only one.
fn has_one_column(path: &Path) -> Result<bool> {
    if path.extension().is_none_or(|end| end != "tsv") {
        return Ok(false);
    }
    let (file, _) = checkpoint::open_file(path).context("--data")?;
    let mut first = vec![];
    BufReader::new(file).read_until(b'\n', &mut first).context("--data")?;
    Ok(!first.contains(&b'\t'))
}

/// A text on each line, or a text, a tab and its translation.
fn lines(path: &Path) -> Result<Sample> {
    let bytes = checkpoint::read_file(path, checkpoint::LARGEST_TEXT).context("--data")?;
    let name = path.display().to_string();
    let text = String::from_utf8(bytes);
    let text = text.with_context(|| format!("--data: {name} is not UTF-8"))?;
    Sample::parse(&name, &text).context("--data")
}

/// Two columns of a table, or two parallel files, chosen as `regard eval` chooses them.
fn pairs(flags: &Flags, model: &ResolvedModel) -> Result<Sample> {
    let recorded = match model {
        ResolvedModel::Folder(folder) => TrainedImport::of_run(&folder.path)?,
        ResolvedModel::Shipped(_) => None,
    };
    let trained = recorded.filter(|trained| trained.task == "translate");
    let trained = trained
        .unwrap_or_else(|| TrainedImport::of_model("translate", eval::languages_of_model(model)));
    let mut request = Request::new("translate");
    request.data = flags.data.clone();
    flags.columns.apply(&mut request);
    request.purpose = Purpose::Evaluate(trained);
    let import = whole_files::read(&request, "measured")?;
    let folder = ScratchFolder::new()?;
    import.write(folder.path())?;
    let text = checkpoint::read_text(&folder.path().join("test.tsv"))?;
    // The first line has the names of the columns.
    let pair = |line: &str| {
        let (source, target) = line.split_once('\t').unwrap_or((line, ""));
        Example { text: source.to_string(), target: Some(target.to_string()) }
    };
    let examples = text.lines().skip(1).map(pair).collect();
    let names: Vec<String> = flags.data.iter().map(|path| path.display().to_string()).collect();
    Ok(Sample { examples, name: names.join(", ") })
}

/// A text column of a table.
fn column(flags: &Flags, path: &Path, model: &ResolvedModel) -> Result<Sample> {
    let known = ["--text", "--no-header"];
    if let Some(flag) = flags.columns.given().into_iter().find(|flag| !known.contains(flag)) {
        bail!("{flag} does not apply to a model of texts; --text names the column of a table");
    }
    let mut request = Request::new("generate");
    flags.columns.apply(&mut request);
    let like = match model {
        ResolvedModel::Folder(folder) => recorded_reading(&folder.path)?,
        ResolvedModel::Shipped(_) => None,
    };
    let choice = TextChoice {
        columns: request.columns.text.as_deref(),
        flag: "text",
        header: request.header,
        like,
        keep_empty: false,
    };
    let found = FileTexts::open(path, &choice).context("--data")?;
    if let Some(column) = &found.column {
        note(&format!("{}: text: column {column}", path.display()));
    }
    let example = |FileText { text, .. }: FileText| Example { text, target: None };
    let examples: Vec<Example> = found.texts.into_iter().map(example).collect();
    if examples.is_empty() {
        bail!("--data: {} holds no text", path.display());
    }
    Ok(Sample { examples, name: path.display().to_string() })
}
