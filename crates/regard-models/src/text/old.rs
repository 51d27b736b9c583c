//! Old checkpoints whose `config.json` lacks the model type or the head: tensor names imply them.

use super::head::{Family, Head};
use crate::Result;
use crate::checkpoint;
use crate::zoo;
use serde_json::{Value, json};
use std::path::Path;

/// Reads `config.json` of a folder, with `model_type` and `architectures`. Where an old one lacks
/// them, they are inferred from the tensors, if only one family and head match.
pub fn read_config(folder: &Path) -> Result<Value> {
    let mut config = checkpoint::read_config(folder)?;
    let silent = |key: &str| config[key].is_null();
    if !config.is_object() || !(silent("model_type") || silent("architectures")) {
        return Ok(config);
    }
    let of_texts = zoo::families().any(|family| config["model_type"] == family.model_type);
    if !(silent("model_type") || of_texts) || !checkpoint::weights_file(folder).exists() {
        return Ok(config);
    }
    let names: Vec<String> = checkpoint::map_weights(folder)?.into_keys().collect();
    if silent("model_type") {
        let there = |family: &Family| has(&names, &format!("{}.", family.prefix));
        let mut found = zoo::families().filter(|family| there(family));
        if let (Some(family), None) = (found.next(), found.next()) {
            config["model_type"] = json!(family.model_type);
        }
    }
    let family = zoo::families().find(|family| config["model_type"] == family.model_type);
    if let Some(family) = family.filter(|_| config["architectures"].is_null())
        && let Some(class) = head(family, &names).and_then(|head| family.class_of(head))
    {
        config["architectures"] = json!([class]);
    }
    Ok(config)
}

fn has(names: &[String], begin: &str) -> bool {
    names.iter().any(|name| name.starts_with(begin))
}

/// Infers the head from tensor names. Sequence and token classifiers cannot be distinguished.
fn head(family: &Family, names: &[String]) -> Option<Head> {
    // Ignore the dense layer if the family's classifier has one of the same name.
    let shared = |dense: &&str| family.before_labels.as_ref().is_some_and(|b| b.dense == *dense);
    let dense = family.words.dense.filter(|dense| !shared(dense));
    let words = [family.words.bias, dense, Some(family.words.table)];
    if has(names, "cls.seq_relationship.") {
        Some(Head::Pretraining)
    } else if words.into_iter().flatten().any(|name| has(names, name)) {
        Some(Head::Words)
    } else {
        has(names, "qa_outputs.").then_some(Head::Span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::Precision;
    use crate::text::create;
    use burn::tensor::Device;

    #[test]
    fn tensors_tell_what_a_silent_configuration_is_of() {
        let folder = std::env::temp_dir().join(format!("regard-old-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let sizes = json!({
            "vocab_size": 9, "hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 1,
            "intermediate_size": 4, "max_position_embeddings": 4,
        });
        let mut full = sizes.clone();
        full["model_type"] = json!("bert");
        for (head, class) in [
            (Head::Pretraining, json!("BertForPreTraining")),
            (Head::Words, json!("BertForMaskedLM")),
            (Head::Span, json!("BertForQuestionAnswering")),
            (Head::Tokens, json!(null)),
        ] {
            let model = create(&full, head, 0, &Device::flex()).unwrap();
            checkpoint::write(&folder, &sizes, &model.weights(), Precision::Single).unwrap();
            let config = read_config(&folder).unwrap();
            assert_eq!(
                (&config["model_type"], &config["architectures"][0]),
                (&json!("bert"), &class)
            );
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
