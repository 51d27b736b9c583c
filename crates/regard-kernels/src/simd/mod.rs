//! Portable SIMD: one source for every instruction set.
//!
//! A kernel is a struct that holds its arguments and implements [`Kernel`]; its body is written
//! once against [`Simd`] and compiled for each instruction set. [`dispatch`] picks the best one
//! the CPU has at run time, so one binary runs everywhere.
//!
//! A value of a type that implements [`Simd`] is a token: it is created only after the CPU is known
//! to have the instructions, which is why the arithmetic methods are safe to call.
//!
//! Everything a kernel calls must be `#[inline(always)]`: a function that is not inlined into the
//! dispatching function is compiled without its instructions, and is slow (but correct).

mod int;
mod math;
mod portable;
mod prefetch;
pub use int::{IntIsa, IntKernel, IntSimd, int_asked, int_dispatch_on, int_isa};
pub use math::*;
pub use portable::Portable;
pub(crate) use prefetch::{fetch, fetch_near};

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;

use crate::storage::{Bf16, F16};
use crate::view::{Error, bail};
use std::sync::atomic::{AtomicU8, Ordering};

/// Vectors of `f32` lanes of one instruction set.
///
/// `min` and `max` return the second operand when either is NaN, as x86 does: `max(bound, x)`
/// keeps a NaN in `x`, `max(x, bound)` drops it.
pub trait Simd: Copy + Send + Sync + 'static {
    /// A vector of [`Self::LANES`] floats.
    type V: Copy;
    /// Mask: one boolean per lane.
    type M: Copy;
    /// Number of floats in a vector.
    const LANES: usize;
    /// Number of rows of the register tile of a matrix product.
    const ROWS: usize;
    /// Number of vectors in a row of the register tile.
    const COLS: usize;

    /// Sets all lanes to `x`.
    fn splat(self, x: f32) -> Self::V;
    /// `a + b`
    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a − b`
    fn sub(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a · b`
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a / b`
    fn div(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a · b + c`, rounded once where the CPU can.
    fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// `c − a · b`, rounded once where the CPU can.
    fn fnma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// Maximum; `b` where either is NaN.
    fn max(self, a: Self::V, b: Self::V) -> Self::V;
    /// Minimum; `b` where either is NaN.
    fn min(self, a: Self::V, b: Self::V) -> Self::V;
    /// Square root.
    fn sqrt(self, a: Self::V) -> Self::V;
    /// Rounds to the nearest integer, ties to even.
    fn round(self, a: Self::V) -> Self::V;
    /// `a · 2ⁿ` for an integral `n` in −126..=127.
    fn scale2(self, a: Self::V, n: Self::V) -> Self::V;
    /// `1 / a` to within a few units in the last place; 0 for an infinite `a`.
    fn recip(self, a: Self::V) -> Self::V;
    /// `|a|`
    fn abs(self, a: Self::V) -> Self::V;
    /// `a < b`, false where either is NaN.
    fn lt(self, a: Self::V, b: Self::V) -> Self::M;
    /// `a ≤ b`, false where either is NaN.
    fn le(self, a: Self::V, b: Self::V) -> Self::M;
    /// Lanes set in both masks.
    fn both(self, a: Self::M, b: Self::M) -> Self::M;
    /// `a` where the mask is set, `b` elsewhere.
    fn select(self, m: Self::M, a: Self::V, b: Self::V) -> Self::V;
    /// Whether any lane is set.
    fn any(self, m: Self::M) -> bool;
    /// Mask as bits, the first lane lowest.
    #[inline(always)]
    fn bits(self, m: Self::M) -> u32 {
        let mut buffer = [0f32; 16];
        let ones = self.select(m, self.splat(1.0), self.splat(0.0));
        // SAFETY: the buffer holds the widest vector.
        unsafe { self.store(buffer.as_mut_ptr(), ones) };
        let bit = |(lane, x): (usize, &f32)| u32::from(*x != 0.0) << lane;
        buffer.iter().enumerate().map(bit).sum()
    }
    /// Sum of the lanes, in a fixed order.
    fn sum(self, a: Self::V) -> f32;
    /// Largest lane.
    fn largest(self, a: Self::V) -> f32;
    /// Transposes [`Self::LANES`] vectors in place, as a square matrix.
    fn transpose(self, rows: &mut [Self::V]);

    /// Loads a vector.
    ///
    /// # Safety
    /// [`Self::LANES`] floats must be readable at `p`; it need not be aligned.
    unsafe fn load(self, p: *const f32) -> Self::V;
    /// Stores a vector.
    ///
    /// # Safety
    /// [`Self::LANES`] floats must be writable at `p`; it need not be aligned.
    unsafe fn store(self, p: *mut f32, a: Self::V);

    /// Loads the first `n` lanes; the others are 0.
    ///
    /// # Safety
    /// `n ≤ LANES` floats must be readable at `p`.
    #[inline(always)]
    unsafe fn load_part(self, p: *const f32, n: usize) -> Self::V {
        let mut buffer = [0f32; 16];
        // SAFETY: the caller vouches for `n` floats; the buffer holds the widest vector.
        unsafe {
            std::ptr::copy_nonoverlapping(p, buffer.as_mut_ptr(), n);
            self.load(buffer.as_ptr())
        }
    }

    /// Loads half-precision values.
    ///
    /// # Safety
    /// [`Self::LANES`] of them must be readable at `p`.
    #[inline(always)]
    unsafe fn load_f16(self, p: *const F16) -> Self::V {
        let mut buffer = [0f32; 16];
        for (lane, x) in buffer.iter_mut().enumerate().take(Self::LANES) {
            // SAFETY: the caller vouches for the numbers.
            *x = unsafe { *p.add(lane) }.single();
        }
        // SAFETY: the buffer holds the widest vector.
        unsafe { self.load(buffer.as_ptr()) }
    }

    /// Loads `bfloat16` values.
    ///
    /// # Safety
    /// [`Self::LANES`] of them must be readable at `p`.
    #[inline(always)]
    unsafe fn load_bf16(self, p: *const Bf16) -> Self::V {
        let mut buffer = [0f32; 16];
        for (lane, x) in buffer.iter_mut().enumerate().take(Self::LANES) {
            // SAFETY: the caller vouches for the numbers.
            *x = unsafe { *p.add(lane) }.single();
        }
        // SAFETY: the buffer holds the widest vector.
        unsafe { self.load(buffer.as_ptr()) }
    }

    /// Loads 8-bit integers.
    ///
    /// # Safety
    /// [`Self::LANES`] of them must be readable at `p`.
    #[inline(always)]
    unsafe fn load_i8(self, p: *const i8) -> Self::V {
        let mut buffer = [0f32; 16];
        for (lane, x) in buffer.iter_mut().enumerate().take(Self::LANES) {
            // SAFETY: the caller vouches for the numbers.
            *x = f32::from(unsafe { *p.add(lane) });
        }
        // SAFETY: the buffer holds the widest vector.
        unsafe { self.load(buffer.as_ptr()) }
    }

    /// Lanes whose index is valid, that is, not `u32::MAX`.
    ///
    /// # Safety
    /// As many indices must be readable at `index`.
    #[inline(always)]
    unsafe fn named(self, index: *const u32) -> Self::M {
        let mut buffer = [0f32; 16];
        for (lane, x) in buffer.iter_mut().enumerate().take(Self::LANES) {
            // SAFETY: the caller vouches for the indices.
            *x = if unsafe { *index.add(lane) } == u32::MAX { 0.0 } else { 1.0 };
        }
        // SAFETY: the buffer holds the widest vector.
        self.lt(self.splat(0.0), unsafe { self.load(buffer.as_ptr()) })
    }

    /// Gathers the floats `p[index]`, 0 where an index is `u32::MAX`. Other indices are below 2³¹.
    ///
    /// # Safety
    /// [`Self::LANES`] indices must be readable at `index`, and the floats that they refer to at
    /// `p`.
    #[inline(always)]
    unsafe fn gather(self, p: *const f32, index: *const u32) -> Self::V {
        let mut buffer = [0f32; 16];
        for (lane, x) in buffer.iter_mut().enumerate().take(Self::LANES) {
            // SAFETY: the caller vouches for the indices and for what they name.
            unsafe {
                let at = *index.add(lane);
                *x = if at == u32::MAX { 0.0 } else { *p.add(at as usize) };
            }
        }
        // SAFETY: the buffer holds the widest vector.
        unsafe { self.load(buffer.as_ptr()) }
    }

    /// Stores the first `n` lanes.
    ///
    /// # Safety
    /// `n ≤ LANES` floats must be writable at `p`.
    #[inline(always)]
    unsafe fn store_part(self, p: *mut f32, n: usize, a: Self::V) {
        let mut buffer = [0f32; 16];
        // SAFETY: as in `load_part`.
        unsafe {
            self.store(buffer.as_mut_ptr(), a);
            std::ptr::copy_nonoverlapping(buffer.as_ptr(), p, n);
        }
    }
}

/// A computation written once for every instruction set. `run` must be `#[inline(always)]`.
pub trait Kernel {
    /// Result of the kernel.
    type Out;
    /// Runs the kernel on one instruction set.
    fn run<S: Simd>(self, s: S) -> Self::Out;
}

/// Instruction sets that kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Isa {
    /// Plain Rust, four lanes.
    Portable = 1,
    /// AArch64 Advanced SIMD, four lanes.
    Neon = 2,
    /// AVX2 with fused multiply-add and half-precision conversion, eight lanes.
    Avx2 = 3,
    /// AVX-512 (F, VL, BW, DQ), sixteen lanes.
    Avx512 = 4,
}

impl Isa {
    /// All instruction sets, best last.
    pub const ALL: [Isa; 4] = [Isa::Portable, Isa::Neon, Isa::Avx2, Isa::Avx512];

    /// Returns the name that `REGARD_ISA` accepts.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Portable => "portable",
            Isa::Neon => "neon",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
        }
    }

    /// Returns the number of floats in a vector.
    pub fn lanes(self) -> usize {
        match self {
            Isa::Portable | Isa::Neon => 4,
            Isa::Avx2 => 8,
            Isa::Avx512 => 16,
        }
    }

    /// Whether this CPU supports it.
    pub fn available(self) -> bool {
        match self {
            Isa::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("f16c")
            }
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => {
                Isa::Avx2.available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
            }
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => std::arch::is_aarch64_feature_detected!("neon"),
            #[allow(unreachable_patterns)]
            _ => false,
        }
    }
}

/// The instruction set in use; 0 before the first kernel runs.
static CHOSEN: AtomicU8 = AtomicU8::new(0);

/// Returns the instruction set that kernels run on: the one named by the environment variable
/// `REGARD_ISA`, or the best one of this CPU.
#[inline]
pub fn isa() -> Isa {
    match CHOSEN.load(Ordering::Relaxed) {
        0 => choose(),
        1 => Isa::Portable,
        2 => Isa::Neon,
        3 => Isa::Avx2,
        _ => Isa::Avx512,
    }
}

/// Returns the value of the environment variable `REGARD_ISA`, `None` if it is not set.
///
/// # Errors
/// If this CPU does not support it. Programs should check it at start, since [`isa`] panics with
/// the same message.
pub fn asked() -> Result<Option<Isa>, Error> {
    let Some(asked) = std::env::var_os("REGARD_ISA").filter(|asked| !asked.is_empty()) else {
        return Ok(None);
    };
    let here: Vec<_> = Isa::ALL.into_iter().filter(|isa| isa.available()).collect();
    match here.iter().find(|isa| asked == isa.name()) {
        Some(isa) => Ok(Some(*isa)),
        None => {
            let names: Vec<_> = here.iter().map(|isa| isa.name()).collect();
            bail!("REGARD_ISA: got {asked:?}, need one that this CPU has: {}", names.join(", "))
        }
    }
}

#[cold]
fn choose() -> Isa {
    let best = || *Isa::ALL.iter().rfind(|i| i.available()).expect("portable is always there");
    let isa = asked().unwrap_or_else(|Error(message)| panic!("{message}")).unwrap_or_else(best);
    CHOSEN.store(isa as u8, Ordering::Relaxed);
    isa
}

/// Runs a kernel on the selected instruction set.
#[inline]
pub fn dispatch<K: Kernel>(kernel: K) -> K::Out {
    // SAFETY: `isa` returns only what `available` has confirmed on this CPU.
    unsafe { enter(isa(), kernel) }
}

/// Runs a kernel on a given instruction set, for tests and comparisons.
///
/// # Panics
/// If this CPU does not support it.
pub fn dispatch_on<K: Kernel>(isa: Isa, kernel: K) -> K::Out {
    assert!(isa.available(), "this CPU has no {}", isa.name());
    // SAFETY: it has just been confirmed.
    unsafe { enter(isa, kernel) }
}

/// # Safety
/// The CPU must have `isa`.
#[inline(always)]
unsafe fn enter<K: Kernel>(isa: Isa, kernel: K) -> K::Out {
    match isa {
        // SAFETY: the caller vouches for the CPU.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { avx512::enter(kernel) },
        // SAFETY: the caller vouches for the CPU.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { avx2::enter(kernel) },
        // SAFETY: the caller vouches for the CPU.
        #[cfg(target_arch = "aarch64")]
        Isa::Neon => unsafe { neon::enter(kernel) },
        _ => kernel.run(Portable),
    }
}
