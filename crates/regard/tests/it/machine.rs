//! `regard variants`, `regard bench`, `regard doctor`, and what holds for every verb.

use crate::program::{command, fails, finish, json, regard};
use std::io::Read;
use std::process::Stdio;

#[test]
fn help_teaches() {
    for args in [&["--help"][..], &["attend", "--help"], &["bench", "attention", "--help"]] {
        let ran = regard(args);
        assert_eq!((ran.code, &*ran.err), (0, ""), "{args:?}");
        assert!(ran.out.contains("Examples:") && ran.out.contains("--json"), "{}", ran.out);
    }
    assert!(regard(&["--version"]).out.starts_with("regard "));
    fails(&[], &["Usage"]);
    fails(&["atend"], &["atend", "attend"]);
}

#[test]
fn variants_are_listed() {
    let ran = regard(&["variants"]);
    for name in ["softmax", "entmax15", "causal", "gatv2", "alibi", "arXiv:1706.03762"] {
        assert!(ran.out.contains(name), "{name}: {}", ran.out);
    }
    let rows = json(&["variants", "--json"]);
    let kinds = ["score", "mask", "bias", "normalize"];
    let count = |kind: &str| rows.as_array().unwrap().iter().filter(|r| r["kind"] == kind).count();
    assert!(kinds.iter().all(|kind| count(kind) >= 5), "{rows}");
    let masks = json(&["variants", "mask", "--json"]);
    assert_eq!(masks.as_array().unwrap().len(), count("mask"));
    fails(&["variants", "colour"], &["colour", "score"]);
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let mut child = command(&["attend", "--demo", "--json", &"word ".repeat(400)]);
    let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 10];
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut first).unwrap();
    drop(out);
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), &*ended.stderr), (Some(0), &b""[..]));
}

#[test]
fn bench_measures() {
    let args = ["bench", "attention", "--shape", "1,2,40,40,16", "--repeat", "2", "--backward"];
    let found = json(&[&args[..], &["--json", "--mask", "causal"]].concat());
    assert_eq!(found["allowed_pairs"], 2 * 40 * 41 / 2);
    for direction in ["forward", "backward"] {
        let timing = &found[direction];
        assert_eq!(timing["runs"], 2);
        let (median, min) = (timing["median_ms"].as_f64(), timing["min_ms"].as_f64());
        assert!(median >= min && min > Some(0.0), "{timing}");
    }
    assert!(
        found["fma_peak_gflops"].as_f64() > Some(0.0) && found["gemm_gflops"].as_f64() > Some(0.0)
    );
    if cfg!(target_os = "linux") {
        assert!(found["peak_memory_bytes"].as_u64() > found["array_bytes"].as_u64());
    }
    let ran = regard(&args);
    assert!(ran.code == 0 && ran.out.contains("GFLOP/s"), "{}{}", ran.out, ran.err);
    let fail = |shape, says: &[&str]| fails(&["bench", "attention", "--shape", shape], says);
    fail("1,2,3", &["got 3 numbers", "B,H,T,S,D"]);
    fail("1,1,0,4,4", &["from 1"]);
    fail("1,x,4,4,4", &["`x` is no number"]);
    fail("16777215,16777215,16777215,16777215,16777215", &["does not fit into memory"]);
    fails(&["bench", "attention"], &["--shape"]);
}

#[test]
fn the_doctor_finds_this_machine_healthy() {
    let found = json(&["doctor", "--json"]);
    assert_eq!(found["ok"], true, "{found}");
    let paths = found["paths"].as_array().unwrap();
    let chosen: Vec<_> = paths.iter().filter(|path| path["chosen"] == true).collect();
    assert_eq!(chosen.len(), 1);
    for path in paths.iter().filter(|path| path["available"] == true) {
        assert_eq!(path["test"]["ok"], true, "{path}");
        assert_eq!(path["test"]["isa"], path["isa"]);
    }
    let mut portable = command(&["doctor"]);
    portable.env("REGARD_ISA", "portable");
    let ran = finish(portable);
    assert!(ran.code == 0 && ran.out.contains("portable (chosen)"), "{}", ran.out);
}

#[test]
fn a_bad_environment_is_an_error() {
    for (name, value) in [("REGARD_ISA", "mmx"), ("REGARD_NUM_THREADS", "many")] {
        let mut wrong = command(&["doctor"]);
        wrong.env(name, value);
        let ran = finish(wrong);
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(ran.err.contains(name) && ran.err.contains(value), "{}", ran.err);
    }
}
