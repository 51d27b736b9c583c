//! Special tokens: padding, beginning, end, unknown, and those of BERT and similar models.

use regard_models::{Error, Result};

use super::Tokenizer;

/// Special tokens of every tokenizer that is trained here; the index is the id.
pub const NAMES: [&str; 4] = ["<pad>", "<s>", "</s>", "<unk>"];

/// [`NAMES`] with their keys in `tokenizer_config.json`.
pub(super) const OWN: [(&str, &str); 4] = [
    ("pad_token", NAMES[0]),
    ("bos_token", NAMES[1]),
    ("eos_token", NAMES[2]),
    ("unk_token", NAMES[3]),
];

/// Special tokens of WordPiece vocabularies that are trained here.
pub(super) const OF_BERT: [(&str, &str); 5] = [
    ("pad_token", "[PAD]"),
    ("unk_token", "[UNK]"),
    ("cls_token", "[CLS]"),
    ("sep_token", "[SEP]"),
    ("mask_token", "[MASK]"),
];

/// Special tokens of byte-level vocabularies that are trained here.
pub(super) const OF_BYTES: [(&str, &str); 5] = [
    ("pad_token", NAMES[0]),
    ("bos_token", NAMES[1]),
    ("eos_token", NAMES[2]),
    ("unk_token", NAMES[3]),
    ("mask_token", "<mask>"),
];

/// Keys of `tokenizer_config.json`, in the order of [`NAMES`], then those that only published
/// vocabularies have.
pub(super) const KEYS: [&str; 7] =
    ["pad_token", "bos_token", "eos_token", "unk_token", "cls_token", "sep_token", "mask_token"];

/// Usual names in published vocabularies, in the order of [`KEYS`].
const KNOWN: [&[&str]; 7] = [
    &["<pad>", "[PAD]", "<PAD>", "<blank>", "<|pad|>"],
    &["<s>", "<bos>", "[CLS]", "[BOS]", "<cls>", "<|startoftext|>", "<|endoftext|>"],
    &["</s>", "<eos>", "[SEP]", "[EOS]", "<sep>", "<|endoftext|>"],
    &["<unk>", "[UNK]", "<UNK>", "<|unk|>"],
    &["[CLS]", "<cls>"],
    &["[SEP]", "<sep>"],
    &["[MASK]", "<mask>"],
];

/// Ids of the special tokens of a tokenizer; `None` for those that it lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Special {
    /// Padding.
    pub pad: Option<u32>,
    /// Beginning of a sequence.
    pub bos: Option<u32>,
    /// End of a sequence.
    pub eos: Option<u32>,
    /// Unknown token.
    pub unk: Option<u32>,
    /// Classification token, whose hidden state represents the sequence.
    pub cls: Option<u32>,
    /// Separator between two texts and after them.
    pub sep: Option<u32>,
    /// Masked token, to be predicted.
    pub mask: Option<u32>,
}

impl Special {
    /// Finds the tokens named in the tokenizer's configuration, else those with the usual names.
    pub(super) fn of(tokenizer: &Tokenizer) -> Special {
        let find = |i: usize| {
            let configured =
                tokenizer.configured_token(KEYS[i]).and_then(|name| tokenizer.id(name));
            configured.or_else(|| KNOWN[i].iter().find_map(|name| tokenizer.id(name)))
        };
        Special {
            pad: find(0),
            bos: find(1),
            eos: find(2),
            unk: find(3),
            cls: find(4),
            sep: find(5),
            mask: find(6),
        }
    }

    /// Returns the padding id, or an error that names what the vocabulary lacks.
    pub fn need_pad(&self) -> Result<u32> {
        need(self.pad, 0)
    }

    /// Returns the id of the beginning of a sequence, or an error that names what is missing.
    pub fn need_bos(&self) -> Result<u32> {
        need(self.bos, 1)
    }

    /// Returns the id of the end of a sequence, or an error that names what is missing.
    pub fn need_eos(&self) -> Result<u32> {
        need(self.eos, 2)
    }

    /// Returns the id of the unknown token, or an error that names what is missing.
    pub fn need_unk(&self) -> Result<u32> {
        need(self.unk, 3)
    }

    /// Returns the id of the mask token, or an error that names what is missing.
    pub fn need_mask(&self) -> Result<u32> {
        need(self.mask, 6)
    }
}

fn need(id: Option<u32>, which: usize) -> Result<u32> {
    id.ok_or_else(|| {
        Error::invalid(format!(
            "the tokenizer has no {}: none of {} is in its vocabulary. Set `{}` in \
             tokenizer_config.json, or train a tokenizer with `regard tokenizer`",
            KEYS[which].replace('_', " "),
            KNOWN[which].join(" "),
            KEYS[which],
        ))
    })
}
