//! `generation_config.json`: a model's default search options, in a file that Hugging Face's
//! library reads too.

use super::Options;
use regard_models::checkpoint::write_file;
use regard_models::{ModelFiles, Result, values};
use serde_json::{Map, Value};
use std::path::Path;

/// Name of the file in a model's folder.
pub const FILE: &str = "generation_config.json";

/// Keys that Hugging Face's library also expects there, copied from `config.json`.
const IDS: [&str; 3] = ["decoder_start_token_id", "eos_token_id", "pad_token_id"];

/// Writes the options, with the ids of the start, end and padding tokens.
pub(crate) fn save(folder: &Path, options: &Options, config: &Value) -> Result<()> {
    let mut json = known();
    if let Value::Object(options) = serde_json::to_value(options).expect("plain data") {
        json.extend(options);
    }
    json.extend(IDS.iter().filter_map(|id| Some((id.to_string(), config.get(*id)?.clone()))));
    let text = serde_json::to_string_pretty(&json).expect("plain data");
    write_file(&folder.join(FILE), text.as_bytes())
}

/// Reads the options; keys that only other libraries use are ignored.
pub(crate) fn read(bytes: &[u8]) -> Result<Options, String> {
    let mut json: Map<String, Value> =
        serde_json::from_slice(bytes).map_err(|e| format!("not a JSON object: {e}"))?;
    let known = known();
    json.retain(|key, value| known.contains_key(key) && !value.is_null());
    let options: Options = values::read(&Value::Object(json))?;
    options.check().map_err(|e| e.to_string())?;
    Ok(options)
}

/// Reads the options of a model; the defaults if it has no such file.
pub(crate) fn load(files: &ModelFiles) -> Result<Options> {
    match files.has(FILE) {
        true => files.parse(FILE, read),
        false => Ok(Options::default()),
    }
}

/// Returns all options with their default values.
fn known() -> Map<String, Value> {
    match serde_json::to_value(Options::default()).expect("plain data") {
        Value::Object(known) => known,
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
        ] {
            let error = read(theirs.as_bytes()).unwrap_err();
            assert!(error.starts_with(wanted), "{error}");
        }
    }
}
