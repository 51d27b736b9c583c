//! Former names of tasks, with which recipes still load.

use toml::{Table, Value};

/// Former and current names: module, verb and recipes of a task now have one name.
const EARLIER: &[(&str, &str)] = &[
    ("language", "generate"),
    ("pretrain", "fill"),
    ("points", "point"),
    ("stories", "answer-story"),
    ("graphs", "classify-graph"),
    ("image", "classify-image"),
    ("speech", "recognize"),
];

/// Replaces a former task name in a recipe by the current one.
pub(crate) fn rename(recipe: &mut Table) {
    let Some(Value::String(task)) = recipe.get_mut("task") else { return };
    if let Some((_, today)) = EARLIER.iter().find(|(earlier, _)| task == earlier) {
        *task = today.to_string();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::{parse, task, with};

    #[test]
    fn earlier_names_of_tasks_still_load() {
        for (earlier, today) in EARLIER {
            let text = format!("task = {earlier:?}\nname = 'x'\n[data]\nset = 'files'");
            let table = parse(&text, &[], &|_| None).unwrap();
            assert_eq!(table["task"].as_str(), Some(*today));
            let set =
                with(parse("name = 'x'", &[], &|_| None).unwrap(), &[format!("task={earlier}")]);
            assert_eq!(set.unwrap()["task"].as_str(), Some(*today));
            // A table that the caller parsed.
            let table: Table = toml::from_str(&text).unwrap();
            let told = task(table).err().unwrap_or_default();
            assert!(!told.starts_with("task:"), "{earlier}: {told}");
        }
        let base = |name: &str| (name == "b").then(|| "task = 'stories'\n[data]\nset = 'x'".into());
        let table = parse("base = 'b'\n[data]\nfolder = 'mine'", &[], &base).unwrap();
        assert_eq!(table["task"].as_str(), Some("answer-story"));
        // A key that names custom files is known for the task by either name.
        assert_eq!(table["data"]["set"].as_str(), Some("files"));
    }
}
