//! Checks of a footer before the crate `parquet` reads it: that crate follows the levels of the
//! schema by recursion and allocates for the numbers of children that the schema claims.

use super::Read;
use super::thrift::{I32, LIST, STRUCT, Thrift};

/// What a Parquet file begins and ends with.
pub(super) const MAGIC: &[u8] = b"PAR1";
/// Length of the magic and of the length of the footer, at the end of a file.
const TAIL: usize = 8;
/// Most elements of a schema.
const MOST_ELEMENTS: usize = 20_000;
/// Most levels of groups in each other.
const DEEPEST: usize = 30;

/// Finds the footer of a file and checks it: returns the place where it begins and its bytes.
pub(super) fn find(file: &[u8]) -> Read<(usize, &[u8])> {
    if !file.starts_with(MAGIC) {
        return Err("is not a Parquet file: it does not begin with PAR1 (encrypted ones begin \
                    with PARE and are not read)"
            .into());
    }
    if file.len() < MAGIC.len() + TAIL || !file.ends_with(MAGIC) {
        return Err("is cut off: a Parquet file ends with PAR1".into());
    }
    let end = file.len() - TAIL;
    let mut length = [0; 4];
    length.copy_from_slice(&file[end..end + 4]);
    let length = u32::from_le_bytes(length) as usize;
    if length > end - MAGIC.len() {
        return Err(format!(
            "is damaged: its footer would have {length} bytes, the file has {}",
            file.len()
        ));
    }
    let (start, footer) = (end - length, &file[end - length..end]);
    check(footer).map_err(|message| format!("is damaged: in its footer, {message}"))?;
    Ok((start, footer))
}

fn check(footer: &[u8]) -> Read<()> {
    let mut leaves = 0;
    Thrift::new(footer).fields(&mut |thrift, id, kind| match (id, kind) {
        (2, LIST) => {
            leaves = schema(thrift)?;
            Ok(true)
        }
        (4, LIST) => row_groups(thrift, leaves).map(|()| true),
        (2 | 4, _) => Err("the schema or the row groups are no list".into()),
        _ => Ok(false),
    })
}

/// Checks the schema, a tree in which each group says how many of the next elements are in it.
/// Returns the number of columns.
fn schema(thrift: &mut Thrift) -> Read<usize> {
    let (count, kind) = thrift.list()?;
    if kind != STRUCT || count > MOST_ELEMENTS {
        return Err(format!("the schema has {count} elements, need at most {MOST_ELEMENTS}"));
    }
    // Children that each open group still needs.
    let mut open: Vec<usize> = vec![];
    let mut leaves = 0;
    for at in 0..count {
        let mut children = 0;
        thrift.fields(&mut |thrift, id, kind| {
            if (id, kind) == (5, I32) {
                children = thrift.int()?;
            }
            Ok((id, kind) == (5, I32))
        })?;
        match open.last_mut() {
            Some(left) => *left -= 1,
            None if at == 0 => {}
            None => return Err("the schema has more than one root".into()),
        }
        match usize::try_from(children) {
            Ok(0) => leaves += usize::from(at > 0),
            Ok(children) if children < count - at => open.push(children),
            _ => return Err(format!("a group of the schema has {children} children")),
        }
        if open.len() > DEEPEST {
            return Err(format!("the schema has more than {DEEPEST} levels"));
        }
        while open.last() == Some(&0) {
            open.pop();
        }
    }
    match open.is_empty() && leaves > 0 {
        true => Ok(leaves),
        false => Err("the schema is not complete".into()),
    }
}

/// Checks that each row group has a description of each column.
fn row_groups(thrift: &mut Thrift, leaves: usize) -> Read<()> {
    let (count, kind) = thrift.list()?;
    if kind != STRUCT && count > 0 {
        return Err("the row groups are no structures".into());
    }
    for _ in 0..count {
        let mut columns = 0;
        thrift.fields(&mut |thrift, id, kind| {
            if (id, kind) != (1, LIST) {
                return Ok(false);
            }
            let (found, kind) = thrift.list()?;
            columns = found;
            thrift.skip_elements(found, kind, 1)?;
            Ok(true)
        })?;
        if columns != leaves {
            return Err(format!("a row group has {columns} columns, the schema has {leaves}"));
        }
    }
    Ok(())
}
