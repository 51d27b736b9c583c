//! Reads the pickles of Planetoid's published files: sparse and dense NumPy arrays, and
//! dictionaries of lists. They are parsed as data only: an object is its class name, arguments and
//! state, and no code is run.

use regard_models::checkpoint::pickle::{DictEntry, Tree, Value, ValueIndex, read_tree};

/// Contents of a pickle file.
pub struct PickledArray<'a>(Tree<'a>);

/// A matrix in sparse rows.
#[derive(Debug, PartialEq)]
pub struct PickledRows {
    /// Nonzero columns of each row, with their values.
    pub rows: Vec<Vec<(u32, f32)>>,
    /// Number of columns.
    pub columns: usize,
}

/// Reads a pickle of protocol 2.
pub fn read(bytes: &[u8]) -> Result<PickledArray<'_>, String> {
    match bytes {
        [0x80, other, ..] if *other != 2 => Err(format!("got protocol {other}, need 2")),
        _ => Ok(PickledArray(read_tree(bytes)?.0)),
    }
}

impl PickledArray<'_> {
    /// Returns a dictionary of lists of node numbers.
    pub fn lists(&self) -> Result<Vec<(usize, Vec<usize>)>, String> {
        let number = |place: &ValueIndex| match self.0.at(*place) {
            Value::Whole(number) => usize::try_from(*number).map_err(|_| format!("node {number}")),
            _ => Err("got a node that is not a number".to_string()),
        };
        let list = |(node, others): &DictEntry| {
            let items = self.0.items(*others).ok_or("got neighbours that are not a list")?;
            Ok((number(node)?, items.iter().map(number).collect::<Result<_, _>>()?))
        };
        self.pairs(self.0.top()).ok_or("holds no dictionary")?.iter().map(list).collect()
    }

    /// Returns the entries of a dictionary; `defaultdict` counts as one.
    fn pairs(&self, place: ValueIndex) -> Option<&[DictEntry]> {
        match (self.0.at(place), self.0.object(place)) {
            (Value::Dict(pairs), _) => Some(pairs),
            (_, Some((object, ("collections", "defaultdict")))) => Some(&object.pairs),
            _ => None,
        }
    }

    /// Returns a SciPy matrix in CSR form, or a two-dimensional dense array.
    pub fn rows(&self) -> Result<PickledRows, String> {
        let (object, (_, class)) = self.0.object(self.0.top()).ok_or("holds no array")?;
        if let ("csr_matrix", Some(state)) = (class, object.state) {
            return self.sparse(state);
        }
        let (shape, numbers) = self.array(self.0.top())?;
        let &[rows, columns] = &shape[..] else {
            return Err(format!("got an array with {} axes, need 2", shape.len()));
        };
        let there = |row: &[f64]| {
            let each = row.iter().enumerate().filter(|(_, x)| **x != 0.0);
            each.map(|(column, x)| (column as u32, *x as f32)).collect()
        };
        let rows = numbers.chunks_exact(columns.max(1)).take(rows).map(there).collect();
        Ok(PickledRows { rows, columns })
    }

    fn sparse(&self, state: ValueIndex) -> Result<PickledRows, String> {
        let pairs = self.pairs(state).ok_or("a sparse matrix without its parts")?;
        let part = |name: &str| {
            let found = pairs.iter().find(|(key, _)| self.0.text(*key) == Some(name));
            found.map(|(_, value)| *value).ok_or_else(|| format!("a sparse matrix without {name}"))
        };
        let whole = |name: &str| -> Result<Vec<usize>, String> {
            Ok(self.array(part(name)?)?.1.into_iter().map(|x| x as usize).collect())
        };
        let shape = self.sizes(part("_shape")?)?;
        let (starts, index) = (whole("indptr")?, whole("indices")?);
        let data = self.array(part("data")?)?.1;
        let &[rows, columns] = &shape[..] else { return Err("a matrix without two axes".into()) };
        let fits = starts.len() == rows.saturating_add(1)
            && starts.windows(2).all(|w| w[0] <= w[1])
            && starts.last() == Some(&index.len())
            && index.len() == data.len()
            && index.iter().all(|column| *column < columns);
        if !fits {
            return Err(format!("a sparse matrix whose parts do not fit [{rows}, {columns}]"));
        }
        let row = |w: &[usize]| {
            let places = w[0]..w[1];
            let mut row: Vec<(u32, f32)> =
                places.map(|at| (index[at] as u32, data[at] as f32)).collect();
            row.sort_by_key(|(column, _)| *column);
            row
        };
        Ok(PickledRows { rows: starts.windows(2).map(row).collect(), columns })
    }

    fn sizes(&self, place: ValueIndex) -> Result<Vec<usize>, String> {
        let none = "got a shape that is not a tuple of sizes";
        let size = |place: &ValueIndex| match self.0.at(*place) {
            Value::Whole(size @ 0..=0xffff_ffff) => Ok(*size as usize),
            _ => Err(none.to_string()),
        };
        self.0.items(place).ok_or(none)?.iter().map(size).collect()
    }

    /// Returns the shape and values of a NumPy array.
    fn array(&self, place: ValueIndex) -> Result<(Vec<usize>, Vec<f64>), String> {
        let (shape, kind, data) = self.parts(place).ok_or("got an object that is not an array")?;
        let shape = self.sizes(shape)?;
        let numbers: Vec<f64> = match kind {
            b"f8" => each(data, f64::from_le_bytes)?,
            b"f4" => each(data, |bytes| f64::from(f32::from_le_bytes(bytes)))?,
            b"i8" => each(data, |bytes| i64::from_le_bytes(bytes) as f64)?,
            b"i4" => each(data, |bytes| f64::from(i32::from_le_bytes(bytes)))?,
            other => {
                let other = String::from_utf8_lossy(other);
                return Err(format!("got the type {other}, need f8, f4, i8 or i4"));
            }
        };
        let count = shape.iter().try_fold(1usize, |count, size| count.checked_mul(*size));
        match (count == Some(numbers.len()), numbers.iter().find(|x| !x.is_finite())) {
            (true, None) => Ok((shape, numbers)),
            (_, Some(bad)) => Err(format!("got {bad}, need a finite number")),
            _ => Err(format!("{} numbers for the shape {shape:?}", numbers.len())),
        }
    }

    /// Returns the shape, the data type and the bytes of an array.
    fn parts(&self, place: ValueIndex) -> Option<(ValueIndex, &[u8], &[u8])> {
        let (array, _) = self.0.object(place)?;
        let &[_, shape, kind, _, data] = self.0.items(array.state?)? else { return None };
        let (kind, _) = self.0.object(kind)?;
        let kind = self.0.items(kind.arguments)?.first()?;
        Some((shape, self.0.bytes(*kind)?, self.0.bytes(data)?))
    }
}

fn each<const N: usize>(bytes: &[u8], number: impl Fn([u8; N]) -> f64) -> Result<Vec<f64>, String> {
    match bytes.as_chunks() {
        (whole, []) => Ok(whole.iter().map(|bytes| number(*bytes)).collect()),
        _ => Err("got an array that ends within an element".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `{0: [1, 2], 1: [0]}` as a `defaultdict`, as Python pickles it.
    const LISTS: &[u8] = b"\x80\x02ccollections\ndefaultdict\nc__builtin__\nlist\n\x85R(K\x00]\
                           (K\x01K\x02eK\x01]K\x00au.";

    #[test]
    fn a_dictionary_of_lists() {
        assert_eq!(read(LISTS).unwrap().lists().unwrap(), [(0, vec![1, 2]), (1, vec![0])]);
    }

    /// An array as NumPy pickles it: data type, encoded shape and bytes.
    fn array(kind: &[u8; 2], shape: &[u8], numbers: &[u8]) -> Vec<u8> {
        let made = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R";
        let dtype = [b"cnumpy\ndtype\nU\x02", &kind[..], b"K\x00K\x01\x87R"].concat();
        let count = (numbers.len() as u32).to_le_bytes();
        [&made[..], b"(K\x01", shape, &dtype, b"\x89T", &count, numbers, b"tb"].concat()
    }

    fn whole(numbers: &[i32]) -> Vec<u8> {
        let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        array(b"i4", &[b'K', numbers.len() as u8, 0x85], &bytes)
    }

    /// A matrix of two rows and three columns, with nonzeros in the given columns.
    fn sparse(columns: &[i32]) -> Vec<u8> {
        let data: Vec<u8> = [2.0f32, 1.5].iter().flat_map(|x| x.to_le_bytes()).collect();
        let parts = [
            &b"\x80\x02cscipy.sparse.csr\ncsr_matrix\n)\x81}(U\x06_shapeK\x02K\x03\x86U\x06indptr"
                [..],
            &whole(&[0, 2, 2]),
            b"U\x07indices",
            &whole(columns),
            b"U\x04data",
            &array(b"f4", b"K\x02\x85", &data),
            b"ub.",
        ];
        parts.concat()
    }

    #[test]
    fn arrays_with_and_without_zeros() {
        let rows = read(&sparse(&[2, 0])).unwrap().rows().unwrap();
        assert_eq!(rows, PickledRows { rows: vec![vec![(0, 1.5), (2, 2.0)], vec![]], columns: 3 });
        let error = read(&sparse(&[3, 0])).unwrap().rows().unwrap_err();
        assert!(error.contains("do not fit [2, 3]"), "{error}");
        let numbers: Vec<u8> = [0f64, 7.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        let dense = |shape: &[u8]| {
            let bytes = [&b"\x80\x02"[..], &array(b"f8", shape, &numbers), b"."].concat();
            read(&bytes).unwrap().rows()
        };
        let row = PickledRows { rows: vec![vec![(1, 7.0)]], columns: 2 };
        assert_eq!(dense(b"K\x01K\x02\x86").unwrap(), row);
        assert!(dense(b"K\x02K\x02\x86").unwrap_err().contains("2 numbers for the shape"));
    }

    #[test]
    fn what_is_damaged_is_told() {
        for end in 0..LISTS.len() {
            assert!(read(&LISTS[..end]).is_err(), "{end}");
        }
        for (bytes, message) in [
            (&b"\x80\x04."[..], "protocol 4"),
            (b"\x80\x02h\x07.", "undefined memo entry"),
            (b"\x80\x02u.", "empty stack"),
            (b"\x80\x02}K\x01K\x02\x86s.", "empty stack"),
        ] {
            let error = read(bytes).and_then(|pickled| pickled.lists()).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
        // A call is parsed as a name with arguments and never executed; it is not an array.
        let refused = read(b"\x80\x02cos\nsystem\nU\x02ls\x85R.").unwrap();
        assert!(refused.rows().is_err() && refused.lists().is_err());
    }
}
