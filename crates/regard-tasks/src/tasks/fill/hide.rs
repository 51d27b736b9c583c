//! Masking of tokens for masked language modelling.

use regard_attention::Stream;
use serde::{Deserialize, Serialize};

/// Configuration of token masking.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Masking {
    /// Fraction of tokens to predict, 0 to 1; 0.15 by default.
    pub share: f64,
    /// Fraction of those that are replaced by the mask token; 0.8 by default.
    pub masked: f64,
    /// Fraction of those that are replaced by a random token; 0.1 by default. The rest stays
    /// unchanged, so that the model cannot rely on unmasked inputs being correct.
    pub random: f64,
    /// Whether all tokens of a word are masked together.
    pub whole_words: bool,
}

impl Default for Masking {
    fn default() -> Masking {
        Masking { share: 0.15, masked: 0.8, random: 0.1, whole_words: false }
    }
}

/// A text with some tokens masked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Masked {
    /// Token ids of the masked input.
    pub ids: Vec<u32>,
    /// Positions to predict, ascending.
    pub places: Vec<usize>,
    /// Original token ids at these positions.
    pub wanted: Vec<u32>,
}

/// Token ids that masking needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tokens {
    pub mask: u32,
    /// First id of an ordinary token, and one past the last.
    pub words: (u32, u32),
}

impl Masking {
    /// Checks that the fractions are in range.
    pub fn check(&self) -> Result<(), String> {
        let shares = [("share", self.share), ("masked", self.masked), ("random", self.random)];
        for (name, share) in shares {
            if !(0.0..=1.0).contains(&share) {
                return Err(format!("hiding.{name}: got {share}, need 0 to 1"));
            }
        }
        if self.masked + self.random > 1.0 {
            return Err("hiding: masked + random is above 1".into());
        }
        Ok(())
    }

    /// Masks tokens of a text, deterministically by the stream. Tokens with equal `groups` entries
    /// belong to one word; `None` is never masked. At least one group is masked if there is one.
    pub(super) fn hide(
        &self,
        ids: &[u32],
        groups: &[Option<u32>],
        tokens: Tokens,
        stream: Stream,
    ) -> Masked {
        let mut units: Vec<Vec<usize>> = vec![];
        for (at, group) in groups.iter().enumerate() {
            let Some(group) = group else { continue };
            let joins = self.whole_words
                && units
                    .last()
                    .and_then(|unit| unit.last())
                    .is_some_and(|last| last + 1 == at && groups[*last] == Some(*group));
            match units.last_mut().filter(|_| joins) {
                Some(unit) => unit.push(at),
                None => units.push(vec![at]),
            }
        }
        let all: usize = units.iter().map(Vec::len).sum();
        let wanted = ((all as f64 * self.share).round() as usize).max(1);
        // The shuffle depends on the index alone, not on the order of evaluation.
        let mut order: Vec<usize> = (0..units.len()).collect();
        order.sort_by(|a, b| {
            stream.uniform(*a as u64).total_cmp(&stream.uniform(*b as u64)).then(a.cmp(b))
        });
        let mut places: Vec<usize> = vec![];
        for unit in order {
            if places.len() >= wanted {
                break;
            }
            places.extend(&units[unit]);
        }
        places.sort_unstable();
        let mut hidden = Masked {
            ids: ids.to_vec(),
            wanted: places.iter().map(|at| ids[*at]).collect(),
            places,
        };
        let base = ids.len() as u64;
        for at in &hidden.places {
            let share = f64::from(stream.uniform(base + 2 * *at as u64));
            if share < self.masked {
                hidden.ids[*at] = tokens.mask;
            } else if share < self.masked + self.random {
                let (first, end) = tokens.words;
                let pick = f64::from(stream.uniform(base + 2 * *at as u64 + 1));
                hidden.ids[*at] = first + (pick * f64::from(end - first)) as u32;
            }
        }
        hidden
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKENS: Tokens = Tokens { mask: 4, words: (5, 100) };

    #[test]
    fn shares_are_what_they_should_be() {
        let ids: Vec<u32> = (0..20_000).map(|i| 5 + i % 95).collect();
        let groups: Vec<Option<u32>> =
            (0..20_000).map(|i| (i % 10 != 0).then_some(i as u32)).collect();
        let hidden = Masking::default().hide(&ids, &groups, TOKENS, Stream::new(1, 2, 3));
        assert_eq!(hidden.places.len(), 2700);
        assert!(hidden.places.iter().all(|at| at % 10 != 0), "what cannot be hidden is not");
        let masked = hidden.places.iter().filter(|at| hidden.ids[**at] == 4).count();
        let same = hidden.places.iter().filter(|at| hidden.ids[**at] == ids[**at]).count();
        assert!((2060..2260).contains(&masked), "{masked} of 2700");
        // A random token is the same one in 95.
        assert!((200..350).contains(&same), "{same} of 2700");
        let elsewhere = (0..ids.len()).filter(|at| hidden.places.binary_search(at).is_err());
        assert!(elsewhere.into_iter().all(|at| hidden.ids[at] == ids[at]));
        let again = Masking::default().hide(&ids, &groups, TOKENS, Stream::new(1, 2, 3));
        assert_eq!(hidden, again);
        let other = Masking::default().hide(&ids, &groups, TOKENS, Stream::new(1, 3, 3));
        assert_ne!(hidden.places, other.places);
    }

    #[test]
    fn words_are_hidden_whole() {
        let ids: Vec<u32> = (5..65).collect();
        let groups: Vec<Option<u32>> = (0..60).map(|i| Some(i / 3)).collect();
        let hiding = Masking { whole_words: true, ..Masking::default() };
        let hidden = hiding.hide(&ids, &groups, TOKENS, Stream::new(7, 0, 0));
        assert_eq!(hidden.places.len(), 9);
        assert!(hidden.places.chunks(3).all(|word| word[0] % 3 == 0 && word[2] == word[0] + 2));
    }

    #[test]
    fn something_is_always_hidden_where_something_can_be() {
        let one = Masking::default().hide(
            &[2, 9, 3],
            &[None, Some(0), None],
            TOKENS,
            Stream::new(0, 0, 0),
        );
        assert_eq!((one.places, one.wanted), (vec![1], vec![9]));
        let none = Masking::default().hide(&[2, 3], &[None, None], TOKENS, Stream::new(0, 0, 0));
        assert!(none.places.is_empty());
    }
}
