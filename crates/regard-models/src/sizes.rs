//! Limits of the sizes in a configuration. A file may contain anything; absurd sizes are refused
//! here, before memory is allocated.

/// Largest size.
const WIDEST: usize = 1 << 24;
/// Largest number of elements of a matrix.
const LARGEST: usize = 1 << 31;
/// Largest number of layers.
const DEEPEST: usize = 1 << 10;

/// Truncates text from a file for a message, to at most `most` characters.
pub(crate) fn short(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}

/// Checks that sizes, given by name, are from 1 to the limit.
pub(crate) fn check(sizes: &[(&str, usize)]) -> Result<(), String> {
    for (name, size) in sizes {
        let deep = name.ends_with("layer") || name.ends_with("layers");
        let most = if deep { DEEPEST } else { WIDEST };
        if !(1..=most).contains(size) {
            return Err(format!("{name}: got {size}, need 1 to {most}"));
        }
    }
    Ok(())
}

/// Checks a number of layers or repetitions, given by name.
pub(crate) fn check_depth(name: &str, depth: usize) -> Result<(), String> {
    match (1..=DEEPEST).contains(&depth) {
        true => Ok(()),
        false => Err(format!("{name}: got {depth}, need 1 to {DEEPEST}")),
    }
}

/// Checks the number of elements of matrices, given by the names of their sides.
pub(crate) fn check_matrices(sides: &[[(&str, usize); 2]]) -> Result<(), String> {
    for [(rows, r), (columns, c)] in sides {
        if r.saturating_mul(*c) > LARGEST {
            return Err(format!(
                "{rows} and {columns}: got {r} and {c}, a matrix of more than {LARGEST} elements"
            ));
        }
    }
    Ok(())
}

/// Sizes of a Transformer, with their names in a configuration.
pub(crate) struct Stack<'a> {
    pub words: (&'a str, usize),
    pub width: (&'a str, usize),
    pub layers: (&'a str, usize),
    pub heads: (&'a str, usize),
    pub hidden: (&'a str, usize),
    pub positions: (&'a str, usize),
}

impl Stack<'_> {
    /// Checks sizes before any tensor is allocated.
    pub fn check(&self) -> Result<(), String> {
        let Stack { words, width, layers, heads, hidden, positions } = *self;
        check(&[words, width, layers, heads, hidden, positions])?;
        check_matrices(&[[words, width], [width, hidden], [positions, width], [width, width]])?;
        match width.1.is_multiple_of(heads.1) {
            true => Ok(()),
            false => Err(format!(
                "{}: got {}, need a divisor of {} = {}",
                heads.0, heads.1, width.0, width.1
            )),
        }
    }
}

/// Checks that token ids, given by name, are below the vocabulary's size.
pub(crate) fn check_ids(ids: &[(&str, u32)], words: usize) -> Result<(), String> {
    match ids.iter().find(|(_, id)| *id as usize >= words) {
        None => Ok(()),
        Some((name, id)) => Err(format!("{name}: got {id}, the vocabulary has {words} tokens")),
    }
}

/// Checks that dropout probabilities, given by name, are in `[0, 1)`.
pub(crate) fn check_shares(shares: &[(&str, f32)]) -> Result<(), String> {
    match shares.iter().find(|(_, share)| !(0.0..1.0).contains(share)) {
        None => Ok(()),
        Some((name, p)) => Err(format!("{name}: got {p}, need at least 0 and below 1")),
    }
}
