//! Environments of Python's program as worlds.

use std::sync::Arc;

use foveate::registry::gymnasium::{Host, HostedName, host};
use pyo3::prelude::*;

/// Starts threads of Python that serve copies.
struct PythonHost(Py<PyAny>);

impl Host for PythonHost {
    fn serve(&self, control: i32, memory: i32) -> Result<(), String> {
        Python::attach(|py| {
            let started = self.0.call1(py, (control, memory));
            started.map(drop).map_err(|error| error.value(py).to_string())
        })
    }
}

/// The name of an environment of this program, until it is closed.
#[pyclass(module = "foveate._native", frozen)]
pub(crate) struct HostedWorld {
    world: String,
    name: std::sync::Mutex<Option<HostedName>>,
}

#[pymethods]
impl HostedWorld {
    #[new]
    fn new(name: &str, serve: Py<PyAny>) -> Self {
        let name = host(name, Arc::new(PythonHost(serve)));
        HostedWorld { world: name.world(), name: std::sync::Mutex::new(Some(name)) }
    }

    /// The name that jobs take.
    fn world(&self) -> &str {
        &self.world
    }

    /// Gives the name up; copies that no job uses end.
    fn close(&self, py: Python<'_>) {
        let name = self.name.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        py.detach(|| drop(name));
    }
}
