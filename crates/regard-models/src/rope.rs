//! Rotary positions as in `config.json`, with transformers' keys: `rope_parameters` and, before it,
//! `rope_scaling`.

use regard_attention::layers::{RotaryConfig, Scaling};
use serde::Deserialize;
use serde_json::Value;

/// Keys of `rope_parameters`.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Rope {
    rope_type: Option<String>,
    /// The older name; transformers writes both.
    #[serde(rename = "type")]
    old_type: Option<String>,
    rope_theta: Option<f32>,
    partial_rotary_factor: Option<f64>,
    factor: Option<f64>,
    low_freq_factor: Option<f64>,
    high_freq_factor: Option<f64>,
    original_max_position_embeddings: Option<f64>,
}

impl Rope {
    /// Reads JSON; `null` gives the defaults.
    pub fn read(json: &Value) -> Result<Rope, String> {
        match json {
            Value::Null => Ok(Rope::default()),
            json => Rope::deserialize(json).map_err(|e| format!("rope_parameters: {e}")),
        }
    }

    /// Makes the configuration for texts of up to `length` tokens and heads of this width; `theta`
    /// is the default of `rope_theta`.
    pub fn config(&self, length: usize, width: usize, theta: f32) -> Result<RotaryConfig, String> {
        let positive = |name: &str, number: Option<f64>| match number {
            Some(number) if number > 0.0 && number.is_finite() => Ok(number),
            Some(number) => Err(format!("{name}: got {number}, need a positive number")),
            None => Err(format!("rope_parameters: need {name} for this rope_type")),
        };
        let base = self.rope_theta.unwrap_or(theta);
        positive("rope_theta", Some(base.into()))?;
        let rotary_dim = match self.partial_rotary_factor {
            None => width,
            Some(share @ 0.0..=1.0) => (share * width as f64) as usize,
            Some(share) => return Err(format!("partial_rotary_factor: got {share}, need 0 to 1")),
        };
        if !rotary_dim.is_multiple_of(2) {
            return Err(format!("rotary positions: got {rotary_dim} features, need pairs of them"));
        }
        let kind = self.rope_type.as_deref().or(self.old_type.as_deref()).unwrap_or("default");
        let scaling = match kind {
            "default" => Scaling::None,
            "linear" => Scaling::Linear { factor: positive("factor", self.factor)? },
            "llama3" => {
                let low = positive("low_freq_factor", self.low_freq_factor)?;
                let high = positive("high_freq_factor", self.high_freq_factor)?;
                if low >= high {
                    return Err(format!("high_freq_factor: got {high}, need more than {low}"));
                }
                let original = self.original_max_position_embeddings.or(Some(length as f64));
                Scaling::Llama3 {
                    factor: positive("factor", self.factor)?,
                    low,
                    high,
                    original: positive("original_max_position_embeddings", original)?,
                }
            }
            other => {
                return Err(format!("rope_type: got {other:?}, need default, linear or llama3"));
            }
        };
        Ok(RotaryConfig { rotary_dim, base, scaling, ..RotaryConfig::new(length, width) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn config(json: Value) -> Result<RotaryConfig, String> {
        Rope::read(&json)?.config(64, 8, 100.0)
    }

    #[test]
    fn what_is_said_counts_and_the_rest_is_usual() {
        let usual = RotaryConfig { base: 100.0, ..RotaryConfig::new(64, 8) };
        assert_eq!(config(Value::Null).unwrap(), usual);
        let said = json!({ "type": "linear", "factor": 2.0, "rope_theta": 5.0 });
        let linear = Scaling::Linear { factor: 2.0 };
        let both = json!({ "type": "linear", "rope_type": "linear", "factor": 2.0 });
        assert_eq!(config(both).unwrap().scaling, linear);
        assert_eq!(
            config(said).unwrap(),
            RotaryConfig { base: 5.0, scaling: linear, ..RotaryConfig::new(64, 8) }
        );
        let half = config(json!({ "partial_rotary_factor": 0.5 })).unwrap();
        assert_eq!(half, RotaryConfig { rotary_dim: 4, ..usual });
    }

    #[test]
    fn what_cannot_be_is_told() {
        for (json, part) in [
            (json!({ "rope_type": "yarn" }), "need default, linear or llama3"),
            (json!({ "rope_type": "linear" }), "need factor"),
            (json!({ "rope_type": "linear", "factor": 0.0 }), "a positive number"),
            (json!({ "rope_theta": -1.0 }), "rope_theta"),
            (json!({ "partial_rotary_factor": 0.4 }), "pairs"),
            (json!({ "partial_rotary_factor": 1.5 }), "need 0 to 1"),
        ] {
            let error = config(json.clone()).unwrap_err();
            assert!(error.contains(part), "{json}: {error}");
        }
    }
}
