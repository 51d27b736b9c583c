use super::*;

fn said(labels: &[(&str, usize)]) -> String {
    let mut findings = Findings::new(false);
    let is_good = check_numbers(labels, "column 'y'", Place::whole(Path::new("a")), &mut findings);
    assert_eq!(is_good, !findings.has_errors());
    findings.text()
}

#[test]
fn numbers_are_classes_if_they_are_few_and_written_in_one_way() {
    let stars = ["1", "2", "3", "4", "5", "1.5", "2.5", "3.5", "4.5"].map(|star| (star, 9));
    let ids: Vec<String> = (0..100).map(|id| id.to_string()).collect();
    let ids: Vec<(&str, usize)> = ids.iter().map(|id| (id.as_str(), 1)).collect();
    for labels in [&stars[..], &ids, &[("0.5", 2), ("1.5", 1)], &[("1.0", 3), ("a", 1)]] {
        assert_eq!(said(labels), "", "{labels:?}");
    }
    for (one, other, name) in [
        ("1", "1.0", "error"),
        ("-2", "-2.0", "error"),
        ("1", "1,0", "error"),
        ("0", "-0", "warning"),
        ("7", "07", "warning"),
        ("0.5", ".5", "warning"),
        ("1.1", "1.10", "warning"),
        ("1e5", "100000", "warning"),
    ] {
        let told = said(&[(one, 9), ("3", 9), (other, 9)]);
        let wanted = format!("the labels {one:?} and {other:?} are one number");
        assert!(told.contains(&wanted) && told.starts_with(name), "{told}");
    }
    // Both of two labels, and decimal numbers.
    assert_eq!(said(&[("0", 9), ("1", 9), ("1,0", 9)]), "");
    assert!(said(&[("0", 9), ("0,0", 9), ("1", 9), ("1,0", 9)]).contains("labels (2)"));
    assert_eq!(said(&[("1", 9), ("1,000", 9)]), "");
    assert_eq!(said(&[("nan", 1), ("NaN", 1)]), "");
}

#[test]
fn a_scale_is_not_one_of_classes() {
    let scores: Vec<String> = (0..100).map(|score| format!("0.{score:02}")).collect();
    // Classes that are numbers have many examples each.
    for (count, begin) in [(1, "error"), (4, "error"), (100, "warning")] {
        let scores: Vec<(&str, usize)> =
            scores.iter().map(|score| (score.as_str(), count)).collect();
        let told = said(&scores);
        assert!(told.contains("has 100 different numbers, such as \"0.01\""), "{told}");
        assert!(told.starts_with(begin), "{told}");
    }
    assert!(said(&[("0,25", 1), ("1", 1), ("7,5", 1)]).contains("looks like a score"));
}

#[test]
fn missing_values_are_named() {
    assert!(missing("nan").is_some_and(|message| message.contains("missing value")));
    assert!(missing("None").is_some_and(|message| message.ends_with("such as \"none\"")));
    assert_eq!((missing("none"), missing("nano"), missing("")), (None, None, None));
}

#[test]
fn a_missing_value_with_many_examples_is_a_class() {
    let request = Request::new("classify");
    let of = |label: &'static str, count: usize, others: usize| {
        let labels = std::iter::repeat_n(label, count);
        MissingLabels::of(labels.chain(std::iter::repeat_n("other", others)), &request)
    };
    for (label, count, others, is_class) in [
        ("None", 5, 10_000, true),
        ("NA", 4, 10_000, false),
        ("N/A", 4, 300, true),
        ("NULL", 2, 40, true),
        ("None", 1, 40, false),
        ("nan", 500, 500, false),
        ("<NA>", 500, 500, false),
    ] {
        let missing = of(label, count, others);
        assert_eq!(missing.stray(label).is_none(), is_class, "{label} {count} {others}");
        assert_eq!(missing.stray("other"), None);
        let mut findings = Findings::new(false);
        missing.note_classes(Path::new("a"), &mut findings);
        let told = findings.text();
        assert_eq!(told.contains(&format!("{label:?} has {count} examples")), is_class, "{told}");
        assert!(!findings.has_errors());
    }
}

#[test]
fn hyphens_are_nothing_only_between_letters() {
    let alike = |one: &str, other: &str| letters(one) == letters(other);
    for (one, other) in [("A", "A-"), ("1-8", "18"), ("1", "-1"), ("-", "--"), ("B-1", "B1")] {
        assert!(!alike(one, other), "{one} {other}");
    }
    for (one, other) in [("e-mail", "E Mail"), ("very_good", "very good"), ("a\u{200b}", "a")] {
        assert!(alike(one, other), "{one} {other}");
    }
}
