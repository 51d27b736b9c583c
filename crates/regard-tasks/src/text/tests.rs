//! Training, encoding and decoding, for all kinds of vocabulary.

use std::env;
use std::path::PathBuf;

use super::*;

const LINES: [&str; 8] = [
    "They're watching the world's end (or \"not\").",
    "Va\u{202f}! J'ai vu l'école aujourd'hui, n'est-ce pas\u{a0}?",
    "« Bonjour », dit-il à 10:30.",
    "Wir sehen's: geht's dir gut? Ja, um 3,50 € am 5. Mai...",
    "I paid $5 for 1,000 dogs' tails at 5 a.m. and don't regret it!",
    "They are watching .",
    "the the the école école watching",
    "x-ray / U-Boot; R & B @home #1 5% [sic]",
];

const KINDS: [VocabularyKind; 4] =
    [VocabularyKind::WordLevel, VocabularyKind::Bpe, VocabularyKind::Unigram, VocabularyKind::Char];

fn trained(kind: VocabularyKind) -> Tokenizer {
    Train::new(kind, 400).run(LINES).unwrap()
}

fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn special_tokens_have_their_ids() {
    for kind in KINDS {
        let tokenizer = trained(kind);
        for (id, name) in special::NAMES.iter().enumerate() {
            assert_eq!(tokenizer.id(name), Some(id as u32), "{kind:?}");
            assert_eq!(tokenizer.token(id as u32).as_deref(), Some(*name));
        }
        let wanted = Special {
            pad: Some(0),
            bos: Some(1),
            eos: Some(2),
            unk: Some(3),
            ..Special::default()
        };
        assert_eq!(tokenizer.special(), wanted);
    }
}

#[test]
fn what_was_seen_comes_back() {
    for kind in KINDS {
        let tokenizer = trained(kind);
        // The free-standing point of "watching ." stays free, because it was written so.
        for line in LINES {
            let encoding = tokenizer.encode(line).unwrap();
            assert!(!encoding.ids.contains(&3), "{kind:?} {line} {:?}", encoding.tokens);
            assert_eq!(tokenizer.decode(&encoding.ids).unwrap(), plain(line), "{kind:?}");
        }
    }
}

#[test]
fn words_are_cut_where_people_cut_them() {
    let tokenizer = trained(VocabularyKind::WordLevel);
    for (text, wanted) in [
        ("They're watching.", "They 're watching ."),
        ("l'école", "l' école"),
        ("Va\u{202f}!", "Va ▁!"),
        ("(or \"not\")", "▁( or ▁\" not \" )"),
        ("10:30 1,000 a.m.", "10:30 1,000 a.m."),
        ("dogs' tails", "dogs ' tails"),
        ("unseen they", "<unk> <unk>"),
        ("", ""),
        ("  ", ""),
    ] {
        assert_eq!(tokenizer.encode(text).unwrap().tokens.join(" "), wanted);
    }
}

#[test]
fn offsets_are_bytes_of_the_users_text() {
    for kind in KINDS {
        let tokenizer = trained(kind);
        for text in LINES.iter().copied().chain(["Hi 🙂🙂 l'École", " \u{a0} été  fini "]) {
            let encoding = tokenizer.encode(text).unwrap();
            let mut last = 0;
            for (token, &(start, end)) in encoding.tokens.iter().zip(&encoding.offsets) {
                assert!(last <= start && start <= end, "{kind:?} {text:?} {token} {start} {end}");
                let slice = &text[start..end];
                last = if slice.trim().is_empty() { last } else { start };
                let bare = token.replace(['▁', ' '], "");
                if !bare.is_empty() && bare != "<unk>" {
                    assert_eq!(slice, bare, "{kind:?} {text:?}");
                }
            }
            let lengths = [encoding.ids.len(), encoding.offsets.len(), encoding.words.len()];
            assert_eq!(lengths, [encoding.tokens.len(); 3]);
        }
    }
}

#[test]
fn unseen_characters_are_unknown_and_can_be_copied() {
    for kind in KINDS {
        let tokenizer = trained(kind);
        let text = "watching 🙂🙂 漢 watching";
        let encoding = tokenizer.encode(text).unwrap();
        let unknown = encoding.ids.iter().zip(&encoding.offsets).filter(|(id, _)| **id == 3);
        let copied: String = unknown.map(|(_, &(start, end))| &text[start..end]).collect();
        assert_eq!(copied, "🙂🙂漢", "{kind:?}");
        assert_eq!(plain(&tokenizer.decode(&encoding.ids).unwrap()), "watching watching");
        let tokens =
            |(token, id): (&String, &u32)| if *id == 3 { "X".into() } else { token.clone() };
        let tokens: Vec<String> = encoding.tokens.iter().zip(&encoding.ids).map(tokens).collect();
        assert!(tokenizer.join(&tokens).unwrap().contains('X'), "{kind:?}");
    }
}

#[test]
fn special_tokens_in_a_text_are_text() {
    for kind in KINDS {
        let tokenizer = trained(kind);
        for text in ["</s>", "a <pad> b", "<s>the</s>"] {
            let ids = tokenizer.encode(text).unwrap().ids;
            assert!(ids.iter().all(|&id| id > 2), "{kind:?} {text} {ids:?}");
        }
    }
}

#[test]
fn batches_are_singles() {
    for kind in KINDS {
        let tokenizer = trained(kind);
        let singles: Vec<_> = LINES.iter().map(|line| tokenizer.encode(line).unwrap()).collect();
        assert_eq!(tokenizer.encode_batch(&LINES).unwrap(), singles);
        let ids: Vec<_> = singles.into_iter().map(|encoding| encoding.ids).collect();
        assert_eq!(tokenizer.ids_batch(&LINES).unwrap(), ids);
    }
}

#[test]
fn the_same_text_gives_the_same_file() {
    for kind in KINDS {
        for size in [120, 150, 400] {
            let train = Train::new(kind, size);
            let first = train.run(LINES).unwrap().to_json();
            for _ in 0..4 {
                assert!(train.run(LINES.iter().rev()).unwrap().to_json() == first, "{kind:?}");
            }
        }
    }
}

#[test]
fn saved_is_loaded() {
    let directory = env::temp_dir().join(format!("regard-text-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    for kind in KINDS {
        let mut train = Train::new(kind, 400);
        train.normalise.simplify = true;
        let tokenizer = train.run(LINES.into_iter().chain(["这是汉语"])).unwrap();
        tokenizer.save(&directory).unwrap();
        let loaded = Tokenizer::load(&directory).unwrap();
        assert_eq!(loaded.to_json(), tokenizer.to_json());
        assert_eq!(loaded.special(), tokenizer.special());
        for text in LINES.into_iter().chain(["</s>", "這是漢語", "🙂"]) {
            assert_eq!(loaded.encode(text).unwrap(), tokenizer.encode(text).unwrap(), "{text}");
        }
        let (one, other) = (loaded.encode("這是漢語").unwrap(), loaded.encode("这是汉语").unwrap());
        assert_eq!(one, other);
        assert!(!one.ids.contains(&3), "{kind:?} {:?}", one.tokens);
    }
    let left: Vec<_> = std::fs::read_dir(&directory).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    let error = Tokenizer::load(directory.join("none.json")).unwrap_err().to_string();
    assert!(error.contains("none.json"), "{error}");
    std::fs::write(directory.join("bad.json"), "{\"version\": \"1.0\"}").unwrap();
    let error = Tokenizer::load(directory.join("bad.json")).unwrap_err().to_string();
    assert!(error.contains("bad.json: not a tokenizer.json"), "{error}");
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn options_do_what_they_say() {
    let mut train = Train::new(VocabularyKind::Char, 400);
    train.normalise.spaces = SpaceHandling::Drop;
    let chinese = train.run(["我 是\u{3000}学生。"]).unwrap();
    assert_eq!(chinese.encode("学生 是我").unwrap().tokens.join("|"), "学|生|是|我");

    let mut train = Train::new(VocabularyKind::Bpe, 400);
    train.normalise.spaces = SpaceHandling::Keep;
    let exact = train.run(["  a  b\u{202f}c\t", "a"]).unwrap();
    for text in ["  a  b\u{202f}c\t", "a", " a", "a ", " "] {
        assert_eq!(exact.decode(&exact.encode(text).unwrap().ids).unwrap(), text);
    }

    let mut train = Train::new(VocabularyKind::WordLevel, 400);
    train.lowercase = true;
    train.min_frequency = 2;
    train.normalise.form = UnicodeForm::Nfkc;
    let words = train.run(["The the once ﬁn fin"]).unwrap();
    assert_eq!(words.encode("THE once FIN").unwrap().tokens.join(" "), "the <unk> fin");
    assert_eq!(words.size(), 6);

    train.min_frequency = 1;
    train.size = 5;
    assert_eq!(train.run(["b a a"]).unwrap().id("a"), Some(4), "the most frequent word stays");
}

#[test]
fn what_cannot_be_is_refused() {
    for kind in KINDS {
        let error = Train::new(kind, 4).run(LINES).unwrap_err().to_string();
        assert!(error.contains("got 4, need more than"), "{error}");
        let none: [&str; 0] = [];
        assert!(Train::new(kind, 400).run(none).unwrap_err().to_string().contains("empty"));
    }
    for kind in [VocabularyKind::Bpe, VocabularyKind::Unigram] {
        let error = Train::new(kind, 20).run(LINES).unwrap_err().to_string();
        assert!(error.contains("got 20, need at least"), "{error}");
    }
}

#[test]
fn missing_special_tokens_are_named() {
    let bytes =
        br#"{"version":"1.0","model":{"type":"WordLevel","vocab":{"a":0,"[PAD]":1,"[UNK]":2},
        "unk_token":"[UNK]"},"pre_tokenizer":{"type":"Whitespace"}}"#;
    let tokenizer = Tokenizer::from_bytes(bytes).unwrap();
    assert_eq!((tokenizer.special().pad, tokenizer.special().unk), (Some(1), Some(2)));
    let error = tokenizer.special().need_eos().unwrap_err().to_string();
    assert!(error.contains("no eos token") && error.contains("</s>"), "{error}");
}

#[test]
fn real_sentences_come_back() {
    let Some(root) = env::var_os(crate::data::sets::VARIABLE).map(PathBuf::from) else {
        return regard_fuzz::skip("REGARD_DATA is not set");
    };
    let pairs = crate::data::Tsv::FORWARD.read(root.join("tatoeba-fra-eng/fra.txt")).unwrap();
    // Every twentieth pair is enough to cover each use of spaces.
    let lines: Vec<&str> =
        pairs.iter().step_by(20).flat_map(|p| [&*p.source, &*p.target]).collect();
    for (kind, wrong_at_most) in [
        (VocabularyKind::WordLevel, 10),
        (VocabularyKind::Bpe, 0),
        (VocabularyKind::Unigram, 0),
        (VocabularyKind::Char, 0),
    ] {
        let tokenizer = Train::new(kind, 20_000).run(&lines).unwrap();
        let ids = tokenizer.ids_batch(&lines).unwrap();
        let wrong: Vec<_> = ids
            .iter()
            .zip(&lines)
            .filter(|(ids, line)| tokenizer.decode(ids).unwrap() != plain(line))
            .collect();
        assert!(wrong.len() <= wrong_at_most, "{kind:?}: {} such as {wrong:.5?}", wrong.len());
    }
}

#[test]
fn the_bytes_of_tokens_are_those_of_the_text() {
    use VocabularyKind::{Bpe, ByteLevel, Char, Unigram};
    for kind in [Bpe, ByteLevel, Char, Unigram] {
        let tokenizer = trained(kind);
        let TokenBytes { bytes, strips } = tokenizer.token_bytes().unwrap();
        assert_eq!(bytes.len(), tokenizer.size());
        assert!(
            special::NAMES
                .iter()
                .all(|name| bytes[tokenizer.id(name).unwrap() as usize].is_empty())
        );
        for line in LINES {
            let ids = tokenizer.encode(line).unwrap().ids;
            let joined: Vec<u8> = ids.iter().flat_map(|id| bytes[*id as usize].clone()).collect();
            let joined = String::from_utf8(joined).unwrap();
            let text = if strips { joined.strip_prefix(' ').unwrap_or(&joined) } else { &joined };
            assert_eq!(text, tokenizer.decode(&ids).unwrap(), "{kind:?}");
        }
    }
}
