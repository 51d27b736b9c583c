//! numpy arrays in and out, without copies.

use numpy::ndarray::ArrayD;
use numpy::npyffi::{PY_ARRAY_API, npy_intp};
use numpy::{
    Element, PyArray4, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyUntypedArray,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use regard_kernels::view::{View, ViewMut};

/// Creates a `ValueError` with this message.
pub fn value_error(message: impl Into<String>) -> PyErr {
    PyValueError::new_err(message.into())
}

/// Creates a `TypeError` with this message.
pub fn type_error(message: impl Into<String>) -> PyErr {
    PyTypeError::new_err(message.into())
}

/// Formats a shape as Python does.
pub fn tuple(shape: &[usize]) -> String {
    match shape {
        [n] => format!("({n},)"),
        _ => format!("({})", shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// Name of an object's Python type.
pub fn type_name(object: &Bound<PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "object".into(), |name| name.to_string())
}

fn dtype_name(array: &Bound<PyUntypedArray>) -> String {
    array.dtype().str().map_or_else(|_| "of another type".into(), |name| name.to_string())
}

/// Checks for an aligned float32 array; the error says how to convert it.
pub fn floats<'py>(
    name: &str,
    object: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyArrayDyn<f32>>> {
    let Ok(array) = object.cast::<PyUntypedArray>() else {
        return Err(type_error(format!(
            "{name} is a {}; pass a numpy array: numpy.asarray({name}, dtype=numpy.float32)",
            type_name(object)
        )));
    };
    let Ok(array) = object.cast::<PyArrayDyn<f32>>() else {
        let dtype = dtype_name(array);
        return Err(type_error(format!(
            "{name} is {dtype}; convert it with {name}.astype(numpy.float32)"
        )));
    };
    // Strides must be multiples of a float; those of an axis of one element are not used.
    let whole = array.shape().iter().zip(array.strides()).all(|(n, step)| *n < 2 || step % 4 == 0);
    if !array.is_aligned() || !whole {
        return Err(type_error(format!("{name} is not aligned to 4 bytes; pass {name}.copy()")));
    }
    Ok(array.clone())
}

/// Integers of any width, with their shape; lists are accepted.
pub fn ints(name: &str, object: &Bound<PyAny>) -> PyResult<(Vec<i64>, Vec<usize>)> {
    let array = object.py().import("numpy")?.call_method1("asarray", (object,))?;
    let untyped = array.cast::<PyUntypedArray>()?;
    if !matches!(untyped.dtype().kind(), b'i' | b'u') && untyped.len() > 0 {
        return Err(type_error(format!(
            "{name} is {}; pass integers: {name}.astype(numpy.int64)",
            dtype_name(untyped)
        )));
    }
    let shape = untyped.shape().to_vec();
    let array = array.call_method1("astype", ("int64",))?;
    let array = array.cast::<PyArrayDyn<i64>>()?;
    Ok((array.readonly().as_array().iter().copied().collect(), shape))
}

/// Nonnegative integers, in one dimension.
pub fn indices(name: &str, object: &Bound<PyAny>) -> PyResult<Vec<usize>> {
    let (values, shape) = ints(name, object)?;
    if shape.len() != 1 {
        return Err(value_error(format!(
            "{name}: got shape {}, need one dimension",
            tuple(&shape)
        )));
    }
    let natural = |x: i64| {
        let error = || value_error(format!("{name}: got {x}, need 0 or more"));
        usize::try_from(x).map_err(|_| error())
    };
    values.into_iter().map(natural).collect()
}

/// One nonnegative integer.
pub fn natural(name: &str, value: i64) -> PyResult<usize> {
    usize::try_from(value).map_err(|_| value_error(format!("{name}: got {value}, need 0 or more")))
}

/// Floats that a kernel reads without a copy: an array, or a single number.
pub struct Input<'py> {
    array: Option<Bound<'py, PyArrayDyn<f32>>>,
    number: f32,
    /// Shape in four dimensions.
    pub shape: [usize; 4],
    strides: [isize; 4],
}

impl<'py> Input<'py> {
    /// Takes an array of `[B, H, N, D]`.
    pub fn new(name: &str, letters: &str, object: &Bound<'py, PyAny>) -> PyResult<Input<'py>> {
        let array = floats(name, object)?;
        if array.ndim() != 4 {
            let got = tuple(array.shape());
            return Err(value_error(format!("{name}: got shape {got}, need {letters}")));
        }
        Ok(Input::of(array, &[0, 1, 2, 3]))
    }

    /// Takes an array of fewer dimensions, which become these axes of the four.
    pub fn of(array: Bound<'py, PyArrayDyn<f32>>, axes: &[usize]) -> Input<'py> {
        let (mut shape, mut strides) = ([1; 4], [1; 4]);
        for (from, axis) in axes.iter().enumerate() {
            shape[*axis] = array.shape()[from];
            if shape[*axis] > 1 {
                strides[*axis] = array.strides()[from] / 4;
            }
        }
        Input { array: Some(array), number: 0.0, shape, strides }
    }

    /// Takes a single number.
    pub fn number(number: f32) -> Input<'py> {
        Input { array: None, number, shape: [1; 4], strides: [1; 4] }
    }

    /// View for the kernels.
    pub fn view(&self) -> View<'_> {
        match &self.array {
            // SAFETY: numpy vouches for shape and strides, and the array lives as long as `self`.
            Some(array) => unsafe { View::from_raw(array.data(), self.shape, self.strides) },
            None => View::new(std::slice::from_ref(&self.number), [1; 4]).expect("one number"),
        }
    }

    /// Shape in Python, which is also that of the gradient.
    pub fn python_shape(&self) -> Vec<usize> {
        self.array.as_ref().map_or(vec![], |array| array.shape().to_vec())
    }
}

/// Creates a float32 array with arbitrary contents. If the allocation fails, returns Python's
/// `MemoryError` or `ValueError`, where `PyArray::new` would panic.
pub fn empty<const N: usize>(py: Python<'_>, shape: [usize; N]) -> PyResult<Bound<'_, PyAny>> {
    let too_large = |_| PyMemoryError::new_err(format!("a result of shape {}", tuple(&shape)));
    let mut sizes = [0; N];
    for (to, size) in sizes.iter_mut().zip(shape) {
        *to = npy_intp::try_from(size).map_err(too_large)?;
    }
    // SAFETY: `sizes` has `N` sizes, numpy takes over the reference to the type, and what it
    // returns is a new reference, or null with an exception set.
    unsafe {
        let dtype = numpy::dtype::<f32>(py).into_dtype_ptr();
        let array = PY_ARRAY_API.PyArray_Empty(py, N as i32, sizes.as_mut_ptr(), dtype, 0);
        Bound::from_owned_ptr_or_err(py, array)
    }
}

/// New array that a kernel fills.
pub struct Output<'py> {
    /// The array in the order of its memory.
    memory: Bound<'py, PyArray4<f32>>,
    shape: [usize; 4],
    heads_inside: bool,
}

impl<'py> Output<'py> {
    /// Creates an array of shape `[B, H, N, W]`. It is not cleared: kernels write every element.
    pub fn new(py: Python<'py>, shape: [usize; 4]) -> PyResult<Output<'py>> {
        Output::laid_out(py, shape, false)
    }

    /// Creates an array with the memory layout of `input`: `[B, N, H, W]` if heads are inner,
    /// otherwise `[B, H, N, W]`.
    pub fn like(py: Python<'py>, shape: [usize; 4], input: &View) -> PyResult<Output<'py>> {
        let [_, h, n, w] = input.strides.map(isize::unsigned_abs);
        let several = input.shape[1] > 1 && input.shape[2] > 1;
        Output::laid_out(py, shape, several && w <= h && h < n)
    }

    fn laid_out(py: Python<'py>, shape: [usize; 4], heads_inside: bool) -> PyResult<Output<'py>> {
        let [b, h, n, w] = shape;
        let memory = if heads_inside { [b, n, h, w] } else { shape };
        let memory = empty(py, memory)?.cast_into::<PyArray4<f32>>()?;
        Ok(Output { memory, shape, heads_inside })
    }

    fn strides(&self) -> [isize; 4] {
        let [_, h, n, w] = self.shape.map(|x| x as isize);
        match self.heads_inside {
            true => [n * h * w, w, h * w, 1],
            false => [h * n * w, n * w, w, 1],
        }
    }

    /// The array for Python.
    pub fn array(self) -> PyResult<Bound<'py, PyArray4<f32>>> {
        match self.heads_inside {
            true => self.memory.permute(Some([0, 2, 1, 3])),
            false => Ok(self.memory),
        }
    }

    /// Mutable view for the kernels.
    pub fn room(&mut self) -> ViewMut<'_> {
        // SAFETY: the array is new, contiguous and ours alone until it is returned.
        let data = unsafe { std::slice::from_raw_parts_mut(self.memory.data(), self.memory.len()) };
        ViewMut::strided(data, self.shape, self.strides()).expect("laid out so")
    }

    /// View of the results.
    pub fn view(&self) -> View<'_> {
        // SAFETY: as above.
        let data = unsafe { std::slice::from_raw_parts(self.memory.data(), self.memory.len()) };
        View::strided(data, self.shape, self.strides(), 0).expect("laid out so")
    }
}

/// A vector as an array, without a copy.
pub fn array<'py, T: Element>(
    py: Python<'py>,
    shape: &[usize],
    data: Vec<T>,
) -> Bound<'py, PyArrayDyn<T>> {
    let array = ArrayD::from_shape_vec(shape, data).expect("as many elements as the shape has");
    PyArrayDyn::from_owned_array(py, array)
}
