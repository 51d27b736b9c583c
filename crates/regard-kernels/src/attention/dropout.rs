//! Dropped weights. The backward makes the same choice again instead of keeping it.

use super::tile::{At, Keys, Tile, each_cell};
use crate::rng::Stream;
use crate::simd::{Kernel, Simd, dispatch};

/// Attention weights that are dropped at random in training.
#[derive(Clone, Copy, Debug)]
pub struct Dropout {
    /// The probability that a weight is dropped, below 1; the others are scaled up.
    pub p: f32,
    /// Where the choice comes from.
    pub noise: Stream,
}

impl Dropout {
    /// Drops and scales the cells of a tile; each cell's fate is a function of its place in
    /// `[B, H, T, S]`.
    pub(super) fn apply(self, at: &At, tile: &mut Tile) {
        let d = at.grid.dims;
        let row = |i: usize| ((at.b * d.h + at.h) * d.t + i) as u64 * d.s as u64;
        match at.keys {
            Keys::Run { start, .. } => {
                let rows: Vec<u64> = (0..tile.lanes).map(|lane| row(at.i0 + lane)).collect();
                let half =
                    |shift: u32| rows.iter().map(|x| (x >> shift) as u32).collect::<Vec<_>>();
                let (low, high) = (half(0), half(32));
                dispatch(DropRun { dropout: self, start, low: &low, high: &high, tile });
            }
            Keys::Listed { .. } => {
                let kept = 1.0 / (1.0 - self.p);
                each_cell(at, tile, |cell, i, j| {
                    let keep = self.noise.uniform(row(i) + j as u64) >= self.p;
                    *cell = if keep { *cell * kept } else { 0.0 };
                });
            }
        }
    }
}

struct DropRun<'a, 'b> {
    dropout: Dropout,
    start: usize,
    low: &'a [u32],
    high: &'a [u32],
    tile: &'a mut Tile<'b>,
}

impl Kernel for DropRun<'_, '_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Dropout { p, noise } = self.dropout;
        // uniform ≥ p, in whole numbers: uniform is 24 bits of the word over 2²⁴.
        let (kept, least) = (1.0 / (1.0 - p), (p * 16_777_216.0).ceil() as u32);
        let Tile { data, keys, lanes, .. } = self.tile;
        for (row, cells) in data.chunks_exact_mut(*lanes).take(*keys).enumerate() {
            let key = (self.start + row) as u32;
            // Plain 32-bit arithmetic, which becomes vectors of whatever this is compiled for.
            for ((cell, low), high) in cells.iter_mut().zip(self.low).zip(self.high) {
                let index = low.wrapping_add(key);
                let carry = u32::from(index < key);
                let keep = noise.bits_of(index, high.wrapping_add(carry)) >> 8 >= least;
                *cell = if keep { *cell * kept } else { 0.0 };
            }
        }
    }
}
