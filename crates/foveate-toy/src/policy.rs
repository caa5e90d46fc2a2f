//! The agent.

use foveate_core::{ActContext, Decision, Observation, Policy, PolicyAgent, PolicyError, Seed, TensorShape};

/// `action = w₀ · x + w₁ + w₂ · (last action)`: three parameters, and a memory that a reset must clear.
#[derive(Debug, Clone)]
pub struct ToyPolicy(pub [f32; 3]);

/// [`ToyPolicy`] as an agent.
pub type ToyAgent = PolicyAgent<ToyPolicy>;

/// The last action, and the last observation.
#[derive(Debug, Clone, Copy, Default)]
pub struct ToyMemory {
    action: [f64; 1],
    seen: [f32; 2],
}

impl Policy for ToyPolicy {
    type Memory = ToyMemory;

    fn memory(&self) -> ToyMemory {
        ToyMemory::default()
    }

    fn reset(&self, memory: &mut ToyMemory, _: Seed) {
        *memory = ToyMemory::default();
    }

    fn inputs<'m>(&self, memory: &'m ToyMemory) -> &'m [f32] {
        &memory.seen
    }

    fn act<'m>(
        &self,
        observation: Observation<'_>,
        memory: &'m mut ToyMemory,
        _: &mut ActContext,
    ) -> Result<Decision<'m>, PolicyError> {
        let Observation::Vector(&[x, one]) = observation else {
            return Err(PolicyError::ObservationShape { wanted: "2 numbers".into(), given: "others".into() });
        };
        let [a, b, c] = self.0;
        memory.seen = [x, one];
        memory.action = [f64::from(a * x + b * one) + f64::from(c) * memory.action[0]];
        Ok(Decision::new(&memory.action))
    }

    fn tensors(&self) -> Vec<TensorShape> {
        vec![TensorShape { name: "w".into(), shape: vec![3] }]
    }

    fn params(&self) -> Vec<f32> {
        self.0.to_vec()
    }

    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError> {
        self.0 = flat.try_into().map_err(|_| PolicyError::ParamCount {
            wanted: 3,
            given: flat.len(),
            tensors: "w 3".into(),
        })?;
        Ok(())
    }
}

/// An agent whose parameters are all `w`.
pub fn toy_agent(w: f32) -> ToyAgent {
    PolicyAgent::new(ToyPolicy([w; 3]))
}
