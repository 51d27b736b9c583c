//! Describes a checkpoint, and compares its outputs with those recorded from another library.

use burn::tensor::Device;
use regard_models::checkpoint::Arrays;
use regard_models::text::recorded::{Recorded, RecordedDifference};
use regard_models::{Description, ModelFiles, Network, Result, text, zoo};
use serde::Serialize;
use serde_json::Value;
use std::path::Path;

/// Description of a model.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Inspected {
    /// `model_type` of `config.json`.
    pub model_type: String,
    /// Hugging Face class (`architectures[0]` of `config.json`), or `model_type` if there is none.
    pub class: String,
    /// Number of trainable parameters.
    pub parameters: usize,
    /// Size of the weight files, in bytes.
    pub bytes: u64,
    /// Size of the weights in memory, in bytes, in the types in which they are kept.
    pub memory: u64,
    /// Description of the input, such as "images of 12 × 12 pixels, 1 channels".
    pub reads: String,
    /// Vocabulary size; `None` if the model does not process tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vocabulary: Option<usize>,
    /// Longest input in tokens; `None` if there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest: Option<usize>,
    /// Description of the attention of each layer.
    pub attention: Vec<String>,
    /// Names and shapes of the tensors in the checkpoint.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tensors: Vec<(String, Vec<usize>)>,
}

/// Opens a model, with all checks that loading makes, and describes it.
pub fn inspect(model: impl Into<ModelFiles>) -> Result<Inspected> {
    let files = model.into();
    let found = inspected(&*zoo::open::<dyn Network>(files.clone(), &Device::flex())?);
    Ok(Inspected { bytes: files.weights_size()?, ..found })
}

/// Describes a network; `bytes` is left at 0.
fn inspected(network: &dyn Network) -> Inspected {
    let Description { reads, vocabulary, longest, attention, .. } = network.describe();
    let weights = network.weights();
    Inspected {
        parameters: network.parameters(),
        reads,
        vocabulary,
        longest,
        attention,
        memory: weights.values().map(|array| array.size() as u64).sum(),
        tensors: shapes(&weights),
        ..named(&network.config())
    }
}

/// Reads model type and class from a configuration.
fn named(config: &Value) -> Inspected {
    let model_type = config["model_type"].as_str().unwrap_or_default();
    let class = config["architectures"][0].as_str().unwrap_or(model_type);
    Inspected { class: class.into(), model_type: model_type.into(), ..Inspected::default() }
}

/// Compares the outputs of the model in `folder` with recorded ones.
pub fn verify(folder: &Path, recorded: &Recorded) -> Result<Vec<RecordedDifference>> {
    recorded.compare(&*text::open(folder, None, 0, &Device::flex())?)
}

fn shapes(weights: &Arrays) -> Vec<(String, Vec<usize>)> {
    weights.iter().map(|(name, array)| (name.clone(), array.shape.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn said(config: Value) -> Inspected {
        let model = zoo::create::<dyn Network>(&config, 3, &Device::flex()).unwrap();
        let found = inspected(&*model);
        assert_eq!(found.model_type, config["model_type"]);
        assert_eq!(found.parameters, model.parameters());
        assert_eq!(found.tensors.len(), model.weights().len());
        found
    }

    #[test]
    fn models_of_every_kind_are_told_in_words() {
        let nodes = said(json!({ "model_type": "gat", "features": 5, "num_labels": 3 }));
        assert_eq!(nodes.reads, "the nodes of graphs; a node has 5 features");
        assert_eq!(
            nodes.attention,
            ["8 heads of 8, gat, along edges", "1 heads of 3, gat, along edges"]
        );
        let graphs = said(json!({
            "model_type": "gat", "features": 5, "edge_features": 2, "num_labels": 3, "readout": 4,
        }));
        assert_eq!(graphs.reads, "whole graphs; a node has 5 features, edges 2");
        assert_eq!(graphs.attention.len(), 3);
        let points = said(json!({
            "model_type": "pointer-network", "hidden_size": 16, "num_attention_heads": 2,
            "encoder_layers": 2, "decoder_layers": 1, "intermediate_size": 32, "problem": "hull",
        }));
        assert_eq!(points.reads, "sets of points with 2 coordinates, for hull");
        assert_eq!(points.attention.len(), 2 + 2 + 1);
        let copies = said(json!({
            "model_type": "pointer-generator", "vocab_size": 20, "embedding_size": 8,
            "hidden_size": 8,
        }));
        assert_eq!(copies.reads, "texts; vocabulary of 20");
        assert!(copies.attention[0].ends_with("its weights copy words"), "{copies:?}");
        let sounds = said(json!({
            "model_type": "speech", "feature_size": 6, "num_labels": 3, "hidden_size": 16,
            "num_attention_heads": 2, "intermediate_size": 32, "num_hidden_layers": 2,
        }));
        assert!(sounds.attention[1].contains("frames before"), "{sounds:?}");
        let images = said(json!({
            "model_type": "vit", "image_size": 12, "patch_size": 4, "num_channels": 1,
            "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
            "intermediate_size": 32, "num_labels": 5,
        }));
        assert_eq!(images.reads, "images of 12 × 12 pixels, 1 channels");
    }
}
