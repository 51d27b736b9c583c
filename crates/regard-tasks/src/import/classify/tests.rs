//! Columns, labels, defects and parts of tables of texts.

use super::*;
use crate::data::scratch::with_file;
use crate::import::{self, Import};

fn check(name: &str, text: &str) -> (Option<Import>, String) {
    with_file(name, text.as_bytes(), |path| {
        let mut request = Request::new("classify");
        request.data = vec![path.to_path_buf()];
        let (import, findings) = import::read(&request).unwrap();
        (import, findings.text())
    })
}

fn news(rows: usize) -> String {
    let row = |i: usize| format!("{},Title {i},\"Text, number {i}\"\n", ["a", "b"][i % 2]);
    (0..rows).map(row).collect()
}

#[test]
fn a_number_is_a_label_and_no_text() {
    let row = |i: usize| format!("{{\"text\": \"text {i}\", \"label\": {}}}\n", i % 2);
    let rows: String = (0..40).map(row).collect();
    let (import, told) = check("n.jsonl", &rows);
    assert!(import.is_some(), "{told}");
    let (import, told) = check("n.jsonl", &(rows + "{\"text\": 5, \"label\": 1}\n"));
    assert!(import.is_none());
    assert!(told.contains("line 41: \"text\" is a number, 5; need a text"), "{told}");
}

#[test]
fn columns_labels_and_split_are_said() {
    let (import, told) = check("news.csv", &format!("category,title,description\n{}", news(100)));
    assert_eq!(told, "");
    let import = import.unwrap();
    assert_eq!(import.parts, [80, 10, 10]);
    let said = import.summary.join("\n");
    for part in [
        "text: column 'title' + 'description', label: column 'category'",
        "2 labels in the training part: a 40, b 40",
        "80 train, 10 valid, 10 test (split by seed 0)",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!((import.size.examples, import.size.labels), (80, 2));
    let folder = std::env::temp_dir().join(format!("regard-classify-{}", std::process::id()));
    import.write(&folder).unwrap();
    let text = std::fs::read_to_string(folder.join("test.jsonl")).unwrap();
    assert_eq!(text.lines().count(), 10);
    assert!(text.starts_with("{\"text\":\"Title "), "{text}");
    let keys = import.recipe_keys(&folder);
    assert_eq!(keys["data"]["train"].as_str(), folder.join("train.jsonl").to_str());
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Each row is a broken file: its defect is named with the line, and nothing is imported.
#[test]
fn defects_are_named_with_their_lines() {
    let good = news(40);
    for (name, text, wanted) in [
        ("a.csv", format!("label,text\n{}", "x,\n"), "line 2: the text is empty"),
        ("b.csv", format!("label,title,body\n{good},T,b\n"), "line 42: the label is empty"),
        ("c.csv", format!("label,title,body\n{good}a,b\n"), "line 42: has 2 columns"),
        ("d.csv", format!("label,title,body\n{good}a,b,c,d\n"), "line 42: has 4 columns"),
        ("e.csv", "text,label\ngood,x\nbad,x\n".into(), "line 2: every row has the label"),
        (
            "f.csv",
            format!("label,title,body\n{good}a,\"open,b\n"),
            "within the quotation marks of line 42",
        ),
        ("g.jsonl", "{\"text\": \"a\"}\n".into(), "need a text and a label"),
        ("h.csv", good.clone(), "cannot tell which columns"),
        (
            "i.csv",
            format!(
                "label,text\n{}",
                (0..40).map(|i| format!("A whole text number {i},{}\n", i % 2)).collect::<String>()
            ),
            "such as --text label --label text;",
        ),
        ("j.csv", String::new(), "has no rows"),
        (
            "k.csv",
            format!("label,title,body\n{good}nan,b,c\n"),
            "line 42: the label is \"nan\", which programs write for a missing value",
        ),
        (
            "l.csv",
            format!("text,label\n{}", "a text,1\nanother,2\na third,1.0\na fourth,2\n"),
            "the labels \"1\" and \"1.0\" are one number",
        ),
        (
            "m.csv",
            (0..40)
                .fold("text,label\n".to_string(), |all, i| all + &format!("text {i},0.{i:02}\n")),
            "line 2: column 'label' has 40 different numbers, such as \"0.01\"",
        ),
    ] {
        let (import, told) = check(name, &text);
        assert!(import.is_none() && told.contains(wanted), "{name}: {wanted}: {told}");
    }
}

#[test]
fn thousands_of_labels_are_refused() {
    let rows: String = (0..15_003).map(|i| format!("n{},text {i}\n", i % 5001)).collect();
    let (import, told) = check("many.csv", &format!("label,text\n{rows}"));
    assert!(import.is_none() && told.contains("has 5,001 different labels"), "{told}");
}

#[test]
fn a_class_that_is_a_missing_value_elsewhere_is_read() {
    let row = |i: usize| format!("text {i},{}\n", ["None", "Minor", "Major"][i % 3]);
    let rows: String = (0..60).map(row).collect();
    let (import, told) = check("a.csv", &format!("text,severity\n{rows}"));
    assert_eq!(import.map(|import| import.size.labels), Some(3), "{told}");
    assert!(told.contains("warning: missing label (1)"), "{told}");
    assert!(told.contains("the label \"None\" has 20 examples and is read as a class"), "{told}");
    let rows = format!("text,label\n{}last,NA\n", rows.replace("None", "No"));
    let (import, told) = check("b.csv", &rows);
    assert!(import.is_none() && told.contains("line 62: the label is \"NA\", which"), "{told}");
}

/// A class of the training part may have few examples in the others.
#[test]
fn classes_are_counted_in_all_parts() {
    let examples = |label: &str, count: usize| {
        let one = |line: usize| Example {
            text: format!("{label} {line}"),
            label: label.into(),
            file: "a.csv".into(),
            line: line as u64,
        };
        (0..count).map(one).collect::<Vec<_>>()
    };
    let mut parts = [examples("None", 9), examples("x", 300), examples("None", 1)];
    parts[2].extend(examples("NULL", 1));
    let mut findings = Findings::new(false);
    leave_out_missing(&mut parts, &Request::new("classify"), &mut findings);
    assert_eq!(parts.each_ref().map(Vec::len), [9, 300, 1]);
    assert!(findings.text().contains("error: missing label (1)"), "{}", findings.text());
}

#[test]
fn a_missing_text_is_noted() {
    let (import, told) = check("a.csv", &format!("label,title,body\n{}a,,NaN\n", news(40)));
    assert!(import.is_some() && told.contains("line 42: the text is \"NaN\", which"), "{told}");
}

#[test]
fn a_label_within_a_label_is_noted() {
    let rows: String = (0..40).map(|i| format!("text {i},{}\n", ["pos", "neg"][i % 2])).collect();
    let other: String = (0..4).map(|i| format!("other {i}, and;pos\n")).collect();
    let (_, told) = check("a.csv", &format!("text,label\n{rows}{other}"));
    assert!(told.contains("label within a label (1)"), "{told}");
    assert!(
        told.contains("line 42: the label \"and;pos\" has the label \"pos\" and a ';'"),
        "{told}"
    );
    let whole = rows.replace("neg", "\"neg, sad\"");
    assert!(!check("b.csv", &format!("text,label\n{whole}")).1.contains("within"));
}

#[test]
fn a_column_of_parts_is_not_read_and_said() {
    let row = |i: usize| format!("text {i},{},{}\n", i % 2, ["train", "Test"][usize::from(i > 30)]);
    let rows: String = (0..40).map(row).collect();
    let (import, told) = check("a.csv", &format!("text,label,Split\n{rows}"));
    assert!(import.is_some() && told.contains("the column \"Split\" says which rows"), "{told}");
    let (_, told) = check("b.csv", &format!("text,label,split\n{}", rows.replace("Test", "train")));
    assert_eq!(told, "");
}

#[test]
fn labels_that_look_alike_are_noted() {
    let labels = ["very good", "Very  good", "very_good", "ve\u{200b}ry good", "1", "-1"];
    let row = |i: usize| format!("text number {i}\t{}\n", labels[i % labels.len()]);
    let rows: String = (0..70).map(row).collect();
    let (_, told) = check("a.tsv", &format!("text\tlabel\n{rows}"));
    assert!(told.contains("labels differ only in spaces (3)"), "{told}");
    assert!(told.contains("\"very good\" and \"very_good\" differ only in case, spaces"), "{told}");
    assert!(!told.contains("\"-1\""), "{told}");
}

#[test]
fn warnings_do_not_stop() {
    let mut text = format!("label,title,description\n{}", news(60));
    text += "c,Alone,one\n";
    let (import, told) = check("w.csv", &text);
    assert!(import.is_some(), "{told}");
    assert!(told.contains("warning: label with one example (1)\n"), "{told}");
    assert!(told.contains("line 62: the label \"c\" has one example"), "{told}");
}

#[test]
fn given_parts_are_used_and_duplicates_are_left_out() {
    with_file("train.csv", format!("label,title,text\n{}", news(40)).as_bytes(), |path| {
        let test = path.with_file_name("held.csv");
        std::fs::write(&test, "label,title,text\na,Title 0,\"Text, number 0\"\nb,New,one\n")
            .unwrap();
        let mut request = Request::new("classify");
        (request.data, request.test) = (vec![path.into()], vec![test.clone()]);
        request.columns.text = Some("title,text".into());
        let (import, findings) = import::read(&request).unwrap();
        let import = import.unwrap();
        assert_eq!(import.parts[2], 2);
        assert_eq!(import.parts[0] + import.parts[1], 39);
        let told = findings.text();
        assert!(told.contains("line 2: its text is also on line 2 of"), "{told}");
        std::fs::write(&test, "label,title,text\nz,New,one\n").unwrap();
        let (import, findings) = import::read(&request).unwrap();
        assert!(import.is_none());
        assert!(findings.text().contains("line 2: the label \"z\" is not in the training"));
    });
}

/// A number that is off by one would train a model of ids.
#[test]
fn a_column_of_numbers_is_a_text_only_by_its_name() {
    let rows: String =
        (0..40).map(|i| format!("{i},Ein Bericht {i},{}\n", ["gut", "schlecht"][i % 2])).collect();
    let read = |header: &str, text: &str| {
        with_file("ids.csv", format!("{header}{rows}").as_bytes(), |path| {
            let mut request = Request::new("classify");
            request.data = vec![path.to_path_buf()];
            request.columns.text = Some(text.into());
            request.columns.label = Some("3".into());
            request.header = header.is_empty().then_some(false);
            let (import, findings) = import::read(&request).unwrap();
            (import.is_some(), findings.text())
        })
    };
    let header = "nr,bericht,label\n";
    let (read_it, told) = read(header, "1");
    assert!(!read_it, "{told}");
    for part in ["column 'nr', is nothing but numbers", "--text bericht;", "meant, --text nr"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let (read_it, told) = read(header, "nr");
    assert!(read_it && told.contains("it was named, so they are read as texts"), "{told}");
    let (read_it, told) = read("", "1");
    assert!(!read_it && told.contains("such as --text 2; if these numbers are"), "{told}");
    assert!(read("", "2").0 && read(header, "bericht").0);
}

#[test]
fn other_parts_are_read_by_the_names_of_the_first_table() {
    with_file("train.csv", format!("label,title,text\n{}", news(40)).as_bytes(), |path| {
        let test = path.with_file_name("other.csv");
        let mut request = Request::new("classify");
        (request.data, request.test) = (vec![path.into()], vec![test.clone()]);
        for (table, wanted) in [
            // The first table has a preferred name of a text, which is read here too.
            ("title,text,note,label\nOne,new words,1,a\nTwo,other words,2,b\n", None),
            ("category,review\na,new words\nb,other words\n", Some("in the first table text:")),
        ] {
            std::fs::write(&test, table).unwrap();
            let (import, findings) = import::read(&request).unwrap();
            let told = findings.text();
            assert!(import.is_some(), "{told}");
            assert_eq!(told.contains("other columns (1)"), wanted.is_some(), "{told}");
            assert!(wanted.is_none_or(|wanted| told.contains(wanted)), "{told}");
        }
        std::fs::remove_file(&test).unwrap();
    });
}
