//! Unnormalised output of a block of queries: `Σ_j p_j · v_j`.

use super::listed::AccumulateListed;
use super::rows::{RowBlock, Rows, padded};
use super::tile::{Keys, Over, Tile, accumulate, accumulate_listed};
use crate::scratch::Scratch;
use crate::simd::{Kernel, Simd, dispatch};

/// Widest values whose sums are stored transposed: a row for each feature, a lane for each query. A
/// vector along a row of so few features would be mostly padding. With 1 feature, 100,000 keys and
/// 10,000 queries the forward takes 1.41 times as long as its exponentials alone; with sums along
/// rows, transposed for every block, it took 1.54 (two threads of AVX-512).
const NARROW: usize = 4;

/// Sums of a block of queries.
pub(crate) struct Sums {
    data: Scratch,
    queries: usize,
    width: usize,
    turned: bool,
}

impl Sums {
    /// Zeros, for so many queries and features. Lists, and values that may not be finite, need
    /// `rows`.
    pub fn new(queries: usize, width: usize, rows: bool) -> Sums {
        let turned = !rows && width <= NARROW;
        let len = if turned { width * padded(queries) } else { queries * padded(width) };
        Sums { data: Scratch::zeroed(len), queries, width, turned }
    }

    /// Multiplies each query's sums by its factor. A factor of 0 clears them, whatever they were.
    pub fn rescale(&mut self, factors: &[f32]) {
        assert!(factors.len() >= padded(self.queries));
        let Sums { data, queries, turned, .. } = self;
        match turned {
            true => dispatch(RescaleTurned { sums: data, lanes: padded(*queries), factors }),
            false => dispatch(Rescale { sums: data, wide: padded(self.width), factors }),
        }
    }

    /// `sums[i] += Σ_j p[j, i] · v[j]`
    ///
    /// # Safety
    /// The values of the block's keys must exist.
    pub unsafe fn add(&mut self, keys: Keys, tile: &mut Tile, values: Rows, careful: bool) {
        let wide = padded(self.width);
        match keys {
            Keys::Run { start, len } if self.turned => {
                assert!(tile.lanes == padded(self.queries) && tile.keys == len);
                assert!(tile.data.len() >= tile.keys * tile.lanes && values.width == self.width);
                dispatch(AddTurned { tile, rows: values.from(start), sums: &mut self.data });
            }
            // SAFETY: the caller vouches for the values.
            Keys::Run { start, len } => unsafe {
                let block = RowBlock::new(values.from(start), len, careful);
                accumulate(tile, Over::Keys, &block, &mut self.data, wide);
            },
            // SAFETY: the caller vouches for the values.
            Keys::Listed { .. } => unsafe {
                let (over, rows, target) = (Over::Keys, values, &mut self.data);
                accumulate_listed(AccumulateListed { tile, keys, over, rows, target, wide });
            },
        }
    }

    /// A row for each query, padded to whole vectors.
    pub fn into_rows(self) -> Scratch {
        if !self.turned {
            return self.data;
        }
        let (lanes, wide) = (padded(self.queries), padded(self.width));
        let mut rows = Scratch::zeroed(self.queries * wide);
        for (i, row) in rows.chunks_exact_mut(wide).enumerate() {
            for (d, x) in row.iter_mut().enumerate().take(self.width) {
                *x = self.data[d * lanes + i];
            }
        }
        rows
    }
}

struct Rescale<'a> {
    sums: &'a mut [f32],
    wide: usize,
    factors: &'a [f32],
}

impl Kernel for Rescale<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        for (row, factor) in self.sums.chunks_exact_mut(self.wide).zip(self.factors) {
            if *factor == 1.0 {
                continue;
            }
            let (zero, factor) = (*factor == 0.0, s.splat(*factor));
            for d in (0..self.wide).step_by(S::LANES) {
                // SAFETY: rows are whole vectors.
                unsafe {
                    let p = row.as_mut_ptr().add(d);
                    s.store(p, if zero { s.splat(0.0) } else { s.mul(s.load(p), factor) });
                }
            }
        }
    }
}

struct RescaleTurned<'a> {
    sums: &'a mut [f32],
    lanes: usize,
    factors: &'a [f32],
}

impl Kernel for RescaleTurned<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let zero = s.splat(0.0);
        for row in self.sums.chunks_exact_mut(self.lanes) {
            for lane in (0..self.lanes).step_by(S::LANES) {
                // SAFETY: rows are whole vectors, and there is a factor for each lane.
                unsafe {
                    let p = row.as_mut_ptr().add(lane);
                    let factor = s.load(self.factors.as_ptr().add(lane));
                    let clear = s.le(s.abs(factor), zero);
                    s.store(p, s.select(clear, zero, s.mul(s.load(p), factor)));
                }
            }
        }
    }
}

/// Every sum is the same chain of multiply-adds, in the order of the keys, as along rows.
struct AddTurned<'a, 'b> {
    tile: &'a Tile<'b>,
    rows: Rows,
    sums: &'a mut [f32],
}

impl Kernel for AddTurned<'_, '_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        for d in 0..self.rows.width {
            let mut lane = 0;
            // Several chains in parallel, because each waits for its own previous step.
            while lane + 4 * S::LANES <= self.tile.lanes {
                self.columns::<S, 4>(s, lane, d);
                lane += 4 * S::LANES;
            }
            while lane < self.tile.lanes {
                self.columns::<S, 1>(s, lane, d);
                lane += S::LANES;
            }
        }
    }
}

impl AddTurned<'_, '_> {
    #[inline(always)]
    fn columns<S: Simd, const C: usize>(&mut self, s: S, lane: usize, d: usize) {
        let lanes = self.tile.lanes;
        // SAFETY: `Sums::add` checked the tile, whose lanes are those of the sums; its caller
        // vouches for the rows.
        unsafe {
            let sums = self.sums.as_mut_ptr().add(d * lanes + lane);
            let mut acc = [s.splat(0.0); C];
            for (c, acc) in acc.iter_mut().enumerate() {
                *acc = s.load(sums.add(c * S::LANES));
            }
            let cells = self.tile.data.as_ptr().add(lane);
            for j in 0..self.tile.keys {
                let value = s.splat(self.rows.get(j, d));
                for (c, acc) in acc.iter_mut().enumerate() {
                    *acc = s.fma(s.load(cells.add(j * lanes + c * S::LANES)), value, *acc);
                }
            }
            for (c, acc) in acc.iter().enumerate() {
                s.store(sums.add(c * S::LANES), *acc);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::isa;

    /// Both layouts of a block with a partial vector of queries, a rescaling and a clearing.
    #[test]
    fn turned_sums_are_those_of_rows_bitwise() {
        for (queries, keys, width) in [(1, 3, 1), (37, 64, 1), (64, 17, 2), (50, 64, 4)] {
            let number = |i: usize| ((i * 7919 + 13) % 101) as f32 / 37.0 - 1.0;
            let lanes = padded(queries);
            let mut cells: Vec<f32> = (0..keys * lanes).map(number).collect();
            let values: Vec<f32> = (0..keys * width).map(|i| number(i + 5)).collect();
            let rows = Rows { start: values.as_ptr(), row: width as isize, col: 1, width };
            let mut factors: Vec<f32> = (0..lanes).map(|i| number(i + 9).abs()).collect();
            factors[0] = 0.0;
            let said = [false, true].map(|by_rows| {
                let mut sums = Sums::new(queries, width, by_rows);
                let mut tile = Tile { data: &mut cells, keys, lanes, queries, spans: None };
                for _ in 0..2 {
                    // SAFETY: there is a value for each key.
                    unsafe { sums.add(Keys::Run { start: 0, len: keys }, &mut tile, rows, false) };
                    sums.rescale(&factors);
                }
                let rows = sums.into_rows();
                rows.iter().map(|x| x.to_bits()).collect::<Vec<u32>>()
            });
            assert_eq!(said[0], said[1], "{queries} × {keys} × {width} on {}", isa().name());
        }
    }
}
