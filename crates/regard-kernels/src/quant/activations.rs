//! Activations of 8 bits, quantised at run time, or of 16, rounded.

use super::{Bits, GROUP, MOST_INPUTS, bf16};
use crate::gemm::Matrix;
use crate::ops::lanes;
use crate::pool::{Parts, parallel_ranges};
use crate::scratch::Scratch;
use crate::simd::{Kernel, Simd, dispatch};
use crate::storage::Bf16;
use crate::view::{Error, bail};

/// Rows of activations in 8 bits, each with its scale: `x ≈ scale · x̂`, `|x̂| ≤ 127`.
///
/// A row with NaN or infinity has the scale NaN and zeros as values, so that products with it are
/// NaN, and no other row is affected. For weights of 16 bits, values are `bfloat16` and the scale is 1.
pub struct Activations {
    rows: usize,
    inputs: usize,
    /// Whether values are `bfloat16`.
    bf16: bool,
    /// Bytes of a row: the inputs, padded with zeros to whole groups.
    stride: usize,
    /// Memory of bytes.
    values: Scratch,
    /// Scale of each row.
    scales: Scratch,
    /// Sum of the values of each group of 32 inputs, as `i32` in the bits of a float.
    sums: Scratch,
}

/// Elements per task: some 10 µs.
const PIECE: usize = 16 * 1024;

impl Activations {
    /// Quantises the rows of `x` to what products with weights of `bits` need.
    ///
    /// # Errors
    /// If rows are not contiguous or have too many inputs.
    pub fn of(bits: Bits, x: Matrix) -> Result<Activations, Error> {
        if bits == Bits::Bf16 { Activations::rounded(x) } else { Activations::new(x) }
    }

    fn check(x: &Matrix) -> Result<(), Error> {
        let [_, inputs] = x.shape();
        if inputs == 0 || inputs > MOST_INPUTS {
            bail!("a quantised product has 1 to {MOST_INPUTS} inputs; got {inputs}");
        }
        if x.col != 1 && inputs > 1 {
            bail!("a quantised product needs contiguous rows");
        }
        Ok(())
    }

    /// Rounds the rows of `x` to 16 bits.
    fn rounded(x: Matrix) -> Result<Activations, Error> {
        Activations::check(&x)?;
        let [rows, inputs] = x.shape();
        let stride = inputs.next_multiple_of(2) * 2;
        let mut new = Activations {
            rows,
            inputs,
            bf16: true,
            stride,
            values: Scratch::new(rows * stride / 4),
            scales: Scratch::new(rows),
            sums: Scratch::new(0),
        };
        new.scales.fill(1.0);
        let values = Parts::new(&mut new.values);
        parallel_ranges(rows, (PIECE / stride).max(1), &|from, to| {
            for r in from..to {
                // SAFETY: each row is one task's; rows of `x` are contiguous.
                dispatch(unsafe {
                    Rounded {
                        x: std::slice::from_raw_parts(x.at(r, 0), inputs),
                        values: values.part(r * stride / 4, stride / 4),
                    }
                });
            }
        });
        Ok(new)
    }

    /// Quantises the rows of `x` to 8 bits.
    ///
    /// # Errors
    /// If rows are not contiguous or have too many inputs.
    pub fn new(x: Matrix) -> Result<Activations, Error> {
        Activations::check(&x)?;
        let [rows, inputs] = x.shape();
        let stride = inputs.next_multiple_of(GROUP);
        let mut new = Activations {
            rows,
            inputs,
            bf16: false,
            stride,
            values: Scratch::new(rows * stride / 4),
            scales: Scratch::new(rows),
            sums: Scratch::new(rows * (stride / GROUP)),
        };
        let groups = stride / GROUP;
        let values = Parts::new(&mut new.values);
        let (scales, sums) = (Parts::new(&mut new.scales), Parts::new(&mut new.sums));
        parallel_ranges(rows, (PIECE / stride).max(1), &|from, to| {
            for r in from..to {
                // SAFETY: each row is one task's; rows of `x` are contiguous.
                let row = unsafe {
                    Row {
                        x: std::slice::from_raw_parts(x.at(r, 0), inputs),
                        values: values.part(r * stride / 4, stride / 4),
                        scale: &mut scales.part(r, 1)[0],
                        sums: sums.part(r * groups, groups),
                    }
                };
                dispatch(row);
            }
        });
        Ok(new)
    }

    /// Returns the numbers of rows and inputs.
    pub fn shape(&self) -> [usize; 2] {
        [self.rows, self.inputs]
    }

    /// Whether values have 16 bits instead of 8.
    pub fn is_bf16(&self) -> bool {
        self.bf16
    }

    /// Returns the values of 16 bits of a row.
    ///
    /// # Panics
    /// If they have 8 bits.
    pub fn halves(&self, row: usize) -> &[Bf16] {
        assert!(row < self.rows && self.bf16);
        // SAFETY: the row has as many, aligned to four bytes; any bits are a `Bf16`.
        unsafe { std::slice::from_raw_parts(self.start(row).cast(), self.inputs) }
    }

    /// Returns the values of 8 bits of a row.
    ///
    /// # Panics
    /// If they have 16 bits.
    pub fn values(&self, row: usize) -> &[i8] {
        assert!(row < self.rows && !self.bf16);
        // SAFETY: the row has as many bytes; any byte is an `i8`.
        unsafe { std::slice::from_raw_parts(self.start(row).cast(), self.inputs) }
    }

    /// Returns the scale of a row.
    pub fn scale(&self, row: usize) -> f32 {
        self.scales[row]
    }

    /// The bytes of a row, padded with zeros.
    #[inline(always)]
    pub(super) fn start(&self, row: usize) -> *const u8 {
        self.values.as_ptr().cast::<u8>().wrapping_add(row * self.stride)
    }

    /// The sums of a row's groups.
    #[inline(always)]
    pub(super) fn sums(&self, row: usize) -> *const i32 {
        self.sums.as_ptr().cast::<i32>().wrapping_add(row * (self.stride / GROUP))
    }

    /// The sum of a row.
    #[inline(always)]
    pub(super) fn sum(&self, row: usize) -> i32 {
        let groups = self.stride / GROUP;
        self.sums[row * groups..(row + 1) * groups].iter().map(|x| x.to_bits() as i32).sum()
    }
}

/// Rounds a row to 16 bits.
struct Rounded<'a> {
    x: &'a [f32],
    values: &'a mut [f32],
}

impl Kernel for Rounded<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let (pairs, rest) = self.x.as_chunks::<2>();
        let pack = |low: f32, high: f32| {
            f32::from_bits(u32::from(bf16::round(low).0) | u32::from(bf16::round(high).0) << 16)
        };
        for (to, [low, high]) in self.values.iter_mut().zip(pairs) {
            *to = pack(*low, *high);
        }
        if let [last] = rest {
            self.values[pairs.len()] = pack(*last, 0.0);
        }
    }
}

/// Quantises a row.
struct Row<'a> {
    x: &'a [f32],
    values: &'a mut [f32],
    scale: &'a mut f32,
    sums: &'a mut [f32],
}

impl Kernel for Row<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Row { x, values, scale, sums } = self;
        let (mut most, mut odd) = (s.splat(0.0), s.splat(0.0));
        let mut i = 0;
        while i < x.len() {
            let v = lanes::get(s, x, i);
            most = s.max(most, s.abs(v));
            // 0 for finite values, NaN for others.
            odd = s.add(odd, s.mul(v, s.splat(0.0)));
            i += S::LANES;
        }
        let (most, finite) = (s.largest(most), s.sum(odd) == 0.0);
        *scale = if finite { most / 127.0 } else { f32::NAN };
        // SAFETY: any bit pattern is a byte and an `i32`.
        let bytes = unsafe {
            std::slice::from_raw_parts_mut(values.as_mut_ptr().cast::<i8>(), values.len() * 4)
        };
        let factor = 127.0 / most;
        // The factor overflows for rows below 4e-37, which are taken for zeros.
        if !finite || !factor.is_finite() {
            bytes.fill(0);
            sums.fill(0.0);
            return;
        }
        for (group, sum) in sums.iter_mut().enumerate() {
            let (from, to) = (group * GROUP, ((group + 1) * GROUP).min(x.len()));
            let mut buffer = [0f32; GROUP];
            for i in (from..to).step_by(S::LANES) {
                let v = s.round(s.mul(lanes::get(s, &x[..to], i), s.splat(factor)));
                let v = s.max(s.min(v, s.splat(127.0)), s.splat(-127.0));
                lanes::put(s, &mut buffer, i - from, v);
            }
            // Of a constant length, and without checks, so that it is compiled to vectors. Places
            // past the end are zeros, because those of a partial vector are.
            let (mut total, mut group) = (0i32, [0i8; GROUP]);
            for i in 0..GROUP {
                // SAFETY: it is a whole number of at most 127.
                let v = unsafe { buffer[i].to_int_unchecked::<i32>() };
                total += v;
                group[i] = v as i8;
            }
            bytes[from..from + GROUP].copy_from_slice(&group);
            *sum = f32::from_bits(total as u32);
        }
    }
}
