//! What the tokenizers of well-known models have in common: the names of their special tokens,
//! and the side on which they pad. Old folders leave this to whoever reads them.

use serde_json::{Map, Value, json};

/// A family of models with one way to mark their texts.
#[derive(Debug)]
pub struct Family {
    /// What `model_type` in `config.json` says, or `tokenizer_class` before `Tokenizer`, in small
    /// letters. The first one is the family's.
    names: &'static [&'static str],
    /// The keys of `tokenizer_config.json`, with what is meant when they are missing.
    special: &'static [(&'static str, &'static str)],
    /// The side on which rows are padded, and the token type that padding has.
    padding: (&'static str, u32),
}

const BERT: Family = Family {
    names: &["bert", "distilbert", "electra", "mobilebert", "convbert", "funnel"],
    special: &[
        ("unk_token", "[UNK]"),
        ("sep_token", "[SEP]"),
        ("pad_token", "[PAD]"),
        ("cls_token", "[CLS]"),
        ("mask_token", "[MASK]"),
    ],
    padding: ("right", 0),
};

const GPT2: Family = Family {
    names: &["gpt2"],
    special: &[
        ("unk_token", "<|endoftext|>"),
        ("bos_token", "<|endoftext|>"),
        ("eos_token", "<|endoftext|>"),
    ],
    padding: ("right", 0),
};

const ROBERTA: Family = Family {
    names: &["roberta", "bart", "longformer"],
    special: &[
        ("bos_token", "<s>"),
        ("eos_token", "</s>"),
        ("sep_token", "</s>"),
        ("cls_token", "<s>"),
        ("unk_token", "<unk>"),
        ("pad_token", "<pad>"),
        ("mask_token", "<mask>"),
    ],
    padding: ("right", 0),
};

const XLNET: Family = Family {
    names: &["xlnet"],
    special: &[
        ("bos_token", "<s>"),
        ("eos_token", "</s>"),
        ("unk_token", "<unk>"),
        ("sep_token", "<sep>"),
        ("pad_token", "<pad>"),
        ("cls_token", "<cls>"),
        ("mask_token", "<mask>"),
    ],
    padding: ("left", 3),
};

const ALBERT: Family = Family {
    names: &["albert"],
    special: &[
        ("bos_token", "[CLS]"),
        ("eos_token", "[SEP]"),
        ("unk_token", "<unk>"),
        ("sep_token", "[SEP]"),
        ("pad_token", "<pad>"),
        ("cls_token", "[CLS]"),
        ("mask_token", "[MASK]"),
    ],
    padding: ("right", 0),
};

const FAMILIES: [&Family; 5] = [&BERT, &GPT2, &ROBERTA, &XLNET, &ALBERT];

impl Family {
    /// The family that the configurations of a tokenizer and of its model name.
    pub fn of(config: &Map<String, Value>, model: &Map<String, Value>) -> Option<&'static Family> {
        let class = config.get("tokenizer_class").and_then(Value::as_str).unwrap_or("");
        let class = class.strip_suffix("Fast").unwrap_or(class);
        let class = class.strip_suffix("Tokenizer").unwrap_or(class).to_lowercase();
        let kind = model.get("model_type").and_then(Value::as_str).unwrap_or("");
        Family::named(&class).or_else(|| Family::named(kind))
    }

    /// The family of a name.
    pub fn named(name: &str) -> Option<&'static Family> {
        FAMILIES.into_iter().find(|family| family.names.contains(&name))
    }

    /// Its own name.
    pub fn name(&self) -> &'static str {
        self.names[0]
    }

    /// Writes down what a configuration leaves out.
    pub fn complete(&self, config: &mut Map<String, Value>) {
        for (key, token) in self.special {
            config.entry(*key).or_insert_with(|| json!(token));
        }
        let (side, of_type) = self.padding;
        config.entry("padding_side").or_insert_with(|| json!(side));
        if of_type != 0 {
            config.entry("pad_token_type_id").or_insert_with(|| json!(of_type));
        }
    }
}
