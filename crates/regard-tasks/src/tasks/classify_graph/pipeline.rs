//! Graph and node classification as a pipeline.

use super::GraphClassifier;
use crate::classify::{Label, RankedLabels};
use crate::data::GraphData;
use crate::pipeline::Pipeline;
use regard_models::{Error, ModelFiles, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A graph to classify.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Files")]
pub struct Inputs {
    /// Nodes, edges and features of the graph.
    pub network: GraphData,
}

/// A graph, given as the contents of a file of nodes and a file of edges.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Files {
    /// Nodes, one line per node with tab-separated columns: index from 0, part (train, val, test or
    /// -), label (- for none), features (`7` is the value 1 in column 7, `7:0.5` another value).
    nodes: String,
    /// Edges, one line per edge: the indices of two nodes, and optional edge features.
    edges: String,
}

impl TryFrom<Files> for Inputs {
    type Error = Error;

    fn try_from(files: Files) -> Result<Inputs> {
        Ok(Inputs { network: GraphData::parse(&files.nodes, &files.edges)? })
    }
}

impl JsonSchema for Inputs {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Graph".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Files::json_schema(generator)
    }
}

/// Parameters of a graph classification request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// Maximum number of labels per node or graph, the most probable first; 1 by default.
    pub top_k: usize,
    /// Indices of the nodes to label; all if empty, which is the default.
    pub nodes: Vec<usize>,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters { top_k: 1, nodes: vec![] }
    }
}

/// Predicted labels of a graph's nodes, or of the graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// One prediction per requested node, or a single one for the graph.
    pub predictions: Vec<Prediction>,
}

/// Predicted label of a node or a graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Prediction {
    /// Most probable label, and further ones if `top_k` is above 1.
    #[serde(flatten)]
    pub labels: RankedLabels,
    /// Index of the node; absent if the label is that of the whole graph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<usize>,
}

impl Pipeline for GraphClassifier {
    const TASK: &'static str = "classify-graph";

    type Inputs = Inputs;
    type Parameters = Parameters;
    type Response = Response;

    fn open(files: ModelFiles) -> Result<GraphClassifier> {
        GraphClassifier::load(files)
    }

    fn run(&self, inputs: &[Inputs], parameters: &Parameters) -> Result<Vec<Result<Response>>> {
        let one = |Inputs { network }: &Inputs| {
            self.check_nodes(network, &parameters.nodes)?;
            self.response(self.label(network)?, parameters)
        };
        Ok(inputs.iter().map(one).collect())
    }
}

impl GraphClassifier {
    /// Checks that the graph has these nodes, and that the model labels nodes if there are any.
    pub fn check_nodes(&self, network: &GraphData, nodes: &[usize]) -> Result<()> {
        if let Some(node) = nodes.iter().find(|node| **node >= network.len()) {
            let last = network.len().saturating_sub(1);
            return Err(Error::invalid(format!(
                "node: got {node}, the graph has nodes 0 to {last}"
            )));
        }
        match self.reads_graphs() && !nodes.is_empty() {
            true => Err(Error::invalid("node: this model labels whole graphs")),
            false => Ok(()),
        }
    }

    /// Creates the response from the labels of all nodes or of the graph.
    pub fn response(&self, labels: Vec<Vec<Label>>, parameters: &Parameters) -> Result<Response> {
        let chosen: Vec<usize> = match parameters.nodes.is_empty() {
            true => (0..labels.len()).collect(),
            false => parameters.nodes.clone(),
        };
        let one = |at: usize| {
            let labels = RankedLabels::new(labels[at].clone(), parameters.top_k)?;
            Ok(Prediction { labels, node: (!self.reads_graphs()).then_some(at) })
        };
        Ok(Response { predictions: chosen.into_iter().map(one).collect::<Result<_>>()? })
    }
}
