//! Keys of llama.cpp that change what a model computes, in ways that the models here do not have.

use super::Gguf;

/// Ends of keys, and the numbers of theirs that change nothing. Files without a key have none.
const NEUTRAL: [(&str, &[f64]); 6] = [
    ("attention.clamp_kqv", &[0.0]),
    ("attn_logit_softcapping", &[0.0]),
    ("embedding_scale", &[0.0, 1.0]),
    ("logit_scale", &[0.0, 1.0]),
    ("residual_scale", &[0.0, 1.0]),
    ("rope.scaling.attn_factor", &[0.0, 1.0]),
];

/// Refuses keys of an architecture that would be ignored. `scale` is the one that scores have here.
pub fn check(file: &Gguf, of: &str, causal: bool, scale: f64) -> Result<(), String> {
    let key = format!("{of}.attention.causal");
    if let Some(found) = file.truth(&key)?.filter(|found| *found != causal) {
        return Err(format!("{key}: got {found}, need {causal}: no other is supported"));
    }
    let key = format!("{of}.attention.scale");
    // 0 stands for the usual scale.
    let found = file.float(&key)?.filter(|found| *found != 0.0);
    if let Some(found) = found.filter(|found| (found / scale - 1.0).abs() > 1e-5) {
        return Err(format!("{key}: got {found}, need {scale}: no other is supported"));
    }
    for (end, numbers) in NEUTRAL {
        let key = format!("{of}.{end}");
        if let Some(found) = file.float(&key)?.filter(|found| !numbers.contains(found)) {
            return Err(format!("{key}: got {found}, which is not supported"));
        }
    }
    Ok(())
}

/// Refuses a sliding window that is shorter than the texts.
pub fn no_window(file: &Gguf, of: &str) -> Result<(), String> {
    let (key, longest) = (format!("{of}.attention.sliding_window"), format!("{of}.context_length"));
    let longest = file.need(&longest)?;
    match file.size(&key)?.filter(|window| (1..longest).contains(window)) {
        None => Ok(()),
        Some(window) => Err(format!(
            "{key}: got {window}; a window shorter than {of}.context_length = {longest} is not \
             supported"
        )),
    }
}
