//! Agents as weight files hold them: name, complete configuration, parameters, a checksum, and notes.

mod error;

use std::collections::BTreeMap;

use foveate_core::tensor_file::TensorFile;
use foveate_core::{PolicyError, TensorData, TensorShape};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::registry;
pub use error::WeightsError;

/// Identifies the file format and its version.
pub const FORMAT: &str = "foveate-agent-1";
/// The metadata keys of the format; all others are notes.
pub const KEYS: [&str; 4] = ["format", "agent", "config", "sha256"];

/// An agent of a weight file: checked, and not yet built.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredAgent {
    /// The registered name of the agent.
    pub agent: String,
    /// Its configuration, defaults included.
    pub config: Value,
    /// Name and shape of every tensor.
    pub tensors: Vec<TensorShape>,
    /// The parameters in the order of the tensors, all finite.
    pub params: Vec<f32>,
    /// Notes by name.
    pub about: BTreeMap<String, String>,
}

impl StoredAgent {
    /// Converts a SafeTensors file to an agent.
    ///
    /// # Errors
    /// Any [`WeightsError`].
    pub fn from_tensors(file: TensorFile) -> Result<Self, WeightsError> {
        let TensorFile { metadata: mut about, mut tensors } = file;
        match about.get("format").map(String::as_str) {
            Some(FORMAT) => {}
            Some(other) => return Err(WeightsError::Foreign { found: format!("format {other:?}") }),
            None => return Err(WeightsError::Foreign { found: "no format in its metadata".into() }),
        }
        let mut take = |key| about.remove(key).ok_or(WeightsError::MissingKey { key });
        let [_format, agent, config, sha256] = KEYS.map(&mut take);
        let (agent, sha256) = (agent?, sha256?);
        let config: Value = serde_json::from_str(&config?)
            .map_err(|error| WeightsError::Config { why: error.to_string() })?;
        let config = registry::full_config(&agent, &config).map_err(WeightsError::Agent)?;
        let shapes = registry::tensors(&agent, &config).map_err(WeightsError::Agent)?;

        // All tensors and shapes are checked before memory is allocated for them.
        let mut params = vec![];
        for TensorShape { name, shape } in &shapes {
            let Some(at) = tensors.iter().position(|t| t.0 == *name) else {
                return Err(WeightsError::MissingTensor { name: name.clone() });
            };
            let (_, tensor) = tensors.swap_remove(at);
            match tensor.data() {
                TensorData::F32(numbers) if tensor.shape() == shape => params.extend(numbers),
                other => {
                    return Err(WeightsError::Shape {
                        name: name.clone(),
                        wanted: format!("F32 {shape:?}"),
                        given: format!("{} {:?}", other.dtype(), tensor.shape()),
                    });
                }
            }
        }
        if let Some((name, _)) = tensors.first() {
            return Err(WeightsError::ForeignTensor { name: name.clone() });
        }
        check_params(&shapes, &params).map_err(WeightsError::Agent)?;
        let mut hash = Sha256::new();
        for x in &params {
            hash.update(x.to_le_bytes());
        }
        let found = hash.finalize().iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
        let stored = StoredAgent { agent, config, tensors: shapes, params, about };
        if found == sha256 { Ok(stored) } else { Err(WeightsError::Checksum) }
    }
}

/// Checks the number of parameters and that all are finite.
///
/// # Errors
/// [`PolicyError::ParamCount`] with the count per tensor, [`PolicyError::ParamNotFinite`] with index and
/// tensor.
pub fn check_params(tensors: &[TensorShape], params: &[f32]) -> Result<(), PolicyError> {
    let wanted = tensors.iter().map(TensorShape::len).sum();
    if params.len() != wanted {
        let counts: Vec<String> = tensors.iter().map(|t| format!("{} {}", t.name, t.len())).collect();
        return Err(PolicyError::ParamCount { wanted, given: params.len(), tensors: counts.join(", ") });
    }
    if let Some(index) = params.iter().position(|x| !x.is_finite()) {
        let mut end = 0;
        let tensor = tensors.iter().find(|t| {
            end += t.len();
            index < end
        });
        let tensor = tensor.map_or_else(String::new, |t| t.name.clone());
        return Err(PolicyError::ParamNotFinite { index, tensor, value: params[index] });
    }
    Ok(())
}
