//! The native part of the Python package `foveate`: `foveate._native`.
//!
//! Classes and functions here have the fewest arguments that work; the package's Python sources give them names, defaults,
//! documentation and types. Nothing here decides: what two front ends need is in the crate `foveate`.

mod agent;
mod arrays;
mod cluster;
mod errors;
mod given;
mod hosted;
mod jobs;
mod policy;
mod strategy;
mod tell;
mod words;
mod world;

use pyo3::pymodule;

/// Worlds, agents and jobs for the package `foveate`; private to it.
#[pymodule]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::agent::Agent;
    #[pymodule_export]
    use super::cluster::RolloutWorker;
    #[pymodule_export]
    use super::hosted::HostedWorld;
    #[pymodule_export]
    use super::jobs::{
        calibrate, command, compare, compile_model, compile_models_with, evaluate, explain, export, resume,
        stress, train, watch,
    };
    #[pymodule_export]
    use super::strategy::{Strategy, strategies};
    #[pymodule_export]
    use super::world::{World, Worlds, forked};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // Workers of Gymnasium and MuJoCo's library come from the environment that the package is in, whatever is activated.
        let python: Option<std::path::PathBuf> =
            module.py().import("sys")?.getattr("executable")?.extract()?;
        if let Some(python) = python {
            foveate::registry::gymnasium::runs_in(&python);
        }
        // What asks a session of onnxruntime, also for the command.
        module.add("ONNX_PROGRAM", foveate::registry::gymnasium::ONNX_PROGRAM)?;
        module.add("__version__", foveate::run::VERSION)
    }
}
