//! A byte slice that is read from the front.

/// Bytes not yet read. Nothing is copied or allocated, so a count in a file, however large, is
/// harmless: either that many bytes exist or it is an error.
#[derive(Clone, Copy)]
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    /// Starts at an offset.
    pub fn at(bytes: &'a [u8], offset: u64) -> Result<Input<'a>, String> {
        let mut input = Input(bytes);
        input.take(offset)?;
        Ok(input)
    }

    /// Takes the next `count` bytes.
    pub fn take(&mut self, count: u64) -> Result<&'a [u8], String> {
        let split = usize::try_from(count).ok().and_then(|count| self.0.split_at_checked(count));
        let (taken, rest) = split.ok_or("ends too early; it may be truncated or damaged")?;
        self.0 = rest;
        Ok(taken)
    }

    /// Takes the next byte.
    pub fn byte(&mut self) -> Result<u8, String> {
        Ok(self.take(1)?[0])
    }

    /// Takes an unsigned little-endian integer of `width` bytes, at most eight.
    pub fn number(&mut self, width: u64) -> Result<u64, String> {
        self.take(width).map(little)
    }

    /// Takes a byte string that is preceded by its length, an integer of `width` bytes.
    pub fn counted(&mut self, width: u64) -> Result<&'a [u8], String> {
        let count = self.number(width)?;
        self.take(count)
    }

    /// Takes the next line, without its newline.
    pub fn line(&mut self) -> Result<&'a [u8], String> {
        let end = self.0.iter().position(|byte| *byte == b'\n').unwrap_or(self.0.len());
        let line = self.take(end as u64)?;
        self.byte()?;
        Ok(line)
    }
}

/// Decodes an unsigned little-endian integer of at most eight bytes.
pub fn little(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
