//! Tokenisation for BLEU and chrF: Python's definition of a space and sacrebleu's tokenisers.

use std::borrow::Cow;

use super::unicode_marks::{is_number, is_punctuation, is_symbol};

/// Whether case is distinguished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Case {
    /// Case is kept; `case:mixed` in a signature.
    #[default]
    Mixed,
    /// Text is lower-cased; `case:lc` in a signature.
    Lower,
}

impl Case {
    /// Returns the text, lower-cased if set.
    pub(super) fn apply(self, text: &str) -> Cow<'_, str> {
        match self {
            Case::Mixed => Cow::Borrowed(text),
            Case::Lower => Cow::Owned(text.to_lowercase()),
        }
    }

    /// Returns the value of `case` in a signature.
    pub(super) fn name(self) -> &'static str {
        match self {
            Case::Mixed => "mixed",
            Case::Lower => "lc",
        }
    }
}

/// Tokenisers of BLEU, with sacrebleu's names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BleuTokenizer {
    /// `13a`, that of WMT's mteval-v13a: punctuation is separated, except inside numbers.
    #[default]
    V13a,
    /// `none`: the text is already tokenised, words are separated by spaces.
    None,
    /// `intl`, that of mteval-v14: like `13a`, with the punctuation and the symbols of Unicode.
    Intl,
    /// `char`: every character that is not a space is a word.
    Char,
    /// `zh`: every Chinese character is a word, the rest is tokenised as by `13a`.
    Zh,
}

impl BleuTokenizer {
    /// Every tokeniser.
    pub const ALL: [BleuTokenizer; 5] = [
        BleuTokenizer::V13a,
        BleuTokenizer::None,
        BleuTokenizer::Intl,
        BleuTokenizer::Char,
        BleuTokenizer::Zh,
    ];

    /// Returns sacrebleu's name, as on its command line and in signatures.
    pub fn name(self) -> &'static str {
        match self {
            BleuTokenizer::V13a => "13a",
            BleuTokenizer::None => "none",
            BleuTokenizer::Intl => "intl",
            BleuTokenizer::Char => "char",
            BleuTokenizer::Zh => "zh",
        }
    }

    /// Returns the tokeniser with sacrebleu's name `name`.
    pub fn from_name(name: &str) -> Option<BleuTokenizer> {
        BleuTokenizer::ALL.into_iter().find(|t| t.name() == name)
    }

    /// Tokenises a line: returns it with spaces between its tokens; [`words`] splits it.
    pub fn tokenize(self, line: &str) -> Cow<'_, str> {
        match self {
            BleuTokenizer::V13a => Cow::Owned(western(&unescape(line))),
            BleuTokenizer::None => Cow::Borrowed(line),
            BleuTokenizer::Intl => Cow::Owned(international(line)),
            BleuTokenizer::Char => Cow::Owned(apart(line, |_| true)),
            BleuTokenizer::Zh => {
                Cow::Owned(western(&apart(line.trim_matches(is_space), is_chinese)))
            }
        }
    }
}

/// Splits a tokenised line at spaces.
pub fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(is_space).filter(|word| !word.is_empty())
}

/// Whether Python's `str.split` and `str.rstrip` take a character for a space: Unicode white space
/// and the four ASCII separators.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}')
}

/// mteval's clean-up, with a space on both sides so that every character has a neighbour.
fn unescape(line: &str) -> String {
    let mut line = line.replace("<skipped>", "").replace("-\n", "").replace('\n', " ");
    // In this order, `&amp;lt;` becomes `<`.
    for (escaped, plain) in [("&quot;", "\""), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">")] {
        if line.contains(escaped) {
            line = line.replace(escaped, plain);
        }
    }
    format!(" {line} ")
}

/// mteval-v13a's rules: separates ASCII punctuation, full stops and commas unless inside a number,
/// and a dash after a digit. The apostrophe and other dashes stay.
fn western(line: &str) -> String {
    let is_mark =
        |c: char| matches!(c, ' '..='&' | '('..='+' | '/' | ':'..='@' | '['..='`' | '{'..='~');
    let is_stop = |c: char| matches!(c, '.' | ',');
    let line = apart(line, is_mark);
    let line = second_apart(&line, |a, b| !a.is_ascii_digit() && is_stop(b));
    let line = first_apart(&line, |a, b| is_stop(a) && !b.is_ascii_digit());
    second_apart(&line, |a, b| a.is_ascii_digit() && b == '-')
}

/// mteval-v14's rules: separates punctuation unless inside a number, and symbols. A number at the
/// end of the line keeps its full stop, as it does there.
fn international(line: &str) -> String {
    let line = second_apart(line, |a, b| !is_number(a) && is_punctuation(b));
    let line = first_apart(&line, |a, b| is_punctuation(a) && !is_number(b));
    apart(&line, is_symbol)
}

/// Puts spaces around every character that `is_mark` accepts.
fn apart(line: &str, is_mark: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(line.len() * 2);
    for c in line.chars() {
        if is_mark(c) {
            out.extend([' ', c, ' ']);
        } else {
            out.push(c);
        }
    }
    out
}

/// Puts spaces around the first of every pair that `is_pair` accepts: `s/(a)(b)/ $1 $2/g`.
fn first_apart(line: &str, is_pair: impl Fn(char, char) -> bool) -> String {
    rewrite_pairs(line, is_pair, |a, b| [' ', a, ' ', b])
}

/// Puts spaces around the second of every pair that `is_pair` accepts: `s/(a)(b)/$1 $2 /g`.
fn second_apart(line: &str, is_pair: impl Fn(char, char) -> bool) -> String {
    rewrite_pairs(line, is_pair, |a, b| [a, ' ', b, ' '])
}

/// Rewrites non-overlapping pairs: the search continues after each match.
fn rewrite_pairs(
    line: &str,
    is_pair: impl Fn(char, char) -> bool,
    spaced: impl Fn(char, char) -> [char; 4],
) -> String {
    let mut out = String::with_capacity(line.len() * 2);
    let mut rest = line.chars().peekable();
    while let Some(a) = rest.next() {
        match rest.next_if(|&b| is_pair(a, b)) {
            Some(b) => out.extend(spaced(a, b)),
            None => out.push(a),
        }
    }
    out
}

/// Whether sacrebleu takes a character for Chinese. Its two ranges for the rare characters above
/// U+FFFF are written so that Python parses them as U+2001–U+2A6D and U+2F81–U+2FA1; published
/// scores are computed with these, so they are kept.
fn is_chinese(c: char) -> bool {
    matches!(c,
        '\u{2001}'..='\u{2a6d}' // Curly quotes, dashes, arrows, mathematics: see above.
        | '\u{2e80}'..='\u{2fdf}' // Radicals.
        | '\u{2ff0}'..='\u{303f}' // Shapes of characters, punctuation.
        | '\u{3100}'..='\u{312f}' // Bopomofo.
        | '\u{31a0}'..='\u{31bf}'
        | '\u{31c0}'..='\u{31ef}' // Strokes.
        | '\u{3200}'..='\u{33ff}' // Enclosed characters, squared words.
        | '\u{3400}'..='\u{4db5}' // Extension A.
        | '\u{4e00}'..='\u{9fbb}' // Unified ideographs.
        | '\u{f900}'..='\u{fa2d}' // Compatibility ideographs.
        | '\u{fa30}'..='\u{fa6a}'
        | '\u{fa70}'..='\u{fad9}'
        | '\u{fe10}'..='\u{fe1f}' // Vertical forms.
        | '\u{fe30}'..='\u{fe4f}'
        | '\u{ff00}'..='\u{ffef}') // Full and half width forms.
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(tokenizer: BleuTokenizer, line: &str, expected: &[&str]) {
        let line = tokenizer.tokenize(line);
        assert_eq!(words(&line).collect::<Vec<_>>(), expected, "{}", tokenizer.name());
    }

    #[test]
    fn words_of_a_line() {
        let line = "It's 3.14, \"ok\"&amp;co.";
        check(BleuTokenizer::V13a, line, &["It's", "3.14", ",", "\"", "ok", "\"", "&", "co", "."]);
        check(BleuTokenizer::None, line, &["It's", "3.14,", "\"ok\"&amp;co."]);
        check(BleuTokenizer::Intl, "It's 1,5 € – 20.", &["It", "'", "s", "1,5", "€", "–", "20."]);
        check(BleuTokenizer::Char, "a b\u{202f}!", &["a", "b", "!"]);
        check(BleuTokenizer::Zh, "我有2.5元。OK.", &["我", "有", "2.5", "元", "。", "OK", "."]);
        check(BleuTokenizer::V13a, "1990-1991 3-", &["1990", "-", "1991", "3", "-"]);
        check(BleuTokenizer::V13a, "a\u{1f}b\u{a0}c\u{3000}d", &["a", "b", "c", "d"]);
    }

    #[test]
    fn names_are_those_of_sacrebleu() {
        for tokenizer in BleuTokenizer::ALL {
            assert_eq!(BleuTokenizer::from_name(tokenizer.name()), Some(tokenizer));
        }
        assert_eq!(BleuTokenizer::from_name("moses"), None);
    }
}
