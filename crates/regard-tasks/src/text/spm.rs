//! Reader of SentencePiece models, which are Protocol Buffers messages.
//!
//! Only what encoding needs is read: pieces, scores and normalisation.

use regard_models::{Error, Result};

/// Type of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// A piece of text.
    Normal,
    /// The unknown token.
    Unknown,
    /// A control token such as `</s>`, which no text produces.
    Control,
    /// A user-defined piece, which is never split.
    User,
    /// Listed, but not used.
    Unused,
}

/// An entry of the vocabulary.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// Text, with `▁` for a space.
    pub text: String,
    /// Log-probability.
    pub score: f32,
    /// Type of the piece.
    pub used: Use,
}

/// A Unigram model of SentencePiece.
#[derive(Clone, Debug, PartialEq)]
pub struct SentencePiece {
    /// Vocabulary, in the order of its ids.
    pub pieces: Vec<Piece>,
    /// Precompiled character map of the normaliser; empty if there is none.
    pub characters: Vec<u8>,
    /// Whether a space is prepended to a text.
    pub space_in_front: bool,
    /// Whether runs of spaces become one, and spaces at the ends are removed.
    pub single_spaces: bool,
    /// Whether no piece crosses a space.
    pub within_words: bool,
}

impl SentencePiece {
    /// Reads the contents of `source.spm` or `spiece.model`.
    pub fn read(bytes: &[u8]) -> Result<SentencePiece> {
        let mut model = SentencePiece {
            pieces: Vec::new(),
            characters: Vec::new(),
            space_in_front: true,
            single_spaces: true,
            within_words: true,
        };
        for field in Fields(bytes) {
            match field? {
                (1, Value::Bytes(piece)) => model.pieces.push(read_piece(piece)?),
                (2, Value::Bytes(trainer)) => model.read_trainer(trainer)?,
                (3, Value::Bytes(normaliser)) => model.read_normaliser(normaliser)?,
                _ => {}
            }
        }
        let unknown = model.pieces.iter().filter(|piece| piece.used == Use::Unknown).count();
        if unknown != 1 {
            return Err(malformed(&format!("{unknown} unknown tokens, need one")));
        }
        if !model.characters.is_empty() {
            super::charsmap::check(&model.characters)?;
        }
        Ok(model)
    }

    fn read_trainer(&mut self, bytes: &[u8]) -> Result<()> {
        for field in Fields(bytes) {
            match field? {
                (3, Value::Number(1)) => {}
                (3, Value::Number(kind)) => {
                    let kinds = ["none", "Unigram", "BPE", "words", "characters"];
                    let kind = kinds.get(kind as usize).unwrap_or(&"unknown");
                    return Err(Error::invalid(format!(
                        "got a SentencePiece model of kind {kind}, need Unigram. \
                         Convert it to a tokenizer.json"
                    )));
                }
                (22, Value::Number(within)) => self.within_words = within != 0,
                _ => {}
            }
        }
        Ok(())
    }

    fn read_normaliser(&mut self, bytes: &[u8]) -> Result<()> {
        for field in Fields(bytes) {
            match field? {
                (2, Value::Bytes(table)) => self.characters = table.to_vec(),
                (3, Value::Number(on)) => self.space_in_front = on != 0,
                (4, Value::Number(on)) => self.single_spaces = on != 0,
                _ => {}
            }
        }
        Ok(())
    }
}

fn read_piece(bytes: &[u8]) -> Result<Piece> {
    let (mut text, mut score, mut used) = (None, 0.0, Use::Normal);
    for field in Fields(bytes) {
        match field? {
            (1, Value::Bytes(bytes)) => {
                let valid = String::from_utf8(bytes.to_vec());
                text = Some(valid.map_err(|_| malformed("a piece is not UTF-8"))?);
            }
            (2, Value::Fixed(bits)) => score = f32::from_bits(bits),
            (3, Value::Number(kind)) => {
                used = match kind {
                    1 => Use::Normal,
                    2 => Use::Unknown,
                    3 => Use::Control,
                    4 => Use::User,
                    5 => Use::Unused,
                    6 => return Err(Error::invalid("byte pieces are not supported")),
                    _ => return Err(malformed(&format!("a piece of type {kind}"))),
                }
            }
            _ => {}
        }
    }
    let text = text.filter(|text| !text.is_empty()).ok_or_else(|| malformed("an empty piece"))?;
    if !score.is_finite() {
        return Err(malformed(&format!("the score of {text:?} is {score}")));
    }
    Ok(Piece { text, score, used })
}

pub(super) fn malformed(what: &str) -> Error {
    Error::invalid(format!("not a SentencePiece model, or a broken one: {what}"))
}

/// A value of a message, by its wire type.
enum Value<'a> {
    Number(u64),
    Fixed(u32),
    Bytes(&'a [u8]),
    /// Eight bytes; no field of this type is used.
    Long,
}

/// Iterator over the fields of a message, in the order of the file; it stops after an error.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let (taken, rest) =
            self.0.split_at_checked(n).ok_or_else(|| malformed("it ends within a field"))?;
        self.0 = rest;
        Ok(taken)
    }

    /// Reads a varint: seven bits per byte, the lowest first; the high bit says that more follow.
    fn number(&mut self) -> Result<u64> {
        let mut number = 0;
        for place in 0..10 {
            let byte = self.take(1)?[0];
            // The tenth byte has room for one bit.
            if place == 9 && byte > 1 {
                break;
            }
            number |= u64::from(byte & 0x7f) << (7 * place);
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(malformed("a number of more than 64 bits"))
    }

    fn field(&mut self) -> Result<(u64, Value<'a>)> {
        let tag = self.number()?;
        let value = match tag & 7 {
            0 => Value::Number(self.number()?),
            1 => self.take(8).map(|_| Value::Long)?,
            2 => {
                let length = self.number()?;
                let length = usize::try_from(length).map_err(|_| malformed("a field too long"))?;
                Value::Bytes(self.take(length)?)
            }
            5 => {
                let bytes = self.take(4)?;
                Value::Fixed(u32::from_le_bytes(bytes.try_into().expect("four bytes")))
            }
            kind => return Err(malformed(&format!("a field of the kind {kind}"))),
        };
        match tag >> 3 {
            0 => Err(malformed("a field without a number")),
            number => Ok((number, value)),
        }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Value<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        assert!(number < 16 && bytes.len() < 128, "what one byte can say");
        [&[number << 3 | 2, bytes.len() as u8], bytes].concat()
    }

    fn piece(text: &str, score: f32, kind: u8) -> Vec<u8> {
        let score = [&[2 << 3 | 5], score.to_le_bytes().as_slice()].concat();
        field(1, &[field(1, text.as_bytes()), score, vec![3 << 3, kind]].concat())
    }

    /// A model of pieces with their scores and types.
    pub fn model(pieces: &[(&str, f32, u8)]) -> Vec<u8> {
        pieces.iter().flat_map(|&(text, score, kind)| piece(text, score, kind)).collect()
    }

    fn error(bytes: &[u8]) -> String {
        SentencePiece::read(bytes).unwrap_err().to_string()
    }

    #[test]
    fn pieces_and_options_are_read() {
        let mut bytes = model(&[("<unk>", 0.0, 2), ("</s>", 0.0, 3), ("▁a", -1.5, 1)]);
        // Options other than the defaults, and an unknown field.
        bytes.extend(field(3, &[3 << 3, 0, 4 << 3, 0, 15 << 3 | 1, 1, 2, 3, 4, 5, 6, 7, 8]));
        bytes.extend(field(2, &[0xb0, 0x01, 0]));
        let read = SentencePiece::read(&bytes).unwrap();
        let a = Piece { text: "▁a".into(), score: -1.5, used: Use::Normal };
        assert_eq!((read.pieces.len(), &read.pieces[2]), (3, &a));
        assert_eq!(read.pieces[1].used, Use::Control);
        assert!(!read.space_in_front && !read.single_spaces && !read.within_words);
    }

    #[test]
    fn what_is_malformed_is_refused() {
        let good = model(&[("<unk>", 0.0, 2), ("▁a", -1.5, 1)]);
        assert!(SentencePiece::read(&good).is_ok());
        for (bytes, message) in [
            (vec![], "0 unknown tokens"),
            ([good.clone(), good.clone()].concat(), "2 unknown tokens"),
            ([good.clone(), model(&[("x", f32::NAN, 1)])].concat(), "score of \"x\" is NaN"),
            ([good.clone(), model(&[("", 0.0, 1)])].concat(), "an empty piece"),
            ([good.clone(), model(&[("x", 0.0, 9)])].concat(), "type 9"),
            ([good.clone(), field(1, &field(1, b"\xff"))].concat(), "not UTF-8"),
            ([good.clone(), vec![0xff; 11]].concat(), "more than 64 bits"),
            ([good.clone(), vec![1 << 3 | 3]].concat(), "of the kind 3"),
            ([good.clone(), vec![0, 0]].concat(), "without a number"),
            ([good.clone(), field(2, &[3 << 3, 2])].concat(), "kind BPE"),
        ] {
            assert!(error(&bytes).contains(message), "{} has no {message}", error(&bytes));
        }
        // Cut anywhere, it is an error or a shorter list, never a panic.
        for end in 0..good.len() {
            let _ = SentencePiece::read(&good[..end]);
        }
    }
}
