//! `AntBulletEnv-v0`: a four-legged robot in a worker process, with the rewards of AttentionNeuron.

use std::collections::BTreeMap;

use foveate_core::{ActionSpace, Env, EnvError, EnvSpec, ObservationSpace};
use foveate_envs::registry::{Choice, EnvRequest, Published, PublishedScore, WorldDescriptor, WorldError};
use foveate_gym::GymWorld;
use foveate_gym::ant::{self, NAME, Reward};

use crate::gymnasium;

/// Steps after which an episode is truncated.
const MAX_STEPS: usize = 1000;
/// Frames per second of a film; a step simulates 16.5 ms.
const FPS: f64 = 60.0;

/// The option that selects the reward.
const REWARD: &str = "reward";

/// Options by name: default and description.
const OPTIONS: [(&str, &str); 4] = [
    (
        REWARD,
        "evaluation: the sum of all terms; training: AttentionNeuron's, the sum without the term for being alive, at \
         least 0 (default: evaluation)",
    ),
    ("timeout", "seconds until a simulator that does not answer counts as hung (default: 60)"),
    ("start_timeout", "seconds until a simulator that does not begin counts as hung (default: 180)"),
    ("memory", "megabytes that a simulator may use before it is replaced (default: 4000)"),
];

/// Its entry in [`WORLDS`](crate::WORLDS).
pub(crate) static DESCRIPTOR: WorldDescriptor = WorldDescriptor {
    options: &const { Choice::all(OPTIONS) },
    actions: &["hip 1", "ankle 1", "hip 2", "ankle 2", "hip 3", "ankle 3", "hip 4", "ankle 4"],
    sensors: &[
        "height",
        "sin angle to target",
        "cos angle to target",
        "velocity forwards",
        "velocity sideways",
        "velocity upwards",
        "roll",
        "pitch",
        "hip 1",
        "hip 1 speed",
        "ankle 1",
        "ankle 1 speed",
        "hip 2",
        "hip 2 speed",
        "ankle 2",
        "ankle 2 speed",
        "hip 3",
        "hip 3 speed",
        "ankle 3",
        "ankle 3 speed",
        "hip 4",
        "hip 4 speed",
        "ankle 4",
        "ankle 4 speed",
        "contact 1",
        "contact 2",
        "contact 3",
        "contact 4",
    ],
    solved_at: Some(2500.0), // the threshold of the published environment
    published: &[
        Published {
            release: ["attention-neuron", "ant_pi"],
            source: "AttentionNeuron's weights ant_pi, sensors shuffled in every episode, 100 episodes: code of Tang and Ha, The Sensory Neuron as a Transformer, NeurIPS 2021",
            scores: &[PublishedScore { variant: "original", mean: 2563.28, std: 79.20 }],
        },
        Published {
            release: ["attention-neuron", "ant_mlp"],
            source: "AttentionNeuron's plain network ant_mlp, not shuffled, 100 episodes: code of Tang and Ha, The Sensory Neuron as \
                 a Transformer, NeurIPS 2021",
            scores: &[PublishedScore { variant: "original", mean: 1844.74, std: 120.96 }],
        },
    ],
    has_process: true,
    spec: Some(spec),
    ..WorldDescriptor::new(
        NAME,
        "a four-legged robot that shall walk far; the simulator is PyBullet, a Python package: docs/gymnasium.md",
        make,
    )
};

/// Reads the options: the reward, and those of the process.
fn options(request: &EnvRequest) -> Result<(Reward, BTreeMap<&str, &str>), EnvError> {
    let mut process: BTreeMap<&str, &str> =
        request.options.iter().map(|(name, value)| (&**name, &**value)).collect();
    let Some(given) = process.remove(REWARD) else { return Ok((Reward::default(), process)) };
    let reward = Reward::ALL.into_iter().find(|reward| reward.name() == given);
    let reward = reward.ok_or_else(|| EnvError::UnknownOption {
        env: NAME.into(),
        what: "reward",
        given: given.into(),
        known: Reward::ALL.map(Reward::name).join(", "),
    })?;
    Ok((reward, process))
}

/// Its spec, without starting the simulator.
fn spec(request: &EnvRequest) -> Result<EnvSpec, EnvError> {
    options(request)?;
    Ok(EnvSpec {
        id: NAME.into(),
        observation: ObservationSpace::Vector { len: 28 },
        action: ActionSpace::Box { low: vec![-1.0; 8], high: vec![1.0; 8] },
        max_steps: Some(MAX_STEPS),
        fps: FPS,
    })
}

fn make(request: &EnvRequest) -> Result<Box<dyn Env>, WorldError> {
    let (reward, process) = options(request)?;
    let mut settings = ant::settings(reward);
    settings.set(process).map_err(WorldError::source_of)?;
    Ok(Box::new(GymWorld::new(gymnasium::start(settings).map_err(WorldError::source_of)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_a_reward() {
        let request = |reward: &str| EnvRequest {
            id: NAME.into(),
            options: [(REWARD.to_owned(), reward.to_owned())].into(),
            ..EnvRequest::default()
        };
        assert_eq!(options(&EnvRequest::default()).expect("fine").0, Reward::Evaluation);
        assert_eq!(options(&request("training")).expect("fine").0, Reward::Training);
        let said = spec(&request("trainign")).expect_err("no such reward").to_string();
        assert_eq!(
            said,
            "ant has no reward \"trainign\"; did you mean training? choose from: evaluation, training"
        );
        let spec = spec(&EnvRequest::default()).expect("fine");
        assert_eq!((DESCRIPTOR.sensors.len(), DESCRIPTOR.actions.len()), (28, spec.action.len()));
    }
}
