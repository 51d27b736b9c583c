//! `regard attend`: translations, and maps as files.

use crate::arrays::{good, npz, write};
use crate::markup::check_well_formed;
use crate::program::{fails, folder, json, regard};
use crate::tiny::{BLIND, TRANSFORMER, model};
use serde_json::Value;
use std::io::Read;
use std::path::{Path, PathBuf};

const TEXT: &str = "They are <b>watching</b> & \"us\" 🙂.";

fn name(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn matrix(object: &Value, key: &str) -> Vec<Vec<f64>> {
    serde_json::from_value(object[key].clone()).unwrap_or_else(|_| panic!("{key}: {object}"))
}

#[test]
fn a_translation_is_drawn_and_written() {
    let model = model("attend_translate", TRANSFORMER);
    let folder = folder("attend_translate_files");
    let [svg, html, arrays] = ["map.svg", "map.html", "map.npz"].map(|file| folder.join(file));
    let files = ["--svg", name(&svg), "--html", name(&html), "--npz", name(&arrays)];
    let base = ["attend", "--translate", TEXT, "--model", &model];
    let ran = regard(&[&base[..], &files].concat());
    // Each file is announced with its size.
    let size =
        |path: &Path| regard_tasks::say::many(path.metadata().unwrap().len() as usize, "byte");
    let wrote = |path: &PathBuf| format!("wrote {}, {}\n", path.display(), size(path));
    let mut told: Vec<String> = [&svg, &html, &arrays].map(wrote).to_vec();
    told.sort();
    let mut lines: Vec<String> = ran.err.lines().map(|line| format!("{line}\n")).collect();
    lines.sort();
    assert_eq!((ran.code, lines), (0, told));
    assert!(ran.out.contains('│') && ran.out.contains("end of the source"), "{}", ran.out);

    let object = json(&[&base[..], &["--json"]].concat());
    let (words, tokens) = (matrix(&object, "attention"), matrix(&object, "cross_attention"));
    let count = |key: &str| object[key].as_array().unwrap().len();
    assert_eq!((words.len(), words[0].len()), (count("words"), count("source_words")));
    assert_eq!((tokens.len(), tokens[0].len()), (count("tokens"), count("source_tokens")));
    for row in &tokens {
        assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-5, "{row:?}");
    }
    assert_eq!(object["source_tokens"].as_array().unwrap().last().unwrap(), "</s>");

    for path in [&svg, &html] {
        let text = std::fs::read_to_string(path).unwrap();
        check_well_formed(&text);
        let cells = count("words") * count("source_words");
        assert_eq!(text.matches("<rect class=\"cell\"").count(), cells, "{}", path.display());
        assert!(text.contains(": 0."), "the numbers are there to be pointed at");
    }
    // Attributes alone: converters draw an SVG file as a browser does. A page may be dark.
    assert!(!std::fs::read_to_string(&svg).unwrap().contains("<style"));
    assert!(std::fs::read_to_string(&html).unwrap().contains("prefers-color-scheme:dark"));

    let mut zip = zip::ZipArchive::new(std::fs::File::open(&arrays).unwrap()).unwrap();
    let mut array = |name: &str| {
        let mut bytes = vec![];
        zip.by_name(&format!("{name}.npy")).unwrap().read_to_end(&mut bytes).unwrap();
        let header = u16::from_le_bytes([bytes[8], bytes[9]]) as usize + 10;
        (String::from_utf8_lossy(&bytes[..header]).to_string(), bytes.split_off(header))
    };
    let (header, bytes) = array("attention");
    assert!(header.contains(&format!("({}, {}, )", tokens.len(), tokens[0].len())), "{header}");
    let first = f32::from_le_bytes(bytes[..4].try_into().unwrap());
    assert!((f64::from(first) - tokens[0][0]).abs() < 1e-6);
    let (header, bytes) = array("source_words");
    let letters: String = bytes
        .chunks_exact(4)
        .map(|c| char::from_u32(u32::from_le_bytes(c.try_into().unwrap())).unwrap())
        .collect();
    assert!(header.contains("'<U") && letters.starts_with("They") && letters.contains('🙂'));

    let ran = regard(&[&base[..], &["--tokens"]].concat());
    assert!(ran.out.contains("▁They") || ran.out.contains('▁'), "{}", ran.out);
    let rows = regard(&[&base[..], &["--rows", "0:1", "--keys", "1:3"]].concat());
    assert_eq!(rows.out.lines().filter(|line| line.contains('│')).count(), 1, "{}", rows.out);
}

#[test]
fn other_maps_are_written_too() {
    let folder = folder("attend_pictures");
    let (svg, html) = (folder.join("map.svg"), folder.join("map.html"));
    let ran = regard(&["attend", "--demo", "a b<c", "--svg", name(&svg), "--html", name(&html)]);
    assert_eq!((ran.code, ran.err.matches("wrote ").count()), (0, 2), "{}", ran.err);
    for path in [&svg, &html] {
        let text = std::fs::read_to_string(path).unwrap();
        check_well_formed(&text);
        assert_eq!(
            text.matches("<rect class=\"cell\"").count(),
            4 * 4,
            "four heads over two words"
        );
    }
    let arrays = write(&folder, "qkv.npz", &npz(&good()));
    let ran = regard(&["attend", &arrays, "--keys", "0:2", "--svg", name(&svg), "--json"]);
    assert_eq!((ran.code, ran.err.lines().count()), (0, 1), "{}", ran.err);
    let text = std::fs::read_to_string(&svg).unwrap();
    check_well_formed(&text);
    assert_eq!(text.matches("<rect class=\"cell\"").count(), 6);
    let many = "word ".repeat(300);
    fails(&["attend", "--demo", "--json", "--svg", name(&svg), &many], &["cells", "--rows"]);
    assert_eq!(std::fs::read_to_string(&svg).unwrap(), text, "what was there stays");
}

#[test]
fn what_cannot_be_drawn_is_an_error() {
    let (sees, blind) = (model("attend_sees", TRANSFORMER), model("attend_blind", BLIND));
    let base = ["attend", "--translate", "--model"];
    fails(&[&base[..], &[&blind, "Go on!"]].concat(), &["returns no attention weights"]);
    fails(&[&base[..], &[&sees, " "]].concat(), &["without words"]);
    fails(&[&base[..], &[&sees]].concat(), &["without words"]);
    fails(&[&base[..], &[&sees, "a", "--mask", "causal"]].concat(), &["mask", "for a FILE"]);
    fails(&["attend", "--demo", "--translate", "a"], &["cannot be used with"]);
    fails(&["attend", "--demo", "--model", &sees], &["--translate"]);
}
