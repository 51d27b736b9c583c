//! How an encoder's vectors of tokens become one of a text.

use super::Gguf;

/// Pooling, as files name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// Mean over all tokens.
    Mean,
    /// Vector of the first token.
    Cls,
}

/// Names by number. The first one stands for no pooling at all.
const NAMES: [&str; 5] = ["NONE", "MEAN", "CLS", "LAST", "RANK"];

impl Pooling {
    /// Number in files.
    pub(super) fn number(self) -> u32 {
        match self {
            Pooling::Mean => 1,
            Pooling::Cls => 2,
        }
    }
}

impl Gguf {
    /// Returns the pooling; `None` if the file asks for none.
    ///
    /// # Errors
    /// If it is not supported, with its name.
    pub fn pooling(&self) -> Result<Option<Pooling>, String> {
        let key = format!("{}.pooling_type", self.architecture()?.name);
        match self.size(&key)? {
            None | Some(0) => Ok(None),
            Some(1) => Ok(Some(Pooling::Mean)),
            Some(2) => Ok(Some(Pooling::Cls)),
            Some(other) => {
                let name = NAMES.get(other).map_or(String::new(), |name| format!(" ({name})"));
                Err(format!("{key}: got {other}{name}, need 1 (MEAN) or 2 (CLS)"))
            }
        }
    }
}
