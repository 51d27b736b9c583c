//! Rotary positions (Su et al. 2021): pairs of a head's numbers turn by an angle that grows with
//! the position, so that the product of a query and a key depends on their distance alone.
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

/// Which numbers of a head are a pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pairs {
    /// `i` and `i + D/2` (GPT-NeoX, Llama as Hugging Face stores it).
    #[default]
    Halves,
    /// `2i` and `2i + 1` (the paper, GPT-J).
    Neighbours,
}

/// Cosines and sines of all angles.
#[derive(Clone, Debug)]
pub struct Angles {
    /// `[positions, D/2]` each.
    tables: Arc<(Vec<f32>, Vec<f32>)>,
    /// `D`
    width: usize,
    pairs: Pairs,
}

impl Angles {
    /// For positions `0..length` and heads of width `D`.
    pub fn new(length: usize, width: usize, base: f32, pairs: Pairs) -> Angles {
        assert!(width.is_multiple_of(2), "rotary: heads of width {width} do not fall into pairs");
        let half = width / 2;
        let angle = |at: usize| {
            let exponent = -2.0 * (at % half) as f64 / width as f64;
            (at / half) as f64 * f64::from(base).powf(exponent)
        };
        let all = |f: fn(f64) -> f64| (0..length * half).map(|at| f(angle(at)) as f32).collect();
        Angles { tables: Arc::new((all(f64::cos), all(f64::sin))), width, pairs }
    }

    /// How many positions there are.
    pub fn positions(&self) -> usize {
        2 * self.tables.0.len() / self.width.max(1)
    }

    fn pair(&self, i: usize) -> (usize, usize) {
        match self.pairs {
            Pairs::Halves => (i, i + self.width / 2),
            Pairs::Neighbours => (2 * i, 2 * i + 1),
        }
    }
}

/// Turns the first `heads` heads of a packed projection; the others stay as they are.
///
/// `first` is the position of the first row, for each batch row if there are several.
///
/// # Shapes
/// `x: [B, T, C·D]` with `C ≥ heads` → the same; `first: [1]` or `[B]`
pub fn rotate(x: Tensor<3>, angles: &Angles, heads: usize, first: &[usize]) -> Tensor<3> {
    let [b, t, m] = x.dims();
    let d = angles.width;
    assert!(m % d == 0 && heads * d <= m, "rotary: {heads} heads of {d} in a width of {m}");
    assert!(first.len() == 1 || first.len() == b, "rotary: first positions for {b} batch rows");
    let last = first.iter().max().map_or(0, |first| first + t);
    let known = angles.positions();
    assert!(last <= known, "rotary: got position {last}, there are angles for {known}");
    if !backend::fused(&x) {
        return composed(x, angles, heads, first);
    }
    let turn = Turn { angles: angles.clone(), heads, first: Arc::new(first.to_vec()) };
    backend::apply(turn, vec![x.into_dispatch()], vec![])
}

#[derive(Clone, Debug)]
struct Turn {
    angles: Angles,
    heads: usize,
    first: Arc<Vec<usize>>,
}

impl Turn {
    /// `sign` −1 turns back, which is the derivative: a rotation's transpose is its inverse.
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
                let first = self.first.get(b).unwrap_or(&self.first[0]);
                let x = &x[(from + row) * m..][..m];
                let (turned, still) = y.split_at_mut(self.heads * d);
                still.copy_from_slice(&x[self.heads * d..]);
                let heads = turned.chunks_exact_mut(d).zip(x.chunks_exact(d));
                heads.for_each(|(y, x)| self.head(first + i, sign, x, y));
            }
        });
        drop(chunks);
        y.tensor(shape)
    }

    fn head(&self, position: usize, sign: f32, x: &[f32], y: &mut [f32]) {
        let half = self.angles.width / 2;
        let cos = &self.angles.tables.0[position * half..][..half];
        let sin = &self.angles.tables.1[position * half..][..half];
        match self.angles.pairs {
            Pairs::Halves => {
                let ((xa, xb), (ya, yb)) = (x.split_at(half), y.split_at_mut(half));
                for i in 0..half {
                    ya[i] = xa[i] * cos[i] - sign * xb[i] * sin[i];
                    yb[i] = xb[i] * cos[i] + sign * xa[i] * sin[i];
                }
            }
            Pairs::Neighbours => {
                for (i, (x, y)) in x.chunks_exact(2).zip(y.chunks_exact_mut(2)).enumerate() {
                    y[0] = x[0] * cos[i] - sign * x[1] * sin[i];
                    y[1] = x[1] * cos[i] + sign * x[0] * sin[i];
                }
            }
        }
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

/// A rotation is `x·cos + x′·sin`, where `x′` has the partners, one of each pair negative: a
/// product with a constant matrix.
fn composed(x: Tensor<3>, angles: &Angles, heads: usize, first: &[usize]) -> Tensor<3> {
    let ([b, t, m], d, half) = (x.dims(), angles.width, angles.width / 2);
    let mut partners = vec![0f32; d * d];
    let mut place = vec![0; d];
    for i in 0..half {
        let (a, b) = angles.pair(i);
        partners[b * d + a] = -1.0;
        partners[a * d + b] = 1.0;
        (place[a], place[b]) = (i, i);
    }
    let table = |table: &[f32]| {
        let mut all = Vec::with_capacity(first.len() * t * d);
        for first in first {
            for i in 0..t {
                all.extend(place.iter().map(|at| table[(first + i) * half + at]));
            }
        }
        backend::constant(all, [first.len(), t, 1, d], &x)
    };
    let (cos, sin) = (table(&angles.tables.0), table(&angles.tables.1));
    let partners = backend::constant(partners, [1, 1, d, d], &x);
    let turned: Tensor<4> = x.clone().slice([0..b, 0..t, 0..heads * d]).reshape([b, t, heads, d]);
    let turned = turned.clone() * cos + turned.matmul(partners) * sin;
    let turned = turned.reshape([b, t, heads * d]);
    if heads * d == m {
        return turned;
    }
    Tensor::cat(vec![turned, x.slice([0..b, 0..t, heads * d..m])], 2)
}
