//! Every storage type against its definition, on every instruction set.

use super::*;
use crate::simd::{Isa, dispatch_on};

/// All 16-bit values, converted a vector at a time.
struct All<T>(fn(u16) -> T);

impl<T: Element> Kernel for All<T> {
    type Out = Vec<f32>;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> Vec<f32> {
        let all: Vec<T> = (0..=u16::MAX).map(self.0).collect();
        let mut floats = vec![0f32; all.len()];
        for at in (0..all.len()).step_by(S::LANES) {
            // SAFETY: 65536 is a multiple of every number of lanes.
            unsafe {
                let x = T::load(s, all.as_ptr().add(at));
                s.store(floats.as_mut_ptr().add(at), x);
            }
        }
        floats
    }
}

/// The value with so many bits of fraction, by its definition.
fn defined(bits: u16, fraction_bits: u32, bias: i32) -> f64 {
    let ones = (1u32 << (15 - fraction_bits)) - 1;
    let (exponent, fraction) =
        (u32::from(bits) >> fraction_bits & ones, u32::from(bits) & ((1 << fraction_bits) - 1));
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let fraction = f64::from(fraction) / f64::from(1u32 << fraction_bits);
    let size = match exponent {
        0 => fraction * 2f64.powi(1 - bias),
        e if e == ones && fraction == 0.0 => f64::INFINITY,
        e if e == ones => f64::NAN,
        e => (1.0 + fraction) * 2f64.powi(e as i32 - bias),
    };
    sign * size
}

#[test]
fn every_number_of_16_bits_is_what_its_definition_says() {
    let half = |bits| (F16(bits).single(), defined(bits, 10, 15));
    let bfloat = |bits| (Bf16(bits).single(), defined(bits, 7, 127));
    for bits in 0..=u16::MAX {
        for (got, want) in [half(bits), bfloat(bits)] {
            // All are exact in single precision; signs of zeros count.
            let same = got.to_bits() == (want as f32).to_bits();
            assert!(same || (got.is_nan() && want.is_nan()), "{bits:#06x}: {got} {want}");
        }
    }
}

#[test]
fn vectors_are_converted_as_numbers_are() {
    for isa in Isa::ALL.into_iter().filter(|isa| isa.available()) {
        let (halves, bfloats) = (dispatch_on(isa, All(F16)), dispatch_on(isa, All(Bf16)));
        for bits in 0..=u16::MAX {
            let at = usize::from(bits);
            let pairs = [(halves[at], F16(bits).single()), (bfloats[at], Bf16(bits).single())];
            for (got, want) in pairs {
                let same = got.to_bits() == want.to_bits();
                let nan = got.is_nan() && want.is_nan();
                assert!(same || nan, "{} {bits:#06x}: {got} {want}", isa.name());
            }
        }
    }
}

/// Bytes of a matrix in a storage type, and its values.
pub(crate) fn matrix(kind: StorageType, numbers: &[f32]) -> (Bytes, Vec<f32>) {
    // Values that all types can represent: eight bits of fraction with its leading one.
    let short = |x: &f32| f32::from_bits(x.to_bits() & 0xffff_0000);
    let short: Vec<f32> = numbers.iter().map(|x| (short(x) * 128.0).round() / 128.0).collect();
    let bytes: Vec<u8> = match kind {
        StorageType::F32 => return (short.clone().into(), short),
        StorageType::F16 => short.iter().flat_map(|x| half_of(*x).to_le_bytes()).collect(),
        StorageType::Bf16 => {
            short.iter().flat_map(|x| ((x.to_bits() >> 16) as u16).to_le_bytes()).collect()
        }
    };
    (bytes.into(), short)
}

/// The half-precision bits of exactly this value, found by exhaustive search.
fn half_of(x: f32) -> u16 {
    use std::sync::LazyLock;
    static ALL: LazyLock<std::collections::HashMap<u32, u16>> =
        LazyLock::new(|| (0..=u16::MAX).map(|bits| (F16(bits).single().to_bits(), bits)).collect());
    ALL[&x.to_bits()]
}

#[test]
fn parts_and_transposes_are_views() {
    let numbers: Vec<f32> = (0..35).map(|i| i as f32 / 8.0 - 2.0).collect();
    for kind in StorageType::ALL {
        let (bytes, numbers) = matrix(kind, &numbers);
        let all = Stored::new(kind, &bytes, [5, 7]).unwrap();
        let part = all.part(1..4, 2..7);
        assert_eq!((part.shape(), part.t().shape(), part.kind()), ([3, 5], [5, 3], kind));
        let again = part.t().part(1..3, 0..2);
        assert_eq!(again.shape(), [2, 2]);
        let mut lines = [0f32; 4];
        again.to_floats(&mut lines).unwrap();
        // Lines of memory are columns of the transpose.
        assert_eq!(lines, [10, 11, 17, 18].map(|at: usize| numbers[at]));
        let mut whole = vec![0f32; 35];
        all.to_floats(&mut whole).unwrap();
        assert_eq!(whole, numbers);
        assert!(Stored::new(kind, &bytes, [5, 8]).is_err());
        assert!(Stored::new(kind, &bytes, [usize::MAX, 7]).is_err());
        assert_eq!(again.matrix().is_some(), kind == StorageType::F32);
    }
    let odd = Bytes::from(vec![0u8; 40]).part(1..33);
    let error = Stored::new(StorageType::F16, &odd, [4, 4]).err().unwrap();
    assert_eq!(error.0, "a matrix of F16 needs aligned memory");
}
