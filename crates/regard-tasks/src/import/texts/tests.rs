//! Which texts of a file are read, and which lines are rows of a table.

use super::*;
use flate2::{Compression, write::GzEncoder};
use std::io::Write;

fn read(name: &str, text: &str, columns: Option<&str>) -> Result<FileTexts, String> {
    let choice = TextChoice { columns, flag: "column", ..TextChoice::default() };
    FileTexts::read(text.as_bytes(), name, &choice).map_err(|e| e.to_string())
}

/// Column, and lines with their texts.
fn found(name: &str, text: &str, column: Option<&str>) -> (Option<String>, Vec<(u64, String)>) {
    let found = read(name, text, column).unwrap_or_else(|e| panic!("{name}: {text:?}: {e}"));
    (found.column, found.texts.into_iter().map(|text| (text.line, text.text)).collect())
}

#[test]
fn lines_keep_their_numbers() {
    let all = read("notes.txt", " a b \n\nc\r\n  \nd", None).unwrap();
    let texts: Vec<(u64, &str)> = all.texts.iter().map(|t| (t.line, t.text.as_str())).collect();
    assert_eq!(texts, [(1, "a b"), (3, "c"), (5, "d")]);
    assert_eq!((all.empty, all.column), (2, None));
    assert_eq!(all.sha256, hex(&Sha256::digest(b" a b \n\nc\r\n  \nd")));
}

#[test]
fn a_column_is_found_or_named() {
    let both = |line, text: &str| (line, text.to_string());
    for (name, text, column, wanted) in [
        ("x.csv", "id,Text\n1,a\n2,\"b\nc\"\n3,d\n", None, "Text"),
        ("x.csv", "id,Text\n1,a\n2,\"b\nc\"\n3,d\n", Some("text"), "Text"),
        ("x.CSV", "id,wort\n1,a\n2,\"b\nc\"\n3,d\n", Some("wort"), "wort"),
    ] {
        let (column, texts) = found(name, text, column);
        assert_eq!(column.as_deref(), Some(wanted));
        assert_eq!(texts, [both(2, "a"), both(3, "b\nc"), both(5, "d")], "{text}");
    }
    let (column, texts) = found("x.tsv", "1\ta\n2\tb\n", Some("2"));
    assert_eq!((column.as_deref(), texts), (Some("2"), vec![both(1, "a"), both(2, "b")]));
    // A single column needs no name.
    let (column, texts) = found("x.tsv", "a b\nc\n", None);
    assert_eq!((column.as_deref(), texts), (Some("1"), vec![both(1, "a b"), both(2, "c")]));
}

#[test]
fn a_key_is_found_or_named() {
    let rows = "{\"id\": 1, \"body\": \"a\", \"url\": \"u\"}\n\n\
                {\"id\": 2, \"body\": null}\n{\"id\": 3, \"body\": \"b\"}\n";
    for column in [None, Some("Body")] {
        let (column, texts) = found("x.jsonl", rows, column);
        assert_eq!(column.as_deref(), Some("body"));
        assert_eq!(texts, [(1, "a".to_string()), (4, "b".to_string())]);
    }
    let (column, _) = found("x.jsonl", "{\"n\": 1, \"wort\": \"a\"}\n", None);
    assert_eq!(column.as_deref(), Some("wort"));
}

#[test]
fn what_is_not_clear_is_not_guessed() {
    for (name, text, column, says) in [
        ("x.csv", "id,titel\n1,a\n", None, "the first row is: \"id\", \"titel\""),
        ("x.csv", "title,text\ntitle,text\n", Some("3"), "there is no column \"3\""),
        ("x.csv", "id,titel\n1,a\n", Some("titl"), "did you mean 'titel'?"),
        ("x.csv", "id,titel\n1,a\n", Some("3"), "--column: there is no column \"3\""),
        ("x.csv", "text\n\"a\n", None, "quotation marks of line 2"),
        ("x.tsv", "id\ttext\n1\n", None, "line 2: has 1 column, the header has 2"),
        ("x.txt", "a\n", Some("text"), "--column: there is no column \"text\""),
        ("x.txt", " \n\n", None, "has no texts"),
        ("x.csv", "text\n", None, "has no texts"),
        ("x.csv", "", None, "has no texts"),
        ("x.jsonl", "[1]\n", None, "line 1: is not a JSON object"),
        (
            "x.jsonl",
            "{\"a\": \"x\", \"b\": \"y\"}\n",
            None,
            "\"a\", \"b\". Choose it: --column NAME",
        ),
        ("x.jsonl", "{\"text\": \"x\"}\n{\"txt\": 1}\n", None, "line 2: has no \"text\""),
        (
            "x.jsonl",
            "{\"text\": 3}\n",
            Some("text"),
            "line 1: \"text\" is a number, 3; need a text",
        ),
        ("x.jsonl", "{\"text\": \"x\"}\n", Some("txt"), "did you mean 'text'?"),
    ] {
        let error = read(name, text, column).unwrap_err();
        assert!(error.contains(says) && error.contains(name), "{text:?}: {error}");
    }
}

#[test]
fn columns_with_one_name_are_refused_with_what_chooses_all_texts() {
    for (text, choice) in [
        ("title,Title,body\na,b,c\n", "exact name: --column title,body"),
        ("title,title,body\na,b,c\n", "number: --column 1,3"),
    ] {
        let error = read("x.csv", text, None).unwrap_err();
        assert!(error.ends_with(choice), "{error}");
        let choice = choice.rsplit_once(' ').map(|(_, choice)| choice);
        let (_, texts) = found("x.csv", text, choice);
        assert_eq!(texts, [(2, "a c".to_string())]);
    }
}

#[test]
fn a_compressed_file_is_hashed_as_it_is() {
    let mut zip = GzEncoder::new(vec![], Compression::default());
    zip.write_all(b"text\na\n").unwrap();
    let zip = zip.finish().unwrap();
    let all = FileTexts::read(&zip[..], "x.csv.gz", &TextChoice::default()).unwrap();
    assert_eq!(all.texts, [FileText { line: 2, text: "a".into() }]);
    assert_eq!(all.sha256, hex(&Sha256::digest(&zip)));
}

#[test]
fn every_kind_of_table_is_read_as_training_reads_it() {
    for (name, text) in [
        ("a.csv", "id;review;stars\n1;a, b;5\n2;c;1\n"),
        ("b.csv", "sep=;\nid;review;stars\n1;a, b;5\n2;c;1\n"),
        ("c.csv", "id,review,stars\n1,\"a, b\",5\n2,c,1\n"),
        ("d.tsv", "id\treview\tstars\n1\ta, b\t5\n2\tc\t1\n"),
        ("e.jsonl", "{\"id\": 1, \"review\": \"a, b\"}\n{\"review\": \"c\", \"id\": 2}\n"),
        ("f.json", "[{\"id\": 1, \"review\": \"a, b\"}, {\"id\": 2, \"review\": \"c\"}]"),
    ] {
        for column in [None, Some("Review"), Some("2")] {
            let (column, texts) = found(name, text, column);
            let texts: Vec<String> = texts.into_iter().map(|(_, text)| text).collect();
            assert_eq!(
                (column.as_deref(), &texts[..]),
                (Some("review"), &["a, b", "c"].map(String::from)[..]),
                "{name}"
            );
        }
    }
    // Several text columns are joined, as in training.
    let (column, texts) = found("g.csv", "title;id;body\na;1;b c\nd;2;\n", None);
    assert_eq!(column.as_deref(), Some("title + body"));
    assert_eq!(texts, [(2, "a b c".to_string()), (3, "d".to_string())]);
}

/// A pipe that delivers a few bytes at a time.
struct Pieces<'a>(&'a [u8]);

impl Read for Pieces<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let most = to.len().min(7);
        self.0.read(&mut to[..most])
    }
}

#[test]
fn chosen_columns_make_any_name_a_table_and_empty_cells_can_be_kept() {
    for text in ["n;wort\n1;a b\n2;\n3;c\n", "n\twort\n1\ta b\n2\t\n3\tc\n"] {
        let mut choice =
            TextChoice { columns: Some("wort"), flag: "text", ..TextChoice::default() };
        choice.keep_empty = true;
        let all = FileTexts::read(text.as_bytes(), "standard input", &choice).unwrap();
        let texts: Vec<&str> = all.texts.iter().map(|text| text.text.as_str()).collect();
        assert_eq!(texts, ["a b", "", "c"]);
        assert!(all.has_header);
        choice = TextChoice { columns: Some("2"), header: Some(false), ..choice };
        let all = FileTexts::read(text.as_bytes(), "standard input", &choice).unwrap();
        assert_eq!((all.texts[0].text.as_str(), all.has_header), ("wort", false));
    }
    // A first line of any length, in whatever pieces it arrives, after blank ones.
    let long = format!("\n{}\twort\n{}\ta, b\n", "x".repeat(100_000), "y;".repeat(9));
    for text in [Box::new(Pieces(long.as_bytes())) as Box<dyn Read>, Box::new(long.as_bytes())] {
        let choice = TextChoice { columns: Some("wort"), flag: "text", ..TextChoice::default() };
        let all = FileTexts::read(text, "standard input", &choice).unwrap();
        assert_eq!(all.texts, [FileText { line: 3, text: "a, b".into() }]);
    }
    // A number does not make a header a text: numbers below it show what it is.
    let (column, texts) = found("x.csv", "nr,wort\n1,a\n2,b\n", Some("2"));
    assert_eq!((column.as_deref(), texts.len()), (Some("wort"), 2));
    // A single name may have a comma in it.
    let (column, texts) = found("x.csv", "nr,\"titel, lang\"\n1,a\n", Some("Titel, lang"));
    assert_eq!((column.as_deref(), texts.len()), (Some("titel, lang"), 1));
}

/// How a run read a table; columns are names with numbers.
fn reading(header: bool, columns: &[(&str, usize)]) -> Reading {
    let column = |(name, number): &(&str, usize)| {
        let name = if header { format!("{name:?}") } else { "null".into() };
        format!("{{\"name\": {name}, \"number\": {number}}}")
    };
    let columns: Vec<String> = columns.iter().map(column).collect();
    let text = format!(
        "{{\"format\": \"table\", \"header\": {header}, \"separator\": \";\", \
         \"columns\": {{\"text\": [{}]}}}}",
        columns.join(", ")
    );
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_table_is_read_as_that_of_the_training() {
    let read = |like: Reading, header: Option<bool>, text: &str| {
        let like = Some(like);
        let choice = TextChoice { flag: "text", header, like, ..TextChoice::default() };
        let all = FileTexts::read(text.as_bytes(), "x.csv", &choice).map_err(|e| e.to_string())?;
        let texts: Vec<String> = all.texts.into_iter().map(|text| text.text).collect();
        Ok::<_, String>((all.column.unwrap(), texts.join("|")))
    };
    let found = |column: &str, texts: &str| Ok((column.to_string(), texts.to_string()));
    // By name, before known names; the second of two columns with one name.
    let wort = || reading(true, &[("wort", 2)]);
    assert_eq!(read(wort(), None, "text;Wort\na;b\n"), found("Wort", "b"));
    assert_eq!(read(wort(), None, "wort;wort\na;b\n"), found("wort", "b"));
    assert_eq!(read(wort(), None, "id;text\n1;b\n"), found("text", "b"));
    assert_eq!(read(reading(true, &[("wort", 9)]), None, "Wort;wort\na;b\n"), found("wort", "b"));
    // One of two columns is missing: half of a text is another text.
    let both = || reading(true, &[("title", 1), ("description", 2)]);
    assert_eq!(read(both(), None, "description;title\na;b\n"), found("title + description", "b a"));
    assert_eq!(read(both(), None, "id;text\n1;b\n"), found("text", "b"));
    let error = read(both(), None, "id;title\n1;b\n").unwrap_err();
    let wanted = "has no column \"description\"; the model was trained on the texts of \"title\" + \
                  \"description\"; the first row is: \"id\", \"title\". To take what is there: \
                  --text title";
    assert!(error.ends_with(wanted), "{error}");
    // Without a header by number, and with the separator of the training.
    let second = || reading(false, &[("", 2)]);
    assert_eq!(read(second(), None, "a, b, c;d\ne;f\n"), found("2", "d|f"));
    assert_eq!(read(second(), None, "id;text\n1;b\n"), found("text", "b"));
    assert_eq!(read(wort(), Some(false), "a;b\nc;d\n"), found("2", "b|d"));
    // A header that has the texts elsewhere, and ids in the place of texts.
    let first = || reading(false, &[("", 1)]);
    let error = read(first(), None, "id;text\n1;a\n2;b\n").unwrap_err();
    assert!(error.contains("--text text; if the first row is a text, --no-header"), "{error}");
    assert_eq!(read(first(), Some(false), "id;text\n1;a\n"), found("1", "id|1"));
    assert_eq!(read(first(), None, "text;id\na;1\nb;2\n"), found("text", "a|b"));
    let error = read(first(), None, "1;a\n2;b\n3;c\n").unwrap_err();
    assert!(
        error.contains("column 1, from which the model reads its texts, is nothing"),
        "{error}"
    );
    let error = read(reading(false, &[("", 3)]), None, "a;b\n").unwrap_err();
    assert!(error.contains("has no column 3, from which the model reads"), "{error}");
}

#[test]
fn columns_of_a_run_are_found_in_its_record() {
    let run = std::env::temp_dir().join(format!("regard-recorded-{}", std::process::id()));
    std::fs::create_dir_all(run.join("data")).unwrap();
    let write = |text: &str| std::fs::write(run.join("data").join("import.json"), text).unwrap();
    let column = |name: &str| format!("{{\"name\": {name}, \"number\": 1}}");
    let [a, b, none] = ["\"a\"", "\"b\"", "null"].map(column);
    for (columns, wanted) in [
        (format!("{{\"text\": [{a}, {b}], \"label\": [{b}]}}"), Some(&["a", "b"][..])),
        (format!("{{\"source\": [{b}], \"target\": [{a}]}}"), Some(&["b"][..])),
        (format!("{{\"text\": [{none}]}}"), Some(&[][..])),
        ("{}".to_string(), None),
    ] {
        let record = format!("{{\"task\": \"x\", \"reading\": {{\"columns\": {columns}}}}}");
        write(&record);
        // The folder of the model is inside of that of the run.
        for folder in [run.clone(), run.join("model")] {
            let names = recorded_reading(&folder).unwrap().map(|reading| text_names(&reading));
            let wanted: Option<Vec<String>> =
                wanted.map(|names| names.iter().map(|name| name.to_string()).collect());
            assert_eq!(names, wanted, "{record}");
        }
    }
    // The words of a tagger are no texts.
    write(&format!(
        "{{\"reading\": {{\"format\": \"conll\", \"columns\": {{\"text\": [{none}]}}}}}}"
    ));
    assert!(recorded_reading(&run).unwrap().is_none());
    write("{\"task\": ");
    let error = recorded_reading(&run).unwrap_err().to_string();
    assert!(error.contains("import.json: is damaged"), "{error}");
    std::fs::remove_dir_all(&run).unwrap();
    assert!(recorded_reading(&run).unwrap().is_none());
}

fn seen(text: &str) -> Option<String> {
    looks_like_table(text.as_bytes(), &["bericht".to_string()], false).map(|table| table.text)
}

#[test]
fn rows_of_a_table_are_no_texts() {
    for (text, column) in [
        ("text,label\nfine,1\n", "text"),
        ("text;label", "text"),
        ("label,title,description\n3,Wall St.,A short text, unquoted\n", "title,description"),
        ("id,bericht\n", "bericht"),
        ("nr;meinung\n1;das war sehr gut\n2;das war nicht gut\n", "meinung"),
        ("nr\tmeinung\n1\tdas war sehr gut\n2\tdas war nicht gut\n3\tcut of", "meinung"),
        ("评论,标签\n很好吃下次还来非常满意,1\n味道一般不会再来第二次,0\n", "评论"),
        ("sep=;\nid;bericht\n1;gut\n", "bericht"),
        ("{\"id\": 1, \"body\": \"a\"}\n{\"id\": 2, \"body\": \"b\"}\n", "body"),
        ("1,\"a, b\"\n2,\"c, d\"\n3,\"e\"\n", "2"),
    ] {
        assert_eq!(seen(text).as_deref(), Some(column), "{text:?}");
    }
}

#[test]
fn texts_with_commas_are_texts() {
    for text in [
        "",
        "one text\n",
        "Yes, please\nNo, thanks\nWell, why not\n",
        "Yes,please do it now\nNo, thanks, I am fine\n",
        "Paris,France\nRome,Italy\nBerlin,Germany\n",
        "text, label\n",
        "To be, or not to be: that is the question.\nWhether 'tis nobler, or not.\n",
        "He came; he saw; he conquered.\nShe left; he stayed; nobody cared.\nIt rained; we ran; you fell.\n",
        "\"Hello,\" he said, \"goodbye.\"\n\"Yes,\" she said, \"maybe.\"\n\"No,\" they said.\n",
        "{not json}\n{at all}\n",
        "A dog runs\tAn animal moves\nA cat sits\tA cat stands\nA cow eats\tA hen eats\n",
        "好,谢谢\n不,不要\n",
    ] {
        assert_eq!(seen(text), None, "{text:?}");
    }
    // Pairs have a tab.
    let pairs = b"hund\tkatze\nein alter Hund lebt\tkatze\nein Hund bellt laut\tkatze\n";
    assert!(looks_like_table(pairs, &[], false).is_some());
    assert!(looks_like_table(pairs, &[], true).is_none());
}
