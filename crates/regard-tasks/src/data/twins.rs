//! Columns with one name, which chooses neither of them, and rows with the same cells.

use super::choose::{name, plain};

/// Returns the other columns with the name of a column, which differ at most in case.
pub(crate) fn twins(first: &[String], at: usize) -> Vec<usize> {
    let is_twin = |other: &usize| *other != at && name(&first[*other]) == name(&first[at]);
    (0..first.len()).filter(is_twin).collect()
}

/// Refuses a column that was chosen by its name if another one has it too. `set` is how a column is
/// chosen by its number, such as `--text 2`; `None` if it cannot be.
///
/// # Errors
/// A message with the numbers of the columns.
pub(crate) fn refuse_twins(first: &[String], at: usize, set: Option<&str>) -> Result<(), String> {
    let mut all = twins(first, at);
    if all.is_empty() {
        return Ok(());
    }
    all.push(at);
    all.sort_unstable();
    let numbers: Vec<String> = all.iter().map(|at| (at + 1).to_string()).collect();
    let set = set.map_or(String::new(), |set| format!(", or choose one by its number: {set}"));
    Err(format!(
        "the columns {} have one name, {:?}: give them different names in the header{set}",
        numbers.join(" and "),
        name(&first[at])
    ))
}

/// Whether two rows have the same cells.
pub(crate) fn is_copy(row: &[String], other: &[String]) -> bool {
    row.len() == other.len() && row.iter().zip(other).all(|(a, b)| plain(a) == plain(b))
}

/// Rows without copies of the first one. Files that were joined repeat their header, which is no
/// less a header for it.
pub(super) fn without_copies<'a>(rows: &[&'a [String]]) -> Vec<&'a [String]> {
    let is_kept = |(at, row): &(usize, &&'a [String])| *at == 0 || !is_copy(row, rows[0]);
    rows.iter().enumerate().filter(is_kept).map(|(_, row)| *row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_with_one_name_are_numbered() {
        let first = ["Text", "label", " text", "id"].map(String::from);
        assert_eq!(
            (twins(&first, 0), twins(&first, 2), twins(&first, 1)),
            (vec![2], vec![0], vec![])
        );
        assert_eq!(refuse_twins(&first, 1, None), Ok(()));
        assert_eq!(
            refuse_twins(&first, 2, Some("--text 1")).unwrap_err(),
            "the columns 1 and 3 have one name, \"text\": give them different names in the header, \
             or choose one by its number: --text 1"
        );
    }
}
