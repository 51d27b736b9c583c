//! Runs that cannot succeed fail at once, with the reason.

use crate::resumed::small;
use crate::small::{Folder, recipe, train};
use burn::module::Module;
use burn::tensor::{Device, Gradients, Tensor};
use regard_attention::layers::{Linear, LinearConfig};
use regard_attention::{AdamW, Init, Mode};
use regard_models::checkpoint::Arrays;
use regard_models::{Description, Network};
use regard_tasks::Result;
use regard_tasks::data::Lengths;
use regard_tasks::train::{
    BatchLoss, Direction, Evaluation, Event, Learner, Record, Run, TrainOptions, TrainOutcome,
};
use serde_json::Value;
use std::fs;
use std::path::Path;

#[derive(Module, Debug)]
struct Layers {
    used: Linear,
    idle: Linear,
}

/// Two layers; whether both are used, and the steps in which the loss is finite.
struct Two {
    layers: Layers,
    both: bool,
    finite: fn(u64) -> bool,
}

impl Two {
    fn new(both: bool, finite: fn(u64) -> bool) -> Two {
        let mut init = Init::new(1, &Device::flex().autodiff());
        let layer = LinearConfig::new(2, 2);
        let layers = Layers { used: layer.init(&mut init), idle: layer.init(&mut init) };
        Two { layers, both, finite }
    }

    fn layers(&self) -> &Layers {
        &self.layers
    }
}

/// A custom network that no configuration describes.
impl Network for Layers {
    fn config(&self) -> Value {
        Value::Null
    }

    fn weights(&self) -> Arrays {
        Arrays::new()
    }

    fn gradients(&self, _: &mut Gradients) -> Arrays {
        Arrays::new()
    }

    fn parameters(&self) -> usize {
        self.num_params()
    }

    fn describe(&self) -> Description {
        Description::default()
    }

    fn allows_missing_gradient(&self, _: &str) -> bool {
        false
    }

    fn inference(&self) -> Box<dyn Network> {
        Box::new(self.valid())
    }

    fn accumulate(&self, adamw: &mut AdamW, grads: Gradients) {
        adamw.accumulate(self, grads);
    }

    fn step(&mut self, adamw: &mut AdamW, lr: f64, grads: Gradients) {
        *self = adamw.step(lr, self.clone(), grads);
    }

    fn restore(&mut self, _: Arrays) -> Result<()> {
        Ok(())
    }
}

impl Learner for Two {
    fn network(&self) -> &dyn Network {
        &self.layers
    }

    fn network_mut(&mut self) -> &mut dyn Network {
        &mut self.layers
    }

    fn lengths(&self) -> Vec<Lengths> {
        vec![Lengths { source: 1, target: 1 }; 4]
    }

    fn loss(&self, examples: &[usize], mode: Mode) -> BatchLoss {
        let Mode::Train { step, .. } = mode else { panic!("{mode:?}") };
        let x = Tensor::<2>::ones([1, 2], &Device::flex().autodiff());
        let mut y = self.layers().used.forward(x.clone());
        if self.both {
            y = y + self.layers().idle.forward(x);
        }
        let factor = if (self.finite)(step) { 1.0 } else { f32::NAN };
        BatchLoss { value: y.powi_scalar(2).sum() * factor, tokens: self.tokens(examples) }
    }

    fn tokens(&self, examples: &[usize]) -> usize {
        examples.len()
    }

    fn evaluate(&self) -> Result<Evaluation> {
        let measures = vec![("valid_loss".to_string(), 1.0)];
        Ok(Evaluation {
            measures,
            decides: 1.0,
            better: Direction::Lower,
            also: None,
            sample: None,
        })
    }

    fn save_rest(&self, _folder: &Path) -> Result<()> {
        Ok(())
    }

    fn save(&self, folder: &Path) -> Result<()> {
        regard_models::checkpoint::write_arrays(
            &folder.join("model.safetensors"),
            &Arrays::new(),
            Default::default(),
        )
    }
}

/// Outcome of training, and the skipped steps.
fn run(name: &str, learner: &mut Two, options: &TrainOptions) -> (Result<TrainOutcome>, Vec<u64>) {
    let folder = Folder::new(name);
    let mut skipped = vec![];
    let mut watch = |event: Event| {
        if let Event::Skipped(step) = event {
            skipped.push(step);
        }
        true
    };
    let run = Run {
        folder: &folder.0,
        options,
        seed: 1,
        resume: false,
        record: &Record::default(),
        watch: &mut watch,
    };
    let end = run.train(learner);
    let lines = fs::read_to_string(folder.0.join("metrics.jsonl")).unwrap_or_default();
    if end.is_ok() {
        assert!(lines.contains("\"loss\":") && !lines.contains("\"loss\":null"), "{lines}");
    }
    (end, skipped)
}

fn options() -> TrainOptions {
    TrainOptions { steps: 40, batch_tokens: 2, warmup: 1, log_every: 20, ..TrainOptions::default() }
}

#[test]
fn a_parameter_that_cannot_learn_is_named() {
    let (end, _) = run("idle", &mut Two::new(false, |_| true), &options());
    let error = end.unwrap_err().to_string();
    assert!(error.contains("idle.weight") && error.contains("idle.bias"), "{error}");
    assert!(!error.contains("used"), "{error}");
    // With gradient accumulation too.
    let (end, _) =
        run("idle-2", &mut Two::new(false, |_| true), &TrainOptions { accumulate: 2, ..options() });
    assert!(end.unwrap_err().to_string().contains("idle.weight"));
    assert!(run("both", &mut Two::new(true, |_| true), &options()).0.is_ok());
}

#[test]
fn a_run_that_is_lost_is_given_up() {
    let (end, skipped) = run("lost", &mut Two::new(true, |step| step < 6), &options());
    let error = end.unwrap_err().to_string();
    for part in ["step 25", "20", "not finite", "train.lr"] {
        assert!(error.contains(part), "no {part:?} in {error}");
    }
    assert_eq!(skipped, (6..=25).collect::<Vec<_>>());
    // Occasional non-finite steps do not end the run.
    let (end, skipped) = run("shaky", &mut Two::new(true, |step| step % 4 != 3), &options());
    end.unwrap();
    assert_eq!(skipped, (0..10).map(|i| 4 * i + 3).collect::<Vec<_>>());
}

#[test]
fn a_run_in_a_file_or_over_another_one() {
    let folder = Folder::new("twice");
    let file = folder.0.join("file");
    fs::write(&file, "").unwrap();
    let mut watch = |_: Event| true;
    let mut try_in = |folder: &Path| {
        let options = options();
        let run = Run {
            folder,
            options: &options,
            seed: 1,
            resume: false,
            record: &Record::default(),
            watch: &mut watch,
        };
        run.train(&mut Two::new(true, |_| true)).map_err(|e| e.to_string())
    };
    let error = try_in(&file.join("run")).unwrap_err();
    assert!(error.contains("file/run"), "{error}");
    let run = folder.0.join("run");
    try_in(&run).unwrap();
    let error = try_in(&run).unwrap_err();
    assert!(error.contains("run") && error.contains("step 40"), "{error}");
}

#[test]
fn data_that_leave_nothing_to_learn_from() {
    let model = "model_type = \"rnn\"\nembedding_size = 4\nhidden_size = 4";
    let folder = Folder::new("nothing");
    let check = |corpus, part: &str| {
        let recipe = recipe(model, "steps = 1\nwarmup = 1");
        let error = train((&recipe, &corpus), &folder.0, false, &mut |_| true).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    };
    let mut corpus = small();
    corpus.valid.clear();
    check(corpus, "validation part");
    let mut corpus = small();
    let long = vec!["a"; 200].join(" ");
    corpus.train.iter_mut().for_each(|pair| pair.source.clone_from(&long));
    check(corpus, "training part");
}

#[test]
fn a_model_with_a_last_position_stops_there() {
    let folder = Folder::new("last");
    let model = format!(
        "{}\npositions = \"learned\"\nmax_position_embeddings = 6",
        crate::resumed::TRANSFORMER
    );
    // One step: it generates nonsense up to the length limit.
    let recipe = recipe(&model, "steps = 1\nwarmup = 1");
    let mut corpus = small();
    corpus.valid[0].source = vec!["a"; 30].join(" ");
    corpus.train[0].source = vec!["a"; 30].join(" ");
    train((&recipe, &corpus), &folder.0, false, &mut |_| true).unwrap();
    let translator = regard_tasks::translate::Translator::load(&folder.0).unwrap();
    let translate = |text: &str, options: regard_tasks::decode::Options| {
        translator.translate(&[text], &options, 1, false)
    };
    let default = regard_tasks::decode::Options::default;
    for options in [
        default(),
        regard_tasks::decode::Options { min_length: 30, ..default() },
        regard_tasks::decode::Options { max_new_tokens: Some(50), num_beams: 3, ..default() },
    ] {
        let found = translate("a b c d e", options).unwrap();
        assert!(found[0][0].target_tokens.len() <= 6, "{found:?}");
    }
    // Six words and their end are one token too many: they are encoded in two pieces.
    let found = translate("a b c d e f", default()).unwrap().remove(0).remove(0);
    assert_eq!((found.pieces, found.source_tokens.len()), (2, 6));
    assert_eq!(found.source_offsets[5], (10, 11));
}

/// A checkpoint of another run is an error, and neither a panic nor a silent fresh start.
#[test]
fn checkpoints_of_another_model() {
    use regard_models::checkpoint::{read_arrays, write_arrays};
    use regard_tasks::train::write_checksums;
    let corpus = small();
    let model = |hidden: usize| {
        let model = format!("model_type = \"rnn\"\nembedding_size = 4\nhidden_size = {hidden}");
        recipe(&model, "steps = 4\nwarmup = 1\nsave_every = 2")
    };
    let folder = Folder::new("another");
    let mut stop = |event: Event| !matches!(event, Event::Saved(2));
    train((&model(4), &corpus), &folder.0, false, &mut stop).unwrap();
    let resume = |hidden: usize, parts: &[&str]| {
        let end = train((&model(hidden), &corpus), &folder.0, true, &mut |_| true);
        let error = end.unwrap_err().to_string();
        for part in parts {
            assert!(error.contains(part), "no {part:?} in {error}");
        }
    };
    // Whoever edits a file by hand can update its checksum.
    let changed = || write_checksums(&folder.0.join("checkpoint-2")).unwrap();
    resume(5, &["checkpoint-2/model.safetensors", "decoder.rnn.weight_hh_l0", "[12, 4]"]);
    // The same moments under other names, as an older version may have called them.
    let path = folder.0.join("checkpoint-2/optimizer.safetensors");
    let moments = read_arrays(&path).unwrap();
    let renamed = moments.iter().map(|(name, array)| (format!("old.{name}"), array.clone()));
    write_arrays(&path, &renamed.collect(), Default::default()).unwrap();
    changed();
    resume(4, &["no moments", "decoder", "another version"]);
    // One of a pair of moments.
    let mut half = moments.clone();
    half.remove(moments.keys().next().unwrap());
    write_arrays(&path, &half, Default::default()).unwrap();
    changed();
    resume(4, &["optimizer.safetensors"]);
    fs::write(&path, "").unwrap();
    changed();
    resume(4, &["optimizer.safetensors"]);
    let place = folder.0.join("checkpoint-2/trainer.json");
    let whole = fs::read_to_string(&place).unwrap();
    for (text, part) in [
        ("{", "EOF"),
        ("{}", "missing field"),
        (
            &whole.replace("\"step\": 2", "\"step\": 7"),
            "step: got 7, but the folder is named checkpoint-2",
        ),
    ] {
        fs::write(&place, text).unwrap();
        resume(4, &["trainer.json is damaged", "no other checkpoint of the run is undamaged"]);
        changed();
        resume(4, &["trainer.json", part]);
    }
}
