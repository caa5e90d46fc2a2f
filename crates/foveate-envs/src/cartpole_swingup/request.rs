//! Builds a [`CartPoleSwingUp`] from a user's request.

use foveate_core::{Env, EnvError};

use super::ID;
use super::env::{CartPoleConfig, CartPoleSwingUp};
use crate::registry::{Champion, Choice, EnvRequest, Published, PublishedScore, WorldDescriptor, WorldError};

/// Options by name: default and description.
const OPTIONS: [(&str, &str); 1] =
    [("redundant", "true or false: every number is shown twice (default: false)")];

/// Its entry in the registry of worlds.
pub static DESCRIPTOR: WorldDescriptor = WorldDescriptor {
    instance: "start",
    options: &const { Choice::all(OPTIONS) },
    actions: &["force"],
    has_expert: true,
    sensors: &["x", "velocity", "cos angle", "sin angle", "angular velocity"],
    published: &[Published {
        release: ["attention-neuron", "cartpole_pi"],
        source: "AttentionNeuron's published weights, 100 episodes, numbers shuffled in every episode: test log of \
                 the authors' repository of Tang and Ha, The Sensory Neuron as a Transformer, NeurIPS 2021",
        scores: &[PublishedScore { variant: "original", mean: 516.57, std: 420.37 }],
    }],
    champions: &[
        Champion {
            name: ID,
            about: "AttentionNeuron with 3,201 parameters",
            weights: include_bytes!("../../../../champions/cartpole-swingup-harder.safetensors"),
            as_trained: false,
        },
        Champion {
            name: "cartpole-swingup-harder-913",
            about: "AttentionNeuron of the published architecture",
            weights: include_bytes!("../../../../champions/cartpole-swingup-harder-913.safetensors"),
            as_trained: true,
        },
    ],
    ..WorldDescriptor::new(
        ID,
        "a cart on a short track swings its pole up from anywhere, after AttentionNeuron's CartPoleSwingUpHarder",
        make,
    )
};

fn make(request: &EnvRequest) -> Result<Box<dyn Env>, WorldError> {
    Ok(Box::new(CartPoleSwingUp::new(config(request)?)))
}

fn config(request: &EnvRequest) -> Result<CartPoleConfig, EnvError> {
    // The registry refuses other options.
    let redundant = match request.options.get("redundant") {
        None => false,
        Some(value) => value.parse().map_err(|_| EnvError::BadOption {
            env: ID.into(),
            why: format!("redundant is true or false, not {value:?}"),
        })?,
    };
    Ok(CartPoleConfig { redundant })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(options: &[(&str, &str)]) -> Result<Box<dyn Env>, WorldError> {
        let options = options.iter().map(|&(name, value)| (name.into(), value.into())).collect();
        DESCRIPTOR.build(&EnvRequest { id: ID.into(), options, ..EnvRequest::default() })
    }

    #[test]
    fn options_are_read_and_bad_ones_say_what_fits() {
        assert_eq!(build(&[]).expect("defaults").spec().observation.numbers(), 5);
        let both = build(&[("redundant", "true")]).expect("a good one");
        assert_eq!(both.spec().observation.numbers(), 10);
        for (name, value, want) in [
            ("redundant", "yes", "redundant is true or false, not \"yes\""),
            ("length", "1", "choose from: redundant"),
        ] {
            let said = build(&[(name, value)]).err().expect(want).to_string();
            assert!(said.contains(want), "{said}");
        }
    }
}
