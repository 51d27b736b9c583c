//! Tables of every kind, and what is wrong with them.

use super::*;
use crate::data::scratch::with_file;

fn read(name: &str, bytes: &[u8]) -> (Vec<(u64, Vec<String>)>, String) {
    with_file(name, bytes, |path| {
        let mut findings = Findings::new(false);
        let mut table = Table::read(path, None, &mut findings).unwrap();
        table.take_header(true, &mut findings);
        let rows = table.rows.into_iter().map(|row| (row.line, row.cells)).collect();
        (rows, findings.text())
    })
}

#[test]
fn all_kinds_of_tables_hold_the_same_rows() {
    for (name, text) in [
        ("a.csv", "text,label\n\"a, b\",x\nc,y\n"),
        ("b.csv", "text;label\na, b;x\nc;y\n"),
        ("b1.csv", "sep=;\ntext;label\na, b;x\nc;y\n"),
        ("b2.csv", "\u{feff}SEP=|\r\ntext|label\r\na, b|x\r\nc|y\r\n"),
        ("b3.csv", "\"sep=,\"\ntext,label\n\"a, b\",x\nc,y\n"),
        ("b4.csv", "sep=\t\ntext\tlabel\n\"a, b\"\tx\nc\ty\n"),
        ("c.tsv", "text\tlabel\na, b\tx\nc\ty\n"),
        ("d.jsonl", "{\"text\": \"a, b\", \"label\": \"x\"}\n{\"label\": \"y\", \"text\": \"c\"}"),
        (
            "e.json",
            "[{\"text\": \"a, b\", \"label\": \"x\"},\n{\"text\": \"c\", \"label\": \"y\"}]",
        ),
    ] {
        let (rows, told) = read(name, text.as_bytes());
        let cells: Vec<Vec<String>> = rows.into_iter().map(|(_, cells)| cells).collect();
        assert_eq!(cells, [["a, b", "x"], ["c", "y"]], "{name}");
        assert_eq!(told, "", "{name}");
    }
}

#[test]
fn tabs_and_bars_in_a_csv_are_found_and_said() {
    for (text, said) in [
        ("text|label\na, b|x\nc|y\n", "separated by a '|'"),
        ("text\tlabel\n\"a, b\"\tx\nc\ty\n", "separated by a tab"),
    ] {
        let (rows, told) = read("a.csv", text.as_bytes());
        let cells: Vec<Vec<String>> = rows.into_iter().map(|(_, cells)| cells).collect();
        assert_eq!(cells, [["a, b", "x"], ["c", "y"]], "{text:?}");
        assert!(told.contains("warning: separator (1)") && told.contains(said), "{told}");
    }
}

#[test]
fn every_bad_row_is_noted_with_its_line_and_the_others_are_read() {
    let csv = b"text,label\nfine,x\ntoo,many,y\nbad \xff byte,x\nshort\n\"q\"uote,x\nlast,y\n";
    let (rows, told) = read("a.csv", csv);
    assert_eq!(rows.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [2, 7]);
    for part in [
        "line 3: has 3 columns, the header has 2; a text with a comma",
        "line 4: not UTF-8 at byte 5",
        "line 5: has 1 column, the header has 2\n",
        "line 6: got \"uote\" after a quotation mark",
        "may be WINDOWS-1252; convert it: iconv",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    // The mark between the columns is the one of the file.
    for (name, text, wanted) in [
        ("s.csv", "text;label\na;b;c\n", "a text with a semicolon in it needs quotation marks"),
        ("p.csv", "sep=|\ntext|label\na|b|c\n", "a text with a '|' in it needs quotation marks"),
        ("t.tsv", "text\tlabel\na\tb\tc\n", "a text must not have a tab in it"),
    ] {
        let told = read(name, text.as_bytes()).1;
        assert!(told.contains(wanted), "{wanted}: {told}");
    }
    let (rows, told) =
        read("b.jsonl", b"{\"text\": \"a\", \"n\": 1}\n[1]\n{\"text\"\n{\"n\": 2}\n");
    assert_eq!(rows[0], (1, vec!["a".to_string(), "1".into()]));
    assert_eq!(rows[1], (4, vec![String::new(), "2".into()]), "a key may be missing");
    for part in ["line 2: is not a JSON object", "line 3: is not JSON"] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

/// Rows that a stray quotation mark hides are never left out as one row.
#[test]
fn a_missing_quotation_mark_is_an_error_of_the_file() {
    let rows = "fine,x\n".repeat(40);
    for (middle, wanted) in [
        ("\"Great film,pos\n", "within the quotation marks of line 42; 41 lines cannot be"),
        ("\"one\ntwo\"three,x\n", "after the quotation marks of line 42; 2 lines cannot"),
        ("\"one\n\u{fffd}\nend\",x\n", "the line is within the quotation marks of line 42"),
    ] {
        let text = format!("text,label\n{rows}{middle}{rows}");
        let bytes: Vec<u8> = match middle.contains('\u{fffd}') {
            true => text
                .replace('\u{fffd}', "\u{1}")
                .bytes()
                .map(|b| if b == 1 { 0xff } else { b })
                .collect(),
            false => text.into_bytes(),
        };
        with_file("a.csv", &bytes, |path| {
            let mut findings = Findings::new(true);
            Table::read(path, None, &mut findings).unwrap();
            let told = findings.text();
            assert!(findings.has_errors() && told.contains(wanted), "{wanted}: {told}");
        });
    }
    let long = format!("text,label\n\"{}\",x\n", "a line\n".repeat(120));
    assert!(
        read("b.csv", long.as_bytes()).1.contains("a text in quotation marks with 120 line ends")
    );
}

/// A quotation mark that opens a text and is closed by one on a later line.
#[test]
fn rows_within_quotation_marks_are_an_error_where_they_open() {
    let rows = "a,pos\nb,pos\ny,neg\nz,neg\n";
    let semicolons = rows.replace(',', ";");
    for (text, line) in [
        (format!("text,label\n{rows}\"c,pos\nd,neg\ne,pos\n6\",neg\n"), "line 6"),
        (
            "text, label\na, pos\nb, pos\nc, pos\n\"c, pos\nd, pos\ne, pos\n6\",neg\n".into(),
            "line 5",
        ),
        (
            format!("text;label\n{semicolons}\"c;pos\nin 2010;neg\nd;neg\n\ne;neg\nf\";pos\n"),
            "line 6",
        ),
        ("label,text\npos,a\npos,b\nneg,\"a b\npos,c d\npos,e\npos,it is 6\"\n".into(), "line 4"),
        (
            "id,text,label\n1,a,x\n2,b,x\n3,c,y\n4,d,y\n5,\"e,x\n6,f,y\n7,g,x\n8,h 6\",y\n".into(),
            "line 6",
        ),
    ] {
        let (_, told) = read("a.csv", text.as_bytes());
        let said = format!("{line}: the quotation mark that opens a text here is closed on line");
        assert!(told.starts_with("error: quotation marks (1)"), "{text:?}: {told}");
        assert!(told.contains(&said), "{text:?}: {told}");
    }
}

/// One or two lines that look like rows are too few for an error.
#[test]
fn few_lines_that_look_like_rows_are_a_warning() {
    for (text, line) in [
        ("text,label\na,pos\nb,pos\n\"c,pos\nd,neg\n6\",neg\n", "line 4"),
        ("text, label\na, pos\nb, pos\nc, pos\n\"c, pos\nd, pos\n6\",neg\n", "line 5"),
        ("text,label\n\"c,pos\n6\",neg\n", "line 2"),
        ("text;label\na;pos\n\"c;pos\nin 2010;1\nd;neg\n\ne;neg\nf\";pos\n", "line 3"),
        ("label,text\nneg,\"a b\npos,c d\npos,it is 6\"\n", "line 2"),
        ("id,text,label\n1,a,x\n2,\"b,x\n3,c,y\n4,d 6\",y\n", "line 3"),
    ] {
        let (_, told) = read("a.csv", text.as_bytes());
        let said = format!("{line}: the quotation mark that opens a text here is closed on line");
        assert!(told.starts_with("warning: quotation marks (1)"), "{text:?}: {told}");
        assert!(told.contains(&said), "{text:?}: {told}");
    }
}

#[test]
fn a_broken_array_cannot_be_read_without_a_row() {
    for skip in [false, true] {
        with_file("a.json", b"[{\"text\": \"a\"},\n{\"text\": \"b\"", |path| {
            let mut findings = Findings::new(skip);
            Table::read(path, None, &mut findings).unwrap();
            let [found] = findings.list() else { panic!("{}", findings.text()) };
            assert!(!found.is_row && findings.has_errors() && found.line == Some(2), "{found:?}");
            assert!(found.message.contains("the file is one array"), "{found:?}");
        });
    }
    let (rows, told) = read("b.json", "\u{feff}[{\"text\": \"a\"}]".as_bytes());
    assert_eq!((rows.len(), told.as_str()), (1, ""));
}

#[test]
fn a_header_within_the_rows_is_noted() {
    let (rows, told) =
        read("a.csv", "text,label\na,x\n\u{feff}text, label\nlabel,text\n".as_bytes());
    assert_eq!(rows.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [2, 4]);
    assert!(told.contains("error: repeated header (1)\n"), "{told}");
    assert!(told.contains("line 3: is the header again, as in files that were joined"), "{told}");
    // A word of a table with one column is a text.
    assert_eq!(read("a.csv", b"text\na\ntext\n").1, "");
}

#[test]
fn texts_of_several_lines_are_read() {
    for (text, rows) in [
        ("text,label\n\"Dear all,\nsee you, Bob\nBest\",pos\nb,neg\n", 2),
        ("text,label\n\"Dear John,\nhello\",pos\nb,pos\n", 2),
        ("label,text\npos,\"Hello\nwell, yes\nbye, bye\"\npos,b\n", 2),
        ("text,stars\n\"It costs 1,000\nwow\",5\nb,4\nc,3\n", 3),
        ("text,label\n\"很好吃,下次来\n好\",1\n不好,0\n", 2),
        ("text,label\n\"a,b,c\nd\",x\ne,y\n", 2),
        ("text\n\"a\nb\"\n", 1),
    ] {
        let (found, told) = read("a.csv", text.as_bytes());
        assert_eq!((found.len(), told.as_str()), (rows, ""), "{text:?}");
    }
}

/// Lines of a text may have as many separators as rows, and begin with a label.
#[test]
fn texts_with_separators_in_their_lines_are_read() {
    let text_first = "a,pos\nb,pos\nc,neg\nd,neg\ne,js\nf,js\n";
    let label_first = "no,a\nno,b\nyes,c\nyes,d\nAnn,e\nAnn,f\nBob,g\nBob,h\n5,i\n5,j\n";
    for (head, rows, row) in [
        ("text,label", text_first, "\"Great phone,love it\nThanks\",pos"),
        ("text,label", text_first, "\"f(a,b)\n}\",js"),
        ("text,label", text_first, "\"f(a,b)\ng(c,d)\nh(e,f)\ni(g,h)\n}\",js"),
        ("text,label", text_first, "\"Paris,France\nbye\",pos"),
        ("text,label", text_first, "\"Merci,Jean\nbye\",pos"),
        ("text,label", text_first, "\"http://x.com/a,b\nbye\",pos"),
        ("text,label", text_first, "\"salt,pepper\noil,vinegar\nrice,beans\ncook\",pos"),
        ("label,text", label_first, "no,\"Is it any good?\nno, not at all\""),
        ("speaker,text", label_first, "Ann,\"Hello\nBob, how are you?\""),
        ("speaker,text", label_first, "Ann,\"Hello\nBob, how are you?\nAnn, fine\nBob, bye\""),
        ("stars,text", label_first, "5,\"Bought in May\n5, great stuff\""),
        ("label;text", "pos;a\npos;b\nneg;c\nneg;d\n", "pos;\"Sehr gut\nneg; aber teuer\""),
    ] {
        let text = format!("{head}\n{rows}{row}\n");
        let (found, told) = read("a.csv", text.as_bytes());
        assert_eq!((found.len(), told.as_str()), (rows.lines().count() + 1, ""), "{text:?}");
        // With no other rows that have labels, a warning at most.
        let (found, told) = read("a.csv", format!("{head}\n{row}\n").as_bytes());
        assert_eq!((found.len(), told.contains("error")), (1, false), "{row:?}: {told}");
    }
}

#[test]
fn lists_are_no_texts_and_later_keys_are_columns() {
    let text = b"{\"text\": [\"The\", \"cat\"]}\n{\"text\": \"a\", \"title\": {\"b\": 1}}\n";
    with_file("a.jsonl", text, |path| {
        let mut findings = Findings::new(false);
        let mut table = Table::read(path, None, &mut findings).unwrap();
        assert_eq!(table.keys.as_deref(), Some(&["text".to_string(), "title".into()][..]));
        table.take_nested(&[0], &mut findings);
        assert_eq!(table.rows.len(), 1);
        let told = findings.text();
        assert!(told.contains("line 1: \"text\" is [\"The\",\"cat\"], need a text"), "{told}");
    });
}

#[test]
fn values_that_are_no_texts_are_known() {
    let text = "{\"text\": 5, \"label\": 1}\n{\"text\": \"5\", \"label\": null}\n";
    with_file("n.jsonl", text.as_bytes(), |path| {
        let table = Table::read(path, None, &mut Findings::new(false)).unwrap();
        let keys = table.keys.as_deref();
        let text = keys.unwrap().iter().position(|key| key == "text").unwrap();
        let said = table.rows[0].not_text(&[text], keys).unwrap();
        assert_eq!(said, "\"text\" is a number, 5; need a text, as a string");
        assert_eq!(table.rows[1].not_text(&[0, 1], keys), None);
    });
}

/// A build without the feature says how to get one, and how to do without.
#[cfg(not(feature = "parquet"))]
#[test]
fn parquet_is_refused_with_what_to_do() {
    for name in ["a.parquet", "a.csv"] {
        let told = read(name, b"PAR1\x15\x04").1;
        for part in ["--features parquet, as in cargo install", "pandas.read_parquet('FILE')"] {
            assert!(told.contains(part), "{name}: {told}");
        }
    }
}

#[test]
fn other_encodings_are_named() {
    let utf16: Vec<u8> =
        [0xff, 0xfe].into_iter().chain("a,b\n".bytes().flat_map(|b| [b, 0])).collect();
    assert!(read("a.csv", &utf16).1.contains("is UTF-16"));
    // "很好,正面" in GBK.
    let gbk = b"text,label\n\xba\xdc\xba\xc3,\xd5\xfd\xc3\xe6\n";
    assert!(read("b.csv", gbk).1.contains("may be GB18030"), "{}", read("b.csv", gbk).1);
    assert!(read("c.csv", b"PK\x03\x04....").1.contains("spreadsheet"));
    assert!(read("d.csv", b"").1.contains("has no rows"));
    let told = read("e.csv", b"sep=semicolon\ntext;label\na;b\n").1;
    assert!(told.contains("line 1: names the separator \"semicolon\"; need one"), "{told}");
}

#[test]
fn what_other_programs_left_is_noted() {
    let (rows, told) = read("a.csv", "text,label\na,x\ncafÃ©,y\nthÃ©,x\n\u{fffd},x\n".as_bytes());
    assert_eq!(rows.len(), 4);
    for part in ["warning: damaged characters (2)", "line 3: \"Ã©\" is a letter", "(2 rows)"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(told.contains("line 5: \"\u{fffd}\" stands for characters that were lost"), "{told}");
    let (_, told) =
        read("a.tsv", b"text\tlabel\n\"a\" b \"c\"\tx\n\"d\"\tx\n\"so \"\"e\"\"\"\ty\n");
    assert!(told.contains("line 4: a text in quotation marks, with doubled"), "{told}");
    assert!(told.contains("(1 row)"), "{told}");
}

#[test]
fn rows_that_take_too_much_memory_are_refused() {
    let csv = "a,b\n".repeat(1000);
    let lines = "{\"a\": \"b\"}\n".repeat(1000);
    let array = format!("[{}]", vec!["[0,0,0,0]"; 1000].join(","));
    for (kind, text) in [("csv", &csv), ("jsonl", &lines), ("json", &array)] {
        for (most, is_read) in [(10_000, false), (1_000_000, true)] {
            let mut findings = Findings::new(true);
            let form = Form { kind, like: None, budget: Budget::of(most) };
            let path = Path::new("x");
            let table = Table::of(form, text.as_bytes(), path, &mut findings).unwrap();
            let told = findings.text();
            let refused = "x: its rows need more than 10,000 bytes of memory";
            assert_eq!(!told.contains(refused), is_read, "{kind}: {told}");
            assert!(is_read || table.rows.is_empty() && findings.has_errors(), "{kind}");
        }
    }
}

#[test]
fn a_row_is_where_it_begins() {
    let text = "text,label\n\n\"one\ntwo\nthree\",x\nfour,y\n\"five\n\",\"z\n\",\n";
    let (rows, told) = read("a.csv", text.as_bytes());
    assert_eq!(rows.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [3, 6]);
    assert!(told.contains("line 7: has 3 columns, the header has 2"), "{told}");
}
