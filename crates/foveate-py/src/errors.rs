//! Errors of Foveate as exceptions of `foveate.errors`.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use foveate::Error;
use foveate::core::{EnvError, EvaluateError};
use foveate::run::vector::VectorError;
use foveate::training::TrainError;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::words::with_keywords;

/// The exceptions, by their names in `foveate.errors`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Foveate,
    Action,
    Option,
    Reset,
    Busy,
    Fork,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Kind::Foveate => "FoveateError",
            Kind::Action => "ActionError",
            Kind::Option => "OptionError",
            Kind::Reset => "ResetNeeded",
            Kind::Busy => "BusyError",
            Kind::Fork => "ForkError",
        }
    }
}

/// The exception of this kind with this message, in the words of Python.
pub(crate) fn raised(py: Python<'_>, kind: Kind, message: impl Into<String>) -> PyErr {
    let message = with_keywords(&message.into());
    let make = || py.import("foveate.errors")?.getattr(kind.name())?.call1((message,)).map(PyErr::from_value);
    make().unwrap_or_else(|error| error)
}

/// The exception for an error of a world.
pub(crate) fn of_world(py: Python<'_>, error: &EnvError) -> PyErr {
    of_kind_and_text(py, error, error.to_string())
}

fn of_kind_and_text(py: Python<'_>, error: &EnvError, text: String) -> PyErr {
    let kind = match error {
        EnvError::ActionLength { .. } | EnvError::ActionKind { .. } | EnvError::ActionNotFinite { .. } => {
            Kind::Action
        }
        EnvError::NeedsReset { .. } => Kind::Reset,
        EnvError::UnknownEnv { .. } | EnvError::UnknownOption { .. } | EnvError::BadOption { .. } => {
            Kind::Option
        }
        _ => Kind::Foveate,
    };
    raised(py, kind, text)
}

/// The exception for an error of a batch of worlds.
pub(crate) fn of_worlds(py: Python<'_>, error: &VectorError) -> PyErr {
    match error {
        VectorError::World { source, .. } => of_kind_and_text(py, source, error.to_string()),
        VectorError::BadRequest { .. } => raised(py, Kind::Option, error.to_string()),
        _ => raised(py, Kind::Foveate, error.to_string()),
    }
}

/// The exception for an error of a run; a stop is one that Ctrl-C asked for.
pub(crate) fn of_run(py: Python<'_>, error: &Error) -> PyErr {
    match error {
        Error::Evaluate(EvaluateError::Stopped) => PyKeyboardInterrupt::new_err(()),
        Error::BadRequest { .. }
        | Error::Config { .. }
        | Error::Train(TrainError::Recipe { .. } | TrainError::NoStudent { .. }) => {
            raised(py, Kind::Option, error.to_string())
        }
        Error::Env(error) => of_world(py, error),
        _ => raised(py, Kind::Foveate, error.to_string()),
    }
}

/// Calls `f`; a panic becomes an exception instead of ending the interpreter's thread.
pub(crate) fn caught<T>(py: Python<'_>, f: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(f)).map_err(|panic| {
        let message = format!("Foveate failed: {}; please report this", text_of(&*panic));
        raised(py, Kind::Foveate, message)
    })
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}
