//! Recordings, from a recipe to what is said in them.

use crate::program::{fails, folder, json, piped, regard};
use regard_tasks::audio::{Sound, wav};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A tone that is a little different each time.
fn tone(hertz: f32, variant: usize, rate: u32) -> Vec<u8> {
    let hertz = hertz * (1.0 + 0.01 * variant as f32);
    let count = rate as usize * (12 + variant) / 80;
    let sample = |i: usize| 0.4 * (i as f32 / rate as f32 * hertz * std::f32::consts::TAU).sin();
    wav::encode(&Sound { samples: (0..count).map(sample).collect(), rate })
}

const TONES: [(&str, f32); 2] = [("low", 300.0), ("high", 1500.0)];

const RECIPE: &str = "
name = 'tones'
task = 'speech'
seed = 1
[data]
set = 'files'
train = 'FOLDER/list.tsv'
valid = 'FOLDER/list.tsv'
[features]
sampling_rate = 8000
feature_size = 12
n_fft = 256
win_length = 200
hop_length = 80
[augment]
gain = 3.0
frequency_masks = 1
frequency_mask = 2
[model]
model_type = 'speech'
hidden_size = 16
num_attention_heads = 2
num_hidden_layers = 1
intermediate_size = 16
conv_kernel = [3]
conv_stride = [2]
left_context = 4
right_context = 2
pooling_size = 8
dropout = 0.0
[train]
steps = 30
batch_tokens = 8
lr = 1e-2
warmup = 5
eval_every = 30
label_smoothing = 0.0
";

/// A folder with tones, and the run of a model that was trained on them.
fn trained() -> &'static Path {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| {
        let place = folder("recognize");
        let mut list = String::new();
        for (name, hertz) in TONES {
            for variant in 0..5 {
                let file = format!("{name}-{variant}.wav");
                std::fs::write(place.join(&file), tone(hertz, variant, 8000)).unwrap();
                list += &format!("{file}\t{name}\n");
            }
        }
        std::fs::write(place.join("list.tsv"), list).unwrap();
        let recipe = place.join("tones.toml");
        let text = RECIPE.replace("FOLDER", place.to_str().unwrap());
        std::fs::write(&recipe, text).unwrap();
        let (recipe, run) = (recipe.display().to_string(), place.join("run"));
        let ran = regard(&["train", &recipe, "--out", run.to_str().unwrap(), "--threads", "1"]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let count = 5 * TONES.len();
        for part in [format!("list.tsv: {count} recordings, "), format!("{} (5)", TONES[0].0)] {
            assert!(ran.err.contains(&part), "{part}: {}", ran.err);
        }
        place
    })
}

#[test]
fn tones_are_learned_and_recognized() {
    let place = trained();
    let path = |name: &str| place.join(name).to_str().unwrap().to_string();
    let run = path("run");
    // Tones that were not learned from, one of them at another rate.
    std::fs::write(path("a.wav"), tone(300.0, 6, 8000)).unwrap();
    std::fs::write(path("b.wav"), tone(1500.0, 6, 22050)).unwrap();
    let files = [path("a.wav"), path("b.wav")];
    let ask = |more: &[&str]| {
        let named: [&str; 5] = ["recognize", &files[0], &files[1], "--model", &run];
        regard(&[&named[..], more].concat()).out
    };
    let said = ask(&[]);
    let labels: Vec<&str> = said.lines().map(|line| line.split('\t').next().unwrap()).collect();
    assert_eq!(labels, ["low", "high"], "{said}");
    let streamed = ask(&["--stream", "--chunk", "30"]);
    let last = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !line.starts_with("  ")).map(str::to_string).collect()
    };
    assert_eq!(last(&streamed), last(&said), "{streamed}");
    assert!(streamed.lines().any(|line| line.starts_with("  0.")), "{streamed}");
    let object = json(&["recognize", &files[1], "--model", &run, "--top-k", "2", "--json"]);
    assert_eq!((&object["file"], &object["text"]), (&files[1].as_str().into(), &"high".into()));
    let guesses = object["guesses"].as_array().unwrap();
    let sum: f64 = guesses.iter().map(|guess| guess["score"].as_f64().unwrap()).sum();
    assert!(guesses.len() == 2 && (sum - 1.0).abs() < 1e-6, "{object}");
    // From a pipe it is the same sound.
    let bytes = std::fs::read(&files[1]).unwrap();
    let through = piped(&["recognize", "-", "--model", &run], &bytes).stdout;
    assert!(through.starts_with(b"high\t"), "{}", String::from_utf8_lossy(&through));
    fails(&["recognize", &files[0], "--model", &run, "--chunk", "10"], &["--stream"]);
    fails(&["recognize", &files[0], "--model", &run, "--top-k", "0"], &["from 1"]);
    let measured = json(&["eval", &run, "--json"]);
    assert_eq!((&measured["asked"], &measured["unit"]), (&10.into(), &"recordings".into()));
    assert_eq!(measured["accuracy"], 100.0);
    // What is written to another folder hears the same.
    regard(&["models", "export", &run, "--out", &path("copy")]);
    let copied = regard(&["recognize", &files[0], "--model", &path("copy")]).out;
    assert_eq!(copied, said.lines().next().unwrap().to_string() + "\n");
    let inspected = json(&["inspect", &path("copy"), "--json"]);
    assert_eq!(inspected["model_type"], "speech");
}

#[test]
fn labels_that_are_not_learned_are_told() {
    let place = trained();
    let path = |name: &str| place.join(name).to_str().unwrap().to_string();
    std::fs::write(path("other.tsv"), "low-0.wav\tlow\nhigh-0.wav\tmiddle\n").unwrap();
    let other = format!("data.valid={}", path("other.tsv"));
    let ran = regard(&["train", &path("tones.toml"), "--out", &path("other"), "--set", &other]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    let told = "other.tsv: its labels middle are not in the training data, which has ";
    assert!(ran.err.contains(told), "{}", ran.err);
}

#[test]
fn what_cannot_be_heard_is_told() {
    let place = trained();
    let path = |name: &str| place.join(name).to_str().unwrap().to_string();
    let run = path("run");
    let whole = tone(300.0, 0, 8000);
    let bad = |name: &str, bytes: &[u8], told: &[&str]| {
        let file = path(name);
        std::fs::write(&file, bytes).unwrap();
        fails(&["recognize", &file, "--model", &run], &[&[file.as_str()], told].concat());
    };
    bad("cut.wav", &whole[..whole.len() - 5], &["is cut off", "at byte 36"]);
    bad("header.wav", &whole[..20], &["is cut off", "at byte 12"]);
    bad("empty.wav", &[], &["is not a WAV file"]);
    let silent = [&whole[..40], &[0; 4]].concat();
    bad("silent.wav", &silent, &["holds no sound", "at byte 44"]);
    let mut unknown = whole.clone();
    unknown[20] = 85;
    bad("mp3.wav", &unknown, &["number 85", "ffmpeg"]);
    let mut float = whole.clone();
    (float[20], float[34], float[32]) = (3, 32, 4);
    float[44..48].copy_from_slice(&f32::NAN.to_le_bytes());
    let even = float.len() / 4 * 4;
    let length = (even - 44) as u32;
    float[40..44].copy_from_slice(&length.to_le_bytes());
    bad("nan.wav", &float[..even], &["sample 0 (byte 44) is NaN"]);
    fails(&["recognize", &path("none.wav"), "--model", &run], &["none.wav", "No such file"]);
    fails(&["recognize"], &["FILE.wav"]);
    fails(&["recognize", &path("low-0.wav"), "--model", &run, "--chunk", "0"], &["--chunk"]);
    fails(&["recognize", &path("low-0.wav"), "--model", "en-fr"], &["en-fr translates"]);
}
