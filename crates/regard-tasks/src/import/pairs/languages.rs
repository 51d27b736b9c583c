//! Codes of languages by their names, in headers and in names of files.

/// A code of ISO 639-1 with other codes and names of the language, in lower case.
const LANGUAGES: &[(&str, &[&str])] = &[
    ("ar", &["ara", "arabic"]),
    ("bg", &["bul", "bulgarian"]),
    ("bn", &["ben", "bengali"]),
    ("ca", &["cat", "catalan", "català"]),
    ("cs", &["ces", "cze", "czech", "čeština"]),
    ("da", &["dan", "danish", "dansk"]),
    ("de", &["deu", "ger", "german", "deutsch"]),
    ("el", &["ell", "gre", "greek"]),
    ("en", &["eng", "english"]),
    ("eo", &["epo", "esperanto"]),
    ("es", &["spa", "spanish", "español", "espanol"]),
    ("et", &["est", "estonian"]),
    ("eu", &["eus", "baq", "basque"]),
    ("fa", &["fas", "per", "persian", "farsi"]),
    ("fi", &["fin", "finnish", "suomi"]),
    ("fr", &["fra", "fre", "french", "français", "francais"]),
    ("ga", &["gle", "irish"]),
    ("gl", &["glg", "galician"]),
    ("he", &["heb", "hebrew"]),
    ("hi", &["hin", "hindi"]),
    ("hr", &["hrv", "croatian"]),
    ("hu", &["hun", "hungarian", "magyar"]),
    ("id", &["ind", "indonesian"]),
    ("is", &["isl", "icelandic"]),
    ("it", &["ita", "italian", "italiano"]),
    ("ja", &["jpn", "jp", "japanese", "日本語"]),
    ("ko", &["kor", "kr", "korean", "한국어"]),
    ("la", &["lat", "latin"]),
    ("lt", &["lit", "lithuanian"]),
    ("lv", &["lav", "latvian"]),
    ("ms", &["msa", "malay"]),
    ("nl", &["nld", "dut", "dutch", "nederlands"]),
    ("no", &["nor", "nob", "nno", "nb", "nn", "norwegian", "norsk"]),
    ("pl", &["pol", "polish", "polski"]),
    ("pt", &["por", "portuguese", "português", "portugues"]),
    ("ro", &["ron", "rum", "romanian"]),
    ("ru", &["rus", "russian", "русский"]),
    ("sk", &["slk", "slovak"]),
    ("sl", &["slv", "slovenian"]),
    ("sr", &["srp", "serbian"]),
    ("sv", &["swe", "swedish", "svenska"]),
    ("sw", &["swa", "swahili"]),
    ("ta", &["tam", "tamil"]),
    ("th", &["tha", "thai"]),
    ("tr", &["tur", "turkish", "türkçe"]),
    ("uk", &["ukr", "ukrainian"]),
    ("ur", &["urd", "urdu"]),
    ("vi", &["vie", "vietnamese"]),
    ("zh", &["zho", "chi", "cmn", "chinese", "mandarin", "中文"]),
];
/// Codes that are more often names of other columns: an identifier, a number.
const AMBIGUOUS: [&str; 2] = ["id", "no"];

/// Code of a language by its code or name, with or without a region: `en`, `English`, `zh-CN`.
pub(super) fn code(name: &str) -> Option<&'static str> {
    let name = name.trim().trim_start_matches('\u{feff}').to_lowercase();
    let find = |name: &str| {
        let is = |(code, names): &&(&str, &[&str])| *code == name || names.contains(&name);
        LANGUAGES.iter().find(is).map(|(code, _)| *code)
    };
    find(&name).or_else(|| match name.split_once(['-', '_']) {
        Some((language, region)) if region.len() <= 4 => find(language),
        _ => None,
    })
}

/// Code of the language that the name of a column says: `en`, `english_sentence`, `text_en`.
pub(super) fn of_column(name: &str) -> Option<&'static str> {
    let plain = name.trim().to_lowercase();
    if AMBIGUOUS.contains(&plain.as_str()) {
        return None;
    }
    let fillers = ["text", "sentence", "segment", "string"];
    let words = plain.split(|c: char| !c.is_alphanumeric());
    let words: Vec<&str> =
        words.filter(|word| !word.is_empty() && !fillers.contains(word)).collect();
    match words[..] {
        [word] => code(word),
        _ => code(&plain),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_codes() {
        for (name, wanted) in [
            ("en", Some("en")),
            ("French", Some("fr")),
            ("zh-CN", Some("zh")),
            ("cmn", Some("zh")),
            ("train", None),
            ("en-something", None),
        ] {
            assert_eq!(code(name), wanted, "{name}");
        }
        assert_eq!(of_column("id"), None);
        assert_eq!(of_column("English sentence"), Some("en"));
        assert_eq!(of_column("text_fr"), Some("fr"));
        assert_eq!(of_column("text"), None);
    }

    #[test]
    fn no_name_stands_for_two_languages() {
        let all = || LANGUAGES.iter().flat_map(|(code, names)| names.iter().chain([code]));
        let different: std::collections::HashSet<&&str> = all().collect();
        assert_eq!(different.len(), all().count());
    }
}
