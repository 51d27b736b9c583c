//! `regard attend`, with words and with files.

use crate::arrays::{bytes, floats, good, npy, npz, numbers, write};
use crate::program::{command, fails, finish, folder, json, regard};
use serde_json::Value;
use std::io::Write;
use std::process::Stdio;

fn weights(document: &Value) -> Vec<Vec<f64>> {
    serde_json::from_value(document["weights"].clone()).expect("a matrix of weights")
}

#[test]
fn the_demo_draws_words() {
    let ran = regard(&["attend", "--demo"]);
    assert_eq!((ran.code, &*ran.err), (0, ""));
    for word in ["watching", "watchers", "form", "causal", "sparse", "█", "nothing learned"] {
        assert!(ran.out.contains(word), "{word}: {}", ran.out);
    }
    assert!(!ran.out.contains('\x1b'), "no colours in a pipe");
    let ran = regard(&["attend", "--demo", "--color", "always", "ein kleines Ding"]);
    assert!(ran.out.contains("kleines") && ran.out.contains("\x1b[48;5;"), "{}", ran.out);
    let mut truly = command(&["attend", "--demo", "--color", "always"]);
    truly.env("COLORTERM", "truecolor");
    assert!(finish(truly).out.contains("\x1b[48;2;"));
}

#[test]
fn the_demo_fits_the_terminal_and_says_what_it_cut() {
    let mut narrow = command(&["attend", "--demo", &"word ".repeat(100)]);
    narrow.env("COLUMNS", "60");
    let ran = finish(narrow);
    let drawn = ran.out.lines().filter(|line| line.contains('│'));
    assert!(drawn.clone().count() >= 64);
    assert!(drawn.clone().all(|line| line.chars().count() <= 60), "{}", ran.out);
    assert!(ran.out.contains("of 100, cut to the width"), "{}", ran.out);
    assert!(ran.out.contains("queries 0:64 of 100"), "{}", ran.out);
}

#[test]
fn the_demo_in_json_has_rows_that_sum_to_one() {
    let document = json(&["attend", "--demo", "--json", "a ab abc"]);
    assert_eq!(document["words"], serde_json::json!(["a", "ab", "abc"]));
    for head in document["heads"].as_array().unwrap() {
        for row in weights(head) {
            assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-5, "{head}");
        }
    }
}

#[test]
fn the_demo_reads_standard_input_and_shows_no_control_characters() {
    let mut child = command(&["attend", "--demo", "-"]);
    let child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = child.unwrap();
    child.stdin.take().unwrap().write_all(b"one \x1b[31mred two").unwrap();
    let out = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    assert!(out.contains("one") && !out.contains('\x1b'), "{out}");
}

#[test]
fn a_file_is_attended_to() {
    let folder = folder("a_file");
    let path = write(&folder, "qkv.npz", &npz(&good()));
    let document = json(&["attend", &path, "--mask", "causal", "--head", "1", "--json"]);
    assert_eq!(document["shape"]["H"], 2);
    let map = weights(&document);
    assert_eq!((map.len(), map[0].len()), (3, 3));
    assert_eq!(map[0], [1.0, 0.0, 0.0]);
    assert_eq!(document["entropy"][0], 0.0);
    assert_eq!(document["top_keys"][0][0]["key"], 0);
    // A query that sees one key gets its value: the first row of the second head.
    let out: Vec<f32> = serde_json::from_value(document["out"][0].clone()).unwrap();
    assert_eq!(out, &numbers(24)[12..16]);
    let rows =
        json(&["attend", &path, "--mask", "causal", "--head", "1", "--rows", "1:2", "--json"]);
    assert_eq!(weights(&rows), &map[1..2]);
    let ran = regard(&["attend", &path, "--mask", "causal"]);
    assert!(ran.code == 0 && ran.out.contains("0 │██· ·"), "{}", ran.out);
}

#[test]
fn other_shapes_orders_and_types_say_the_same() {
    let folder = folder("other_shapes");
    let (data, shape) = (numbers(12), "(3, 4)");
    let same = |kind: &str, array: Vec<u8>| {
        let arrays = ["q", "k", "v"].map(|name| (name, array.clone()));
        let path = write(&folder, &format!("{kind}.npz"), &npz(&arrays));
        weights(&json(&["attend", &path, "--json"]))
    };
    let want = same("f4", floats(shape, &data));
    let doubles: Vec<u8> = data.iter().flat_map(|x| f64::from(*x).to_le_bytes()).collect();
    assert_eq!(same("f8", npy("'<f8'", "False", shape, &doubles)), want);
    let swapped: Vec<u8> = data.iter().flat_map(|x| x.to_be_bytes()).collect();
    assert_eq!(same("big", npy("'>f4'", "False", shape, &swapped)), want);
    assert_eq!(same("three", floats("(1, 3, 4)", &data)), want);
    let columns: Vec<f32> = (0..12).map(|at| data[at % 3 * 4 + at / 3]).collect();
    assert_eq!(same("fortran", npy("'<f4'", "True", shape, &bytes(&columns))), want);
    // The same by safetensors.
    let bytes = bytes(&data);
    let view = || safetensors::tensor::TensorView::new(safetensors::Dtype::F32, vec![3, 4], &bytes);
    let views = ["q", "k", "v"].map(|name| (name, view().unwrap()));
    let file = safetensors::serialize(views, None).unwrap();
    let path = write(&folder, "qkv.safetensors", &file);
    assert_eq!(weights(&json(&["attend", &path, "--json"])), want);
    let ran = regard(&["attend", folder.join("f8.npz").to_str().unwrap()]);
    assert!(ran.err.contains("array `q`: float64, converted"), "{}", ran.err);
}

#[test]
fn parameters_and_masks_come_from_arrays() {
    let folder = folder("parameters");
    let mut arrays = good();
    arrays.push(("params.v", floats("(2, 4)", &numbers(8))));
    arrays.push(("lens", npy("'<i8'", "False", "(1,)", &2i64.to_le_bytes())));
    arrays.push(("allowed", npy("'|b1'", "False", "(3, 3)", &[1, 0, 0, 0, 1, 0, 0, 0, 1])));
    let path = write(&folder, "params.npz", &npz(&arrays));
    let map = weights(&json(&[
        "attend",
        &path,
        "--score",
        "additive",
        "--json",
        "--mask",
        "lengths(lens)",
    ]));
    assert!(map.iter().all(|row| row[2] == 0.0 && row[0] > 0.0), "{map:?}");
    let map = weights(&json(&["attend", &path, "--json", "--mask", "dense(allowed)"]));
    assert_eq!(map, [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]);
    fails(&["attend", &path, "--score", "general"], &["params.npz", "array `w`", "no such array"]);
    fails(&["attend", &path, "--mask", "dense(lens)"], &["dense mask", "need [T,S] = [3,3]"]);
}

#[test]
fn what_is_saved_is_what_was_computed() {
    let folder = folder("saved");
    let path = write(&folder, "qkv.npz", &npz(&good()));
    let to = folder.join("out.npz");
    let ran = regard(&["attend", &path, "--mask", "causal", "--save", to.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let mut zip = zip::ZipArchive::new(std::fs::File::open(&to).unwrap()).unwrap();
    let names: Vec<_> = zip.file_names().map(|name| name.unwrap().to_string()).collect();
    assert_eq!(names, ["out.npy", "weights.npy"]);
    let mut weights = vec![];
    std::io::Read::read_to_end(&mut zip.by_name("weights.npy").unwrap(), &mut weights).unwrap();
    assert_eq!(weights.len(), 128 + 4 * 18);
    assert!(String::from_utf8_lossy(&weights[..128]).contains("'shape': (1, 2, 3, 3, )"));
    assert_eq!(weights[128..132], 1f32.to_le_bytes());
    // Nothing is left beside it.
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
    fails(&["attend", &path, "--save", "out.txt"], &["--save", "out.txt", ".npz"]);
    let nowhere = folder.join("no/such/folder.npz");
    fails(&["attend", &path, "--save", nowhere.to_str().unwrap()], &["cannot be written"]);
}

#[test]
fn bad_files_are_errors_that_name_file_and_array() {
    let folder = folder("bad_files");
    let whole = npz(&good());
    let fail = |name: &str, bytes: &[u8], says: &[&str]| {
        let path = write(&folder, name, bytes);
        fails(&["attend", &path], &[&[name], says].concat());
    };
    let instead = |array: Vec<u8>| {
        let mut arrays = good();
        arrays[1].1 = array;
        npz(&arrays)
    };
    fails(&["attend", "no/such.npz"], &["no/such.npz", "No such file"]);
    fails(&["attend", "/dev/zero"], &["not a regular file"]);
    fail("empty.npz", b"", &["truncated"]);
    fail("text.npz", b"hello", &["npz (zip)"]);
    fail("qkv.bin", &whole, &[".npz or .safetensors"]);
    for length in (0..whole.len()).step_by(7) {
        fail("cut.npz", &whole[..length], &[]);
    }
    fail("missing.npz", &npz(&good()[..2]), &["array `v`", "no such array", "k, q"]);
    fail("int.npz", &instead(npy("'<i4'", "False", "(24,)", &[0; 96])), &["`k`", "got int32"]);
    fail("record.npz", &instead(npy("[('x', '<f4')]", "False", "(1,)", &[0; 4])), &["structured"]);
    fail("object.npz", &instead(npy("'|O'", "False", "(1,)", b"")), &["`k`", "dtype |O"]);
    fail("one.npz", &instead(floats("(24,)", &numbers(24))), &["`k`", "[24]", "[T,D]"]);
    fail("five.npz", &instead(floats("(1,1,2,3,4)", &numbers(24))), &["`k`", "[B,H,T,D]"]);
    fail("zero.npz", &instead(floats("(3, 0)", &[])), &["`k`", "at least 1"]);
    fail("width.npz", &instead(floats("(1,2,3,5)", &numbers(30))), &["k: got width 5"]);
    fail("batch.npz", &instead(floats("(2,2,3,4)", &numbers(48))), &["k: got batch 2"]);
    fail("short.npz", &instead(floats("(1,2,3,4)", &numbers(23))), &["`k`", "92 bytes"]);
    let huge = "(4611686018427387904, 4611686018427387904, 0, 4)";
    fail("huge.npz", &instead(floats(huge, &[])), &["`k`"]);
    let mut header = npy("'<f4'", "False", "(3, 4)", &[0; 48]);
    header[6] = 2;
    header[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    fail("header.npz", &instead(header), &["`k`", "header of 4294967295 bytes"]);
    fail("empty.safetensors", b"", &["truncated"]);
    fail("header.safetensors", &[255; 64], &["safetensors"]);
    let deep = [&(20_000u64).to_le_bytes()[..], "[".repeat(20_000).as_bytes()].concat();
    fail("deep.safetensors", &deep, &["safetensors"]);
}

#[test]
fn bad_flags_are_errors_that_say_what_is_needed() {
    let folder = folder("bad_flags");
    let path = write(&folder, "qkv.npz", &npz(&good()));
    let fail = |flags: &[&str], says: &[&str]| fails(&[&["attend", &path], flags].concat(), says);
    fail(&["--mask", "causal & casual"], &["--mask", "column 10", "         ^", "causal"]);
    fail(&["--mask", "lengths(1, 2)"], &["lengths: got 2"]);
    fail(&["--mask", "lengths(4)"], &["lengths[0]: got 4, need 0 to S = 3"]);
    fail(&["--score", "dots"], &["--score", "`dots`", "dot, additive"]);
    fail(&["--normalize", "max"], &["--normalize", "softmax"]);
    fail(&["--bias", "table"], &["--bias", "array `table`"]);
    fail(&["--scale", "nan"], &["scale", "finite"]);
    fail(&["--head", "2"], &["--head: got 2, need 0 to 1"]);
    fail(&["--batch", "1"], &["--batch: got 1, need 0 to 0"]);
    fail(&["--rows", "2:9"], &["--rows", "0:3"]);
    fail(&["--rows", "x"], &["--rows", "3:7"]);
    fail(&["--threads", "0"], &["--threads"]);
    fail(&["--normalize", "gumbel", "--temperature", "0"], &["--temperature"]);
    fails(&["attend"], &["FILE", "--demo"]);
    fails(&["attend", "a.npz", "b.npz"], &["one FILE"]);
    fails(&["attend", "--demo", " "], &["without words"]);
    fails(&["attend", "--demo", "--mask", "causal"], &["--demo", "it is for a FILE"]);
}
