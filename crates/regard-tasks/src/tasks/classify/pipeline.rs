//! Text classification as a pipeline.

use super::{Label, WordWeight};
use crate::pipeline::Pipeline;
use crate::reader::TextEncoder;
use regard_models::text::Head;
use regard_models::{Error, ModelFiles, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A text, or a pair of texts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
pub enum Inputs {
    /// A single text.
    Text(String),
    /// A pair of texts, encoded together, for models trained on pairs.
    Pair {
        /// First text.
        text: String,
        /// Second text.
        text_pair: String,
    },
}

impl Inputs {
    /// Returns the text, and the second text of a pair.
    pub fn texts(&self) -> (&str, Option<&str>) {
        match self {
            Inputs::Text(text) => (text, None),
            Inputs::Pair { text, text_pair } => (text, Some(text_pair)),
        }
    }
}

/// Parameters of a classification request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// Maximum number of labels to return, the most probable first; 1 by default.
    pub top_k: usize,
    /// Whether to return the attention weight of each word; only for models that pool by attention.
    pub output_attentions: bool,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters { top_k: 1, output_attentions: false }
    }
}

/// Predicted label of a text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// Most probable label, and further ones if `top_k` is above 1.
    #[serde(flatten)]
    pub labels: RankedLabels,
    /// Words of the text with their attention weights; only present if `output_attentions` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<Vec<WordWeight>>,
}

/// Most probable label, and further ones if `top_k` is above 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankedLabels {
    /// Most probable label.
    #[serde(flatten)]
    pub best: Label,
    /// The `top_k` most probable labels, the best first; only present if `top_k` is above 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<Label>>,
}

impl RankedLabels {
    /// Keeps the first `top_k` of sorted labels.
    ///
    /// # Errors
    /// If `all` is empty.
    pub fn new(mut all: Vec<Label>, top_k: usize) -> Result<RankedLabels> {
        let none = || Error::invalid("config.json: id2label: the model has no labels");
        let best = all.first().cloned().ok_or_else(none)?;
        all.truncate(top_k.max(1));
        Ok(RankedLabels { best, labels: (top_k > 1).then_some(all) })
    }

    /// Returns all kept labels, the most probable first.
    pub fn all(&self) -> &[Label] {
        self.labels.as_deref().unwrap_or(std::slice::from_ref(&self.best))
    }
}

/// Text classification model.
pub struct Classifier(pub TextEncoder);

impl Pipeline for Classifier {
    const TASK: &'static str = "classify";

    type Inputs = Inputs;
    type Parameters = Parameters;
    type Response = Response;

    fn open(files: ModelFiles) -> Result<Classifier> {
        Ok(Classifier(TextEncoder::load(files, Head::Sequence)?))
    }

    fn run(&self, inputs: &[Inputs], parameters: &Parameters) -> Result<Vec<Result<Response>>> {
        let one = |input: &Inputs| {
            let texts = input.texts();
            if parameters.output_attentions && texts.1.is_some() {
                return Err(Error::invalid("output_attentions: not available for a pair of texts"));
            }
            let labels = self.0.classify(&[texts])?.remove(0);
            let words = match parameters.output_attentions {
                true => Some(self.0.weigh(texts.0)?.ok_or_else(|| {
                    Error::invalid("attention: this model does not weigh the words of a text by attention to find its \
                         label")
                })?),
                false => None,
            };
            Ok(Response { labels: RankedLabels::new(labels, parameters.top_k)?, words })
        };
        Ok(inputs.iter().map(one).collect())
    }
}
