//! Memory of this process, without the system's file cache, after a model was opened: as a
//! fraction of the size of its weight file. Each measurement is a separate process.
//!
//!     cargo run --release -p regard-models --example memory
//!
//! The checkpoints are created in the folder for temporary files, about 1.7 GB, and removed at
//! the end.

use burn::tensor::{Device, Int, Tensor};
use half::{bf16, f16};
use regard_models::checkpoint::{self, Dtype};
use regard_models::text::{self, Head};
use safetensors::tensor::TensorView;
use serde_json::{Value, json};
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;

type Fallible<T> = Result<T, Box<dyn Error>>;

fn main() -> Fallible<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match &args[..] {
        [] => all(),
        [folder, how] => one(Path::new(folder), how),
        _ => Err("need no arguments".into()),
    }
}

/// Shapes of GPT-2 (124 million parameters) and of BERT (110 million).
fn shapes() -> [(&'static str, Value, Head); 2] {
    let gpt2 = json!({ "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"] });
    let bert = json!({ "model_type": "bert", "architectures": ["BertForMaskedLM"] });
    [("gpt2", gpt2, Head::Words), ("bert", bert, Head::Words)]
}

fn all() -> Fallible<()> {
    println!("| weights | opened for | file, MB | opened | one text of 64 tokens | three |");
    println!("|---|---|--:|--:|--:|--:|");
    for (name, config, head) in shapes() {
        let model = text::create(&config, head, 1, &Device::flex())?;
        let (config, arrays) = (model.config(), model.weights());
        drop(model);
        for dtype in [Dtype::F32, Dtype::F16, Dtype::BF16] {
            let folder = std::env::temp_dir().join(format!("regard-memory-{}", std::process::id()));
            fs::create_dir_all(&folder)?;
            fs::write(folder.join(checkpoint::CONFIG), config.to_string())?;
            write(&folder.join(checkpoint::WEIGHTS), &arrays, dtype)?;
            let size = fs::metadata(folder.join(checkpoint::WEIGHTS))?.len();
            for how in ["use", "training"] {
                let program = std::env::current_exe()?;
                let said = Command::new(program).arg(&folder).arg(how).output()?;
                let said = String::from_utf8(said.stdout)?;
                let shares = said.split_whitespace().map(|bytes| {
                    let share = bytes.parse::<f64>().map(|bytes| bytes / size as f64);
                    share.map_or("–".into(), |share| format!("{share:.2} ×"))
                });
                let shares: Vec<String> = shares.collect();
                println!(
                    "| {name} {dtype} | {how} | {} | {} |",
                    size / 1_000_000,
                    shares.join(" | ")
                );
            }
            fs::remove_dir_all(&folder)?;
        }
    }
    Ok(())
}

fn write(path: &Path, arrays: &checkpoint::Arrays, dtype: Dtype) -> Fallible<()> {
    let mut encoded = vec![];
    for (name, array) in arrays {
        let floats = array.floats().ok_or("a model has floats")?;
        let bytes: Vec<u8> = match dtype {
            Dtype::F16 => floats.iter().flat_map(|x| f16::from_f32(*x).to_le_bytes()).collect(),
            Dtype::BF16 => floats.iter().flat_map(|x| bf16::from_f32(*x).to_le_bytes()).collect(),
            _ => floats.iter().flat_map(|x| x.to_le_bytes()).collect(),
        };
        encoded.push((name, array.shape.clone(), bytes));
    }
    let views: Result<Vec<_>, _> = encoded
        .iter()
        .map(|(name, shape, bytes)| Ok((name, TensorView::new(dtype, shape.clone(), bytes)?)))
        .collect::<Result<Vec<_>, safetensors::SafeTensorError>>();
    Ok(safetensors::serialize_to_file(views?, None, path)?)
}

/// Opens a model and prints the memory in use after that, and after texts were processed.
fn one(folder: &Path, how: &str) -> Fallible<()> {
    let before = anonymous()?;
    if how == "training" {
        let (config, weights) =
            (checkpoint::read_config(folder)?, checkpoint::read_weights(folder)?);
        let model = text::load(&config, weights, None, 0, &Device::flex().autodiff())?;
        print!("{} – –", anonymous()?.saturating_sub(before));
        drop(model);
        return Ok(());
    }
    let device = Device::flex();
    let model = text::open(folder, None, 0, &device)?;
    print!("{}", anonymous()?.saturating_sub(before));
    let mut texts = text::Texts::new();
    texts.push(&(0..64).collect::<Vec<u32>>());
    for text in 1..=3 {
        let said = model.forward(&texts, Some(&[63]), regard_attention::Mode::Eval);
        let logits = said.logits.ok_or("a head for words")?;
        let best: Tensor<2, Int> = logits.argmax(1);
        drop(best.into_data());
        // From the second text on, weights are also stored packed for products of many rows, as
        // far as `regard_attention::ops::set_packing_limit` allows.
        if text != 2 {
            print!(" {}", anonymous()?.saturating_sub(before));
        }
    }
    Ok(())
}

/// Bytes of anonymous memory of this process (not mapped from a file).
fn anonymous() -> Fallible<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next());
    Ok(kilobytes.ok_or("no RssAnon in /proc/self/status")?.parse::<u64>()? * 1024)
}
