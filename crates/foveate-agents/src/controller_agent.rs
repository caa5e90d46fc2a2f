//! A plain controller on numbers: a linear policy, an MLP or an LSTM, without attention.
//!
//! For worlds without a picture, as `CartPole`. It reads all numbers, so its decisions carry no attention.
//!
//! Numbers of different worlds differ by orders of magnitude, and evolution draws all weights alike, so inputs are
//! scaled. Statistics that are updated while the agent acts, as other libraries keep, would make what it does depend on
//! everything seen before. Here the scale is a part of the configuration and never changes: each number's range
//! `[low, high]` goes to −1 ..= 1, linearly, and what lies ten times outside is clipped.

use foveate_core::{
    ActContext, Agent, Decision, Observation, Policy, PolicyAgent, PolicyError, Seed, TensorShape,
};
use foveate_kernels::Level;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::config::{MAX_SENSORS, bad, check_actions, check_params, to_units};
use crate::controller::{Controller, ControllerConfig, ControllerState};
use crate::descriptor::{self, AgentConfig, AgentDescriptor, Sees};
use crate::params::{Params, forward_params};

/// Largest input of the network, in either direction.
pub(crate) const MOST: f32 = 10.0;

/// Hyper-parameters of a plain controller. The defaults suit a world of four numbers and two choices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ControllerAgentConfig {
    /// `[low, high]` per number that is seen: what goes to the network's −1 and 1.
    pub observation: Vec<[f64; 2]>,
    /// The network.
    pub controller: ControllerConfig,
    /// `[low, high]` per action dimension: the actions for the network's outputs −1 and 1. Of choices one range for each.
    pub actions: Vec<[f64; 2]>,
}

impl Default for ControllerAgentConfig {
    fn default() -> Self {
        ControllerAgentConfig {
            observation: vec![[-1.0, 1.0]; 4],
            controller: ControllerConfig::Mlp { hidden: vec![16] },
            actions: vec![[0.0, 1.0]; 2],
        }
    }
}

/// The middle of a range, and what to multiply a distance from it by; `None` if it has no width.
pub(crate) fn scale([low, high]: [f64; 2]) -> Option<(f32, f32)> {
    let (middle, factor) = (f64::midpoint(low, high) as f32, (2.0 / (high - low)) as f32);
    (low < high && middle.is_finite() && factor.is_finite() && factor > 0.0).then_some((middle, factor))
}

/// The agent. Zero weights until [`Policy::set_params`].
///
/// ```
/// use foveate_agents::controller_agent::{ControllerAgent, ControllerAgentConfig};
/// use foveate_core::{ActContext, Observation, Policy};
///
/// let agent = ControllerAgent::new(ControllerAgentConfig::default())?;
/// let mut memory = agent.memory();
/// let decision = agent.act(Observation::Vector(&[0.1, 0.2, 0.3, 0.4]), &mut memory, &mut ActContext::default())?;
/// assert_eq!(decision.action, [0.5, 0.5]);
/// assert!(decision.attention.is_none());
/// # Ok::<(), foveate_core::PolicyError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ControllerAgent {
    config: ControllerAgentConfig,
    level: Level,
    params: Params,
    /// Middle and factor of every number.
    scales: Vec<(f32, f32)>,
    controller: Controller,
}

/// The agent's state, its scratch space, and the outputs of its last decision.
#[derive(Debug, Clone)]
pub struct ControllerAgentMemory {
    controller: ControllerState,
    inputs: Vec<f32>,
    raw: Vec<f32>,
    action: Vec<f64>,
}

impl ControllerAgent {
    /// An agent of zero weights on the fastest instruction set of this processor.
    ///
    /// # Errors
    /// When the configuration makes no sense; see [`ControllerAgentConfig::check`].
    pub fn new(config: ControllerAgentConfig) -> Result<Self, PolicyError> {
        config.check()?;
        let params = Params::zeros(config.tensors());
        let (inputs, outputs) = (config.observation.len(), config.actions.len());
        let mut agent = ControllerAgent {
            level: Level::best(),
            scales: config.observation.iter().filter_map(|&range| scale(range)).collect(),
            controller: Controller::new(&config.controller, "", inputs, outputs, &params),
            params,
            config,
        };
        agent.controller.set(&agent.params);
        Ok(agent)
    }

    /// The same agent on another instruction set, which gives the same decisions to the bit.
    #[must_use]
    pub fn with_level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    /// Writes the scaled numbers of `observation` to `out`. A picture with as many bytes is read byte by byte.
    fn read(&self, observation: Observation<'_>, out: &mut [f32]) -> Result<(), PolicyError> {
        // A small picture counts as its bytes, one number each.
        let bytes = match observation {
            Observation::Image(pixels) => pixels.bytes(),
            _ => &[],
        };
        if !bytes.is_empty() && bytes.len() == out.len() {
            for ((out, &byte), (middle, factor)) in out.iter_mut().zip(bytes).zip(&self.scales) {
                *out = ((f32::from(byte) - middle) * factor).clamp(-MOST, MOST);
            }
            return Ok(());
        }
        let given = observation.numbers().unwrap_or_default();
        if given.len() != out.len() {
            return Err(PolicyError::ObservationShape {
                wanted: format!("{} numbers", out.len()),
                given: observation.describe(),
            });
        }
        for (index, ((out, &x), (middle, factor))) in out.iter_mut().zip(given).zip(&self.scales).enumerate()
        {
            if !x.is_finite() {
                return Err(PolicyError::SensorNotFinite { index, value: x });
            }
            *out = ((x - middle) * factor).clamp(-MOST, MOST);
        }
        Ok(())
    }
}

impl Policy for ControllerAgent {
    type Memory = ControllerAgentMemory;

    fn memory(&self) -> ControllerAgentMemory {
        ControllerAgentMemory {
            controller: Controller::state(&self.config.controller),
            inputs: vec![0.0; self.config.observation.len()],
            raw: vec![0.0; self.config.actions.len()],
            action: vec![0.0; self.config.actions.len()],
        }
    }

    fn reset(&self, memory: &mut ControllerAgentMemory, _: Seed) {
        memory.controller.reset();
    }

    fn act<'m>(
        &self,
        observation: Observation<'_>,
        memory: &'m mut ControllerAgentMemory,
        _: &mut ActContext,
    ) -> Result<Decision<'m>, PolicyError> {
        let m = memory;
        self.read(observation, &mut m.inputs)?;
        self.controller.step(self.level, &m.inputs, &mut m.controller, &mut m.raw);
        to_units(&m.raw, &self.config.actions, &mut m.action);
        Ok(Decision::new(&m.action))
    }

    fn inputs<'m>(&self, memory: &'m ControllerAgentMemory) -> &'m [f32] {
        &memory.inputs
    }

    forward_params!(|agent| agent.controller.set(&agent.params));
}

impl AgentConfig for ControllerAgentConfig {
    fn check(&self) -> Result<(), PolicyError> {
        if !(1..=MAX_SENSORS).contains(&self.observation.len()) {
            return bad(format!(
                "observation has {} ranges; give one [low, high] for each number that the world shows, 1 to {MAX_SENSORS}",
                self.observation.len()
            ));
        }
        if let Some(i) = self.observation.iter().position(|[low, high]| scale([*low, *high]).is_none()) {
            let [low, high] = self.observation[i];
            return bad(format!("observation[{i}] is [{low}, {high}]; give a finite low and a larger high"));
        }
        self.controller.check()?;
        check_actions(&self.actions)?;
        check_params(&self.tensors(), "lower controller.hidden")
    }

    fn to_value(&self) -> Result<Value, serde_json::Error> {
        serde_json::to_value(self)
    }

    fn tensors(&self) -> Vec<TensorShape> {
        self.controller.tensors("", self.observation.len(), self.actions.len())
    }

    fn make(&self) -> Result<Box<dyn Agent>, PolicyError> {
        Ok(Box::new(PolicyAgent::new(ControllerAgent::new(self.clone())?)))
    }
}

/// Its entry in [`AGENTS`](crate::registry::AGENTS).
pub static DESCRIPTOR: AgentDescriptor = AgentDescriptor {
    name: "controller",
    summary: "a linear policy, an MLP or an LSTM on the numbers that a world shows, without attention",
    sees: Sees::Numbers,
    read: descriptor::read::<ControllerAgentConfig>,
    fit: |spec, ranges| json!({ "observation": ranges, "actions": spec.action.bounds() }),
    published: &[],
};

#[cfg(test)]
mod tests {
    use foveate_core::{IMAGE, ImageBuf, SENSORS};

    use super::*;

    fn agent(controller: ControllerConfig) -> ControllerAgent {
        let config = ControllerAgentConfig {
            observation: vec![[-2.0, 2.0], [0.0, 0.1], [-1.0, 3.0]],
            controller,
            actions: vec![[-1.0, 1.0], [10.0, 20.0]],
        };
        ControllerAgent::new(config).expect("fine")
    }

    #[test]
    fn numbers_are_scaled_and_actions_are_in_the_worlds_units() {
        let mut agent = agent(ControllerConfig::Linear {});
        // output.bias [2], output.weight [2, 3]
        agent.set_params(&[0.0, 0.25, 0.5, 0.25, 0.0, 0.0, 0.0, -1.0]).expect("the right count");
        let mut memory = agent.memory();
        let seen = [1.0, 0.05, 2.0];
        let decision =
            agent.act(Observation::Vector(&seen), &mut memory, &mut ActContext::default()).expect("fine");
        let expect = [f64::from(0.25f32.tanh()), 15.0 + 5.0 * f64::from((0.25f32 - 0.5).tanh())];
        for (got, expect) in decision.action.iter().zip(expect) {
            assert!((got - expect).abs() < 1e-6, "{:?}", decision.action);
        }
        assert_eq!(agent.inputs(&memory), [0.5, 0.0, 0.5]);

        let picture = ImageBuf::black(20, 20);
        let parts = vec![(IMAGE, picture.as_image().into()), (SENSORS, Observation::Vector(&seen))];
        let action = agent
            .act(Observation::Dict(&parts), &mut memory, &mut ActContext::default())
            .expect("sensors are numbers")
            .action;
        assert!((action[0] - expect[0]).abs() < 1e-6);
        // A picture with as many bytes is as many numbers.
        let shape = foveate_core::PixelShape { frames: 3, height: 1, width: 1, channels: 1 };
        let pixels = foveate_core::Pixels::new(shape, &[2, 0, 3]).expect("three bytes");
        agent
            .act(Observation::Image(pixels), &mut memory, &mut ActContext::default())
            .expect("three numbers");
        assert_eq!(agent.inputs(&memory), [1.0, -1.0, 1.0]);
        let far = [1e30, -7.0, f32::MAX];
        agent.act(Observation::Vector(&far), &mut memory, &mut ActContext::default()).expect("finite");
        assert_eq!(agent.inputs(&memory), [10.0, -10.0, 10.0]);
    }

    #[test]
    fn every_kind_learns_other_things_from_other_weights_and_only_an_lstm_remembers() {
        for (kind, params, remembers) in [
            (ControllerConfig::Linear {}, 8, false),
            (ControllerConfig::Mlp { hidden: vec![5, 4] }, 3 * 5 + 5 + 5 * 4 + 4 + 4 * 2 + 2, false),
            (ControllerConfig::Lstm { hidden: 3 }, 12 * 3 + 12 * 3 + 24 + 3 * 2 + 2, true),
        ] {
            let mut agent = agent(kind.clone());
            let flat: Vec<f32> = (0..params).map(|i| (i as f32 * 0.7).sin()).collect();
            agent.set_params(&flat).expect("the right count");
            assert_eq!(agent.params(), flat);
            let mut memory = agent.memory();
            let mut act = |agent: &ControllerAgent| {
                agent
                    .act(Observation::Vector(&[0.3, 0.02, -1.0]), &mut memory, &mut ActContext::default())
                    .expect("fine")
                    .action
                    .to_vec()
            };
            let (first, second) = (act(&agent), act(&agent));
            assert_eq!(first != second, remembers, "{kind:?}");
            for level in Level::available() {
                agent.reset(&mut memory, Seed::root(0));
                let other = agent.clone().with_level(level);
                let again = other
                    .act(Observation::Vector(&[0.3, 0.02, -1.0]), &mut memory, &mut ActContext::default())
                    .expect("fine");
                assert_eq!(again.action, first, "{level:?}");
            }
            agent.reset(&mut memory, Seed::root(0));
            let again = agent
                .act(Observation::Vector(&[0.3, 0.02, -1.0]), &mut memory, &mut ActContext::default())
                .expect("fine");
            assert_eq!(again.action, first, "{kind:?}: an episode begins anew");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_in_a_line() {
        let agent = agent(ControllerConfig::Linear {});
        let picture = ImageBuf::black(20, 20);
        for (observation, why) in [
            (Observation::Vector(&[0.0; 2]), "built for 3 numbers, the world shows 2 numbers"),
            (Observation::rgb(picture.as_image()), "built for 3 numbers, the world shows a picture of 20x20"),
            (Observation::Vector(&[0.0, f32::NAN, 0.0]), "number 1 of the sensors is NaN"),
            (Observation::Vector(&[0.0, 0.0, f32::INFINITY]), "number 2 of the sensors is inf"),
        ] {
            let said = agent
                .act(observation, &mut agent.memory(), &mut ActContext::default())
                .expect_err(why)
                .to_string();
            assert!(said.contains(why), "{said}");
        }
        let refuse = |observation: Vec<[f64; 2]>, why: &str| {
            let config = ControllerAgentConfig { observation, ..ControllerAgentConfig::default() };
            let said = ControllerAgent::new(config).expect_err(why).to_string();
            assert!(said.contains(why) && said.contains(';'), "{said}");
        };
        refuse(vec![], "observation has 0 ranges");
        refuse(vec![[0.0, 1.0], [1.0, 1.0]], "observation[1] is [1, 1]; give a finite low and a larger high");
        refuse(vec![[2.0, 1.0]], "observation[0] is [2, 1]");
        refuse(vec![[f64::NAN, 1.0]], "observation[0] is [NaN, 1]");
        refuse(vec![[f64::NEG_INFINITY, 1.0]], "observation[0] is [-inf, 1]");
        refuse(vec![[0.0, 1e-320]], "observation[0] is");
        refuse(vec![[-1e308, 1e308]], "observation[0] is");
    }
}
