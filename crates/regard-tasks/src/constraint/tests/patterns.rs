//! Regular expressions: what is allowed is exactly what leads to a match.

use super::*;
use std::collections::BTreeSet;

/// Characters of the languages: of one, two and three bytes.
const LETTERS: [char; 4] = ['a', 'b', 'é', '中'];

/// Texts of the largest language.
const MOST: usize = 1000;

/// A pattern, with all texts that it matches.
#[derive(Clone)]
struct Language {
    pattern: String,
    texts: BTreeSet<String>,
}

impl Language {
    fn random(numbers: &mut Numbers, depth: usize) -> Language {
        if depth == 0 || numbers.below(4) == 0 {
            let some: BTreeSet<char> =
                (0..1 + numbers.below(2)).map(|_| LETTERS[numbers.below(4)]).collect();
            let class: String = some.iter().collect();
            let texts = some.iter().map(char::to_string).collect();
            return Language { pattern: format!("[{class}]"), texts };
        }
        let one = Language::random(numbers, depth - 1);
        match numbers.below(3) {
            0 => one.then(&Language::random(numbers, depth - 1)),
            1 => {
                let other = Language::random(numbers, depth - 1);
                Language {
                    pattern: format!("(?:{}|{})", one.pattern, other.pattern),
                    texts: &one.texts | &other.texts,
                }
            }
            _ => {
                let (least, more) = (numbers.below(2), numbers.below(3));
                let empty = Language { pattern: String::new(), texts: [String::new()].into() };
                let mut repeated = (0..least).fold(empty, |all, _| all.then(&one));
                let mut texts = repeated.texts.clone();
                for _ in 0..more {
                    repeated = repeated.then(&one);
                    texts.extend(repeated.texts.iter().cloned());
                }
                let pattern = format!("(?:{}){{{least},{}}}", one.pattern, least + more);
                Language { pattern, texts }
            }
        }
    }

    fn then(&self, other: &Language) -> Language {
        let mut texts = BTreeSet::new();
        // A set that is cut off stays too large, whatever follows.
        for a in &self.texts {
            texts.extend(other.texts.iter().map(|b| format!("{a}{b}")));
            if texts.len() > 2 * MOST {
                break;
            }
        }
        Language { pattern: format!("{}{}", self.pattern, other.pattern), texts }
    }
}

/// Tokens of up to five bytes, cut out of texts anywhere; at the end the bytes of each letter.
fn random_tokens(numbers: &mut Numbers, letters: &[char]) -> Vec<Vec<u8>> {
    let mut piece = || {
        let text: String = (0..4).map(|_| letters[numbers.below(letters.len())]).collect();
        let start = numbers.below(text.len());
        text.bytes().skip(start).take(1 + numbers.below(5)).collect()
    };
    let mut tokens: Vec<Vec<u8>> = (0..25).map(|_| piece()).collect();
    let mut letter = [0; 4];
    for c in letters {
        tokens.extend(c.encode_utf8(&mut letter).bytes().map(|byte| vec![byte]));
    }
    tokens
}

#[test]
fn what_is_allowed_is_what_leads_to_a_match() {
    let mut numbers = Numbers(7);
    let mut cases = 0;
    while cases < 150 {
        // Some vocabularies lack letters: all that have more than one byte, because where tokens are
        // parts of characters, which characters can be written is not known.
        let letters = &LETTERS[..[2, 4][numbers.below(2)]];
        let tokens = random_tokens(&mut numbers, letters);
        let Language { pattern, mut texts } = Language::random(&mut numbers, 4);
        let whole = ::regex::Regex::new(&format!("^(?:{pattern})$")).unwrap();
        assert!(texts.iter().all(|text| whole.is_match(text)));
        if texts.len() > MOST {
            continue;
        }
        texts.retain(|text| text.chars().all(|c| letters.contains(&c)));
        let begins: BTreeSet<&[u8]> = texts
            .iter()
            .flat_map(|text| (0..=text.len()).map(|end| &text.as_bytes()[..end]))
            .collect();
        let compiled = regex(&pattern).compile(&vocabulary(&tokens));
        if texts.iter().all(|text| text.is_empty()) {
            compiled.expect_err(&pattern);
            continue;
        }
        cases += 1;
        let start = compiled.unwrap().start(false);
        for _ in 0..20 {
            let (mut state, mut text) = (start.clone(), vec![]);
            loop {
                let context = || format!("{pattern} after {:?}", String::from_utf8_lossy(&text));
                let follows =
                    |token: &usize| begins.contains(&[&text, &tokens[*token][..]].concat()[..]);
                let want: Vec<usize> = (0..tokens.len()).filter(follows).collect();
                assert_eq!(allowed(&mut state, tokens.len()), want, "{}", context());
                let matches = texts.contains(&*String::from_utf8_lossy(&text));
                assert_eq!(state.allowed().unwrap().may_end(), matches, "{}", context());
                let goes_on =
                    begins.iter().any(|begin| begin.len() > text.len() && begin.starts_with(&text));
                assert_eq!(state.is_complete().unwrap(), matches && !goes_on, "{}", context());
                if want.is_empty() {
                    break;
                }
                let token = want[numbers.below(want.len())];
                text.extend(&tokens[token]);
                state.push(token as u32).unwrap();
            }
        }
    }
}

#[test]
fn the_syntax_of_rusts_regular_expressions_is_understood() {
    let tokens = bytes_and(&[]);
    let vocabulary = vocabulary(&tokens);
    for (pattern, texts, others) in [
        ("^ab$", &["ab"][..], &["a", "abc"][..]),
        ("(?:a+)?b", &["b", "aab"], &["a"]),
        ("(?:a*)+?/\\d{2}", &["/12", "aa/34"], &["12"]),
        ("(?i)q(?-i)q", &["qq", "Qq"], &["qQ"]),
        ("[^\\x00-\\x7f]", &["é", "中", "🦀"], &["e"]),
        ("\\p{Greek}+", &["αβ"], &["ab"]),
        ("a\\\\/\"\\n\\t'#&~-]", &["a\\/\"\n\t'#&~-]"], &["a"]),
        (".", &["x", "🦀"], &["\n", "xy"]),
        ("(?s).{2}", &["\n\n"], &["\n"]),
        ("(?x) a b # both", &["ab"], &["a b"]),
        ("(a|ab)(c|bcd)*", &["abcd", "abbcd", "a"], &["abb"]),
    ] {
        let compiled = regex(pattern).compile(&vocabulary).unwrap();
        let matches = |text: &str| {
            let mut state = compiled.start(false);
            text.bytes().all(|byte| state.push(byte.into()).is_ok())
                && state.allowed().unwrap().may_end()
        };
        assert!(texts.iter().all(|text| matches(text)), "{pattern}");
        assert!(!others.iter().any(|text| matches(text)), "{pattern}");
    }
}

#[test]
fn wrong_and_hostile_patterns_are_refused() {
    for (pattern, parts) in [
        ("a(b", &["regex: unclosed group", "character 2", "a(b"][..]),
        ("é[", &["unclosed character class", "character 2"]),
        ("a\\", &["character 2"]),
        ("a(?!b)", &["look-around", "character 2"]),
        ("\\bword", &["a word boundary is not supported"]),
        ("(?m)a$", &["a line's ^ or $ is not supported"]),
        ("(a{1000}){1000}", &["too large", "1000000", "100000"]),
        ("((((a{99}){99}){99}){99}){99}", &["too large"]),
        ("", &["empty text alone"]),
        ("a{0}", &["empty text alone"]),
        ("[a&&b]", &["regex: "]),
        ("b^a", &["regex: "]),
    ] {
        let message = refused(&regex(pattern));
        assert!(parts.iter().all(|part| message.contains(part)), "{pattern}: {message}");
        assert!(!message.contains('\n'), "{message}");
    }
    let long = refused(&regex(&"a".repeat(100_000)));
    assert!(long.contains("100000 bytes"), "{long}");
    refused(&regex(&"(".repeat(8_000)));
    // Each is hundreds of ranges of characters.
    let wide = refused(&regex(&"\\w".repeat(2_000)));
    assert!(wide.contains("ranges of characters, need at most 200000"), "{wide}");
    // And here `.` is one range for each character.
    let letters = ('\u{4e00}'..'\u{9000}').step_by(2);
    let letters: Vec<Vec<u8>> = letters.map(|letter| letter.to_string().into_bytes()).collect();
    let compiled = regex(&".".repeat(40)).compile(&vocabulary(&letters));
    let wide = compiled.unwrap_err().to_string();
    assert!(wide.contains("ranges of characters, need at most 200000"), "{wide}");
}

#[test]
fn ordinary_patterns_are_within_the_limits() {
    let tokens = vocabulary(&bytes_and(&[]));
    for pattern in [
        "\\w{1,20}",
        "(\\w+ ){20,40}\\w+[.!?]",
        "[\\w.-]+@[\\w-]+(\\.\\w{2,})+",
        "\\p{L}{3}( \\w)*",
    ] {
        regex(pattern).compile(&tokens).unwrap();
    }
}

/// Each copy may begin anywhere: what may follow is a set of hundreds of places, for every byte.
#[test]
fn steps_of_a_costly_pattern_end_soon() {
    let costly = regex(&"(\\w{1,9}|[a-z]{3,20}|b)*".repeat(150));
    let begun = Instant::now();
    let compiled = costly.compile(&vocabulary(&bytes_and(&[]))).unwrap();
    let mut state = compiled.start(false);
    let mut steps = (0..50).map(|_| state.allowed().and_then(|_| state.push(u32::from(b'a'))));
    let failed = steps.find_map(Result::err).unwrap().to_string();
    assert!(failed.starts_with("regex: too complex"), "{failed}");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[test]
fn at_the_beginning_of_a_text_a_token_may_lose_its_space() {
    let pieces = [" the", "the", " ", " a", "a"];
    let bytes = pieces.iter().map(|piece| piece.as_bytes().to_vec()).collect();
    let vocabulary = ConstraintVocabulary::of(TokenBytes { bytes, strips: true }).unwrap();
    let compiled = regex("the( a)?").compile(&vocabulary).unwrap();
    assert_eq!(allowed(&mut compiled.start(false), 5), [1]);
    // `▁the` is written "the" there, and `▁` is nothing.
    let mut first = compiled.start(true);
    assert_eq!(allowed(&mut first, 5), [0, 1, 2]);
    first.push(0).unwrap();
    assert_eq!(allowed(&mut first, 5), [2, 3]);
    let compiled = regex(" the").compile(&vocabulary).unwrap();
    // The first space is lost, so that only a second one is written.
    let mut first = compiled.start(true);
    assert_eq!(allowed(&mut first, 5), [2]);
    first.push(2).unwrap();
    assert_eq!(allowed(&mut first, 5), [0, 2]);
}

#[test]
fn forbidden_tokens_leave_the_row() {
    let compiled = regex("a(b|c)*").compile(&vocabulary(&bytes_and(&["ab", "ca"]))).unwrap();
    let mut state = compiled.start(false);
    let finite = |state: &mut ConstraintState| -> Vec<usize> {
        // More rows than tokens, as some models have.
        let mut logits = vec![1.0; 300];
        state.allowed().unwrap().apply(&mut logits);
        (0..logits.len()).filter(|at| logits[*at] == 1.0).collect()
    };
    assert_eq!(finite(&mut state), [usize::from(b'a'), 256]);
    state.push(256).unwrap();
    assert_eq!(finite(&mut state), [usize::from(b'b'), usize::from(b'c')]);
    assert!(state.allowed().unwrap().may_end() && !state.is_complete().unwrap());
    assert!(state.push(256).is_err());
}
