//! Opens a language model, saves it again, and writes what it computes, for `bench/roundtrip.py`.
//!
//!     cargo run -p regard-models --example roundtrip -- MODEL OUT 5,6,7,8 [STEPS [ADAPTER]]
//!
//! OUT is a folder with `config.json`, `model.safetensors` and `computed.safetensors`: `ids [T]`,
//! `logits [T, V]`, `loss` (mean cross-entropy of the next tokens) and `gradient.NAME` of it, and
//! `greedy.tokens [STEPS]` with `greedy.logits [STEPS, 2]`, the two highest logits of each step.

use burn::tensor::{Device, Int, Tensor, TensorData};
use regard_attention::Mode;
use regard_attention::ops::{CrossEntropy, cross_entropy};
use regard_models::adapter::Adapter;
use regard_models::checkpoint::{self, Array, Arrays, Precision};
use regard_models::text::{self, TextModel, Texts};
use regard_models::{Capability, ModelFiles};
use std::error::Error;
use std::path::Path;

/// Numbers of greedy tokens without an argument.
const STEPS: usize = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let [model, out, ids, rest @ ..] = &given[..] else {
        return Err("need MODEL OUT IDS [STEPS [ADAPTER]]".into());
    };
    let ids: Vec<u32> = ids.split(',').map(str::parse).collect::<Result<_, _>>()?;
    let steps: usize = rest.first().map_or(Ok(STEPS), |steps| steps.parse())?;
    let mut files = ModelFiles::from(model);
    if let Some(folder) = rest.get(1) {
        files = files.adapted(Adapter::open(Path::new(folder))?);
    }
    let trains = text::open(files.clone(), None, 0, &Device::flex().autodiff())?;
    let out = Path::new(out);
    std::fs::create_dir_all(out)?;
    checkpoint::write(out, &trains.config(), &trains.weights(), Precision::Single)?;

    let mut computed = gradients(&*trains, &ids)?;
    let numbers: Vec<f32> = ids.iter().map(|id| *id as f32).collect();
    computed.insert("ids".into(), Array::new(vec![ids.len()], numbers));
    // Decoding is of the model as it is opened for inference.
    computed.extend(greedy(&*text::open(files, None, 0, &Device::flex())?, &ids, steps)?);
    checkpoint::write_arrays(&out.join("computed.safetensors"), &computed, Precision::Single)?;
    Ok(())
}

/// Logits of a text, the loss of its next tokens, and its gradients.
fn gradients(model: &dyn TextModel, ids: &[u32]) -> Result<Arrays, Box<dyn Error>> {
    let mut texts = Texts::new();
    texts.push(ids);
    let logits = model.forward(&texts, None, Mode::Eval).logits.ok_or("need a language model")?;
    let mut computed = Arrays::new();
    let shape = logits.dims().to_vec();
    let numbers = logits.clone().into_data().try_into_vec()?;
    computed.insert("logits".into(), Array::new(shape, numbers));
    let next = ids[1..].iter().map(|id| i64::from(*id)).chain([-100]).collect();
    let next = TensorData::new::<i64, _>(next, [ids.len()]);
    let next = Tensor::<1, Int>::from_data(next, &Device::flex().autodiff());
    let options = CrossEntropy { ignore: Some(-100), ..CrossEntropy::default() };
    let loss = cross_entropy(logits, next, options);
    let number = loss.clone().into_data().try_into_vec()?;
    computed.insert("loss".into(), Array::new(vec![1], number));
    for (name, array) in model.network().gradients(&mut loss.backward()) {
        computed.insert(format!("gradient.{name}"), array);
    }
    Ok(computed)
}

/// Greedy decoding with a cache.
fn greedy(model: &dyn TextModel, ids: &[u32], steps: usize) -> Result<Arrays, Box<dyn Error>> {
    let (mut tokens, mut pairs, mut logits) = (vec![], vec![], vec![]);
    if steps > 0 {
        let (last, before) = ids.split_last().ok_or("need ids")?;
        let mut decoding = model.decode(&[before]).ok_or("does not continue texts")?;
        let mut next = *last;
        for _ in 0..steps {
            decoding.step_slices(&[next], &mut logits);
            let best = highest(&logits, None);
            let second = highest(&logits, Some(best));
            pairs.extend([logits[best], logits[second]]);
            tokens.push(best as f32);
            next = best as u32;
        }
    }
    let arrays = [("greedy.tokens", vec![steps], tokens), ("greedy.logits", vec![steps, 2], pairs)];
    Ok(arrays.into_iter().map(|(n, shape, x)| (n.to_string(), Array::new(shape, x))).collect())
}

/// Index of the highest logit but one.
fn highest(logits: &[f32], but: Option<usize>) -> usize {
    let others = (0..logits.len()).filter(|i| Some(*i) != but);
    others.reduce(|best, i| if logits[i] > logits[best] { i } else { best }).unwrap_or(0)
}
