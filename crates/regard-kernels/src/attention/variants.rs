//! The catalogue: every score, mask, bias and normaliser with its name, formula and paper.
//!
//! A row is in its variant's own file and is also its constructor. The program, the wheel, the
//! documentation and the tests iterate over the rows, so a new score, bias or normaliser is a file
//! and a row.

use super::graph::Graph;
use super::{bias, mask, normalize, score};
use crate::rng::Stream;
use crate::view::{Error, bail};
use std::sync::Arc;

/// Documentation of a row.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// Name used by the program and the wheel.
    pub name: &'static str,
    /// Parameters with their shapes: learned ones for scores and biases, arguments for masks.
    pub params: &'static [(&'static str, &'static str)],
    /// Settings, which are not learned.
    pub settings: &'static [Setting],
    /// Formula, as text for the user.
    pub formula: &'static str,
    /// Reference to the paper.
    pub paper: &'static str,
}

/// Setting of a score, bias or normaliser.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Setting {
    /// Number, with its default.
    Number(&'static str, f32),
    /// Integer that is given by the shape of a parameter's array.
    Size(&'static str),
    /// Seed of the random stream.
    Seed,
    /// Segment ids of the keys, integers `[B, S]`; optional.
    Segments,
    /// Graph in CSR form, the integers `indptr` and `indices`. With a name it is optional, together
    /// with the parameter of this name; without one it is required.
    Graph(Option<&'static str>),
}

impl Setting {
    /// Returns the names used by the program and the wheel.
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

/// Settings given by the caller.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// [`Setting::Number`] and [`Setting::Size`], by name.
    pub numbers: Vec<(String, f32)>,
    /// [`Setting::Segments`], `[B·S]`; `None` if not given.
    pub segments: Option<Vec<i64>>,
    /// [`Setting::Graph`]; `None` if not given.
    pub graph: Option<Arc<Graph>>,
    /// [`Setting::Seed`]; `None` if not given.
    pub noise: Option<Stream>,
    /// Shapes of the arrays given for parameters.
    pub shapes: Vec<(String, Vec<usize>)>,
}

impl Settings {
    /// Sets a number.
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

    /// A size that was given, for use when no array determines it.
    pub(crate) fn size(&self, name: &str) -> Result<f32, Error> {
        match self.get(name) {
            Some(size) => Ok(size),
            None => bail!("{name}: not given, and no array's shape gives it"),
        }
    }

    pub(crate) fn shape(&self, param: &str) -> Option<&[usize]> {
        self.shapes.iter().find(|(name, _)| name == param).map(|(_, shape)| &shape[..])
    }

    /// The random stream: that of seed 0 if none was given.
    pub(crate) fn stream(&self) -> Stream {
        self.noise.unwrap_or_else(|| Stream::new(0, 0, 0))
    }
}

/// Row of the catalogue: a score, bias or normaliser with its constructor.
pub struct Row<T: ?Sized + 'static> {
    /// Documentation for the user.
    pub about: Variant,
    /// Constructor. All numbers with a default must be set; callers use [`Row::make`].
    pub(crate) new: fn(&Settings) -> Result<Arc<T>, Error>,
    /// Sets of numbers for tests to try.
    pub trials: &'static [&'static [(&'static str, f32)]],
}

/// Tests try the defaults only.
pub(crate) const DEFAULTS: &[&[(&str, f32)]] = &[&[]];

impl<T: ?Sized + 'static> Row<T> {
    /// Returns the name.
    pub fn name(&self) -> &'static str {
        self.about.name
    }

    /// Creates it with these settings, and defaults for those that are not given.
    ///
    /// # Errors
    /// If a setting is unknown, missing or invalid.
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

/// Finds the row of a name.
pub fn find<T: ?Sized + 'static>(rows: &'static [Row<T>], name: &str) -> Option<&'static Row<T>> {
    rows.iter().find(|row| row.about.name == name)
}

/// Name of a kind of variant, and its rows.
pub type Category = (&'static str, Vec<Variant>);

/// Returns the documentation of all variants, by kind.
pub fn catalogue() -> [Category; 4] {
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
