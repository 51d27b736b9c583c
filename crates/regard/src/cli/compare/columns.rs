//! Columns that the tables of all comparisons have, from the reports of `regard eval --json`.

use serde_json::Value;

/// Formats a number; a dash if there is none.
pub fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or("–".to_string(), |value| format!("{value:.digits$}"))
}

/// Name of the model.
pub fn name(report: &Value) -> String {
    report["name"].as_str().unwrap_or_default().to_string()
}

/// Number of parameters, in millions.
pub fn parameters(report: &Value) -> String {
    number(report["parameters"].as_f64().map(|n| n / 1e6), 2) + " M"
}

/// Examples per second; `counted` is the key of their number.
pub fn speed(report: &Value, counted: &str, digits: usize) -> String {
    let rate = report[counted].as_f64().zip(report["seconds"].as_f64());
    number(rate.map(|(n, seconds)| n / seconds.max(1e-9)), digits)
}

/// Peak memory of the evaluation.
pub fn memory(report: &Value) -> String {
    number(report["peak_memory"].as_f64().map(|n| n / 1e6), 0) + " MB"
}

/// Duration of the training, in minutes.
pub fn training_minutes(report: &Value) -> String {
    number(report["training"]["seconds"].as_f64().map(|s| s / 60.0), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_a_dash() {
        let report = serde_json::json!({
            "name": "x", "parameters": 2_500_000, "asked": 30, "seconds": 2.0,
            "peak_memory": 7_000_000, "training": { "seconds": 90.0 },
        });
        let all = [name(&report), parameters(&report), speed(&report, "asked", 0)];
        assert_eq!(all, ["x", "2.50 M", "15"]);
        assert_eq!([memory(&report), training_minutes(&report)], ["7 MB", "1.5"]);
        let none = Value::Null;
        assert_eq!([speed(&none, "asked", 1), training_minutes(&none)], ["–", "–"]);
    }
}
