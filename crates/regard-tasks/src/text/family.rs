//! Defaults of the tokenizers of well-known models: the names of special tokens and the padding
//! side. Old folders leave these out.

use serde_json::{Map, Value, json};

/// A family of models with the same special tokens.
#[derive(Debug)]
pub struct TokenizerFamily {
    /// Values of `model_type` in `config.json`, or of `tokenizer_class` before `Tokenizer`, in
    /// lower case. The first one is the family's name.
    names: &'static [&'static str],
    /// Keys of `tokenizer_config.json`, with their defaults.
    special: &'static [(&'static str, &'static str)],
    /// Padding side, and the token type of padding.
    padding: (&'static str, u32),
}

const BERT: TokenizerFamily = TokenizerFamily {
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

const GPT2: TokenizerFamily = TokenizerFamily {
    names: &["gpt2"],
    special: &[
        ("unk_token", "<|endoftext|>"),
        ("bos_token", "<|endoftext|>"),
        ("eos_token", "<|endoftext|>"),
    ],
    padding: ("right", 0),
};

const ROBERTA: TokenizerFamily = TokenizerFamily {
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

const XLNET: TokenizerFamily = TokenizerFamily {
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

const ALBERT: TokenizerFamily = TokenizerFamily {
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

const FAMILIES: [&TokenizerFamily; 5] = [&BERT, &GPT2, &ROBERTA, &XLNET, &ALBERT];

impl TokenizerFamily {
    /// Returns the family that the configurations of a tokenizer and of its model name.
    pub fn of(
        config: &Map<String, Value>,
        model: &Map<String, Value>,
    ) -> Option<&'static TokenizerFamily> {
        let class = config.get("tokenizer_class").and_then(Value::as_str).unwrap_or("");
        let class = class.strip_suffix("Fast").unwrap_or(class);
        let class = class.strip_suffix("Tokenizer").unwrap_or(class).to_lowercase();
        let kind = model.get("model_type").and_then(Value::as_str).unwrap_or("");
        TokenizerFamily::named(&class).or_else(|| TokenizerFamily::named(kind))
    }

    /// Returns the family with this name.
    pub fn named(name: &str) -> Option<&'static TokenizerFamily> {
        FAMILIES.into_iter().find(|family| family.names.contains(&name))
    }

    /// Returns the family's name.
    pub fn name(&self) -> &'static str {
        self.names[0]
    }

    /// Adds the defaults for keys that a configuration leaves out.
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
