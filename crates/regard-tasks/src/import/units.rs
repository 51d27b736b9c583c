//! Units of texts that a training step processes: words, or characters where words are not separated
//! by spaces.

/// Number of words of a text, or of characters if words are not separated by spaces.
pub(crate) fn units(text: &str, unspaced: bool) -> usize {
    match unspaced {
        true => text.chars().filter(|c| !c.is_whitespace()).count(),
        false => text.split_whitespace().count(),
    }
}

/// Whether most letters of the texts belong to scripts that do not separate words: Chinese,
/// Japanese, Thai and others.
pub(crate) fn is_unspaced<'a>(texts: impl Iterator<Item = &'a str>) -> bool {
    let is_such = |c: &char| {
        matches!(*c as u32, 0x0e00..=0x0eff | 0x1000..=0x109f | 0x1780..=0x17ff | 0x3040..=0x30ff
            | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff | 0x20000..=0x3134f)
    };
    let (mut such, mut all) = (0usize, 0usize);
    for c in texts.take(2000).flat_map(|text| text.chars().take(2000)).filter(|c| c.is_alphabetic())
    {
        all += 1;
        such += usize::from(is_such(&c));
    }
    2 * such > all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_without_spaces_are_recognised() {
        assert!(is_unspaced(["很好吃,下次还来", "ok"].into_iter()));
        assert!(!is_unspaced(["They are watching 电影.", ""].into_iter()));
        assert_eq!((units("很 好", true), units("so good", false)), (2, 2));
    }
}
