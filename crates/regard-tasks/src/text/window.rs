//! Texts that are longer than a model's context: truncated, or split into overlapping windows.

use regard_models::{Error, Result};

use super::{Encoding, Tokenizer};

impl Tokenizer {
    /// Tokenises a text or a pair with special tokens, and truncates to `length` tokens. Of a pair
    /// the longer text is truncated, and both are when neither fits in half the room.
    pub fn encode_within(&self, text: &str, pair: Option<&str>, length: usize) -> Result<Encoding> {
        let whole = self.encode_special(text, pair)?;
        let room = room(&whole, length)?;
        let [first, second] = lengths(&whole);
        if first + second <= room {
            return Ok(whole);
        }
        let (short, long) = (first.min(second), first.max(second));
        let (short, long) = match short + short.max(room.saturating_sub(short)) {
            both if both <= room => (short, long.min(room - short)),
            _ => (room / 2, room - room / 2),
        };
        let [first, second] = if first > second { [long, short] } else { [short, long] };
        Ok(whole.part([0..first, 0..second]))
    }

    /// Splits a long text into windows of at most `length` tokens, special tokens included;
    /// consecutive windows share `stride` tokens of the text. Of a pair, such as a question and a
    /// document, the second text is split and the first is whole in every window.
    pub fn windows(
        &self,
        text: &str,
        pair: Option<&str>,
        length: usize,
        stride: usize,
    ) -> Result<Vec<Encoding>> {
        let whole = self.encode_special(text, pair)?;
        let of = usize::from(pair.is_some());
        let lengths = lengths(&whole);
        let room = room(&whole, length)?.saturating_sub(lengths[1 - of]);
        if lengths[of] <= room {
            return Ok(vec![whole]);
        }
        if room <= stride {
            return Err(Error::invalid(format!(
                "window length (max_seq_len): got {length} tokens, which leaves {room} for the \
                 text after the question and special tokens; need more than {stride}, the overlap \
                 of two windows (doc_stride)"
            )));
        }
        let mut windows = Vec::new();
        for start in (0..lengths[of]).step_by(room - stride) {
            let end = lengths[of].min(start + room);
            let mut kept = [0..lengths[0], 0..lengths[1]];
            kept[of] = start..end;
            windows.push(whole.part(kept));
            if end == lengths[of] {
                break;
            }
        }
        Ok(windows)
    }
}

/// Number of tokens of each text.
fn lengths(whole: &Encoding) -> [usize; 2] {
    [0, 1].map(|of| whole.texts.iter().filter(|text| **text == Some(of)).count())
}

/// Number of tokens that fit beside the special tokens.
fn room(whole: &Encoding, length: usize) -> Result<usize> {
    let special = whole.texts.iter().filter(|text| text.is_none()).count();
    length.checked_sub(special).ok_or_else(|| {
        Error::invalid(format!(
            "maximum length: got {length} tokens, need at least {special}, the number of special \
             tokens"
        ))
    })
}
