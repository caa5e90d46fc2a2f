//! Tensors, and states made of named tensors.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Numbers with a shape, row-major.
///
/// ```
/// use foveate_core::{Tensor, TensorData};
/// let matrix = Tensor::new(vec![2, 3], TensorData::F32(vec![0.0; 6]))?;
/// assert_eq!((matrix.shape(), matrix.len()), (&[2, 3][..], 6));
/// assert_eq!(Tensor::from(vec![1.0, 2.0]).shape(), [2]);
/// let said = Tensor::new(vec![4], TensorData::U64(vec![1])).unwrap_err().to_string();
/// assert_eq!(said, "a tensor of the shape [4] with 1 numbers; give one number for each place");
/// # Ok::<(), foveate_core::StateError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Tensor {
    /// Slowest dimension first; empty for a single number.
    shape: Vec<usize>,
    data: TensorData,
}

/// The numbers of a [`Tensor`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TensorData {
    /// Single precision.
    F32(Vec<f32>),
    /// Double precision.
    F64(Vec<f64>),
    /// Counters and seeds.
    U64(Vec<u64>),
    /// Integers, for NumPy files.
    I32(Vec<i32>),
    /// Integers, for NumPy files.
    I64(Vec<i64>),
    /// Bytes, such as image data.
    U8(Vec<u8>),
}

/// A tensor before validation.
#[derive(Deserialize)]
struct Unchecked {
    shape: Vec<usize>,
    data: TensorData,
}

impl TryFrom<Unchecked> for Tensor {
    type Error = StateError;

    fn try_from(Unchecked { shape, data }: Unchecked) -> Result<Self, StateError> {
        Tensor::new(shape, data)
    }
}

/// Appends numbers as bytes, in blocks that compile to copies.
fn append<const N: usize, T: Copy>(to: &mut Vec<u8>, numbers: &[T], bytes: impl Fn(T) -> [u8; N]) {
    let begin = to.len();
    to.resize(begin + N * numbers.len(), 0);
    for (to, &x) in to[begin..].as_chunks_mut().0.iter_mut().zip(numbers) {
        *to = bytes(x);
    }
}

impl TensorData {
    /// Number of elements.
    pub const fn len(&self) -> usize {
        match self {
            TensorData::F32(v) => v.len(),
            TensorData::F64(v) => v.len(),
            TensorData::U64(v) => v.len(),
            TensorData::I32(v) => v.len(),
            TensorData::I64(v) => v.len(),
            TensorData::U8(v) => v.len(),
        }
    }

    /// Returns whether there are no elements.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends all elements, as little-endian bytes.
    pub fn append_bytes(&self, to: &mut Vec<u8>) {
        match self {
            TensorData::F32(v) => append(to, v, f32::to_le_bytes),
            TensorData::F64(v) => append(to, v, f64::to_le_bytes),
            TensorData::U64(v) => append(to, v, u64::to_le_bytes),
            TensorData::I32(v) => append(to, v, i32::to_le_bytes),
            TensorData::I64(v) => append(to, v, i64::to_le_bytes),
            TensorData::U8(v) => to.extend_from_slice(v),
        }
    }

    /// The name of the element type, as in SafeTensors files: `F32`, `U64`, `U8`, ….
    pub const fn dtype(&self) -> &'static str {
        match self {
            TensorData::F32(_) => "F32",
            TensorData::F64(_) => "F64",
            TensorData::U64(_) => "U64",
            TensorData::I32(_) => "I32",
            TensorData::I64(_) => "I64",
            TensorData::U8(_) => "U8",
        }
    }

    /// Bytes per element.
    pub const fn item_bytes(&self) -> usize {
        match self {
            TensorData::U8(_) => 1,
            TensorData::F32(_) | TensorData::I32(_) => 4,
            TensorData::F64(_) | TensorData::U64(_) | TensorData::I64(_) => 8,
        }
    }
}

impl Tensor {
    /// A tensor of this shape, slowest dimension first.
    ///
    /// # Errors
    /// [`StateError::Shape`] when the number of elements does not match the shape.
    pub fn new(shape: Vec<usize>, data: TensorData) -> Result<Self, StateError> {
        let places = shape.iter().try_fold(1_usize, |n, &d| n.checked_mul(d));
        // A zero among the dimensions makes the product 0, even when the other dimensions overflow.
        let places = if shape.contains(&0) { Some(0) } else { places };
        if places == Some(data.len()) {
            Ok(Tensor { shape, data })
        } else {
            Err(StateError::Shape { shape, numbers: data.len() })
        }
    }

    /// Its dimensions, slowest first; empty for a scalar.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Its elements, row-major.
    pub const fn data(&self) -> &TensorData {
        &self.data
    }

    /// Its elements, row-major, by value.
    pub fn into_data(self) -> TensorData {
        self.data
    }

    /// Number of elements.
    pub const fn len(&self) -> usize {
        self.data.len()
    }

    /// Returns whether there are no elements.
    pub const fn is_empty(&self) -> bool {
        self.data.is_empty()
    }
}

/// A one-dimensional tensor.
impl From<TensorData> for Tensor {
    fn from(data: TensorData) -> Self {
        Tensor { shape: vec![data.len()], data }
    }
}

/// A one-dimensional tensor.
impl From<Vec<f32>> for Tensor {
    fn from(numbers: Vec<f32>) -> Self {
        TensorData::F32(numbers).into()
    }
}

/// A one-dimensional tensor.
impl From<Vec<f64>> for Tensor {
    fn from(numbers: Vec<f64>) -> Self {
        TensorData::F64(numbers).into()
    }
}

/// A one-dimensional tensor.
impl From<Vec<u64>> for Tensor {
    fn from(numbers: Vec<u64>) -> Self {
        TensorData::U64(numbers).into()
    }
}

/// Named tensors: the state of a learner, ready to be written to a file.
pub type StateDict = BTreeMap<String, Tensor>;

/// Errors in a tensor of a state.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The number of elements does not match the shape.
    #[error("a tensor of the shape {shape:?} with {numbers} numbers; give one number for each place")]
    Shape {
        /// The dimensions.
        shape: Vec<usize>,
        /// Number of elements.
        numbers: usize,
    },
    /// A tensor is missing.
    #[error("{name} is missing")]
    Missing {
        /// Its name.
        name: String,
    },
    /// A tensor has another type or length.
    #[error("{name} {what}")]
    Unfit {
        /// Its name.
        name: String,
        /// Its actual and its expected type or length: `has 4 numbers, 3 are due`.
        what: String,
    },
    /// A number is out of range.
    #[error("{name} holds {value}{}", if value.is_finite() { ", which must be above 0" } else { "" })]
    Number {
        /// The tensor's name.
        name: String,
        /// The number.
        value: f64,
    },
}

/// Reads a [`StateDict`]; errors name the invalid tensor.
#[derive(Debug, Clone, Copy)]
pub struct StateReader<'a>(pub &'a StateDict);

impl<'a> StateReader<'a> {
    /// The tensor called `name`.
    ///
    /// # Errors
    /// [`StateError::Missing`] when there is none.
    pub fn get(self, name: &str) -> Result<&'a Tensor, StateError> {
        self.0.get(name).ok_or_else(|| StateError::Missing { name: name.to_owned() })
    }

    /// `count` finite numbers of double precision.
    ///
    /// # Errors
    /// When the tensor is missing, has another type or count, or has a number that is not finite.
    pub fn f64s(self, name: &str, count: usize) -> Result<&'a [f64], StateError> {
        let values = self.any_f64s(name)?;
        if values.len() == count {
            return Ok(values);
        }
        Err(unfit(name, format!("has {} numbers, {count} are due", values.len())))
    }

    /// Finite numbers of double precision, of any count.
    ///
    /// # Errors
    /// When the tensor is missing, has another type, or has a number that is not finite.
    pub fn any_f64s(self, name: &str) -> Result<&'a [f64], StateError> {
        let TensorData::F64(values) = self.get(name)?.data() else {
            return Err(unfit(name, "is not of double precision".into()));
        };
        match values.iter().find(|x| !x.is_finite()) {
            None => Ok(values),
            Some(&value) => Err(StateError::Number { name: name.to_owned(), value }),
        }
    }

    /// Any number of vectors, each of `n` finite numbers of double precision, one after the other.
    ///
    /// # Errors
    /// Those of [`StateReader::any_f64s`]; also when the count is not a multiple of `n`.
    pub fn vectors(self, name: &str, n: usize) -> Result<&'a [f64], StateError> {
        let values = self.any_f64s(name)?;
        multiple(name, values.len(), n)?;
        Ok(values)
    }

    /// Standard deviations: `count` positive numbers.
    ///
    /// # Errors
    /// Those of [`StateReader::f64s`]; also when a number is not positive.
    pub fn sigmas(self, name: &str, count: usize) -> Result<&'a [f64], StateError> {
        let values = self.f64s(name, count)?;
        match values.iter().find(|&&x| x <= 0.0) {
            None => Ok(values),
            Some(&value) => Err(StateError::Number { name: name.to_owned(), value }),
        }
    }

    /// Finite numbers of single precision; their count must be a multiple of `of`.
    ///
    /// # Errors
    /// When the tensor is missing, has another type or count, or has a number that is not finite.
    pub fn f32s(self, name: &str, of: usize) -> Result<&'a [f32], StateError> {
        let TensorData::F32(values) = self.get(name)?.data() else {
            return Err(unfit(name, "is not of single precision".into()));
        };
        multiple(name, values.len(), of)?;
        match values.iter().find(|x| !x.is_finite()) {
            None => Ok(values),
            Some(&value) => Err(StateError::Number { name: name.to_owned(), value: value.into() }),
        }
    }

    /// Bytes, of any count.
    ///
    /// # Errors
    /// When the tensor is missing or has another type.
    pub fn bytes(self, name: &str) -> Result<&'a [u8], StateError> {
        match self.get(name)?.data() {
            TensorData::U8(values) => Ok(values),
            _ => Err(unfit(name, "does not hold bytes".into())),
        }
    }

    /// Counters and seeds, of any count.
    ///
    /// # Errors
    /// When the tensor is missing or has another type.
    pub fn u64s(self, name: &str) -> Result<&'a [u64], StateError> {
        match self.get(name)?.data() {
            TensorData::U64(values) => Ok(values),
            _ => Err(unfit(name, "is not whole numbers".into())),
        }
    }

    /// `count` counters: whole numbers that no run counts beyond, below 2⁵³.
    ///
    /// # Errors
    /// Those of [`StateReader::counts`]; also when a number is not below 2⁵³.
    pub fn counters(self, name: &str, count: usize) -> Result<&'a [u64], StateError> {
        let values = self.counts(name, count)?;
        match values.iter().find(|&&value| value >= 1 << 53) {
            None => Ok(values),
            Some(value) => Err(unfit(name, format!("counts {value}, more than any run can count"))),
        }
    }

    /// `count` counters and seeds.
    ///
    /// # Errors
    /// When the tensor is missing, or has another type or count.
    pub fn counts(self, name: &str, count: usize) -> Result<&'a [u64], StateError> {
        match self.get(name)?.data() {
            TensorData::U64(values) if values.len() == count => Ok(values),
            _ if count == 1 => Err(unfit(name, "is not one integer".into())),
            _ => Err(unfit(name, format!("is not {count} integers"))),
        }
    }
}

fn unfit(name: &str, what: String) -> StateError {
    StateError::Unfit { name: name.to_owned(), what }
}

fn multiple(name: &str, given: usize, of: usize) -> Result<(), StateError> {
    if given.is_multiple_of(of) {
        return Ok(());
    }
    Err(unfit(name, format!("has {given} numbers, a multiple of {of} is due")))
}

/// A copy of `state` with the tensor `settings` of `own`, if `own` has one.
pub(crate) fn with_settings_of(state: &StateDict, mut own: StateDict) -> StateDict {
    let mut state = state.clone();
    if let Some(settings) = own.remove("settings") {
        state.insert("settings".into(), settings);
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_holds_as_many_numbers_as_it_has_places() {
        for (shape, numbers, fits) in [
            (vec![], 1, true),
            (vec![], 0, false),
            (vec![2, 3], 6, true),
            (vec![2, 3], 5, false),
            (vec![usize::MAX, 2], 0, false),
            (vec![usize::MAX, 2, 0], 0, true),
        ] {
            let tensor = Tensor::new(shape.clone(), TensorData::F32(vec![0.5; numbers]));
            assert_eq!(tensor.is_ok(), fits, "{shape:?} with {numbers}");
        }
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let state = StateDict::from([
            ("a".into(), Tensor::from(vec![1.0, -2.0])),
            ("b".into(), Tensor::from(vec![1.0, f64::NAN])),
            ("c".into(), Tensor::from(vec![1_u64, 2])),
            ("d".into(), Tensor::from(vec![1.0_f32; 3])),
        ]);
        let state = StateReader(&state);
        assert_eq!(state.f64s("a", 2), Ok(&[1.0, -2.0][..]));
        assert_eq!((state.u64s("c"), state.counts("c", 2)), (Ok(&[1, 2][..]), Ok(&[1, 2][..])));
        assert_eq!(state.f32s("d", 3), Ok(&[1.0; 3][..]));
        let said = |error: Result<(), StateError>| error.expect_err("it does not fit").to_string();
        for (error, expect) in [
            (state.f64s("a", 3).map(drop), "a has 2 numbers, 3 are due"),
            (state.vectors("a", 3).map(drop), "a has 2 numbers, a multiple of 3 is due"),
            (state.sigmas("a", 2).map(drop), "a holds -2, which must be above 0"),
            (state.f64s("b", 2).map(drop), "b holds NaN"),
            (state.f64s("c", 2).map(drop), "c is not of double precision"),
            (state.f64s("x", 2).map(drop), "x is missing"),
            (state.counts("c", 1).map(drop), "c is not one integer"),
            (state.counts("a", 2).map(drop), "a is not 2 integers"),
            (state.u64s("d").map(drop), "d is not whole numbers"),
            (state.f32s("d", 2).map(drop), "d has 3 numbers, a multiple of 2 is due"),
        ] {
            assert_eq!(said(error), expect);
        }
    }
}
