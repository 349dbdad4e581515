//! Errors as Python exceptions, with the same text.

use pyo3::exceptions::{PyException, PyKeyboardInterrupt, PyValueError};
use pyo3::{PyErr, create_exception};

create_exception!(
    loopfold,
    Error,
    PyException,
    "What the command would print as an error: a file that cannot be read, a damaged trace, a limit."
);

/// An error of the command.
pub(crate) fn of_command(error: &loopfold_cli::Error) -> PyErr {
    match error.kind() {
        loopfold_cli::ErrorKind::Arguments => PyValueError::new_err(in_python(error.to_string())),
        loopfold_cli::ErrorKind::Interrupted => PyKeyboardInterrupt::new_err(()),
        loopfold_cli::ErrorKind::Damaged => {
            Error::new_err(format!("{error}; lenient=True reads what can be read"))
        }
        _ => Error::new_err(error.to_string()),
    }
}

/// An error of the library.
pub(crate) fn of_library(error: loopfold::Error) -> PyErr {
    match error.kind() {
        loopfold::ErrorKind::Invalid => PyValueError::new_err(error.to_string()),
        loopfold::ErrorKind::Interrupted => PyKeyboardInterrupt::new_err(()),
        _ => Error::new_err(error.to_string()),
    }
}

/// Says `min_length` where the command says `--min-length <N>`.
fn in_python(message: String) -> String {
    let Some(start) = message.find("'--") else { return message };
    let Some(length) = message[start + 1..].find('\'') else { return message };
    let option = &message[start + 3..start + 1 + length];
    let name = option.split([' ', '=']).next().unwrap_or(option).replace('-', "_");
    format!("{}{name}{}", &message[..start], &message[start + length + 2..])
}
