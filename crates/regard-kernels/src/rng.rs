//! One counter-based generator for all randomness.
//!
//! A value is a pure function of (seed, step, site, index): nothing is stored between draws, draws
//! may happen in any order and on any thread, and a resumed run is bitwise the same run.

/// Sequence of random 32-bit words, addressed by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    key: [u32; 2],
}

/// A bijection of 32-bit words in which every input bit flips every output bit about half of
/// the time (two multiplications and three shifts, constants found by search: C. Wellons, 2018).
#[inline(always)]
fn mix(mut x: u32) -> u32 {
    x ^= x >> 16;
    x = x.wrapping_mul(0x7feb_352d);
    x ^= x >> 15;
    x = x.wrapping_mul(0x846c_a68b);
    x ^ (x >> 16)
}

impl Stream {
    /// Creates the stream of one use of randomness (`site`: a layer, a loader) at one step of one
    /// run.
    pub fn new(seed: u64, step: u64, site: u64) -> Stream {
        let mut key = [0x9e37_79b9, 0x85eb_ca6b];
        for word in [seed, step, site] {
            key[0] = mix(key[0] ^ word as u32).wrapping_add(key[1]);
            key[1] = mix(key[1] ^ (word >> 32) as u32).wrapping_add(key[0]);
        }
        Stream { key: [mix(key[0]), mix(key[1])] }
    }

    /// Returns 32 random bits.
    #[inline(always)]
    pub fn bits(self, index: u64) -> u32 {
        self.bits_of(index as u32, (index >> 32) as u32)
    }

    /// 32 random bits, for an index in two halves: loops over it vectorise to 32-bit lanes.
    #[inline(always)]
    pub(crate) fn bits_of(self, low: u32, high: u32) -> u32 {
        let x = mix(low ^ self.key[0]);
        mix(x ^ self.key[1].wrapping_add(high.wrapping_mul(0x9e37_79b9)))
    }

    /// Returns a uniform value in [0, 1), a multiple of 2⁻²⁴.
    #[inline(always)]
    pub fn uniform(self, index: u64) -> f32 {
        (self.bits(index) >> 8) as f32 * (1.0 / 16_777_216.0)
    }

    /// Returns standard Gumbel noise, −ln(−ln u) with 0 < u < 1.
    pub fn gumbel(self, index: u64) -> f32 {
        let u = ((self.bits(index) >> 8) as f64 + 0.5) / 16_777_216.0;
        -(-u.ln()).ln() as f32
    }

    /// Returns a standard normal value (Box–Muller on words `2·index` and `2·index + 1`).
    pub fn normal(self, index: u64) -> f32 {
        let u = (f64::from(self.bits(2 * index)) + 0.5) / 4_294_967_296.0;
        let v = f64::from(self.bits(2 * index + 1)) / 4_294_967_296.0;
        ((-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_uniform_and_streams_differ() {
        let n = 100_000;
        for (seed, step, site) in [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0), (7, 9, 1 << 40)] {
            let stream = Stream::new(seed, step, site);
            let mean = (0..n).map(|i| f64::from(stream.uniform(i))).sum::<f64>() / n as f64;
            assert!((mean - 0.5).abs() < 0.005, "mean {mean}");
            let pairs = (0..n).map(|i| {
                f64::from(stream.uniform(i) - 0.5) * f64::from(stream.uniform(i + 1) - 0.5)
            });
            let covariance = pairs.sum::<f64>() / n as f64;
            assert!(covariance.abs() < 0.002, "covariance {covariance}");
        }
        assert_ne!(Stream::new(0, 0, 1), Stream::new(0, 1, 0));
        assert_ne!(Stream::new(1, 0, 0), Stream::new(0, 1, 0));
    }

    #[test]
    fn normal_and_gumbel_have_their_moments() {
        let (n, stream) = (100_000, Stream::new(3, 0, 0));
        let mean = |f: &dyn Fn(u64) -> f64| (0..n).map(f).sum::<f64>() / n as f64;
        assert!(mean(&|i| f64::from(stream.normal(i))).abs() < 0.01);
        assert!((mean(&|i| f64::from(stream.normal(i)).powi(2)) - 1.0).abs() < 0.02);
        assert!((mean(&|i| f64::from(stream.gumbel(i))) - 0.5772).abs() < 0.02);
    }
}
