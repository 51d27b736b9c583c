//! The files that are generated from recipes: `RESULTS.md` and `docs/recipe-keys.md`.

use anyhow::Result;
use regard_tasks::keys::{self, Key};
use regard_tasks::recipe::{Published, Task};
use std::io::Write;

/// Writes `RESULTS.md`: every recipe with its result and the published one, by task.
pub fn results(recipes: &[Box<dyn Task>], out: &mut dyn Write) -> Result<()> {
    writeln!(
        out,
        "# Results\n\nEvery recipe with its result and the published one. This file is made by \
         `regard recipes --markdown`.\n\n\
         `regard train NAME` trains a recipe, `regard eval NAME` measures it; minutes were \
         measured on two shared cores. Logs are in `recipes/logs`."
    )?;
    let mut tasks: Vec<&str> = recipes.iter().map(|recipe| recipe.task()).collect();
    tasks.sort_unstable();
    tasks.dedup();
    for task in tasks {
        writeln!(
            out,
            "\n## {task}\n\n| recipe | description | metric | published | here | minutes |"
        )?;
        writeln!(out, "|---|---|---|---|--:|--:|")?;
        for recipe in recipes.iter().filter(|recipe| recipe.task() == task) {
            let Published { metric, published, ours, minutes, .. } =
                recipe.result().cloned().unwrap_or_default();
            let number = |x: Option<f64>| x.map_or("–".into(), |x| x.to_string());
            let cells = [
                format!("`{}`", recipe.name()),
                cell(recipe.about()),
                cell(&metric),
                cell(&published),
                number(ours),
                number(minutes),
            ];
            writeln!(out, "| {} |", cells.join(" | "))?;
        }
    }
    Ok(())
}

/// Writes `docs/recipe-keys.md`: every key that a recipe can have.
pub fn keys(out: &mut dyn Write) -> Result<()> {
    writeln!(
        out,
        "# Keys of a recipe\n\nEvery key of a recipe file; `--set KEY=VALUE` overrides one. This \
         file is made by `regard recipes --keys --markdown`.\n\n\
         | key | tasks | meaning |\n|---|---|---|"
    )?;
    for Key { name, tasks, about } in keys::reference() {
        writeln!(out, "| `{name}` | {tasks} | {} |", cell(about))?;
    }
    Ok(())
}

/// Text inside a table.
fn cell(text: &str) -> String {
    match text.is_empty() {
        true => "–".into(),
        false => text.replace('|', "\\|").replace('\n', " "),
    }
}
