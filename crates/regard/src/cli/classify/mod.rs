//! `regard classify`: classification of texts, images, graphs and nodes, one module for each. The
//! flags decide which.

mod graph;
mod image;
mod tables;
mod text;

use super::{Global, Outcome, inputs, write_json};
use crate::hub::Hub;
use anyhow::{Result, bail};
use clap::Args;
use regard_tasks::classify::{Label, RankedLabels};
use std::io::Write;

const EXAMPLES: &str = "\
Predicts labels for texts (TEXT, lines of standard input, or --file), images (--image), nodes of a
graph or whole graphs (--graph). Prints the label, a tab and its probability, one line per text or
image; with --top-k, further pairs on the same line. Built in are `genre`, for English sentences
(answers, email, newsgroup, reviews, weblog), and `clothes`, for images.

Examples:
  regard classify 'The food was great.'            # built-in model `genre`
  regard classify --image shoe.png                 # your image; built-in model `clothes`
  regard classify --image shoe.png --top-k 3 --attention attention.png
  regard classify 'A fine film.' --attention-weights --model runs/sst2-words
  regard classify --json --model runs/sst2-words < texts.txt   # your file, one text per line
  regard classify --file reviews.csv --text title,body --model runs/sst2-words   # your table
  regard classify --graph cora --node 10 --svg graph.svg   # `cora`; needs the data set planetoid
Train the model of three of them first: regard train sst2-words.

Images: reads PNG, JPEG and IDX files (also .gz). Transparent parts of a PNG are shown on white.
Classifies every image of an IDX file, or only number --index. Stops at the first unreadable file;
results for earlier files are still printed.
--attention draws the attention from the pooled token to the patches, combined over all layers
(attention rollout), or of one head with --head.

Tables: --file reads a CSV (with commas, semicolons, or what a first line sep=; says), TSV or JSON
lines file, one text per row, in order; --text names the columns. Standard input is a text per line;
if it looks like a table, that is an error.

Pairs of texts: --pair, with a tab between first and second text.

Your own graph, after regard train classify-graph --data nodes.csv --edges edges.csv --out runs/g:
  regard classify --graph nodes.csv --edges edges.csv --model runs/g
labels the nodes of these tables or of others with the same features, also nodes without a label.
They are read with the columns of training; a column of labels may be missing. Prints the id of each
node, a tab, the label, a tab and its probability; --node takes ids.

Other graphs: --graph takes a file of edges, two node numbers per line and optional edge features,
and --nodes a file of nodes with tab-separated columns: node number from 0, split (train, valid,
test or -), label (- for none), features, separated by spaces: `7` sets feature 7 to 1, `7:0.5` sets
it to 0.5. Edges are undirected unless the model's configuration says otherwise. Prints one line per
node: number, tab, label, tab, probability; a model that labels whole graphs prints one line. --svg
draws the attention along the edges.
To train on such files: regard train cora-gat --set data.set=files --set data.nodes=FILE --set
data.edges=FILE. For whole graphs: regard train molecules-gat with the same flags and --set
data.graphs=FILE, whose lines are the number of nodes, the split and the label of a graph.

--json prints {\"label\", \"score\"}; with --top-k also {\"labels\": [{\"label\", \"score\"}, …]}; with
--attention-weights also {\"words\": [{\"word\", \"weight\", \"start\", \"end\"}, …]} in text order. For an
image also {\"file\", \"index\"}, with --attention also {\"attention\": {\"of\", \"file\", \"weights\"}};
weights has one row per row of patches, top first. For a node also {\"node\"}, its id or number.

If a line of standard input fails, the error goes to stderr, an empty line (or {\"error\": …} with
--json) is printed, and the exit code is 1.";

/// Classify texts, images, graphs or nodes of a graph
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Flags {
    /// Model: a folder, a name listed by `regard models`, or a Hugging Face Hub id
    /// [default: `genre`, `clothes` for --image, `cora` for --graph, all built in]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Number of labels per input, the most probable first
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = inputs::at_least_one)]
    top_k: usize,
    #[command(flatten)]
    text: text::Flags,
    #[command(flatten)]
    image: image::Flags,
    #[command(flatten)]
    graph: graph::Flags,
    #[command(flatten)]
    hub: Hub,
}

/// Settings shared by texts, images and graphs.
struct CommonOptions<'a> {
    model: Option<&'a str>,
    top_k: usize,
    hub: &'a Hub,
    json: bool,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let Flags { model, top_k, text, image, graph, hub } = &flags;
    let asked = CommonOptions { model: model.as_deref(), top_k: *top_k, hub, json: global.json };
    if image.is_asked() || graph.is_asked() {
        text.file.refuse("classify", "images and graphs")?;
    }
    if image.is_asked() {
        image::run(image, &asked, out)
    } else if graph.is_asked() {
        graph::run(graph, &asked, out)
    } else {
        // clap does not check `requires = "image"` where TEXT, which excludes --image, is given.
        if let Some((flag, of)) = image.stray().or_else(|| graph.stray()) {
            bail!("classify: {flag} needs {of}");
        }
        text::run(text, &asked, out)
    }
}

/// Formats labels and probabilities as a tab-separated line.
fn line(labels: &RankedLabels) -> String {
    let column = |l: &Label| format!("{}\t{:.4}", l.label, l.score);
    labels.all().iter().map(column).collect::<Vec<_>>().join("\t")
}
