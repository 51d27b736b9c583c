//! Training that is prepared from imported data, for tests.

use super::Import;
use crate::recipe::{self, Table, lay_over};
use std::path::Path;

/// Lays the keys of an import over a preset, reads what was written to `folder`, and makes the
/// model. Returns what training says about the data.
pub(super) fn prepare(import: &Import, preset: &str, folder: &Path) -> String {
    let mut table: Table = toml::from_str(preset).unwrap();
    table.remove("effort");
    let rest = "name = \"own\"\nabout = \"own\"\nseed = 1\n[train]\nsteps = 1\neval_every = 1\n";
    lay_over(&mut table, toml::from_str(rest).unwrap());
    lay_over(&mut table, import.recipe_keys(folder));
    recipe::task(table).unwrap().prepare().unwrap().about
}
