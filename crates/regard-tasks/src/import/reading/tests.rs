use super::super::{DATA, RECORD, Request, read};
use super::*;
use crate::data::Part;
use crate::data::scratch::with_file;
use std::path::{Path, PathBuf};

/// Trains nothing: reads a table, writes its record, and returns what the record says.
fn trained(name: &str, text: &str, change: impl Fn(&mut Request)) -> TrainedImport {
    with_file(name, text.as_bytes(), |path| {
        let mut request = Request::new("classify");
        request.data = vec![path.to_path_buf()];
        change(&mut request);
        let (import, findings) = read(&request).unwrap();
        let import = import.unwrap_or_else(|| panic!("{}", findings.text()));
        let run = path.with_extension("run");
        import.write(&run.join(DATA)).unwrap();
        let found = TrainedImport::of_run(&run).unwrap().unwrap();
        std::fs::remove_dir_all(&run).unwrap();
        found
    })
}

/// Reads a table as a run did; returns the number of examples and the first lines of the summary,
/// or the findings.
fn evaluated(
    trained: &TrainedImport,
    (name, text): (&str, &str),
    change: impl Fn(&mut Request),
) -> Result<(usize, String), String> {
    with_file(name, text.as_bytes(), |path| {
        let mut request = Request::new(trained.task.clone());
        request.data = vec![path.to_path_buf()];
        request.purpose = Purpose::Evaluate(trained.clone());
        change(&mut request);
        let (import, findings) = read(&request).map_err(|error| error.to_string())?;
        let import = import.ok_or_else(|| findings.text())?;
        assert_eq!(import.parts[..2], [0, 0]);
        Ok((import.parts[2], import.summary.join("\n")))
    })
}

fn rows(between: char, count: usize) -> String {
    let one = |i: usize| {
        let label = ["gut", "schlecht"][i % 2];
        format!("{i}{between}Ein Bericht, Nummer {i}{between}{label}\n")
    };
    (0..count).map(one).collect()
}

fn german() -> TrainedImport {
    let text = format!("nr;bericht;wertung\n{}", rows(';', 40));
    trained("r.csv", &text, |request| {
        request.columns.text = Some("bericht".into());
        request.columns.label = Some("wertung".into());
    })
}

#[test]
fn what_training_chose_is_recorded_and_used_again() {
    let run = german();
    let reading = &run.reading;
    assert_eq!((reading.header, reading.separator), (Some(true), Some(';')));
    assert_eq!(reading.labels, ["gut", "schlecht"]);
    assert_eq!(reading.columns["text"][0].name.as_deref(), Some("bericht"));
    assert_eq!(reading.columns["label"][0].number, Some(3));
    // The order of the columns may differ, and the file may be of another kind.
    for (name, text) in [
        ("a.csv", "wertung;nr;bericht\ngut;1;Ja, ja, ja\n"),
        ("b.csv", "wertung,bericht\ngut,Ja\n"),
        ("c.tsv", "x\tbericht\twertung\n1\tJa\tgut\n"),
        ("d.jsonl", "{\"bericht\": \"Ja\", \"wertung\": \"gut\", \"text\": \"no\"}\n"),
    ] {
        let (count, told) = evaluated(&run, (name, text), |_| {}).unwrap();
        assert_eq!(count, 1, "{name}");
        assert!(told.contains("text: column 'bericht', label: column 'wertung'"), "{told}");
    }
}

#[test]
fn a_missing_column_is_named_with_those_that_exist() {
    let run = german();
    let table = ("a.csv", "nr;text;wertung\n1;Ja;gut\n");
    let error = evaluated(&run, table, |_| {}).unwrap_err();
    for part in ["a.csv", "\"bericht\"", "\"nr\", \"text\", \"wertung\"", "--text", "--no-header"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    let (_, told) =
        evaluated(&run, table, |request| request.columns.text = Some("text".into())).unwrap();
    assert!(told.contains("text: column 'text', label: column 'wertung'"), "{told}");
    // Without a header the columns have their numbers.
    let table = ("b.csv", "1;Ja;gut\n2;Nein;schlecht\n");
    let (count, told) = evaluated(&run, table, |request| request.header = Some(false)).unwrap();
    assert_eq!(count, 2);
    assert!(told.contains("text: column 2, label: column 3, no header"), "{told}");
}

#[test]
fn unknown_labels_are_an_error_or_left_out() {
    let run = german();
    let table = ("a.csv", "nr;bericht;wertung\n1;Ja;gut\n2;Nein;mittel\n3;So;mittel\n");
    let error = evaluated(&run, table, |_| {}).unwrap_err();
    for part in ["unknown label (2)", "line 3", "\"mittel\"", "gut, schlecht"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    let (count, told) = evaluated(&run, table, |request| request.skip_bad = true).unwrap();
    assert_eq!(count, 1);
    assert!(told.contains("2 rows left out (--skip-bad)"), "{told}");
}

#[test]
fn labels_of_the_run_are_known_whatever_they_mean_elsewhere() {
    let row = |i: usize| format!("a text {i},{}\n", ["None", "minor"][i % 2]);
    let rows: String = (0..40).map(row).collect();
    let run = trained("s.csv", &format!("text,label\n{rows}"), |_| {});
    assert_eq!(run.reading.labels, ["None", "minor"]);
    let (count, _) = evaluated(&run, ("a.csv", "text,label\nanother,None\n"), |_| {}).unwrap();
    assert_eq!(count, 1);
    let told = evaluated(&run, ("a.csv", "text,label\nanother,NA\n"), |_| {}).unwrap_err();
    assert!(told.contains("unknown label"), "{told}");
}

#[test]
fn keys_that_differ_in_case_are_found_again() {
    let row = |i: usize| {
        format!("{{\"Text\": \"a {i}\", \"text\": \"b {i}\", \"label\": \"{}\"}}\n", i % 2)
    };
    let rows: String = (0..40).map(row).collect();
    for wanted in ["Text", "text"] {
        let run = trained("k.jsonl", &rows, |request| request.columns.text = Some(wanted.into()));
        let (_, told) = evaluated(&run, ("k.jsonl", &rows), |_| {}).unwrap();
        assert!(told.contains(&format!("text: column '{wanted}'")), "{told}");
    }
}

#[test]
fn numbers_stay_numbers() {
    let run = without_header();
    assert_eq!(run.reading.columns["text"][0], Column { name: None, number: Some(2), scale: None });
    let (count, _) = evaluated(&run, ("a.tsv", "7\tJa\tgut\n"), |_| {}).unwrap();
    assert_eq!(count, 1);
    let error = evaluated(&run, ("b.tsv", "Ja\tgut\n"), |_| {}).unwrap_err();
    assert!(error.contains("has no column 3, from which the run reads the label"), "{error}");
}

#[test]
fn a_record_of_an_earlier_version_is_an_error() {
    with_file("x.txt", b"x", |path| {
        let run = path.with_extension("run");
        std::fs::create_dir_all(run.join(DATA)).unwrap();
        let record = "{\"task\": \"classify\", \"data\": []}";
        std::fs::write(run.join(DATA).join(RECORD), record).unwrap();
        let error = TrainedImport::of_run(&run).unwrap_err().to_string();
        assert!(error.contains("import.json") && error.contains("train it again"), "{error}");
        // Runs with several seeds share their data.
        assert!(TrainedImport::of_run(&run.join("seed-0")).is_err());
        assert!(TrainedImport::of_run(&run.join("other")).unwrap().is_none());
        std::fs::remove_dir_all(&run).unwrap();
    });
}

/// A run whose training table had no header: texts in column 2, labels in column 3.
fn without_header() -> TrainedImport {
    trained("r.tsv", &rows('\t', 40), |request| {
        request.columns.text = Some("2".into());
        request.columns.label = Some("3".into());
        request.header = Some(false);
    })
}

#[test]
fn a_header_is_no_example_even_if_training_had_none() {
    let run = without_header();
    let table = ("a.tsv", "nr\ttext\twertung\n7\tJa\tgut\n");
    let (count, told) = evaluated(&run, table, |_| {}).unwrap();
    assert_eq!(count, 1, "{told}");
    assert!(told.contains("text: column 'text', label: column 'wertung'"), "{told}");
    // A flag that names a column shows it too.
    let table = ("b.tsv", "nr\tbericht\tnote\n7\tJa\tgut\n");
    let named = |request: &mut Request| request.columns.text = Some("bericht".into());
    let (count, told) = evaluated(&run, table, named).unwrap();
    assert_eq!(count, 1, "{told}");
    assert!(told.contains("text: column 'bericht', label: column 'note'"), "{told}");
    // What cannot be told apart from an example is one with an unknown label.
    let error = evaluated(&run, table, |_| {}).unwrap_err();
    assert!(error.contains("line 1: the label \"note\" is not one"), "{error}");
    let text: String = (0..40).map(|i| format!("Go {i}.\tVa {i} !\n")).collect();
    let run = trained("p.tsv", &text, |request| request.task = "translate".into());
    assert_eq!(run.reading.header, Some(false));
    for (header, wanted) in [("source\ttarget\n", 1), ("en\tfr\n", 1), ("Hm.\tOh.\n", 2), ("", 1)] {
        let text = format!("{header}Run.\tCours !\n");
        let (count, told) = evaluated(&run, ("q.tsv", text.as_str()), |_| {}).unwrap();
        assert_eq!(count, wanted, "{header:?}: {told}");
    }
}

/// Such a header used to be an example, and the columns were taken by their numbers.
#[test]
fn a_header_that_names_other_columns_is_an_error() {
    let text: String = (0..40).map(|i| format!("Go {i}.\tVa {i} !\n")).collect();
    let run = trained("p.tsv", &text, |request| request.task = "translate".into());
    let pairs = |header: &str, row: &dyn Fn(usize) -> String| -> String {
        header.to_string() + &(0..5).map(row).collect::<String>()
    };
    let turned = pairs("target\tsource\n", &|i| format!("Va {i} !\tGo {i}.\n"));
    let more = pairs("id\ten\tfr\n", &|i| format!("{i}\tGo {i}.\tVa {i} !\n"));
    for (text, first, flags) in [
        (&turned, "\"target\", \"source\"", "--source source --target target"),
        (&more, "\"id\", \"en\", \"fr\"", "--source en --target fr"),
    ] {
        let error = evaluated(&run, ("q.tsv", text.as_str()), |_| {}).unwrap_err();
        let parts = [first, "source: column 1, target: column 2", flags, "--no-header"];
        parts.iter().for_each(|part| assert!(error.contains(part), "{part}: {error}"));
        // What the message proposes.
        let words: Vec<String> = flags.split(' ').map(String::from).collect();
        let (count, told) = evaluated(&run, ("q.tsv", text.as_str()), |request| {
            request.columns.source = Some(words[1].clone());
            request.columns.target = Some(words[3].clone());
        })
        .unwrap();
        assert_eq!(count, 5, "{told}");
        // One of two is not enough: the other one would be read by its number.
        let one = |request: &mut Request| request.columns.source = Some(words[1].clone());
        assert!(evaluated(&run, ("q.tsv", text.as_str()), one).is_err());
    }
    // Columns that are chosen by number, above them a header.
    let (count, told) = evaluated(&run, ("q.tsv", more.as_str()), |request| {
        (request.columns.source, request.columns.target) = (Some("2".into()), Some("3".into()));
    })
    .unwrap();
    assert_eq!(count, 5, "{told}");
    // Without a header, ids are no texts.
    let ids = pairs("", &|i| format!("{i}\tGo {i}.\tVa {i} !\n"));
    let error = evaluated(&run, ("q.tsv", ids.as_str()), |_| {}).unwrap_err();
    assert!(error.contains("the source, column 1, is nothing but numbers"), "{error}");
    // Of a classifier.
    let run = without_header();
    let rows: String = (0..5).map(|i| format!("gut\tEin Bericht {i}\n")).collect();
    let table = format!("label\ttext\n{rows}");
    let error = evaluated(&run, ("a.tsv", table.as_str()), |_| {}).unwrap_err();
    // Two columns: there is no third one, of the labels, to name.
    assert!(error.contains("looks like a header") && error.contains(": --text text;"), "{error}");
    let rows: String = (0..5).map(|i| format!("Ein Bericht {i}\t{i}\tgut\n")).collect();
    let table = format!("text\tnr\tlabel\n{rows}");
    let error = evaluated(&run, ("a.tsv", table.as_str()), |_| {}).unwrap_err();
    assert!(error.contains("looks like a header") && error.contains("--text text"), "{error}");
}

#[test]
fn a_table_without_labels_is_told_how_to_predict() {
    let run = german();
    let error = evaluated(&run, ("a.csv", "nr;bericht\n1;Ja\n"), |_| {}).unwrap_err();
    assert!(error.contains("to predict it: regard classify --file "), "{error}");
    assert!(error.contains("a.csv --model "), "{error}");
    let error = evaluated(&run, ("a.csv", "nr;wertung\n1;gut\n"), |_| {}).unwrap_err();
    assert!(!error.contains("regard classify"), "{error}");
    let run = without_header();
    let error = evaluated(&run, ("b.tsv", "1\tJa\n"), |_| {}).unwrap_err();
    assert!(error.contains("regard classify --file "), "{error}");
}

#[test]
fn columns_with_one_name_and_names_with_commas_are_found_again() {
    let rows = |name: &str| -> String {
        let row = |i: usize| format!("x{i},body {i},{}\n", ["gut", "schlecht"][i % 2]);
        format!("{name},body,label\n") + &(0..40).map(row).collect::<String>()
    };
    let second = |request: &mut Request| request.columns.text = Some("2".into());
    let run = trained("d.csv", &rows("body"), second);
    let error = evaluated(&run, ("a.csv", "body,body,label\nfilled,,gut\n"), |_| {}).unwrap_err();
    assert!(error.contains("line 2: the text is empty"), "{error}");
    let both = |request: &mut Request| request.columns.text = Some("1,2".into());
    for header in ["\"title, long\"", "3"] {
        let run = trained("c.csv", &rows(header), both);
        let table = format!("{header},body,label\none,two,gut\n");
        let (count, told) = evaluated(&run, ("b.csv", table.as_str()), |_| {}).unwrap();
        assert_eq!(count, 1, "{told}");
        assert!(told.contains("+ 'body', label: column 'label'"), "{told}");
    }
}

/// Files of a folder are known by their parts, and so are those that flags named.
#[test]
fn files_that_a_run_has_seen_are_known() {
    let home = std::env::temp_dir().join(format!("regard-seen-{}", std::process::id()));
    let parts = home.join("parts");
    std::fs::create_dir_all(&parts).unwrap();
    for (at, name) in ["train.csv", "dev.csv", "test.csv"].into_iter().enumerate() {
        let row = |i: usize| format!("text {at} {i},{}\n", ["gut", "schlecht"][i % 2]);
        let text: String = (0..20).map(row).collect();
        std::fs::write(parts.join(name), format!("text,label\n{text}")).unwrap();
    }
    let run = |data: &Path, valid: Vec<PathBuf>, test: Vec<PathBuf>| {
        let mut request = Request::new("classify");
        (request.data, request.valid, request.test) = (vec![data.into()], valid, test);
        let (import, findings) = read(&request).unwrap();
        let import = import.unwrap_or_else(|| panic!("{}", findings.text()));
        import.write(&home.join("run").join(DATA)).unwrap();
        TrainedImport::of_run(&home.join("run")).unwrap().unwrap()
    };
    let [train, dev, test] = ["train.csv", "dev.csv", "test.csv"].map(|name| parts.join(name));
    for trained in [run(&parts, vec![], vec![]), run(&train, vec![dev.clone()], vec![test.clone()])]
    {
        let has_read = |path: &PathBuf| trained.has_read(std::slice::from_ref(path)).is_some();
        assert_eq!([&train, &dev, &test].map(has_read), [true, true, false]);
        // Of a folder with parts, the test part is read.
        let mut request = Request::new("classify");
        request.data = vec![parts.clone()];
        request.purpose = Purpose::Evaluate(trained.clone());
        let import = read(&request).unwrap().0.unwrap();
        assert_eq!((import.chosen, &import.read[..]), (Some(Part::Test), &[test.clone()][..]));
        request.part = Some(Part::Valid);
        let import = read(&request).unwrap().0.unwrap();
        assert_eq!(trained.has_read(&import.read), Some(dev.as_path()));
        // A file beside a folder with parts would be left out.
        let other = home.join("new.csv");
        std::fs::copy(&test, &other).unwrap();
        request.data.push(other);
        let error = read(&request).err().unwrap().to_string();
        assert!(error.contains("has parts, of which one is evaluated, and"), "{error}");
    }
    std::fs::remove_dir_all(&home).unwrap();
}
