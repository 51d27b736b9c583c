//! Columns with one name, which chooses neither of them, and rows with the same cells.

use super::choose::{name, plain};
use crate::say;

/// Returns the other columns with the name of a column, which differ at most in case.
pub(crate) fn twins(first: &[String], at: usize) -> Vec<usize> {
    let is_twin = |other: &usize| *other != at && name(&first[*other]) == name(&first[at]);
    (0..first.len()).filter(is_twin).collect()
}

/// Refuses columns that were chosen by their names if others have these names too. `set` is how
/// columns are chosen, such as `--text`, given their names or numbers; `None` if they cannot be.
///
/// # Errors
/// A message with the columns, and what chooses one of each name.
pub(crate) fn refuse_twins(
    first: &[String],
    chosen: &[usize],
    set: Option<&dyn Fn(&str) -> String>,
) -> Result<(), String> {
    let Some(at) = chosen.iter().find(|at| !twins(first, **at).is_empty()) else { return Ok(()) };
    let mut all = twins(first, *at);
    all.push(*at);
    all.sort_unstable();
    let (told, change, how) = match is_spelled_alone(first, *at) {
        // Keys of JSON objects have no order, and no two of one spelling.
        true => {
            let names: Vec<String> =
                all.iter().map(|at| format!("{:?}", plain(&first[*at]))).collect();
            let told =
                format!("the columns {} have names that differ only in case", names.join(" and "));
            (told, "give them different names", "exact name")
        }
        false => {
            let numbers: Vec<String> = all.iter().map(|at| (at + 1).to_string()).collect();
            let told = format!(
                "the columns {} have one name, {:?}",
                numbers.join(" and "),
                name(&first[*at])
            );
            (told, "give them different names in the header", "number")
        }
    };
    let set =
        set.map(|set| format!(", or choose one by its {how}: {}", set(&value(first, chosen))));
    Err(format!("{told}: {change}{}", set.unwrap_or_default()))
}

/// Value of a column flag for these columns; of columns with one name, the first. Names if they tell all of them
/// apart, else numbers.
fn value(first: &[String], chosen: &[usize]) -> String {
    let is_first = |at: &&usize| !chosen.iter().any(|c| c < *at && twins(first, **at).contains(c));
    let chosen: Vec<usize> = chosen.iter().filter(is_first).copied().collect();
    let is_clear = |at: &usize| {
        let has_comma = chosen.len() > 1 && first[*at].contains(',');
        is_spelled_alone(first, *at) && !has_comma
    };
    let by_name = chosen.iter().all(is_clear);
    let one = |at: &usize| match by_name {
        true => plain(&first[*at]).to_string(),
        false => (at + 1).to_string(),
    };
    say::quoted(chosen.iter().map(one).collect::<Vec<_>>().join(","))
}

/// Whether no two of the columns with the name of a column are spelled alike.
fn is_spelled_alone(first: &[String], at: usize) -> bool {
    let mut all: Vec<&str> = twins(first, at).iter().map(|at| plain(&first[*at])).collect();
    all.push(plain(&first[at]));
    all.sort_unstable();
    all.windows(2).all(|two| two[0] != two[1])
}

/// Whether two rows have the same cells.
pub(crate) fn is_copy(row: &[String], other: &[String]) -> bool {
    row.len() == other.len() && row.iter().zip(other).all(|(a, b)| plain(a) == plain(b))
}

/// Rows without copies of the first one. Files that were joined repeat their header, which is no
/// less a header for it. More copies than a fifth of the rows are examples, and kept.
pub(super) fn without_copies<'a>(rows: &[&'a [String]]) -> Vec<&'a [String]> {
    let is_kept = |(at, row): &(usize, &&'a [String])| *at == 0 || !is_copy(row, rows[0]);
    let kept: Vec<_> = rows.iter().enumerate().filter(is_kept).map(|(_, row)| *row).collect();
    match 5 * (rows.len() - kept.len()) > rows.len() {
        true => rows.to_vec(),
        false => kept,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_header_is_left_out_and_repeated_examples_are_kept() {
        let row = |cells: [&str; 2]| cells.map(str::to_string);
        let header = row(["review", "verdict"]);
        let example = row(["so good", "pos"]);
        let mut joined = vec![&header[..]];
        joined.extend([&example[..]; 6]);
        joined.push(&header);
        assert_eq!(without_copies(&joined).len(), 7);
        let repeated = [&header[..], &example, &header, &example];
        assert_eq!(without_copies(&repeated).len(), 4);
    }

    fn refused(first: &[&str], chosen: &[usize]) -> String {
        let first: Vec<String> = first.iter().map(|name| name.to_string()).collect();
        refuse_twins(&first, chosen, Some(&|value| format!("--text {value}"))).unwrap_err()
    }

    #[test]
    fn columns_with_one_name_are_numbered() {
        let first = ["text", "label", " text", "id"].map(String::from);
        assert_eq!(
            (twins(&first, 0), twins(&first, 2), twins(&first, 1)),
            (vec![2], vec![0], vec![])
        );
        assert_eq!(refuse_twins(&first, &[1], None), Ok(()));
        assert_eq!(
            refused(&["text", "label", " text"], &[2]),
            "the columns 1 and 3 have one name, \"text\": give them different names in the header, \
             or choose one by its number: --text 3"
        );
        // All that were chosen, and of columns with one name the first.
        let told = refused(&["title", "title", "x", "body"], &[0, 1, 3]);
        assert!(told.ends_with("by its number: --text 1,4"), "{told}");
    }

    #[test]
    fn case_tells_names_apart() {
        assert_eq!(
            refused(&["Text", "label", "text"], &[0]),
            "the columns \"Text\" and \"text\" have names that differ only in case: give them \
             different names, or choose one by its exact name: --text Text"
        );
        for (first, value) in [
            (["title", "Title", "body", "x"], "title,body"),
            (["My Title", "my title", "body", "x"], "'My Title,body'"),
            (["a,b", "A,B", "body", "x"], "1,3"),
            (["Text", "text", "body", "text"], "1,3"),
        ] {
            let told = refused(&first, &[0, 1, 2]);
            assert!(told.ends_with(&format!("--text {value}")), "{told}");
        }
    }
}
