//! Graphs: training on files, labels of nodes and of whole graphs, and what the model looked at.

use crate::program::{fails, folder, json, regard};
use std::path::{Path, PathBuf};

/// Two circles of friends; one node of each circle has a word of its own, of which its friends
/// know only by their edges.
fn network(here: &Path) -> (PathBuf, PathBuf) {
    let (mut nodes, mut edges) = (String::new(), String::new());
    for node in 0..40 {
        let circle = node % 2;
        let part = ["train", "train", "val", "test"][node / 2 % 4];
        let word = if node < 20 { 1 + circle } else { 0 };
        nodes += &format!("{node}\t{part}\t{}\t{word}\n", ["red", "blue"][circle]);
        for step in [2, 4, 6] {
            edges += &format!("{node} {}\n", (node + step) % 40);
        }
    }
    let files = (here.join("nodes.tsv"), here.join("edges.tsv"));
    std::fs::write(&files.0, nodes).unwrap();
    std::fs::write(&files.1, edges).unwrap();
    files
}

fn recipe(here: &Path, data: &str) -> String {
    let text = format!(
        "name = 'tiny'\ntask = 'graphs'\nseed = 1\n[data]\n{data}\n\
         [model]\nmodel_type = 'gat'\nhidden_size = 4\nnum_attention_heads = 2\ndropout = 0.0\n\
         attention_dropout = 0.0\n\
         [train]\nsteps = 60\nbatch_tokens = 16\nlr = 0.02\nwarmup = 1\nlabel_smoothing = 0.0\n\
         eval_every = 20\n"
    );
    let file = here.join("tiny.toml");
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_string()
}

#[test]
fn nodes_are_labelled_by_their_friends() {
    let here = folder("graph-nodes");
    let (nodes, edges) = network(&here);
    let data = format!("set = 'files'\nnodes = {nodes:?}\nedges = {edges:?}");
    let (recipe, run) = (recipe(&here, &data), here.join("run"));
    let run = run.to_str().unwrap();
    json(&["train", &recipe, "--out", run, "--json"]);
    let measured = json(&["eval", &recipe, "--model", run, "--json"]);
    assert_eq!(measured["accuracy"], 100.0, "{measured}");
    // Labels are the model's, whatever the files have of them, and so is how edges are meant.
    let fewer = std::fs::read_to_string(&nodes).unwrap().replace("\tblue\t", "\t-\t");
    let other = here.join("red.tsv");
    std::fs::write(&other, fewer).unwrap();
    let other = format!("data.nodes={}", other.display());
    let wiring = ["--set", "data.wiring.both_ways=false", "--set", &other];
    let red = json(&[&["eval", &recipe, "--model", run, "--json"][..], &wiring].concat());
    assert_eq!((&red["accuracy"], &red["asked"]), (&100.0.into(), &5.into()), "{red}");
    fails(&["eval", "molecules-gat", "--model", run], &["whole graphs", "labels nodes"]);
    let (nodes, edges) = (nodes.to_str().unwrap(), edges.to_str().unwrap());
    let picture = here.join("looked.svg");
    let given = ["classify", "--graph", edges, "--nodes", nodes, "--model", run];
    let asked = ["--node", "31", "--json", "--svg", picture.to_str().unwrap()];
    let said = json(&[&given[..], &asked].concat());
    assert_eq!((&said["label"], &said["node"]), (&"blue".into(), &31.into()));
    let svg = std::fs::read_to_string(picture).unwrap();
    assert!(svg.contains("node 31: blue") && svg.contains("<line"), "{svg}");
    let all = regard(&given).out;
    assert_eq!(all.lines().count(), 40);
    assert!(all.starts_with("0\tred\t"), "{all}");
    let error = regard(&[&given[..], &["--node", "40"]].concat()).err;
    assert!(error.contains("nodes 0 to 39"), "{error}");
    fails(&[&given[..], &["--svg", "x.svg"]].concat(), &["--node N"]);
    fails(&["classify", "--graph", edges, "--model", run], &["edges.tsv", "--nodes"]);
    fails(&["classify", "--graph", edges, "--image", "x.png"], &["cannot be used with"]);
    fails(&["classify", "--image", "x.png", "--svg", "x.svg"], &["cannot be used with"]);
    std::fs::write(edges, "0 1\n3 40\n").unwrap();
    let error = regard(&given).err;
    assert!(error.contains("edges.tsv") && error.contains("line 2"), "{error}");
}

#[test]
fn several_seeds_have_a_mean() {
    let here = folder("graph-seeds");
    let (nodes, edges) = network(&here);
    let data = format!("set = 'files'\nnodes = {nodes:?}\nedges = {edges:?}");
    let (recipe, run) = (recipe(&here, &data), here.join("run"));
    let run = run.to_str().unwrap();
    let said = json(&["train", &recipe, "--out", run, "--seeds", "3", "--json"]);
    assert_eq!(said["seeds"], serde_json::json!([0, 1, 2]));
    let accuracy = &said["marks"][0];
    let each: Vec<f64> =
        accuracy["each"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
    assert_eq!(accuracy["mean"], each.iter().sum::<f64>() / 3.0);
    assert!(here.join("run/seeds.json").is_file() && here.join("run/seed-2/model").is_dir());
    fails(&["inspect", run], &["several seeds", "seed-0"]);
    // What is done is not done again.
    let again = json(&["train", &recipe, "--out", run, "--seeds", "3", "--resume", "--json"]);
    assert_eq!(again, said);
}

/// Paths and rings: no node knows which it is in.
#[test]
fn graphs_of_files_have_labels_of_their_own() {
    let here = folder("graphs-files");
    let (mut graphs, mut nodes, mut edges, mut count) =
        (String::new(), String::new(), String::new(), 0);
    for number in 0..120 {
        let (size, ring) = (4 + number % 3, number % 2 == 0);
        let part = ["train", "train", "train", "val", "test"][number / 2 % 5];
        graphs += &format!("{size}\t{part}\t{}\n", if ring { "ring" } else { "path" });
        for node in 0..size {
            // The ends of a path have a mark, which one node of a ring has too.
            let mark = node == 0 || !ring && node + 1 == size;
            nodes += &format!("{}\t-\t-\t{}\n", count + node, u8::from(mark));
            if node + 1 < size {
                edges += &format!("{} {}\n", count + node, count + node + 1);
            }
        }
        if ring {
            edges += &format!("{} {count}\n", count + size - 1);
        }
        count += size;
    }
    let write = |name: &str, text: &str| {
        let file = here.join(name);
        std::fs::write(&file, text).unwrap();
        file
    };
    let files =
        [write("graphs.tsv", &graphs), write("nodes.tsv", &nodes), write("edges.tsv", &edges)];
    let [graphs, nodes, edges] = files;
    let data = format!("set = 'files'\ngraphs = {graphs:?}\nnodes = {nodes:?}\nedges = {edges:?}");
    let (recipe, run) = (recipe(&here, &data), here.join("run"));
    let run = run.to_str().unwrap();
    let error = regard(&["train", &recipe, "--out", run]).err;
    assert!(
        error.contains("model.readout: got 0, need 1 or more: files labels whole graphs"),
        "{error}"
    );
    let more = ["--set", "model.readout=4", "--set", "train.steps=300", "--json"];
    json(&[&["train", &recipe, "--out", run][..], &more].concat());
    let measured = json(&["eval", &recipe, "--model", run, "--json"]);
    assert_eq!(
        (&measured["asked"], &measured["accuracy"]),
        (&24.into(), &100.0.into()),
        "{measured}"
    );
}

#[test]
fn a_whole_graph_has_a_label() {
    let here = folder("graph-whole");
    let run = here.join("run");
    let run = run.to_str().unwrap();
    let shorter = ["train.steps=500", "train.warmup=50", "data.count=2000"];
    let shorter: Vec<&str> = shorter.iter().flat_map(|key| ["--set", *key]).collect();
    json(&[&["train", "molecules-gat", "--out", run, "--json"][..], &shorter].concat());
    let measured = json(&["eval", "molecules-gat", "--model", run, "--json"]);
    assert!(measured["accuracy"].as_f64().unwrap() > 85.0, "{measured}");
    // An acid: a carbon with two oxygens, of which one has a double bond.
    let nodes = "0\t-\t-\t0\n1\t-\t-\t2\n2\t-\t-\t2\n3\t-\t-\t0\n";
    let (of_nodes, of_edges) = (here.join("n"), here.join("e"));
    std::fs::write(&of_nodes, nodes).unwrap();
    std::fs::write(&of_edges, "0 1 0 1\n0 2 1 0\n0 3 1 0\n").unwrap();
    let picture = here.join("acid.svg");
    let said = json(&[
        "classify",
        "--graph",
        of_edges.to_str().unwrap(),
        "--nodes",
        of_nodes.to_str().unwrap(),
        "--model",
        run,
        "--json",
        "--svg",
        picture.to_str().unwrap(),
    ]);
    assert_eq!(said["label"], "acid", "{said}");
    // An atom alone has no bond that could lack something.
    std::fs::write(&of_nodes, "0\t-\t-\t0\n").unwrap();
    std::fs::write(&of_edges, "").unwrap();
    let (of_nodes, of_edges) = (of_nodes.to_str().unwrap(), of_edges.to_str().unwrap());
    let alone = ["classify", "--graph", of_edges, "--nodes", of_nodes, "--model", run, "--json"];
    assert!(json(&alone)["label"].is_string());
    assert!(std::fs::read_to_string(picture).unwrap().contains("acid ("));
}
