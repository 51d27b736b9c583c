//! Fine-tuning of language models: of all weights, and of adapters.

use crate::small::{Folder, trained};
use regard_models::adapter::{self, Adapter};
use regard_models::checkpoint::{self, Arrays};
use regard_models::{Error, ModelFiles};
use regard_tasks::generate::{Generator, LongText};
use regard_tasks::recipe::{self, Task};
use regard_tasks::train::{RunOptions, RunSummary, TrainOutcome, start};
use serde_json::Value;
use std::fs;
use std::path::Path;

const LLAMA: &str = "model_type = 'llama'\nhidden_size = 16\nnum_hidden_layers = 2\n\
    num_attention_heads = 4\nnum_key_value_heads = 2\nintermediate_size = 20";
const GPT2: &str = "model_type = 'gpt2'\nn_embd = 16\nn_layer = 2\nn_head = 2\nresid_pdrop = 0.1";

fn task(text: &str) -> Box<dyn Task> {
    recipe::task(toml::from_str(text).unwrap()).unwrap()
}

/// A recipe for a file in the folder; `keys` come before its tables.
fn of(folder: &Path, keys: &str, tables: &str, steps: u64) -> String {
    let file = folder.join("text.txt");
    format!(
        "name = 'small'\ntask = 'generate'\nseed = 3\ncontext = 12\n{keys}\n\
         [data]\nset = 'files'\ntrain = {file:?}\n{tables}\n\
         [train]\nsteps = {steps}\nbatch_tokens = 48\naccumulate = 2\nlr = 1e-2\nwarmup = 2\n\
         eval_every = 4\nsave_every = 3\nkeep = 2\naverage = 2\nlabel_smoothing = 0.0\n\
         weight_decay = 0.01"
    )
}

/// A small base, trained on the alphabet, and the text of the fine-tuning beside it.
fn base(folder: &Path, model: &str) -> std::path::PathBuf {
    let text = "abcdefghijklmnopqrstuvwxyz\n".repeat(40);
    fs::write(folder.join("text.txt"), text).unwrap();
    let tables = format!("[vocabulary]\nkind = 'char'\n[model]\n{model}");
    let run = folder.join("base");
    trained(&*task(&of(folder, "", &tables, 60)), &run, false, None);
    let text = "zyxwvutsrqponmlkjihgfedcba\n".repeat(40);
    fs::write(folder.join("text.txt"), text).unwrap();
    run
}

fn adapted(folder: &Path, from: &Path, steps: u64) -> Box<dyn Task> {
    let lora = "[lora]\nrank = 2\nalpha = 6.0";
    task(&of(folder, &format!("from = {from:?}"), lora, steps))
}

fn weights(run: &Path, step: &str) -> Arrays {
    checkpoint::read_arrays(&run.join(step).join(adapter::WEIGHTS)).unwrap()
}

#[test]
fn a_resumed_run_of_an_adapter_is_the_uninterrupted_one() {
    for model in [LLAMA, GPT2] {
        let folder = Folder::new("lora-resumed");
        let base = base(&folder.0, model);
        let recipe = adapted(&folder.0, &base, 10);
        let [whole, parts] = ["whole", "parts"].map(|name| folder.0.join(name));
        let end = trained(&*recipe, &whole, false, None);
        let stopped = trained(&*recipe, &parts, false, Some(5));
        assert_eq!(stopped, TrainOutcome::Interrupted { step: 5 });
        assert_eq!(trained(&*recipe, &parts, true, None), end);
        for step in ["checkpoint-10", "model"] {
            assert!(weights(&whole, step) == weights(&parts, step), "{step}");
            assert!(!whole.join(step).join(checkpoint::WEIGHTS).exists());
        }
        let moments = |run: &Path| {
            let file = run.join("checkpoint-10/optimizer.safetensors");
            checkpoint::read_arrays(&file).unwrap()
        };
        let all = moments(&whole);
        assert!(all == moments(&parts));
        assert!(!all.is_empty() && all.keys().all(|name| name.contains(".update_")));
        // The summary counts what was trained.
        let trained: usize = weights(&whole, "model").values().map(|array| array.count()).sum();
        assert_eq!(RunSummary::of(&whole).unwrap().parameters, Some(trained));
    }
}

#[test]
fn a_run_of_an_adapter_is_its_base_with_the_adapter() {
    let folder = Folder::new("lora-used");
    let base = base(&folder.0, LLAMA);
    let run = folder.0.join("run");
    trained(&*adapted(&folder.0, &base, 40), &run, false, None);
    let score = |files: ModelFiles| {
        Generator::load(files).unwrap().score("zyxwv", LongText::Windows).unwrap().logprob()
    };
    let with = Adapter::open(&run.join("model")).unwrap();
    assert_eq!(with.layers(), 2 * 7);
    let files = ModelFiles::from(&base.join("model"));
    let (plain, beside) = (score(files.clone()), score(files.adapted(with)));
    let own = score(ModelFiles::from(&run));
    assert_eq!(beside, own);
    assert!(own > plain + 1.0, "{own} {plain}");
    // Without the name of its base, no folder is tried.
    let place = run.join("model").join(adapter::CONFIG);
    let written = fs::read_to_string(&place).unwrap();
    let mut config: Value = serde_json::from_str(&written).unwrap();
    for none in [Value::Null, "".into()] {
        config["base_model_name_or_path"] = none;
        fs::write(&place, config.to_string()).unwrap();
        let error = Generator::load(&run).err().unwrap().to_string();
        assert!(error.contains("base_model_name_or_path: is missing"), "{error}");
    }
    // That of the Hub has an id, and is found by the program.
    config["base_model_name_or_path"] = "owner/small".into();
    config["revision"] = "abc".into();
    fs::write(&place, config.to_string()).unwrap();
    let files = ModelFiles::from(&run.join("model"));
    let of_hub = Some(("owner/small".to_string(), Some("abc".to_string())));
    assert_eq!(files.base_elsewhere().unwrap(), of_hub);
    assert_eq!(score(files.with_base(base.join("model"))), own);
    fs::write(&place, written).unwrap();
    // A base that is elsewhere is told, with what to do.
    fs::rename(&base, folder.0.join("moved")).unwrap();
    let error = Generator::load(&run).err().unwrap().to_string();
    assert!(error.contains("base_model_name_or_path") && error.contains("--adapter"), "{error}");
}

/// A folder of the cache would be that of this machine alone.
#[test]
fn a_base_of_the_hub_is_written_by_its_id_and_commit() {
    let folder = Folder::new("lora-hub");
    let base = base(&folder.0, GPT2);
    let run = folder.0.join("run");
    let lora = "[lora]\nrank = 2";
    let mut recipe = task(&of(&folder.0, "from = 'owner/small'", lora, 4));
    recipe.set_origin(base.join("model"), Some("0123abc".into()));
    trained(&*recipe, &run, false, None);
    let config = adapter::read_config(&run.join("model")).unwrap();
    assert_eq!(config.base.as_deref(), Some("owner/small"));
    assert_eq!(config.revision.as_deref(), Some("0123abc"));
}

#[test]
fn a_base_that_changed_is_not_resumed_and_one_with_an_adapter_must_be_merged() {
    let folder = Folder::new("lora-changed");
    let base = base(&folder.0, GPT2);
    let (recipe, run) = (adapted(&folder.0, &base, 10), folder.0.join("run"));
    trained(&*recipe, &run, false, Some(4));
    let error = |from: &Path, run: &Path, resume: bool| -> Error {
        let recipe = adapted(&folder.0, from, 10);
        let options = RunOptions { folder: run, resume, memory: None };
        start(&*recipe, &options, &mut |_| true).err().unwrap()
    };
    let weights = base.join("model/model.safetensors");
    let mut arrays = checkpoint::read_arrays(&weights).unwrap();
    arrays.values_mut().next().unwrap().change(|x| x[0] += 1.0);
    let was = fs::read(&weights).unwrap();
    checkpoint::write_arrays(&weights, &arrays, checkpoint::Precision::Single).unwrap();
    let told = error(&base, &run, true).to_string();
    assert!(told.contains("model.safetensors") && told.contains("other data"), "{told}");
    fs::write(&weights, was).unwrap();
    trained(&*recipe, &run, true, None);
    let told = error(&run, &folder.0.join("second"), false).to_string();
    assert!(told.contains("holds an adapter; merge it first: regard models export"), "{told}");
}

#[test]
fn all_weights_can_be_trained_too() {
    let folder = Folder::new("lora-whole");
    let base = base(&folder.0, LLAMA);
    let run = folder.0.join("run");
    let whole = task(&of(&folder.0, &format!("from = {base:?}"), "", 40));
    trained(&*whole, &run, false, None);
    let score = |files: &Path| {
        Generator::load(files).unwrap().score("zyxwv", LongText::Windows).unwrap().logprob()
    };
    assert!(score(&run) > score(&base) + 1.0);
}

#[test]
fn settings_of_an_adapter_that_cannot_be_are_told() {
    let folder = Folder::new("lora-settings");
    let base = base(&folder.0, GPT2);
    let told = |keys: &str, tables: &str| {
        let text = of(&folder.0, keys, tables, 4);
        let read = recipe::task(toml::from_str(&text).unwrap());
        match read {
            Err(message) => message,
            Ok(task) => {
                let run = folder.0.join("none");
                let options = RunOptions { folder: &run, resume: false, memory: None };
                start(&*task, &options, &mut |_| true).err().unwrap().to_string()
            }
        }
    };
    let from = format!("from = {base:?}");
    let scratch = format!("[vocabulary]\nkind = 'char'\n[model]\n{GPT2}");
    for (keys, tables, wanted) in [
        (
            "",
            "[lora]\nrank = 2".to_string() + "\n" + &scratch,
            "lora: is an adapter of the model in `from`",
        ),
        (&from[..], "[lora]\nrank = 0".into(), "lora.rank: got 0, need 1 to"),
        (&from, "[lora]\nrank = 99".into(), "lora.rank: got 99, need at most 16"),
        (
            &from,
            "[lora]\nrank = 2\nalpha = -1.0".into(),
            "lora.alpha: got -1, need a number above 0",
        ),
        (
            &from,
            "[lora]\nrank = 2\ntargets = ['q_proj']".into(),
            "they end in c_attn, c_fc, c_proj",
        ),
        (
            &from,
            "[lora]\nrank = 2\ntargets = ['c_attn', 'lm_head']".into(),
            "has the name lm_head; they end in c_attn, c_fc, c_proj",
        ),
        (&from, "[lora]\nrank = 2\ntargets = []".into(), "lora.targets: need names"),
        (
            &from,
            "[lora]\nrank = 2\n[model]\nlayer_norm_epsilon = 0.1".into(),
            "model.layer_norm_epsilon: cannot be set with [lora]",
        ),
        (&from, scratch.clone(), "vocabulary: cannot be set with `from`"),
        ("", String::new(), "vocabulary: need one, or a model in `from`"),
    ] {
        let error = told(keys, &tables);
        assert!(error.contains(wanted), "{error}");
    }
}

#[test]
fn a_fine_tuned_model_keeps_the_ends_and_stops_of_its_origin() {
    let folder = Folder::new("lora-ends");
    let base = base(&folder.0, LLAMA);
    let file = base.join("model").join("generation_config.json");
    let theirs = r#"{"eos_token_id": [3, 4], "stop_strings": ["x"], "sequence_bias": [[[5], -2.0]],
        "top_k": 7}"#;
    fs::write(&file, theirs).unwrap();
    for (decode, top_p) in [("", 1.0), ("[decode]\ntop_p = 0.5\n", 0.5)] {
        let run = folder.0.join(format!("run-{top_p}"));
        let keys = format!("from = {base:?}");
        trained(&*task(&of(&folder.0, &keys, decode, 4)), &run, false, None);
        let found = Generator::load(&run).unwrap().generation_config().clone();
        assert_eq!((found.eos, found.stop), (Some(vec![3, 4]), vec!["x".to_string()]));
        assert_eq!((found.options.top_k, found.options.top_p), (7, top_p));
        assert_eq!(found.options.logit_bias, [(5, -2.0)]);
    }
}
