//! Reads named arrays from `.npz` and `.safetensors` files, and writes `.npz`.
//!
//! Files are untrusted: errors name the file and the array, and sizes in a header are checked
//! against the actual number of bytes.

mod npy;
mod npz;
mod raw;
mod save;
mod tensors;

pub use save::{
    announce, expect_extension, not_an_input, save_npz, save_npz_with_words, save_text,
};

use anyhow::{Context, Result, anyhow, bail};
use raw::{Header, RawData};
use std::cell::Cell;
use std::path::{Path, PathBuf};

/// An open file of named arrays.
pub struct Archive {
    path: PathBuf,
    content: Content,
    /// Maximum number of elements of an array; `usize::MAX`: no limit.
    most: Cell<usize>,
}

enum Content {
    Npz(npz::Npz),
    Tensors(tensors::Tensors),
}

impl Archive {
    /// Opens a file and reads the list of its arrays.
    pub fn open(path: &Path) -> Result<Archive> {
        let open = || -> Result<Content> {
            if !std::fs::metadata(path)?.is_file() {
                bail!("not a regular file");
            }
            match path.extension().and_then(|end| end.to_str()) {
                Some("npz") => Ok(Content::Npz(npz::Npz::open(path)?)),
                Some("safetensors") => Ok(Content::Tensors(tensors::Tensors::open(path)?)),
                Some("png" | "jpg" | "jpeg") => bail!(
                    "need a file that ends in .npz or .safetensors; for the attention of an \
                     image: regard classify --image {} --attention map.png",
                    path.display()
                ),
                _ => bail!("need a file that ends in .npz or .safetensors"),
            }
        };
        let content = open().with_context(|| path.display().to_string())?;
        Ok(Archive { path: path.into(), content, most: Cell::new(usize::MAX) })
    }

    /// Names of the arrays, sorted.
    pub fn names(&self) -> Vec<String> {
        let mut names = match &self.content {
            Content::Npz(npz) => npz.names(),
            Content::Tensors(tensors) => tensors.names(),
        };
        names.sort();
        names
    }

    /// Whether the file has an array of this name.
    pub fn has(&self, name: &str) -> bool {
        self.names().iter().any(|other| other == name)
    }

    /// Sets the maximum number of elements of an array. A compressed array can be a thousand times
    /// as large as its file; larger ones are refused before they are decompressed.
    pub fn limit(&self, most: usize) {
        self.most.set(most);
    }

    /// Shape of an array, from its header only.
    pub fn shape(&self, name: &str) -> Result<Vec<usize>> {
        self.header(name).map(|header| header.shape).with_context(|| self.place(name))
    }

    /// Shape of an array of floats, from its header only.
    pub fn shape_of_floats(&self, name: &str) -> Result<Vec<usize>> {
        let read = || self.header(name).and_then(|header| header.check_floats().map(|()| header));
        read().map(|header| header.shape).with_context(|| self.place(name))
    }

    fn header(&self, name: &str) -> Result<Header> {
        match &self.content {
            _ if !self.has(name) => Err(anyhow!("no such array; there are: {}", self.listed())),
            Content::Npz(npz) => npz.header(name),
            Content::Tensors(tensors) => tensors.header(name),
        }
    }

    fn numbers<T>(
        &self,
        name: &str,
        read: impl FnOnce(&Header, RawData) -> Result<T>,
    ) -> Result<(T, Header)> {
        let read_all = || {
            let header = self.header(name)?;
            let (count, most) = (header.count(), self.most.get());
            if count.is_none_or(|count| count > most) {
                let shape = header.shape;
                bail!("got shape {shape:?}, need at most {most} elements for these q, k and v");
            }
            match &self.content {
                Content::Npz(npz) => npz.numbers(name, read),
                Content::Tensors(tensors) => tensors.numbers(name, read),
            }
        };
        read_all().with_context(|| self.place(name))
    }

    /// Reads an array as float32, with its stored type if it was another one.
    pub fn floats(&self, name: &str) -> Result<Floats> {
        let (data, header) = self.numbers(name, Header::floats)?;
        let kind = header.kind.name();
        let converted = (kind != "float32").then_some(kind);
        Ok(Floats { data, converted })
    }

    /// Reads an array of integers or booleans.
    pub fn integers(&self, name: &str) -> Result<Integers> {
        let (data, header) = self.numbers(name, Header::integers)?;
        Ok(Integers { data, shape: header.shape })
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Name of an array in error messages.
    pub fn place(&self, name: &str) -> String {
        format!("{}: array `{name}`", self.path.display())
    }

    fn listed(&self) -> String {
        let names = self.names();
        let shown: Vec<_> =
            names.iter().take(12).map(|name| crate::show::label(name, 40)).collect();
        match names.len() {
            0 => "none".into(),
            n if n > shown.len() => format!("{}, … ({n} in all)", shown.join(", ")),
            _ => shown.join(", "),
        }
    }
}

/// An array of float32 values.
pub struct Floats {
    /// Values in row-major order.
    pub data: Vec<f32>,
    /// The stored type, if it was not float32.
    pub converted: Option<String>,
}

/// An array of integers.
pub struct Integers {
    /// Values in row-major order.
    pub data: Vec<i64>,
    /// Sizes of the axes.
    pub shape: Vec<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use regard_kernels::rng::Stream;

    /// Reads everything that a file may hold; errors are fine, panics are not.
    fn read(path: &Path) -> usize {
        let Ok(archive) = Archive::open(path) else { return 0 };
        let arrays = archive.names().into_iter().map(|name| {
            let (floats, integers) = (archive.floats(&name), archive.integers(&name));
            usize::from(floats.is_ok() || integers.is_ok())
        });
        arrays.sum()
    }

    #[test]
    fn no_byte_of_a_file_is_trusted() {
        let folder = std::env::temp_dir().join(format!("regard-files-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let npz = folder.join("x.npz");
        save_npz(&npz, &[("q", &[0.5; 6], &[2, 3]), ("k", &[1.0], &[1, 1])]).unwrap();
        let tensors = folder.join("x.safetensors");
        let header = r#"{"q":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}}"#;
        let size = (header.len() as u64).to_le_bytes();
        std::fs::write(&tensors, [&size[..], header.as_bytes(), &[0; 8]].concat()).unwrap();
        for (path, arrays) in [(npz, 2), (tensors, 1)] {
            assert_eq!(read(&path), arrays);
            let whole = std::fs::read(&path).unwrap();
            let stream = Stream::new(1, 2, 3);
            for round in 0..2 * whole.len() {
                let mut changed = whole.clone();
                changed[round / 2] = stream.bits(round as u64) as u8;
                std::fs::write(&path, &changed).unwrap();
                read(&path);
            }
            for length in 0..whole.len() {
                std::fs::write(&path, &whole[..length]).unwrap();
                read(&path);
            }
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
