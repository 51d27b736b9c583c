use super::*;
use crate::data::GraphData;
use crate::import::prepared::prepare;
use crate::import::{self, Import};

/// Writes both tables, calls `check` on their folder, and removes it.
fn with_tables(name: &str, nodes: &str, edges: &str, check: impl FnOnce(&Path)) {
    let folder = std::env::temp_dir().join(format!("regard-graph-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("nodes.csv"), nodes).unwrap();
    std::fs::write(folder.join("edges.csv"), edges).unwrap();
    check(&folder);
    std::fs::remove_dir_all(&folder).unwrap();
}

fn check(folder: &Path) -> (Option<Import>, String) {
    let mut request = Request::new("classify-graph");
    request.data = vec![folder.join("nodes.csv")];
    request.edges = Some(folder.join("edges.csv"));
    let (import, findings) = import::read(&request).unwrap();
    (import, findings.text())
}

/// Papers in two topics, in a ring; the last two have no label.
fn papers() -> (String, String) {
    let mut nodes = "paper,topic,x,y\n".to_string();
    let mut edges = "from,to\n".to_string();
    for i in 0..40 {
        let topic = if i < 38 { ["maths", "art"][i % 2] } else { "" };
        nodes += &format!("p{i},{topic},{},{}\n", i as f32 / 8.0, i % 3);
        edges += &format!("p{i},p{}\n", (i + 1) % 40);
    }
    (nodes, edges)
}

#[test]
fn tables_are_written_as_a_graph_that_is_the_same() {
    let (nodes, edges) = papers();
    with_tables("whole", &nodes, &edges, |folder| {
        let (import, told) = check(folder);
        assert_eq!(told, "");
        let import = import.unwrap();
        assert_eq!(import.parts, [34, 2, 2]);
        let said = import.summary.join("\n");
        for part in [
            "id: column 'paper', label: column 'topic', 2 features",
            "edges: column 'from' to column 'to'; 40 nodes, 40 edges, taken as undirected: 0.0 %",
            "2 labels: art 19, maths 19; 2 nodes have no label",
            "labels: 34 train, 2 valid, 2 test (split by seed 0)",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert_eq!((import.size.units, import.size.labels), (40, 2));
        let out = folder.join("out");
        import.write(&out).unwrap();
        let keys = import.recipe_keys(&out);
        assert_eq!(keys["data"]["wiring"]["both_ways"].as_bool(), Some(true));
        assert_eq!(keys["data"]["wiring"]["normalize"].as_bool(), Some(false));
        let path = |key: &str| PathBuf::from(keys["data"][key].as_str().unwrap());
        let graph = GraphData::read(&path("nodes"), &path("edges")).unwrap();
        assert_eq!((graph.len(), graph.columns, graph.edges.len()), (40, 2, 40));
        assert_eq!(graph.features[5], [(0, 0.625), (1, 2.0)]);
        assert_eq!(graph.features[0], []);
        assert_eq!(graph.labels[1].as_deref(), Some("art"));
        assert_eq!((&graph.labels[39], graph.parts[39]), (&None, None));
        assert!(graph.edges.contains(&(39, 0)) && !graph.edges.contains(&(0, 39)));
        for part in [Part::Valid, Part::Test] {
            let held = graph.parts.iter().filter(|each| **each == Some(part)).count();
            assert_eq!(held, 2);
        }
        let ids = std::fs::read_to_string(out.join("ids.tsv")).unwrap();
        assert!(ids.starts_with("0\tp0\n1\tp1\n"), "{ids}");
        let about = prepare(&import, include_str!("../../../presets/classify-graph.toml"), &out);
        assert!(about.contains("34 training and 2 validation labels"), "{about}");
        // A folder with both tables will do.
        let mut request = Request::new("classify-graph");
        request.data = vec![folder.to_path_buf()];
        assert!(import::read(&request).unwrap().0.is_some());
    });
}

#[test]
fn parts_directions_and_features_of_edges_are_read() {
    let mut nodes = "node\tsplit\tclass\n".to_string();
    let mut edges = "src,dst,weight,kind\n".to_string();
    for i in 0..20 {
        let part = ["train", "train", "val", "test", "none"][i % 5];
        nodes += &format!("{i}\t{part}\t{}\n", ["a", "b"][i % 2]);
        edges += &format!("{i},{},0.5,x\n", (i + 1) % 20);
        // One in three goes back.
        if i % 2 == 0 {
            edges += &format!("{},{i},2,x\n", (i + 1) % 20);
        }
    }
    with_tables("parts", "", &edges, |folder| {
        std::fs::remove_file(folder.join("nodes.csv")).unwrap();
        std::fs::write(folder.join("nodes.tsv"), &nodes).unwrap();
        let mut request = Request::new("classify-graph");
        request.data = vec![folder.to_path_buf()];
        let (import, findings) = import::read(&request).unwrap();
        let told = findings.text();
        assert!(told.contains("line 2: column 'kind' is \"x\", not a number"), "{told}");
        let import = import.unwrap_or_else(|| panic!("{told}"));
        assert_eq!(import.parts, [8, 4, 4]);
        let said = import.summary.join("\n");
        assert!(said.contains("part: column 'split', 0 features"), "{said}");
        assert!(said.contains("directed: 66.7 % of them have their reverse"), "{said}");
        assert!(said.contains("features: column 'weight'"), "{said}");
        assert!(said.contains("labels: 8 train, 4 valid, 4 test\n"), "{said}");
        let out = folder.join("out");
        import.write(&out).unwrap();
        assert_eq!(import.keys["data"]["wiring"]["both_ways"].as_bool(), Some(false));
        let graph = GraphData::read(&out.join("nodes.tsv"), &out.join("edges.tsv")).unwrap();
        assert_eq!((graph.columns, graph.edge_width(), graph.edges.len()), (20, 1, 30));
        assert_eq!(graph.features[7], [(7, 1.0)]);
        assert_eq!(
            graph.parts[..5],
            [Some(Part::Train), Some(Part::Train), Some(Part::Valid), Some(Part::Test), None]
        );
        assert_eq!(
            graph.edge_features[graph.edges.iter().position(|e| *e == (1, 0)).unwrap()],
            [2.0]
        );
    });
}

/// Files as those of Cora: no header, a list of edges with spaces.
#[test]
fn tables_without_a_header_are_read() {
    let word = |i: usize, w: usize| usize::from(i % 12 == w || i % 5 == w);
    let nodes: String = (0..30)
        .map(|i| {
            let words: Vec<String> = (0..12).map(|w| word(i, w).to_string()).collect();
            format!("{},{},{}\n", 1000 + i, words.join(","), ["Theory", "Rule_Learning"][i % 2])
        })
        .collect();
    let edges: String =
        (0..30).map(|i| format!("{} {}\n", 1000 + i, 1000 + (i + 7) % 30)).collect();
    with_tables("plain", &nodes, &format!("# a comment\n{edges}"), |folder| {
        let (import, told) = check(folder);
        let import = import.unwrap_or_else(|| panic!("{told}"));
        let said = import.summary.join("\n");
        assert!(said.contains("id: column 1, label: column 14, 12 features, no header"), "{said}");
        assert!(said.contains("counts of words: scaled to a sum of 1"), "{said}");
        assert_eq!(import.keys["data"]["wiring"]["normalize"].as_bool(), Some(true));
        assert_eq!(import.size.units, 30);
    });
}

/// Every defect is named with its line at once, and nothing is imported.
#[test]
fn defects_are_named_with_their_lines() {
    let (mut nodes, mut edges) = papers();
    nodes += "p3,art,1,1\n,art,1,1\nq1,art,inf,1\nq2,maths,1,\nq3,solo,500,1\nq4,art,z,1\n";
    edges += "p1,p1\np0,p1\np2,who\nnobody,p2\np7\n";
    with_tables("defects", &nodes, &edges, |folder| {
        let (import, told) = check(folder);
        assert!(import.is_none());
        for part in [
            "nodes.csv: line 42: the id \"p3\" is also on line 5",
            "nodes.csv: line 43: the id is empty",
            "nodes.csv: line 44: column 'x' is inf, need a finite number",
            "nodes.csv: line 45: column 'y' is empty",
            "nodes.csv: line 46: the label \"solo\" has one example",
            "nodes.csv: line 46: node \"q3\" has no edges",
            "nodes.csv: line 47: column 'x' is \"z\", need a number",
            "edges.csv: line 42: an edge of \"p1\" to itself",
            "edges.csv: line 43: is the edge of line 2",
            "edges.csv: line 44: there is no node \"who\"",
            "edges.csv: line 45: there is no node \"nobody\"",
            "edges.csv: line 46: has 1 column",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
    });
    let (nodes, edges) = papers();
    let edges = edges.as_str();
    let named: String = nodes.lines().map(|line| format!("{line},Title of it\n")).collect();
    let one = nodes.replace("maths", "art");
    let all_different: String = nodes
        .lines()
        .enumerate()
        .map(|(i, line)| {
            line.replace("maths", &format!("m{i}")).replace("art", &format!("a{i}")) + "\n"
        })
        .collect();
    let parted = "id,label,part\na,x,train\nb,y,learn\nc,x,valid\n";
    for (name, nodes, edges, wanted) in [
        ("text", &named, edges, "column 'Title of it' is text, such as \"Title of it\""),
        ("one", &one, edges, "line 2: every node has the label \"art\""),
        ("different", &all_different, edges, "does not look like labels"),
        ("part", &parted.to_string(), "a,b\nb,c\n", "line 3: the part is \"learn\""),
        ("none", &nodes, "from,to\n", "there are no edges"),
        ("unclear", &"id,x,y\na,1,2\nb,1,3\n".to_string(), "a,b\n", "which column is the label"),
    ] {
        with_tables(name, nodes, edges, |folder| {
            let (import, told) = check(folder);
            assert!(import.is_none() && told.contains(wanted), "{name}: {wanted}: {told}");
        });
    }
}

#[test]
fn requests_that_do_not_fit_are_refused() {
    let (nodes, edges) = papers();
    with_tables("request", &nodes, &edges, |folder| {
        let mut request = Request::new("classify-graph");
        request.data = vec![folder.join("nodes.csv")];
        let error = |request: &Request| import::read(request).err().unwrap().to_string();
        assert!(error(&request).contains("--edges: need a table of edges"));
        request.edges = Some(folder.join("edges.csv"));
        request.test = vec![folder.join("edges.csv")];
        assert!(error(&request).contains("--test: the parts of a graph"));
        request.test.clear();
        request.data.push(folder.join("edges.csv"));
        assert!(error(&request).contains("need one table of nodes"));
    });
}

/// Ids of edges are numbers as ids of nodes are: the columns are not guessed.
#[test]
fn edges_between_columns_of_unknown_names_are_found_or_refused() {
    let nodes: String = (0..40).map(|i| format!("{i},{},{}\n", ["a", "b"][i % 2], i % 5)).collect();
    let nodes = format!("id,label,x\n{nodes}");
    let edges = |first: usize| -> String {
        let row = |i: usize| format!("{},{i},{}\n", first + i, (i + 1) % 40);
        "number,one,other\n".to_string() + &(0..40).map(row).collect::<String>()
    };
    with_tables("ids", &nodes, &edges(0), |folder| {
        let (import, told) = check(folder);
        assert!(import.is_none() && told.contains("3 of 3 hold nodes"), "{told}");
        std::fs::write(folder.join("edges.csv"), edges(20)).unwrap();
        let (import, told) = check(folder);
        let summary = import.unwrap_or_else(|| panic!("{told}")).summary.join("\n");
        assert!(summary.contains("edges: column 'one' to column 'other'"), "{summary}");
    });
}

#[test]
fn a_bad_node_is_told_once_and_not_with_its_edges() {
    let (nodes, edges) = papers();
    let bad = nodes.replace("p3,art,0.375,0\n", "p3,art,oops,0\n");
    assert_ne!(nodes, bad);
    with_tables("once", &bad, &edges, |folder| {
        let (import, told) = check(folder);
        assert!(import.is_none());
        assert!(told.contains("error: feature (1)"), "{told}");
        assert!(told.contains("2 edges of nodes with problems are left out"), "{told}");
        assert!(!told.contains("unknown node") && !told.contains("isolated"), "{told}");
    });
}

/// What is only needed to train may be anything in a table whose nodes are labelled.
#[test]
fn a_column_named_part_is_not_read_to_predict() {
    let (nodes, edges) = papers();
    with_tables("predict", &nodes, &edges, |folder| {
        let import = check(folder).0.unwrap();
        import.write(&folder.join("run/data")).unwrap();
        let trained = import::TrainedImport::of_run(&folder.join("run")).unwrap().unwrap();
        let with_part = |line: &str| {
            let part = if line.starts_with("paper") { "part" } else { "chapter 3" };
            format!("{line},{part}\n")
        };
        let text: String = nodes.lines().map(with_part).collect();
        std::fs::write(folder.join("nodes.csv"), text).unwrap();
        let mut request = Request::new("classify-graph");
        request.data = vec![folder.join("nodes.csv")];
        request.edges = Some(folder.join("edges.csv"));
        request.purpose = import::Purpose::Predict(trained.clone());
        let (found, findings) = import::read_tables(&request).unwrap();
        let found = found.unwrap_or_else(|| panic!("{}", findings.text()));
        assert_eq!(found.ids.len(), 40);
        // To evaluate, the parts count.
        request.purpose = import::Purpose::Evaluate(trained);
        let told = import::read(&request).unwrap().1.text();
        assert!(told.contains("the part is \"chapter 3\""), "{told}");
    });
}

/// Ages beside numbers around 0 are scaled, in other tables by the numbers of training.
#[test]
fn features_of_large_numbers_are_scaled() {
    let (nodes, edges) = papers();
    let with_age = |line: &str| match line.split_once(',') {
        Some((id, rest)) if id.starts_with('p') && id != "paper" => {
            let number: usize = id[1..].parse().unwrap();
            format!("{id},{rest},{},7\n", 30 + 20 * (number % 2))
        }
        _ => format!("{line},age,seven\n"),
    };
    let text: String = nodes.lines().map(with_age).collect();
    with_tables("scale", &text, &edges, |folder| {
        let (import, told) = check(folder);
        let import = import.unwrap_or_else(|| panic!("{told}"));
        let said = import.summary.join("\n");
        assert!(said.contains("features: age scaled by mean 40.0, deviation 10.0;"), "{said}");
        assert!(!said.contains("x scaled") && !said.contains("y scaled"), "{said}");
        let out = folder.join("run/data");
        import.write(&out).unwrap();
        let graph = GraphData::read(&out.join("nodes.tsv"), &out.join("edges.tsv")).unwrap();
        assert_eq!(graph.features[5], [(0, 0.625), (1, 2.0), (2, 1.0), (3, 1.0)]);
        assert_eq!(graph.features[0], [(2, -1.0), (3, 1.0)]);
        let trained = import::TrainedImport::of_run(&folder.join("run")).unwrap().unwrap();
        let scales: Vec<bool> =
            trained.reading.columns["features"].iter().map(|c| c.scale.is_some()).collect();
        assert_eq!(scales, [false, false, true, true]);
        // All are of one age now: their own mean would make it 0.
        std::fs::write(folder.join("nodes.csv"), text.replace(",30,7\n", ",50,7\n")).unwrap();
        let mut request = Request::new("classify-graph");
        request.data = vec![folder.join("nodes.csv")];
        request.edges = Some(folder.join("edges.csv"));
        request.purpose = import::Purpose::Predict(trained.clone());
        let (found, findings) = import::read_tables(&request).unwrap();
        let found = found.unwrap_or_else(|| panic!("{}", findings.text()));
        assert_eq!(found.network.features[0], [(2, 1.0), (3, 1.0)]);
        request.purpose = import::Purpose::Evaluate(trained);
        let again = folder.join("again");
        import::read(&request).unwrap().0.unwrap().write(&again).unwrap();
        let graph = GraphData::read(&again.join("nodes.tsv"), &again.join("edges.tsv")).unwrap();
        assert_eq!(graph.features[0], [(2, 1.0), (3, 1.0)]);
    });
}

/// Records of runs from before features were scaled have no scales.
#[test]
fn records_without_scales_are_read() {
    let text = "{\"columns\": {\"features\": [{\"name\": \"x\", \"number\": 3}]}}";
    let reading: import::Reading = serde_json::from_str(text).unwrap();
    assert_eq!(reading.columns["features"][0].scale, None);
    assert!(!serde_json::to_string(&reading).unwrap().contains("scale"));
}
