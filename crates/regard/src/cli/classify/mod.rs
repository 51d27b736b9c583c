//! `regard classify`: a label for a text, an image, a graph or its nodes. What is given says which:
//! one file for each.

mod graph;
mod image;
mod text;

use super::{Global, Outcome, inputs, write_json};
use crate::hub::Hub;
use anyhow::{Result, bail};
use clap::Args;
use regard_tasks::classify::{Label, RankedLabels};
use std::io::Write;

const EXAMPLES: &str = "\
Examples:
  regard classify 'A film to fall in love with.' --model runs/sst2
  regard classify --top-k 3 --json --model … < texts.txt
  regard classify --why 'It never gets off the ground.' --model runs/sst2-words
  regard classify --pair $'first text\\tsecond text' --model …
  regard classify --image shoe.png --model runs/fashion-mnist-vit
  regard classify --image t10k-images-idx3-ubyte.gz --index 7 --top-k 3 --model …
  regard classify --image shoe.png --attention looked.png --model …
  regard classify --image shoe.png --attention looked.png --head 3.1 --model …
  regard classify --graph cora --node 7 --svg looked.svg --model runs/cora-gat
  regard classify --graph edges.tsv --nodes nodes.tsv --model …

Without TEXT, --image and --graph, each line of standard input is a text. A line out for each text
or image: the label, a tab, its probability; with --top-k more of them, in the same line.

With --json: {\"label\", \"score\"}, with --top-k also {\"labels\": [{\"label\", \"score\"}, …]}, and
with --why also {\"words\": [{\"word\", \"weight\", \"start\", \"end\"}, …]}, in the order of the text.
Of an image also {\"file\", \"index\"}, and with --attention {\"attention\": {\"of\", \"file\",
\"weights\"}}, rows of patches from the top.

Images are PNG, JPEG or IDX (compressed or not): all that an IDX file holds, or the one of --index.
At the first file that cannot be read the program ends, after those before it were told of.
--attention draws where the model looked: by default the attention of all layers followed from what
speaks for the image to the patches (rollout), or with --head that of one head.

A graph is a file of edges, two nodes a line and numbers that are known of the edge, and one of
nodes, with tabs between its columns: number from 0, part (train, val, test or -), label (- for
none), features (7 is a 1 in column 7, 7:0.5 another number). Whether edges are seen from both ends
is the model's own wiring, by default they are. A line out for each node: its number, a tab, the
label, a tab, its probability, with --json also {\"node\"}; models that label whole graphs give one
line. --svg draws along which edges the model looked.
To learn from a graph of your own: regard train cora-gat --set data.set=files --set data.nodes=FILE
--set data.edges=FILE; from graphs that have a label each: regard train molecules-gat with the same
and --set data.graphs=FILE, whose lines are a number of nodes, a part and a label.

Of standard input, a line that gets no answer is told on standard error, gives an empty line (with
--json an object with error), and makes the exit code 1 at the end.";

/// Give a text, an image, a graph or its nodes a label
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Flags {
    /// A model: a folder, a name that `regard models` lists, or an id of the Hugging Face Hub
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// So many labels for each, the likeliest first
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

/// What is asked of any kind of model.
struct Asked<'a> {
    model: Option<&'a str>,
    top_k: usize,
    hub: &'a Hub,
    json: bool,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let Flags { model, top_k, text, image, graph, hub } = &flags;
    let asked = Asked { model: model.as_deref(), top_k: *top_k, hub, json: global.json };
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

/// The labels that were asked for, as a line.
fn line(labels: &RankedLabels) -> String {
    let column = |l: &Label| format!("{}\t{:.4}", l.label, l.score);
    labels.all().iter().map(column).collect::<Vec<_>>().join("\t")
}
