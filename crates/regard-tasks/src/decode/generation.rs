//! `generation_config.json`: a model's default search options, in a file that Hugging Face's
//! library reads too.

use super::Options;
use regard_models::checkpoint::write_file;
use regard_models::{ModelFiles, Result, values};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::Path;

/// Name of the file in a model's folder.
pub const FILE: &str = "generation_config.json";

/// Keys that Hugging Face's library also expects there, copied from `config.json`.
const IDS: [&str; 3] = ["decoder_start_token_id", "eos_token_id", "pad_token_id"];

/// Keys of `transformers` that change what is generated and are not read here. All other keys are
/// read, or change nothing: how the cache is stored, what is returned besides the tokens.
const UNSUPPORTED: [&str; 20] = [
    "begin_suppress_tokens",
    "constraints",
    "diversity_penalty",
    "dola_layers",
    "encoder_no_repeat_ngram_size",
    "encoder_repetition_penalty",
    "epsilon_cutoff",
    "eta_cutoff",
    "exponential_decay_length_penalty",
    "force_words_ids",
    "forced_bos_token_id",
    "forced_decoder_ids",
    "forced_eos_token_id",
    "guidance_scale",
    "max_time",
    "num_beam_groups",
    "penalty_alpha",
    "token_healing",
    "top_h",
    "watermarking_config",
];

/// Contents of `generation_config.json`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GenerationConfig {
    /// Search options.
    pub options: Options,
    /// Start token, which wins over that of `config.json`.
    pub bos: Option<u32>,
    /// End tokens, which win over those of `config.json`; `None` if the file names none.
    pub eos: Option<Vec<u32>>,
    /// Strings that end a text.
    pub stop: Vec<String>,
    /// Keys that would change what is generated and are not supported, with their values.
    pub unsupported: Vec<(String, Value)>,
}

/// Writes the options, with the ids of the start, end and padding tokens.
pub(crate) fn save(folder: &Path, options: &Options, config: &Value) -> Result<()> {
    let mut json = table(options);
    json.extend(IDS.iter().filter_map(|id| Some((id.to_string(), config.get(*id)?.clone()))));
    let text = serde_json::to_string_pretty(&json).expect("plain data");
    write_file(&folder.join(FILE), text.as_bytes())
}

/// Writes options into the file that a folder has, where they are not the defaults. All else stays,
/// such as end tokens and stop strings.
pub(crate) fn overlay(folder: &Path, options: &Options) -> Result<()> {
    let parse =
        |bytes: &[u8]| serde_json::from_slice(bytes).map_err(|e| format!("not a JSON object: {e}"));
    let theirs: Map<String, Value> = ModelFiles::from(folder).parse(FILE, parse)?;
    let both = overlaid(theirs.clone(), options);
    if both == theirs {
        return Ok(());
    }
    let text = serde_json::to_string_pretty(&both).expect("plain data");
    write_file(&folder.join(FILE), text.as_bytes())
}

fn overlaid(mut json: Map<String, Value>, options: &Options) -> Map<String, Value> {
    let usual = known();
    let mut set = table(options);
    set.retain(|key, value| usual.get(key) != Some(value));
    if set.contains_key("max_length") && options.max_new_tokens.is_none() {
        // It would win.
        json.remove("max_new_tokens");
    }
    json.extend(set);
    json
}

/// Reads the options alone.
pub(crate) fn read(bytes: &[u8]) -> Result<Options, String> {
    Ok(GenerationConfig::from_bytes(bytes)?.options)
}

/// Reads the options of a model; the defaults if it has no such file.
pub(crate) fn load(files: &ModelFiles) -> Result<Options> {
    Ok(GenerationConfig::load(files)?.options)
}

impl GenerationConfig {
    /// Reads the file of a model; the defaults if it has none.
    pub fn load(files: &ModelFiles) -> Result<GenerationConfig> {
        match files.has(FILE) {
            true => files.parse(FILE, GenerationConfig::from_bytes),
            false => Ok(GenerationConfig::default()),
        }
    }

    /// Returns the tokens that end a text: those of the file, or of `config.json`.
    pub fn end_tokens(&self, config: &Value) -> Vec<u32> {
        if let Some(ends) = &self.eos {
            return ends.clone();
        }
        let value = &config["eos_token_id"];
        let several = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        let id = |id: &Value| id.as_u64().and_then(|id| u32::try_from(id).ok());
        several.iter().filter_map(id).collect()
    }

    /// Reads the contents of the file.
    ///
    /// # Errors
    /// If a value is not of the type of its key, or out of its range.
    pub fn from_bytes(bytes: &[u8]) -> Result<GenerationConfig, String> {
        let mut json: Map<String, Value> =
            serde_json::from_slice(bytes).map_err(|e| format!("not a JSON object: {e}"))?;
        json.retain(|_, value| !value.is_null());
        let mut take = |key: &str| json.remove(key);
        let bos = take("bos_token_id").map(|value| token("bos_token_id", &value)).transpose()?;
        let eos = take("eos_token_id").map(|value| tokens("eos_token_id", &value)).transpose()?;
        let stop = take("stop_strings").map(|value| strings(&value)).transpose()?;
        let mut unsupported = vec![];
        let bias = take("sequence_bias").unwrap_or_default();
        let (logit_bias, rest) = sequence_bias(&bias)?;
        unsupported.extend(rest.map(|rest| ("sequence_bias".to_string(), rest)));
        let bad = take("bad_words_ids").unwrap_or_default();
        let (banned, rest) = bad_words(&bad)?;
        unsupported.extend(rest.map(|rest| ("bad_words_ids".to_string(), rest)));
        for key in UNSUPPORTED {
            let value = json.remove(key).filter(|value| !is_neutral(key, value));
            unsupported.extend(value.map(|value| (key.to_string(), value)));
        }
        let known = known();
        json.retain(|key, _| known.contains_key(key));
        if json.get("temperature").and_then(Value::as_f64) == Some(0.0) {
            json.remove("temperature");
            json.insert("do_sample".into(), false.into());
        }
        let mut options: Options = values::read(&Value::Object(json))?;
        options.logit_bias = logit_bias;
        let is_end = |id: &u32| eos.as_ref().is_some_and(|eos| eos.contains(id));
        options.suppress_tokens.extend(banned.into_iter().filter(|id| !is_end(id)));
        options.check().map_err(|e| e.to_string())?;
        Ok(GenerationConfig { options, bos, eos, stop: stop.unwrap_or_default(), unsupported })
    }
}

/// Whether a value of an unsupported key is the one that changes nothing.
fn is_neutral(key: &str, value: &Value) -> bool {
    let one = ["num_beam_groups", "guidance_scale", "encoder_repetition_penalty"].contains(&key);
    match value {
        Value::Bool(on) => !on,
        Value::Number(number) => number.as_f64() == Some(if one { 1.0 } else { 0.0 }),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

/// A token and what is added to its logit.
type TokenBias = (u32, f32);

/// Reads `[[[id, …], bias], …]`. Returns the biases of single tokens, and those of sequences as
/// they are.
fn sequence_bias(value: &Value) -> Result<(Vec<TokenBias>, Option<Value>), String> {
    let all: Vec<(Vec<u32>, f32)> = read_list("sequence_bias", "[[[id], bias], …]", value)?;
    let many = all.iter().any(|(sequence, _)| sequence.len() != 1);
    let single = |(sequence, bias): &(Vec<u32>, f32)| match sequence[..] {
        [token] => Some((token, *bias)),
        _ => None,
    };
    Ok((all.iter().filter_map(single).collect(), many.then(|| value.clone())))
}

/// Reads `[[id, …], …]`. Returns the single tokens, and the sequences as they are.
fn bad_words(value: &Value) -> Result<(Vec<u32>, Option<Value>), String> {
    let all: Vec<Vec<u32>> = read_list("bad_words_ids", "[[id], …]", value)?;
    let many = all.iter().any(|word| word.len() != 1);
    let single = all.iter().filter(|word| word.len() == 1).flatten().copied();
    Ok((single.collect(), many.then(|| value.clone())))
}

fn read_list<'v, T: Deserialize<'v>>(
    key: &str,
    need: &str,
    value: &'v Value,
) -> Result<Vec<T>, String> {
    if value.is_null() {
        return Ok(vec![]);
    }
    let wrong = |e: serde_json::Error| format!("{key}: need a list {need}: {e}");
    Vec::deserialize(value).map_err(wrong)
}

fn strings(value: &Value) -> Result<Vec<String>, String> {
    match value {
        Value::String(one) => Ok(vec![one.clone()]),
        list => read_list("stop_strings", "of strings, or a string", list),
    }
}

/// Reads token ids: a number or a list of numbers.
fn tokens(key: &str, value: &Value) -> Result<Vec<u32>, String> {
    match value {
        Value::Array(list) => list.iter().map(|value| token(key, value)).collect(),
        one => Ok(vec![token(key, one)?]),
    }
}

fn token(key: &str, value: &Value) -> Result<u32, String> {
    let id = value.as_u64().and_then(|id| u32::try_from(id).ok());
    id.ok_or_else(|| format!("{key}: got {value}, need a token id"))
}

/// Returns all options with their default values.
fn known() -> Map<String, Value> {
    table(&Options::default())
}

fn table(options: &Options) -> Map<String, Value> {
    match serde_json::to_value(options).expect("plain data") {
        Value::Object(table) => table,
        _ => unreachable!("options are a table"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_is_read() {
        let theirs = br#"{"bos_token_id": 0, "num_beams": 6, "forced_eos_token_id": 0,
            "transformers_version": "4.0", "max_length": 512, "length_penalty": null}"#;
        let options = read(theirs).unwrap();
        let want = Options { num_beams: 6, max_length: 512, ..Options::default() };
        assert_eq!(options, want);
        assert!(read(b"[1]").unwrap_err().contains("JSON object"));
        assert!(read(br#"{"num_beams": 0}"#).unwrap_err().contains("num_beams"));
        for (theirs, wanted) in [
            (r#"{"num_beams": "x"}"#, "num_beams: got \"x\", need a whole number, 0 or more"),
            (r#"{"early_stopping": "x"}"#, "early_stopping: got \"x\", need false, true or"),
            (r#"{"early_stopping": 3}"#, "early_stopping: got 3, need false, true or \"never\""),
            (r#"{"eos_token_id": -1}"#, "eos_token_id: got -1, need a token id"),
            (r#"{"eos_token_id": [1, "x"]}"#, "eos_token_id: got \"x\", need a token id"),
            (r#"{"bos_token_id": 5000000000}"#, "bos_token_id: got 5000000000, need a token id"),
            (r#"{"stop_strings": 3}"#, "stop_strings: need a list of strings, or a string"),
            (r#"{"sequence_bias": [[5, 1.0]]}"#, "sequence_bias: need a list [[[id], bias], …]"),
            (r#"{"bad_words_ids": [5]}"#, "bad_words_ids: need a list [[id], …]"),
            (r#"{"typical_p": 0.0}"#, "typical_p: got 0, need a number above 0, at most 1"),
        ] {
            let error = read(theirs.as_bytes()).unwrap_err();
            assert!(error.starts_with(wanted), "{error}");
        }
    }

    #[test]
    fn ids_stops_and_biases_are_read() {
        let read = |text: &str| GenerationConfig::from_bytes(text.as_bytes()).unwrap();
        let llama = read(
            r#"{"bos_token_id": 128000, "do_sample": true, "eos_token_id": [128001, 128008, 128009],
                "temperature": 0.6, "top_p": 0.9, "stop_strings": "\nUser:",
                "sequence_bias": [[[7], -2.5]], "bad_words_ids": [[5], [128001]]}"#,
        );
        assert_eq!((llama.bos, llama.eos), (Some(128_000), Some(vec![128_001, 128_008, 128_009])));
        assert_eq!((llama.stop, llama.unsupported), (vec!["\nUser:".to_string()], vec![]));
        assert!(llama.options.do_sample && llama.options.temperature == 0.6);
        assert_eq!(llama.options.logit_bias, [(7, -2.5)]);
        assert_eq!(llama.options.suppress_tokens, [5], "a word that is an end token is not bad");
        let greedy = read(r#"{"do_sample": true, "temperature": 0.0, "eos_token_id": 2}"#);
        assert_eq!((greedy.options.do_sample, greedy.options.temperature), (false, 1.0));
        assert_eq!(greedy.eos, Some(vec![2]));
    }

    #[test]
    fn options_are_laid_over_those_of_another_file() {
        let theirs = serde_json::json!({
            "eos_token_id": [5, 6], "bos_token_id": 1, "stop_strings": ["x"], "top_k": 7,
            "sequence_bias": [[[7], -2.5]], "bad_words_ids": [[9]], "max_new_tokens": 20,
        });
        let Value::Object(theirs) = theirs else { unreachable!() };
        assert_eq!(overlaid(theirs.clone(), &Options::default()), theirs);
        let options = Options { do_sample: true, max_length: 99, ..Options::default() };
        let both = serde_json::to_vec(&overlaid(theirs, &options)).unwrap();
        let read = GenerationConfig::from_bytes(&both).unwrap();
        assert_eq!((read.bos, read.eos, read.stop), (Some(1), Some(vec![5, 6]), vec!["x".into()]));
        let want =
            Options { top_k: 7, logit_bias: vec![(7, -2.5)], suppress_tokens: vec![9], ..options };
        assert_eq!(read.options, want);
    }

    #[test]
    fn what_changes_results_and_is_not_supported_is_named() {
        let unsupported = |text: &str| -> Vec<String> {
            let read = GenerationConfig::from_bytes(text.as_bytes()).unwrap();
            read.unsupported.into_iter().map(|(key, _)| key).collect()
        };
        // Without effect: their neutral values, the cache, what is returned, keys of nobody.
        let silent = r#"{"use_cache": true, "cache_implementation": "static", "penalty_alpha": 0,
            "output_scores": true, "num_beam_groups": 1, "guidance_scale": 1.0, "top_h": null,
            "encoder_repetition_penalty": 1.0, "begin_suppress_tokens": [], "chat_format": "raw",
            "token_healing": false, "epsilon_cutoff": 0.0, "transformers_version": "5.0"}"#;
        assert!(unsupported(silent).is_empty(), "{:?}", unsupported(silent));
        let named = r#"{"epsilon_cutoff": 0.0003, "begin_suppress_tokens": [220],
            "bad_words_ids": [[1, 2], [3]], "sequence_bias": [[[1, 2], 1.0]],
            "guidance_scale": 1.5, "watermarking_config": {"bias": 2.0}}"#;
        assert_eq!(
            unsupported(named),
            [
                "sequence_bias",
                "bad_words_ids",
                "begin_suppress_tokens",
                "epsilon_cutoff",
                "guidance_scale",
                "watermarking_config"
            ]
        );
    }
}
