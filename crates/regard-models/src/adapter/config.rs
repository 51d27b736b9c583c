//! `adapter_config.json` as PEFT writes it.

use super::pattern::{Pattern, Targets};
use serde_json::{Map, Value, json};

/// File name of an adapter's configuration.
pub const CONFIG: &str = "adapter_config.json";

/// Keys without an effect on what an adapter computes: notes, and settings of training alone.
const NOTES: [&str; 18] = [
    "auto_mapping",
    "base_model_name_or_path",
    "corda_config",
    "ensure_weight_tying",
    "eva_config",
    "fan_in_fan_out",
    "inference_mode",
    "loftq_config",
    "lora_dropout",
    "lora_ga_config",
    "megatron_config",
    "megatron_core",
    "parent_library",
    "peft_version",
    "qalora_group_size",
    "revision",
    "runtime_config",
    "task_type",
];
/// Keys that are read.
const READ: [&str; 12] = [
    "alpha_pattern",
    "bias",
    "exclude_modules",
    "init_lora_weights",
    "layers_pattern",
    "layers_to_transform",
    "lora_alpha",
    "peft_type",
    "r",
    "rank_pattern",
    "target_modules",
    "use_rslora",
];
/// Names of initialisations that leave the base as it is; others subtract from its weights what the
/// adapter begins with.
const STARTS: [&str; 3] = ["gaussian", "eva", "orthogonal"];
/// Most names of `rank_pattern` and of `alpha_pattern`, and most of them that are no plain names.
const MOST_PATTERNS: usize = 1 << 13;
const MOST_EXPRESSIONS: usize = 64;
/// Largest rank.
const MOST_RANK: usize = 1 << 16;

/// Numbers of layers, and patterns of what comes before a number in a name.
type Layers = (Vec<usize>, Vec<Pattern>);

/// What comes before a layer's number where `layers_pattern` does not say it.
const ANY_LAYER: &str = r"[^.]*";

/// Configuration of an adapter.
#[derive(Clone, Debug)]
pub struct AdapterConfig {
    /// `r`, the rank where `rank_pattern` names no other.
    pub rank: usize,
    /// `lora_alpha`, where `alpha_pattern` names no other.
    pub alpha: f64,
    /// `use_rslora`: whether updates are scaled by `alpha/√r`, not `alpha/r`.
    pub by_root: bool,
    /// `target_modules`: layers that are updated.
    pub targets: Targets,
    /// `base_model_name_or_path`: the model that the adapter is for.
    pub base: Option<String>,
    /// `revision`: commit, branch or tag of the base, if it is of the Hub.
    pub revision: Option<String>,
    excluded: Option<Targets>,
    /// Numbers of the layers that are updated, and patterns of what comes before a number.
    layers: Option<Layers>,
    ranks: Vec<(Pattern, usize)>,
    alphas: Vec<(Pattern, f64)>,
}

impl AdapterConfig {
    /// Makes a configuration for training.
    ///
    /// # Errors
    /// If rank or alpha are out of range.
    pub fn new(rank: usize, alpha: f64, targets: Targets) -> Result<AdapterConfig, String> {
        if !(1..=MOST_RANK).contains(&rank) {
            return Err(format!("rank: got {rank}, need 1 to {MOST_RANK}"));
        }
        if !alpha.is_finite() || alpha <= 0.0 {
            return Err(format!("alpha: got {alpha}, need a number above 0"));
        }
        let (ranks, alphas) = (vec![], vec![]);
        let (base, revision, excluded, layers) = (None, None, None, None);
        Ok(AdapterConfig {
            rank,
            alpha,
            by_root: false,
            targets,
            base,
            revision,
            excluded,
            layers,
            ranks,
            alphas,
        })
    }

    /// Reads `adapter_config.json`.
    ///
    /// # Errors
    /// Names a key that is wrong, or asks for what is not supported.
    pub fn read(json: &Value) -> Result<AdapterConfig, String> {
        let map = json.as_object().ok_or("need a JSON object")?;
        supported(map)?;
        let rank = |key: &str, value: &Value| {
            let rank = value.as_u64().and_then(|rank| usize::try_from(rank).ok());
            rank.filter(|rank| (1..=MOST_RANK).contains(rank))
                .ok_or_else(|| format!("{key}: got {value}, need a whole number, 1 to {MOST_RANK}"))
        };
        let number = |key: &str, value: &Value| {
            let number = value.as_f64().filter(|number| number.is_finite());
            number.ok_or_else(|| format!("{key}: got {value}, need a finite number"))
        };
        let targets = match said(map, "target_modules") {
            Some(value) => Targets::read("target_modules", value)?,
            None => return Err("target_modules: is missing".into()),
        };
        let excluded = said(map, "exclude_modules").filter(|value| !is_nothing(value));
        let excluded = excluded.map(|value| Targets::read("exclude_modules", value)).transpose()?;
        Ok(AdapterConfig {
            rank: said(map, "r").map_or(Ok(8), |value| rank("r", value))?,
            alpha: said(map, "lora_alpha").map_or(Ok(8.0), |value| number("lora_alpha", value))?,
            by_root: flag(map, "use_rslora")?,
            targets,
            base: text(map, "base_model_name_or_path"),
            revision: text(map, "revision"),
            excluded,
            layers: layers(map)?,
            ranks: patterns(map, "rank_pattern", rank)?,
            alphas: patterns(map, "alpha_pattern", number)?,
        })
    }

    /// Whether a layer of this name is updated.
    pub fn updates(&self, name: &str) -> bool {
        let excluded = self.excluded.as_ref().is_some_and(|excluded| excluded.has(name));
        let of_layer = || match &self.layers {
            // As in PEFT, for lists of names only, and not for whole names.
            Some((numbers, before)) if self.targets.has_end_of(name) => {
                number_of(name, before).is_some_and(|number| numbers.contains(&number))
            }
            _ => true,
        };
        !excluded && self.targets.has(name) && of_layer()
    }

    /// Rank of a layer's update.
    pub fn rank_of(&self, name: &str) -> usize {
        first(&self.ranks, name).unwrap_or(self.rank)
    }

    /// Scale of a layer's update.
    pub fn scale_of(&self, name: &str) -> f64 {
        let alpha = first(&self.alphas, name).unwrap_or(self.alpha);
        let rank = self.rank_of(name) as f64;
        alpha / if self.by_root { rank.sqrt() } else { rank }
    }

    /// Formats the configuration for PEFT. `by_inputs` says whether the weights of the base are
    /// `[I, O]`, as in GPT-2.
    pub fn to_json(&self, by_inputs: bool) -> Value {
        let patterns = |pairs: Vec<(&Pattern, Value)>| {
            let pairs = pairs.into_iter().map(|(key, value)| (key.text().to_string(), value));
            Value::Object(pairs.collect())
        };
        let (numbers, before) = self.layers.as_ref().map_or((None, vec![]), |(numbers, before)| {
            let said = before.iter().map(Pattern::text).filter(|text| *text != ANY_LAYER);
            (Some(numbers), said.collect())
        });
        json!({
            "alpha_pattern": patterns(self.alphas.iter().map(|(k, v)| (k, json!(v))).collect()),
            "base_model_name_or_path": self.base,
            "bias": "none",
            "exclude_modules": self.excluded.as_ref().map(Targets::to_json),
            "fan_in_fan_out": by_inputs,
            "inference_mode": true,
            "init_lora_weights": true,
            "layers_pattern": (!before.is_empty()).then_some(before),
            "layers_to_transform": numbers,
            "lora_alpha": self.alpha,
            "lora_dropout": 0.0,
            "modules_to_save": null,
            "peft_type": "LORA",
            "r": self.rank,
            "rank_pattern": patterns(self.ranks.iter().map(|(k, v)| (k, json!(v))).collect()),
            "revision": self.revision,
            "target_modules": self.targets.to_json(),
            "task_type": "CAUSAL_LM",
            "use_dora": false,
            "use_rslora": self.by_root,
        })
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(table) => table.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

fn said<'a>(map: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    map.get(key).filter(|value| !value.is_null())
}

/// A text that is not empty.
fn text(map: &Map<String, Value>, key: &str) -> Option<String> {
    let text = map.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    text.map(str::to_string)
}

fn flag(map: &Map<String, Value>, key: &str) -> Result<bool, String> {
    match map.get(key) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(other) => Err(format!("{key}: got {other}, need true or false")),
    }
}

/// Refuses what is not supported, by its key.
fn supported(map: &Map<String, Value>) -> Result<(), String> {
    let kind = map.get("peft_type").unwrap_or(&Value::Null);
    if kind != "LORA" {
        return Err(format!("peft_type: got {kind}, need \"LORA\": others are not supported"));
    }
    let bias = said(map, "bias").unwrap_or(&Value::Null);
    if !(bias.is_null() || bias == "none") {
        return Err(format!(
            "bias: got {bias}, need \"none\": adapters with trained biases are not supported"
        ));
    }
    let begins = said(map, "init_lora_weights");
    let keeps = |value: &Value| match value {
        Value::Bool(_) => true,
        Value::String(name) => STARTS.contains(&name.as_str()),
        _ => false,
    };
    if let Some(value) = begins.filter(|value| !keeps(value)) {
        return Err(format!(
            "init_lora_weights: got {value}, need true, false, {}: others change the weights of the \
             base model too",
            STARTS.join(", ")
        ));
    }
    let unknown = |key: &str| !NOTES.contains(&key) && !READ.contains(&key);
    match map.iter().find(|(key, value)| unknown(key) && !is_nothing(value)) {
        None => Ok(()),
        Some((key, value)) => {
            let (key, value) =
                (crate::sizes::short(key, 60), crate::sizes::short(&value.to_string(), 60));
            let what = match key.as_str() {
                "use_dora" => "DoRA is",
                "modules_to_save" => "layers that were trained as a whole are",
                _ => "it is",
            };
            Err(format!("{key}: got {value}: {what} not supported; only plain LoRA is"))
        }
    }
}

/// `layers_to_transform` and `layers_pattern`.
fn layers(map: &Map<String, Value>) -> Result<Option<Layers>, String> {
    const KEY: &str = "layers_to_transform";
    let Some(value) = said(map, KEY).filter(|value| !is_nothing(value)) else { return Ok(None) };
    let number = |value: &Value| {
        let number = value.as_u64().and_then(|number| usize::try_from(number).ok());
        number.ok_or_else(|| format!("{KEY}: got {value}, need numbers of layers, from 0"))
    };
    let numbers = match value {
        Value::Array(list) => list.iter().map(number).collect::<Result<_, _>>()?,
        one => vec![number(one)?],
    };
    let key = "layers_pattern";
    let before = match said(map, key).filter(|value| !is_nothing(value)) {
        None => vec![Pattern::before_number(key, ANY_LAYER)?],
        Some(Value::String(one)) => vec![Pattern::before_number(key, one)?],
        Some(Value::Array(list)) if list.len() <= MOST_EXPRESSIONS => list
            .iter()
            .map(|one| match one {
                Value::String(one) => Pattern::before_number(key, one),
                other => Err(format!("{key}: got {other}, need names")),
            })
            .collect::<Result<_, _>>()?,
        Some(other) => return Err(format!("{key}: got {other}, need a name or a list of names")),
    };
    Ok(Some((numbers, before)))
}

fn number_of(name: &str, before: &[Pattern]) -> Option<usize> {
    before.iter().find_map(|pattern| pattern.number_in(name))
}

/// A table of values by patterns of names.
fn patterns<T>(
    map: &Map<String, Value>,
    key: &str,
    read: impl Fn(&str, &Value) -> Result<T, String>,
) -> Result<Vec<(Pattern, T)>, String> {
    match map.get(key) {
        None | Some(Value::Null) => Ok(vec![]),
        Some(Value::Object(table)) if table.len() > MOST_PATTERNS => {
            Err(format!("{key}: got {} names, need at most {MOST_PATTERNS}", table.len()))
        }
        Some(Value::Object(table)) => {
            let (mut all, mut expressions) = (vec![], 0);
            for (name, value) in table {
                let pattern = Pattern::of_end(key, name)?;
                expressions += usize::from(pattern.is_expression());
                if expressions > MOST_EXPRESSIONS {
                    return Err(format!("{key}: need at most {MOST_EXPRESSIONS} expressions"));
                }
                all.push((pattern, read(key, value)?));
            }
            Ok(all)
        }
        Some(other) => Err(format!("{key}: got {other}, need a table of values by names")),
    }
}

/// The value of the first pattern that matches.
fn first<T: Copy>(patterns: &[(Pattern, T)], name: &str) -> Option<T> {
    patterns.iter().find(|(pattern, _)| pattern.matches(name)).map(|(_, value)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(more: Value) -> Result<AdapterConfig, String> {
        let mut json = json!({
            "peft_type": "LORA", "r": 4, "lora_alpha": 6, "target_modules": ["q_proj", "v_proj"],
            "bias": "none", "use_dora": false, "modules_to_save": null, "megatron_core": "x",
        });
        for (key, value) in more.as_object().unwrap() {
            json[key] = value.clone();
        }
        AdapterConfig::read(&json)
    }

    const Q: &str = "model.layers.10.self_attn.q_proj";
    const V: &str = "model.layers.2.self_attn.v_proj";
    const UP: &str = "model.layers.2.mlp.up_proj";

    #[test]
    fn targets_are_those_of_peft() {
        let updated = |more: Value| {
            let config = config(more).unwrap();
            [Q, V, UP].map(|name| config.updates(name))
        };
        assert_eq!(updated(json!({})), [true, true, false]);
        assert_eq!(updated(json!({ "target_modules": "all-linear" })), [true; 3]);
        assert_eq!(updated(json!({ "target_modules": r".*\.(2)\..*" })), [false, true, true]);
        // The whole name must match.
        assert_eq!(updated(json!({ "target_modules": "q_proj" })), [false; 3]);
        assert_eq!(updated(json!({ "target_modules": [UP] })), [false, false, true]);
        // No part of a name.
        assert_eq!(updated(json!({ "target_modules": ["proj"] })), [false; 3]);
        assert_eq!(updated(json!({ "exclude_modules": ["v_proj"] })), [true, false, false]);
        assert_eq!(updated(json!({ "layers_to_transform": [2] })), [false, true, false]);
        let layers = json!({ "layers_to_transform": 10, "layers_pattern": "layers" });
        assert_eq!(updated(layers), [true, false, false]);
    }

    #[test]
    fn ranks_and_scales_follow_the_patterns() {
        let config = config(json!({
            "rank_pattern": { "layers.10.self_attn.q_proj": 2, "q_proj": 3, "^model.layers.2.*": 8 },
            "alpha_pattern": { "v_proj": 16 },
        }))
        .unwrap();
        assert_eq!([Q, V, UP].map(|name| config.rank_of(name)), [2, 8, 8]);
        assert_eq!([Q, V, UP].map(|name| config.scale_of(name)), [3.0, 2.0, 0.75]);
        let config = AdapterConfig { by_root: true, ..config };
        assert_eq!(config.scale_of(Q), 6.0 / 2f64.sqrt());
        // What is written is read as the same.
        let again = AdapterConfig::read(&config.to_json(false)).unwrap();
        assert_eq!(
            [Q, V, UP].map(|name| again.scale_of(name)),
            [Q, V, UP].map(|n| config.scale_of(n))
        );
    }

    #[test]
    fn what_is_left_out_is_written() {
        for more in [
            json!({ "exclude_modules": ["v_proj"] }),
            json!({ "exclude_modules": r".*\.10\..*" }),
            json!({ "layers_to_transform": [2] }),
            json!({ "layers_to_transform": 10, "layers_pattern": "layers" }),
            json!({ "layers_to_transform": [10], "layers_pattern": ["h", "blocks"] }),
        ] {
            let config = config(more.clone()).unwrap();
            let written = config.to_json(false);
            let again = AdapterConfig::read(&written).unwrap();
            assert_eq!([Q, V, UP].map(|n| again.updates(n)), [Q, V, UP].map(|n| config.updates(n)));
            assert_ne!([Q, V, UP].map(|n| again.updates(n)), [true, true, false], "{more}");
            assert_eq!(again.to_json(false), written);
        }
    }

    #[test]
    fn what_is_not_supported_is_named() {
        for (more, wanted) in [
            (json!({ "use_dora": true }), "use_dora: got true: DoRA is not supported"),
            (json!({ "modules_to_save": ["score"] }), "modules_to_save: got [\"score\"]"),
            (json!({ "bias": "all" }), "bias: got \"all\", need \"none\""),
            (json!({ "peft_type": "IA3" }), "peft_type: got \"IA3\", need \"LORA\""),
            (json!({ "init_lora_weights": "pissa" }), "init_lora_weights: got \"pissa\""),
            (json!({ "lora_bias": true }), "lora_bias: got true"),
            (json!({ "a_new_key": 3 }), "a_new_key: got 3: it is not supported"),
            (json!({ "r": 0 }), "r: got 0, need a whole number"),
            (json!({ "rank_pattern": { "x": -1 } }), "rank_pattern: got -1"),
            (json!({ "target_modules": "(" }), "target_modules: \"(\" is not a regular expression"),
            (json!({ "target_modules": null }), "target_modules: is missing"),
            (json!({ "target_modules": 3 }), "target_modules: got 3"),
        ] {
            let error = config(more).unwrap_err();
            assert!(error.starts_with(wanted), "{error}");
        }
        assert!(AdapterConfig::read(&json!([])).is_err());
        assert!(AdapterConfig::new(0, 1.0, Targets::All).unwrap_err().starts_with("rank: got 0"));
    }
}
