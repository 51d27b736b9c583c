//! Number of references per sentence, for signatures.

use std::fmt;

/// The `nrefs` of a signature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ReferenceCount {
    /// No sentence yet.
    #[default]
    Unknown,
    /// Equal for all sentences.
    Same(usize),
    /// Different numbers; `var` in a signature.
    Varying,
}

impl ReferenceCount {
    /// Records a sentence with this number of references.
    pub(super) fn add(&mut self, references: usize) {
        assert!(references > 0, "no reference for a sentence: a score needs one or more of them");
        self.merge(ReferenceCount::Same(references));
    }

    /// Records another part of the corpus.
    pub(super) fn merge(&mut self, other: ReferenceCount) {
        *self = match (*self, other) {
            (ReferenceCount::Unknown, known) | (known, ReferenceCount::Unknown) => known,
            (a, b) if a == b => a,
            _ => ReferenceCount::Varying,
        };
    }
}

impl fmt::Display for ReferenceCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReferenceCount::Unknown => f.write_str("0"),
            ReferenceCount::Same(count) => write!(f, "{count}"),
            ReferenceCount::Varying => f.write_str("var"),
        }
    }
}
