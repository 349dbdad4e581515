//! The native part of the Python package `loopfold`; what users see is in `python/loopfold`.
//!
//! Questions are asked as the command asks them, through `loopfold_cli::Asker`, so that Python and the
//! command give the same answers with the same defaults; `asker` is that. What a command cannot
//! take or give is here: events from memory (`events`), from Python code (`recorder`, `tracer`), arrays
//! (`expand`, `segments`), and tables as Arrow (`table`). Every call that may take long is executed in
//! a thread of its own (`work`), without the lock of the interpreter, so that Ctrl-C interrupts it.

mod asker;
mod direct;
mod errors;
mod events;
mod expand;
mod interned;
mod recorder;
mod segments;
mod table;
mod tracer;
mod work;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::asker::Native;
    #[pymodule_export]
    use super::events::fold_events;
    #[pymodule_export]
    use super::recorder::NativeRecorder;
    #[pymodule_export]
    use super::table::{definitions, table};
    #[pymodule_export]
    use super::tracer::NativeTracer;

    use super::{Bound, PyModule, PyResult, errors};
    use pyo3::types::PyModuleMethods as _;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("Error", module.py().get_type::<errors::Error>())?;
        module.add("VERSION", env!("CARGO_PKG_VERSION"))
    }
}
