//! The pickles that Planetoid was published as: sparse and dense arrays of NumPy, and dictionaries
//! of lists. They are read as data: an object is its class's name, its arguments and its state,
//! and nothing is run.

use std::collections::HashMap;

/// More steps than this make no such file.
const MOST_STEPS: usize = 1 << 22;

/// Where a value is in the list of all.
type Place = usize;

/// A value. Those that hold others hold their places, so that nothing recurses.
#[derive(Clone, Debug)]
enum Value<'a> {
    /// `None`, true, false, a fraction: never needed.
    Other,
    Whole(i64),
    Bytes(&'a [u8]),
    Items(Vec<Place>),
    Pairs(Vec<(Place, Place)>),
    /// The module and the name of a class.
    Class([&'a [u8]; 2]),
    Object {
        class: [&'a [u8]; 2],
        arguments: Place,
        state: Option<Place>,
    },
}

/// What a file holds.
pub struct Pickled<'a> {
    values: Vec<Value<'a>>,
    top: Place,
}

/// Numbers in rows.
#[derive(Debug, PartialEq)]
pub struct Rows {
    /// Of each row, the columns that are not 0, and what stands there.
    pub rows: Vec<Vec<(u32, f32)>>,
    /// How many columns there are.
    pub columns: usize,
}

struct Machine<'a> {
    bytes: &'a [u8],
    at: usize,
    values: Vec<Value<'a>>,
    stack: Vec<Place>,
    marks: Vec<usize>,
    memo: HashMap<usize, Place>,
}

/// Reads a pickle of protocol 2.
pub fn read(bytes: &[u8]) -> Result<Pickled<'_>, String> {
    let (values, stack, marks) = (vec![], vec![], vec![]);
    let mut machine = Machine { bytes, at: 0, values, stack, marks, memo: HashMap::new() };
    for _ in 0..MOST_STEPS {
        if machine.step().map_err(|message| format!("byte {}: {message}", machine.at))? {
            let top = machine.pop()?;
            return Ok(Pickled { values: machine.values, top });
        }
    }
    Err(format!("takes more than {MOST_STEPS} steps"))
}

impl<'a> Machine<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], String> {
        let end = self.at.checked_add(count).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or("the file ends too early")?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn number(&mut self, width: usize) -> Result<usize, String> {
        let bytes = self.take(width)?;
        Ok(bytes.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte)))
    }

    fn line(&mut self) -> Result<&'a [u8], String> {
        let rest = &self.bytes[self.at..];
        let end = rest.iter().position(|byte| *byte == b'\n').ok_or("the file ends too early")?;
        self.at += end + 1;
        Ok(&rest[..end])
    }

    fn push(&mut self, value: Value<'a>) {
        self.stack.push(self.values.len());
        self.values.push(value);
    }

    fn pop(&mut self) -> Result<Place, String> {
        self.stack.pop().ok_or_else(empty)
    }

    fn top(&self) -> Result<Place, String> {
        self.stack.last().copied().ok_or_else(empty)
    }

    fn last(&mut self, count: usize) -> Result<Vec<Place>, String> {
        let rest = self.stack.len().checked_sub(count).ok_or_else(empty)?;
        Ok(self.stack.split_off(rest))
    }

    fn since_mark(&mut self) -> Result<Vec<Place>, String> {
        let mark = self.marks.pop().filter(|mark| *mark <= self.stack.len());
        Ok(self.stack.split_off(mark.ok_or_else(empty)?))
    }

    /// One operation; whether it was the last.
    fn step(&mut self) -> Result<bool, String> {
        match self.take(1)?[0] {
            b'.' => return Ok(true),
            0x80 => match self.take(1)?[0] {
                2 => {}
                other => return Err(format!("protocol {other}, need 2")),
            },
            b'N' | 0x88 | 0x89 => self.push(Value::Other),
            b'G' => {
                self.take(8)?;
                self.push(Value::Other);
            }
            b'J' => {
                let number = self.number(4)? as u32;
                self.push(Value::Whole(i64::from(number.cast_signed())));
            }
            operation @ (b'K' | b'M') => {
                let number = self.number(if operation == b'K' { 1 } else { 2 })?;
                self.push(Value::Whole(number as i64));
            }
            operation @ (b'U' | b'T') => {
                let count = self.number(if operation == b'U' { 1 } else { 4 })?;
                let bytes = self.take(count)?;
                self.push(Value::Bytes(bytes));
            }
            b')' | b']' => self.push(Value::Items(vec![])),
            b'}' => self.push(Value::Pairs(vec![])),
            operation @ 0x85..=0x87 => {
                let items = self.last(usize::from(operation - 0x84))?;
                self.push(Value::Items(items));
            }
            b't' => {
                let items = self.since_mark()?;
                self.push(Value::Items(items));
            }
            b'a' => {
                let items = self.last(1)?;
                self.append(&items)?;
            }
            b'e' => {
                let items = self.since_mark()?;
                self.append(&items)?;
            }
            b's' => {
                let items = self.last(2)?;
                self.set(&items)?;
            }
            b'u' => {
                let items = self.since_mark()?;
                self.set(&items)?;
            }
            b'(' => self.marks.push(self.stack.len()),
            operation @ (b'q' | b'r') => {
                let key = self.number(if operation == b'q' { 1 } else { 4 })?;
                self.memo.insert(key, self.top()?);
            }
            operation @ (b'h' | b'j') => {
                let key = self.number(if operation == b'h' { 1 } else { 4 })?;
                let place = self.memo.get(&key).copied();
                self.stack.push(place.ok_or("recalls what it never kept")?);
            }
            b'c' => {
                let class = [self.line()?, self.line()?];
                self.push(Value::Class(class));
            }
            // To call a class, and to make an object of one: neither is done, both are noted.
            b'R' | 0x81 => {
                let (arguments, class) = (self.pop()?, self.pop()?);
                let Value::Class(class) = self.values[class] else {
                    return Err("calls what is no class".into());
                };
                // A dictionary with a default is a dictionary.
                self.push(match class {
                    [b"collections", b"defaultdict"] => Value::Pairs(vec![]),
                    _ => Value::Object { class, arguments, state: None },
                });
            }
            b'b' => {
                let state = self.pop()?;
                let top = self.top()?;
                match &mut self.values[top] {
                    Value::Object { state: place, .. } => *place = Some(state),
                    _ => return Err("changes what is no object".into()),
                }
            }
            other => return Err(format!("operation 0x{other:02x}, which these files do not have")),
        }
        Ok(false)
    }

    fn append(&mut self, more: &[Place]) -> Result<(), String> {
        let list = self.top()?;
        match &mut self.values[list] {
            Value::Items(items) => items.extend(more),
            _ => return Err("appends to what is no list".into()),
        }
        Ok(())
    }

    fn set(&mut self, more: &[Place]) -> Result<(), String> {
        let dict = self.top()?;
        match (&mut self.values[dict], more.as_chunks::<2>()) {
            (Value::Pairs(pairs), (more, [])) => pairs.extend(more.iter().map(|[k, v]| (*k, *v))),
            _ => return Err("sets items that are no pairs".into()),
        }
        Ok(())
    }
}

fn empty() -> String {
    "takes from an empty stack".into()
}

impl Pickled<'_> {
    /// A dictionary of lists of numbers.
    pub fn lists(&self) -> Result<Vec<(usize, Vec<usize>)>, String> {
        let Value::Pairs(pairs) = &self.values[self.top] else {
            return Err("holds no dictionary".into());
        };
        let number = |place: &Place| match self.values[*place] {
            Value::Whole(number) => usize::try_from(number).map_err(|_| format!("node {number}")),
            _ => Err("a node that is no number".to_string()),
        };
        let list = |(node, others): &(Place, Place)| match &self.values[*others] {
            Value::Items(items) => {
                Ok((number(node)?, items.iter().map(number).collect::<Result<_, _>>()?))
            }
            _ => Err("a node's neighbours are no list".to_string()),
        };
        pairs.iter().map(list).collect()
    }

    /// A sparse matrix of SciPy in CSR form, or a dense array with two axes.
    pub fn rows(&self) -> Result<Rows, String> {
        match &self.values[self.top] {
            Value::Object { class: [_, b"csr_matrix"], state: Some(state), .. } => {
                self.sparse(*state)
            }
            Value::Object { .. } => {
                let (shape, numbers) = self.array(self.top)?;
                let &[rows, columns] = &shape[..] else {
                    return Err(format!("an array with {} axes, need 2", shape.len()));
                };
                let there = |row: &[f64]| {
                    let each = row.iter().enumerate().filter(|(_, x)| **x != 0.0);
                    each.map(|(column, x)| (column as u32, *x as f32)).collect()
                };
                let rows = numbers.chunks_exact(columns.max(1)).take(rows).map(there).collect();
                Ok(Rows { rows, columns })
            }
            _ => Err("holds no array".into()),
        }
    }

    fn sparse(&self, state: Place) -> Result<Rows, String> {
        let Value::Pairs(pairs) = &self.values[state] else {
            return Err("a sparse matrix without its parts".into());
        };
        let part = |name: &str| {
            let is = |(key, _): &&(Place, Place)| matches!(self.values[*key], Value::Bytes(bytes) if bytes == name.as_bytes());
            let found = pairs.iter().find(is).map(|(_, value)| *value);
            found.ok_or_else(|| format!("a sparse matrix without {name}"))
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
        Ok(Rows { rows: starts.windows(2).map(row).collect(), columns })
    }

    fn sizes(&self, place: Place) -> Result<Vec<usize>, String> {
        let Value::Items(items) = &self.values[place] else {
            return Err("a shape that is none".into());
        };
        let size = |place: &Place| match self.values[*place] {
            Value::Whole(size @ 0..=0xffff_ffff) => Ok(size as usize),
            _ => Err("a shape that is none".to_string()),
        };
        items.iter().map(size).collect()
    }

    /// The shape and the numbers of an array of NumPy.
    fn array(&self, place: Place) -> Result<(Vec<usize>, Vec<f64>), String> {
        let none = || "an array that is none".to_string();
        let Value::Object { state: Some(state), .. } = self.values[place] else {
            return Err(none());
        };
        let Value::Items(parts) = &self.values[state] else { return Err(none()) };
        let &[_, shape, kind, _, data] = &parts[..] else { return Err(none()) };
        let (shape, Value::Bytes(data)) = (self.sizes(shape)?, &self.values[data]) else {
            return Err(none());
        };
        let Value::Object { arguments, .. } = self.values[kind] else { return Err(none()) };
        let Value::Items(arguments) = &self.values[arguments] else { return Err(none()) };
        let kind = arguments.first().map(|place| &self.values[*place]);
        let Some(Value::Bytes(kind)) = kind else { return Err(none()) };
        let numbers: Vec<f64> = match *kind {
            b"f8" => each(data, f64::from_le_bytes)?,
            b"f4" => each(data, |bytes| f64::from(f32::from_le_bytes(bytes)))?,
            b"i8" => each(data, |bytes| i64::from_le_bytes(bytes) as f64)?,
            b"i4" => each(data, |bytes| f64::from(i32::from_le_bytes(bytes)))?,
            other => {
                let other = String::from_utf8_lossy(other);
                return Err(format!("numbers of the type {other}, need f8, f4, i8 or i4"));
            }
        };
        let count = shape.iter().try_fold(1usize, |count, size| count.checked_mul(*size));
        match (count == Some(numbers.len()), numbers.iter().find(|x| !x.is_finite())) {
            (true, None) => Ok((shape, numbers)),
            (_, Some(bad)) => Err(format!("got {bad}, need a number")),
            _ => Err(format!("{} numbers for the shape {shape:?}", numbers.len())),
        }
    }
}

fn each<const N: usize>(bytes: &[u8], number: impl Fn([u8; N]) -> f64) -> Result<Vec<f64>, String> {
    match bytes.as_chunks() {
        (whole, []) => Ok(whole.iter().map(|bytes| number(*bytes)).collect()),
        _ => Err("an array that ends within a number".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `{0: [1, 2], 1: [0]}` and its like, as Python writes it.
    const LISTS: &[u8] = b"\x80\x02ccollections\ndefaultdict\nc__builtin__\nlist\n\x85R(K\x00]\
                           (K\x01K\x02eK\x01]K\x00au.";

    #[test]
    fn a_dictionary_of_lists() {
        assert_eq!(read(LISTS).unwrap().lists().unwrap(), [(0, vec![1, 2]), (1, vec![0])]);
    }

    /// An array as NumPy writes it: `kind`, the shape as it stands in the pickle, the numbers.
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

    /// Two rows and three columns, with the columns given.
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
        assert_eq!(rows, Rows { rows: vec![vec![(0, 1.5), (2, 2.0)], vec![]], columns: 3 });
        let error = read(&sparse(&[3, 0])).unwrap().rows().unwrap_err();
        assert!(error.contains("do not fit [2, 3]"), "{error}");
        let numbers: Vec<u8> = [0f64, 7.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        let dense = |shape: &[u8]| {
            let bytes = [&b"\x80\x02"[..], &array(b"f8", shape, &numbers), b"."].concat();
            read(&bytes).unwrap().rows()
        };
        let row = Rows { rows: vec![vec![(1, 7.0)]], columns: 2 };
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
            (b"\x80\x02h\x07.", "never kept"),
            (b"\x80\x02u.", "empty stack"),
            (b"\x80\x02}K\x01K\x02\x86s.", "empty stack"),
        ] {
            let error = read(bytes).and_then(|pickled| pickled.lists()).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
        // What would run something is a name and its arguments, and no array.
        let refused = read(b"\x80\x02cos\nsystem\nU\x02ls\x85R.").unwrap();
        assert!(refused.rows().is_err() && refused.lists().is_err());
    }
}
