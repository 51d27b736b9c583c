//! Details of an evaluation as text: metrics of each label, confusion matrix, worst examples.

use crate::show::{label, pad, width as width_of};
use regard_tasks::evaluation::{Details, LabelMetrics, Report, WorstExample};
use regard_tasks::say::many;

/// Largest number of labels in the table.
const LISTED: usize = 30;
/// Largest number of labels in the confusion matrix.
const CONFUSED: usize = 12;
/// Number of worst examples.
const SHOWN: usize = 5;
/// Widest label in a table.
const WIDEST: usize = 40;

/// Formats the details of a report to fit `width` columns; empty if it has none.
pub fn details(report: &Report, width: usize) -> String {
    report.details.as_ref().map_or(String::new(), |details| render(details, width))
}

/// Formats details to fit `width` columns.
pub fn render(details: &Details, width: usize) -> String {
    let parts = [labels(details, width), confusion(details, width), worst(details, width)];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Indices of the labels that occur, in the data or in the predictions.
fn occurring(details: &Details) -> Vec<usize> {
    let occurs = |label: &LabelMetrics| label.support + label.predicted > 0;
    (0..details.labels.len()).filter(|at| occurs(&details.labels[*at])).collect()
}

fn labels(details: &Details, width: usize) -> String {
    let mut shown = occurring(details);
    if shown.is_empty() {
        return String::new();
    }
    let more = shown.len().saturating_sub(LISTED);
    if more > 0 {
        shown.sort_by_key(|at| std::cmp::Reverse(details.labels[*at].support));
        shown.truncate(LISTED);
    }
    // Not a `Table`, which aligns numbers to the left.
    let most = WIDEST.min(width.saturating_sub(37)).max(5);
    let names: Vec<String> =
        shown.iter().map(|at| label(&details.labels[*at].label, most)).collect();
    let wide = names.iter().map(|name| width_of(name)).max().unwrap_or(0).max(5);
    let mut text = format!("{}  precision  recall      F1  examples\n", pad("label", wide));
    for (at, name) in shown.iter().zip(names) {
        let LabelMetrics { precision, recall, f1, support, .. } = &details.labels[*at];
        let name = pad(&name, wide);
        text += &format!("{name}  {precision:>9.2}  {recall:>6.2}  {f1:>6.2}  {support:>8}\n");
    }
    if more > 0 {
        text += &format!("… and {}; --json lists all\n", many(more, "rarer label"));
    }
    let missed: u64 = details.labels.iter().map(|label| label.missed).sum();
    if missed > 0 {
        text += &format!("without a prediction: {}\n", many(missed as usize, "example"));
    }
    text
}

fn confusion(details: &Details, width: usize) -> String {
    let shown = occurring(details);
    if shown.len() < 2 {
        return String::new();
    }
    let left_out = |why: String| format!("confusion matrix: left out, {why}\n");
    if shown.len() > CONFUSED || details.confusion.is_empty() {
        let has = if details.confusion.is_empty() { "" } else { "; --json has it" };
        let (most, got) = (CONFUSED, many(shown.len(), "label"));
        return left_out(format!("there are {got} and at most {most} are shown{has}"));
    }
    let names: Vec<&str> = shown.iter().map(|at| details.labels[*at].label.as_str()).collect();
    let longest = names.iter().map(|name| width_of(name)).max().unwrap_or(0);
    let count = |row: usize, column: usize| details.confusion[shown[row]][shown[column]];
    let all = || (0..shown.len()).flat_map(|row| (0..shown.len()).map(move |at| (row, at)));
    let digits = all().map(|(row, at)| count(row, at).to_string().len()).max().unwrap_or(1);
    // Three columns hold two letters of a label that is cut.
    let (row_width, least) = (longest.min(20).min(width / 4).max(4), digits.max(3));
    let room = width.saturating_sub(row_width) / shown.len();
    if room < least + 2 {
        let need = row_width + shown.len() * (least + 2);
        return left_out(format!("it needs {need} columns"));
    }
    let cell = longest.min(room - 2).max(least);
    let right = |text: &str| format!("  {}{text}", " ".repeat(cell.saturating_sub(width_of(text))));
    let mut text = "confusion matrix: rows are true labels, columns predicted ones\n".to_string();
    let heading: String = names.iter().map(|name| right(&label(name, cell))).collect();
    text += &format!("{}{heading}\n", " ".repeat(row_width));
    for (row, name) in names.iter().enumerate() {
        let cells: String = (0..shown.len()).map(|at| right(&count(row, at).to_string())).collect();
        text += &format!("{}{cells}\n", pad(&label(name, row_width), row_width));
    }
    text
}

fn worst(details: &Details, width: usize) -> String {
    match details.worst.is_empty() {
        true if details.labels.is_empty() && !details.worst_by.is_empty() => {
            return format!("worst examples: none, all are perfect by {}\n", details.worst_by);
        }
        true => return String::new(),
        false => {}
    }
    let mut text = format!("worst examples, by {}:\n", details.worst_by);
    let number =
        |number: Option<usize>| number.map_or(String::new(), |n| format!(" · example {n}"));
    // A long path would leave no room for the text.
    let place = |place: &str| match width_of(place) > width / 3 {
        true => place.rsplit('/').next().unwrap_or(place).to_string(),
        false => place.to_string(),
    };
    let cut = |text: &str, before: usize| label(text, width.saturating_sub(before).max(10));
    for (at, example) in details.worst.iter().take(SHOWN).enumerate() {
        let at = at + 1;
        match example {
            WorstExample::Label(found) => {
                let name = cut(&found.label, 50);
                let said = match found.predicted == found.label {
                    true => ", as predicted".to_string(),
                    false => {
                        let (name, score) =
                            (cut(&found.predicted, 50), found.predicted_probability);
                        format!(", predicted {name} ({score:.4})")
                    }
                };
                let (number, before) = match &found.place {
                    Some(found) => (String::new(), format!("{}: ", place(found))),
                    None => (number(found.number), String::new()),
                };
                text += &format!("{at}. {name} ({:.4}){said}{number}\n", found.probability);
                if !(found.text.is_empty() && before.is_empty()) {
                    text += &format!("   {}\n", cut(&format!("{before}{}", found.text), 3));
                }
            }
            WorstExample::Text(found) => {
                text += &format!("{at}. {:.2}{}\n", found.score, number(found.number));
                for (what, said) in [
                    ("input", &found.text),
                    ("reference", &found.reference),
                    ("output", &found.hypothesis),
                ] {
                    text += &format!("   {what:<11}{}\n", cut(said, 14));
                }
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use regard_tasks::evaluation::{WorstLabel, WorstText};

    fn of(labels: usize, length: usize) -> Details {
        let metrics = |at: usize| LabelMetrics {
            label: format!("{at}{}", "x".repeat(length)),
            precision: 50.0,
            recall: 25.0,
            f1: 33.333,
            support: 4 + at as u64,
            predicted: 2,
            missed: 0,
        };
        let worst = |at: usize| {
            WorstExample::Label(WorstLabel {
                number: Some(at + 1),
                place: (at == 0).then(|| "new.csv:7".to_string()),
                text: format!("text {at} {}", "word ".repeat(60)),
                label: "a".into(),
                probability: 0.125,
                predicted: "b".into(),
                predicted_probability: 0.5,
            })
        };
        Details {
            labels: (0..labels).map(metrics).collect(),
            confusion: vec![vec![7; labels]; labels],
            worst_by: "loss of the true label",
            worst: (0..10).map(worst).collect(),
            predictions: vec![],
        }
    }

    #[test]
    fn few_labels_are_shown_whole() {
        let text = render(&of(2, 1), 80);
        for part in [
            "label  precision  recall      F1  examples\n0x         50.00   25.00   33.33         4",
            "confusion matrix: rows are true labels, columns predicted ones\n       0x   1x\n0x      7    7",
            "worst examples, by loss of the true label:\n1. a (0.1250), predicted b (0.5000)\n   new.csv:7: text 0 word",
            "2. a (0.1250), predicted b (0.5000) · example 2\n   text 1 word",
            "\n5. ",
        ] {
            assert!(text.contains(part), "{part:?} in:\n{text}");
        }
        assert!(!text.contains("\n6. "), "{text}");
    }

    #[test]
    fn everything_fits() {
        for (labels, length) in [(2, 1), (12, 1), (12, 30), (40, 60)] {
            for width in [50, 60, 80, 100, 200] {
                let text = render(&of(labels, length), width);
                for line in text.lines().filter(|line| !line.starts_with("confusion matrix:")) {
                    assert!(width_of(line) <= width, "{labels} {length} {width}: {line}");
                }
            }
        }
    }

    #[test]
    fn many_labels_are_counted() {
        let text = render(&of(40, 2), 100);
        assert!(text.contains("… and 10 rarer labels; --json lists all"), "{text}");
        // The rarest have the first numbers here.
        assert!(text.contains("39xx") && !text.contains("\n0xx "), "{text}");
        let left_out = "confusion matrix: left out, there are 40 labels and at most 12 are shown";
        assert!(text.contains(left_out), "{text}");
        let narrow = render(&of(12, 2), 40);
        assert!(narrow.contains("confusion matrix: left out, it needs 64 columns"), "{narrow}");
    }

    #[test]
    fn texts_are_shown_with_their_references() {
        let worst = WorstExample::Text(WorstText {
            number: None,
            text: "They sleep.".into(),
            reference: "Ils dorment.".into(),
            hypothesis: "Ils\u{1b}[31m dort.".into(),
            score: 12.5,
        });
        let details = Details { worst_by: "chrF", worst: vec![worst], ..Details::default() };
        assert_eq!(
            render(&details, 80),
            "worst examples, by chrF:\n1. 12.50\n   input      They sleep.\n   reference  Ils \
             dorment.\n   output     Ils\u{fffd}[31m dort.\n"
        );
        assert_eq!(render(&Details::default(), 80), "");
    }
}
