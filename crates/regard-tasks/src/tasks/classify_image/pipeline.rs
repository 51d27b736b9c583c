//! Image classification as a pipeline.

use super::{Looks, Ready, Viewer};
use crate::attachment::Attachment;
use crate::classify::{Label, RankedLabels};
use crate::data::Picture;
use crate::pipeline::Pipeline;
use regard_models::{Error, ModelFiles, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of a classification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// Labels to give at most, the likeliest first.
    pub top_k: usize,
    /// Also return the attention to each patch: of all layers together (rollout), or of `head`.
    pub output_attentions: bool,
    /// Layer and head, both from 0, whose attention is returned.
    pub head: Option<(usize, usize)>,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters { top_k: 1, output_attentions: false, head: None }
    }
}

/// The label of an image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// The likeliest, and others if they were asked for.
    #[serde(flatten)]
    pub labels: RankedLabels,
    /// The caller's name for the file of the image, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Number of the image in that file, if it holds several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
    /// The attention to each patch, if it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attention: Option<AttentionMap>,
}

/// Attention to the patches of an image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AttentionMap {
    /// `rollout`, or layer and head: `3.1`.
    pub of: String,
    /// The picture that was drawn of it, if one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Rows of patches from the top.
    pub weights: Vec<Vec<f64>>,
}

impl AttentionMap {
    /// All layers together, or one head.
    ///
    /// # Errors
    /// If the model has no such head.
    pub fn new(looks: &Looks, head: Option<(usize, usize)>) -> Result<AttentionMap> {
        let (of, weights) = match head {
            None => ("rollout".into(), looks.rollout()),
            Some((layer, head)) => (format!("{layer}.{head}"), looks.head(layer, head)?),
        };
        let weights = weights.chunks_exact(looks.grid[1]).map(<[f64]>::to_vec).collect();
        Ok(AttentionMap { of, file: None, weights })
    }
}

impl Pipeline for Viewer {
    const TASK: &'static str = "classify-image";

    type Inputs = Attachment<Picture>;
    type Parameters = Parameters;
    type Response = Response;

    fn open(files: ModelFiles) -> Result<Viewer> {
        Viewer::load(files)
    }

    fn run(
        &self,
        inputs: &[Attachment<Picture>],
        parameters: &Parameters,
    ) -> Result<Vec<Result<Response>>> {
        if parameters.head.is_some() && !parameters.output_attentions {
            return Err(Error::invalid("head: it is that of output_attentions, which is off"));
        }
        if parameters.output_attentions {
            let one = |input: &Attachment<Picture>| {
                let (labels, looks) = self.look(&input.data)?;
                let map = AttentionMap::new(&looks, parameters.head)?;
                Ok(Response { attention: Some(map), ..response(input, labels, parameters)? })
            };
            return Ok(inputs.iter().map(one).collect());
        }
        // One image that cannot be read does not hold up the others, which are read together.
        let ready: Vec<Result<Ready>> = inputs.iter().map(|i| self.prepare(&i.data)).collect();
        let readable: Vec<Ready> = ready.iter().flatten().cloned().collect();
        let mut labels = match readable.is_empty() {
            true => vec![],
            false => self.classify(&readable)?,
        }
        .into_iter();
        let one = |(input, ready): (&Attachment<Picture>, Result<Ready>)| {
            ready?;
            let labels = labels.next().ok_or_else(|| Error::invalid("a model without labels"))?;
            response(input, labels, parameters)
        };
        Ok(inputs.iter().zip(ready).map(one).collect())
    }
}

fn response(
    input: &Attachment<Picture>,
    labels: Vec<Label>,
    parameters: &Parameters,
) -> Result<Response> {
    let labels = RankedLabels::new(labels, parameters.top_k)?;
    Ok(Response { labels, file: input.file.clone(), index: input.index, attention: None })
}
