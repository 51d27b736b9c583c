//! Places of held-out examples in the user's files, so that an evaluation can name them.

use super::examples::Example;
use super::record::DATA;
use crate::data::Part;
use regard_models::checkpoint::{self, read_text};
use regard_models::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// File in the folder of the written parts.
const FILE: &str = "places.json";

/// File and line of each example of a part, in the order in which they were written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Places {
    files: Vec<PathBuf>,
    /// Index of the file, and line from 1.
    lines: Vec<(usize, u64)>,
}

impl Places {
    /// Places of examples; those without a line have none, and nor have all others then.
    pub(super) fn of<E: Example>(examples: &[E]) -> Places {
        let mut places = Places::default();
        for example in examples {
            let place = example.place();
            let Some(line) = place.line else { return Places::default() };
            // Examples of a file are mostly side by side.
            let known = places.files.iter().rposition(|file| file == place.file);
            let file = known.unwrap_or_else(|| {
                places.files.push(place.file.to_path_buf());
                places.files.len() - 1
            });
            places.lines.push((file, line));
        }
        places
    }

    /// Returns the file and the line of an example by its number from 1, as `FILE:LINE`.
    pub fn get(&self, number: usize) -> Option<String> {
        let (file, line) = self.lines.get(number.checked_sub(1)?)?;
        Some(format!("{}:{line}", self.files.get(*file)?.display()))
    }

    /// Reads the places of a part of the data that a run was trained on; none if it has no record
    /// of them: those of other tasks and of earlier versions have not.
    pub fn of_run(run: &Path, part: Part) -> Places {
        // Of several seeds, the data are beside the folders of their runs; a model is inside of one.
        let folders = [Some(run), run.parent()].into_iter().flatten();
        let text = folders.into_iter().find_map(|run| read_text(&run.join(DATA).join(FILE)).ok());
        let all =
            text.and_then(|text| serde_json::from_str::<BTreeMap<String, Places>>(&text).ok());
        all.and_then(|mut all| all.remove(part.name())).unwrap_or_default()
    }

    /// Writes the places of the held-out parts.
    pub(super) fn write(parts: &[Places; 2], folder: &Path) -> Result<()> {
        let names = [Part::Valid, Part::Test].map(Part::name);
        let all: BTreeMap<&str, &Places> = names.into_iter().zip(parts).collect();
        let path = folder.join(FILE);
        let text =
            serde_json::to_string(&all).map_err(|error| Error::file(&path, error.to_string()))?;
        checkpoint::write_file(&path, text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings::Place;
    use super::*;

    struct Line(&'static str, Option<u64>);

    impl Example for Line {
        const KEY: &'static str = "text";

        fn key(&self) -> String {
            String::new()
        }

        fn place(&self) -> Place<'_> {
            Place { file: Path::new(self.0), line: self.1 }
        }
    }

    #[test]
    fn an_example_has_its_file_and_line() {
        let all = [Line("a.csv", Some(2)), Line("b.csv", Some(9)), Line("a.csv", Some(5))];
        let places = Places::of(&all);
        let told = [0, 1, 2, 3, 4].map(|number| places.get(number).unwrap_or_default());
        assert_eq!(told, ["", "a.csv:2", "b.csv:9", "a.csv:5", ""]);
        assert_eq!(Places::of(&[Line("a", Some(1)), Line("b", None)]), Places::default());
        let run = std::env::temp_dir().join(format!("regard-places-{}", std::process::id()));
        std::fs::create_dir_all(run.join(DATA)).unwrap();
        Places::write(&[Places::default(), places.clone()], &run.join(DATA)).unwrap();
        assert_eq!(Places::of_run(&run, Part::Test), places);
        assert_eq!(Places::of_run(&run.join("seed-0"), Part::Test), places);
        assert_eq!(Places::of_run(&run, Part::Valid), Places::default());
        std::fs::remove_dir_all(&run).unwrap();
        assert_eq!(Places::of_run(&run, Part::Test), Places::default());
    }
}
