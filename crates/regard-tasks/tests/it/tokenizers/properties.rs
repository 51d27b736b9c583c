//! Properties for any text: offsets lead back to it, windows cover it, streaming equals decoding.

use super::{data, published};
use crate::small::Dice;
use regard_tasks::text::{Encoding, SpaceHandling, Tokenizer, Train, UnicodeForm, VocabularyKind};

const LINES: [&str; 5] = [
    "The cat isn't on the mat; it's under 1,024 mats, in 2010, and 字 too.",
    "Le chat n'est pas sur le tapis, il est « dessous » !",
    "the mats of the cats of the mats",
    "Größe, naïve, e\u{301}, ﬁn, 漢字 漢字, 👍🏽 👨‍👩‍👧",
    "unhappiness happiness happily unhappily",
];

/// Tokenizers that need no data, and their names.
fn trained() -> Vec<(&'static str, Tokenizer)> {
    let train = |name: &str| {
        let kind: VocabularyKind = name.parse().unwrap();
        let mut train = Train::new(kind, 400);
        if kind == VocabularyKind::ByteLevel {
            (train.normalise.form, train.normalise.spaces) =
                (UnicodeForm::Keep, SpaceHandling::Keep);
        }
        train.lowercase = kind == VocabularyKind::WordPiece;
        train.run(LINES).unwrap()
    };
    VocabularyKind::NAMES.iter().map(|(name, _)| (*name, train(name))).collect()
}

fn all(test: &str) -> Vec<(&'static str, Tokenizer)> {
    let published = data().map(|root| published(&root, test)).into_iter().flatten();
    published.chain(trained()).collect()
}

/// A text of characters that cause trouble.
fn text(dice: &mut Dice) -> String {
    const CHARACTERS: [&str; 44] = [
        "a",
        "b",
        "e",
        "th",
        "the",
        "ing",
        "A",
        "É",
        "é",
        "e\u{301}",
        "\u{301}",
        "ß",
        "İ",
        "ﬁ",
        "½",
        " ",
        " ",
        " ",
        "  ",
        "\t",
        "\n",
        "\u{a0}",
        "\u{3000}",
        "\u{200b}",
        "\0",
        "\u{ad}",
        ".",
        ",",
        "'",
        "''",
        "``",
        "1",
        "2010,",
        "漢",
        "字",
        "👍🏽",
        "👨‍👩‍👧",
        "한",
        "\u{1112}\u{1161}",
        "ا",
        "ก็",
        "\u{fffd}",
        "\u{10ffff}",
        "-",
    ];
    (0..dice.below(30)).map(|_| CHARACTERS[dice.below(CHARACTERS.len())]).collect()
}

fn offsets_lead_back(name: &str, encoding: &Encoding, texts: &[&str]) {
    let lengths = [
        encoding.tokens.len(),
        encoding.offsets.len(),
        encoding.words.len(),
        encoding.types.len(),
        encoding.texts.len(),
        encoding.special.len(),
    ];
    assert_eq!(lengths, [encoding.len(); 6]);
    let characters = encoding.in_characters(texts);
    for (of, text) in texts.iter().enumerate() {
        let mut last = 0;
        for at in encoding.places(of) {
            assert_eq!(encoding.texts[at], Some(of));
            let (start, end) = encoding.offsets[at];
            assert!(start <= end && last <= end, "{name} {text:?} {:?}", encoding.offsets);
            last = end;
            let slice = text.get(start..end).unwrap_or_else(|| panic!("{name} {text:?} {start}"));
            let (first, after) = characters[at];
            let same: String = text.chars().skip(first).take(after - first).collect();
            assert_eq!(slice, same, "{name}");
        }
    }
}

#[test]
fn offsets_are_exact_in_bytes_and_in_characters() {
    for (name, tokenizer) in all("offsets") {
        let mut dice = Dice(11);
        for _ in 0..400 {
            let (one, other) = (text(&mut dice), text(&mut dice));
            offsets_lead_back(name, &tokenizer.encode(&one).unwrap(), &[&one]);
            let both = tokenizer.encode_special(&one, Some(&other)).unwrap();
            offsets_lead_back(name, &both, &[&one, &other]);
            // Byte-level tokenizers leave nothing out.
            if ["gpt2", "bytes"].contains(&name) {
                let whole = tokenizer.encode(&one).unwrap();
                let covered = |at: usize| whole.offsets.iter().any(|&(s, e)| s <= at && at < e);
                let missing =
                    one.char_indices().find(|(at, c)| !c.is_whitespace() && !covered(*at));
                assert_eq!(missing, None, "{name} {one:?}");
            }
        }
    }
}

#[test]
fn bytes_come_back() {
    for (name, tokenizer) in all("bytes") {
        let mut dice = Dice(13);
        for _ in 0..500 {
            let text = text(&mut dice);
            let ids = tokenizer.encode(&text).unwrap().ids;
            let decoded = tokenizer.decode(&ids).unwrap();
            if ["gpt2", "bytes"].contains(&name) {
                assert_eq!(decoded, text, "{name}");
            }
        }
    }
}

#[test]
fn windows_make_the_whole() {
    for (name, tokenizer) in all("windows") {
        let mut dice = Dice(17);
        for _ in 0..150 {
            let (question, document) = (text(&mut dice), text(&mut dice) + &text(&mut dice));
            let whole = tokenizer.encode_special(&question, Some(&document)).unwrap();
            let (length, stride) = (30 + dice.below(60), dice.below(8));
            let Ok(windows) = tokenizer.windows(&question, Some(&document), length, stride) else {
                continue;
            };
            let ids = |encoding: &Encoding, of: usize| encoding.ids[encoding.places(of)].to_vec();
            let mut joined: Vec<u32> = Vec::new();
            for (number, window) in windows.iter().enumerate() {
                assert!(window.len() <= length, "{name}");
                assert_eq!(ids(window, 0), ids(&whole, 0), "{name}");
                let shared = if number == 0 { 0 } else { stride };
                let part = ids(window, 1);
                assert!(joined.ends_with(&part[..shared]), "{name}");
                joined.extend(&part[shared..]);
            }
            assert_eq!(joined, ids(&whole, 1), "{name}");
            let within = tokenizer.encode_within(&question, Some(&document), length).unwrap();
            assert_eq!(within.len(), length.min(whole.len()), "{name}");
        }
        assert!(tokenizer.windows("a b c d e", None, 3, 3).is_err(), "{name}");
    }
}

#[test]
fn streams_say_what_decoding_says() {
    for (name, tokenizer) in all("streams") {
        let mut dice = Dice(19);
        for case in 0..300 {
            let ids = match case % 2 {
                0 => tokenizer.encode_special(&text(&mut dice), None).unwrap().ids,
                // Ids that make no sense, half characters too.
                _ => (0..dice.below(20)).map(|_| dice.below(tokenizer.size()) as u32).collect(),
            };
            let mut stream = tokenizer.stream();
            let mut said = String::new();
            for id in &ids {
                said.extend(stream.push(*id).unwrap());
            }
            said.extend(stream.finish().unwrap());
            // Words are joined by what is on both sides of them, which a stream may not know yet.
            if name != "word" {
                assert_eq!(said, tokenizer.decode(&ids).unwrap(), "{name} {ids:?}");
            }
        }
    }
}

fn of_kind(asked: &str) -> Tokenizer {
    trained().into_iter().find(|(name, _)| *name == asked).unwrap().1
}

#[test]
fn half_a_character_is_kept_back() {
    let tokenizer = of_kind("bytes");
    let ids = tokenizer.encode("ọ😀").unwrap().ids;
    assert!(ids.len() > 2, "{ids:?}");
    let mut stream = tokenizer.stream();
    let said: Vec<_> = ids.iter().map(|id| stream.push(*id).unwrap()).collect();
    assert_eq!(said.iter().flatten().cloned().collect::<String>(), "ọ😀");
    assert_eq!(said[0], None);
    let mut stream = tokenizer.stream();
    assert_eq!(stream.push(ids[0]).unwrap(), None);
    assert_eq!(stream.finish().unwrap().as_deref(), Some("\u{fffd}"));
}

#[test]
fn trained_as_bert_and_as_gpt2() {
    let [pieces, bytes] = ["wordpiece", "bytes"].map(of_kind);
    let encoding = pieces.encode_special("Unhappy [MASK] 漢字", Some("cats")).unwrap();
    assert_eq!(encoding.tokens[0], "[CLS]");
    assert_eq!(encoding.tokens.iter().filter(|token| *token == "[SEP]").count(), 2);
    assert!(encoding.tokens.iter().any(|token| token.starts_with("##")));
    assert!(encoding.ids.contains(&pieces.special().need_mask().unwrap()));
    assert_eq!(pieces.decode(&encoding.ids).unwrap(), "unhappy 漢 字 cats");
    let special = pieces.special();
    assert_eq!((special.pad, special.unk, special.cls), (Some(0), Some(1), Some(2)));
    let words = bytes.encode("the mats</s>").unwrap();
    assert!(words.tokens.contains(&"Ġmats".to_owned()), "{:?}", words.tokens);
    assert!(!words.ids.contains(&bytes.special().eos.unwrap()));
    assert_eq!(bytes.special().mask, Some(4));
}
