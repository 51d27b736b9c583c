//! Choice of single columns of a table by their names.

pub(super) use crate::data::choose::shown;
use crate::data::choose::{ColumnSelection, Spelling, name, place};
use crate::say;

/// Returns the column with a known name; earlier names are preferred.
pub(super) fn known(first: &[String], names: &[&str]) -> Option<usize> {
    names.iter().find_map(|wanted| first.iter().position(|cell| name(cell) == *wanted))
}

/// Returns the column that a flag chose by its name or its number from 1. `header` is whether the
/// first row names the columns, if that is known.
pub(super) fn asked(
    flag: &str,
    asked: &str,
    first: &[String],
    header: Option<bool>,
) -> Result<usize, String> {
    let spelling = Spelling::Flags;
    let selection = ColumnSelection { header, spelling, ..ColumnSelection::default() };
    place(flag, asked, first, &selection).map(|(column, _)| column)
}

/// Describes a column: by its name, or by its number from 1 if there is no header.
pub(super) fn told(column: usize, header: Option<&[String]>) -> String {
    match header {
        Some(names) => format!("column '{}'", say::short(&names[column], 30)),
        None => format!("column {}", column + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_before_numbers_and_misspelt_ones_are_told() {
        let first = ["Path ", "Label", "2"].map(String::from);
        assert_eq!(known(&first, &["image", "label", "path"]), Some(1));
        assert_eq!(known(&first, &["image"]), None);
        assert_eq!(asked("label", "label", &first, None), Ok(1));
        assert_eq!(asked("label", "2", &first, None), Ok(2));
        assert_eq!(asked("label", "2", &first, Some(false)), Ok(1));
        let error = asked("label", "lable", &first, None).unwrap_err();
        assert!(error.contains("--label") && error.contains("did you mean 'Label'?"), "{error}");
        assert!(asked("label", "4", &first, None).is_err());
        assert_eq!(told(1, Some(&first)), "column 'Label'");
        assert_eq!(told(1, None), "column 2");
    }
}
