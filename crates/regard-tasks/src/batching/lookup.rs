//! Guesses of the next tokens by looking them up in the text so far (prompt lookup): after the same
//! few tokens, the same tokens often follow. The model checks all guesses in one step.

/// How tokens are guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// Most tokens that are guessed in one step; 0 for none.
    pub tokens: usize,
    /// Length of the context that must have occurred before, at least.
    pub context: usize,
}

impl Default for Lookup {
    fn default() -> Lookup {
        Lookup { tokens: 0, context: 3 }
    }
}

/// Longest context that is compared; among several places with one as long, the latest counts.
const LONGEST: usize = 8;

impl Lookup {
    /// Returns the tokens that followed the last place in `text` which ends as `text` does.
    pub(super) fn guess<'t>(&self, text: &'t [u32]) -> &'t [u32] {
        let n = text.len();
        if self.tokens == 0 || n <= self.context {
            return &[];
        }
        let mut best = (0, 0);
        // `end` tokens come before the place.
        for end in (self.context..n).rev() {
            let same = (1..=end.min(LONGEST))
                .take_while(|back| text[end - back] == text[n - back])
                .count();
            if same > best.0 {
                best = (same, end);
                if same == LONGEST {
                    break;
                }
            }
        }
        let (same, end) = best;
        if same < self.context { &[] } else { &text[end..n.min(end + self.tokens)] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_followed_before_is_guessed() {
        let lookup = Lookup { tokens: 3, context: 2 };
        assert_eq!(lookup.guess(&[1, 2, 3, 4, 5, 6, 2, 3]), [4, 5, 6]);
        // The longest context wins; of equal ones the latest.
        assert_eq!(lookup.guess(&[1, 2, 3, 9, 7, 2, 3, 8, 1, 2, 3]), [9, 7, 2]);
        assert_eq!(lookup.guess(&[2, 3, 9, 2, 3, 8, 2, 3]), [8, 2, 3]);
        assert_eq!(lookup.guess(&[1, 2, 3, 4, 5]), [0; 0]);
        assert_eq!(lookup.guess(&[4, 4, 4]), [4]);
        assert_eq!(Lookup::default().guess(&[1, 2, 3, 1, 2, 3]), [0; 0]);
    }
}
