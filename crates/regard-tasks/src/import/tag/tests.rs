use super::*;
use crate::data::conllu::Sentences;
use crate::data::scratch::with_file;
use crate::import::{self, Import};
use crate::reader::Data;

fn check_with(name: &str, text: &str, label: Option<&str>) -> (Option<Import>, String) {
    with_file(name, text.as_bytes(), |path| {
        let mut request = Request::new("tag");
        request.data = vec![path.to_path_buf()];
        request.columns.label = label.map(str::to_string);
        let (import, findings) = import::read(&request).unwrap();
        (import, findings.text())
    })
}

fn check(name: &str, text: &str) -> (Option<Import>, String) {
    check_with(name, text, None)
}

/// Sentences of all parts, as the reader of recipes gives them, sorted by their text.
fn written(import: &Import) -> Vec<Sentence> {
    let thread = format!("{:?}", std::thread::current().id()).replace(['(', ')'], "");
    let folder =
        std::env::temp_dir().join(format!("regard-import-tag-{}-{thread}", std::process::id()));
    import.write(&folder).unwrap();
    let data: Data = import.recipe_keys(&folder)["data"].clone().try_into().unwrap();
    let mut all = vec![];
    for (path, count) in [&data.train, &data.valid, &data.test].into_iter().zip(import.parts) {
        let read: Vec<Sentence> =
            Sentences::open(path.as_ref().unwrap()).unwrap().collect::<Result<_>>().unwrap();
        assert_eq!(read.len(), count);
        all.extend(read);
    }
    std::fs::remove_dir_all(folder).unwrap();
    all.sort_by(|a, b| a.text.cmp(&b.text));
    all
}

const TAGS: [&str; 4] = ["B-PER", "O", "B-LOC", "O"];

fn words(i: usize) -> [String; 4] {
    [format!("Anna{i}"), "visits".into(), "Köln".into(), ".".into()]
}

/// Sentences with a line for each word.
fn lines(line: impl Fn(usize, &str, &str) -> String) -> String {
    let sentence = |i: usize| -> String {
        let words = words(i);
        let each = words.iter().zip(TAGS).enumerate();
        each.map(|(at, (word, tag))| line(at + 1, word, tag) + "\n").chain(["\n".into()]).collect()
    };
    (0..20).map(sentence).collect()
}

#[test]
fn all_formats_give_the_same_sentences() {
    let object = |i: usize, tags: &str| {
        let list = |items: &[String]| serde_json::to_string(items).unwrap();
        let labels: Vec<String> = TAGS.iter().map(|tag| tag.to_string()).collect();
        format!("{{\"tokens\": {}, \"{tags}\": {}}}", list(&words(i)), list(&labels))
    };
    let array: Vec<String> = (0..20).map(|i| object(i, "ner_tags")).collect();
    let mut wanted: Vec<Sentence> = (0..20)
        .map(|i| {
            let unit = |(form, label): (String, &str)| Unit { form, label: label.into(), line: 0 };
            sentence(&words(i).into_iter().zip(TAGS).map(unit).collect::<Vec<_>>())
        })
        .collect();
    wanted.sort_by(|a, b| a.text.cmp(&b.text));
    assert_eq!(wanted[0].text.as_deref(), Some("Anna0 visits Köln ."));
    for (name, text, label) in [
        (
            "a.conll",
            format!("-DOCSTART- -X- O O\n\n{}", lines(|_, w, t| format!("{w} NN I {t}"))),
            None,
        ),
        ("b.tsv", lines(|_, w, t| format!("{w}\t{t}\tx")), Some("2")),
        ("c.tsv", format!("word\ttag\n{}", lines(|_, w, t| format!("{w}\t{t}"))), None),
        ("d.txt", lines(|n, w, t| format!("{n}\t{w}\t_\t{t}\t_\t_\t{}\t_\t_\t_", n - 1)), None),
        // Heads are not read: none of these is one.
        (
            "d1.conllu",
            lines(|n, w, t| format!("{n}\t{w}\t_\t{t}\t_\t_\t{}\tx\t_\t_", 90 + n)),
            None,
        ),
        ("d2.conllu", lines(|n, w, t| format!("{n}\t{w}\t_\t{t}\t_\t_\troot\t\t_\t_")), None),
        ("e.conllu", lines(|n, w, t| format!("{n}\t{w}\t_\tX\t{t}\t_\t_\t_\t_\t_")), Some("xpos")),
        ("f.jsonl", (0..20).map(|i| object(i, "labels") + "\n").collect(), None),
        ("g.json", format!("[{}]", array.join(",")), None),
    ] {
        let (import, told) = check_with(name, &text, label);
        let import = import.unwrap_or_else(|| panic!("{name}: {told}"));
        assert_eq!(import.parts, [16, 2, 2], "{name}");
        assert_eq!(written(&import), wanted, "{name}");
    }
}

#[test]
fn labels_and_split_are_said() {
    let (import, told) = check("a.conll", &lines(|_, w, t| format!("{w} {t}")));
    assert_eq!(told, "");
    let import = import.unwrap();
    let said = import.summary.join("\n");
    for part in [
        "/B-PER visits/O Köln/B-LOC ./O",
        "sentences: 16 train, 2 valid, 2 test (split by seed 0)",
        "64 words and 3 labels in the training part: O 32, B-LOC 16, B-PER 16",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!((import.size.units, import.size.longest, import.size.labels), (64, 4, 3));
}

#[test]
fn labels_that_are_hardly_labels_are_noted() {
    let text = lines(|n, w, t| format!("{w} {}", if n == 1 { t.to_lowercase() } else { t.into() }));
    let (import, told) = check("a.conll", &(text + "A B-PER\nb nan\n\n"));
    assert!(import.is_some(), "{told}");
    for part in ["\"B-PER\" and \"b-per\" differ only in case", "the label is \"nan\", which"] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

/// Texts, contractions and places of a treebank are kept.
#[test]
fn treebanks_stay_as_they_are() {
    let sentence = |i: usize| {
        format!(
            "# sent_id = s{i}\n# text = Don't go{i}, al!\n1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_\n\
             1\tDo\tdo\tAUX\tVB\t_\t3\taux\t_\t_\n2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t_\t_\n\
             3\tgo{i}\tgo\tVERB\tVB\t_\t0\troot\t_\tSpaceAfter=No\n3.1\tx\t_\t_\t_\t_\t_\t_\t_\t_\n\
             4\t,\t,\tPUNCT\t,\t_\t3\tpunct\t_\t_\n5-6\tal\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No\n\
             5\ta\ta\tADP\tIN\t_\t3\tobl\t_\t_\n6\tel\tel\tDET\tDT\t_\t5\tdet\t_\t_\n\
             7\t!\t!\tPUNCT\t.\t_\t3\tpunct\t_\t_\n\n"
        )
    };
    let text: String = (0..10).map(sentence).collect();
    let (import, told) = check("a.conllu", &text);
    let read = written(&import.unwrap_or_else(|| panic!("{told}")));
    let original = with_file("b.conllu", text.as_bytes(), |path| {
        Sentences::open(path).unwrap().collect::<Result<Vec<Sentence>>>().unwrap()
    });
    assert_eq!(read.len(), 10);
    for (read, original) in read.iter().zip(&original) {
        assert_eq!((&read.id, &read.text), (&original.id, &original.text));
        assert_eq!(read.contractions, original.contractions);
        for (word, before) in read.words.iter().zip(&original.words) {
            assert_eq!((&word.form, &word.universal), (&before.form, &before.universal));
            assert_eq!(word.place, before.place);
        }
    }
}

#[test]
fn defects_are_named_with_their_lines() {
    let good = lines(|_, w, t| format!("{w}\t{t}"));
    let conllu = lines(|n, w, t| format!("{n}\t{w}\t_\t{t}\t_\t_\t_\t_\t_\t_"));
    let json =
        |row: &str| format!("{{\"tokens\": [\"a\", \"b\"], \"tags\": [\"X\", \"Y\"]}}\n{row}\n");
    for (name, text, wanted) in [
        ("a.tsv", format!("{good}alone\n"), "line 101: has 1 column, the first line has 2"),
        ("b.tsv", format!("{good}\nword\t\n"), "line 102: the tag is empty"),
        ("c.tsv", good.replace('\t', ","), "need a word and a label in a line"),
        ("d.tsv", lines(|_, w, _| format!("{w}\tX")), "every word has the label \"X\""),
        ("e.tsv", lines(|n, w, t| format!("{n}\t{w}\t{t}")), "line 1: the first column counts"),
        (
            "f.conllu",
            format!("{conllu}2\ta\t_\tX\t_\t_\t_\t_\t_\t_\n"),
            "line 101: word 2 comes after",
        ),
        (
            "g.conllu",
            format!("# c\n{conllu}1\ta\t_\t_\t_\t_\t_\t_\t_\t_\n"),
            "line 102: column 4, the tag",
        ),
        (
            "h.conllu",
            format!("{conllu}1\ta\n"),
            "line 101: has 2 columns with tabs between, not 10",
        ),
        ("i.jsonl", json("{\"tokens\": [\"a\"], \"tags\": []}"), "line 2: has 1 tokens and 0 tags"),
        ("j.jsonl", json("{\"tokens\": [\"a\"], \"tags\": [\"\"]}"), "line 2: tag 1 is empty"),
        ("k.jsonl", json("{\"tokens\": [\"a\"]}"), "line 2: has no \"tags\""),
        ("l.jsonl", json("{\"tokens\": [[]], \"tags\": [1]}"), "item 1 of \"tokens\" is no text"),
        (
            "m.jsonl",
            "{\"tokens\": [\"a\"], \"ner_tags\": [1], \"pos_tags\": [2]}\n".into(),
            "has ner_tags and pos_tags: choose one, such as --label ner_tags",
        ),
        ("n.conll", String::new(), "has no sentences"),
        ("p.parquet", "PAR1".into(), "whose lists are not read; convert it to JSON lines: python3"),
        (
            "o.tsv",
            (0..30).map(|i| format!("O\tword{i}\n\n")).collect(),
            "30 different labels, such as \"word0\": that looks like words",
        ),
    ] {
        let (import, told) = check(name, &text);
        assert!(import.is_none() && told.contains(wanted), "{name}: {wanted}: {told}");
    }
}

#[test]
fn warnings_do_not_stop() {
    let mut text = lines(|_, w, t| format!("{w} {t}"));
    text += "Bo I-PER\n\nBo B-PER\nKöln I-LOC\n\n";
    text += &"so O\n".repeat(201);
    let (import, told) = check("a.conll", &text);
    assert!(import.is_some(), "{told}");
    for part in [
        "line 101: I-PER after O, at \"Bo\": an entity begins with B-PER. Is this the scheme IOB1?",
        "line 104: I-LOC after B-PER",
        "line 106: a sentence of 201 words; is a blank line missing?",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
fn chinese_words_have_no_spaces_between() {
    let unit = |form: &str| Unit { form: form.into(), label: "X".into(), line: 1 };
    let read = sentence(&["我", "用", "i", "Phone", "手机", "。"].map(unit));
    assert_eq!(read.text.as_deref(), Some("我用i Phone手机。"));
}

/// MultiCoNER has as many columns in its comments as in its words.
#[test]
fn comments_before_sentences_are_no_words() {
    let text: String =
        (0..20).map(|i| format!("# id {i} domain=en\n{i}st _ _ B-X\nsleeps _ _ O\n\n")).collect();
    let (import, told) = check("a.conll", &format!("{text}# _ _ O\nAnna _ _ B-X\n"));
    let import = import.unwrap_or_else(|| panic!("{told}"));
    assert!(told.contains("20 lines with \"# \" before a sentence are comments"), "{told}");
    let forms = written(&import);
    assert!(forms.iter().all(|sentence| !sentence.text.as_deref().unwrap_or("").contains("id ")));
    assert_eq!(
        forms
            .iter()
            .filter(|sentence| sentence.text.as_deref().is_some_and(|text| text.starts_with('#')))
            .count(),
        1
    );
}

/// Without this, the tags of all sentences are the same "words": there seems to be one sentence.
#[test]
fn a_tag_before_its_word_is_told_with_the_flags_that_help() {
    let text = lines(|_, w, t| format!("{t}\t{w}"));
    let (import, told) = check("a.conll", &text);
    assert!(import.is_none());
    assert!(told.contains("--text 2 --label 1") && told.contains("\"B-LOC\""), "{told}");
    assert!(told.contains("error: swapped columns (1)") && !told.contains("too few"), "{told}");
    let import = with_file("a.conll", text.as_bytes(), |path| {
        let mut request = Request::new("tag");
        request.data = vec![path.to_path_buf()];
        (request.columns.text, request.columns.label) = (Some("2".into()), Some("1".into()));
        import::read(&request).unwrap().0
    });
    assert_eq!(import.unwrap().parts, [16, 2, 2]);
    // Few words that are repeated, with fewer labels, are words.
    let few = lines(|n, _, t| format!("w{n}\t{t}"));
    assert!(!check("b.conll", &few).1.contains("swapped"));
}
