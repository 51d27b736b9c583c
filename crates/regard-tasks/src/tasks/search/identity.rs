//! Identity of a model: a hash that changes with everything that its embeddings depend on.

use crate::data::sets::hex;
use crate::text;
use regard_models::checkpoint::{self, CONFIG, WEIGHTS};
use regard_models::{Error, ModelFiles, Result};
use sha2::{Digest, Sha256};
use std::io::Read;
use std::path::Path;
use std::time::SystemTime;

/// Largest weights that are hashed as a whole, in bytes. SHA-256 takes 0.1 s for them with the
/// instructions that most CPUs have for it, and half a second without; MiniLM has 90 MB.
const WHOLE: u64 = 200 << 20;
/// Bytes of larger weights that are hashed: the header with the names and shapes of the tensors.
const HEADER: u64 = 1 << 20;
/// Largest file of a tokenizer, in bytes.
const LARGEST: u64 = 256 << 20;

/// Returns the SHA-256 of a model's configuration, tokenizer and weights, in hexadecimal digits.
///
/// The name of its folder does not matter, so that a model can be moved. Weights of more than 200
/// MB would take seconds in every search: there the size, the time of the last change and the
/// header of each file stand for its contents. Whatever trains or converts a model sets that time;
/// a copy may have another one, which costs an index that is made again and is never wrong.
pub fn identity(files: &ModelFiles) -> Result<String> {
    let mut digest = Sha256::new();
    let vocabularies = text::vocabulary_files().into_iter().flatten().copied();
    for name in [CONFIG].into_iter().chain(text::CONFIGURATION_FILES).chain(vocabularies) {
        if files.has(name) {
            let bytes = files.read(name, LARGEST)?;
            begin(&mut digest, name, bytes.len() as u64);
            digest.update(&bytes);
        }
    }
    if let Some(file) = files.file() {
        add(&mut digest, file, files.weights_size()? <= WHOLE)?;
        return Ok(hex(&digest.finalize()));
    }
    match files.folder() {
        None => {
            let bytes = files.read(WEIGHTS, u64::MAX)?;
            begin(&mut digest, WEIGHTS, bytes.len() as u64);
            digest.update(&bytes);
        }
        Some(_) => {
            let is_small = files.weights_size()? <= WHOLE;
            for path in files.weight_files()? {
                add(&mut digest, &path, is_small)?;
            }
        }
    }
    Ok(hex(&digest.finalize()))
}

/// Begins a file, so that no two lists of files are hashed as the same bytes.
fn begin(digest: &mut Sha256, name: &str, size: u64) {
    digest.update(format!("{name}\0{size}\0"));
}

fn add(digest: &mut Sha256, path: &Path, whole: bool) -> Result<()> {
    let (file, size) = checkpoint::open_file(path)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    begin(digest, &name, size);
    if !whole {
        let changed =
            file.metadata().and_then(|found| found.modified()).map_err(Error::io(path))?;
        let since = changed.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        digest.update(format!("{}\0", since.as_nanos()));
    }
    let mut rest = file.take(if whole { u64::MAX } else { HEADER });
    let mut buffer = vec![0; 1 << 16];
    loop {
        match rest.read(&mut buffer).map_err(Error::io(path))? {
            0 => return Ok(()),
            read => digest.update(&buffer[..read]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn every_part_of_a_model_is_in_its_identity() {
        let folder = std::env::temp_dir().join(format!("regard-identity-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let parts = [CONFIG, "tokenizer.json", "tokenizer_config.json", WEIGHTS];
        for name in parts {
            fs::write(folder.join(name), name).unwrap();
        }
        fs::write(folder.join("README.md"), "a").unwrap();
        let now = || identity(&(&folder).into()).unwrap();
        let first = now();
        assert_eq!(first.len(), 64);
        fs::write(folder.join("README.md"), "b").unwrap();
        assert_eq!(now(), first, "another file does not matter");
        for name in parts {
            fs::write(folder.join(name), name.to_uppercase()).unwrap();
            assert_ne!(now(), first, "{name}");
            fs::write(folder.join(name), name).unwrap();
        }
        assert_eq!(now(), first);
        let moved = folder.with_extension("moved");
        let _ = fs::remove_dir_all(&moved);
        fs::rename(&folder, &moved).unwrap();
        assert_eq!(identity(&(&moved).into()).unwrap(), first);
        fs::remove_dir_all(&moved).unwrap();
    }

    /// A file of 300 MB that takes no space on the disk.
    #[test]
    fn large_weights_are_known_by_their_header_size_and_time() {
        let folder = std::env::temp_dir().join(format!("regard-large-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(CONFIG), "{}").unwrap();
        let path = folder.join(WEIGHTS);
        let now = || identity(&(&folder).into()).unwrap();
        fs::write(&path, "header").unwrap();
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(300 << 20).unwrap();
        let began = std::time::Instant::now();
        let first = now();
        assert!(began.elapsed().as_secs_f64() < 2.0, "{:?}", began.elapsed());
        assert_eq!(now(), first);
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        let touched = now();
        assert_ne!(touched, first);
        file.set_len((300 << 20) + 1).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert_ne!(now(), touched);
        fs::remove_dir_all(&folder).unwrap();
    }
}
