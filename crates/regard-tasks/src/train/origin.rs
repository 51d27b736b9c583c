//! Data of a run: the name of a data set, or those of the user's files.

use crate::import::record::ImportRecord;
use crate::recipe::Table;
use crate::{own, say};
use std::path::Path;
use toml::Value;

/// Keys of `[data]` that name files of the user.
const FILES: [&str; 8] = ["folder", "train", "valid", "test", "files", "nodes", "edges", "graphs"];

/// Returns the name of a recipe's data set, or those of the user's files.
pub(super) fn data_of(recipe: &Table, run: &Path) -> Option<String> {
    let data = recipe.get("data")?.as_table()?;
    let set = data.get("set").and_then(Value::as_str)?;
    let paths = |key: &&str| match data.get(*key) {
        Some(Value::String(path)) => vec![path.clone()],
        Some(Value::Array(paths)) => {
            paths.iter().filter_map(|path| Some(path.as_str()?.to_string())).collect()
        }
        _ => vec![],
    };
    let name = |path: String| {
        let path = Path::new(&path);
        path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
    };
    let is_own = own::sets(&text_of(recipe, "task")).contains(&set);
    // The names of copies in the run's folder say nothing.
    let files =
        is_own.then(|| originals(run).unwrap_or_else(|| FILES.iter().flat_map(paths).collect()));
    let files: Vec<String> = files.unwrap_or_default().into_iter().map(name).collect();
    Some(if files.is_empty() { set.to_string() } else { say::list(&files, 3) })
}

/// Returns the files that the data of a run were copied from; `None` if it has no such data, or if
/// their record is damaged, which is told as the state of the run.
fn originals(run: &Path) -> Option<Vec<String>> {
    let (_, record) = ImportRecord::of_run(run).ok().flatten()?;
    let files = [record.data, record.valid, record.test].into_iter().flatten().chain(record.edges);
    let files: Vec<String> = files.map(|file| file.to_string_lossy().into_owned()).collect();
    (!files.is_empty()).then_some(files)
}

fn text_of(table: &Table, key: &str) -> String {
    table.get(key).and_then(Value::as_str).unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::{DATA as COPIES, RECORD};
    use std::fs;

    #[test]
    fn data_have_the_name_of_the_set_or_of_the_files() {
        let run = Path::new("runs/mine");
        let data = |text: &str| data_of(&text.parse().unwrap(), run);
        assert_eq!(data("task = 'classify'\n[data]\nset = 'sst2'").as_deref(), Some("sst2"));
        let own = "task = 'classify'\n[data]\nset = 'files'\ntrain = '/a/b.csv'\ntest = 'c.csv'";
        assert_eq!(data(own).as_deref(), Some("b.csv, c.csv"));
        assert_eq!(data("task = 'classify'"), None);
        assert_eq!(data("data = 3"), None);
        // Imported data have the names of the files that they were copied from.
        let run = std::env::temp_dir().join(format!("regard-imported-{}", std::process::id()));
        fs::create_dir_all(run.join(COPIES)).unwrap();
        let record = "{\"data\":[\"/home/me/news.csv\"],\"valid\":[],\"test\":[\"x/test.csv\"]}";
        fs::write(run.join(COPIES).join(RECORD), record).unwrap();
        let table: Table = own.parse().unwrap();
        assert_eq!(data_of(&table, &run).as_deref(), Some("news.csv, test.csv"));
        assert_eq!(data_of(&table, &run.join("seed-0")).as_deref(), Some("news.csv, test.csv"));
        let record = "{\"data\":[\"n/nodes.csv\"],\"valid\":[],\"edges\":\"n/edges.csv\"}";
        fs::write(run.join(COPIES).join(RECORD), record).unwrap();
        assert_eq!(data_of(&table, &run).as_deref(), Some("nodes.csv, edges.csv"));
        fs::write(run.join(COPIES).join(RECORD), "[").unwrap();
        assert_eq!(data_of(&table, &run).as_deref(), Some("b.csv, c.csv"));
        fs::remove_dir_all(&run).unwrap();
    }
}
