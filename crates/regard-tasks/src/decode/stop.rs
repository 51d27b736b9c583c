//! Stop strings: found in a text that comes in pieces, across their borders.

/// Searches a text for strings that end it. What may be the beginning of one is held back until it
/// is clear, so that what was given out never contains a part of the stop string that is found.
#[derive(Clone, Debug)]
pub struct StopSearch<'a> {
    stops: &'a [String],
    /// Whether the text keeps the stop string.
    include: bool,
    /// The end of the text: long enough to complete any stop string.
    text: String,
    /// Bytes of `text` that were given out.
    given: usize,
}

/// What a piece adds to the text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StopPiece {
    /// Text that is certain now.
    pub text: String,
    /// Whether a stop string ended the text.
    pub stopped: bool,
}

impl<'a> StopSearch<'a> {
    /// Begins a text. Empty stop strings have no effect.
    pub fn new(stops: &'a [String], include: bool) -> StopSearch<'a> {
        StopSearch { stops, include, text: String::new(), given: 0 }
    }

    /// Adds a piece. `may_stop` tells whether a stop string that it completes ends the text. Of
    /// several the one that is complete first counts, so that the pieces do not matter; of these
    /// the longest.
    pub fn push(&mut self, piece: &str, may_stop: bool) -> StopPiece {
        let before = self.text.len();
        self.text.push_str(piece);
        if may_stop && let Some((start, end)) = self.find(before) {
            let cut = if self.include { end } else { start };
            let text = self.text.get(self.given..cut).unwrap_or_default().to_owned();
            self.text.clear();
            self.given = 0;
            return StopPiece { text, stopped: true };
        }
        let certain = self.text.len() - self.held();
        let text = self.text[self.given..certain].to_owned();
        self.given = certain;
        let longest = self.stops.iter().map(String::len).max().unwrap_or(0);
        let mut past = self.given.min(self.text.len().saturating_sub(longest));
        while !self.text.is_char_boundary(past) {
            past -= 1;
        }
        self.text.drain(..past);
        self.given -= past;
        StopPiece { text, stopped: false }
    }

    /// Returns the text that was held back, after the last piece.
    pub fn finish(mut self) -> String {
        self.text.split_off(self.given)
    }

    /// Returns where the first stop string that ends after `before` starts and ends.
    fn find(&self, before: usize) -> Option<(usize, usize)> {
        let places = self.stops.iter().filter(|stop| !stop.is_empty()).filter_map(|stop| {
            let mut from = (before + 1).saturating_sub(stop.len());
            while !self.text.is_char_boundary(from) {
                from += 1;
            }
            let start = from + self.text[from..].find(stop.as_str())?;
            Some((start + stop.len(), start))
        });
        places.min().map(|(end, start)| (start, end))
    }

    /// Returns the length of the longest end of the text that a stop string begins with.
    fn held(&self) -> usize {
        let rest = &self.text[self.given..];
        let begins = |length: &usize| {
            let end = rest.len() - length;
            let is_begin = |stop: &String| {
                stop.len() > *length && stop.as_bytes().starts_with(&rest.as_bytes()[end..])
            };
            rest.is_char_boundary(end) && self.stops.iter().any(is_begin)
        };
        let longest = self.stops.iter().map(String::len).max().unwrap_or(0);
        (1..longest.min(rest.len() + 1)).rev().find(begins).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns all that is given out, and whether it stopped; after each piece what is given out is
    /// checked.
    fn run(stops: &[&str], include: bool, pieces: &[&str]) -> (String, bool) {
        let stops: Vec<String> = stops.iter().map(|stop| stop.to_string()).collect();
        let mut search = StopSearch::new(&stops, include);
        let mut all = String::new();
        for piece in pieces {
            let StopPiece { text, stopped } = search.push(piece, true);
            all += &text;
            if stopped {
                return (all, true);
            }
        }
        all += &search.finish();
        (all, false)
    }

    #[test]
    fn the_text_ends_before_the_first_stop_string_however_it_is_cut() {
        let long = "a\n\nb 🦀 User: c\n\nd";
        for (stops, want) in [
            (&["\n\n"][..], Some("a")),
            (&["User:"], Some("a\n\nb 🦀 ")),
            (&["User:", "🦀 "], Some("a\n\nb ")),
            (&["ser: c\n\nd"], Some("a\n\nb 🦀 U")),
            // The shorter one is complete first; of those complete together the longest counts.
            (&["b 🦀 User", "🦀"], Some("a\n\nb ")),
            (&["\nb", "\n\nb"], Some("a")),
            (&["\n\n\n", "", "Userx", "dd"], None),
            (&[], None),
        ] {
            let stopped = want.is_some();
            let want = want.unwrap_or(long);
            for size in 1..=long.chars().count() {
                let letters: Vec<char> = long.chars().collect();
                let pieces: Vec<String> =
                    letters.chunks(size).map(|piece| piece.iter().collect()).collect();
                let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
                let got = run(stops, false, &pieces);
                assert_eq!(got, (want.to_string(), stopped), "{stops:?} in pieces of {size}");
            }
        }
        assert_eq!(run(&["xyx"], false, &["xyx"]), (String::new(), true));
        assert_eq!(
            run(&["END"], true, &["to the E", "N", "D and on"]),
            ("to the END".into(), true)
        );
    }

    #[test]
    fn nothing_of_a_stop_string_is_given_out() {
        let stops = ["abab!".to_string(), "aq".to_string()];
        let mut search = StopSearch::new(&stops, false);
        let mut push = |piece: &str| search.push(piece, true).text;
        assert_eq!(push("xab"), "x");
        assert_eq!(push("ab"), "");
        assert_eq!(push("a"), "ab", "abab! may still begin with the last three");
        assert_eq!(push("b?"), "abab?");
        assert_eq!(push("a"), "");
        assert_eq!(search.clone().push("q", true), StopPiece { text: "".into(), stopped: true });
        assert_eq!(search.finish(), "a");
    }

    #[test]
    fn a_stop_string_that_may_not_stop_is_text() {
        let stops = ["ab".to_string()];
        let mut search = StopSearch::new(&stops, false);
        assert_eq!(search.push("xab", false).text, "xab");
        assert_eq!(search.push("a", false).text, "");
        // The border is in the middle of a stop string.
        assert_eq!(search.push("b", true), StopPiece { text: "".into(), stopped: true });
    }
}
