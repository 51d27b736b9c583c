//! Pooling and normalisation of a sentence-transformers folder: `modules.json` lists the steps
//! after the encoder, and each module's folder configures it.

use super::SentencePooling;
use regard_models::gguf::Pooling;
use regard_models::{Error, ModelFiles, Result, checkpoint};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// Name of the file that lists the modules.
pub const MODULES: &str = "modules.json";
/// Maximum number of modules; sentence-transformers' own models have two or three.
const MOST: usize = 16;
/// Maximum size of a configuration file, in bytes.
const LARGEST: u64 = 1 << 20;

/// Conversion of token vectors to a text embedding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentenceSettings {
    /// Pooling over the tokens.
    pub pooling: SentencePooling,
    /// Whether the embedding is scaled to Euclidean norm 1.
    pub normalize: bool,
}

/// An entry of `modules.json`.
#[derive(Deserialize)]
struct Module {
    path: String,
    #[serde(rename = "type")]
    class: String,
}

/// Reads a model's settings; `None` if it has no `modules.json`, or is a file that does not say them.
///
/// # Errors
/// If it lists a module or a pooling that is not supported.
pub fn read(model: &ModelFiles) -> Result<Option<SentenceSettings>> {
    if let Some(pooling) = model.pooling()? {
        let pooling = match pooling {
            Pooling::Mean => SentencePooling::Mean,
            Pooling::Cls => SentencePooling::Cls,
        };
        // The file does not say it; llama.cpp normalises.
        return Ok(Some(SentenceSettings { pooling, normalize: true }));
    }
    // Built-in models have no `modules.json`.
    let Some(folder) = model.folder() else { return Ok(None) };
    let path = folder.join(MODULES);
    let Some(modules) = modules(&path)? else { return Ok(None) };
    let mut sentence = SentenceSettings::default();
    for Module { path: of, class } in &modules {
        match class.rsplit('.').next().unwrap_or("") {
            "Transformer" => {}
            "Pooling" => {
                let config = folder.join(of).join("config.json");
                let json = read_json(&config)?.ok_or_else(|| {
                    Error::file(&path, format!("names {of:?}, which has no config.json"))
                })?;
                sentence.pooling = pooling(&json).map_err(|m| Error::file(&config, m))?;
            }
            "Normalize" => sentence.normalize = true,
            _ => {
                return Err(Error::file(
                    &path,
                    format!("got the module {class:?}, need Transformer, Pooling or Normalize"),
                ));
            }
        }
    }
    Ok(Some(sentence))
}

/// Returns the paths of the further files that a `modules.json` needs, relative to its folder.
///
/// # Errors
/// If it is not a list of modules, or names a folder outside its own.
pub fn files(modules_file: &Path) -> Result<Vec<String>> {
    let modules = modules(modules_file)?.unwrap_or_default();
    let pools = modules.iter().filter(|module| module.class.ends_with(".Pooling"));
    Ok(pools.map(|module| format!("{}/config.json", module.path)).collect())
}

/// Returns the files that say a model's settings, with their paths in its folder; `width` is that of
/// its embeddings.
pub fn written(settings: SentenceSettings, width: &Value) -> Vec<(String, Vec<u8>)> {
    let module = |number: usize, path: &str, class: &str| {
        json!({
            "idx": number, "name": number.to_string(), "path": path,
            "type": format!("sentence_transformers.models.{class}"),
        })
    };
    let mut modules = vec![module(0, "", "Transformer"), module(1, "1_Pooling", "Pooling")];
    if settings.normalize {
        modules.push(module(2, "2_Normalize", "Normalize"));
    }
    let is = |pooling| settings.pooling == pooling;
    let pooling = json!({
        "word_embedding_dimension": width,
        "pooling_mode_cls_token": is(SentencePooling::Cls),
        "pooling_mode_mean_tokens": is(SentencePooling::Mean),
        "pooling_mode_max_tokens": is(SentencePooling::Max),
    });
    let text = |json: &Value| {
        let text = serde_json::to_string_pretty(json).expect("JSON values can be written");
        (text + "\n").into_bytes()
    };
    vec![
        (MODULES.to_string(), text(&Value::from(modules))),
        ("1_Pooling/config.json".to_string(), text(&pooling)),
    ]
}

fn modules(path: &Path) -> Result<Option<Vec<Module>>> {
    let Some(json) = read_json(path)? else { return Ok(None) };
    let modules: Vec<Module> = serde_json::from_value(json)
        .map_err(|e| Error::file(path, format!("not a list of modules: {e}")))?;
    if modules.len() > MOST {
        let message = format!("got {} modules, need at most {MOST}", modules.len());
        return Err(Error::file(path, message));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    let outside = |module: &&Module| !module.path.chars().all(plain) || module.path.len() > 64;
    match modules.iter().find(outside) {
        None => Ok(Some(modules)),
        Some(Module { path: of, .. }) => Err(Error::file(
            path,
            format!(
                "got the path {:?}, need a folder beside it",
                of.chars().take(80).collect::<String>()
            ),
        )),
    }
}

fn read_json(path: &Path) -> Result<Option<Value>> {
    if let Err(error) = fs::metadata(path)
        && error.kind() == ErrorKind::NotFound
    {
        return Ok(None);
    }
    let json = serde_json::from_slice(&checkpoint::read_file(path, LARGEST)?);
    json.map(Some).map_err(|e| Error::file(path, format!("not JSON: {e}")))
}

/// Returns the pooling of a `config.json`, given by a flag per mode or by name.
fn pooling(json: &Value) -> Result<SentencePooling, String> {
    const FLAG: &str = "pooling_mode_";
    let none = Map::new();
    let keys = json.as_object().unwrap_or(&none);
    let named = keys.get("pooling_mode").and_then(Value::as_str).map(str::to_string);
    let set = keys.iter().filter(|(_, value)| **value == Value::Bool(true));
    let flags = set.filter_map(|(key, _)| Some(key.strip_prefix(FLAG)?.to_string()));
    let asked: Vec<String> = named.into_iter().chain(flags).collect();
    let known = asked.iter().map(|name| match name.as_str() {
        "mean" | "mean_tokens" => Some(SentencePooling::Mean),
        "cls" | "cls_token" => Some(SentencePooling::Cls),
        "max" | "max_tokens" => Some(SentencePooling::Max),
        _ => None,
    });
    match known.collect::<Vec<_>>()[..] {
        [Some(pooling)] => Ok(pooling),
        _ => {
            let asked: Vec<String> =
                asked.iter().take(8).map(|name| name.chars().take(40).collect()).collect();
            Err(format!(
                "pooling_mode: got [{}], need one of mean, cls and max; or set --pooling",
                asked.join(", ")
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_modules_is_a_file_of_bounded_size() {
        let folder = std::env::temp_dir().join(format!("regard-modules-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        assert_eq!(read(&(&folder).into()).unwrap(), None);
        let path = folder.join(MODULES);
        fs::write(&path, vec![b' '; LARGEST as usize + 1]).unwrap();
        let error = read(&(&folder).into()).unwrap_err().to_string();
        assert!(error.contains("1048577 bytes; need at most 1048576"), "{error}");
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        let error = read(&(&folder).into()).unwrap_err().to_string();
        assert!(error.contains(MODULES) && error.contains("not a regular file"), "{error}");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn settings_are_written_as_they_are_read() {
        let folder = std::env::temp_dir().join(format!("regard-sentence-{}", std::process::id()));
        fs::create_dir_all(folder.join("1_Pooling")).unwrap();
        for pooling in [SentencePooling::Mean, SentencePooling::Cls, SentencePooling::Max] {
            for normalize in [false, true] {
                let settings = SentenceSettings { pooling, normalize };
                for (name, bytes) in written(settings, &json!(8)) {
                    fs::write(folder.join(name), bytes).unwrap();
                }
                assert_eq!(read(&(&folder).into()).unwrap(), Some(settings));
            }
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn files_of_llama_cpp_say_their_pooling() {
        let fixture =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/gguf/bert-Model.gguf");
        let mut bytes = fs::read(fixture).unwrap();
        let key = b"bert.pooling_type";
        let at = bytes.windows(key.len()).position(|part| part == key).unwrap() + key.len() + 4;
        let file = std::env::temp_dir().join(format!("regard-pooling-{}.gguf", std::process::id()));
        let mut read_with = |number: u8| {
            bytes[at] = number;
            fs::write(&file, &bytes).unwrap();
            read(&(&file).into())
        };
        let pooling = |found: Result<Option<SentenceSettings>>| found.unwrap().map(|s| s.pooling);
        assert_eq!(pooling(read_with(1)), Some(SentencePooling::Mean));
        assert_eq!(pooling(read_with(2)), Some(SentencePooling::Cls));
        assert_eq!(pooling(read_with(0)), None);
        let error = read_with(4).unwrap_err().to_string();
        assert!(error.contains("bert.pooling_type: got 4 (RANK)"), "{error}");
        fs::remove_file(&file).unwrap();
    }

    #[test]
    fn a_way_of_pooling_is_read() {
        let old = |key: &str| json!({ "word_embedding_dimension": 8, key: true, "x": true });
        assert_eq!(pooling(&old("pooling_mode_mean_tokens")), Ok(SentencePooling::Mean));
        assert_eq!(pooling(&old("pooling_mode_cls_token")), Ok(SentencePooling::Cls));
        assert_eq!(pooling(&old("pooling_mode_max_tokens")), Ok(SentencePooling::Max));
        assert_eq!(pooling(&json!({ "pooling_mode": "cls" })), Ok(SentencePooling::Cls));
        let lasttoken = pooling(&old("pooling_mode_lasttoken")).unwrap_err();
        assert!(lasttoken.contains("lasttoken") && lasttoken.contains("--pooling"), "{lasttoken}");
        let both = json!({ "pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true });
        assert!(pooling(&both).unwrap_err().contains("cls_token"));
        assert!(pooling(&json!({})).is_err() && pooling(&json!([])).is_err());
    }
}
