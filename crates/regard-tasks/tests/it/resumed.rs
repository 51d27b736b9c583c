//! A run that was stopped and resumed equals the uninterrupted run, bit for bit.

use crate::small::{Folder, corpus, letters, recipe, train};
use regard_models::checkpoint::{Arrays, read_arrays, read_weights};
use regard_tasks::train::{Event, TrainOutcome, checkpoints};
use regard_tasks::translate::{Corpus, Recipe};
use serde_json::{Map, Value};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Dropout, gradient accumulation, early stopping, averages: all that has state.
pub const TRAIN: &str = "steps = 22\nbatch_tokens = 60\naccumulate = 2\nlr = 1e-2\nwarmup = 5\n\
                         log_every = 3\neval_every = 4\nsave_every = 5\nkeep = 2\naverage = 2\n\
                         weight_decay = 0.01";

const MODELS: [(&str, &str); 3] = [
    (
        "bahdanau",
        "model_type = \"bahdanau\"\nembedding_size = 8\nhidden_size = 8\nbidirectional = true\n\
         num_layers = 2\ndropout = 0.3\nattention = { kind = \"hard\", method = \"gumbel\" }",
    ),
    (
        "luong",
        "model_type = \"luong\"\ncell = \"lstm\"\nembedding_size = 8\nhidden_size = 8\n\
         dropout = 0.3\nattention = { kind = \"hard\", method = \"reinforce\" }",
    ),
    ("transformer", TRANSFORMER),
];

pub const TRANSFORMER: &str = "model_type = \"transformer\"\nd_model = 16\nencoder_layers = 1\n\
    decoder_layers = 1\nencoder_attention_heads = 2\ndecoder_attention_heads = 2\n\
    encoder_ffn_dim = 16\ndecoder_ffn_dim = 16\ndropout = 0.2\nattention_dropout = 0.1\n\
    activation_dropout = 0.1";

pub fn small() -> Corpus {
    corpus(letters(60, 2..6, |words| words.reverse()), 10)
}

/// All results of a run except times.
#[derive(Debug, PartialEq)]
pub struct Left {
    metrics: Vec<Map<String, Value>>,
    steps: Vec<u64>,
    weights: Vec<Arrays>,
    moments: Vec<Arrays>,
    places: Vec<Map<String, Value>>,
    best: String,
    model: Arrays,
}

pub fn left(run: &Path) -> Left {
    let timeless = |text: &str| {
        let mut map: Map<String, Value> = serde_json::from_str(text).unwrap();
        map.remove("seconds");
        map
    };
    let steps = checkpoints(run);
    let folders: Vec<_> = steps.iter().map(|step| run.join(format!("checkpoint-{step}"))).collect();
    let places = folders.iter().map(|f| fs::read_to_string(f.join("trainer.json")).unwrap());
    Left {
        metrics: {
            let text = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
            text.lines().map(timeless).collect()
        },
        weights: folders.iter().map(|folder| read_weights(folder).unwrap()).collect(),
        moments: folders
            .iter()
            .map(|folder| read_arrays(&folder.join("optimizer.safetensors")).unwrap())
            .collect(),
        places: places.map(|text| timeless(&text)).collect(),
        steps,
        best: fs::read_to_string(run.join("best.json")).unwrap(),
        model: read_weights(&run.join("model")).unwrap(),
    }
}

/// Trains, stops, then resumes to the end.
fn check(name: &str, row: (&Recipe, &Corpus), whole: &(TrainOutcome, Left), stop: Stop) {
    let folder = Folder::new(&format!("resume-{name}"));
    let run = &folder.0;
    let mut events = 0;
    let mut watch = |event: Event| {
        let here = match (&event, stop) {
            (Event::Step { step, .. }, Stop::Asked(at) | Stop::Dropped(at)) => *step == at,
            (Event::Saved(step), Stop::Saved(at)) => *step == at,
            (Event::Evaluated { step, .. }, Stop::Evaluated(at)) => *step == at,
            _ => false,
        };
        events += usize::from(here);
        assert!(!here || !matches!(stop, Stop::Dropped(_)), "dropped");
        !here
    };
    let first = catch_unwind(AssertUnwindSafe(|| train(row, run, false, &mut watch)));
    match stop {
        Stop::Dropped(_) => assert!(first.is_err(), "{name} {stop:?}"),
        _ => {
            let end = first.unwrap().unwrap();
            assert!(matches!(end, TrainOutcome::Interrupted { .. }), "{name} {stop:?}: {end:?}");
            assert!(!run.join("model").exists());
        }
    }
    assert_eq!(events, 1, "{name}: {stop:?}");
    let end = train(row, run, true, &mut |_| true).unwrap();
    assert_eq!(end, whole.0, "{name} {stop:?}");
    let left = left(run);
    // A run that is stopped leaves one checkpoint more, which may outlive an older one.
    if matches!(stop, Stop::Asked(_) | Stop::Evaluated(_)) {
        assert_eq!(left.metrics, whole.1.metrics, "{name} {stop:?}");
        assert_eq!(left.best, whole.1.best, "{name} {stop:?}");
        assert_eq!(left.weights.last(), whole.1.weights.last(), "{name} {stop:?}");
        assert_eq!(left.moments.last(), whole.1.moments.last(), "{name} {stop:?}");
        assert_eq!(left.places.last(), whole.1.places.last(), "{name} {stop:?}");
        return;
    }
    assert!(left == whole.1, "{name} {stop:?}: {:?} for {:?}", left.metrics, whole.1.metrics);
}

#[derive(Clone, Copy, Debug)]
enum Stop {
    /// `watch` stops after this step.
    Asked(u64),
    /// `watch` stops after an evaluation.
    Evaluated(u64),
    /// `watch` stops after a checkpoint.
    Saved(u64),
    /// It panics in this step.
    Dropped(u64),
}

#[test]
fn resumed_is_never_stopped() {
    let corpus = small();
    for (name, model) in MODELS {
        let recipe = recipe(model, TRAIN);
        let row = (&recipe, &corpus);
        let folder = Folder::new(&format!("whole-{name}"));
        let end = train(row, &folder.0, false, &mut |_| true).unwrap();
        let whole = (end, left(&folder.0));
        assert_eq!(whole.1.metrics.iter().filter(|line| line.contains_key("loss")).count(), 8);
        let averaged = |line: &&Map<String, Value>| line.contains_key("averaged_valid_loss");
        assert_eq!(whole.1.metrics.iter().filter(averaged).count(), 1);
        let all = [
            Stop::Asked(1),
            Stop::Asked(7),
            Stop::Asked(8),
            Stop::Evaluated(12),
            Stop::Saved(5),
            Stop::Dropped(3),
            Stop::Dropped(18),
        ];
        for stop in all {
            check(name, row, &whole, stop);
        }
        // A finished run does nothing when it is resumed, and logs nothing twice.
        assert_eq!(train(row, &folder.0, true, &mut |_| true).unwrap(), whole.0);
        assert!(left(&folder.0) == whole.1, "{name}");
    }
}

#[test]
fn patience_is_remembered() {
    let corpus = small();
    // A learning rate so high that the metric soon gets worse.
    let slow = "steps = 40\nbatch_tokens = 60\nlr = 0.5\nwarmup = 1\nlog_every = 3\n\
                eval_every = 2\nkeep = 2\npatience = 3\nschedule = \"constant\"";
    let recipe = recipe(MODELS[0].1, slow);
    let row = (&recipe, &corpus);
    let folder = Folder::new("whole-patience");
    let end = train(row, &folder.0, false, &mut |_| true).unwrap();
    let TrainOutcome::Stopped { step, .. } = end else { panic!("{end:?}") };
    let whole = (end, left(&folder.0));
    for stop in [Stop::Saved(step - 2), Stop::Saved(step), Stop::Dropped(step)] {
        check("patience", row, &whole, stop);
    }
}

#[test]
fn halves_of_a_batch_make_a_whole_one() {
    // Equal lengths, so that all pairs are one batch, or two.
    let pairs = letters(24, 4..5, |words| words.reverse());
    let corpus = corpus(pairs, 4);
    let n = corpus.train.len() / 2 * 2;
    let corpus = Corpus { train: corpus.train[..n].to_vec(), ..corpus };
    let model = "model_type = \"bahdanau\"\nembedding_size = 8\nhidden_size = 8";
    let weights = |batch: usize, accumulate: usize| {
        let folder = Folder::new(&format!("halves-{accumulate}"));
        let options = format!(
            "steps = 4\nbatch_tokens = {batch}\naccumulate = {accumulate}\nlr = 1e-2\nwarmup = 1"
        );
        let recipe = recipe(model, &options);
        train((&recipe, &corpus), &folder.0, false, &mut |_| true).unwrap();
        read_weights(&folder.0.join("checkpoint-4")).unwrap()
    };
    let (whole, halves) = (weights(5 * n, 1), weights(5 * n / 2, 2));
    for (name, array) in &whole {
        let (array, half) = (array.floats().unwrap(), halves[name].floats().unwrap());
        let far = array.iter().zip(&half[..]).map(|(a, b)| (a - b).abs());
        let far = far.fold(0.0, f32::max);
        assert!(far <= 1e-5, "{name} differs by {far:e}");
    }
}
