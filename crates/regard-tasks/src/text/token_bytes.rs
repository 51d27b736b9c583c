//! The bytes that each token adds to a text.

use std::collections::HashMap;

use regard_models::Result;
use serde_json::Value;

use super::Tokenizer;

/// A token before others: what they add after it does not depend on the beginning of a text.
const BEFORE: &str = "a";

/// What the tokens of a vocabulary add to a text.
#[derive(Clone, Debug, Default)]
pub struct TokenBytes {
    /// Bytes by id: within a text, so that `▁the` is ` the`. A token may end within a character.
    /// Empty for special tokens, and for ids that do not exist or add nothing.
    pub bytes: Vec<Vec<u8>>,
    /// Whether a token at the very beginning of a text loses the space it begins with.
    pub strips: bool,
}

impl Tokenizer {
    /// Returns the bytes that each token adds to a text.
    pub fn token_bytes(&self) -> Result<TokenBytes> {
        let decoder = serde_json::to_value(self.inner().get_decoder()).unwrap_or_default();
        let steps = steps(&decoder);
        let special = self.special();
        let special = [special.pad, special.bos, special.eos, special.unk];
        let (letters, pieces) = (byte_letters(), steps.contains(&"ByteFallback"));
        let before = self.join(&[BEFORE.into()])?;
        let bytes_of = |id: u32| -> Result<Vec<u8>> {
            let token = self.token(id).filter(|_| self.is_text(id) && !special.contains(&Some(id)));
            let Some(token) = token else { return Ok(vec![]) };
            if steps.contains(&"ByteLevel") {
                let bytes: Option<Vec<u8>> =
                    token.chars().map(|letter| letters.get(&letter).copied()).collect();
                return Ok(bytes.unwrap_or_else(|| token.into_bytes()));
            }
            if let Some(byte) = byte_piece(&token).filter(|_| pieces) {
                return Ok(vec![byte]);
            }
            let both = self.join(&[BEFORE.into(), token])?;
            Ok(both.strip_prefix(&before).unwrap_or_default().as_bytes().to_vec())
        };
        let bytes = (0..self.size() as u32).map(bytes_of).collect::<Result<Vec<_>>>()?;
        let spaced = bytes.iter().position(|bytes| bytes.len() > 1 && bytes[0] == b' ');
        let strips = match spaced {
            Some(id) => self.decode(&[id as u32])?.as_bytes() == &bytes[id][1..],
            None => false,
        };
        Ok(TokenBytes { bytes, strips })
    }
}

/// Returns the types of the steps of a decoder.
fn steps(decoder: &Value) -> Vec<&str> {
    let nested = decoder["decoders"].as_array().into_iter().flatten().flat_map(steps);
    decoder["type"].as_str().into_iter().chain(nested).collect()
}

/// Returns the byte of a piece such as `<0x0A>`.
fn byte_piece(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>')?;
    u8::from_str_radix(digits, 16).ok().filter(|_| digits.len() == 2)
}

/// Returns the bytes by the letters that byte-level vocabularies write for them: printable ones for
/// themselves, the others from U+0100 on.
fn byte_letters() -> HashMap<char, u8> {
    let mut next = 0x100;
    let mut letter = |byte: u8| match byte {
        b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff => char::from(byte),
        _ => {
            next += 1;
            char::from_u32(next - 1).expect("letters follow U+0100")
        }
    };
    (0..=u8::MAX).map(|byte| (letter(byte), byte)).collect()
}
