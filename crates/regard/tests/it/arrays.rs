//! Files of arrays, good and bad.

use std::io::{Cursor, Write};
use std::path::Path;
use zip::write::{SimpleFileOptions, ZipWriter};

/// The bytes of a `.npy` file with any header.
pub fn npy(descr: &str, fortran: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let text = format!("{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
    let length = (text.len() as u16).to_le_bytes();
    [b"\x93NUMPY\x01\x00", &length[..], text.as_bytes(), data].concat()
}

pub fn bytes(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|x| x.to_le_bytes()).collect()
}

/// A `.npy` of float32.
pub fn floats(shape: &str, numbers: &[f32]) -> Vec<u8> {
    npy("'<f4'", "False", shape, &bytes(numbers))
}

/// Numbers that are neither equal nor large.
pub fn numbers(n: usize) -> Vec<f32> {
    (0..n).map(|i| (i as f32 * 0.7311).sin()).collect()
}

/// The bytes of an `.npz`.
pub fn npz(arrays: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(vec![]));
    for (name, npy) in arrays {
        zip.start_file(format!("{name}.npy"), SimpleFileOptions::default()).unwrap();
        zip.write_all(npy).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// q, k and v `[1, 2, 3, 4]`.
pub fn good() -> Vec<(&'static str, Vec<u8>)> {
    ["q", "k", "v"].map(|name| (name, floats("(1, 2, 3, 4)", &numbers(24)))).to_vec()
}

/// Writes a file and returns its name.
pub fn write(folder: &Path, name: &str, bytes: &[u8]) -> String {
    let path = folder.join(name);
    std::fs::write(&path, bytes).expect("a test file");
    path.to_str().expect("a name").to_string()
}
