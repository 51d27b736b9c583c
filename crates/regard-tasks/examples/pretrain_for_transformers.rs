//! Pretrains for some steps and logs every batch and its loss, so that `python bench/pretrain.py`
//! can run the same steps from the same weights with transformers.
//!
//!     cargo run --release -p regard-tasks --example pretrain_for_transformers -- \
//!         recipes/wikitext2-bert.toml OUT 200 model.hidden_dropout_prob=0.0 …

use regard_attention::{AdamW, Mode};
use regard_models::Error;
use regard_tasks::fill::{Pretraining, Recipe};
use regard_tasks::recipe;
use regard_tasks::train::Learner;
use serde_json::json;
use std::io::Write;
use std::path::Path;

/// Pairs per step.
const PAIRS: usize = 16;
/// Warmup steps.
const WARMUP: usize = 50;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [file, out, steps, overrides @ ..] = &args[..] else {
        return Err("need a recipe, a folder, the number of steps, and KEY=VALUE…".into());
    };
    let (out, steps): (&Path, usize) = (Path::new(out), steps.parse()?);
    let recipe = Recipe::from_table(recipe::read(Path::new(file), overrides)?)?;
    let mut learner = Pretraining::new(&recipe, recipe.data.read()?)?;
    std::fs::create_dir_all(out).map_err(Error::io(out))?;
    learner.save(out)?;
    let (options, pairs) = (recipe.train.adamw(), learner.lengths().len());
    let mut adamw = AdamW::new(options);
    let mut log = std::io::BufWriter::new(std::fs::File::create(out.join("steps.jsonl"))?);
    for step in 0..steps {
        let examples: Vec<usize> = (0..PAIRS).map(|i| (step * PAIRS + i) % pairs).collect();
        let mode = Mode::Train { seed: recipe.seed, step: step as u64 };
        let lr = recipe.train.lr * ((step + 1) as f64 / WARMUP as f64).min(1.0);
        let loss = learner.loss(&examples, mode);
        let cost = loss.value.clone().into_scalar::<f32>();
        learner.network_mut().step(&mut adamw, lr, loss.value.backward());
        let rows: Vec<_> = learner
            .drawn(&examples, mode)
            .iter()
            .map(|asked| {
                json!({
                    "ids": asked.hidden.ids, "types": asked.types, "places": asked.hidden.places,
                    "wanted": asked.hidden.wanted, "follows": asked.follows,
                })
            })
            .collect();
        let line = json!({ "lr": lr, "loss": cost, "norm": adamw.norm(), "rows": rows });
        writeln!(log, "{line}")?;
        if (step + 1) % 20 == 0 {
            println!("{} {cost:.4}", step + 1);
        }
    }
    let rest = json!({
        "betas": [options.beta1, options.beta2], "eps": options.eps,
        "weight_decay": options.weight_decay, "max_norm": options.max_norm,
    });
    std::fs::write(out.join("adamw.json"), rest.to_string())?;
    Ok(())
}
