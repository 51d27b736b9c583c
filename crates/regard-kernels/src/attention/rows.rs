//! Rows of one head: access to queries, keys, values and their gradients.

use crate::gemm::micro::panel_width;
use crate::scratch::Scratch;
use crate::simd::{Kernel, Simd, dispatch, isa};
use crate::view::{View, ViewMut};

/// The rows of one head of one batch row: element `(n, d)` is at `start + n·row + d·col`.
#[derive(Clone, Copy)]
pub struct Rows {
    pub start: *const f32,
    pub row: isize,
    pub col: isize,
    pub width: usize,
}

impl Rows {
    pub fn of(view: &View, b: usize, h: usize) -> Rows {
        let [_, _, row, col] = view.strides;
        Rows { start: view.at(b, h, 0, 0), row, col, width: view.shape[3] }
    }

    /// The rows from `n` on.
    pub fn from(self, n: usize) -> Rows {
        Rows { start: self.start.wrapping_offset(n as isize * self.row), ..self }
    }

    /// # Safety
    /// The element must exist.
    #[inline(always)]
    pub unsafe fn get(self, n: usize, d: usize) -> f32 {
        // SAFETY: the caller vouches for the element.
        unsafe { *self.start.offset(n as isize * self.row + d as isize * self.col) }
    }
}

/// Loads `n` features from `d` on, then zeros.
///
/// # Safety
/// They must exist.
#[inline(always)]
pub(crate) unsafe fn load<S: Simd>(s: S, rows: Rows, at: usize, d: usize, n: usize) -> S::V {
    // SAFETY: the caller vouches for the features.
    unsafe {
        let p = rows.start.offset(at as isize * rows.row + d as isize * rows.col);
        if rows.col == 1 && n == S::LANES {
            s.load(p)
        } else if rows.col == 1 {
            s.load_part(p, n)
        } else {
            let mut line = [0f32; 16];
            for (c, x) in line.iter_mut().enumerate().take(n) {
                *x = *p.offset(c as isize * rows.col);
            }
            s.load(line.as_ptr())
        }
    }
}

/// `n` rounded up to whole vectors.
pub(crate) fn padded(n: usize) -> usize {
    n.next_multiple_of(isa().lanes())
}

/// Columns of a panel on the selected instruction set.
pub(crate) fn panel() -> usize {
    struct Width;
    impl Kernel for Width {
        type Out = usize;
        #[inline(always)]
        fn run<S: Simd>(self, _: S) -> usize {
            panel_width::<S>()
        }
    }
    dispatch(Width)
}

/// Number of floats that [`pack`] writes for `n` rows of `width`.
pub(crate) fn packed_len(n: usize, width: usize) -> usize {
    n.next_multiple_of(panel()) * width
}

/// Transposes `n` rows into panels, times `scale`: the right operand of a score. Lanes beyond the
/// rows become zeros.
///
/// # Safety
/// `n` rows must exist.
pub(crate) unsafe fn pack(rows: Rows, n: usize, scale: f32, out: &mut [f32]) {
    assert!(out.len() >= packed_len(n, rows.width));
    dispatch(Pack { rows, n, scale, out: out.as_mut_ptr() });
}

struct Pack {
    rows: Rows,
    n: usize,
    scale: f32,
    out: *mut f32,
}

impl Kernel for Pack {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let (width, panel) = (self.rows.width, panel_width::<S>());
        let scale = s.splat(self.scale);
        for n in (0..self.n.next_multiple_of(panel)).step_by(S::LANES) {
            let rows = self.rows.from(n);
            let count = self.n.saturating_sub(n).min(S::LANES);
            // SAFETY: `count` rows of `width` exist from `n` on, and the panels were allocated
            // for whole panels of rows.
            unsafe {
                let out = self.out.add(n / panel * panel * width + n % panel);
                for d in (0..width).step_by(S::LANES) {
                    let columns = (width - d).min(S::LANES);
                    let mut square = [s.splat(0.0); 16];
                    for (r, vector) in square.iter_mut().enumerate().take(count) {
                        let p = rows.start.offset(r as isize * rows.row + d as isize * rows.col);
                        *vector = if rows.col != 1 {
                            let mut line = [0f32; 16];
                            for (c, x) in line.iter_mut().enumerate().take(columns) {
                                *x = *p.offset(c as isize * rows.col);
                            }
                            s.load(line.as_ptr())
                        } else if columns == S::LANES {
                            s.load(p)
                        } else {
                            s.load_part(p, columns)
                        };
                    }
                    s.transpose(&mut square[..S::LANES]);
                    for (c, vector) in square.iter().enumerate().take(columns) {
                        s.store(out.add((d + c) * panel), s.mul(*vector, scale));
                    }
                }
            }
        }
    }
}

/// `to[n] += x[n] · y[n]` for rows of one width.
///
/// # Safety
/// Both must have as many rows as `to` has elements.
pub(crate) unsafe fn add_dots(x: Rows, y: Rows, to: &mut [f32]) {
    assert_eq!(x.width, y.width, "rows of one width");
    dispatch(AddDots { x, y, to });
}

struct AddDots<'a> {
    x: Rows,
    y: Rows,
    to: &'a mut [f32],
}

impl Kernel for AddDots<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let (x, y, width) = (self.x, self.y, self.x.width);
        let narrow = width <= S::LANES && (x.col, y.col) == (1, 1);
        for (i, to) in self.to.iter_mut().enumerate() {
            let mut sum = s.splat(0.0);
            // SAFETY: the caller vouches for the rows.
            unsafe {
                if narrow {
                    let x = s.load_part(x.start.offset(i as isize * x.row), width);
                    sum = s.mul(x, s.load_part(y.start.offset(i as isize * y.row), width));
                } else {
                    for d in (0..width).step_by(S::LANES) {
                        let n = (width - d).min(S::LANES);
                        sum = s.fma(load(s, x, i, d, n), load(s, y, i, d, n), sum);
                    }
                }
            }
            *to += s.sum(sum);
        }
    }
}

/// Rows that vectors can be loaded from: contiguous, and padded with zeros to whole vectors. They
/// are the caller's memory if it has this layout, otherwise a copy.
pub(crate) struct RowBlock {
    pub start: *const f32,
    pub row: isize,
    /// Rows that hold a value that is not finite. In the copy they are zeros.
    pub poisoned: Vec<usize>,
    /// The original rows, with these values.
    pub original: Rows,
    _copy: Option<Scratch>,
}

impl RowBlock {
    /// Prepares `n` rows. With `careful`, rows that hold NaN or infinity are treated separately.
    ///
    /// # Safety
    /// `n` rows must exist and stay while the block is used.
    pub unsafe fn new(rows: Rows, n: usize, careful: bool) -> RowBlock {
        let wide = padded(rows.width);
        if !careful && rows.col == 1 && wide == rows.width {
            let (start, row) = (rows.start, rows.row);
            return RowBlock { start, row, poisoned: vec![], original: rows, _copy: None };
        }
        let mut copy = Scratch::new(n * wide);
        let mut poisoned = vec![];
        for (i, line) in copy.chunks_exact_mut(wide.max(1)).enumerate() {
            for (d, x) in line.iter_mut().enumerate() {
                // SAFETY: the caller vouches for `n` rows.
                *x = if d < rows.width { unsafe { rows.get(i, d) } } else { 0.0 };
            }
            if careful && !line.iter().all(|x| x.is_finite()) {
                poisoned.push(i);
                line.fill(0.0);
            }
        }
        let (start, row) = (copy.as_ptr(), wide as isize);
        RowBlock { start, row, poisoned, original: rows, _copy: Some(copy) }
    }
}

/// Rows of one head to write.
pub(crate) struct RowTarget<'a> {
    pub view: &'a ViewMut<'a>,
    /// Batch row, head and first row.
    pub first: [usize; 3],
    /// Number of rows.
    pub rows: usize,
}

/// Writes rows of `from` (with row length `wide`), each times `scale` and its own factor, and
/// returns whether all of them are finite.
///
/// # Safety
/// The rows must exist in both.
pub(crate) unsafe fn store_rows(
    from: &[f32],
    wide: usize,
    factors: Option<&[f32]>,
    scale: f32,
    to: RowTarget,
) -> bool {
    let RowTarget { view, first: [b, h, n0], rows: n } = to;
    dispatch(StoreRows {
        from: from.as_ptr(),
        wide,
        factors,
        scale,
        to: view.at(b, h, n0, 0),
        row: view.strides[2],
        col: view.strides[3],
        n,
        width: view.shape[3],
    })
}

struct StoreRows<'a> {
    from: *const f32,
    wide: usize,
    factors: Option<&'a [f32]>,
    scale: f32,
    to: *mut f32,
    row: isize,
    col: isize,
    n: usize,
    width: usize,
}

impl Kernel for StoreRows<'_> {
    type Out = bool;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> bool {
        let mut check = s.splat(0.0); // 0·x is NaN unless x is finite
        for i in 0..self.n {
            let factor = s.splat(self.factors.map_or(1.0, |f| f[i]) * self.scale);
            for d in (0..self.width).step_by(S::LANES) {
                let columns = (self.width - d).min(S::LANES);
                // SAFETY: the caller vouches for the rows; `from` has whole vectors.
                unsafe {
                    let x = s.mul(s.load(self.from.add(i * self.wide + d)), factor);
                    check = s.fma(x, s.splat(0.0), check);
                    let to = self.to.offset(i as isize * self.row + d as isize * self.col);
                    if self.col != 1 {
                        let mut line = [0f32; 16];
                        s.store(line.as_mut_ptr(), x);
                        for (c, x) in line.iter().enumerate().take(columns) {
                            *to.offset(c as isize * self.col) = *x;
                        }
                    } else if columns == S::LANES {
                        s.store(to, x);
                    } else {
                        s.store_part(to, columns, x);
                    }
                }
            }
        }
        s.sum(check) == 0.0
    }
}
