//! Vocabulary of a model whose file has it inside: data for the tokenizer that is made of it.

use serde_json::Value;

/// How texts are split into tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Splitting {
    /// Byte-level BPE by merges, with a pre-tokenizer of this name (`gpt-2`, `llama-bpe`).
    ByteLevel(PreTokenizer),
    /// SentencePiece's BPE: pieces with scores, and bytes for characters that have no piece.
    Scores,
    /// BERT's WordPiece.
    WordPiece,
}

/// How byte-level BPE cuts a text into words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreTokenizer {
    /// GPT-2's.
    Gpt2,
    /// Llama 3's.
    Llama3,
    /// Qwen 2's and 3's.
    Qwen2,
    /// SmolLM's: GPT-2's with single digits.
    SmolLm,
}

impl PreTokenizer {
    /// All of them, with their names in GGUF. Files of other programs have the other names.
    pub const NAMES: [(&'static str, PreTokenizer); 4] = [
        ("gpt-2", PreTokenizer::Gpt2),
        ("llama-bpe", PreTokenizer::Llama3),
        ("qwen2", PreTokenizer::Qwen2),
        ("smollm", PreTokenizer::SmolLm),
    ];

    /// Returns the name in GGUF.
    pub fn name(self) -> &'static str {
        let row = Self::NAMES.iter().find(|(_, of)| *of == self);
        row.expect("every pre-tokenizer has a name").0
    }
}

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A piece of text.
    Normal,
    /// Stands for pieces that are not in the vocabulary.
    Unknown,
    /// Never in a text: the start or the end of one, a role.
    Control,
    /// Found in texts before they are split.
    Added,
    /// Not used.
    Unused,
    /// A byte, written `<0x0A>`.
    Byte,
}

impl TokenKind {
    /// All kinds, by their numbers in GGUF, which begin with 1.
    pub const ALL: [TokenKind; 6] = [
        TokenKind::Normal,
        TokenKind::Unknown,
        TokenKind::Control,
        TokenKind::Added,
        TokenKind::Unused,
        TokenKind::Byte,
    ];
}

/// Vocabulary of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Vocabulary {
    /// How texts are split.
    pub splitting: Splitting,
    /// Tokens by id. A space is `▁` in pieces with scores.
    pub tokens: Vec<String>,
    /// Kinds of the tokens.
    pub kinds: Vec<TokenKind>,
    /// Scores of the tokens; empty without [`Splitting::Scores`].
    pub scores: Vec<f32>,
    /// Merges of byte-level BPE: two pieces with a space between.
    pub merges: Vec<String>,
    /// Ids of the special tokens.
    pub special: SpecialIds,
    /// Whether the start and the end token are put around a text.
    pub around: [bool; 2],
    /// Whether a space is put before a text (with scores).
    pub space_before: bool,
    /// Template of a conversation.
    pub chat_template: Option<String>,
}

/// Ids of special tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpecialIds {
    /// Start of a text.
    pub bos: Option<u32>,
    /// End of a text.
    pub eos: Option<u32>,
    /// End of a turn of a conversation, if it is another token than `eos`.
    pub turn: Option<u32>,
    /// What is not in the vocabulary.
    pub unknown: Option<u32>,
    /// Padding.
    pub padding: Option<u32>,
    /// Between two texts and after them.
    pub separator: Option<u32>,
    /// A masked token.
    pub mask: Option<u32>,
}

impl SpecialIds {
    /// Returns the ids that `config.json` has.
    pub fn config(&self) -> Vec<(&'static str, Value)> {
        let mut ids: Vec<(&'static str, Value)> = vec![];
        ids.extend(self.bos.map(|id| ("bos_token_id", id.into())));
        let end = match (self.eos, self.turn) {
            (Some(id), Some(turn)) if turn != id => Some(vec![id, turn].into()),
            (one, other) => one.or(other).map(Value::from),
        };
        ids.extend(end.map(|end| ("eos_token_id", end)));
        ids.extend(self.padding.map(|id| ("pad_token_id", id.into())));
        ids
    }
}
