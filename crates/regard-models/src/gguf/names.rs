//! Names of tensors in GGUF and in Hugging Face's layout, one table for both directions.

/// What a tensor's values are in a file, compared with Hugging Face's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The same.
    None,
    /// The two halves of each query head alternate, feature by feature.
    Queries,
    /// The same for key heads.
    Keys,
    /// The file stores weight + 1 (norms of Gemma).
    PlusOne,
    /// Transposed: the checkpoint has a Conv1D, `[I, O]`.
    Transposed,
    /// No weight: the divisors of rotary frequencies, which become keys of the configuration.
    InConfig,
}

/// A tensor's name in GGUF, its name here, and what differs. `#` is a layer's number; `.weight` and
/// `.bias` are left out.
pub struct Names(pub &'static str, pub &'static str, pub Change);

/// Returns the name of a tensor here, and what its file changed.
pub fn ours(names: &[Names], name: &str) -> Option<(String, Change)> {
    renamed(name, |stem| {
        names.iter().find_map(|Names(from, to, change)| (*from == stem).then_some((*to, *change)))
    })
}

/// Returns the name of a tensor in GGUF, and what to change.
pub fn theirs(names: &[Names], name: &str) -> Option<(String, Change)> {
    renamed(name, |stem| {
        names.iter().find_map(|Names(to, from, change)| (*from == stem).then_some((*to, *change)))
    })
}

/// Replaces the stem of a name: its number becomes `#` for `find`, and comes back in the result.
fn renamed<'t>(
    name: &str,
    find: impl Fn(&str) -> Option<(&'t str, Change)>,
) -> Option<(String, Change)> {
    let (stem, end) = match name.rsplit_once('.') {
        Some((stem, end @ ("weight" | "bias"))) => (stem, end),
        _ => return None,
    };
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let number = stem.split('.').find(is_number);
    let pattern: Vec<&str> =
        stem.split('.').map(|part| if Some(part) == number { "#" } else { part }).collect();
    let (to, change) = find(&pattern.join("."))?;
    let to = number.map_or(to.to_string(), |number| to.replace('#', number));
    Some((format!("{to}.{end}"), change))
}

/// Moves rows whose halves alternate within each head to where the halves are apart.
///
/// # Errors
/// If the rows are not heads of pairs.
pub fn joined_halves(bytes: &[u8], rows: usize, heads: usize) -> Result<Vec<u8>, String> {
    moved(bytes, rows, heads, |half, pair, _| pair * 2 + half)
}

/// The inverse of [`joined_halves`].
///
/// # Errors
/// If the rows are not heads of pairs.
pub fn alternating_halves(bytes: &[u8], rows: usize, heads: usize) -> Result<Vec<u8>, String> {
    moved(bytes, rows, heads, |side, at, pairs| {
        // Row 2 · pair + half of the result is row half · pairs + pair.
        let row = side * pairs + at;
        row % 2 * pairs + row / 2
    })
}

/// Moves rows within each head: `from` gives the row of a half and a pair.
fn moved(
    bytes: &[u8],
    rows: usize,
    heads: usize,
    from: impl Fn(usize, usize, usize) -> usize,
) -> Result<Vec<u8>, String> {
    let width =
        rows.checked_div(heads).filter(|width| *width * heads == rows && width.is_multiple_of(2));
    let Some(width) = width else {
        return Err(format!("has {rows} rows, need pairs for each of {heads} heads"));
    };
    let (size, pairs) = (bytes.len() / rows, width / 2);
    let mut moved = Vec::with_capacity(bytes.len());
    for head in 0..heads {
        for half in 0..2 {
            for pair in 0..pairs {
                let row = head * width + from(half, pair, pairs);
                moved.extend_from_slice(&bytes[row * size..(row + 1) * size]);
            }
        }
    }
    Ok(moved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways() {
        let names = [Names("blk.#.attn_q", "model.layers.#.self_attn.q_proj", Change::Queries)];
        let ours = ours(&names, "blk.12.attn_q.weight").unwrap();
        assert_eq!(ours.0, "model.layers.12.self_attn.q_proj.weight");
        assert_eq!(theirs(&names, &ours.0).unwrap().0, "blk.12.attn_q.weight");
        assert!(super::ours(&names, "blk.12.attn_k.weight").is_none());
        assert!(super::ours(&names, "blk.12.attn_q").is_none());
    }

    #[test]
    fn halves_of_heads_are_joined_and_separated() {
        let rows: Vec<u8> = (0..12).collect();
        let joined = joined_halves(&rows, 12, 2).unwrap();
        assert_eq!(joined, [0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11]);
        assert_eq!(alternating_halves(&joined, 12, 2).unwrap(), rows);
        assert!(joined_halves(&rows, 12, 4).unwrap_err().contains("pairs for each of 4 heads"));
    }
}
