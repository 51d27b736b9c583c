//! The catalogue: every score, mask, bias and normaliser with its name, formula and paper.
//!
//! A row stands in its variant's own file and is also its constructor. Program, wheel,
//! documentation and tests loop over the rows, so a new score, bias or normaliser is a file and a
//! row.

use super::graph::Graph;
use super::{bias, mask, normalize, score};
use crate::rng::Stream;
use crate::view::{Error, bail};
use std::sync::Arc;

/// The documentation of a row.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// The name that program and wheel take.
    pub name: &'static str,
    /// Its parameters with their shapes: learned ones for scores and biases, arguments for masks.
    pub params: &'static [(&'static str, &'static str)],
    /// Its settings, which are not learned.
    pub settings: &'static [Setting],
    /// The formula.
    pub formula: &'static str,
    /// Where it was described.
    pub paper: &'static str,
}

/// A setting of a score, bias or normaliser.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Setting {
    /// A number, with its default.
    Number(&'static str, f32),
    /// A whole number that the shape of a parameter's array says.
    Size(&'static str),
    /// Where random numbers come from.
    Seed,
    /// Segment ids of the keys, integers `[B, S]`; may be left out.
    Segments,
    /// A graph in CSR form, the integers `indptr` and `indices`. With a name it may be left out,
    /// and so is the parameter of this name; without one it is needed.
    Graph(Option<&'static str>),
}

impl Setting {
    /// The names that program and wheel take.
    pub fn names(&self) -> Vec<&'static str> {
        match self {
            Setting::Number(name, _) | Setting::Size(name) => vec![name],
            Setting::Seed => vec!["seed"],
            Setting::Segments => vec!["segments"],
            Setting::Graph(_) => vec!["indptr", "indices"],
        }
    }
}

impl std::fmt::Display for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Setting::Number(name, default) => write!(f, "{name} = {default}"),
            Setting::Size(name) => write!(f, "{name} by the array's shape"),
            Setting::Seed => write!(f, "seed = 0"),
            Setting::Segments => write!(f, "segments int [B,S], optional"),
            Setting::Graph(None) => write!(f, "indptr int [T+1], indices int [nnz]"),
            Setting::Graph(Some(_)) => write!(f, "indptr int [T+1], indices int [nnz], optional"),
        }
    }
}

/// Settings that were given.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// [`Setting::Number`] and [`Setting::Size`], by name.
    pub numbers: Vec<(String, f32)>,
    /// [`Setting::Segments`], `[B·S]`
    pub segments: Option<Vec<i64>>,
    /// [`Setting::Graph`]
    pub graph: Option<Arc<Graph>>,
    /// [`Setting::Seed`]
    pub noise: Option<Stream>,
    /// The shapes of the arrays that are given for parameters.
    pub shapes: Vec<(String, Vec<usize>)>,
}

impl Settings {
    /// With a number.
    pub fn number(mut self, name: &str, value: f32) -> Settings {
        self.numbers.push((name.into(), value));
        self
    }

    pub(crate) fn get(&self, name: &str) -> Option<f32> {
        self.numbers.iter().rev().find(|(given, _)| given == name).map(|(_, value)| *value)
    }

    /// A number that has a default.
    pub(crate) fn of(&self, name: &str) -> f32 {
        self.get(name).expect("rows fill in their defaults")
    }

    /// A size that was given, if no array says it.
    pub(crate) fn size(&self, name: &str) -> Result<f32, Error> {
        match self.get(name) {
            Some(size) => Ok(size),
            None => bail!("{name}: not given, and there is no array whose shape says it"),
        }
    }

    pub(crate) fn shape(&self, param: &str) -> Option<&[usize]> {
        self.shapes.iter().find(|(name, _)| name == param).map(|(_, shape)| &shape[..])
    }

    /// The stream of random numbers: that of seed 0 if none was given.
    pub(crate) fn stream(&self) -> Stream {
        self.noise.unwrap_or_else(|| Stream::new(0, 0, 0))
    }
}

/// A row of the catalogue: a score, bias or normaliser with its constructor.
pub struct Row<T: ?Sized + 'static> {
    /// Its documentation.
    pub about: Variant,
    /// Makes it. All numbers with a default are there; a caller goes through [`Row::make`].
    pub(crate) new: fn(&Settings) -> Result<Arc<T>, Error>,
    /// Numbers that tests are to try, one set after the other.
    pub trials: &'static [&'static [(&'static str, f32)]],
}

/// Tests need no other numbers than the defaults.
pub(crate) const DEFAULTS: &[&[(&str, f32)]] = &[&[]];

impl<T: ?Sized + 'static> Row<T> {
    /// Its name.
    pub fn name(&self) -> &'static str {
        self.about.name
    }

    /// Makes it with these settings, and defaults for those that are not given.
    pub fn make(&self, given: &Settings) -> Result<Arc<T>, Error> {
        let Variant { name, settings, .. } = self.about;
        for (number, value) in &given.numbers {
            let takes = |setting: &Setting| match setting {
                Setting::Number(name, _) | Setting::Size(name) => name == number,
                _ => false,
            };
            if !settings.iter().any(takes) {
                bail!("{number}: `{name}` has no such setting");
            }
            if !value.is_finite() {
                bail!("{number}: got {value}, need a finite number");
            }
        }
        if given.segments.is_some() && !settings.contains(&Setting::Segments) {
            bail!("segments: `{name}` has no such setting");
        }
        let graph = |setting: &Setting| matches!(setting, Setting::Graph(_));
        if given.graph.is_some() && !settings.iter().any(graph) {
            bail!("indptr, indices: `{name}` has no such settings");
        }
        let mut filled = given.clone();
        for setting in settings {
            match setting {
                Setting::Number(name, default) if given.get(name).is_none() => {
                    filled = filled.number(name, *default);
                }
                Setting::Graph(None) if given.graph.is_none() => {
                    bail!("indptr, indices: `{name}` needs them");
                }
                _ => {}
            }
        }
        (self.new)(&filled)
    }
}

/// The row of a name.
pub fn find<T: ?Sized + 'static>(rows: &'static [Row<T>], name: &str) -> Option<&'static Row<T>> {
    rows.iter().find(|row| row.about.name == name)
}

/// A heading of the catalogue and its rows.
pub type Kind = (&'static str, Vec<Variant>);

/// The documentation of all of them, by kind.
pub fn catalogue() -> [Kind; 4] {
    fn about<T: ?Sized + 'static>(rows: &[Row<T>]) -> Vec<Variant> {
        rows.iter().map(|row| row.about).collect()
    }
    [
        ("score", about(score::ROWS)),
        ("mask", mask::VARIANTS.to_vec()),
        ("bias", about(bias::ROWS)),
        ("normalize", about(normalize::ROWS)),
    ]
}
