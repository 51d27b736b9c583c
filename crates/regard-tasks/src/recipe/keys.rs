//! Keys of recipes: their explanations, and readable error messages.

use crate::say;
use regard_models::values;

/// Description of a recipe key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Dotted name, with its table: `train.steps`.
    pub name: &'static str,
    /// Names of the tasks that have the key, separated by spaces; `all` for all.
    pub tasks: &'static str,
    /// Explanation in a sentence or two.
    pub about: &'static str,
}

/// Returns every key that a recipe can have, except those of models.
pub fn reference() -> Vec<Key> {
    let key = |line: &'static str| {
        let mut parts = line.splitn(3, " | ");
        Some(Key { name: parts.next()?, tasks: parts.next()?, about: parts.next()? })
    };
    include_str!("keys.txt").lines().filter(|line| !line.starts_with('#')).filter_map(key).collect()
}

/// Returns the names of the tasks that have a key, of those that the reference lists by name.
pub fn tasks_with(name: &str) -> Vec<&'static str> {
    let of = |key: &Key| key.tasks.split(' ').collect::<Vec<_>>();
    reference().iter().filter(|key| key.name == name).flat_map(of).collect()
}

/// Rewrites an error of the TOML deserialiser so that it names the key.
pub(crate) fn told(error: &toml::de::Error) -> String {
    let whole = error.to_string();
    // Without the text of a file, the key follows the message: "…\nin `train.steps`\n".
    let key = whole.lines().find_map(|line| line.strip_prefix("in `")?.strip_suffix('`'));
    plain(key.unwrap_or_default(), error.message())
}

/// Rewrites a message of serde about a key.
fn plain(key: &str, message: &str) -> String {
    let at = |rest: String| if key.is_empty() { rest } else { format!("{key}: {rest}") };
    if let Some(rest) = message.strip_prefix("unknown field `") {
        let (name, rest) = rest.split_once('`').unwrap_or((rest, ""));
        let table = key.strip_suffix(name).map_or(key, |above| above.trim_end_matches('.'));
        let known: Vec<&str> = rest.split('`').skip(1).step_by(2).collect();
        let (whole, place) = match table {
            "" => (name.to_string(), "a recipe of this task".to_string()),
            table => (format!("{table}.{name}"), format!("[{table}]")),
        };
        return format!(
            "{whole}: there is no such key; {}{place} has {}; `regard recipes --keys` explains \
             them",
            say::did_you_mean(name, &known),
            say::list(&known, 20)
        );
    }
    if let Some(rest) = message.strip_prefix("missing field `") {
        let name = rest.split('`').next().unwrap_or(rest);
        let whole = if key.is_empty() { name.to_string() } else { format!("{key}.{name}") };
        return format!("{whole}: is missing; a recipe of this task needs it");
    }
    if let Some(rest) = message.strip_prefix("unknown variant `") {
        let (name, rest) = rest.split_once('`').unwrap_or((rest, ""));
        let known: Vec<&str> = rest.split('`').skip(1).step_by(2).collect();
        let mean = say::did_you_mean(name, &known);
        let name = say::short(name, 60);
        return at(format!("got {name:?}, need one of {}. {mean}", say::list(&known, 20)))
            .trim_end()
            .to_string();
    }
    at(values::in_words(message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader;
    use crate::{answer_story, classify_graph, classify_image, fill, generate, permute, point};
    use crate::{recognize, summarize, translate};
    use toml::{Table, Value};

    /// The keys that a table of a recipe may have, taken from the error for an unknown key.
    fn known(recipe: &Table, table: &str) -> Option<Vec<String>> {
        let mut with = recipe.clone();
        with.remove("base");
        let inside = match table {
            "" => &mut with,
            table => {
                with.entry(table).or_insert_with(|| Value::Table(Table::new())).as_table_mut()?
            }
        };
        inside.insert("zzz".into(), Value::Integer(1));
        macro_rules! error {
            ($($room:ident)*) => {
                [$((
                    $room::Recipe::TASKS,
                    with.clone().try_into::<$room::Recipe>().err().map(|e| e.message().to_string()),
                )),*]
            };
        }
        let task = recipe["task"].as_str().unwrap();
        let all = error! {
            translate generate fill permute point summarize reader answer_story classify_graph
            classify_image recognize
        };
        let told = all.into_iter().find(|(tasks, _)| tasks.contains(&task)).unwrap().1?;
        let names = told.strip_prefix("unknown field `zzz`, expected ")?;
        Some(names.split('`').skip(1).step_by(2).map(str::to_string).collect())
    }

    #[test]
    fn every_key_is_explained() {
        let explained: Vec<&str> = reference().iter().map(|key| key.name).collect();
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recipes");
        let mut seen = 0;
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|end| end != "toml") {
                continue;
            }
            let recipe = crate::recipe::read(&path, &[]).unwrap();
            for table in [
                "",
                "data",
                "result",
                "vocabulary",
                "train",
                "evaluate",
                "decode",
                "hiding",
                "targets",
                "parts",
                "filling",
                "lora",
                "augment",
                "features",
            ] {
                for key in known(&recipe, table).into_iter().flatten() {
                    let whole = if table.is_empty() { key } else { format!("{table}.{key}") };
                    let within = |name: &&&str| name.starts_with(&format!("{whole}."));
                    let found = explained.contains(&whole.as_str())
                        || explained.iter().find(within).is_some();
                    assert!(found, "{}: {whole} is not explained", path.display());
                    seen += 1;
                }
            }
        }
        assert!(seen > 1500, "only {seen} keys were found");
    }

    #[test]
    fn what_serde_says_in_plain_words() {
        for (key, message, wanted) in [
            (
                "train.steps",
                "invalid type: string \"abc\", expected u64",
                "train.steps: got \"abc\", need a whole number, 0 or more",
            ),
            (
                "train.steps",
                "invalid value: integer `-3`, expected u64",
                "train.steps: got -3, need a whole number, 0 or more",
            ),
            (
                "train.lr",
                "invalid type: string \"x\", expected f64",
                "train.lr: got \"x\", need a number",
            ),
            ("a", "invalid type: map, expected a string", "a: got a table, need a text"),
            ("", "missing field `data`", "data: is missing; a recipe of this task needs it"),
        ] {
            assert_eq!(plain(key, message), wanted);
        }
        let message = "unknown field `stesp`, expected one of `steps`, `lr`";
        for key in ["train", "train.stesp"] {
            let told = plain(key, message);
            assert!(told.starts_with("train.stesp: there is no such key; did you mean 'steps'? "));
            assert!(told.contains("[train] has steps, lr"), "{told}");
        }
    }
}
