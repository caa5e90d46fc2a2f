//! Observations and actions as arrays of NumPy.

use foveate::core::{ActionBuf, ActionSpace, Observation};
use numpy::{Element, PyArrayDyn, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A copy of an observation: `uint8 [height, width, channels]` (of several frames `[frames, height, width, channels]`),
/// `uint8 [rows, columns, channels]`, `float32 [numbers]`, or a dictionary of these.
pub(crate) fn observation<'py>(py: Python<'py>, shown: Observation<'_>) -> PyResult<Bound<'py, PyAny>> {
    Ok(match shown {
        Observation::Image(pixels) => {
            let shape = pixels.shape();
            let all = [shape.frames, shape.height, shape.width, shape.channels];
            let dims = if shape.frames == 1 { &all[1..] } else { &all[..] };
            array(py, dims, pixels.bytes())?.into_any()
        }
        Observation::Grid(grid) => {
            array(py, &[grid.rows(), grid.columns(), grid.channels()], grid.codes())?.into_any()
        }
        Observation::Vector(numbers) => array(py, &[numbers.len()], numbers)?.into_any(),
        Observation::Dict(parts) => {
            let dict = PyDict::new(py);
            for (name, part) in (0..parts.count()).filter_map(|i| parts.part(i)) {
                dict.set_item(name, observation(py, part)?)?;
            }
            dict.into_any()
        }
    })
}

/// A new array of this shape with a copy of `values`.
pub(crate) fn array<'py, T: Element + Copy>(
    py: Python<'py>,
    shape: &[usize],
    values: &[T],
) -> PyResult<Bound<'py, PyArrayDyn<T>>> {
    let array = PyArrayDyn::<T>::zeros(py, shape, false);
    array.try_readwrite()?.as_slice_mut()?.copy_from_slice(values);
    Ok(array)
}

/// Appends the numbers of `given` to `numbers`, in row-major order, and returns their shape.
///
/// # Errors
/// `TypeError` when they are no real numbers.
pub(crate) fn numbers(given: &Bound<'_, PyAny>, numbers: &mut Vec<f64>) -> PyResult<Vec<usize>> {
    if let Ok(array) = given.cast::<PyArrayDyn<f32>>()
        && array.is_c_contiguous()
        && let Ok(values) = array.try_readonly()?.as_slice()
    {
        numbers.extend(values.iter().map(|&value| f64::from(value)));
        return Ok(array.shape().to_vec());
    }
    let converted;
    let array = match given.cast::<PyArrayDyn<f64>>() {
        Ok(array) if array.is_c_contiguous() => array,
        _ => {
            converted = given.py().import("foveate._arrays")?.getattr("numbers")?.call1((given,))?;
            converted.cast::<PyArrayDyn<f64>>()?
        }
    };
    match array.try_readonly()?.as_slice() {
        Ok(values) => numbers.extend_from_slice(values),
        // Not aligned.
        Err(_) => numbers.extend(array.try_readonly()?.to_vec()?),
    }
    Ok(array.shape().to_vec())
}

/// Reads one action for `space`; `scratch` holds its numbers.
///
/// # Errors
/// `TypeError` for what is no action of this kind, `foveate.errors.ActionError` for a wrong shape.
pub(crate) fn action(space: &ActionSpace, given: &Bound<'_, PyAny>, action: &mut ActionBuf) -> PyResult<()> {
    match (space, action) {
        (ActionSpace::Discrete { .. }, action) => {
            let choice: i64 = given.extract()?;
            let Ok(choice) = usize::try_from(choice) else {
                let message = format!("choice {choice}; take {}", space.describe());
                return Err(crate::errors::raised(given.py(), crate::errors::Kind::Action, message));
            };
            *action = ActionBuf::Discrete(choice);
        }
        (ActionSpace::Box { low, .. }, ActionBuf::Continuous(values)) => {
            values.clear();
            let shape = numbers(given, values)?;
            if shape != [low.len()] {
                let message = format!("an action of shape {shape:?}; its shape is [{}]", low.len());
                return Err(crate::errors::raised(given.py(), crate::errors::Kind::Action, message));
            }
        }
        (ActionSpace::Box { .. }, action) => *action = space.zero(),
    }
    Ok(())
}
