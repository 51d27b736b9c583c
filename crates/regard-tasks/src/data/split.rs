//! Deterministic splits: the part of an example is a function of its text.

use super::pairs::Pair;

/// A part of a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Training.
    Train,
    /// Validation: model selection and early stopping.
    Valid,
    /// Test: reported results.
    Test,
}

impl Part {
    /// Its name in recipes and reports.
    pub fn name(self) -> &'static str {
        self.of(["train", "valid", "test"])
    }

    /// Returns the element for this part, of one for each part.
    pub fn of<T>(self, [train, valid, test]: [T; 3]) -> T {
        match self {
            Part::Train => train,
            Part::Valid => valid,
            Part::Test => test,
        }
    }
}

/// A split by a hash of a key sentence. Examples with the same key are in the same part, so no
/// sentence of the test part was seen in training, and an example stays in its part when others
/// are added or the order changes. For Tatoeba, where every pair has an English side, the key is
/// the English sentence in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// Keys for validation, per mille.
    pub valid: u16,
    /// Keys for the test, per mille.
    pub test: u16,
}

/// Side of a pair that is the key of a split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitKey {
    /// The source text.
    Source,
    /// The target text.
    Target,
}

impl Default for Split {
    fn default() -> Split {
        Split { valid: 20, test: 20 }
    }
}

impl Split {
    /// Returns the part of a key.
    ///
    /// # Panics
    /// If `valid + test` exceeds 1000.
    pub fn part(&self, key: &str) -> Part {
        let (valid, test) = (self.valid, self.test);
        assert!(
            valid + test <= 1000,
            "a split of {valid} + {test} of a thousand leaves nothing: the parts are per mille"
        );
        match (hash(key) % 1000) as u16 {
            n if n < test => Part::Test,
            n if n < test + valid => Part::Valid,
            _ => Part::Train,
        }
    }

    /// Returns the pairs of one part, in their order.
    pub fn pairs(&self, pairs: &[Pair], key: SplitKey, part: Part) -> Vec<Pair> {
        let key_of = |pair: &Pair| match key {
            SplitKey::Source => self.part(&pair.source),
            SplitKey::Target => self.part(&pair.target),
        };
        pairs.iter().filter(|pair| key_of(pair) == part).cloned().collect()
    }
}

/// 64-bit hash of a text: FNV-1a over its bytes, finished by the mixer of splitmix64, because the
/// low bits of FNV alone are not uniform enough for a remainder. It must never change: published
/// splits depend on it.
pub fn hash(text: &str) -> u64 {
    hash_bytes(text.as_bytes())
}

/// As [`hash`], of any bytes.
pub fn hash_bytes(bytes: &[u8]) -> u64 {
    let mut x = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    x ^= x >> 30;
    x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^= x >> 27;
    x = x.wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Published results depend on these values.
    #[test]
    fn the_hash_is_for_ever() {
        for (text, wanted) in [
            ("", 0xf52a_15e9_a9b5_e89b),
            ("Go.", 0x0d39_8667_f76b_9398),
            ("They are watching.", 0x48fd_a994_cfdc_0c6a),
            ("Ça alors\u{202f}!", 0xac09_e3ee_e0b1_3e70),
        ] {
            assert_eq!(hash(text), wanted, "{text:?} {:#x}", hash(text));
        }
    }

    #[test]
    fn parts_have_their_sizes() {
        let split = Split { valid: 50, test: 100 };
        let mut counts = [0; 3];
        for i in 0..100_000 {
            counts[split.part(&format!("This is sentence {i}.")) as usize] += 1;
        }
        // Six standard deviations of a fair draw are about 410 and 570.
        let [train, valid, test] = counts;
        assert!((4590..5410).contains(&valid), "{valid}");
        assert!((9430..10570).contains(&test), "{test}");
        assert_eq!(train, 100_000 - valid - test);
        assert_eq!(Split { valid: 0, test: 0 }.part("a"), Part::Train);
        assert_eq!(Split { valid: 0, test: 1000 }.part("a"), Part::Test);
    }

    #[test]
    fn both_directions_hold_out_the_same() {
        let pairs: Vec<Pair> = (0..3000)
            .map(|i| Pair { source: format!("en {}", i / 3), target: format!("fr {i}") })
            .collect();
        let reversed: Vec<Pair> = pairs
            .iter()
            .map(|p| Pair { source: p.target.clone(), target: p.source.clone() })
            .collect();
        let split = Split { valid: 100, test: 100 };
        let mut seen = 0;
        for part in [Part::Train, Part::Valid, Part::Test] {
            let there = split.pairs(&pairs, SplitKey::Source, part);
            let back = split.pairs(&reversed, SplitKey::Target, part);
            assert_eq!(there.len(), back.len());
            assert!(there.iter().zip(&back).all(|(a, b)| a.source == b.target));
            // All targets of a source are together.
            assert_eq!(there.len() % 3, 0);
            seen += there.len();
        }
        assert_eq!(seen, pairs.len());
    }

    #[test]
    #[should_panic(expected = "per mille")]
    fn parts_that_are_more_than_the_whole() {
        Split { valid: 600, test: 600 }.part("a");
    }
}
