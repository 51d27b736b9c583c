//! Dropout of weights. The backward recomputes the mask instead of storing it.

use super::tile::{At, Keys, Tile};
use crate::rng::Stream;
use crate::simd::{Kernel, Simd, dispatch};

/// Dropout of attention weights, in training.
#[derive(Clone, Copy, Debug)]
pub struct AttentionDropout {
    /// Probability that a weight is dropped, in `0..1`; the others are scaled by `1/(1 − p)`.
    pub p: f32,
    /// Random stream of the mask.
    pub noise: Stream,
}

impl AttentionDropout {
    /// Drops and scales the cells of a tile, as a function of each cell's index in `[B, H, T, S]`.
    pub(super) fn apply(self, at: &At, tile: &mut Tile) {
        let d = at.grid.dims;
        let row = |i: usize| ((at.b * d.h + at.h) * d.t + i) as u64 * d.s as u64;
        let rows: Vec<u64> = (0..tile.lanes).map(|lane| row(at.i0 + lane)).collect();
        let half = |shift: u32| rows.iter().map(|x| (x >> shift) as u32).collect::<Vec<_>>();
        let (low, high) = (half(0), half(32));
        dispatch(Drop { dropout: self, keys: at.keys, low: &low, high: &high, tile });
    }
}

struct Drop<'a, 'b> {
    dropout: AttentionDropout,
    keys: Keys<'a>,
    /// Index of each query's first cell, in two halves.
    low: &'a [u32],
    high: &'a [u32],
    tile: &'a mut Tile<'b>,
}

impl Kernel for Drop<'_, '_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Tile { data, keys, lanes, .. } = self.tile;
        let (lanes, dropout) = (*lanes, self.dropout);
        for (row, cells) in data.chunks_exact_mut(lanes).take(*keys).enumerate() {
            let (low, high) = (self.low, self.high);
            match self.keys {
                Keys::Run { start, .. } => {
                    dropout.row(cells, low, high, std::iter::repeat((start + row) as u32));
                }
                // Past the end of a list cells are 0 and stay 0.
                Keys::Listed { index, .. } => {
                    let list = &index[row * lanes..(row + 1) * lanes];
                    dropout.row(cells, low, high, list.iter().copied());
                }
            }
        }
    }
}

impl AttentionDropout {
    /// The cells of one row, each with its key.
    #[inline(always)]
    fn row(self, cells: &mut [f32], low: &[u32], high: &[u32], keys: impl Iterator<Item = u32>) {
        // uniform ≥ p, in integers: uniform is 24 bits of the word over 2²⁴.
        let (kept, least) = (1.0 / (1.0 - self.p), (self.p * 16_777_216.0).ceil() as u32);
        // Plain 32-bit arithmetic, which the compiler vectorises.
        for (((cell, low), high), key) in cells.iter_mut().zip(low).zip(high).zip(keys) {
            let index = low.wrapping_add(key);
            let carry = u32::from(index < key);
            let keep = self.noise.bits_of(index, high.wrapping_add(carry)) >> 8 >= least;
            *cell = if keep { *cell * kept } else { 0.0 };
        }
    }
}
