//! Checkpoints of llama2.c: seven numbers, then the weights of a Llama in single precision; the
//! vocabulary is in a file of its own, or follows the weights.

use crate::checkpoint::{self, Array, Arrays, Dtype};
use crate::gguf::joined_halves;
use crate::vocabulary::{SpecialIds, Splitting, TokenKind, Vocabulary};
use crate::{Error, Result, sizes};
use regard_attention::storage::Bytes;
use serde_json::{Value, json};
use std::path::Path;

/// File with the vocabulary, beside the checkpoint.
pub const TOKENIZER: &str = "tokenizer.bin";
/// Bytes of the header.
const HEADER: usize = 28;
/// First bytes of the versions with a larger header, `ak42` in memory.
const LATER: u32 = 0x616b_3432;
/// Most tokens.
const MOST: usize = 1 << 24;
/// Most bytes of a file with a vocabulary.
const LARGEST: u64 = 1 << 26;

/// A checkpoint.
#[derive(Clone, Debug)]
pub struct Llama2c {
    bytes: Bytes,
    width: usize,
    hidden: usize,
    layers: usize,
    heads: usize,
    keys: usize,
    words: usize,
    positions: usize,
    /// Whether the output layer is the table of embeddings.
    tied: bool,
}

impl Llama2c {
    /// Opens a checkpoint: maps it, and reads its header.
    ///
    /// # Errors
    /// If it is none, or does not have all weights.
    pub fn open(path: &Path) -> Result<Llama2c> {
        let bytes = checkpoint::map_file(path)?;
        Llama2c::parse(bytes).map_err(|message| Error::file(path, message))
    }

    /// Reads the header of a checkpoint that is in memory.
    ///
    /// # Errors
    /// As [`Llama2c::open`].
    pub fn parse(bytes: Bytes) -> Result<Llama2c, String> {
        let no = "is not a checkpoint of llama2.c";
        let Some(header) = bytes.get(..HEADER) else {
            return Err(format!("{no}: it has {} bytes, need at least {HEADER}", bytes.len()));
        };
        let header: Vec<i32> =
            header.as_chunks().0.iter().map(|b| i32::from_le_bytes(*b)).collect();
        if header[0] == LATER as i32 {
            return Err(format!(
                "is of version {} of llama2.c's checkpoints, need the first one, of float32",
                header[1]
            ));
        }
        let names =
            ["dim", "hidden_dim", "n_layers", "n_heads", "n_kv_heads", "vocab_size", "seq_len"];
        let tied = header[5] > 0;
        let named: Vec<(&str, usize)> = names
            .into_iter()
            .zip(&header)
            .map(|(name, n)| match name {
                // A negative number says that the output layer has its own weights.
                "vocab_size" => (name, n.unsigned_abs() as usize),
                _ => (name, usize::try_from(*n).unwrap_or(0)),
            })
            .collect();
        sizes::check(&named).map_err(|e| format!("{no}: {e}"))?;
        let [width, hidden, layers, heads, keys, words, positions] =
            std::array::from_fn(|i| named[i].1);
        if !width.is_multiple_of(2 * heads) || !heads.is_multiple_of(keys) {
            return Err(format!(
                "{no}: got dim {width}, n_heads {heads} and n_kv_heads {keys}, need pairs for each \
                 head, and heads for each key head"
            ));
        }
        let file = Llama2c { bytes, width, hidden, layers, heads, keys, words, positions, tied };
        let need = file.end();
        match need {
            Some(need) if need <= file.bytes.len() => Ok(file),
            _ => Err(format!(
                "{no}: its header needs {} bytes, the file has {}; it may be truncated",
                need.map_or("more".to_string(), |need| need.to_string()),
                file.bytes.len()
            )),
        }
    }

    /// Names, shapes and order of the weights. The angles before the output layer are left out of
    /// it, as `None`.
    fn parts(&self) -> [(Option<&'static str>, [usize; 3]); 14] {
        let Llama2c { width, hidden, layers, words, positions, .. } = *self;
        let keys = width / self.heads * self.keys;
        let angles = [1, positions, width / self.heads / 2];
        [
            (Some("model.embed_tokens"), [1, words, width]),
            (Some("input_layernorm"), [layers, 1, width]),
            (Some("self_attn.q_proj"), [layers, width, width]),
            (Some("self_attn.k_proj"), [layers, keys, width]),
            (Some("self_attn.v_proj"), [layers, keys, width]),
            (Some("self_attn.o_proj"), [layers, width, width]),
            (Some("post_attention_layernorm"), [layers, 1, width]),
            (Some("mlp.gate_proj"), [layers, hidden, width]),
            (Some("mlp.down_proj"), [layers, width, hidden]),
            (Some("mlp.up_proj"), [layers, hidden, width]),
            (Some("model.norm"), [1, 1, width]),
            (None, angles),
            (None, angles),
            (Some("lm_head"), if self.tied { [0; 3] } else { [1, words, width] }),
        ]
    }

    /// First byte after the weights; `None` if there can be no such file.
    fn end(&self) -> Option<usize> {
        self.parts().iter().try_fold(HEADER, |end, (_, sides)| {
            let count = sides.iter().try_fold(4usize, |n, side| n.checked_mul(*side))?;
            end.checked_add(count)
        })
    }

    /// Returns the configuration, with the keys of `config.json`.
    pub fn config(&self) -> Value {
        json!({
            "model_type": "llama",
            "architectures": ["LlamaForCausalLM"],
            "vocab_size": self.words,
            "hidden_size": self.width,
            "intermediate_size": self.hidden,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.keys,
            "max_position_embeddings": self.positions,
            "rms_norm_eps": 1e-5,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0},
            "tie_word_embeddings": self.tied,
            "bos_token_id": 1,
            "eos_token_id": 2,
        })
    }

    /// Returns the weights by their names in the Hugging Face layout.
    pub fn weights(&self) -> Arrays {
        let mut arrays = Arrays::new();
        let mut at = HEADER;
        for (name, [count, rows, columns]) in self.parts() {
            let size = rows * columns * 4;
            for layer in 0..count {
                let bytes = self.bytes.part(at..at + size);
                at += size;
                let Some(name) = name else { continue };
                let heads = match name {
                    "self_attn.q_proj" => Some(self.heads),
                    "self_attn.k_proj" => Some(self.keys),
                    _ => None,
                };
                let bytes = match heads {
                    Some(heads) => joined_halves(&bytes, rows, heads)
                        .expect("the header has whole heads of pairs")
                        .into(),
                    None => bytes,
                };
                let shape = if rows == 1 { vec![columns] } else { vec![rows, columns] };
                let array =
                    Array::in_file(shape, Dtype::F32, bytes).expect("sizes follow from rows");
                let name = match name {
                    "model.embed_tokens" | "model.norm" | "lm_head" => format!("{name}.weight"),
                    name => format!("model.layers.{layer}.{name}.weight"),
                };
                arrays.insert(name, array);
            }
        }
        arrays
    }

    /// Returns the vocabulary that follows the weights; `None` if nothing does.
    ///
    /// # Errors
    /// If something else does.
    pub fn vocabulary(&self) -> Result<Option<Vocabulary>, String> {
        let end = self.end().expect("the header was checked");
        match &self.bytes[end..] {
            [] => Ok(None),
            rest => vocabulary(rest, self.words).map(Some),
        }
    }

    /// Reads the vocabulary from the file beside the checkpoint.
    ///
    /// # Errors
    /// If there is none, or it does not have as many tokens as the model.
    pub fn vocabulary_beside(&self, path: &Path) -> Result<Vocabulary> {
        let bytes = checkpoint::read_file(path, LARGEST)?;
        vocabulary(&bytes, self.words).map_err(|message| Error::file(path, message))
    }
}

/// Reads a vocabulary of llama2.c: the longest token's length, then a score, a length and the bytes
/// of each token.
///
/// # Errors
/// If it is none, or does not have exactly `words` tokens.
pub fn vocabulary(bytes: &[u8], words: usize) -> Result<Vocabulary, String> {
    let no = "is not a vocabulary of llama2.c";
    if words > MOST {
        return Err(format!("{no}: {words} tokens, need at most {MOST}"));
    }
    let mut rest = bytes.get(4..).ok_or_else(|| format!("{no}: it has {} bytes", bytes.len()))?;
    let (mut tokens, mut kinds, mut scores) = (vec![], vec![], vec![]);
    while tokens.len() < words {
        let id = tokens.len();
        let cut = || format!("{no} of {words} tokens: it ends within token {id}");
        let (head, after) = rest.split_at_checked(8).ok_or_else(cut)?;
        let score = f32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        let size = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
        let (token, after) = usize::try_from(size)
            .ok()
            .and_then(|size| after.split_at_checked(size))
            .ok_or_else(cut)?;
        rest = after;
        if !score.is_finite() {
            return Err(format!("{no}: the score of token {id} is {score}"));
        }
        let text = std::str::from_utf8(token);
        let text = text.map_err(|_| format!("{no}: token {id} is not UTF-8"))?;
        let (text, kind) = match id {
            0 => ("<unk>".to_string(), TokenKind::Unknown),
            // Written with newlines around them.
            1 => ("<s>".to_string(), TokenKind::Control),
            2 => ("</s>".to_string(), TokenKind::Control),
            _ if is_byte(text) => (text.to_string(), TokenKind::Byte),
            _ => (text.replace(' ', "▁"), TokenKind::Normal),
        };
        tokens.push(text);
        kinds.push(kind);
        scores.push(score);
    }
    if !rest.is_empty() {
        return Err(format!("{no} of {words} tokens: {} bytes follow the last", rest.len()));
    }
    name_bytes(&mut tokens, &mut kinds);
    Ok(Vocabulary {
        splitting: Splitting::Scores,
        tokens,
        kinds,
        scores,
        merges: vec![],
        special: SpecialIds {
            bos: Some(1),
            eos: Some(2),
            unknown: Some(0),
            ..SpecialIds::default()
        },
        around: [true, false],
        space_before: true,
        chat_template: None,
    })
}

/// Gives bytes their usual names where the first version of the format has characters in their
/// place: each of the 256 after the three special tokens is the character of its byte.
fn name_bytes(tokens: &mut [String], kinds: &mut [TokenKind]) {
    const FIRST: usize = 3;
    let character = |byte: u8| char::from(byte).to_string().replace(' ', "▁");
    let Some(bytes) = tokens.get_mut(FIRST..FIRST + 256) else { return };
    if (0..=255u8).zip(&*bytes).all(|(byte, token)| *token == character(byte)) {
        (0..=255u8).zip(bytes).for_each(|(byte, token)| *token = format!("<0x{byte:02X}>"));
        kinds[FIRST..FIRST + 256].fill(TokenKind::Byte);
    }
}

/// Whether a token stands for a byte: `<0x0A>`.
fn is_byte(text: &str) -> bool {
    let digits = text.strip_prefix("<0x").and_then(|text| text.strip_suffix('>'));
    digits.is_some_and(|digits| digits.len() == 2 && u8::from_str_radix(digits, 16).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first version of the format has the space of the bytes and that of the pieces.
    #[test]
    fn bytes_of_the_first_version_are_named() {
        let special = ["<unk>", "\n<s>\n", "\n</s>\n"].map(str::to_string);
        let bytes = (0..=255u8).map(|byte| char::from(byte).to_string());
        let pieces = [" ", "a", "ü"].map(str::to_string);
        let file = |tokens: &[String]| {
            let mut file = vec![0; 4];
            for token in tokens {
                file.extend(0f32.to_le_bytes());
                file.extend((token.len() as u32).to_le_bytes());
                file.extend(token.as_bytes());
            }
            vocabulary(&file, tokens.len()).unwrap()
        };
        let all: Vec<String> = special.into_iter().chain(bytes).chain(pieces).collect();
        let found = file(&all);
        assert_eq!(found.tokens[3 + 32], "<0x20>");
        assert_eq!(found.tokens[3 + 255], "<0xFF>");
        assert_eq!(found.kinds[3..259], [TokenKind::Byte; 256]);
        assert_eq!(found.tokens[259..], ["▁", "a", "ü"]);
        assert_eq!(found.kinds[259..], [TokenKind::Normal; 3]);
        // Characters alone are none.
        let found = file(&all[..258]);
        assert_eq!((found.tokens[35].as_str(), found.kinds[35]), ("▁", TokenKind::Normal));
    }
}
