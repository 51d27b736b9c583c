//! Shared bytes of a file.

use memmap2::Mmap;
use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// Immutable shared bytes: a memory-mapped file, static data of the program, or memory that a file
/// was read into. Clones share the memory.
///
/// Numbers of several bytes are little-endian, as in every supported file format and on every
/// supported CPU.
#[derive(Clone)]
pub struct Bytes {
    owner: Owner,
    /// Range of the owner's bytes.
    from: usize,
    to: usize,
}

#[derive(Clone)]
enum Owner {
    Map(Arc<Mmap>),
    Static(&'static [u8]),
    Bytes(Arc<Vec<u8>>),
    Floats(Arc<Vec<f32>>),
}

const _: () = assert!(cfg!(target_endian = "little"), "numbers of files are little-endian");

/// Types for which every bit pattern is a value, and that have no padding.
///
/// # Safety
/// Implement it for such types only.
pub unsafe trait Plain: Copy + Send + Sync + 'static {}

// SAFETY: every pattern of bits is a float.
unsafe impl Plain for f32 {}

// SAFETY: every pattern of bits is an integer.
unsafe impl Plain for i8 {}

impl Owner {
    fn bytes(&self) -> &[u8] {
        match self {
            Owner::Map(map) => map,
            Owner::Static(bytes) => bytes,
            Owner::Bytes(bytes) => bytes,
            Owner::Floats(floats) => {
                // SAFETY: floats are bytes without padding, and as many as `size_of_val` says.
                unsafe {
                    std::slice::from_raw_parts(floats.as_ptr().cast(), size_of_val(&floats[..]))
                }
            }
        }
    }
}

impl From<Owner> for Bytes {
    fn from(owner: Owner) -> Bytes {
        let to = owner.bytes().len();
        Bytes { owner, from: 0, to }
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Bytes {
        Owner::Bytes(Arc::new(bytes)).into()
    }
}

impl From<Vec<f32>> for Bytes {
    fn from(floats: Vec<f32>) -> Bytes {
        Owner::Floats(Arc::new(floats)).into()
    }
}

impl From<&'static [u8]> for Bytes {
    fn from(bytes: &'static [u8]) -> Bytes {
        Owner::Static(bytes).into()
    }
}

impl Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.owner.bytes()[self.from..self.to]
    }
}

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "Bytes({})", self.len())
    }
}

impl Bytes {
    /// Maps a file into memory: the system loads pages on use, keeps them in its page cache and may
    /// drop them. They do not count as memory of this process.
    ///
    /// The file must not be written in place while it is mapped. A file that is replaced by
    /// renaming another one over it stays unchanged here. One that another process writes in place
    /// changes under its readers, and one that is truncated ends the process with `SIGBUS` when the
    /// missing part is read. This cannot be prevented here; a file that this program may write in
    /// place must be read instead.
    ///
    /// # Errors
    /// If the system cannot map the file, for instance because it is not a regular file.
    pub fn map(file: &File) -> io::Result<Bytes> {
        // SAFETY: the map is private to this type and is only read. Its soundness rests on files
        // of weights being replaced, never written in place: this program replaces them, and the
        // documentation above asks the same of others. Numbers are valid in every pattern of bits;
        // text of a header that another process changed in place might not be.
        let map = unsafe { Mmap::map(file)? };
        Ok(Owner::Map(Arc::new(map)).into())
    }

    /// Whether the bytes are a memory-mapped file.
    pub fn is_mapped(&self) -> bool {
        matches!(self.owner, Owner::Map(_))
    }

    /// Returns a range of the bytes, in the same memory.
    ///
    /// # Panics
    /// If the range is out of bounds.
    pub fn part(&self, range: Range<usize>) -> Bytes {
        assert!(range.start <= range.end && range.end <= self.len(), "{range:?} of {}", self.len());
        let owner = self.owner.clone();
        Bytes { owner, from: self.from + range.start, to: self.from + range.end }
    }

    /// Returns the shared range that a slice refers to; `None` if the slice is not part of these
    /// bytes.
    pub fn find(&self, part: &[u8]) -> Option<Bytes> {
        let from = part.as_ptr().addr().checked_sub(self.as_ptr().addr())?;
        let to = from.checked_add(part.len())?;
        (to <= self.len()).then(|| self.part(from..to))
    }

    /// Returns the bytes as elements of type `T`; `None` if they are not aligned or their size is
    /// not a multiple of the element's.
    pub fn numbers<T: Plain>(&self) -> Option<&[T]> {
        let (start, size) = (self.as_ptr().cast::<T>(), size_of::<T>());
        if !start.is_aligned() || !self.len().is_multiple_of(size) {
            return None;
        }
        // SAFETY: aligned, inside, and every pattern of bits is such a number.
        Some(unsafe { std::slice::from_raw_parts(start, self.len() / size) })
    }

    /// Returns a copy that is aligned for elements of every type.
    pub fn aligned(&self) -> Bytes {
        let (whole, rest) = self.as_chunks::<4>();
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        let floats: Vec<f32> =
            whole.iter().chain([&last]).map(|b| f32::from_le_bytes(*b)).collect();
        Bytes::from(floats).part(0..self.len())
    }

    /// Returns the `Vec<f32>` that these bytes were created from, without copying, if they are not
    /// shared.
    ///
    /// # Errors
    /// The unchanged bytes, otherwise.
    pub fn into_floats(self) -> Result<Vec<f32>, Bytes> {
        let whole = self.from == 0 && self.to == self.owner.bytes().len();
        match self.owner {
            Owner::Floats(floats) if whole => {
                Arc::try_unwrap(floats).map_err(|floats| Owner::Floats(floats).into())
            }
            owner => Err(Bytes { owner, ..self }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_share_the_memory() {
        let all = Bytes::from((0..16).collect::<Vec<u8>>());
        let part = all.part(4..12).part(2..6);
        assert_eq!(&part[..], [6, 7, 8, 9]);
        assert_eq!(part.as_ptr(), all[6..].as_ptr());
        assert_eq!(all.find(&all[3..5]).unwrap()[..], [3, 4]);
        assert!(part.find(&all[3..5]).is_none() && part.find(&all[8..12]).is_none());
        drop(all);
        assert_eq!(&part[..], [6, 7, 8, 9]);
    }

    #[cfg(not(miri))]
    #[test]
    fn a_file_that_is_replaced_stays_what_it_was() {
        let path = std::env::temp_dir().join(format!("regard-map-{}", std::process::id()));
        std::fs::write(&path, [1u8, 2, 3, 4, 5, 6, 7, 8]).unwrap();
        let bytes = Bytes::map(&File::open(&path).unwrap()).unwrap();
        let beside = path.with_extension("new");
        std::fs::write(&beside, [9u8]).unwrap();
        std::fs::rename(&beside, &path).unwrap();
        let part = bytes.part(2..6);
        assert!(part.is_mapped() && bytes.into_floats().is_err());
        assert_eq!(&part[..], [3, 4, 5, 6]);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(&part[..], [3, 4, 5, 6]);
    }

    #[test]
    fn numbers_must_be_aligned_and_whole() {
        let all = Bytes::from(vec![1.0f32, -2.0, 3.5]);
        assert_eq!(all.numbers::<f32>().unwrap(), [1.0, -2.0, 3.5]);
        assert_eq!(all.part(4..12).numbers::<f32>().unwrap(), [-2.0, 3.5]);
        assert!(all.part(2..10).numbers::<f32>().is_none());
        assert!(all.part(0..7).numbers::<f32>().is_none());
        assert_eq!(&Bytes::from(b"abc".as_slice())[..], b"abc");
    }

    #[test]
    fn floats_come_back_without_a_copy_from_their_only_owner() {
        let floats = vec![1.0f32, 2.0];
        let place = floats.as_ptr();
        let bytes = Bytes::from(floats);
        assert!(bytes.clone().into_floats().is_err());
        assert!(bytes.part(0..4).into_floats().is_err());
        let floats = bytes.into_floats().unwrap();
        assert_eq!(floats.as_ptr(), place);
        assert!(Bytes::from(vec![0u8; 4]).into_floats().is_err());
    }
}
