//! Folders of models whose files lie: sizes that no file has, numbers that are none. Whatever they
//! say, the program ends by itself, soon and within bounds, with an answer or an error.

use crate::program::{command, finish, folder, regard};
use regard_models::checkpoint::{self, Arrays, Precision};
use regard_tasks::audio::{Sound, wav};
use regard_tasks::data::Image;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Kilobytes of addresses that a run may have. The binary, its threads and what they keep ready
/// are most of it.
const MEMORY: usize = 1_500_000;
/// A run that takes longer hangs. Most take a tenth of a second; the machine may be very busy.
const LONG: Duration = Duration::from_secs(60);

/// A copy of a model that ships, in a folder of its own.
fn shipped(name: &str, test: &str) -> PathBuf {
    let to = folder(test);
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models").join(name);
    copy(&from, &to);
    to
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
        }
    }
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The verbs, with something to work on.
struct Inputs {
    picture: String,
    sound: String,
}

impl Inputs {
    fn new(test: &str) -> Inputs {
        let at = folder(test);
        let (picture, sound) = (at.join("square.png"), at.join("noise.wav"));
        let square = Image { size: [28, 28], channels: 1, pixels: vec![90; 784] };
        square.write_png(&picture).unwrap();
        let samples = (0..4000).map(|i| ((i * i) as f32 * 0.01).sin()).collect();
        fs::write(&sound, wav::encode(&Sound { samples, rate: 8000 })).unwrap();
        let text = |path: PathBuf| path.to_str().unwrap().to_string();
        Inputs { picture: text(picture), sound: text(sound) }
    }

    /// How a model that ships is run.
    fn verb<'a>(&'a self, name: &str) -> Vec<&'a str> {
        match name {
            "clothes" => vec!["classify", "--image", &self.picture],
            "digits" => vec!["recognize", &self.sound],
            "en-pos" => vec!["tag", "Dogs bark."],
            "hull" | "tsp" => vec!["point", "0.1 0.1  0.9 0.1  0.9 0.9  0.1 0.9  0.5 0.4"],
            "shakespeare" => vec!["generate", "To be", "--max-new-tokens", "3"],
            "stories" => {
                vec!["answer", "Where is Mary?", "--context", "Mary went to the garden."]
            }
            "zh-en" => vec!["translate", "他"],
            _ => vec!["translate", "They are watching."],
        }
    }
}

/// The exit code of a run within bounds, and what it said; none if it had to be stopped.
fn bounded(args: &[&str]) -> (Option<i32>, String) {
    let mut command = match cfg!(target_os = "linux") {
        true => {
            let mut shell = Command::new("sh");
            let limit = format!("ulimit -v {MEMORY}; exec \"$@\"");
            shell.args(["-c", &limit, "sh", env!("CARGO_BIN_EXE_regard")]).args(args);
            shell
        }
        false => command(args),
    };
    command.env("REGARD_NUM_THREADS", "1").stdin(Stdio::null());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = child.stderr.take().unwrap();
    let said = std::thread::spawn(move || {
        let mut bytes = vec![];
        let _ = std::io::Read::read_to_end(&mut stderr, &mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let began = Instant::now();
    let code = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status.code(),
            None if began.elapsed() > LONG => {
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    (code, said.join().unwrap())
}

/// Sizes that are far beyond a file's are refused before memory is asked for them.
#[test]
fn sizes_of_a_configuration_are_those_of_its_weights() {
    let inputs = Inputs::new("hostile_sizes_inputs");
    let bert = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/reading/BertModel");
    let minilm = folder("hostile_sizes_bert");
    copy(&bert, &minilm);
    let config = checkpoint::CONFIG;
    let generation = "generation_config.json";
    for (name, file, key, value) in [
        ("en-fr", config, "d_model", 16384u64),
        ("en-fr", config, "encoder_ffn_dim", 1_000_000),
        ("hull", config, "hidden_size", 16384),
        ("digits", config, "feature_size", 1_000_000),
        ("digits", config, "intermediate_size", 1_000_000),
        ("digits", config, "hidden_size", 16384),
        ("zh-en", config, "attention_size", 1 << 63),
        ("zh-en", config, "attention_size", 1 << 32),
        ("zh-en", config, "attention_size", 1 << 26),
        ("en-fr", generation, "num_beams", 2_147_483_648),
        ("zh-en", generation, "num_beams", 1 << 53),
        ("hull", generation, "num_beams", 1 << 53),
        ("BertModel", config, "hidden_size", 32768),
        ("BertModel", config, "num_hidden_layers", 1024),
    ] {
        let model = match name {
            "BertModel" => minilm.clone(),
            _ => shipped(name, "hostile_sizes"),
        };
        let path = model.join(file);
        let before = fs::read(&path).unwrap();
        let mut json = read(&path);
        json[key] = json!(value);
        fs::write(&path, json.to_string()).unwrap();
        let mut args = match name {
            "BertModel" => vec!["embed", "hi"],
            _ => inputs.verb(name),
        };
        args.extend(["--model", model.to_str().unwrap()]);
        let (code, said) = bounded(&args);
        assert_eq!(code, Some(2), "{name} {key} {value}: {said}");
        assert!(said.contains(file) || said.contains("model.safetensors"), "{key}: {said}");
        assert!(said.len() < 1000 && !said.contains("panicked"), "{name} {key}: {said}");
        fs::write(&path, before).unwrap();
    }
}

/// Every whole number of a file, by its place.
fn numbers(json: &Value, at: &str, found: &mut Vec<String>) {
    match json {
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            let key = key.replace('~', "~0").replace('/', "~1");
            numbers(value, &format!("{at}/{key}"), found);
        }),
        Value::Array(all) => {
            let of = |(i, value)| numbers(value, &format!("{at}/{i}"), &mut *found);
            all.iter().enumerate().take(2).for_each(of);
        }
        Value::Number(number) if number.is_u64() => found.push(at.to_string()),
        _ => {}
    }
}

/// Folders of models: those that ship, and small ones of the other kinds.
fn folders() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders = vec![];
    for of in ["models", "fixtures/models", "fixtures/vit", "fixtures/xlnet", "fixtures/reading"] {
        let inside = fs::read_dir(root.join(of)).unwrap().map(|entry| entry.unwrap().path());
        folders.extend(inside.filter(|path| path.join(checkpoint::WEIGHTS).is_file()));
    }
    folders.sort();
    folders
}

fn is_fixture(path: &Path) -> bool {
    path.iter().any(|part| part == "fixtures")
}

/// Each whole number of each small file, one at a time, becomes one of these.
#[test]
fn any_number_of_any_file_may_be_wrong() {
    const OTHERS: [u64; 4] = [1 << 14, 1_000_000, 1 << 31, 1 << 53];
    const FILES: [&str; 4] = [
        "config.json",
        "generation_config.json",
        "preprocessor_config.json",
        "tokenizer_config.json",
    ];
    let inputs = Inputs::new("hostile_any_inputs");
    let mut cases = vec![];
    for path in folders() {
        for file in FILES {
            if !path.join(file).is_file() {
                continue;
            }
            let mut places = vec![];
            numbers(&read(&path.join(file)), "", &mut places);
            // One name of a label is as good as another.
            places.retain(|at| !at.contains("label2id"));
            for at in places {
                // Every key with two of the numbers, by turns; of small models with one.
                let turn = cases.len();
                cases.push((path.clone(), file, at.clone(), OTHERS[turn % 4]));
                if !is_fixture(&path) {
                    cases.push((path.clone(), file, at, OTHERS[(turn / 4 + 2) % 4]));
                }
            }
        }
    }
    assert!(cases.len() > 200, "{}", cases.len());
    let next = AtomicUsize::new(0);
    let work = |worker: usize| {
        while let Some((path, file, at, other)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let model = folder(&format!("hostile_any_{worker}"));
            copy(path, &model);
            let mut json = read(&model.join(file));
            *json.pointer_mut(at).unwrap() = json!(other);
            fs::write(model.join(file), json.to_string()).unwrap();
            let (folder, name) = (model.to_str().unwrap(), path.file_name().unwrap());
            let args = match is_fixture(path) {
                true => vec!["inspect", folder],
                false => [&inputs.verb(name.to_str().unwrap())[..], &["--model", folder]].concat(),
            };
            let (code, said) = bounded(&args);
            let fine = matches!(code, Some(0 | 2)) && !said.contains("panicked");
            assert!(fine && said.len() < 1000, "{path:?} {file} {at} {other}: {code:?} {said}");
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..2).map(|worker| scope.spawn(move || work(worker))).collect();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
    });
}

/// Weights that are no numbers are an error, which names one of them and the file.
#[test]
fn weights_that_are_not_finite_are_refused() {
    let inputs = Inputs::new("hostile_nan_inputs");
    let names = ["en-fr", "zh-en", "en-pos", "shakespeare", "hull", "stories", "clothes", "digits"];
    for (i, name) in names.iter().enumerate() {
        let model = shipped(name, "hostile_nan");
        let weights = checkpoint::read_weights(&model).unwrap();
        let (all, one) = match i % 2 {
            0 => (f32::NAN, f32::INFINITY),
            _ => (f32::NEG_INFINITY, f32::NAN),
        };
        // All of them, and the last number of the last tensor.
        let mut spoiled: [Arrays; 2] = [weights.clone(), weights];
        spoiled[0].values_mut().for_each(|array| array.change(|x| x.fill(all)));
        let (last, array) = spoiled[1].iter_mut().next_back().unwrap();
        let last = last.clone();
        array.change(|x| *x.last_mut().unwrap() = one);
        for (spoiled, tensor) in spoiled.iter().zip(["", &last]) {
            let path = model.join(checkpoint::WEIGHTS);
            checkpoint::write_arrays(&path, spoiled, Precision::Single).unwrap();
            let mut args = inputs.verb(name);
            args.extend(["--model", model.to_str().unwrap()]);
            let ran = regard(&args);
            assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{name}: {}", ran.err);
            for part in ["model.safetensors", "finite", tensor] {
                assert!(ran.err.contains(part), "{name} should say {part}: {}", ran.err);
            }
        }
    }
}

/// Weights that are finite and far too large: what comes of them is no number, and is no answer.
#[test]
fn results_that_are_not_finite_are_no_answer() {
    let inputs = Inputs::new("hostile_huge_inputs");
    for name in ["en-fr", "zh-en", "en-pos", "shakespeare", "hull", "stories", "clothes", "digits"]
    {
        let model = shipped(name, "hostile_huge");
        let mut weights = checkpoint::read_weights(&model).unwrap();
        let huge = |x: &mut f32| *x = x.signum() * 1e38;
        weights.values_mut().for_each(|array| array.change(|x| x.iter_mut().for_each(huge)));
        let path = model.join(checkpoint::WEIGHTS);
        checkpoint::write_arrays(&path, &weights, Precision::Single).unwrap();
        for json in [false, true] {
            let mut args = inputs.verb(name);
            args.extend(["--model", model.to_str().unwrap()]);
            if json {
                args.push("--json");
            }
            let ran = finish(command(&args));
            assert_eq!(ran.code, 2, "{name}: {}{}", ran.out, ran.err);
            assert!(ran.err.contains("finite"), "{name}: {}", ran.err);
        }
    }
}
