//! Borrowed four-dimensional arrays with any strides.

use std::marker::PhantomData;

/// Invalid shape or argument, with a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(pub String);

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for Error {}

/// Returns an [`Error`] with a formatted message.
macro_rules! bail {
    ($($t:tt)*) => { return Err($crate::view::Error(format!($($t)*))) };
}
pub(crate) use bail;

/// Read-only view of `[B, H, N, D]` with any strides, including negative and zero ones.
#[derive(Clone, Copy)]
pub struct View<'a> {
    origin: *const f32,
    /// Batch, heads, rows, width.
    pub shape: [usize; 4],
    /// Strides, in floats.
    pub strides: [isize; 4],
    owner: PhantomData<&'a [f32]>,
}

// SAFETY: a `View` is a shared borrow of floats.
unsafe impl Send for View<'_> {}
// SAFETY: as above.
unsafe impl Sync for View<'_> {}

/// Returns the strides of a contiguous array.
pub fn contiguous(shape: [usize; 4]) -> [isize; 4] {
    // Wrapping: the users of the strides reject shapes that are too large for memory.
    let [_, h, n, d] = shape.map(|x| x as isize);
    [h.wrapping_mul(n).wrapping_mul(d), n.wrapping_mul(d), d, 1]
}

/// The lowest and highest offset that an array accesses, relative to its first element.
fn extent(shape: [usize; 4], strides: [isize; 4]) -> Option<(i128, i128)> {
    let mut reach = (0i128, 0i128);
    for (n, stride) in shape.into_iter().zip(strides) {
        let end = (n as i128 - 1).checked_mul(stride as i128)?;
        reach = (reach.0.checked_add(end.min(0))?, reach.1.checked_add(end.max(0))?);
    }
    Some(reach)
}

fn check(len: usize, shape: [usize; 4], strides: [isize; 4], offset: usize) -> Result<(), Error> {
    if shape.contains(&0) {
        return Ok(());
    }
    // A wrapped product would be less than the shape's size.
    if shape.iter().try_fold(1usize, |x, n| x.checked_mul(*n)).is_none() {
        bail!("a shape of {shape:?} overflows");
    }
    let inside = extent(shape, strides).is_some_and(|(low, high)| {
        low + offset as i128 >= 0 && high + (offset as i128) < len as i128
    });
    if !inside {
        bail!(
            "a view of shape {shape:?} with strides {strides:?} does not lie within {len} floats"
        );
    }
    Ok(())
}

impl<'a> View<'a> {
    /// Creates a view of a contiguous array.
    ///
    /// # Errors
    /// If `data` is shorter than the shape.
    pub fn new(data: &'a [f32], shape: [usize; 4]) -> Result<View<'a>, Error> {
        View::strided(data, shape, contiguous(shape), 0)
    }

    /// Creates a view of an array whose first element is `data[offset]`.
    ///
    /// # Errors
    /// If an element lies outside `data`.
    pub fn strided(
        data: &'a [f32],
        shape: [usize; 4],
        strides: [isize; 4],
        offset: usize,
    ) -> Result<View<'a>, Error> {
        check(data.len(), shape, strides, offset)?;
        Ok(View { origin: data.as_ptr().wrapping_add(offset), shape, strides, owner: PhantomData })
    }

    /// Creates a view from a pointer to its first element.
    ///
    /// # Safety
    /// Every element that shape and strides reach from `origin` must be readable for `'a`.
    pub unsafe fn from_raw(origin: *const f32, shape: [usize; 4], strides: [isize; 4]) -> Self {
        View { origin, shape, strides, owner: PhantomData }
    }

    /// Returns the address of an element, which may be out of bounds.
    #[inline(always)]
    pub fn at(&self, b: usize, h: usize, n: usize, d: usize) -> *const f32 {
        let [sb, sh, sn, sd] = self.strides;
        let offset = b as isize * sb + h as isize * sh + n as isize * sn + d as isize * sd;
        self.origin.wrapping_offset(offset)
    }

    /// Returns one element.
    ///
    /// # Panics
    /// If the index is out of bounds.
    #[inline(always)]
    pub fn get(&self, b: usize, h: usize, n: usize, d: usize) -> f32 {
        let [sb, sh, sn, sd] = self.shape;
        assert!(b < sb && h < sh && n < sn && d < sd, "index outside of the view");
        // SAFETY: the index is inside the shape, which was checked against the memory.
        unsafe { *self.at(b, h, n, d) }
    }

    /// Copies all elements in row-major order.
    pub fn to_vec(&self) -> Vec<f32> {
        let [b, h, n, d] = self.shape;
        let mut out = crate::memory::room(&[b, h, n, d]);
        for row in 0..b * h * n {
            let (b, h, n) = (row / (h * n), row / n % h, row % n);
            let row = self.at(b, h, n, 0);
            // SAFETY: the row is inside the shape, which was checked against the memory.
            unsafe {
                if self.strides[3] == 1 {
                    out.extend_from_slice(std::slice::from_raw_parts(row, d));
                } else {
                    out.extend((0..d as isize).map(|d| *row.offset(d * self.strides[3])));
                }
            }
        }
        out
    }
}

/// Mutable view of `[B, H, N, D]` with any strides under which no two elements share memory.
pub struct ViewMut<'a> {
    origin: *mut f32,
    /// Batch, heads, rows, width.
    pub shape: [usize; 4],
    /// Strides, in floats.
    pub strides: [isize; 4],
    owner: PhantomData<&'a mut [f32]>,
}

// SAFETY: a `ViewMut` is a unique borrow of floats; tasks that share it write different rows.
unsafe impl Send for ViewMut<'_> {}
// SAFETY: as above.
unsafe impl Sync for ViewMut<'_> {}

impl<'a> ViewMut<'a> {
    /// Creates a view of a contiguous array.
    ///
    /// # Errors
    /// If `data` is shorter than the shape.
    pub fn new(data: &'a mut [f32], shape: [usize; 4]) -> Result<ViewMut<'a>, Error> {
        ViewMut::strided(data, shape, contiguous(shape))
    }

    /// Creates a view of an array that starts at `data[0]`.
    ///
    /// # Errors
    /// If an element lies outside `data`, or if two elements share memory.
    pub fn strided(
        data: &'a mut [f32],
        shape: [usize; 4],
        strides: [isize; 4],
    ) -> Result<ViewMut<'a>, Error> {
        check(data.len(), shape, strides, 0)?;
        // Ordered by stride, each axis must step over everything that the smaller ones reach.
        let mut axes: Vec<_> = shape.into_iter().zip(strides).filter(|(n, _)| *n > 1).collect();
        if shape.contains(&0) {
            axes.clear();
        }
        axes.sort_by_key(|(_, stride)| stride.abs());
        let mut reach = 0;
        for (n, stride) in axes {
            if stride.abs() <= reach {
                bail!("strides {strides:?} of an output of shape {shape:?} overlap");
            }
            reach += (n as isize - 1) * stride.abs();
        }
        Ok(ViewMut { origin: data.as_mut_ptr(), shape, strides, owner: PhantomData })
    }

    /// Returns the address of an element, which may be out of bounds. Tasks must write disjoint
    /// rows.
    #[inline(always)]
    pub fn at(&self, b: usize, h: usize, n: usize, d: usize) -> *mut f32 {
        let [sb, sh, sn, sd] = self.strides;
        let offset = b as isize * sb + h as isize * sh + n as isize * sn + d as isize * sd;
        self.origin.wrapping_offset(offset)
    }
}
