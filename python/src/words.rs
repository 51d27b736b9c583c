//! Scores, biases and normalisers from rows of the catalogue and Python keywords.

use crate::array::{floats, ints, type_error, type_name, value_error};
use crate::call::seed_of;
use crate::mask::{Claim, csr};
use numpy::PyUntypedArrayMethods;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use regard_kernels::attention::{Graph, Row, Setting, Settings, find};
use regard_kernels::rng::Stream;
use std::sync::Arc;

/// Finds the row of a name; the error lists the known names.
pub fn row<T: ?Sized + 'static>(
    kind: &str,
    rows: &'static [Row<T>],
    name: &str,
) -> PyResult<&'static Row<T>> {
    find(rows, name).ok_or_else(|| {
        let known: Vec<_> = rows.iter().map(Row::name).collect();
        value_error(format!("{kind}: got {name:?}, need one of {}", known.join(", ")))
    })
}

/// Random stream of hard choices; site 0 of the same seed is that of dropout.
pub fn noise(seed: u64) -> Stream {
    Stream::new(seed, 0, 1)
}

/// Keywords of a row. `None` counts as not given.
pub struct Keywords<'a, 'py> {
    name: &'static str,
    settings: &'static [Setting],
    given: Option<&'a Bound<'py, PyDict>>,
}

impl<'a, 'py> Keywords<'a, 'py> {
    /// Checks the keywords of a row, which are its settings and the parameters `params`; others are
    /// an error.
    pub fn new<T: ?Sized + 'static>(
        row: &Row<T>,
        given: Option<&'a Bound<'py, PyDict>>,
        params: &[(&'static str, &'static str)],
    ) -> PyResult<Keywords<'a, 'py>> {
        // A size is determined by the shape of a parameter's array, and is not a keyword.
        let settings = row.about.settings.iter().filter(|row| !matches!(row, Setting::Size(_)));
        let known = settings.flat_map(Setting::names).chain(params.iter().map(|(name, _)| *name));
        let known: Vec<&str> = known.collect();
        for name in given.iter().flat_map(|given| given.keys()) {
            let got = name.to_string();
            if !known.contains(&got.as_str()) {
                let (name, known) = (row.name(), known.join(", "));
                let takes = if known.is_empty() { "nothing".into() } else { known };
                return Err(value_error(format!("{name}: got {got:?}, but it takes: {takes}")));
            }
        }
        Ok(Keywords { name: row.name(), settings: row.about.settings, given })
    }

    /// A keyword that is given and not `None`.
    pub fn get(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = self.given.map(|given| given.get_item(name)).transpose()?.flatten();
        Ok(found.filter(|object| !object.is_none()))
    }

    /// A parameter's keyword, which is required.
    pub fn need(&self, name: &str, letters: &str) -> PyResult<Bound<'py, PyAny>> {
        let bad = || value_error(format!("{}: needs {name}, {letters}", self.name));
        self.get(name)?.ok_or_else(bad)
    }

    /// The settings, and shapes to check once the sizes are known.
    pub fn settings(
        &self,
        params: &[(&'static str, &'static str)],
    ) -> PyResult<(Settings, Vec<Claim>)> {
        let (mut settings, mut claims) = (Settings::default(), vec![]);
        for setting in self.settings {
            match setting {
                Setting::Number(name, _) => {
                    if let Some(object) = self.get(name)? {
                        let Ok(number) = object.extract::<f32>() else {
                            let got = type_name(&object);
                            return Err(type_error(format!("{name} is a {got}; pass a number")));
                        };
                        settings.numbers.push((name.to_string(), number));
                    }
                }
                Setting::Size(_) => {
                    for (param, letters) in params {
                        let array = floats(param, &self.need(param, letters)?)?;
                        settings.shapes.push((param.to_string(), array.shape().to_vec()));
                    }
                }
                Setting::Seed => {
                    let seed = self.get("seed")?.map(|seed| seed_of(&seed)).transpose()?;
                    settings.noise = Some(noise(seed.unwrap_or(0)));
                }
                Setting::Segments => {
                    if let Some(object) = self.get("segments")? {
                        let (values, got) = ints("segments", &object)?;
                        claims.push(Claim { name: "segments", got, need: &["BS"] });
                        settings.segments = Some(values);
                    }
                }
                Setting::Graph(_) => {
                    settings.graph = match (self.get("indptr")?, self.get("indices")?) {
                        (None, None) => None,
                        (Some(indptr), Some(indices)) => {
                            let (indptr, indices) = csr(&indptr, &indices)?;
                            Some(Arc::new(Graph::new(&indptr, &indices)))
                        }
                        _ => {
                            let message = "indptr, indices: got one of them, need both or none";
                            return Err(value_error(message));
                        }
                    };
                }
            }
        }
        Ok((settings, claims))
    }
}
