//! Fuzz tests: no array file or mask makes a reader panic, hang or exhaust memory. The crate
//! `regard-fuzz` documents longer runs.

use crate::choice::parse_mask;
use crate::files::{Archive, save_npz};
use regard_fuzz::{Counting, Scratch, fuzz};
use std::path::Path;

#[global_allocator]
static MEMORY: Counting = Counting;

/// Reads every array of a file.
fn read(path: &Path) -> bool {
    let Ok(archive) = Archive::open(path) else { return false };
    // Decompression can grow a thousandfold, and booleans become eight bytes each.
    archive.limit(1 << 22);
    let names = archive.names();
    let read = names.iter().filter(|name| {
        let (floats, integers) = (archive.floats(name).is_ok(), archive.integers(name).is_ok());
        archive.shape(name).is_ok() && (floats || integers)
    });
    read.count() > 0
}

#[test]
fn npz() {
    let scratch = Scratch::default();
    fuzz!("npz", |bytes: &[u8]| read(&scratch.write("x.npz", bytes)));
}

#[test]
fn safetensors() {
    let scratch = Scratch::default();
    fuzz!("safetensors", |bytes: &[u8]| read(&scratch.write("x.safetensors", bytes)));
}

#[test]
fn mask() {
    let scratch = Scratch::default();
    let path = scratch.folder().join("x.npz");
    save_npz(&path, &[("centres", &[0.5; 6], &[2, 3])]).unwrap();
    fuzz!("mask", |bytes: &[u8]| {
        let Ok(text) = str::from_utf8(bytes) else { return false };
        let archive = Archive::open(&path).unwrap();
        let read = [None, Some(&archive)].map(|arrays| match parse_mask(text, arrays) {
            Ok(_) => true,
            Err(error) => {
                let message = format!("{error:#}");
                // It may repeat a word of the text, which the program shortens.
                let most = text.len() + 1000;
                assert!(message.len() <= most, "an error of {} bytes", message.len());
                false
            }
        });
        read.contains(&true)
    });
}
