//! Text classification as a pipeline.

use super::{Label, Weight};
use crate::pipeline::Pipeline;
use crate::reader::Reader;
use regard_models::text::Head;
use regard_models::{Error, ModelFiles, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A text, or a pair of texts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
pub enum Inputs {
    /// A text.
    Text(String),
    /// A pair, as a model of pairs reads it.
    Pair {
        /// The first text.
        text: String,
        /// The second.
        text_pair: String,
    },
}

impl Inputs {
    /// The text, and the second one of a pair.
    pub fn texts(&self) -> (&str, Option<&str>) {
        match self {
            Inputs::Text(text) => (text, None),
            Inputs::Pair { text, text_pair } => (text, Some(text_pair)),
        }
    }
}

/// Settings of a classification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// Labels to give at most, the likeliest first.
    pub top_k: usize,
    /// Also return the weight of each word, of models that pool words by attention.
    pub output_attentions: bool,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters { top_k: 1, output_attentions: false }
    }
}

/// The label of a text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// The likeliest, and others if they were asked for.
    #[serde(flatten)]
    pub labels: RankedLabels,
    /// The words of the text with their weights, if they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<Vec<Weight>>,
}

/// The likeliest label, and others if they were asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankedLabels {
    /// The likeliest.
    #[serde(flatten)]
    pub best: Label,
    /// With `top_k` above 1, that many, the likeliest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<Label>>,
}

impl RankedLabels {
    /// The `top_k` first of labels in their order.
    ///
    /// # Errors
    /// If there are none.
    pub fn new(mut all: Vec<Label>, top_k: usize) -> Result<RankedLabels> {
        let best = all.first().cloned().ok_or_else(|| Error::invalid("a model without labels"))?;
        all.truncate(top_k.max(1));
        Ok(RankedLabels { best, labels: (top_k > 1).then_some(all) })
    }

    /// All that were asked for, the likeliest first.
    pub fn all(&self) -> &[Label] {
        self.labels.as_deref().unwrap_or(std::slice::from_ref(&self.best))
    }
}

/// A model that gives texts labels.
pub struct Classifier(pub Reader);

impl Pipeline for Classifier {
    const TASK: &'static str = "classify";

    type Inputs = Inputs;
    type Parameters = Parameters;
    type Response = Response;

    fn open(files: ModelFiles) -> Result<Classifier> {
        Ok(Classifier(Reader::load(files, Head::Sequence)?))
    }

    fn run(&self, inputs: &[Inputs], parameters: &Parameters) -> Result<Vec<Result<Response>>> {
        let one = |input: &Inputs| {
            let texts = input.texts();
            if parameters.output_attentions && texts.1.is_some() {
                return Err(Error::invalid("output_attentions: words of a pair have no weights"));
            }
            let labels = self.0.classify(&[texts])?.remove(0);
            let words = match parameters.output_attentions {
                true => Some(self.0.weigh(texts.0)?.ok_or_else(|| {
                    Error::invalid("attention: this model does not pool words by attention")
                })?),
                false => None,
            };
            Ok(Response { labels: RankedLabels::new(labels, parameters.top_k)?, words })
        };
        Ok(inputs.iter().map(one).collect())
    }
}
