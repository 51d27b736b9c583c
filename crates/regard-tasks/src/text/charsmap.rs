//! The precompiled character map of a SentencePiece model: a double-array trie, then strings.
//!
//! The tokenizers library follows it without bounds checks, so a broken map would panic in the
//! middle of a text. Here every step that any text can take is checked once.

use regard_models::Result;

use super::spm::malformed;

/// A cell of the array (the layout is that of Darts-clone).
#[derive(Clone, Copy)]
struct Cell(u32);

impl Cell {
    fn has_leaf(self) -> bool {
        self.0 >> 8 & 1 == 1
    }

    fn label(self) -> u32 {
        self.0 & (1 << 31 | 0xff)
    }

    fn offset(self) -> usize {
        ((self.0 >> 10) << ((self.0 & 1 << 9) >> 6)) as usize
    }

    fn value(self) -> usize {
        (self.0 & !(1 << 31)) as usize
    }
}

/// Checks that all indices of the map are within it.
pub fn check(table: &[u8]) -> Result<()> {
    let outside = || malformed("precompiled_charsmap: an offset is out of range");
    let (size, rest) = table.split_first_chunk().ok_or_else(outside)?;
    let size = u32::from_le_bytes(*size) as usize;
    let (array, strings) = rest.split_at_checked(size).ok_or_else(outside)?;
    let strings = std::str::from_utf8(strings).map_err(|_| outside())?;
    let (cells, rest) = array.as_chunks();
    if cells.is_empty() || !rest.is_empty() {
        return Err(outside());
    }
    let cell = |at: usize| cells.get(at).map(|&bytes| Cell(u32::from_le_bytes(bytes)));
    let mut seen = vec![false; cells.len()];
    let mut nodes = vec![cell(0).ok_or_else(outside)?.offset()];
    while let Some(node) = nodes.pop() {
        // A text may have any byte here, so all 256 neighbours must exist.
        if node | 0xff >= cells.len() {
            return Err(outside());
        }
        if std::mem::replace(&mut seen[node], true) {
            continue;
        }
        for byte in 1..=0xff_usize {
            let at = node ^ byte;
            let child = cell(at).ok_or_else(outside)?;
            if child.label() as usize != byte {
                continue;
            }
            let next = at ^ child.offset();
            if child.has_leaf() {
                let value = cell(next).ok_or_else(outside)?.value();
                if !strings.is_char_boundary(value) {
                    return Err(outside());
                }
            }
            nodes.push(next);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A map of `a` to the string at `value`.
    fn table(value: u32) -> Vec<u8> {
        let mut cells = vec![0_u32; 512];
        // The root is at 0 with its children from 256 on; `a` is one of those, and its leaf is
        // where a zero byte would be.
        cells[0] = 256 << 10;
        let a = 256 ^ usize::from(b'a');
        cells[a] = u32::from(b'a') | 1 << 8 | (a as u32 ^ 256) << 10;
        cells[256] = value | 1 << 31;
        let bytes = cells.iter().flat_map(|cell| cell.to_le_bytes());
        let size = (cells.len() as u32 * 4).to_le_bytes();
        size.into_iter().chain(bytes).chain("é\0".bytes()).collect()
    }

    #[test]
    fn a_table_within_itself() {
        assert!(check(&table(0)).is_ok());
        let precompiled =
            tokenizers::normalizers::precompiled::Precompiled::from(&table(0)).unwrap();
        assert_eq!(precompiled.transform("a"), Some("é"));
    }

    #[test]
    fn a_table_that_leads_astray() {
        let good = table(0);
        let mut far = good.clone();
        far[4..8].copy_from_slice(&(1_u32 << 20).to_le_bytes());
        for bad in [&[][..], &good[..3], &good[..100], &good[4..], &table(1), &table(99), &far] {
            assert!(check(bad).is_err(), "{} bytes", bad.len());
        }
    }
}
