//! Rotary position embeddings (Su et al. 2021): pairs of a head's features are rotated by an angle
//! proportional to the position, so that the product of a query and a key depends only on their
//! distance.
//!
//! ```text
//! (a, b) ← (a·cos pθ − b·sin pθ,  b·cos pθ + a·sin pθ),   θ_i = base^(−2i/D)
//! ```

use crate::backend::{self, Buffer, Dense, Operands, Operation};
use burn::backend::{Flex, TensorMetadata};
use burn::tensor::Tensor;
use burn_flex::FlexTensor;
use regard_kernels::pool;
use std::sync::{Arc, Mutex, PoisonError};

/// Pairing of a head's features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pairs {
    /// Features `i` and `i + D/2` (GPT-NeoX, Llama as Hugging Face stores it).
    #[default]
    Halves,
    /// Features `2i` and `2i + 1` (the paper, GPT-J).
    Neighbours,
}

/// Cosines and sines of rotary angles, computed on demand as positions grow.
#[derive(Clone, Debug)]
pub struct Angles {
    /// Rotation of each pair per position, in radians; features after the last pair are not
    /// rotated.
    frequencies: Arc<[f64]>,
    /// Cosines and sines, `[positions, pairs]` each, for the positions needed so far.
    tables: Arc<Mutex<Arc<Tables>>>,
    /// Maximum number of positions.
    length: usize,
    /// `D`, the width of a head.
    width: usize,
    pairs: Pairs,
}

#[derive(Debug, Default)]
struct Tables {
    cos: Vec<f32>,
    sin: Vec<f32>,
}

/// Positions of the tokens of `[B, T, …]`.
#[derive(Clone, Debug)]
pub enum TokenPositions {
    /// Consecutive positions from this one on, for all batch rows (`[1]`) or for each (`[B]`).
    From(Vec<usize>),
    /// A position for each token, `[B·T]`, for instance when a row packs several sequences.
    Each(Arc<[usize]>),
}

impl TokenPositions {
    /// The positions of batch row `b`.
    fn row(&self, b: usize, t: usize) -> impl Fn(usize) -> usize {
        move |i| match self {
            TokenPositions::From(first) => first.get(b).unwrap_or(&first[0]) + i,
            TokenPositions::Each(all) => all[b * t + i],
        }
    }

    fn check(&self, b: usize, t: usize) {
        let (got, fits) = match self {
            TokenPositions::From(first) => (first.len(), first.len() == 1 || first.len() == b),
            TokenPositions::Each(all) => (all.len(), all.len() == b * t),
        };
        assert!(fits, "rotary: got {got} positions for {b} batch rows of {t} tokens");
    }

    /// One more than the last position.
    fn end(&self, t: usize) -> usize {
        match self {
            TokenPositions::From(first) => first.iter().max().map_or(0, |first| first + t),
            TokenPositions::Each(all) => all.iter().max().map_or(0, |last| last + 1),
        }
    }
}

impl Angles {
    /// Creates angles for positions `0..length` and heads of width `D`, all of whose pairs rotate,
    /// with frequencies that are powers of a base.
    pub fn new(length: usize, width: usize, base: f32, pairs: Pairs) -> Angles {
        assert!(width.is_multiple_of(2), "rotary: got heads of width {width}, need an even one");
        let turn = |i: usize| f64::from(base).powf(-2.0 * i as f64 / width as f64);
        Angles::with_frequencies(length, width, (0..width / 2).map(turn).collect(), pairs)
    }

    /// Creates angles for positions `0..length` and heads of width `D`, whose first pairs rotate by
    /// these frequencies, in radians per position. The remaining features are not rotated.
    pub fn with_frequencies(
        length: usize,
        width: usize,
        frequencies: Vec<f64>,
        pairs: Pairs,
    ) -> Angles {
        let turned = 2 * frequencies.len();
        assert!(turned <= width, "rotary: got {turned} features, heads have {width}");
        let (frequencies, tables) = (frequencies.into(), Arc::default());
        Angles { frequencies, tables, length, width, pairs }
    }

    /// Returns the number of positions.
    pub fn positions(&self) -> usize {
        self.length
    }

    /// Returns the frequency of each pair, in radians per position.
    pub fn frequencies(&self) -> &[f64] {
        &self.frequencies
    }

    /// Tables for at least this many positions.
    fn tables(&self, positions: usize) -> Arc<Tables> {
        let half = self.frequencies.len();
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if tables.cos.len() < positions * half {
            // Twice as far, so that a growing sequence recomputes them only a few times.
            let positions = positions.next_power_of_two().min(self.length);
            let angle = |at: usize| (at / half) as f64 * self.frequencies[at % half];
            let all =
                |f: fn(f64) -> f64| (0..positions * half).map(|at| f(angle(at)) as f32).collect();
            *tables = Arc::new(Tables { cos: all(f64::cos), sin: all(f64::sin) });
        }
        tables.clone()
    }

    /// Rotates the first `heads` heads of each row of `stride` floats to its position.
    ///
    /// # Panics
    /// If a position is beyond those that there are angles for.
    pub(crate) fn rotate_rows(
        &self,
        rows: &mut [f32],
        stride: usize,
        heads: usize,
        positions: impl Iterator<Item = usize> + Clone,
    ) {
        let last = positions.clone().max().map_or(0, |last| last + 1);
        assert!(
            last <= self.length,
            "rotary: got position {last}, there are angles for {}",
            self.length
        );
        let tables = self.tables(last);
        for (row, position) in rows.chunks_exact_mut(stride).zip(positions) {
            for head in row[..heads * self.width].chunks_exact_mut(self.width) {
                self.rotate_head(&tables, position, 1.0, head);
            }
        }
    }

    /// Rotates a head in place. A `sign` of −1 rotates back, which is the derivative: a rotation's
    /// transpose is its inverse.
    fn rotate_head(&self, tables: &Tables, position: usize, sign: f32, x: &mut [f32]) {
        let half = self.frequencies.len();
        let cos = &tables.cos[position * half..][..half];
        let sin = &tables.sin[position * half..][..half];
        match self.pairs {
            Pairs::Halves => {
                let (a, b) = x[..2 * half].split_at_mut(half);
                for i in 0..half {
                    let (xa, xb) = (a[i], b[i]);
                    a[i] = xa * cos[i] - sign * xb * sin[i];
                    b[i] = xb * cos[i] + sign * xa * sin[i];
                }
            }
            Pairs::Neighbours => {
                for (i, x) in x[..2 * half].chunks_exact_mut(2).enumerate() {
                    let (xa, xb) = (x[0], x[1]);
                    x[0] = xa * cos[i] - sign * xb * sin[i];
                    x[1] = xb * cos[i] + sign * xa * sin[i];
                }
            }
        }
    }

    fn pair(&self, i: usize) -> (usize, usize) {
        match self.pairs {
            Pairs::Halves => (i, i + self.frequencies.len()),
            Pairs::Neighbours => (2 * i, 2 * i + 1),
        }
    }
}

/// Rotates the first `heads` heads of a packed projection; the others are unchanged.
///
/// # Shapes
/// `x: [B, T, C·D]` with `C ≥ heads` → same shape
pub fn rotate(x: Tensor<3>, angles: &Angles, heads: usize, places: &TokenPositions) -> Tensor<3> {
    let [b, t, m] = x.dims();
    let d = angles.width;
    assert!(m % d == 0 && heads * d <= m, "rotary: {heads} heads of {d} in a width of {m}");
    places.check(b, t);
    let (last, known) = (places.end(t), angles.positions());
    assert!(last <= known, "rotary: got position {last}, there are angles for {known}");
    let tables = angles.tables(last);
    if !backend::fused(&x) {
        return composed(x, angles, heads, places, &tables);
    }
    let turn = Turn { angles: angles.clone(), tables, heads, places: places.clone() };
    backend::apply(turn, vec![x.into_dispatch()], vec![])
}

#[derive(Clone, Debug)]
struct Turn {
    angles: Angles,
    tables: Arc<Tables>,
    heads: usize,
    places: TokenPositions,
}

impl Turn {
    fn turn(&self, x: &FlexTensor, sign: f32) -> FlexTensor {
        let shape = x.shape();
        let (t, m, d) = (shape[1], shape[2], self.angles.width);
        let x = Dense::new(x);
        let mut y = Buffer::new(x.len());
        let rows = (16 * 1024 / m.max(1)).max(1);
        let chunks: Vec<_> = y.chunks_mut(rows * m).map(Mutex::new).collect();
        pool::parallel(chunks.len(), &|chunk| {
            let mut y = chunks[chunk].lock().unwrap_or_else(PoisonError::into_inner);
            let from = chunk * rows;
            for (row, y) in y.chunks_exact_mut(m).enumerate() {
                let (b, i) = ((from + row) / t, (from + row) % t);
                let position = self.places.row(b, t)(i);
                let x = &x[(from + row) * m..][..m];
                y.copy_from_slice(x);
                for head in y[..self.heads * d].chunks_exact_mut(d) {
                    self.angles.rotate_head(&self.tables, position, sign, head);
                }
            }
        });
        drop(chunks);
        y.tensor(shape)
    }
}

impl Operation for Turn {
    type Saved = ();

    fn forward(&self, x: &Operands<Flex>, _: bool) -> (FlexTensor, ()) {
        (self.turn(&x.floats[0], 1.0), ())
    }

    fn backward(
        &self,
        _: &Operands<Flex>,
        (): (),
        dy: FlexTensor,
        _: &[bool],
    ) -> Vec<Option<FlexTensor>> {
        vec![Some(self.turn(&dy, -1.0))]
    }
}

/// A rotation is `x·cos + x′·sin`, where `x′` swaps the features of each pair and negates one: a
/// product with a constant matrix. Features without a partner rotate by 0.
fn composed(
    x: Tensor<3>,
    angles: &Angles,
    heads: usize,
    places: &TokenPositions,
    tables: &Tables,
) -> Tensor<3> {
    let ([b, t, m], d, half) = (x.dims(), angles.width, angles.frequencies.len());
    let mut partners = vec![0f32; d * d];
    let mut pair_of = vec![None; d];
    for i in 0..half {
        let (a, b) = angles.pair(i);
        partners[b * d + a] = -1.0;
        partners[a * d + b] = 1.0;
        (pair_of[a], pair_of[b]) = (Some(i), Some(i));
    }
    let table = |table: &[f32], still: f32| {
        let mut all = Vec::with_capacity(b * t * d);
        for row in 0..b {
            let position = places.row(row, t);
            for i in 0..t {
                let at = position(i) * half;
                all.extend(pair_of.iter().map(|pair| pair.map_or(still, |i| table[at + i])));
            }
        }
        backend::constant(all, [b, t, 1, d], &x)
    };
    let (cos, sin) = (table(&tables.cos, 1.0), table(&tables.sin, 0.0));
    let partners = backend::constant(partners, [1, 1, d, d], &x);
    let turned: Tensor<4> = x.clone().slice([0..b, 0..t, 0..heads * d]).reshape([b, t, heads, d]);
    let turned = turned.clone() * cos + turned.matmul(partners) * sin;
    let turned = turned.reshape([b, t, heads * d]);
    if heads * d == m {
        return turned;
    }
    Tensor::cat(vec![turned, x.slice([0..b, 0..t, heads * d..m])], 2)
}
