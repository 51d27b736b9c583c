//! Boundary between Rust and Python: panics become exceptions, failed allocations a `MemoryError`,
//! and Ctrl-C ends a call.

use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError, PyRuntimeError};
use pyo3::prelude::*;
use regard_kernels::memory::REFUSED;
use regard_kernels::pool::{Interrupted, interruptible};
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::sync::Mutex;

/// Location of the last panic.
static LAST: Mutex<Option<String>> = Mutex::new(None);

/// Silences panic messages, since panics become exceptions. This hook belongs to the wheel; other
/// extensions have theirs.
pub fn silence_panics() {
    set_hook(Box::new(|info| {
        let place = info.location().map(|at| {
            // Relative to the crate's folder, without the path of the build machine.
            let file = at.file();
            let start = ["crates/", "python/"].iter().find_map(|folder| file.rfind(folder));
            format!("{}:{}", &file[start.unwrap_or(0)..], at.line())
        });
        if let Ok(mut last) = LAST.lock() {
            *last = place;
        }
    }));
}

/// Runs the body of a function that Python calls. Every such function uses it.
///
/// After a panic the thread pool is intact: every thread has left the work, and the next call uses
/// all of them.
pub fn entry<R>(body: impl FnOnce() -> PyResult<R>) -> PyResult<R> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| Err(exception(&*payload)))
}

fn exception(payload: &(dyn Any + Send)) -> PyErr {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("a panic without a message");
    if text.starts_with(REFUSED) {
        return PyMemoryError::new_err(text.to_string());
    }
    let place = LAST.lock().ok().and_then(|mut last| last.take());
    let place = place.map_or(String::new(), |place| format!(" ({place})"));
    let text: String = text.chars().take(500).collect();
    PyRuntimeError::new_err(format!(
        "internal error in regard: {text}{place}. This is a bug in regard: please report it with \
         the arguments of the call. Later calls are not affected."
    ))
}

/// Runs kernels without the GIL. About every 50 ms Python may handle signals, if this is its main
/// thread; when a handler raises, as that of Ctrl-C does, the kernels give up and the exception is
/// returned.
pub fn compute<R: Send>(py: Python<'_>, run: impl FnOnce() -> R + Send) -> PyResult<R> {
    py.detach(|| {
        let raised = Cell::new(None);
        // Signals are handled on the main thread alone, so other threads need not check.
        let elsewhere = Cell::new(false);
        let poll = || {
            if elsewhere.get() {
                return false;
            }
            let asked = Python::try_attach(|py| {
                elsewhere.set(!on_main_thread(py)?);
                py.check_signals()
            });
            let error = asked.and_then(Result::err);
            let stop = error.is_some();
            raised.set(error);
            stop
        };
        interruptible(&poll, run).map_err(|Interrupted| {
            raised.take().unwrap_or_else(|| PyKeyboardInterrupt::new_err(()))
        })
    })
}

fn on_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import("threading")?;
    let main = threading.call_method0("main_thread")?.getattr("ident")?;
    main.eq(threading.call_method0("get_ident")?)
}

/// For tests only: panics, in a "task" of the pool or here.
#[pyfunction]
fn _fail(py: Python<'_>, how: &str) -> PyResult<()> {
    entry(|| match how {
        "task" => compute(py, || {
            regard_kernels::pool::parallel(64, &|task| assert!(task != 7, "failed in a task"));
        }),
        _ => panic!("failed {how}"),
    })
}

pub fn register(module: &Bound<PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_fail, module)?)
}
