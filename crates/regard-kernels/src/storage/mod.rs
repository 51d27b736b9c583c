//! Storage of weights: bytes of a file, and their element types.
//!
//! A weight is used in the data type of its file: products and embeddings convert elements to
//! single precision as they are loaded into a register. Results are bitwise those of a weight that
//! was converted before.
//!
//! A storage type is a file in this folder that loads vectors of elements, and a row of [`StorageType`]
//! and of `Numbers`.

mod bfloat;
mod bytes;
mod half;
mod lines;

pub use bfloat::Bf16;
pub use bytes::{Bytes, Plain};
pub use half::F16;
pub(crate) use lines::{Dense, Element, Lines};

use crate::gemm::Matrix;
use crate::pool::{Parts, parallel_ranges};
use crate::simd::{Kernel, Simd, dispatch};
use crate::view::{Error, bail};
use std::ops::Range;

/// Storage type of a weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageType {
    /// Single precision.
    F32,
    /// Half precision.
    F16,
    /// `bfloat16`, the upper half of single precision.
    Bf16,
}

impl StorageType {
    /// All storage types.
    pub const ALL: [StorageType; 3] = [StorageType::F32, StorageType::F16, StorageType::Bf16];

    /// Returns the size of so many elements in bytes; `None` if it overflows.
    pub fn bytes(self, numbers: usize) -> Option<usize> {
        numbers.checked_mul(match self {
            StorageType::F32 => 4,
            StorageType::F16 | StorageType::Bf16 => 2,
        })
    }
}

/// The elements of a matrix, row-major.
#[derive(Clone, Copy)]
enum Numbers<'a> {
    F32(&'a [f32]),
    F16(&'a [F16]),
    Bf16(&'a [Bf16]),
}

/// Borrowed matrix in some storage type, of which transposes and submatrices are views.
#[derive(Clone, Copy)]
pub struct Stored<'a> {
    numbers: Numbers<'a>,
    /// Elements of a whole line in memory.
    width: usize,
    /// First line, and first element within a line.
    from: [usize; 2],
    /// Number of lines, and of elements in each.
    size: [usize; 2],
    /// Whether lines are columns: the matrix is transposed.
    turned: bool,
}

/// Visitor of the lines of a matrix of any storage type.
pub(crate) trait Visit {
    type Out;
    fn visit<L: Lines>(self, lines: L) -> Self::Out;
}

impl<'a> Stored<'a> {
    /// Creates a row-major matrix of shape `[rows, cols]`.
    ///
    /// # Errors
    /// If the number of bytes does not match the shape, or if they are not aligned.
    pub fn new(
        kind: StorageType,
        bytes: &'a Bytes,
        [rows, cols]: [usize; 2],
    ) -> Result<Self, Error> {
        let count = rows.checked_mul(cols);
        if count.and_then(|count| kind.bytes(count)) != Some(bytes.len()) {
            let got = bytes.len();
            bail!("a matrix [{rows}, {cols}] of {kind:?} cannot be made of {got} bytes");
        }
        let numbers = match kind {
            StorageType::F32 => bytes.numbers().map(Numbers::F32),
            StorageType::F16 => bytes.numbers().map(Numbers::F16),
            StorageType::Bf16 => bytes.numbers().map(Numbers::Bf16),
        };
        let Some(numbers) = numbers else { bail!("a matrix of {kind:?} needs aligned memory") };
        Ok(Stored { numbers, width: cols, from: [0, 0], size: [rows, cols], turned: false })
    }

    /// Creates a matrix from rows of `width` floats.
    ///
    /// # Errors
    /// If the number of floats is not a multiple of `width`.
    pub fn rows(floats: &'a [f32], width: usize) -> Result<Self, Error> {
        if width == 0 || !floats.len().is_multiple_of(width) {
            bail!("rows of {width} cannot be made of {} floats", floats.len());
        }
        let size = [floats.len() / width, width];
        Ok(Stored { numbers: Numbers::F32(floats), width, from: [0, 0], size, turned: false })
    }

    /// Returns the storage type.
    pub fn kind(&self) -> StorageType {
        match self.numbers {
            Numbers::F32(_) => StorageType::F32,
            Numbers::F16(_) => StorageType::F16,
            Numbers::Bf16(_) => StorageType::Bf16,
        }
    }

    /// Returns the numbers of rows and columns.
    pub fn shape(&self) -> [usize; 2] {
        let [lines, numbers] = self.size;
        if self.turned { [numbers, lines] } else { [lines, numbers] }
    }

    /// Returns the transpose, in the same memory.
    pub fn t(self) -> Self {
        Stored { turned: !self.turned, ..self }
    }

    /// Whether lines of memory are columns.
    pub(crate) fn turned(&self) -> bool {
        self.turned
    }

    /// Returns the submatrix of `rows` and `cols`.
    ///
    /// # Panics
    /// If they are out of bounds.
    pub fn part(self, rows: Range<usize>, cols: Range<usize>) -> Self {
        let [r, c] = self.shape();
        let inside = |range: &Range<usize>, end| range.start <= range.end && range.end <= end;
        assert!(inside(&rows, r) && inside(&cols, c), "{rows:?}, {cols:?} of [{r}, {c}]");
        let (lines, numbers) = if self.turned { (cols, rows) } else { (rows, cols) };
        let [line, at] = self.from;
        let from = [line + lines.start, at + numbers.start];
        Stored { from, size: [lines.len(), numbers.len()], ..self }
    }

    /// Returns the matrix as a view of floats; `None` for other storage types.
    pub fn matrix(self) -> Option<Matrix<'a>> {
        let Numbers::F32(floats) = self.numbers else { return None };
        let ([line, at], width) = (self.from, self.width as isize);
        let offset = line * self.width + at;
        let matrix = Matrix::strided(floats, self.size, [width, 1], offset).ok()?;
        Some(if self.turned { matrix.t() } else { matrix })
    }

    /// Calls the visitor with the lines of memory.
    #[inline(always)]
    pub(crate) fn visit<V: Visit>(self, visit: V) -> V::Out {
        let from = self.from[0] * self.width + self.from[1];
        match self.numbers {
            Numbers::F32(all) => visit.visit(Dense::new(all, from, self.width)),
            Numbers::F16(all) => visit.visit(Dense::new(all, from, self.width)),
            Numbers::Bf16(all) => visit.visit(Dense::new(all, from, self.width)),
        }
    }

    /// Converts the elements to single precision, in the order of memory.
    ///
    /// # Errors
    /// If `to` does not have exactly the size of the matrix.
    pub fn to_floats(&self, to: &mut [f32]) -> Result<(), Error> {
        let [lines, width] = self.size;
        if to.len() != lines * width {
            bail!("{} floats for a matrix of {}", to.len(), lines * width);
        }
        let to = Parts::new(to);
        parallel_ranges(lines, (PIECE / width.max(1)).max(1), &|from, end| {
            for line in from..end {
                // SAFETY: each line is one task's.
                let to = unsafe { to.slice(line * width, (line + 1) * width) };
                self.line(line, to);
            }
        });
        Ok(())
    }

    /// Converts one line of memory to single precision.
    ///
    /// # Panics
    /// If there is no such line, or `to` does not have exactly its length.
    pub fn line(&self, line: usize, to: &mut [f32]) {
        let [lines, width] = self.size;
        assert!(line < lines && to.len() == width, "line {line} of {lines}, {width} numbers each");
        dispatch(Line { stored: *self, line, to });
    }
}

/// Elements per task: some 10 µs.
const PIECE: usize = 32 * 1024;

/// Converts a line.
struct Line<'a, 'b> {
    stored: Stored<'a>,
    line: usize,
    to: &'b mut [f32],
}

impl Kernel for Line<'_, '_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        self.stored.visit(Convert { s, line: self.line, to: self.to });
    }
}

struct Convert<'b, S> {
    s: S,
    line: usize,
    to: &'b mut [f32],
}

impl<S: Simd> Visit for Convert<'_, S> {
    type Out = ();
    #[inline(always)]
    fn visit<L: Lines>(self, lines: L) {
        let Convert { s, line, to } = self;
        let mut at = 0;
        while at < to.len() {
            let n = (to.len() - at).min(S::LANES);
            // SAFETY: the line has as many numbers as `to`, of which `n` are left.
            unsafe {
                let to = to.as_mut_ptr().add(at);
                if n == S::LANES {
                    s.store(to, lines.load(s, line, at));
                } else {
                    s.store_part(to, n, lines.load_part(s, line, at, n));
                }
            }
            at += n;
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
