//! Observations and actions as arrays of NumPy.

use foveate::core::{
    ActionBuf, ActionSpace, GridBuf, Observation, ObservationBuf, ObservationSpace, PixelsBuf,
};
use numpy::{Element, PyArrayDyn, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::errors::{Kind, raised};

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

/// An observation of Python's for an agent that was made for `space`.
///
/// # Errors
/// `TypeError` or `ValueError` when it does not fit.
pub(crate) fn given(
    py: Python<'_>,
    space: &ObservationSpace,
    given: &Bound<'_, PyAny>,
) -> PyResult<ObservationBuf> {
    let bytes = |shape: &[usize]| -> PyResult<Vec<u8>> {
        let shape = PyTuple::new(py, shape)?;
        let array = py.import("foveate._arrays")?.getattr("image")?.call1((given, shape))?;
        Ok(array.cast::<PyArrayDyn<u8>>()?.try_readonly()?.to_vec()?)
    };
    let misfit = || raised(py, Kind::Option, "the observation does not fit the agent's world");
    match space {
        ObservationSpace::Image(shape) => {
            let all = [shape.frames, shape.height, shape.width, shape.channels];
            let bytes = bytes(&all[usize::from(shape.frames == 1)..])?;
            PixelsBuf::new(*shape, bytes).map(ObservationBuf::Image).ok_or_else(misfit)
        }
        &ObservationSpace::Grid { rows, columns, channels } => {
            let bytes = bytes(&[rows, columns, channels])?;
            GridBuf::new(rows, columns, channels, bytes).map(ObservationBuf::Grid).ok_or_else(misfit)
        }
        ObservationSpace::Vector { len } => {
            let mut values = vec![];
            let shape = numbers(given, &mut values)?;
            if shape != [*len] {
                let message = format!("the observation has the shape {shape:?}; the agent takes [{len}]");
                return Err(raised(py, Kind::Option, message));
            }
            Ok(ObservationBuf::Vector(values.into_iter().map(|value| value as f32).collect()))
        }
        ObservationSpace::Dict(parts) => {
            let part = |(name, space): &(String, ObservationSpace)| -> PyResult<(String, ObservationBuf)> {
                Ok((name.clone(), self::given(py, space, &given.get_item(name)?)?))
            };
            Ok(ObservationBuf::Dict(parts.iter().map(part).collect::<PyResult<_>>()?))
        }
    }
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
    numbers_of(given, "an action", numbers)
}

/// Appends whole numbers, one for each world, to `choices`, and returns their shape.
pub(crate) fn choices(
    given: &Bound<'_, PyAny>,
    space: &ActionSpace,
    choices: &mut Vec<usize>,
) -> PyResult<Vec<usize>> {
    let converted;
    let array = match given.cast::<PyArrayDyn<i64>>() {
        Ok(array) if array.is_c_contiguous() => array,
        _ => {
            converted = given.py().import("foveate._arrays")?.getattr("choices")?.call1((given,))?;
            converted.cast::<PyArrayDyn<i64>>()?
        }
    };
    let mut append = |values: &[i64]| {
        for &choice in values {
            choices.push(usize::try_from(choice).map_err(|_| {
                let message = format!("choice {choice}; take {}", space.describe());
                raised(given.py(), Kind::Action, message)
            })?);
        }
        Ok::<_, PyErr>(())
    };
    let values = array.try_readonly()?;
    match values.as_slice() {
        Ok(values) => append(values)?,
        // Not aligned.
        Err(_) => append(&values.to_vec()?)?,
    }
    Ok(array.shape().to_vec())
}

/// The same; `what` it is stands in the error.
pub(crate) fn numbers_of(
    given: &Bound<'_, PyAny>,
    what: &str,
    numbers: &mut Vec<f64>,
) -> PyResult<Vec<usize>> {
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
            converted = given.py().import("foveate._arrays")?.getattr("numbers")?.call1((given, what))?;
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
                return Err(raised(given.py(), Kind::Action, message));
            };
            *action = ActionBuf::Discrete(choice);
        }
        (ActionSpace::Box { low, .. }, ActionBuf::Continuous(values)) => {
            values.clear();
            let shape = numbers(given, values)?;
            if shape != [low.len()] {
                let message = format!("an action of shape {shape:?}; its shape is [{}]", low.len());
                return Err(raised(given.py(), Kind::Action, message));
            }
        }
        (ActionSpace::Box { .. }, action) => *action = space.zero(),
    }
    Ok(())
}
