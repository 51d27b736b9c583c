//! Pages of a KV cache: keys and values of a few positions, in one of several storage types.
//!
//! Sequences of any length are then lists of pages. Pages that are shared, such as those of a
//! common prompt, are stored once; a window gives back the pages that it has left behind.

use crate::storage::F16;
use crate::view::{Error, bail};

/// Storage type of cached keys and values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheType {
    /// Single precision.
    #[default]
    F32,
    /// Half precision; values beyond ±65504 become infinite.
    F16,
    /// 8 bits, with a scale for each position and head.
    Int8,
}

impl CacheType {
    /// All types.
    pub const ALL: [CacheType; 3] = [CacheType::F32, CacheType::F16, CacheType::Int8];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            CacheType::F32 => "f32",
            CacheType::F16 => "f16",
            CacheType::Int8 => "int8",
        }
    }

    /// Returns the bytes of a page.
    pub fn page_bytes(self, shape: PageShape) -> usize {
        let rows = 2 * shape.heads * Page::POSITIONS;
        match self {
            CacheType::F32 => 4 * rows * shape.width,
            CacheType::F16 => 2 * rows * shape.width,
            CacheType::Int8 => rows * (shape.width + size_of::<f32>()),
        }
    }
}

/// Sizes of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageShape {
    /// `Hk`, key-value heads.
    pub heads: usize,
    /// `D`, the width of a head.
    pub width: usize,
}

impl PageShape {
    /// Floats of the keys and values of one position.
    pub fn floats(self) -> usize {
        2 * self.heads * self.width
    }
}

/// Keys and values of [`Page::POSITIONS`] positions, `[Hk, 2, positions, D]`.
#[derive(Clone, Debug)]
pub struct Page {
    shape: PageShape,
    data: PageData,
}

/// Elements of a page.
#[derive(Clone, Debug)]
pub(super) enum PageData {
    F32(Vec<f32>),
    F16(Vec<F16>),
    /// Values, and a scale for each of their rows.
    Int8(Vec<i8>, Vec<f32>),
}

/// Keys or values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOrValue {
    /// Keys.
    Key,
    /// Values.
    Value,
}

impl Page {
    /// Positions of a page. A multiple of the engine's blocks of keys, so that a window may begin at
    /// any page.
    pub const POSITIONS: usize = 64;

    /// Creates a page of zeros.
    pub fn new(kind: CacheType, shape: PageShape) -> Page {
        let rows = 2 * shape.heads * Page::POSITIONS;
        let data = match kind {
            CacheType::F32 => PageData::F32(vec![0.0; rows * shape.width]),
            CacheType::F16 => PageData::F16(vec![F16(0); rows * shape.width]),
            CacheType::Int8 => PageData::Int8(vec![0; rows * shape.width], vec![0.0; rows]),
        };
        Page { shape, data }
    }

    /// Returns the sizes.
    pub fn shape(&self) -> PageShape {
        self.shape
    }

    pub(super) fn data(&self) -> &PageData {
        &self.data
    }

    /// Index of the row of a head's key or value at a position.
    pub(super) fn row(head: usize, which: KeyOrValue, at: usize) -> usize {
        (2 * head + usize::from(which == KeyOrValue::Value)) * Page::POSITIONS + at
    }

    /// Stores the keys of all heads, then their values, at a position.
    ///
    /// # Shapes
    /// `both: [2·Hk·D]`
    ///
    /// # Errors
    /// If there is no such position, or `both` has another length.
    pub fn write(&mut self, at: usize, both: &[f32]) -> Result<(), Error> {
        let PageShape { heads, width } = self.shape;
        if at >= Page::POSITIONS || both.len() != self.shape.floats() {
            bail!("page: got position {at} and {} floats for {:?}", both.len(), self.shape);
        }
        for (i, from) in both.chunks_exact(width).enumerate() {
            let which = if i < heads { KeyOrValue::Key } else { KeyOrValue::Value };
            let row = Page::row(i % heads, which, at);
            let to = row * width..(row + 1) * width;
            match &mut self.data {
                PageData::F32(data) => data[to].copy_from_slice(from),
                PageData::F16(data) => {
                    data[to].iter_mut().zip(from).for_each(|(to, x)| *to = F16::from_single(*x));
                }
                PageData::Int8(data, scales) => {
                    scales[row] = quantize(from, &mut data[to]);
                }
            }
        }
        Ok(())
    }

    /// Copies the keys or values of a head at the first positions.
    ///
    /// # Shapes
    /// `to: [positions, D]`
    ///
    /// # Errors
    /// If there is no such head, or `to` is not whole rows of at most all positions.
    pub fn read(&self, head: usize, which: KeyOrValue, to: &mut [f32]) -> Result<(), Error> {
        let PageShape { heads, width } = self.shape;
        let n = to.len() / width.max(1);
        if head >= heads || n > Page::POSITIONS || n * width != to.len() {
            bail!("page: got head {head} and {} floats for {:?}", to.len(), self.shape);
        }
        let first = Page::row(head, which, 0);
        let from = first * width..(first + n) * width;
        match &self.data {
            PageData::F32(data) => to.copy_from_slice(&data[from]),
            PageData::F16(data) => {
                to.iter_mut().zip(&data[from]).for_each(|(to, x)| *to = x.single());
            }
            PageData::Int8(data, scales) => {
                let rows = to.chunks_exact_mut(width).zip(data[from].chunks_exact(width));
                for ((to, from), scale) in rows.zip(&scales[first..]) {
                    to.iter_mut().zip(from).for_each(|(to, x)| *to = f32::from(*x) * scale);
                }
            }
        }
        Ok(())
    }
}

/// Rounds a row to 8 bits and returns its scale. A row with NaN or infinity has the scale NaN.
fn quantize(from: &[f32], to: &mut [i8]) -> f32 {
    let largest = from.iter().fold(0f32, |a, x| if x.is_nan() { f32::NAN } else { a.max(x.abs()) });
    if !largest.is_finite() || from.iter().any(|x| x.is_nan()) {
        to.fill(0);
        return f32::NAN;
    }
    let by = if largest > 0.0 { 127.0 / largest } else { 0.0 };
    // `as` saturates: the product may round to just above 127.
    to.iter_mut().zip(from).for_each(|(to, x)| *to = (x * by).round_ties_even() as i8);
    largest / 127.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_in_each_type() {
        let shape = PageShape { heads: 3, width: 5 };
        for (kind, tolerance) in CacheType::ALL.into_iter().zip([0.0, 1e-3, 8e-3]) {
            let mut page = Page::new(kind, shape);
            let both = |at: usize| -> Vec<f32> {
                (0..30).map(|i| ((at * 31 + i * 7) as f32 * 0.37).sin()).collect()
            };
            (0..Page::POSITIONS).for_each(|at| page.write(at, &both(at)).unwrap());
            for (i, which) in [KeyOrValue::Key, KeyOrValue::Value].into_iter().enumerate() {
                for head in 0..3 {
                    let mut got = vec![0.0; 40 * 5];
                    page.read(head, which, &mut got).unwrap();
                    for (at, got) in got.chunks(5).enumerate() {
                        let want = &both(at)[(i * 3 + head) * 5..][..5];
                        for (got, want) in got.iter().zip(want) {
                            assert!((got - want).abs() <= tolerance, "{kind:?} {got} {want}");
                        }
                    }
                }
            }
            assert!(page.write(64, &both(0)).is_err() && page.write(0, &[0.0]).is_err());
            assert!(page.read(3, KeyOrValue::Key, &mut [0.0; 5]).is_err());
            assert!(page.read(0, KeyOrValue::Key, &mut [0.0; 6]).is_err());
        }
    }

    #[test]
    fn numbers_that_are_not_finite_stay_so() {
        for bad in [f32::NAN, f32::INFINITY] {
            for kind in CacheType::ALL {
                let mut page = Page::new(kind, PageShape { heads: 1, width: 2 });
                page.write(3, &[1.0, bad, 0.0, 0.0]).unwrap();
                let mut got = [0.0; 8];
                page.read(0, KeyOrValue::Key, &mut got).unwrap();
                assert!(!got[7].is_finite() && got[..6] == [0.0; 6], "{kind:?} {got:?}");
                page.read(0, KeyOrValue::Value, &mut got).unwrap();
                assert_eq!(got, [0.0; 8]);
            }
        }
    }
}
