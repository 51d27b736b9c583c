//! Buffers that a thread reuses.
//!
//! A decoding run takes some megabytes for its caches, and returns them when it ends. The system
//! clears memory that it gives, page by page: an eighth of the time of a small translator.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

/// Limits of what a thread keeps: number of buffers, and floats in all of them (32 MiB, which hold
/// the caches of 32 sentences with 4 beams in a translator of width 256).
const BUFFERS: usize = 64;
const KEPT: usize = 8 << 20;

thread_local! {
    static FREE: RefCell<Vec<Vec<f32>>> = const { RefCell::new(Vec::new()) };
}

/// A slice of floats whose length changes. What it holds after a change of length is not defined.
#[derive(Default)]
pub struct Floats {
    /// At least `len` floats.
    data: Vec<f32>,
    len: usize,
}

impl Floats {
    /// Creates an empty buffer, from the memory of an earlier one if there is one.
    pub fn new() -> Floats {
        let data = FREE.with_borrow_mut(Vec::pop).unwrap_or_default();
        Floats { data, len: 0 }
    }

    /// Changes the length. The floats are not defined.
    pub fn set_len(&mut self, len: usize) {
        if self.data.len() < len {
            // The smallest of the free buffers that is large enough.
            let found = FREE.with_borrow_mut(|free| {
                let fits = (0..free.len()).filter(|at| free[*at].len() >= len);
                let at = fits.min_by_key(|at| free[*at].len())?;
                Some(std::mem::replace(&mut free[at], std::mem::take(&mut self.data)))
            });
            match found {
                Some(data) => self.data = data,
                None => self.data.resize(len, 0.0),
            }
        }
        self.len = len;
    }

    /// Replaces the contents.
    pub fn copy_from(&mut self, from: &[f32]) {
        self.set_len(from.len());
        self.copy_from_slice(from);
    }

    /// Replaces rows of `width` floats: row `i` by what row `rows[i]` was.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn select(&mut self, width: usize, rows: &[usize]) {
        let same = rows.iter().enumerate().all(|(i, row)| i == *row);
        if same && rows.len() * width == self.len {
            return;
        }
        let mut selected = Floats::new();
        selected.set_len(rows.len() * width);
        for (to, row) in selected.chunks_exact_mut(width.max(1)).zip(rows) {
            to.copy_from_slice(&self[row * width..(row + 1) * width]);
        }
        *self = selected;
    }

    /// Replaces the contents by rows of several arrays side by side.
    ///
    /// # Shapes
    /// `parts: [rows, ·]` each
    ///
    /// # Panics
    /// If the length of a part is not a multiple of `rows`.
    pub fn join(&mut self, rows: usize, parts: &[&[f32]]) {
        let all: usize = parts.iter().map(|part| part.len()).sum();
        self.set_len(all);
        let (wide, mut first) = (all / rows.max(1), 0);
        for part in parts {
            let width = part.len() / rows.max(1);
            assert_eq!(part.len(), rows * width, "join: needs {rows} rows");
            for (to, from) in
                self.chunks_exact_mut(wide.max(1)).zip(part.chunks_exact(width.max(1)))
            {
                to[first..first + width].copy_from_slice(from);
            }
            first += width;
        }
    }
}

impl Drop for Floats {
    fn drop(&mut self) {
        if self.data.is_empty() {
            return;
        }
        let data = std::mem::take(&mut self.data);
        // The thread may be ending.
        let _ = FREE.try_with(|free| {
            let mut free = free.borrow_mut();
            let held: usize = free.iter().map(Vec::len).sum();
            if free.len() < BUFFERS && held + data.len() <= KEPT {
                free.push(data);
            }
        });
    }
}

impl Deref for Floats {
    type Target = [f32];
    fn deref(&self) -> &[f32] {
        &self.data[..self.len]
    }
}

impl DerefMut for Floats {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.data[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_and_lengths_are_those_asked_for() {
        let mut a = Floats::new();
        a.copy_from(&[1.0; 1000]);
        let place = a.as_ptr();
        drop(a);
        let (mut b, mut c) = (Floats::new(), Floats::new());
        c.set_len(10);
        b.set_len(900);
        assert!(b.as_ptr() == place || c.as_ptr() == place);
        b.copy_from(&[2.0, 3.0]);
        assert_eq!((b.len(), c.len()), (2, 10));
        assert_eq!(b[..], [2.0, 3.0]);
        b.set_len(0);
        assert!(b.is_empty());
    }

    #[test]
    fn rows_are_selected_and_joined() {
        let mut a = Floats::new();
        a.copy_from(&[1.0, 2.0, 3.0, 4.0]);
        a.select(2, &[1, 1, 0]);
        assert_eq!(a[..], [3.0, 4.0, 3.0, 4.0, 1.0, 2.0]);
        a.select(2, &[0, 1]);
        assert_eq!(a[..], [3.0, 4.0, 3.0, 4.0]);
        let mut b = Floats::new();
        b.join(2, &[&a, &[7.0, 8.0], &[]]);
        assert_eq!(b[..], [3.0, 4.0, 7.0, 3.0, 4.0, 8.0]);
    }
}
