//! English words as treebanks split them: punctuation apart, `do` and `n't`, `Ann` and `'s`.
//!
//! Two regular expressions, so that they are part of `tokenizer.json` and every reader of that file
//! splits alike: one finds words without spaces in them; another splits those of them that are
//! two. The rules are those of the English Web Treebank of Universal Dependencies 2: hyphens
//! separate words except after prefixes (`well - known`, `non-human`); addresses and file names
//! are whole.

/// No letter or digit before, none after.
const OPEN: &str = r"(?<![\p{L}\p{N}])";
const SHUT: &str = r"(?![\p{L}\p{N}])";

/// Characters used as an apostrophe.
const APOSTROPHE: &str = "['’`´]";

/// Endings that are words of their own: `'s`, `'re`.
const CLITICS: &str = "(?:s|m|d|re|ve|ll)";

/// Abbreviations whose period belongs to them, unless it ends the text. Words like `sat` are not
/// among them: in lower case they cannot be told from days.
const ABBREVIATIONS: &str = "mr|mrs|ms|dr|st|ft|mt|jr|sr|prof|gen|col|gov|sen|rep|lt|sgt|capt|rev|\
    hon|inc|corp|co|ltd|vs|etc|jan|feb|apr|jun|jul|aug|sept|sep|oct|nov|dec|mon|tue|tues|thu|thur|\
    thurs|fri|ave|blvd|approx|dept|ext";

/// Prefixes after which a hyphen does not separate.
const PREFIXES: &str = "e|co|non|re|pre|post|anti|ex|mis|un|over|sub|semi|multi|pro|counter|inter|\
    intra|ultra|mid|bi|de|cyber|quasi|micro|mini|neo|pan";

/// Endings of file and host names.
const SUFFIXES: &str = "com|org|net|edu|gov|uk|htm|html|pdf|doc|xls|ppt|jpg|gif|png|txt|zip|exe";

/// A part of a name with periods. Its length is limited, so that matching stays linear in a text
/// of a million periods.
const LABEL: &str = r"[\p{L}\p{N}_-]{1,64}";

/// Pairs of words that are written as one word: the first, and the second.
const FUSED: [(&str, &str); 10] = [
    // Negations without an apostrophe.
    ("do|does|did|ca|could|wo|would|should|is|are|was|were|has|have|had|ai", "nt"),
    ("can", "not"),
    ("gon|wan", "na"),
    ("got|out", "ta"),
    ("i", "m"),
    ("i|you|we|they", "ve"),
    ("you|they", "re"),
    ("that|what|there|he|let", "s"),
    ("a", "lot"),
    // A number and its unit.
    (r"\p{N}+", "am|pm|k|mm|cm|km|kg|mb|gb"),
];

/// Regular expression that finds words; the first alternative that matches is taken.
pub fn words() -> String {
    let rules = [
        // URLs and e-mail addresses.
        r"(?i:https?://|ftp://|www\.)[^\s<>]*[\p{L}\p{N}/=#~_-]".to_string(),
        format!(r"{OPEN}[\p{{L}}\p{{N}}._+-]{{1,64}}@{LABEL}(?:\.{LABEL})*"),
        // Emoticons.
        format!(r"{OPEN}(?:[:;=8][-o^']?[)(\]\[DPpb/\\|]+|<3|\^_+\^|[:;]-?\*){SHUT}"),
        // Names with periods: of hosts, files and newsgroups.
        format!(r"{OPEN}(?i:(?:{LABEL}\.){{1,8}}(?:{SUFFIXES})){SHUT}"),
        format!(r"{OPEN}\p{{Ll}}{{2,}}(?:\.\p{{Ll}}[\p{{Ll}}\p{{N}}-]+){{2,}}"),
        // Initials and abbreviations.
        r"\p{L}\.(?:\p{L}\.)+".to_string(),
        format!(r"{OPEN}(?i:(?:{ABBREVIATIONS})\.(?=\s*\S)(?!\p{{L}})|no\.(?=\s*\p{{N}}))"),
        format!(r"{OPEN}(?![Ii])\p{{L}}\.(?=\s)"),
        // A clitic that stands alone.
        format!(r"(?i:{APOSTROPHE}{CLITICS}{SHUT})"),
        // Telephone numbers, words with a prefix, firms, `b/c`.
        format!(r"{OPEN}\p{{N}}{{1,3}}-(?:\p{{N}}{{3}}-)?\p{{N}}{{4}}{SHUT}"),
        format!(r"{OPEN}(?i:(?:{PREFIXES})-\p{{L}}{{3,}})(?!-)"),
        format!(r"{OPEN}\p{{L}}{{1,2}}&\p{{L}}{{1,2}}{SHUT}"),
        format!(r"{OPEN}\p{{L}}/\p{{L}}{SHUT}"),
        // Numbers with periods, commas, colons and slashes.
        r"\p{N}+(?:[.,:/]\p{N}+)+".to_string(),
        // Letters and digits, with apostrophes among them.
        format!(r"[\p{{L}}\p{{M}}\p{{N}}]+(?:{APOSTROPHE}\p{{L}}+)*"),
        // Repeated signs, and single ones.
        r"[.!?]{2,}|-{2,}|\*{2,}|={2,}|_{2,}|~{2,}|<{2,}|>{2,}|''|``|\$\$+|’’|‘’|\S".to_string(),
    ];
    rules.join("|")
}

/// Regular expression that finds the part of a word, at its start or end, that is a word itself.
pub fn parts() -> String {
    let mut rules = vec![format!("n{APOSTROPHE}t$"), format!("{APOSTROPHE}{CLITICS}$")];
    rules.extend(FUSED.map(|(first, second)| format!("^(?:{first})(?=(?:{second})$)")));
    format!("(?i:{})", rules.join("|"))
}

#[cfg(test)]
mod tests {
    use super::super::{Train, VocabularyKind};

    #[test]
    fn english_is_cut_as_in_treebanks() {
        let cut = |text: &str| {
            let tokenizer = Train::new(VocabularyKind::Treebank, 10).run([text]).unwrap();
            let encoding = tokenizer.encode(text).unwrap();
            let written = encoding.offsets.iter().map(|(from, to)| &text[*from..*to]);
            written.collect::<Vec<_>>().join("|")
        };
        for (text, wanted) in [
            ("They don't, can't and won’t.", "They|do|n't|,|ca|n't|and|wo|n’t|."),
            ("I cannot; I'm gonna.", "I|can|not|;|I|'m|gon|na|."),
            ("He didnt know thats alot", "He|did|nt|know|that|s|a|lot"),
            ("Ann's dogs' O'Brien's 60's", "Ann|'s|dogs|'|O'Brien|'s|60|'s"),
            ("a well-known non-human e-mail", "a|well|-|known|non-human|e-mail"),
            ("a 15-year term, $5,000.50 (10%)", "a|15|-|year|term|,|$|5,000.50|(|10|%|)"),
            ("at 5pm on 11/17/2004, 10:30 a.m. today", "at|5|pm|on|11/17/2004|,|10:30|a.m.|today"),
            ("Mr. B. Smith of the U.S. Co. left.", "Mr.|B.|Smith|of|the|U.S.|Co.|left|."),
            ("No. Not I. See No. 5 etc.", "No|.|Not|I|.|See|No.|5|etc|."),
            ("Why?! Oh... well -- *** :) <3", "Why|?!|Oh|...|well|--|***|:)|<3"),
            ("see http://a.b/c?d=e. Or www.x.org!", "see|http://a.b/c?d=e|.|Or|www.x.org|!"),
            ("ann.b@c.com, d_e.doc, f.g", "ann.b@c.com|,|d_e.doc|,|f|.|g"),
            ("PG&E and/or b/c 713-853-1234", "PG&E|and|/|or|b/c|713-853-1234"),
            ("it 's what they do n't", "it|'s|what|they|do|n't"),
            ("4th 1990s naïve 東京 x²", "4th|1990s|naïve|東京|x²"),
        ] {
            assert_eq!(cut(text), wanted);
        }
    }
}
