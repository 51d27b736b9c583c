//! Thrift's compact protocol, in which the footer and the headers of pages are written.
//!
//! It is strict, so that the crate `parquet` cannot take the same bytes for something else: the
//! fields of a structure come in order and once, and a number fits its type.

use super::Read;

/// Types of fields and of elements of a list.
pub(super) const TRUE: u8 = 1;
pub(super) const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
pub(super) const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
pub(super) const LIST: u8 = 9;
pub(super) const STRUCT: u8 = 12;

/// Most levels of structures and lists in each other; Parquet has seven.
const DEEPEST: usize = 20;

/// Reader of bytes in memory.
pub(super) struct Thrift<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Thrift<'a> {
    pub fn new(bytes: &'a [u8]) -> Thrift<'a> {
        Thrift { bytes, at: 0 }
    }

    /// Number of bytes that were read.
    pub fn at(&self) -> usize {
        self.at
    }

    fn pass(&mut self, count: u64) -> Read<()> {
        let left = self.bytes.len() - self.at;
        match usize::try_from(count).ok().filter(|count| *count <= left) {
            Some(count) => self.at += count,
            None => {
                return Err(format!("need {count} bytes at byte {}, there are {left}", self.at));
            }
        }
        Ok(())
    }

    fn byte(&mut self) -> Read<u8> {
        self.pass(1)?;
        Ok(self.bytes[self.at - 1])
    }

    /// Unsigned number, seven bits a byte.
    pub fn varint(&mut self) -> Read<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            if shift == 63 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(format!("a number before byte {} has more than 64 bits", self.at))
    }

    fn signed(&mut self) -> Read<i64> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Value of a field of the type [`I32`].
    pub fn int(&mut self) -> Read<i32> {
        let value = self.signed()?;
        i32::try_from(value).map_err(|_| format!("{value} has more than 32 bits"))
    }

    /// Number and type of the elements of a list, which follow. There are not more than bytes.
    pub fn list(&mut self) -> Read<(usize, u8)> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.varint()?,
            count => u64::from(count),
        };
        let left = self.bytes.len() - self.at;
        match usize::try_from(count).ok().filter(|count| *count <= left) {
            Some(count) => Ok((count, head & 15)),
            None => Err(format!("a list has {count} elements in {left} bytes")),
        }
    }

    /// Reads a structure. `read` gets the number and the type of each field; it reads the value and
    /// returns true, or returns false to have it skipped.
    pub fn fields(
        &mut self,
        read: &mut dyn FnMut(&mut Thrift<'a>, i64, u8) -> Read<bool>,
    ) -> Read<()> {
        self.fields_within(0, read)
    }

    fn fields_within(
        &mut self,
        depth: usize,
        read: &mut dyn FnMut(&mut Thrift<'a>, i64, u8) -> Read<bool>,
    ) -> Read<()> {
        let mut last = 0;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Ok(());
            }
            let id = match head >> 4 {
                0 => self.signed()?,
                more => last + i64::from(more),
            };
            if id <= last || id > i64::from(i16::MAX) {
                return Err(format!("field {id} of a structure follows field {last}"));
            }
            last = id;
            let kind = head & 15;
            if !read(self, id, kind)? {
                self.skip(kind, depth)?;
            }
        }
    }

    /// Skips the value of a field.
    fn skip(&mut self, kind: u8, depth: usize) -> Read<()> {
        if depth > DEEPEST {
            return Err(format!("more than {DEEPEST} structures are in each other"));
        }
        match kind {
            TRUE | FALSE => Ok(()),
            BYTE => self.pass(1),
            I16 | I32 | I64 => self.varint().map(|_| ()),
            DOUBLE => self.pass(8),
            BINARY => {
                let count = self.varint()?;
                self.pass(count)
            }
            LIST => {
                let (count, kind) = self.list()?;
                self.skip_elements(count, kind, depth + 1)
            }
            STRUCT => self.fields_within(depth + 1, &mut |_, _, _| Ok(false)),
            other => Err(format!("a field has the unknown type {other}")),
        }
    }

    /// Skips the elements of a list.
    pub fn skip_elements(&mut self, count: usize, kind: u8, depth: usize) -> Read<()> {
        (0..count).try_for_each(|_| match kind {
            // In a list, true and false take a byte.
            TRUE | FALSE => self.pass(1),
            kind => self.skip(kind, depth),
        })
    }
}
