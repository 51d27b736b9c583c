//! Stemmer of English words (Porter 1980) with NLTK's extensions, used by ROUGE.

/// Words whose stem the rules do not find.
const IRREGULAR: [(&str, &str); 14] = [
    ("sky", "sky"),
    ("skies", "sky"),
    ("dying", "die"),
    ("lying", "lie"),
    ("tying", "tie"),
    ("news", "news"),
    ("innings", "inning"),
    ("inning", "inning"),
    ("outings", "outing"),
    ("outing", "outing"),
    ("cannings", "canning"),
    ("canning", "canning"),
    ("howe", "howe"),
    ("proceed", "proceed"),
];

/// Words that are their own stem.
const WHOLE: [&str; 2] = ["exceed", "succeed"];

/// Returns the stem of a word of lower-case ASCII letters and digits.
pub fn stem(word: &str) -> String {
    if let Some((_, stem)) = IRREGULAR.iter().find(|(other, _)| *other == word) {
        return stem.to_string();
    }
    if word.len() <= 2 || WHOLE.contains(&word) {
        return word.to_string();
    }
    let steps = [plural, past, last_y, double_suffix, suffix, remainder, last_e, last_l];
    steps.iter().fold(word.to_string(), |word, step| step(&word))
}

/// Whether the letter at `at` is a consonant: `y` is one unless it follows one.
fn is_consonant(word: &[u8], at: usize) -> bool {
    match word[at] {
        b'a' | b'e' | b'i' | b'o' | b'u' => false,
        b'y' => at == 0 || !is_consonant(word, at - 1),
        _ => true,
    }
}

/// Returns, for each letter, whether it is a consonant.
fn consonants(word: &str) -> Vec<bool> {
    (0..word.len()).map(|at| is_consonant(word.as_bytes(), at)).collect()
}

/// Counts how often a vowel is followed by a consonant (Porter's measure m).
fn measure(stem: &str) -> usize {
    consonants(stem).windows(2).filter(|pair| pair == &[false, true]).count()
}

fn is_long(stem: &str) -> bool {
    measure(stem) > 0
}

fn is_longer(stem: &str) -> bool {
    measure(stem) > 1
}

fn has_vowel(stem: &str) -> bool {
    consonants(stem).contains(&false)
}

/// Whether a word ends with consonant, vowel, consonant, as `hop`, or is a vowel and a consonant.
fn ends_short(word: &str) -> bool {
    match consonants(word)[..] {
        [.., true, false, true] => !word.ends_with(['w', 'x', 'y']),
        [false, true] => true,
        _ => false,
    }
}

/// Replaces the first ending that matches if `allows` accepts the rest; if not, no other is tried.
fn replaced(word: &str, endings: &[(&str, &str)], allows: impl Fn(&str) -> bool) -> String {
    for (end, new) in endings {
        if let Some(rest) = word.strip_suffix(end) {
            return if allows(rest) { format!("{rest}{new}") } else { word.to_string() };
        }
    }
    word.to_string()
}

fn plural(word: &str) -> String {
    if word.len() == 4
        && let Some(rest) = word.strip_suffix("ies")
    {
        return format!("{rest}ie");
    }
    replaced(word, &[("sses", "ss"), ("ies", "i"), ("ss", "ss"), ("s", "")], |_| true)
}

fn past(word: &str) -> String {
    if let Some(rest) = word.strip_suffix("ied") {
        return format!("{rest}{}", if word.len() == 4 { "ie" } else { "i" });
    }
    if word.ends_with("eed") {
        return replaced(word, &[("eed", "ee")], is_long);
    }
    let cut = ["ed", "ing"].iter().filter_map(|end| word.strip_suffix(end));
    let Some(rest) = cut.into_iter().find(|rest| has_vowel(rest)) else { return word.to_string() };
    for (end, new) in [("at", "ate"), ("bl", "ble"), ("iz", "ize")] {
        if let Some(rest) = rest.strip_suffix(end) {
            return format!("{rest}{new}");
        }
    }
    let bytes = rest.as_bytes();
    if let [.., a, b] = bytes
        && a == b
        && is_consonant(bytes, bytes.len() - 1)
    {
        let kept = matches!(b, b'l' | b's' | b'z');
        return if kept { rest.to_string() } else { rest[..rest.len() - 1].to_string() };
    }
    let short = measure(rest) == 1 && ends_short(rest);
    if short { format!("{rest}e") } else { rest.to_string() }
}

fn last_y(word: &str) -> String {
    let allows = |rest: &str| rest.len() > 1 && is_consonant(rest.as_bytes(), rest.len() - 1);
    replaced(word, &[("y", "i")], allows)
}

fn double_suffix(word: &str) -> String {
    if let Some(rest) = word.strip_suffix("alli").filter(|rest| is_long(rest)) {
        return double_suffix(&format!("{rest}al"));
    }
    // The stem of `logi` keeps its `l` when its measure is computed.
    if word.ends_with("logi") && !word.ends_with("fulli") {
        let allowed = is_long(&word[..word.len() - 3]);
        return if allowed { word[..word.len() - 1].to_string() } else { word.to_string() };
    }
    const ENDINGS: [(&str, &str); 21] = [
        ("ational", "ate"),
        ("tional", "tion"),
        ("enci", "ence"),
        ("anci", "ance"),
        ("izer", "ize"),
        ("bli", "ble"),
        ("alli", "al"),
        ("entli", "ent"),
        ("eli", "e"),
        ("ousli", "ous"),
        ("ization", "ize"),
        ("ation", "ate"),
        ("ator", "ate"),
        ("alism", "al"),
        ("iveness", "ive"),
        ("fulness", "ful"),
        ("ousness", "ous"),
        ("aliti", "al"),
        ("iviti", "ive"),
        ("biliti", "ble"),
        ("fulli", "ful"),
    ];
    replaced(word, &ENDINGS, is_long)
}

fn suffix(word: &str) -> String {
    const ENDINGS: [(&str, &str); 7] = [
        ("icate", "ic"),
        ("ative", ""),
        ("alize", "al"),
        ("iciti", "ic"),
        ("ical", "ic"),
        ("ful", ""),
        ("ness", ""),
    ];
    replaced(word, &ENDINGS, is_long)
}

fn remainder(word: &str) -> String {
    const ENDINGS: [&str; 19] = [
        "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion",
        "ou", "ism", "ate", "iti", "ous", "ive", "ize",
    ];
    let Some(end) = ENDINGS.iter().find(|end| word.ends_with(**end)) else {
        return word.to_string();
    };
    let allows = |rest: &str| is_longer(rest) && (*end != "ion" || rest.ends_with(['s', 't']));
    replaced(word, &[(*end, "")], allows)
}

fn last_e(word: &str) -> String {
    let allows = |rest: &str| is_longer(rest) || (measure(rest) == 1 && !ends_short(rest));
    replaced(word, &[("e", "")], allows)
}

fn last_l(word: &str) -> String {
    let long = is_longer(&word[..word.len().saturating_sub(1)]);
    replaced(word, &[("ll", "l")], |_| long)
}

#[cfg(test)]
mod tests {
    use super::stem;

    #[test]
    fn stems() {
        let rows = [
            ("caresses", "caress"),
            ("ponies", "poni"),
            ("ties", "tie"),
            ("cats", "cat"),
            ("agreed", "agre"),
            ("plastered", "plaster"),
            ("hopping", "hop"),
            ("falling", "fall"),
            ("filing", "file"),
            ("happy", "happi"),
            ("enjoy", "enjoy"),
            ("relational", "relat"),
            ("generalizations", "gener"),
            ("adjustment", "adjust"),
            ("adoption", "adopt"),
            ("geology", "geolog"),
            ("skies", "sky"),
            ("controll", "control"),
            ("42nd", "42nd"),
        ];
        for (word, wanted) in rows {
            assert_eq!(stem(word), wanted, "{word}");
        }
    }
}
