//! Four lanes in plain Rust, for CPUs without a specialised implementation.

use super::Simd;

/// Token of plain Rust, which every CPU runs.
#[derive(Clone, Copy)]
pub struct Portable;

type V = [f32; 4];

#[inline(always)]
fn zip(a: V, b: V, f: impl Fn(f32, f32) -> f32) -> V {
    [f(a[0], b[0]), f(a[1], b[1]), f(a[2], b[2]), f(a[3], b[3])]
}

impl Simd for Portable {
    type V = V;
    type M = [bool; 4];
    const LANES: usize = 4;
    const ROWS: usize = 4;
    const COLS: usize = 2;

    #[inline(always)]
    fn splat(self, x: f32) -> V {
        [x; 4]
    }
    #[inline(always)]
    fn add(self, a: V, b: V) -> V {
        zip(a, b, |a, b| a + b)
    }
    #[inline(always)]
    fn sub(self, a: V, b: V) -> V {
        zip(a, b, |a, b| a - b)
    }
    #[inline(always)]
    fn mul(self, a: V, b: V) -> V {
        zip(a, b, |a, b| a * b)
    }
    #[inline(always)]
    fn div(self, a: V, b: V) -> V {
        zip(a, b, |a, b| a / b)
    }
    // Without the instruction, `mul_add` is a call into libm, which costs more than a second
    // rounding.
    #[inline(always)]
    fn fma(self, a: V, b: V, c: V) -> V {
        self.add(self.mul(a, b), c)
    }
    #[inline(always)]
    fn fnma(self, a: V, b: V, c: V) -> V {
        self.sub(c, self.mul(a, b))
    }
    #[inline(always)]
    fn max(self, a: V, b: V) -> V {
        zip(a, b, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    fn min(self, a: V, b: V) -> V {
        zip(a, b, |a, b| if a < b { a } else { b })
    }
    #[inline(always)]
    fn sqrt(self, a: V) -> V {
        a.map(f32::sqrt)
    }
    #[inline(always)]
    fn round(self, a: V) -> V {
        // Adding and subtracting 1.5·2²³ leaves the nearest integer for |a| < 2²².
        const MAGIC: f32 = 12_582_912.0;
        a.map(|a| if a.abs() < 4_194_304.0 { (a + MAGIC) - MAGIC } else { a })
    }
    #[inline(always)]
    fn scale2(self, a: V, n: V) -> V {
        // Wrapping: where `n` is out of range, `a` is NaN already.
        zip(a, n, |a, n| a * f32::from_bits(((n as i32).wrapping_add(127) as u32) << 23))
    }
    #[inline(always)]
    fn recip(self, a: V) -> V {
        a.map(|a| 1.0 / a)
    }
    #[inline(always)]
    fn abs(self, a: V) -> V {
        a.map(f32::abs)
    }
    #[inline(always)]
    fn lt(self, a: V, b: V) -> [bool; 4] {
        [a[0] < b[0], a[1] < b[1], a[2] < b[2], a[3] < b[3]]
    }
    #[inline(always)]
    fn le(self, a: V, b: V) -> [bool; 4] {
        [a[0] <= b[0], a[1] <= b[1], a[2] <= b[2], a[3] <= b[3]]
    }
    #[inline(always)]
    fn both(self, a: [bool; 4], b: [bool; 4]) -> [bool; 4] {
        [a[0] & b[0], a[1] & b[1], a[2] & b[2], a[3] & b[3]]
    }
    #[inline(always)]
    fn select(self, m: [bool; 4], a: V, b: V) -> V {
        let pick = |lane: usize| if m[lane] { a[lane] } else { b[lane] };
        [pick(0), pick(1), pick(2), pick(3)]
    }
    #[inline(always)]
    fn any(self, m: [bool; 4]) -> bool {
        m[0] | m[1] | m[2] | m[3]
    }
    #[inline(always)]
    fn sum(self, a: V) -> f32 {
        (a[0] + a[2]) + (a[1] + a[3])
    }
    #[inline(always)]
    fn largest(self, a: V) -> f32 {
        a[0].max(a[1]).max(a[2].max(a[3]))
    }
    #[inline(always)]
    fn transpose(self, rows: &mut [V]) {
        let [a, b, c, d] = [rows[0], rows[1], rows[2], rows[3]];
        for (lane, row) in rows.iter_mut().enumerate().take(4) {
            *row = [a[lane], b[lane], c[lane], d[lane]];
        }
    }
    #[inline(always)]
    unsafe fn load(self, p: *const f32) -> V {
        // SAFETY: the caller vouches for four floats at `p`.
        unsafe { p.cast::<V>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32, a: V) {
        // SAFETY: the caller vouches for four floats at `p`.
        unsafe { p.cast::<V>().write_unaligned(a) }
    }
}
