//! `regard quantize` and `--storage`.

use crate::program::{fails, folder, json, regard};
use regard_models::ModelFiles;
use regard_models::checkpoint::{Array, Arrays, Precision, WEIGHTS, write_arrays};
use std::path::Path;

fn quantize(model: &str, to: &str, out: &Path, more: &[&str]) -> serde_json::Value {
    let out = out.to_str().unwrap();
    json(&[&["quantize", model, "--to", to, "--out", out, "--json"], more].concat())
}

/// A built-in model in floating point.
fn floats(name: &str, home: &Path) -> String {
    let out = home.join(format!("{name}-floats")).display().to_string();
    let ran = regard(&["models", "export", name, "--out", &out]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    out
}

#[test]
fn a_language_model_is_written_measured_and_read() {
    let home = folder("quantize-language");
    let size = |folder: &Path| std::fs::metadata(folder.join("model.safetensors")).unwrap().len();
    let floats = home.join("floats");
    let exported = regard(&["models", "export", "shakespeare", "--out", floats.to_str().unwrap()]);
    assert_eq!(exported.code, 0, "{}", exported.err);
    let model = floats.to_str().unwrap();
    let table = home.join("table.csv");
    let row = |i: usize| format!("a text {i},{}\n", ["x", "y"][i % 2]);
    let rows = "text,label\n".to_string() + &(0..30).map(row).collect::<String>();
    std::fs::write(&table, rows).unwrap();
    for (to, most_loss, most_size) in
        [("int8", 0.005, 0.27), ("int8-groups", 0.005, 0.28), ("int4", 0.06, 0.16)]
    {
        let out = home.join(to);
        let said = quantize(model, to, &out, &[]);
        let quality = &said["quality"];
        let loss = quality["loss"].as_f64().unwrap();
        assert!(loss.abs() <= most_loss && loss != 0.0, "{said}");
        assert!(quality["divergence"].as_f64().unwrap() > 0.0, "{said}");
        assert!(quality["agreement"].as_f64().unwrap() > 0.9, "{said}");
        let share = size(&out) as f64 / size(&floats) as f64;
        assert!(share < most_size, "{to}: {share}");
        // What was found is in the folder, and loading gives what quantising on load gives.
        let config = std::fs::read(out.join("config.json")).unwrap();
        let config: serde_json::Value = serde_json::from_slice(&config).unwrap();
        assert_eq!(config["quantization_config"]["quality"], *quality);
        let score = |args: &[&str]| json(&[&["score", "To be, or not", "--json"], args].concat());
        let folder = out.to_str().unwrap();
        let plain = score(&["--model", model]);
        let written = score(&["--model", folder]);
        assert_eq!(written, score(&["--model", model, "--storage", to]));
        assert_ne!(written, plain);
        // It cannot be trained, and the command that is named gives floats back.
        fails(
            &["train", "classify", "--data", table.to_str().unwrap(), "--from", folder],
            &["is quantised", &format!("regard models export {folder} --out FLOATS")],
        );
        let again = home.join(format!("{to}-floats"));
        let ran = regard(&["models", "export", folder, "--out", again.to_str().unwrap()]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert_eq!(size(&again), size(&floats));
        let dequantized = score(&["--model", again.to_str().unwrap()]);
        let near = |a: &serde_json::Value, b: &serde_json::Value| {
            (a["logprob"].as_f64().unwrap() - b["logprob"].as_f64().unwrap()).abs() < 1.0
        };
        assert!(near(&dequantized, &written) && near(&plain, &written));
    }
}

/// A checkpoint in bfloat16 is what transformers writes: no key of our own, no scales.
#[test]
fn bf16_is_an_ordinary_checkpoint() {
    let home = folder("quantize-bf16");
    let (floats, out) = (home.join("floats"), home.join("bf16"));
    let exported = regard(&["models", "export", "shakespeare", "--out", floats.to_str().unwrap()]);
    assert_eq!(exported.code, 0, "{}", exported.err);
    let said = quantize(floats.to_str().unwrap(), "bf16", &out, &[]);
    assert!(said["bf16"].as_u64().unwrap() > 20 && said["int8"] == 0, "{said}");
    assert!(said["quality"]["loss"].as_f64().unwrap().abs() <= 0.005, "{said}");
    let config = std::fs::read(out.join("config.json")).unwrap();
    let config: serde_json::Value = serde_json::from_slice(&config).unwrap();
    assert_eq!((&config["dtype"], config.get("quantization_config")), (&"bfloat16".into(), None));
    let weights = |folder: &Path| std::fs::read(folder.join("model.safetensors")).unwrap();
    let (small, large) = (weights(&out), weights(&floats));
    assert!((small.len() as f64) < 0.52 * large.len() as f64);
    let model = out.to_str().unwrap();
    let score = |args: &[&str]| json(&[&["score", "To be, or not", "--json"], args].concat());
    let near = score(&["--model", model])["logprob"].as_f64().unwrap();
    let plain = score(&["--model", floats.to_str().unwrap()])["logprob"].as_f64().unwrap();
    assert!(near != plain && (near - plain).abs() < 0.3, "{near} {plain}");
    // It can be computed with in bfloat16, and quantised further.
    score(&["--model", model, "--storage", "bf16"]);
    quantize(model, "int8", &home.join("int8"), &[]);
}

#[test]
fn a_gguf_file_is_written_measured_and_read() {
    let home = folder("quantize-gguf");
    let floats = home.join("floats");
    let exported = regard(&["models", "export", "shakespeare", "--out", floats.to_str().unwrap()]);
    assert_eq!(exported.code, 0, "{}", exported.err);
    let model = floats.to_str().unwrap();
    let score = |model: &str| {
        json(&["score", "To be, or not", "--json", "--model", model])["logprob"].as_f64().unwrap()
    };
    let plain = score(model);
    for (to, apart) in [("F32", 1e-3), ("F16", 0.05), ("Q8_0", 0.3), ("Q4_0", 2.0)] {
        let out = home.join(format!("{to}.gguf"));
        let said = quantize(model, &format!("gguf:{to}"), &out, &[]);
        assert_eq!(said["quality"].is_null(), to.starts_with('F'), "{said}");
        let (tensors, size) = (&said["tensors"], std::fs::metadata(&out).unwrap().len());
        assert!(tensors[to].as_u64().unwrap() > 20, "{said}");
        assert_eq!(said["bytes_after"], size);
        let found = score(out.to_str().unwrap());
        assert!((found - plain).abs() < apart, "{to}: {found} {plain}");
    }
    let file = home.join("Q8_0.gguf");
    let file = file.to_str().unwrap();
    let ran = |model| regard(&["generate", "ROMEO:", "--max-new-tokens", "20", "--model", model]);
    assert_eq!(ran(file).out.len(), ran(model).out.len());
    fails(&["quantize", model, "--to", "gguf:F32", "--out", file], &["--out", "exists already"]);
    // It is quantised already, and the command that is named gives floats back.
    let export = format!("regard models export {file} --out FLOATS");
    let out = home.join("int8");
    let out = out.to_str().unwrap();
    fails(
        &["quantize", file, "--to", "int8", "--out", out],
        &["quantised already (Q8_0)", &export],
    );
    let ran = ["score", "To be", "--model", file, "--storage"];
    fails(&[&ran[..], &["int4"]].concat(), &["is quantised already", &export]);
    json(&[&ran[..], &["int8-groups", "--json"]].concat());
    let out = home.join("other.gguf");
    let out = out.to_str().unwrap();
    fails(&["quantize", "en-fr", "--to", "gguf:F32", "--out", out], &["model_type", "llama"]);
    fails(&["quantize", model, "--to", "gguf:Q4_K", "--out", out], &["F32, F16, Q8_0, Q4_0"]);
    fails(&["quantize", model, "--to", "int3", "--out", out], &["int8", "gguf:Q4_0"]);
}

/// The file is made of the opened model: of names without the prefix, as GPT-2 has them on the Hub,
/// and without the masks that old files have.
#[test]
fn a_gguf_file_is_made_of_the_opened_model() {
    let home = folder("quantize-gguf-opened");
    let model = floats("shakespeare", &home);
    let arrays = ModelFiles::from(&model).weights().unwrap();
    let short = |(name, array): (String, Array)| {
        (name.strip_prefix("transformer.").unwrap_or(&name).to_string(), array)
    };
    let mut old: Arrays = arrays.into_iter().map(short).collect();
    old.insert("h.0.attn.bias".into(), Array::new(vec![1, 1, 4, 4], vec![1.0; 16]));
    let place = Path::new(&model).join(WEIGHTS);
    write_arrays(&place, &old, Precision::Single).unwrap();
    std::fs::write(Path::new(&model).join("chat_template.jinja"), "<{{ messages }}>").unwrap();
    let out = home.join("old.gguf");
    quantize(&model, "gguf:F32", &out, &[]);
    let has = |bytes: &[u8], part: &str| bytes.windows(part.len()).any(|of| of == part.as_bytes());
    let bytes = std::fs::read(&out).unwrap();
    assert!(has(&bytes, "<{{ messages }}>") && !has(&bytes, "attn.bias"));
    let score = |model: &str| {
        json(&["score", "To be, or not", "--json", "--model", model])["logprob"].as_f64().unwrap()
    };
    assert!((score(&model) - score(out.to_str().unwrap())).abs() < 1e-3);
    let listed = json(&["models", out.to_str().unwrap(), "--json"]);
    assert_eq!(listed["kind"], "file", "{listed}");
    // A part of a model is none.
    old.remove("h.0.mlp.c_fc.weight").unwrap();
    write_arrays(&place, &old, Precision::Single).unwrap();
    let other = home.join("part.gguf");
    let to = ["--to", "gguf:F32", "--out", other.to_str().unwrap()];
    fails(&[&["quantize", &model], &to[..]].concat(), &["h.0.mlp.c_fc.weight"]);
    assert!(!other.exists());
}

/// Weights that another program quantised are not taken for floating point.
#[test]
fn weights_of_other_programs_are_refused() {
    let home = folder("quantize-other-programs");
    let model = floats("shakespeare", &home);
    let config = Path::new(&model).join("config.json");
    let mut json: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&config).unwrap()).unwrap();
    json["quantization_config"] = serde_json::json!({ "quant_method": "gptq", "bits": 4 });
    std::fs::write(&config, json.to_string()).unwrap();
    let out = home.join("out");
    let out = out.to_str().unwrap();
    let parts = ["quant_method", "\"gptq\"", "other programs"];
    fails(&["models", "export", &model, "--out", out], &parts);
    fails(&["quantize", &model, "--to", "int8", "--out", out], &parts);
    fails(&["score", "To be", "--model", &model, "--storage", "int8"], &parts);
    let train = ["train", "generate", "--data", out, "--from", &model];
    std::fs::write(out, "To be, or not to be.\n".repeat(600)).unwrap();
    fails(&train, &parts);
}

/// What is there is not replaced, and what cannot be opened later is not written.
#[test]
fn places_for_the_result_are_checked_first() {
    let home = folder("quantize-places");
    let model = floats("shakespeare", &home);
    let taken = home.join("taken");
    std::fs::create_dir(&taken).unwrap();
    std::fs::write(taken.join("model.safetensors"), "mine").unwrap();
    let [taken, plain, nowhere, file] = ["taken", "plain", "nowhere/a.gguf", "a.gguf"]
        .map(|name| home.join(name).display().to_string());
    let refused = |to: &str, out: &str, more: &[&str], parts: &[&str]| {
        let args = [&["quantize", &model, "--to", to, "--out", out], more].concat();
        fails(&args, parts);
    };
    refused("int8", &taken, &[], &["--out", "already holds model.safetensors"]);
    refused("gguf:F32", &plain, &[], &["--out", "ends in .gguf"]);
    refused("gguf:F32", &nowhere, &[], &["--out", "no folder"]);
    refused("gguf:F32", &file, &["--max-loss", "0.1"], &["--max-loss", "not quantised"]);
    fails(&["models", "export", &model, "--out", &taken], &["already holds model.safetensors"]);
}

#[test]
fn a_translator_is_measured_on_your_pairs() {
    let home = folder("quantize-translator");
    let pairs = home.join("pairs.tsv");
    std::fs::write(&pairs, "They are watching.\tIls regardent.\nI am here.\tJe suis ici.\n")
        .unwrap();
    let out = home.join("int8");
    let model = floats("en-fr-bahdanau", &home);
    let said = quantize(&model, "int8", &out, &["--data", pairs.to_str().unwrap()]);
    assert_eq!(
        (&said["quality"]["measure"], &said["quality"]["texts"]),
        (&"bleu".into(), &2.into())
    );
    assert_eq!(said["quality"]["references"], "data", "{said}");
    assert!(said["int8"].as_u64().unwrap() > 0 && said["int4"] == 0, "{said}");
    let model = out.to_str().unwrap();
    let said = regard(&["translate", "They are watching.", "--model", model]);
    assert_eq!((said.code, said.out.lines().next()), (0, Some("Ils regardent.")));
}

/// An id column is not translated, and texts of a table are those of a column.
#[test]
fn columns_of_a_table_are_chosen() {
    let home = folder("quantize-columns");
    let run = |model: &str, file: &str, text: &str, more: &[&str]| {
        let (path, out) = (home.join(file), home.join(format!("{file}-{}", more.len())));
        std::fs::write(&path, text).unwrap();
        let args = ["quantize", model, "--to", "int8", "--out", out.to_str().unwrap()];
        regard(&[&args[..], &["--json", "--data", path.to_str().unwrap()], more].concat())
    };
    let rows = "1\tThey are watching.\tIls regardent.\n2\tI am here.\tJe suis ici.\n";
    let chosen = ["--source", "2", "--target", "3"];
    let translator = floats("en-fr-bahdanau", &home);
    let ran = run(&translator, "ids.tsv", rows, &chosen);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("source: column 2, target: column 3"), "{}", ran.err);
    let said: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert!(said["quality"]["before"].as_f64().unwrap() > 50.0, "{said}");
    let table = rows.replace('\t', ",");
    let ran = run(&translator, "names.csv", &format!("id,en,fr\n{table}"), &[]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let ran = run(&translator, "ids.tsv", rows, &["--label", "1"]);
    assert!(ran.code == 2 && ran.err.contains("--label does not apply"), "{}", ran.err);
    let ran = run("wiki-xlnet", "ids.tsv", rows, &["--source", "1"]);
    assert!(ran.code == 2 && ran.err.contains("--source does not apply"), "{}", ran.err);
}

/// Without translations, BLEU says how much the translations change, and not how good they are.
#[test]
fn own_translations_are_no_references() {
    let home = folder("quantize-own-references");
    let sources = home.join("sources.txt");
    std::fs::write(&sources, "They are watching.\nI am here.\n").unwrap();
    let data = ["--data", sources.to_str().unwrap()];
    let model = floats("en-fr-bahdanau", &home);
    let said = quantize(&model, "int8", &home.join("json"), &data);
    assert_eq!(said["quality"]["references"], "original", "{said}");
    let out = home.join("text");
    let args = ["quantize", &model, "--to", "int8", "--out", out.to_str().unwrap()];
    let ran = regard(&[&args[..], &data].concat());
    let told = "against the translations of the original model itself";
    assert!(ran.out.contains(told) && !ran.out.contains("100.00 →"), "{}{}", ran.out, ran.err);
}

/// Matrices keep a higher precision until the bound holds, and are named.
#[test]
fn the_bound_holds() {
    let home = folder("quantize-bound");
    let floats = home.join("floats");
    let floats = floats.to_str().unwrap();
    assert_eq!(regard(&["models", "export", "shakespeare", "--out", floats]).code, 0);
    let out = home.join("some");
    let said = quantize(floats, "int4", &out, &["--max-loss", "0.002"]);
    assert!(said["quality"]["loss"].as_f64().unwrap() <= 0.002, "{said}");
    let kept = said["higher_precision"].as_array().unwrap().len();
    assert!(kept > 0 && kept <= 13, "{said}");
}

/// 16 bits are computed with, near to the original, and take half of its memory.
#[test]
fn a_model_is_run_in_16_bits() {
    let out = folder("quantize-16");
    let floats = out.join("floats");
    let floats = floats.to_str().unwrap();
    assert_eq!(regard(&["models", "export", "shakespeare", "--out", floats]).code, 0);
    let of = |verb: &[&str], storage: &[&str]| {
        json(&[verb, &["--json", "--model", floats], storage].concat())
    };
    let score =
        |storage: &[&str]| of(&["score", "To be, or not"], storage)["logprob"].as_f64().unwrap();
    let (plain, half) = (score(&[]), score(&["--storage", "bf16"]));
    assert!(plain != half && (plain - half).abs() < 0.5, "{plain} {half}");
}

/// A model of 8 bits is not run as one of 4, or as one whose scales belong to groups.
#[test]
fn a_quantised_model_keeps_its_storage() {
    for other in ["int4", "int8-groups"] {
        fails(
            &["translate", "Hi.", "--storage", other],
            &[
                &format!("--storage {other}"),
                "quantised already",
                "regard models export en-fr --out FLOATS",
            ],
        );
    }
    let plain = regard(&["translate", "They are watching."]);
    let same = regard(&["translate", "They are watching.", "--storage", "int8"]);
    assert_eq!((plain.code, plain.out), (same.code, same.out));
}

#[test]
fn translations_do_not_depend_on_the_workers() {
    let home = folder("quantize-workers");
    let file = home.join("lines.txt");
    let lines = ["They are watching.", "I am hungry.", "He is my friend.", "We like music."];
    let text: String = (0..24).map(|i| format!("{} {i}\n", lines[i % 4])).collect();
    std::fs::write(&file, text).unwrap();
    for more in [&["--num-beams", "3"][..], &["--do-sample", "--seed", "5"]] {
        let run = |workers: &str, batch: &str| {
            let args = ["translate", "--file", file.to_str().unwrap(), "--json", "--threads", "3"];
            let set = ["--workers", workers, "--batch", batch];
            let ran = regard(&[&args[..], &set, more].concat());
            assert_eq!(ran.code, 0, "{}", ran.err);
            ran.out
        };
        let want = run("1", "32");
        for (workers, batch) in [("2", "32"), ("3", "5"), ("1", "1")] {
            assert_eq!(run(workers, batch), want, "{workers} {batch}");
        }
    }
}

#[test]
fn what_cannot_be_done_is_refused() {
    let home = folder("quantize-refused");
    let out = home.join("out");
    let to = ["--to", "int8", "--out", out.to_str().unwrap()];
    let [model, chinese] = ["en-fr-bahdanau", "zh-en"].map(|name| floats(name, &home));
    let with = |more: &[&str]| {
        let all = more.iter().chain(&to).map(|part| part.to_string());
        all.collect::<Vec<String>>()
    };
    let fails = |args: &[String], parts: &[&str]| {
        fails(&args.iter().map(String::as_str).collect::<Vec<_>>(), parts);
    };
    // What is quantised already is converted first, by the command that is named.
    fails(&with(&["quantize", "en-fr"]), &["already", "regard models export en-fr --out FLOATS"]);
    fails(&with(&["quantize", "stories"]), &["\"story\"", "text models and translators"]);
    fails(&with(&["quantize", &model, "--max-loss=-1"]), &["--max-loss"]);
    let empty = home.join("empty.txt");
    std::fs::write(&empty, "\n").unwrap();
    let data = ["quantize", &model, "--data", empty.to_str().unwrap()];
    fails(&with(&data), &["--data", "holds no text"]);
    // The built-in sentences are English, and swapped columns leave nothing to lose.
    fails(&with(&["quantize", &chinese]), &["not in Latin letters", "--data FILE"]);
    let swapped = home.join("swapped.tsv");
    let pair = "Il fait beau aujourd'hui et nous allons à la plage.\tThe weather is nice today.\n";
    std::fs::write(&swapped, pair.repeat(3)).unwrap();
    let data = ["quantize", &model, "--data", swapped.to_str().unwrap()];
    fails(&with(&data), &["too little to measure a loss"]);
    assert!(!out.exists());
}
