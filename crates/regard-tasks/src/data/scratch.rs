//! Files that tests write, read and remove.

use std::path::Path;

/// Writes a temporary file with this name, calls `read` on it, and removes it.
pub fn with_file<T>(name: &str, bytes: &[u8], read: impl FnOnce(&Path) -> T) -> T {
    let mut folder = std::env::temp_dir();
    let thread = format!("{:?}", std::thread::current().id());
    folder.push(format!("regard-data-{}-{}", std::process::id(), thread.replace(['(', ')'], "")));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    let result = read(&path);
    std::fs::remove_dir_all(folder).unwrap();
    result
}
