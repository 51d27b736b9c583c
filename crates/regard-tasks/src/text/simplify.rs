//! Traditional to simplified Chinese characters, so that one vocabulary covers both.
//!
//! The tables are OpenCC's (Apache-2.0), from the crate hanconv, which adds no dependency that the
//! tokenizers library does not have already.

use std::borrow::Cow;

/// Converts traditional characters to simplified ones, one for one; anything else stays as it is.
/// For a few characters the word that contains them decides.
pub fn simplify(text: &str) -> Cow<'_, str> {
    // All characters with two forms come after this one, the first CJK radical.
    if text.chars().all(|c| c < '\u{2e80}') {
        return Cow::Borrowed(text);
    }
    let simple = hanconv::t2s(text);
    if simple.chars().count() == text.chars().count() {
        return Cow::Owned(simple);
    }
    // A replacement of another length would break the offsets into the text.
    let one = |c: char| {
        let simple = hanconv::t2s(c.encode_utf8(&mut [0; 4]));
        let mut chars = simple.chars();
        chars.next().filter(|_| chars.next().is_none()).unwrap_or(c)
    };
    Cow::Owned(text.chars().map(one).collect())
}

/// Converts offsets into the simplified text to offsets into the original text.
pub fn original_offsets(text: &str, simple: &str, offsets: &mut [(usize, usize)]) {
    let ends = |s: &str| s.char_indices().map(|(i, _)| i).chain([s.len()]).collect::<Vec<_>>();
    let (there, here) = (ends(text), ends(simple));
    if there == here {
        return;
    }
    // An offset is always between characters, so it is one of `here`.
    let back = |at: usize| there[here.partition_point(|&end| end < at)];
    for (start, end) in offsets {
        (*start, *end) = (back(*start), back(*end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traditional_becomes_simplified() {
        for (traditional, simplified) in [
            ("", ""),
            ("Hello, l'école !", "Hello, l'école !"),
            ("這是漢語。", "这是汉语。"),
            ("这是汉语。", "这是汉语。"),
            ("乾坤和乾燥", "乾坤和干燥"),
            ("我們學習 English 🙂", "我们学习 English 🙂"),
        ] {
            assert_eq!(simplify(traditional), simplified);
        }
    }

    #[test]
    fn offsets_come_back_when_lengths_differ() {
        // A character of four bytes whose simplified form has three, and the other way round.
        let text = "a𧵳a這";
        let simple = "a这a𧵳";
        let mut offsets = [(0, 1), (1, 4), (4, 5), (5, 9), (0, 9)];
        original_offsets(text, simple, &mut offsets);
        assert_eq!(offsets, [(0, 1), (1, 5), (5, 6), (6, 9), (0, 9)]);
    }
}
