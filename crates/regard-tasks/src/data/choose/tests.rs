use super::*;

fn chosen(text: &str, asked: &ColumnSelection) -> Result<String, String> {
    let rows: Vec<Vec<String>> =
        text.lines().map(|line| line.split('|').map(str::to_string).collect()).collect();
    let rows: Vec<&Row> = rows.iter().map(|row| &row[..]).collect();
    choose(&rows, asked, None, None).map(|columns| columns.told())
}

fn asked(text: &str, label: &str) -> ColumnSelection {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_string());
    ColumnSelection { text: some(text), label: some(label), ..ColumnSelection::default() }
}

#[test]
fn known_names_are_found_in_any_order() {
    for (text, wanted) in [
        ("text|label\na b|x", "text: column 'text', label: column 'label'"),
        ("label|review\nx|a b", "text: column 'review', label: column 'label'"),
        ("id|Category|Text\n1|x|a b", "text: column 'Text', label: column 'Category'"),
        (
            "label|title|description\n3|Wall St.|Short",
            "text: column 'title' + 'description', label: column 'label'",
        ),
        ("question|kind\nWho?|a\nWhy?|b", "text: column 'question', label: column 'kind'"),
        (
            "art|title\nsport|Ein Spiel\nsport|Noch eins",
            "text: column 'title', label: column 'art'",
        ),
    ] {
        assert_eq!(chosen(text, &ColumnSelection::default()).unwrap(), wanted, "{text}");
    }
}

#[test]
fn without_names_labels_are_few_and_short() {
    let label_first = "pos|a fine film\nneg|not so good\npos|quite good";
    let label_last = "a fine film|pos\nnot so good|neg\nquite good|pos";
    assert!(
        chosen(label_first, &ColumnSelection::default())
            .unwrap()
            .contains("text: column 2, label: column 1")
    );
    assert!(
        chosen(label_last, &ColumnSelection::default())
            .unwrap()
            .contains("text: column 1, label: column 2")
    );
    // A header that is repeated is one.
    let joined = "wertung|bericht\n5|sehr gut\n1|nicht gut\nwertung|bericht\n3|es geht";
    assert_eq!(
        chosen(joined, &ColumnSelection::default()).unwrap(),
        "text: column 'bericht', label: column 'wertung'"
    );
    // A first row with a known name is an example if other rows have the same label.
    let question = "Who is it?|question\nIt is me.|statement\nWhy?|question";
    assert!(chosen(question, &ColumnSelection::default()).unwrap().contains("no header"));
    let stars = "wertung|bericht\n5|sehr gut\n1|nicht gut\n3|es geht";
    assert_eq!(
        chosen(stars, &ColumnSelection::default()).unwrap(),
        "text: column 'bericht', label: column 'wertung'"
    );
}

#[test]
fn what_is_not_clear_is_not_guessed() {
    for text in [
        "3|Title one|Short text\n1|Title two|Other text",
        "kategorie|nachricht\na|Das Spiel\na|Das Haus\nb|Der Ball\nb|Die Uhr",
        "x|y\nz|w",
        "class|category|text\na|b|c d",
    ] {
        let error = chosen(text, &ColumnSelection::default()).unwrap_err();
        for part in ["data.text", "data.label", "the first row is"] {
            assert!(error.contains(part), "{error}");
        }
    }
    // The example fits the table: given as it is, it settles the choice.
    let table = "nr|verdict|review\n1|gut|So gut wie nie\n2|schlecht|Nein\n3|gut|Ja, ja";
    let error = chosen(table, &ColumnSelection::default()).unwrap_err();
    assert!(error.contains("--set data.text=review --set data.label=verdict;"), "{error}");
    let told = chosen(table, &asked("review", "verdict")).unwrap();
    assert_eq!(told, "text: column 'review', label: column 'verdict'");
    let table = "headline|verdict|body\nNo|gut|So gut wie nie\nEs|schlecht|Nein\nJa|gut|Ja, ja";
    let error = chosen(table, &ColumnSelection::default()).unwrap_err();
    assert!(error.contains("data.text=headline,body --set data.label=verdict;"), "{error}");
    let error = chosen("alone\nb", &ColumnSelection::default()).unwrap_err();
    assert!(error.contains("a text and a label"), "{error}");
}

#[test]
fn a_name_of_two_columns_chooses_neither() {
    let table = "text|text|label\na b|c d|x\ne f|g h|y";
    for (asked, says) in [
        (asked("", ""), "columns 1 and 2 have one name, \"text\""),
        (asked("text", "label"), "by its number: --set data.text=1"),
    ] {
        let error = chosen(table, &asked).unwrap_err();
        assert!(error.contains(says), "{error}");
    }
    for (choice, says) in [("2", "text: column 'text'"), ("1,2", "column 'text' + 'text'")] {
        let told = chosen(table, &asked(choice, "")).unwrap();
        assert!(told.contains(says), "{told}");
    }
    // A column that is not read may have any name, and case can tell two apart.
    assert!(chosen("id|id|text|label\n1|2|a b|x", &asked("", "")).is_ok());
    let error = chosen("title|label|Title|body\na|x|b|c", &asked("", "")).unwrap_err();
    assert!(error.contains("\"title\" and \"Title\" have names that"), "{error}");
    assert!(error.ends_with("data.text=title,body"), "{error}");
    let told = chosen("title|label|Title|body\na|x|b|c", &asked("title,body", "")).unwrap();
    assert!(told.starts_with("text: column 'title' + 'body',"), "{told}");
    let error = chosen("text|label|label\na|x|y", &asked("", "")).unwrap_err();
    assert!(error.contains("columns 2 and 3") && error.ends_with("data.label=2"), "{error}");
    let told = chosen("Text|text|label\na|b|x", &asked("text", "label")).unwrap();
    assert!(told.starts_with("text: column 'text',"), "{told}");
}

#[test]
fn columns_can_be_named_and_numbered() {
    let table = "id|kategorie|titel|inhalt\n1|a|b c|d e\n2|a|b d|d f";
    assert_eq!(
        chosen(table, &asked("titel,inhalt", "Kategorie")).unwrap(),
        "text: column 'titel' + 'inhalt', label: column 'kategorie'"
    );
    let rows = "1|a|b c|d e\n2|a|b d|d f";
    assert_eq!(
        chosen(rows, &asked("3,4", "2")).unwrap(),
        "text: column 3 + 4, label: column 2, no header"
    );
    let error = chosen(table, &asked("titel", "categorie")).unwrap_err();
    assert!(error.contains("data.label") && error.contains("did you mean 'kategorie'?"), "{error}");
    assert!(chosen(table, &asked("titel", "titel")).unwrap_err().contains("the same column"));
    let header = ColumnSelection { header: Some(false), ..ColumnSelection::default() };
    let told = chosen("text|label\nnothing|x\nanother one|label", &header).unwrap();
    assert!(told.contains("no header"), "{told}");
}
