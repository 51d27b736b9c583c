//! Masks: the keys that a query may attend to. `True` = attend.

use crate::array::{floats, indices, ints, natural, tuple, type_error, value_error};
use crate::guard::entry;
use numpy::{
    PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use regard_kernels::attention::{Dims, mask};

/// Array whose shape must be one of several, to be checked once the sizes are known.
#[derive(Clone)]
pub struct Claim {
    /// Name of the argument.
    pub name: &'static str,
    /// Shape of the argument.
    pub got: Vec<usize>,
    /// Allowed shapes, by letters.
    pub need: &'static [&'static str],
}

impl Claim {
    /// Checks the shape.
    pub fn check(&self, dims: &Dims) -> PyResult<()> {
        let size = |letter| match letter {
            'B' => dims.b,
            'H' => dims.h,
            'T' => dims.t,
            _ => dims.s,
        };
        let shapes: Vec<Vec<usize>> =
            self.need.iter().map(|letters| letters.chars().map(size).collect()).collect();
        if shapes.contains(&self.got) {
            return Ok(());
        }
        let describe = |(letters, shape): (&&str, &Vec<usize>)| {
            let letters: Vec<_> = letters.chars().map(String::from).collect();
            format!("[{}] = {}", letters.join(","), tuple(shape))
        };
        let need: Vec<_> = self.need.iter().zip(&shapes).map(describe).collect();
        let (name, got) = (self.name, tuple(&self.got));
        Err(value_error(format!("{name}: got shape {got}, need {}", need.join(" or "))))
    }
}

/// The keys that a query may attend to. Combine masks with `&`, `|` and `~`:
/// `regard.causal() & regard.window(127, 0)`. A combination has at most 1,000 masks and operators.
#[pyclass(frozen, module = "regard", name = "Mask")]
pub struct PyMask {
    /// The kernels' mask.
    pub mask: mask::Mask,
    /// Shapes to check.
    pub claims: Vec<Claim>,
    text: String,
    /// Number of rules and operators, with shared parts counted each time.
    size: usize,
}

/// Maximum number of rules and operators of a mask. All of them are evaluated for every cell, and a
/// mask that shares its parts (`m = m & m`) doubles with every step; nested masks are evaluated and
/// freed recursively.
const LARGEST: usize = 1000;

impl PyMask {
    fn new(mask: mask::Mask, text: impl Into<String>) -> PyMask {
        PyMask { mask, claims: vec![], text: text.into(), size: 1 }
    }

    fn claiming(
        self,
        name: &'static str,
        got: Vec<usize>,
        need: &'static [&'static str],
    ) -> PyResult<PyMask> {
        let ranks: Vec<_> = need.iter().map(|letters| letters.len()).collect();
        if !ranks.contains(&got.len()) {
            let need = ranks.iter().map(usize::to_string).collect::<Vec<_>>().join(" or ");
            let got = tuple(&got);
            return Err(value_error(format!("{name}: got shape {got}, need {need} dimensions")));
        }
        Ok(PyMask { claims: vec![Claim { name, got, need }], ..self })
    }

    /// Combines `parts`, unless the result is too large.
    fn combined(
        parts: &[&PyMask],
        mask: mask::Mask,
        text: impl Fn() -> String,
    ) -> PyResult<PyMask> {
        let size = parts.iter().map(|part| part.size).sum::<usize>() + 1;
        if size > LARGEST {
            return Err(value_error(format!(
                "mask: got a combination of {size} masks and operators, need at most {LARGEST}; \
                 write it as one regard.dense(allowed)"
            )));
        }
        let claims = parts.iter().flat_map(|part| part.claims.clone()).collect();
        Ok(PyMask { mask, claims, text: text(), size })
    }
}

#[pymethods]
impl PyMask {
    fn __and__(&self, other: &PyMask) -> PyResult<PyMask> {
        entry(|| {
            let mask = self.mask.clone() & other.mask.clone();
            PyMask::combined(&[self, other], mask, || format!("({} & {})", self.text, other.text))
        })
    }
    fn __or__(&self, other: &PyMask) -> PyResult<PyMask> {
        entry(|| {
            let mask = self.mask.clone() | other.mask.clone();
            PyMask::combined(&[self, other], mask, || format!("({} | {})", self.text, other.text))
        })
    }
    fn __invert__(&self) -> PyResult<PyMask> {
        entry(|| {
            let mask = !self.mask.clone();
            PyMask::combined(&[self], mask, || format!("~{}", self.text))
        })
    }
    fn __bool__(&self) -> PyResult<bool> {
        Err(type_error(
            "a mask is neither true nor false; combine masks with & | ~, not and or not",
        ))
    }
    fn __repr__(&self) -> String {
        format!("<regard.Mask {}>", self.text)
    }
}

/// Every query attends to every key.
#[pyfunction]
fn full() -> PyResult<PyMask> {
    entry(|| Ok(PyMask::new(mask::full(), "full()")))
}

/// A query at position p attends to keys j ≤ p. With T queries and S keys, query i is at position p
/// = i + S − T unless `positions` is given.
#[pyfunction]
fn causal() -> PyResult<PyMask> {
    entry(|| Ok(PyMask::new(mask::causal(), "causal()")))
}

/// Masks padding by valid lengths: int `[B]`, keys of each batch row, or `[B, T]`, keys of each
/// query.
#[pyfunction]
fn lengths(lengths: &Bound<PyAny>) -> PyResult<PyMask> {
    entry(|| {
        let (values, shape) = ints("lengths", lengths)?;
        let mask = match shape.len() {
            2 => mask::lengths_per_query(&values),
            _ => mask::lengths(&values),
        };
        PyMask::new(mask, "lengths(…)").claiming("lengths", shape, &["B", "BT"])
    })
}

/// A query at position p attends to keys from p − left to p + right; `window(127, 0)` is the last
/// 128 keys. Blocks outside are skipped: the time is proportional to T·(left + right).
#[pyfunction]
fn window(left: i64, right: i64) -> PyResult<PyMask> {
    entry(|| {
        let mask = mask::window(natural("left", left)?, natural("right", right)?);
        Ok(PyMask::new(mask, format!("window({left}, {right})")))
    })
}

/// A dilated window: keys p + m·stride with −left ≤ m ≤ right.
#[pyfunction]
fn expanded(left: i64, right: i64, stride: i64) -> PyResult<PyMask> {
    entry(|| {
        if stride < 1 {
            return Err(value_error(format!("stride: got {stride}, need at least 1")));
        }
        let mask =
            mask::expanded(natural("left", left)?, natural("right", right)?, stride as usize);
        Ok(PyMask::new(mask, format!("expanded({left}, {right}, {stride})")))
    })
}

/// Luong's local attention: keys at most `width` away from `centres`, float32 `[B, T]`.
#[pyfunction]
fn around(centres: &Bound<PyAny>, width: i64) -> PyResult<PyMask> {
    entry(|| {
        let array = floats("centres", centres)?;
        let values: Vec<f32> = array.readonly().as_array().iter().copied().collect();
        let mask = mask::around(&values, natural("width", width)?);
        let shape = array.shape().to_vec();
        PyMask::new(mask, format!("around(…, {width})")).claiming("centres", shape, &["BT"])
    })
}

/// Global tokens (int `[n]`), which attend to all keys and are attended to by all queries; combine
/// with a window by `|`.
#[pyfunction]
fn global_tokens(indices: &Bound<PyAny>) -> PyResult<PyMask> {
    entry(|| {
        let mask = mask::global_tokens(&crate::array::indices("indices", indices)?);
        Ok(PyMask::new(mask, "global_tokens(…)"))
    })
}

/// All queries attend to the first `n` keys; after them the mask is causal.
#[pyfunction]
fn prefix(n: i64) -> PyResult<PyMask> {
    entry(|| Ok(PyMask::new(mask::prefix(natural("n", n)?), format!("prefix({n})"))))
}

/// Sequences packed into one row: a query attends to the keys with the id of the key at its
/// position. int `[S]` or `[B, S]`.
#[pyfunction]
fn segments(ids: &Bound<PyAny>) -> PyResult<PyMask> {
    entry(|| {
        let (values, shape) = ints("ids", ids)?;
        PyMask::new(mask::segments(&values), "segments(…)").claiming("ids", shape, &["S", "BS"])
    })
}

/// XLNet's factorisation order (int `[n]`): a token attends to those that precede it in `order`
/// and, unless `strict`, to itself. With n < S the keys before the last n are a memory that all
/// queries attend to.
#[pyfunction]
#[pyo3(signature = (order, strict = false))]
fn permutation(order: &Bound<PyAny>, strict: bool) -> PyResult<PyMask> {
    entry(|| {
        let order: Vec<i64> = indices("order", order)?.into_iter().map(|x| x as i64).collect();
        let text = format!("permutation(…, {})", if strict { "True" } else { "False" });
        Ok(PyMask::new(mask::permutation(&order, strict), text))
    })
}

/// A graph in CSR form: query i attends to keys `indices[indptr[i]:indptr[i + 1]]`, ascending. int
/// `[T + 1]` and `[nnz]`. Only the edges are scored.
#[pyfunction]
fn edges(indptr: &Bound<PyAny>, indices: &Bound<PyAny>) -> PyResult<PyMask> {
    entry(|| {
        let (indptr, indices) = csr(indptr, indices)?;
        Ok(PyMask::new(mask::edges(&indptr, &indices), "edges(…)"))
    })
}

/// Dense mask: bool `[T, S]` or `[B, H, T, S]`, True = attend.
#[pyfunction]
fn dense(allowed: &Bound<PyAny>) -> PyResult<PyMask> {
    entry(|| {
        let array = allowed.py().import("numpy")?.call_method1("asarray", (allowed,))?;
        let Ok(array) = array.cast::<PyArrayDyn<bool>>() else {
            let dtype = array.cast::<PyUntypedArray>()?.dtype().typeobj();
            return Err(type_error(format!(
                "allowed is {}; convert it with allowed.astype(bool), True = attend",
                dtype.name()?
            )));
        };
        let values: Vec<bool> = array.readonly().as_array().iter().copied().collect();
        let shape = array.shape().to_vec();
        let mask =
            if shape.len() == 4 { mask::dense_per_head(values) } else { mask::dense(values) };
        PyMask::new(mask, "dense(…)").claiming("allowed", shape, &["TS", "BHTS"])
    })
}

/// Reads the two arrays of a CSR matrix.
pub fn csr(indptr: &Bound<PyAny>, indices: &Bound<PyAny>) -> PyResult<(Vec<i64>, Vec<i64>)> {
    let one = |name, object| -> PyResult<Vec<i64>> {
        let (values, shape) = ints(name, object)?;
        if shape.len() != 1 {
            let got = tuple(&shape);
            return Err(value_error(format!("{name}: got shape {got}, need one dimension")));
        }
        Ok(values)
    };
    Ok((one("indptr", indptr)?, one("indices", indices)?))
}

pub fn register(module: &Bound<PyModule>) -> PyResult<()> {
    module.add_class::<PyMask>()?;
    module.add_function(wrap_pyfunction!(full, module)?)?;
    module.add_function(wrap_pyfunction!(causal, module)?)?;
    module.add_function(wrap_pyfunction!(lengths, module)?)?;
    module.add_function(wrap_pyfunction!(window, module)?)?;
    module.add_function(wrap_pyfunction!(expanded, module)?)?;
    module.add_function(wrap_pyfunction!(around, module)?)?;
    module.add_function(wrap_pyfunction!(global_tokens, module)?)?;
    module.add_function(wrap_pyfunction!(prefix, module)?)?;
    module.add_function(wrap_pyfunction!(segments, module)?)?;
    module.add_function(wrap_pyfunction!(permutation, module)?)?;
    module.add_function(wrap_pyfunction!(edges, module)?)?;
    module.add_function(wrap_pyfunction!(dense, module)?)
}
