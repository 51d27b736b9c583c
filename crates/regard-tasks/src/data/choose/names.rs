//! Detection of columns and headers by names and contents.

use super::{Row, name};
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

/// Preferred names of text columns.
pub(super) const TEXT_FIRST: [&str; 2] = ["text", "sentence"];
/// Other names of text columns. Several of them, such as a title and a description, are joined.
pub(super) const TEXT: [&str; 18] = [
    "title",
    "headline",
    "subject",
    "description",
    "review",
    "content",
    "body",
    "comment",
    "message",
    "question",
    "query",
    "utterance",
    "tweet",
    "document",
    "article",
    "abstract",
    "phrase",
    "texts",
];
/// Preferred name of the label column.
pub(super) const LABEL_FIRST: &str = "label";
/// Other names of the label column.
pub(super) const LABEL: [&str; 10] = [
    "labels",
    "class",
    "category",
    "target",
    "polarity",
    "sentiment",
    "intent",
    "topic",
    "emotion",
    "stars",
];

/// Columns whose names in the first row are known.
pub(super) struct Names {
    /// Text columns; if a preferred name is among them, only that one.
    pub texts: Vec<usize>,
    pub labels: Vec<usize>,
    first_label: Option<usize>,
}

impl Names {
    pub fn of(first: &Row) -> Names {
        let places = |known: &[&str]| -> Vec<usize> {
            let is = |cell: &String| known.contains(&name(cell).as_str());
            (0..first.len()).filter(|column| is(&first[*column])).collect()
        };
        let mut texts = places(&TEXT_FIRST);
        texts.truncate(1);
        if texts.is_empty() {
            texts = places(&TEXT);
        }
        let first_label = places(&[LABEL_FIRST]).first().copied();
        let labels = first_label.map_or_else(|| places(&LABEL), |label| vec![label]);
        Names { texts, labels, first_label }
    }

    pub fn label(&self) -> Option<usize> {
        match self.labels[..] {
            [only] => Some(only),
            _ => self.first_label,
        }
    }

    pub fn text(&self, label: usize) -> Vec<usize> {
        self.texts.iter().copied().filter(|column| *column != label).collect()
    }

    /// Whether the first row is a header: it has known names of a text and of a label, or a known
    /// name that no other row has in that column.
    pub fn is_header(&self, rows: &[&Row]) -> bool {
        if !self.texts.is_empty() && !self.labels.is_empty() {
            return true;
        }
        let mut known = self.texts.iter().chain(&self.labels);
        rows.len() > 1
            && known.any(|column| {
                let of = |row: &&Row| row.get(*column).map(|cell| name(cell));
                let header = of(&rows[0]);
                rows[1..].iter().all(|row| of(row) != header)
            })
    }
}

/// Whether the first row is a header with unknown names, judged by the rows below it.
/// `None` if that is unclear: no other row has its label, and labels repeat. A header must not
/// become an example, and its name a label.
pub(super) fn by_contents(
    rows: &[&Row],
    names: &Names,
    label: Option<usize>,
    labels: Option<&[&str]>,
) -> Option<bool> {
    let first = rows[0];
    let column = match label {
        Some(label) => Some(label),
        None if first.len() == 2 => label_of_two(&rows[1..], labels),
        None => None,
    };
    let (Some(column), true) = (column, names.texts.is_empty() && names.labels.is_empty()) else {
        return Some(false);
    };
    let cell = |row: &&Row| row.get(column).map(|cell| cell.trim().to_string()).unwrap_or_default();
    let (mine, rest) = (cell(&first), rows[1..].iter().map(cell).collect::<Vec<_>>());
    if labels.is_some_and(|labels| labels.contains(&mine.as_str())) {
        return Some(false);
    }
    let number = |text: &String| text.parse::<f64>().is_ok();
    if rest.len() >= 2 && rest.iter().all(number) && !number(&mine) {
        return Some(true);
    }
    let mut counts: HashMap<&str, usize> = HashMap::new();
    rest.iter().for_each(|label| *counts.entry(label).or_default() += 1);
    let alone = !counts.contains_key(mine.as_str());
    match alone && rest.len() >= 4 && counts.len() < rest.len() {
        true => None,
        false => Some(false),
    }
}

/// Index of the label column of two: the one with fewer and shorter values.
pub(super) fn label_of_two(rows: &[&Row], labels: Option<&[&str]>) -> Option<usize> {
    let cells = |column: usize| -> Vec<&str> {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.trim()).collect()
    };
    let both = [cells(0), cells(1)];
    if let Some(labels) = labels {
        let known = |cells: &Vec<&str>| cells.iter().filter(|cell| labels.contains(cell)).count();
        let [first, second] = [known(&both[0]), known(&both[1])];
        if first != second {
            return Some(usize::from(second > first));
        }
    }
    let different = |cells: &Vec<&str>| cells.iter().collect::<HashSet<_>>().len();
    let length = |cells: &Vec<&str>| cells.iter().map(|cell| cell.chars().count()).sum::<usize>();
    let [(d0, l0), (d1, l1)] = both.each_ref().map(|cells| (different(cells), length(cells)));
    // Labels repeat, texts seldom do.
    match (d0 < rows.len(), d1 < rows.len()) {
        (true, false) => return Some(0),
        (false, true) => return Some(1),
        _ => {}
    }
    match (d0.cmp(&d1), l0.cmp(&l1)) {
        // Few but long labels: only if they are very few.
        (Ordering::Less, Ordering::Greater) => (5 * d0 <= d1).then_some(0),
        (Ordering::Greater, Ordering::Less) => (5 * d1 <= d0).then_some(1),
        (Ordering::Less, _) | (Ordering::Equal, Ordering::Less) => Some(0),
        (Ordering::Greater, _) | (Ordering::Equal, Ordering::Greater) => Some(1),
        _ => {
            let numbers = |cells: &Vec<&str>| cells.iter().all(|cell| cell.parse::<f64>().is_ok());
            match (numbers(&both[0]), numbers(&both[1])) {
                (true, false) => Some(0),
                (false, true) => Some(1),
                _ => None,
            }
        }
    }
}
