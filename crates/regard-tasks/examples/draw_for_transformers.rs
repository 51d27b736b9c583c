//! Draws a batch of permutation language modelling and saves it beside its model, so that
//! `python fixtures/make/permute.py` can compute its loss with transformers.
//!
//!     cargo run -p regard-tasks --example draw_for_transformers -- fixtures/permute

use regard_attention::Mode;
use regard_models::Error;
use regard_tasks::permute::{Permutation, Recipe};
use regard_tasks::recipe;
use regard_tasks::train::Learner;
use serde_json::{Value, json};
use std::path::Path;

/// Training step whose random draws are used.
const STEP: u64 = 3;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("need the folder of the recipes")?;
    let folder = Path::new(&folder);
    for name in ["running", "parts"] {
        let files = format!("data.files=[{:?}]", folder.join("text.txt"));
        let table = recipe::read(&folder.join(format!("{name}.toml")), &[files])?;
        let recipe = Recipe::from_table(table)?;
        let learner = Permutation::new(&recipe, &recipe.data.read()?)?;
        let to = folder.join(name);
        std::fs::create_dir_all(&to).map_err(Error::io(&to))?;
        learner.save(&to)?;
        let examples: Vec<usize> = (0..learner.lengths().len()).collect();
        let mode = Mode::Train { seed: recipe.seed, step: STEP };
        let drawn = learner.drawn(&examples, mode);
        let rows: Vec<Value> = drawn
            .iter()
            .map(|told| {
                json!({
                    "ids": told.sequence.ids, "types": told.sequence.types,
                    "memory": told.sequence.memory, "targets": told.targets, "ranks": told.ranks,
                })
            })
            .collect();
        let text = serde_json::to_string(&json!({ "step": STEP, "rows": rows }))?;
        std::fs::write(to.join("drawn.json"), text)?;
    }
    Ok(())
}
