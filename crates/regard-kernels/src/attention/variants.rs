//! The catalogue: every score, mask, bias and normaliser with its name, formula and paper.
//! Program, wheel and documentation list what is here; each row stands in its variant's own file.

use super::{bias, mask, normalize, score};

/// One row of the catalogue.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// The name that program and wheel take.
    pub name: &'static str,
    /// Its parameters with their shapes: learned ones for scores and biases, arguments for masks.
    pub params: &'static [(&'static str, &'static str)],
    /// What it computes.
    pub formula: &'static str,
    /// Where it was described.
    pub paper: &'static str,
}

/// A heading of the catalogue and its rows.
pub type Kind = (&'static str, &'static [Variant]);

/// All of them, by kind.
pub const VARIANTS: [Kind; 4] = [
    ("score", score::VARIANTS),
    ("mask", mask::VARIANTS),
    ("bias", bias::VARIANTS),
    ("normalize", normalize::VARIANTS),
];
