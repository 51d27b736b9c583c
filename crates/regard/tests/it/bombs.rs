//! Files that were made to do harm: they are refused before they can.

use crate::arrays::{floats, npy, numbers, write};
use crate::program::{command, folder};
use crate::tiny::{TRANSFORMER, model};
use std::io::{Cursor, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use zip::CompressionMethod::Deflated;
use zip::write::{SimpleFileOptions, ZipWriter};

/// Runs the program and gives its error. It must end within some seconds.
fn error_of(args: &[&str]) -> String {
    let mut command = command(args);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > Duration::from_secs(30) {
            child.kill().unwrap();
            panic!("{args:?} takes more than 30 s");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
    assert!(error.len() < 1000, "{args:?}: {error}");
    error
}

/// A file whose array `name` says that it has this shape. Its numbers are deflated zeros, and
/// their end is damaged: whoever inflates them all before the shape is looked at says that.
fn damaged(name: &str, shape: &str, bytes: usize) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(vec![]));
    for each in ["q", "k", "v"] {
        let array = match each == name {
            true => npy("'<f2'", "False", shape, &vec![0; bytes]),
            false => floats("(3, 4)", &numbers(12)),
        };
        let options = SimpleFileOptions::default().compression_method(Deflated);
        zip.start_file(format!("{each}.npy"), options).unwrap();
        zip.write_all(&array).unwrap();
    }
    let mut file = zip.finish().unwrap().into_inner();
    let next = match name {
        "q" => &b"k.npy"[..],
        "k" => b"v.npy",
        _ => b"PK\x01\x02",
    };
    let end = file.windows(next.len()).position(|window| window == next).unwrap();
    // Before the next header, and a checksum that may stand there.
    file[end - 100..end - 60].fill(0x55);
    file
}

#[test]
fn deflated_arrays_are_refused_by_their_shapes_before_they_are_inflated() {
    let folder = folder("deflated_bombs");
    for (name, shape, bytes, says) in [
        ("q", "(16777216, 4)", 1 << 27, "at most 2²⁴"),
        ("k", "(3, 1048576)", 6 << 20, "k: got width 1048576"),
        ("v", "(1048576, 4)", 8 << 20, "need the keys' [1,1,3,E]"),
        ("q", "(4194304,)", 8 << 20, "[T,D]"),
    ] {
        let path = write(&folder, &format!("{name}.npz"), &damaged(name, shape, bytes));
        let error = error_of(&["attend", &path]);
        assert!(error.contains(says), "{name} {shape}: {error}");
    }
    // A mask that has more numbers than there are scores.
    let mut zip = ZipWriter::new(Cursor::new(vec![]));
    let options = SimpleFileOptions::default().compression_method(Deflated);
    for (name, array) in [
        ("q", floats("(3, 4)", &numbers(12))),
        ("k", floats("(3, 4)", &numbers(12))),
        ("v", floats("(3, 4)", &numbers(12))),
        ("m", npy("'|b1'", "False", "(4096, 4096)", &vec![1; 1 << 24])),
    ] {
        zip.start_file(format!("{name}.npy"), options).unwrap();
        zip.write_all(&array).unwrap();
    }
    let path = write(&folder, "mask.npz", &zip.finish().unwrap().into_inner());
    let error = error_of(&["attend", &path, "--mask", "dense(m)"]);
    assert!(error.contains("array `m`") && error.contains("[4096, 4096]"), "{error}");
    // What fits together is read, deflated or not, first axis first or last.
    let mut zip = ZipWriter::new(Cursor::new(vec![]));
    for name in ["q", "k", "v"] {
        zip.start_file(format!("{name}.npy"), options).unwrap();
        zip.write_all(&npy("'<f8'", "True", "(300, 100)", &vec![0; 240_000])).unwrap();
    }
    let path = write(&folder, "fine.npz", &zip.finish().unwrap().into_inner());
    let fine = command(&["attend", &path]).output().unwrap();
    assert_eq!(fine.status.code(), Some(0), "{}", String::from_utf8_lossy(&fine.stderr));
}

#[cfg(unix)]
#[test]
fn what_is_no_regular_file_is_refused_in_a_folder_of_a_model() {
    let path = model("irregular_files", TRANSFORMER);
    let place = Path::new(&path);
    let names = std::fs::read_dir(place).unwrap().map(|entry| entry.unwrap().file_name());
    let names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    for wanted in ["config.json", "model.safetensors", "tokenizer.json", "generation_config.json"] {
        assert!(names.iter().any(|name| name == wanted), "{wanted}: {names:?}");
    }
    for name in names {
        let (file, kept) = (place.join(&name), place.join("kept"));
        std::fs::rename(&file, &kept).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&file).status().unwrap();
        assert!(made.success());
        let fifo = error_of(&["translate", "They are here.", "--model", &path]);
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&file).unwrap();
        let folder = error_of(&["translate", "They are here.", "--model", &path]);
        std::fs::remove_dir(&file).unwrap();
        for error in [fifo, folder] {
            // A folder without a file that could be one is not a folder of a model.
            let missing = ["has no tokenizer", "holds no model", "need one of"];
            let refused = error.contains(&name) && error.contains("is not a regular file");
            assert!(refused || missing.iter().any(|m| error.contains(m)), "{name}: {error}");
        }
        std::fs::rename(&kept, &file).unwrap();
    }
    let shard = place.join("model-00001-of-00001.safetensors");
    std::fs::rename(place.join("model.safetensors"), place.join("kept")).unwrap();
    let index = r#"{"weight_map": {"x": "model-00001-of-00001.safetensors"}}"#;
    std::fs::write(place.join("model.safetensors.index.json"), index).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&shard).status().unwrap().success());
    let error = error_of(&["inspect", &path]);
    assert!(error.contains("00001") && error.contains("is not a regular file"), "{error}");
}
