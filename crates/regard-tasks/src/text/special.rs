//! The tokens that are not text: padding, beginning, end, unknown, and those of BERT and its kind.

use regard_models::{Error, Result};

use super::Tokenizer;

/// The special tokens of every tokenizer that is trained here; a token's place is its id.
pub const NAMES: [&str; 4] = ["<pad>", "<s>", "</s>", "<unk>"];

/// The same with their keys in `tokenizer_config.json`.
pub(super) const OWN: [(&str, &str); 4] = [
    ("pad_token", NAMES[0]),
    ("bos_token", NAMES[1]),
    ("eos_token", NAMES[2]),
    ("unk_token", NAMES[3]),
];

/// Those of vocabularies that are trained here in the manner of BERT.
pub(super) const OF_BERT: [(&str, &str); 5] = [
    ("pad_token", "[PAD]"),
    ("unk_token", "[UNK]"),
    ("cls_token", "[CLS]"),
    ("sep_token", "[SEP]"),
    ("mask_token", "[MASK]"),
];

/// Those of vocabularies of bytes that are trained here.
pub(super) const OF_BYTES: [(&str, &str); 5] = [
    ("pad_token", NAMES[0]),
    ("bos_token", NAMES[1]),
    ("eos_token", NAMES[2]),
    ("unk_token", NAMES[3]),
    ("mask_token", "<mask>"),
];

/// How `tokenizer_config.json` calls them, in the same order, and those that only other people's
/// vocabularies have.
pub(super) const KEYS: [&str; 7] =
    ["pad_token", "bos_token", "eos_token", "unk_token", "cls_token", "sep_token", "mask_token"];

/// The names under which other people's vocabularies have them, in the same order.
const KNOWN: [&[&str]; 7] = [
    &["<pad>", "[PAD]", "<PAD>", "<blank>", "<|pad|>"],
    &["<s>", "<bos>", "[CLS]", "[BOS]", "<cls>", "<|startoftext|>", "<|endoftext|>"],
    &["</s>", "<eos>", "[SEP]", "[EOS]", "<sep>", "<|endoftext|>"],
    &["<unk>", "[UNK]", "<UNK>", "<|unk|>"],
    &["[CLS]", "<cls>"],
    &["[SEP]", "<sep>"],
    &["[MASK]", "<mask>"],
];

/// The ids of the special tokens that a tokenizer has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Special {
    /// Fills rows up to the length of the batch.
    pub pad: Option<u32>,
    /// Starts a sentence.
    pub bos: Option<u32>,
    /// Ends a sentence.
    pub eos: Option<u32>,
    /// Stands for what is not in the vocabulary.
    pub unk: Option<u32>,
    /// Where a model gathers what it thinks of a whole text.
    pub cls: Option<u32>,
    /// Stands between two texts, and after them.
    pub sep: Option<u32>,
    /// Stands for a token that is to be guessed.
    pub mask: Option<u32>,
}

impl Special {
    /// Looks for them by what the tokenizer's configuration says, then by the usual names.
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

    /// The id that fills rows, or an error that says what the vocabulary lacks.
    pub fn need_pad(&self) -> Result<u32> {
        need(self.pad, 0)
    }

    /// The id that starts a sentence, or an error that says what the vocabulary lacks.
    pub fn need_bos(&self) -> Result<u32> {
        need(self.bos, 1)
    }

    /// The id that ends a sentence, or an error that says what the vocabulary lacks.
    pub fn need_eos(&self) -> Result<u32> {
        need(self.eos, 2)
    }

    /// The id of what is unknown, or an error that says what the vocabulary lacks.
    pub fn need_unk(&self) -> Result<u32> {
        need(self.unk, 3)
    }

    /// The id for what is to be guessed, or an error that says what the vocabulary lacks.
    pub fn need_mask(&self) -> Result<u32> {
        need(self.mask, 6)
    }
}

fn need(id: Option<u32>, which: usize) -> Result<u32> {
    id.ok_or_else(|| {
        Error::invalid(format!(
            "the tokenizer has no {}: none of {} is in its vocabulary. Name it as `{}` in \
             tokenizer_config.json, or train a tokenizer with `regard tokenizer`",
            KEYS[which].replace('_', " "),
            KNOWN[which].join(" "),
            KEYS[which],
        ))
    })
}
