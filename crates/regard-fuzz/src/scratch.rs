//! Files for readers that open them by name.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Temporary folder of a test, removed when dropped.
pub struct Scratch(PathBuf);

impl Default for Scratch {
    fn default() -> Scratch {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let (process, next) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        // In memory where possible: every input is written once.
        let memory = Path::new("/dev/shm");
        let above = if memory.is_dir() { memory.into() } else { std::env::temp_dir() };
        let folder = above.join(format!("regard-scratch-{process}-{next}"));
        fs::create_dir_all(&folder).unwrap();
        Scratch(folder)
    }
}

impl Scratch {
    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// Writes a file, and creates its parent folders.
    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        if name.contains('/') {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
        }
        fs::write(&path, bytes).unwrap();
        path
    }

    /// Removes a file if it exists.
    pub fn remove(&self, name: &str) {
        let _ = fs::remove_file(self.0.join(name));
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Splits an input that stands for several files at lines of `%%%%`. Missing parts are empty.
pub fn parts<const N: usize>(input: &[u8]) -> [&[u8]; N] {
    const BETWEEN: &[u8] = b"%%%%\n";
    let mut rest = input;
    std::array::from_fn(|_| {
        let end = rest.windows(BETWEEN.len()).position(|window| window == BETWEEN);
        let part = &rest[..end.unwrap_or(rest.len())];
        rest = end.map_or(&[], |end| &rest[end + BETWEEN.len()..]);
        part
    })
}
