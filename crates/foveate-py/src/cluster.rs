//! Rollouts on the machines of a cluster whose engine is Python's.

use std::sync::{Mutex, TryLockError};

use foveate::run::cluster::{Cluster, ClusterWorker};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{Kind, caught, of_run, raised};

/// An object of Python as a cluster: its methods are those of [`Cluster`], with bytes for bytes.
pub(crate) struct PythonCluster(Py<PyAny>);

impl PythonCluster {
    pub(crate) const fn new(object: Py<PyAny>) -> Self {
        PythonCluster(object)
    }

    /// Calls a method; its exception becomes a sentence.
    fn call<T>(&self, name: &str, of: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> Result<T, String> {
        Python::attach(|py| {
            let called = self.0.bind(py).getattr(name).and_then(|method| of(&method));
            called.map_err(|error| error.value(py).to_string())
        })
    }
}

impl Cluster for PythonCluster {
    fn open(&mut self, setup: &[u8]) -> Result<(), String> {
        self.call("open", |open| open.call1((PyBytes::new(open.py(), setup),)).map(|_| ()))
    }

    fn workers(&mut self) -> usize {
        self.call("workers", |workers| workers.call0()?.extract()).unwrap_or(1)
    }

    fn begin(&mut self, weights: Vec<u8>, batches: Vec<Vec<u8>>) -> Result<(), String> {
        self.call("begin", |begin| {
            let py = begin.py();
            let batches: Vec<_> = batches.iter().map(|batch| PyBytes::new(py, batch)).collect();
            begin.call1((PyBytes::new(py, &weights), batches)).map(|_| ())
        })
    }

    fn wait(&mut self) -> Result<Option<(usize, Vec<u8>)>, String> {
        self.call("wait", |wait| wait.call0()?.extract())
    }

    fn cancel(&mut self) {
        // The run ends, whatever the cluster says to it.
        let _ = self.call("cancel", |cancel| cancel.call0().map(|_| ()));
    }
}

/// Runs batches of rollouts on this machine: what a worker of a cluster does.
#[pyclass(frozen, module = "foveate._native")]
pub(crate) struct RolloutWorker(Mutex<ClusterWorker>);

#[pymethods]
impl RolloutWorker {
    /// A worker with this setup, as the run's machine sent it. A setup may name a world that runs code.
    #[new]
    fn new(py: Python<'_>, setup: Vec<u8>) -> PyResult<Self> {
        let made = caught(py, || py.detach(|| ClusterWorker::new(&setup)))?;
        Ok(RolloutWorker(Mutex::new(made.map_err(|error| of_run(py, &error))?)))
    }

    /// Runs a batch with these weights: the answer's bytes.
    fn run<'py>(&self, py: Python<'py>, weights: &[u8], batch: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let held = &self.0;
        let answer = caught(py, || {
            py.detach(|| match held.try_lock() {
                Ok(mut worker) => Some(worker.run(weights, batch)),
                Err(TryLockError::Poisoned(worker)) => Some(worker.into_inner().run(weights, batch)),
                Err(TryLockError::WouldBlock) => None,
            })
        })?;
        let answer = answer.ok_or_else(|| {
            raised(py, Kind::Busy, "another thread uses this worker now; make one for each")
        })?;
        Ok(PyBytes::new(py, &answer.map_err(|error| of_run(py, &error))?))
    }
}
