//! Image classification as a pipeline.

use super::viewer::NO_HEAD;
use super::{AttentionMaps, ImageClassifier, Ready};
use crate::attachment::Attachment;
use crate::classify::{Label, RankedLabels};
use crate::data::Image;
use crate::pipeline::Pipeline;
use regard_models::{Error, ModelFiles, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of an image classification request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// Maximum number of labels to return, the most probable first; 1 by default.
    pub top_k: usize,
    /// Whether to return the attention on each patch: of all layers combined (rollout), or of
    /// `head`.
    pub output_attentions: bool,
    /// Layer and head, both from 0, whose attention is returned; rollout by default. Requires
    /// `output_attentions`.
    pub head: Option<(usize, usize)>,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters { top_k: 1, output_attentions: false, head: None }
    }
}

/// Predicted label of an image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// Most probable label, and further ones if `top_k` is above 1.
    #[serde(flatten)]
    pub labels: RankedLabels,
    /// Name of the image file as given in the request; absent if none was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Index of the image in its file; only present if the file holds several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
    /// Attention on each patch; only present if `output_attentions` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attention: Option<AttentionMap>,
}

/// Attention on the patches of an image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AttentionMap {
    /// Source of the weights: `rollout`, or layer and head such as `3.1`.
    pub of: String,
    /// Path of the picture drawn of it; absent if none was drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Weights of the patches, row by row from the top.
    pub weights: Vec<Vec<f64>>,
}

impl AttentionMap {
    /// Computes the map of all layers combined, or of one head.
    ///
    /// # Errors
    /// If the model has no such head.
    pub fn new(looks: &AttentionMaps, head: Option<(usize, usize)>) -> Result<AttentionMap> {
        let (of, weights) = match head {
            None => ("rollout".into(), looks.rollout()),
            Some((layer, head)) => (format!("{layer}.{head}"), looks.head(layer, head)?),
        };
        let weights = weights.chunks_exact(looks.grid[1]).map(<[f64]>::to_vec).collect();
        Ok(AttentionMap { of, file: None, weights })
    }
}

impl Pipeline for ImageClassifier {
    const TASK: &'static str = "classify-image";

    type Inputs = Attachment<Image>;
    type Parameters = Parameters;
    type Response = Response;

    fn open(files: ModelFiles) -> Result<ImageClassifier> {
        ImageClassifier::load(files)
    }

    fn run(
        &self,
        inputs: &[Attachment<Image>],
        parameters: &Parameters,
    ) -> Result<Vec<Result<Response>>> {
        if parameters.head.is_some() && !parameters.output_attentions {
            return Err(Error::invalid("head: requires output_attentions, which is off"));
        }
        if parameters.output_attentions {
            let one = |input: &Attachment<Image>| {
                let (labels, looks) = self.look(&input.data)?;
                let map = AttentionMap::new(&looks, parameters.head)?;
                Ok(Response { attention: Some(map), ..response(input, labels, parameters)? })
            };
            return Ok(inputs.iter().map(one).collect());
        }
        // An invalid image gets an error; the others are batched.
        let ready: Vec<Result<Ready>> = inputs.iter().map(|i| self.prepare(&i.data)).collect();
        let readable: Vec<Ready> = ready.iter().flatten().cloned().collect();
        let mut labels = match readable.is_empty() {
            true => vec![],
            false => self.classify(&readable)?,
        }
        .into_iter();
        let one = |(input, ready): (&Attachment<Image>, Result<Ready>)| {
            ready?;
            let labels = labels.next().ok_or_else(|| Error::invalid(NO_HEAD))?;
            response(input, labels, parameters)
        };
        Ok(inputs.iter().zip(ready).map(one).collect())
    }
}

fn response(
    input: &Attachment<Image>,
    labels: Vec<Label>,
    parameters: &Parameters,
) -> Result<Response> {
    let labels = RankedLabels::new(labels, parameters.top_k)?;
    Ok(Response { labels, file: input.file.clone(), index: input.index, attention: None })
}
