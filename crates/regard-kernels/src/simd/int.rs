//! Integer dot products: one source for every instruction set.
//!
//! A vector holds four bytes in each lane of an `i32`. Kernels multiply the unsigned bytes of
//! weights by the signed bytes of activations and add each four products to a lane. Sums of
//! integers are exact, so every instruction set gives the same bits.
//!
//! The instructions for this (VNNI, dotprod) come separately from those for floats, which is why
//! there is a second list of instruction sets: kernels of floats need not be compiled again.

use super::{Isa, Portable, Simd};
use crate::view::{Error, bail};
use std::sync::atomic::{AtomicU8, Ordering};

#[cfg(target_arch = "x86_64")]
#[path = "int_x86.rs"]
mod x86;

#[cfg(target_arch = "aarch64")]
#[path = "int_neon.rs"]
mod neon;

/// Vectors of `i32` lanes, each also four bytes, of one instruction set.
pub trait IntSimd: Copy + Send + Sync + 'static {
    /// Float vectors with as many lanes.
    type F: Simd;
    /// A vector of lanes of `i32` or of four bytes.
    type I: Copy;
    /// Weights of 8 bits, prepared for [`IntSimd::dot`].
    type W: Copy;
    /// A pair of `bfloat16` in each lane, prepared for [`IntSimd::dot_pairs`].
    type P: Copy;
    /// What [`IntSimd::dot`] adds to each weight: 128 or 0.
    const OFFSET: i32;
    /// Vectors of columns in a register tile.
    const VECTORS: usize;
    /// Rows of a register tile.
    const ROWS: usize;

    /// The token of the float vectors.
    fn floats(self) -> Self::F;
    /// Sets all lanes to `x`; as bytes: to the four bytes of `x`.
    fn splat(self, x: i32) -> Self::I;
    /// Loads a vector of bytes.
    ///
    /// # Safety
    /// Four bytes per lane must be readable at `p`; it need not be aligned.
    unsafe fn load(self, p: *const u8) -> Self::I;
    /// `a + b`, wrapping.
    fn add(self, a: Self::I, b: Self::I) -> Self::I;
    /// The lanes as floats, exact below 2²⁴.
    fn to_floats(self, a: Self::I) -> <Self::F as Simd>::V;
    /// Prepares weights, stored as unsigned bytes `w + 128`.
    fn weights(self, stored: Self::I) -> Self::W;
    /// `sum + Σ₄ (w + OFFSET)·x`, for `−128 ≤ w ≤ 127` and `|x| ≤ 127`.
    fn dot(self, sum: Self::I, w: Self::W, x: Self::I) -> Self::I;
    /// `sum + Σ₄ w·x`, for unsigned bytes `w ≤ 15` and `|x| ≤ 127`.
    fn dot_small(self, sum: Self::I, w: Self::I, x: Self::I) -> Self::I;
    /// The lower four bits of each byte.
    fn low_nibbles(self, a: Self::I) -> Self::I;
    /// The upper four bits of each byte.
    fn high_nibbles(self, a: Self::I) -> Self::I;
    /// Prepares pairs of `bfloat16`, the first in the lower half of each lane.
    fn pairs(self, a: Self::I) -> Self::P;
    /// `(sum + w₁·x₁) + w₀·x₀` of the pairs, each addition rounded.
    fn dot_pairs(self, sum: <Self::F as Simd>::V, w: Self::P, x: Self::P) -> <Self::F as Simd>::V;
}

/// A computation over integers, written once for every instruction set. `run` must be
/// `#[inline(always)]`.
pub trait IntKernel {
    /// Result of the kernel.
    type Out;
    /// Runs the kernel on one instruction set.
    fn run<S: IntSimd>(self, s: S) -> Self::Out;
}

/// Instruction sets that integer kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum IntIsa {
    /// Plain Rust.
    Portable = 1,
    /// NEON with `dotprod`.
    NeonDot = 2,
    /// AVX2: products of bytes are added in pairs of 16 bits.
    Avx2 = 3,
    /// AVX-VNNI: 256 bits, on CPUs without AVX-512.
    AvxVnni = 4,
    /// AVX-512 without VNNI.
    Avx512 = 5,
    /// AVX-512 VNNI.
    Avx512Vnni = 6,
    /// AVX-512 VNNI and BF16.
    Avx512Bf16 = 7,
}

impl IntIsa {
    /// All instruction sets, best last.
    pub const ALL: [IntIsa; 7] = [
        IntIsa::Portable,
        IntIsa::NeonDot,
        IntIsa::Avx2,
        IntIsa::AvxVnni,
        IntIsa::Avx512,
        IntIsa::Avx512Vnni,
        IntIsa::Avx512Bf16,
    ];

    /// Returns the name that `REGARD_INT_ISA` accepts.
    pub fn name(self) -> &'static str {
        match self {
            IntIsa::Portable => "portable",
            IntIsa::NeonDot => "neon-dot",
            IntIsa::Avx2 => "avx2",
            IntIsa::AvxVnni => "avx-vnni",
            IntIsa::Avx512 => "avx512",
            IntIsa::Avx512Vnni => "avx512-vnni",
            IntIsa::Avx512Bf16 => "avx512-bf16",
        }
    }

    /// The float instruction set that it needs.
    pub fn floats(self) -> Isa {
        match self {
            IntIsa::Portable => Isa::Portable,
            IntIsa::NeonDot => Isa::Neon,
            IntIsa::Avx2 | IntIsa::AvxVnni => Isa::Avx2,
            IntIsa::Avx512 | IntIsa::Avx512Vnni | IntIsa::Avx512Bf16 => Isa::Avx512,
        }
    }

    /// Whether this CPU supports it.
    pub fn available(self) -> bool {
        self.floats().available()
            && match self {
                #[cfg(target_arch = "x86_64")]
                IntIsa::AvxVnni => is_x86_feature_detected!("avxvnni"),
                #[cfg(target_arch = "x86_64")]
                IntIsa::Avx512Vnni => is_x86_feature_detected!("avx512vnni"),
                #[cfg(target_arch = "x86_64")]
                IntIsa::Avx512Bf16 => {
                    is_x86_feature_detected!("avx512vnni") && is_x86_feature_detected!("avx512bf16")
                }
                #[cfg(target_arch = "aarch64")]
                IntIsa::NeonDot => std::arch::is_aarch64_feature_detected!("dotprod"),
                _ => true,
            }
    }
}

/// The instruction set in use; 0 before the first kernel runs.
static CHOSEN: AtomicU8 = AtomicU8::new(0);

/// Returns the instruction set of integer kernels: the one named by the environment variable
/// `REGARD_INT_ISA`, or the best of this CPU that does not exceed that of the float kernels.
#[inline]
pub fn int_isa() -> IntIsa {
    match CHOSEN.load(Ordering::Relaxed) {
        0 => choose(),
        chosen => IntIsa::ALL[usize::from(chosen) - 1],
    }
}

/// Returns the value of the environment variable `REGARD_INT_ISA`, `None` if it is not set.
///
/// # Errors
/// If this CPU does not support it.
pub fn int_asked() -> Result<Option<IntIsa>, Error> {
    let Some(asked) = std::env::var_os("REGARD_INT_ISA").filter(|asked| !asked.is_empty()) else {
        return Ok(None);
    };
    let here: Vec<_> = IntIsa::ALL.into_iter().filter(|isa| isa.available()).collect();
    match here.iter().find(|isa| asked == isa.name()) {
        Some(isa) => Ok(Some(*isa)),
        None => {
            let names: Vec<_> = here.iter().map(|isa| isa.name()).collect();
            bail!("REGARD_INT_ISA: got {asked:?}, need one that this CPU has: {}", names.join(", "))
        }
    }
}

#[cold]
fn choose() -> IntIsa {
    let floats = super::isa();
    let fits = |isa: &&IntIsa| isa.floats() <= floats && isa.available();
    let best = || *IntIsa::ALL.iter().rfind(fits).expect("portable is always there");
    let isa = int_asked().unwrap_or_else(|Error(message)| panic!("{message}")).unwrap_or_else(best);
    CHOSEN.store(isa as u8, Ordering::Relaxed);
    isa
}

/// Runs an integer kernel on a given instruction set.
///
/// # Panics
/// If this CPU does not support it.
#[inline]
pub fn int_dispatch_on<K: IntKernel>(isa: IntIsa, kernel: K) -> K::Out {
    assert!(isa.available(), "this CPU has no {}", isa.name());
    // SAFETY: it has just been confirmed.
    unsafe {
        match isa {
            #[cfg(target_arch = "x86_64")]
            IntIsa::Avx512Bf16 => x86::enter_avx512_bf16(kernel),
            #[cfg(target_arch = "x86_64")]
            IntIsa::Avx512Vnni => x86::enter_avx512_vnni(kernel),
            #[cfg(target_arch = "x86_64")]
            IntIsa::Avx512 => x86::enter_avx512(kernel),
            #[cfg(target_arch = "x86_64")]
            IntIsa::AvxVnni => x86::enter_avx_vnni(kernel),
            #[cfg(target_arch = "x86_64")]
            IntIsa::Avx2 => x86::enter_avx2(kernel),
            #[cfg(target_arch = "aarch64")]
            IntIsa::NeonDot => neon::enter(kernel),
            _ => kernel.run(Portable),
        }
    }
}

/// Four products of bytes, added.
fn quad(sum: i32, w: [i32; 4], x: [i32; 4]) -> i32 {
    (0..4).fold(sum, |sum, i| sum + w[i] * x[i])
}

impl IntSimd for Portable {
    type F = Portable;
    type I = [i32; 4];
    type W = [i32; 4];
    /// First and second of each pair.
    type P = [[f32; 4]; 2];
    const OFFSET: i32 = 0;
    const VECTORS: usize = 4;
    const ROWS: usize = 4;

    #[inline(always)]
    fn floats(self) -> Portable {
        self
    }
    #[inline(always)]
    fn splat(self, x: i32) -> [i32; 4] {
        [x; 4]
    }
    #[inline(always)]
    unsafe fn load(self, p: *const u8) -> [i32; 4] {
        // SAFETY: the caller vouches for the bytes.
        unsafe { p.cast::<[[u8; 4]; 4]>().read_unaligned() }.map(i32::from_le_bytes)
    }
    #[inline(always)]
    fn add(self, a: [i32; 4], b: [i32; 4]) -> [i32; 4] {
        std::array::from_fn(|lane| a[lane].wrapping_add(b[lane]))
    }
    #[inline(always)]
    fn to_floats(self, a: [i32; 4]) -> [f32; 4] {
        a.map(|x| x as f32)
    }
    #[inline(always)]
    fn weights(self, stored: [i32; 4]) -> [i32; 4] {
        stored
    }
    #[inline(always)]
    fn dot(self, sum: [i32; 4], w: [i32; 4], x: [i32; 4]) -> [i32; 4] {
        std::array::from_fn(|lane| {
            let w = w[lane].to_le_bytes().map(|w| i32::from(w) - 128);
            quad(sum[lane], w, x[lane].to_le_bytes().map(|x| i32::from(x as i8)))
        })
    }
    #[inline(always)]
    fn dot_small(self, sum: [i32; 4], w: [i32; 4], x: [i32; 4]) -> [i32; 4] {
        std::array::from_fn(|lane| {
            let w = w[lane].to_le_bytes().map(i32::from);
            quad(sum[lane], w, x[lane].to_le_bytes().map(|x| i32::from(x as i8)))
        })
    }
    #[inline(always)]
    fn low_nibbles(self, a: [i32; 4]) -> [i32; 4] {
        a.map(|x| x & 0x0f0f_0f0f)
    }
    #[inline(always)]
    fn high_nibbles(self, a: [i32; 4]) -> [i32; 4] {
        a.map(|x| (x >> 4) & 0x0f0f_0f0f)
    }
    #[inline(always)]
    fn pairs(self, a: [i32; 4]) -> [[f32; 4]; 2] {
        let upper = 0xffff_0000;
        [a.map(|x| f32::from_bits((x as u32) << 16)), a.map(|x| f32::from_bits(x as u32 & upper))]
    }
    #[inline(always)]
    fn dot_pairs(self, sum: [f32; 4], w: [[f32; 4]; 2], x: [[f32; 4]; 2]) -> [f32; 4] {
        std::array::from_fn(|lane| (sum[lane] + w[1][lane] * x[1][lane]) + w[0][lane] * x[0][lane])
    }
}
