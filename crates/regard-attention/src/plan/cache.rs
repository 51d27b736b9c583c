//! KV cache of rows, on slices.

use super::Floats;

/// Positions are added in steps of this many.
const STEP: usize = 16;

/// Keys and values of one layer: for each row and position the keys of all heads, then the values.
#[derive(Default)]
pub struct RowCache {
    /// `[rows, capacity, width]`
    data: Floats,
    /// Used while rows are reordered or the capacity grows.
    other: Floats,
    rows: usize,
    capacity: usize,
    len: usize,
    width: usize,
}

impl RowCache {
    /// Creates an empty cache for this many rows, with `width` floats per position.
    pub fn new(rows: usize, width: usize) -> RowCache {
        let (data, other) = (Floats::new(), Floats::new());
        RowCache { data, other, rows, width, ..RowCache::default() }
    }

    /// Returns the number of cached positions.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no position is cached.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the floats, and the distances between rows and between positions.
    pub fn data(&self) -> (&[f32], [usize; 2]) {
        (&self.data, [self.capacity * self.width, self.width])
    }

    /// Appends `new` positions to each row. `from` has them in rows of `stride` floats, the cached
    /// ones last: `[rows · new, stride]`.
    ///
    /// # Panics
    /// If there is another number of rows.
    pub fn append(&mut self, from: &[f32], stride: usize, new: usize) {
        assert_eq!(from.len(), self.rows * new * stride, "cache: needs a row for each row");
        if self.len + new > self.capacity {
            // Half as much again, so that a long sequence is copied only a few times.
            let all = self.len + new;
            let wide = (all + all / 2).next_multiple_of(STEP);
            self.relayout(wide, &(0..self.rows).collect::<Vec<_>>());
            // The smaller buffer is of no more use here.
            self.other = Floats::new();
        }
        let skip = stride - self.width;
        for (at, from) in from.chunks_exact(stride).enumerate() {
            let to = (at / new * self.capacity + self.len + at % new) * self.width;
            self.data[to..to + self.width].copy_from_slice(&from[skip..]);
        }
        self.len += new;
    }

    /// Reorders rows, as beam search does: row `i` continues row `parents[i]`.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn reorder(&mut self, parents: &[usize]) {
        let moved = |(row, parent): (usize, &usize)| row != *parent;
        let count = parents.iter().enumerate().filter(|x| moved(*x)).count();
        // Through a copy, each moved row is copied twice.
        if parents.len() != self.rows || 2 * count > parents.len() {
            self.relayout(self.capacity, parents);
            return;
        }
        let (row, used) = (self.capacity * self.width, self.len * self.width);
        self.other.set_len(count * used);
        let moved = || parents.iter().enumerate().filter(|x| moved(*x)).enumerate();
        for (number, (_, parent)) in moved() {
            let from = &self.data[parent * row..parent * row + used];
            self.other[number * used..(number + 1) * used].copy_from_slice(from);
        }
        for (number, (to, _)) in moved() {
            let from = &self.other[number * used..(number + 1) * used];
            self.data[to * row..to * row + used].copy_from_slice(from);
        }
    }

    /// Copies rows to another capacity or order.
    fn relayout(&mut self, capacity: usize, parents: &[usize]) {
        let (old, new) = (self.capacity * self.width, capacity * self.width);
        let used = self.len * self.width;
        // Positions that are not used yet may hold anything.
        self.other.set_len(parents.len() * new);
        for (row, parent) in parents.iter().enumerate() {
            let from = &self.data[parent * old..parent * old + used];
            self.other[row * new..row * new + used].copy_from_slice(from);
        }
        std::mem::swap(&mut self.data, &mut self.other);
        (self.capacity, self.rows) = (capacity, parents.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A position of a row as the cache has it.
    fn at(cache: &RowCache, row: usize, position: usize) -> Vec<f32> {
        let (data, [rows, step]) = cache.data();
        data[row * rows + position * step..][..step].to_vec()
    }

    #[test]
    fn rows_are_appended_and_reordered_as_lists_would_be() {
        let (width, stride) = (3, 5);
        let mut cache = RowCache::new(1, width);
        let mut want: Vec<Vec<f32>> = vec![vec![]];
        let mut next = 0f32;
        let orders: [&[usize]; 8] = [
            &[0, 0, 0, 0],
            &[1, 0, 2, 3],
            &[0, 1, 2, 3],
            &[3, 3, 2, 1],
            &[0, 1, 2, 2],
            &[2, 0],
            &[1, 1],
            &[0, 1, 1],
        ];
        for round in 0..40 {
            let mut rows = vec![];
            for row in &mut want {
                let floats: Vec<f32> = (0..stride).map(|i| next + i as f32).collect();
                next += 10.0;
                row.extend(&floats[stride - width..]);
                rows.extend(floats);
            }
            cache.append(&rows, stride, 1);
            let order = orders[round % orders.len()];
            if order.iter().all(|parent| *parent < want.len()) {
                want = order.iter().map(|parent| want[*parent].clone()).collect();
                cache.reorder(order);
            }
            assert_eq!(cache.len(), round + 1);
            for (row, want) in want.iter().enumerate() {
                for (position, want) in want.chunks(width).enumerate() {
                    assert_eq!(at(&cache, row, position), want, "{round} {row} {position}");
                }
            }
        }
    }

    #[test]
    fn several_positions_at_once_are_those_one_by_one() {
        let floats: Vec<f32> = (0..2 * 7 * 4).map(|i| i as f32).collect();
        let (mut whole, mut single) = (RowCache::new(2, 4), RowCache::new(2, 4));
        whole.append(&floats, 4, 7);
        for position in 0..7 {
            let row = |row: usize| floats[(row * 7 + position) * 4..][..4].to_vec();
            single.append(&[row(0), row(1)].concat(), 4, 1);
        }
        for (row, position) in (0..2).flat_map(|row| (0..7).map(move |p| (row, p))) {
            assert_eq!(at(&whole, row, position), at(&single, row, position));
        }
    }
}
