//! Values that Python describes: worlds and jobs.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use serde::de::DeserializeOwned;

use crate::errors::{Kind, raised};

/// A world or a job of Python, a dict or its JSON; its fields have the names of the Rust type's.
#[derive(Debug, Clone)]
pub(crate) struct Given<T>(pub(crate) T);

impl<T: DeserializeOwned> FromPyObject<'_, '_> for Given<T> {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let py = given.py();
        let text: String = match given.extract() {
            Ok(text) => text,
            Err(_) => py.import("json")?.getattr("dumps")?.call1((given,))?.extract()?,
        };
        let mut json = serde_json::Deserializer::from_str(&text);
        serde_path_to_error::deserialize(&mut json).map(Given).map_err(|error| {
            let place = error.path().to_string();
            let keyword = match place.trim_start_matches("world.") {
                "variants" => "variant",
                "variant_rows" => "variants",
                other => other,
            };
            let why = error.inner().to_string();
            let why = why.rsplit_once(" at line ").map_or(&*why, |(why, _)| why);
            let message = format!("{keyword}: {why}");
            if why.starts_with("invalid type") {
                return PyTypeError::new_err(message);
            }
            raised(py, Kind::Option, message)
        })
    }
}
