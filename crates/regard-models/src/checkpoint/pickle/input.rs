//! Bytes that are read from the front.

/// What is left to read. Nothing is copied, so that a count in a file, however large, makes
/// nothing grow: either so many bytes are there or it is an error.
#[derive(Clone, Copy)]
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    /// What starts at an offset.
    pub fn at(bytes: &'a [u8], offset: u64) -> Result<Input<'a>, String> {
        let mut input = Input(bytes);
        input.take(offset)?;
        Ok(input)
    }

    /// The next bytes, so many.
    pub fn take(&mut self, count: u64) -> Result<&'a [u8], String> {
        let split = usize::try_from(count).ok().and_then(|count| self.0.split_at_checked(count));
        let (taken, rest) = split.ok_or("ends too early; it may be truncated or damaged")?;
        self.0 = rest;
        Ok(taken)
    }

    /// The next byte.
    pub fn byte(&mut self) -> Result<u8, String> {
        Ok(self.take(1)?[0])
    }

    /// The next number, without a sign, of at most eight bytes.
    pub fn number(&mut self, width: u64) -> Result<u64, String> {
        self.take(width).map(little)
    }

    /// The next bytes, whose number of so many bytes stands before them.
    pub fn counted(&mut self, width: u64) -> Result<&'a [u8], String> {
        let count = self.number(width)?;
        self.take(count)
    }

    /// The next line, without its end.
    pub fn line(&mut self) -> Result<&'a [u8], String> {
        let end = self.0.iter().position(|byte| *byte == b'\n').unwrap_or(self.0.len());
        let line = self.take(end as u64)?;
        self.byte()?;
        Ok(line)
    }
}

/// A number of at most eight bytes, the lowest first.
pub fn little(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
