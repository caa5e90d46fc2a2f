//! A flat vector of parameters and the tensors in it, for whoever writes an agent.

use std::ops::Range;

use foveate_core::{PolicyError, TensorShape};
use foveate_kernels::elementwise::all_finite;
use foveate_kernels::lstm::CellWeights;
use foveate_kernels::project::Linear;

/// The parameters of an agent.
#[derive(Debug, Clone)]
pub struct Params {
    tensors: Vec<TensorShape>,
    starts: Vec<usize>,
    flat: Vec<f32>,
}

/// The three methods of [`Policy`](foveate_core::Policy) that an agent forwards to its field `params`. After a change,
/// `$changed` is evaluated, if it is given, with the agent as `$agent`.
macro_rules! forward_params {
    () => {
        forward_params!(@read);

        fn set_params(&mut self, flat: &[f32]) -> Result<(), ::foveate_core::PolicyError> {
            self.params.set(flat)
        }
    };
    (|$agent:ident| $changed:expr) => {
        forward_params!(@read);

        fn set_params(&mut self, flat: &[f32]) -> Result<(), ::foveate_core::PolicyError> {
            self.params.set(flat)?;
            let $agent = self;
            $changed;
            Ok(())
        }
    };
    (@read) => {
        fn tensors(&self) -> Vec<::foveate_core::TensorShape> {
            self.params.tensors().to_vec()
        }

        fn params(&self) -> Vec<f32> {
            self.params.flat().to_vec()
        }
    };
}
pub(crate) use forward_params;

impl Params {
    /// Zeros.
    pub fn zeros(tensors: Vec<TensorShape>) -> Self {
        let len = tensors.iter().map(TensorShape::len).sum();
        Params { starts: starts(&tensors), tensors, flat: vec![0.0; len] }
    }

    /// Name and shape of every tensor, in order.
    pub fn tensors(&self) -> &[TensorShape] {
        &self.tensors
    }

    /// All numbers.
    pub fn flat(&self) -> &[f32] {
        &self.flat
    }

    /// The tensor called `name`; empty when there is none.
    pub fn get(&self, name: &str) -> &[f32] {
        &self.flat[self.place(name)]
    }

    /// Where the tensor called `name` lies in the flat vector; empty when there is none.
    pub(crate) fn place(&self, name: &str) -> Range<usize> {
        let place = self.tensors.iter().position(|tensor| tensor.name == name);
        place.map_or(0..0, |i| self.starts[i]..self.starts[i] + self.tensors[i].len())
    }

    /// The last `count` tensors.
    pub(crate) fn last(&self, count: usize) -> impl Iterator<Item = &[f32]> {
        let first = self.tensors.len().saturating_sub(count);
        let places = self.tensors[first..].iter().zip(&self.starts[first..]);
        places.map(|(tensor, &start)| &self.flat[start..start + tensor.len()])
    }

    /// The LSTM called `lstm`.
    pub(crate) fn lstm(&self) -> CellWeights<'_> {
        CellWeights {
            weight_ih: self.get("lstm.weight_ih"),
            weight_hh: self.get("lstm.weight_hh"),
            bias_ih: self.get("lstm.bias_ih"),
            bias_hh: self.get("lstm.bias_hh"),
        }
    }

    /// The tensors called `weight` and `bias`.
    pub(crate) fn linear(&self, weight: &str, bias: &str) -> Linear<'_> {
        Linear { weight: self.get(weight), bias: self.get(bias) }
    }

    /// Replaces all numbers, without allocating.
    ///
    /// # Errors
    /// When the count is wrong or a value is not finite; nothing is replaced then.
    pub fn set(&mut self, flat: &[f32]) -> Result<(), PolicyError> {
        check_count(&self.tensors, flat)?;
        if !all_finite(flat) {
            let index = flat.iter().position(|v| !v.is_finite()).unwrap_or_default();
            let tensor = self.starts.partition_point(|&start| start <= index) - 1;
            let tensor = self.tensors[tensor].name.clone();
            return Err(PolicyError::ParamNotFinite { index, tensor, value: flat[index] });
        }
        self.flat.copy_from_slice(flat);
        Ok(())
    }
}

/// Where each tensor starts in the flat vector.
pub(crate) fn starts(tensors: &[TensorShape]) -> Vec<usize> {
    let mut next = 0;
    tensors
        .iter()
        .map(|tensor| {
            let start = next;
            next += tensor.len();
            start
        })
        .collect()
}

/// Checks the length of a flat vector.
pub(crate) fn check_count(tensors: &[TensorShape], flat: &[f32]) -> Result<(), PolicyError> {
    let wanted = tensors.iter().map(TensorShape::len).sum();
    if flat.len() == wanted {
        return Ok(());
    }
    let words: Vec<String> =
        tensors.iter().map(|tensor| format!("{} {}", tensor.name, tensor.len())).collect();
    Err(PolicyError::ParamCount { wanted, given: flat.len(), tensors: words.join(", ") })
}
