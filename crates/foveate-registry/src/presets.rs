//! Training configurations included in Foveate.

use foveate_core::{Descriptor, Registry};

/// A base training configuration; other options override it.
#[derive(Debug, Clone, Copy)]
pub struct Preset {
    /// Its name, as used in `--preset`.
    pub name: &'static str,
    /// Its purpose, in one line.
    pub summary: &'static str,
    /// The agent it trains.
    pub agent: &'static str,
    /// Whether the preset takes world-specific settings of agent and recipe from the world, and thus fits
    /// many worlds.
    pub open: bool,
    /// The configuration, as TOML.
    pub text: &'static str,
}

impl Descriptor for Preset {
    fn name(&self) -> &'static str {
        self.name
    }
}

/// All presets; a world's [descriptor](crate::WorldDescriptor::presets) lists those that fit it.
pub static PRESETS: Registry<Preset> = Registry::new(
    "preset",
    &[
        &Preset {
            name: "laptop",
            summary: "car-racing in minutes: evolution finds where to look, then the controller learns from an expert",
            agent: "attention-agent",
            open: false,
            text: include_str!("../presets/laptop.toml"),
        },
        &Preset {
            name: "laptop-relu",
            summary: "car-racing with ReLU attention: as laptop, in half of its time",
            agent: "attention-agent",
            open: false,
            text: include_str!("../presets/laptop-relu.toml"),
        },
        &Preset {
            name: "evolution",
            summary: "car-racing by evolution alone, without an expert",
            agent: "attention-agent",
            open: false,
            text: include_str!("../presets/evolution.toml"),
        },
        &Preset {
            name: "paper",
            summary: "AttentionAgent's published training; days on a cluster",
            agent: "attention-agent",
            open: false,
            text: include_str!("../presets/paper.toml"),
        },
        &Preset {
            name: "take-cover",
            summary: "DoomTakeCover on one computer: evolution, then an expert, then evolution of both",
            agent: "attention-agent",
            open: false,
            text: include_str!("../presets/take-cover.toml"),
        },
        &Preset {
            name: "take-cover-gaze",
            summary: "DoomTakeCover without evolution: attention and controller learn from an expert",
            agent: "attention-agent",
            open: false,
            text: include_str!("../presets/take-cover-gaze.toml"),
        },
        &Preset {
            name: "take-cover-iap",
            summary: "DoomTakeCover without evolution: IAP, which sees what is in the patches that it looks at, learns from an expert",
            agent: "iap",
            open: false,
            text: include_str!("../presets/take-cover-iap.toml"),
        },
        &Preset {
            name: "attention-neuron",
            summary: "car-racing with patches in any order: all of an AttentionNeuron learns from an expert, by gradients",
            agent: "attention-neuron",
            open: false,
            text: include_str!("../presets/attention-neuron.toml"),
        },
        &Preset {
            name: "pong",
            summary: "pong with patches in any order: all of an AttentionNeuron learns from an expert, by gradients",
            agent: "attention-neuron",
            open: false,
            text: include_str!("../presets/pong.toml"),
        },
        &Preset {
            name: "cartpole-swingup-wide",
            summary: "cartpole-swingup-harder with sensors in any order: as cartpole-swingup, with 3,201 parameters",
            agent: "attention-neuron",
            open: false,
            text: include_str!("../presets/cartpole-swingup-wide.toml"),
        },
        &Preset {
            name: "cartpole-swingup",
            summary: "cartpole-swingup-harder with sensors in any order: AttentionNeuron of the published architecture learns from an expert, then from its return",
            agent: "attention-neuron",
            open: false,
            text: include_str!("../presets/cartpole-swingup.toml"),
        },
        &Preset {
            name: "digits",
            summary: "handwritten digits: the relational module learns labels, by gradients",
            agent: "classifier",
            open: false,
            text: include_str!("../presets/digits.toml"),
        },
        &Preset {
            name: "digits-baseline",
            summary: "handwritten digits: the convolutional network that the relational module is compared with",
            agent: "classifier",
            open: false,
            text: include_str!("../presets/digits-baseline.toml"),
        },
        &Preset {
            name: "s3ta-small",
            summary: "worlds that show pictures: a small S3TA, whose heads ask the picture's cells, by V-trace",
            agent: "s3ta",
            open: true,
            text: include_str!("../presets/s3ta-small.toml"),
        },
        &Preset {
            name: "s3ta-population",
            summary: "several Atari games at once: S3TA for few cores by population-based training",
            agent: "s3ta",
            open: false,
            text: include_str!("../presets/s3ta-population.toml"),
        },
        &Preset {
            name: "s3ta",
            summary: "S3TA as published, 500,000,000 steps by V-trace; for machines with many cores",
            agent: "s3ta",
            open: true,
            text: include_str!("../presets/s3ta.toml"),
        },
        &Preset {
            name: "s3ta-pong",
            summary: "S3TA for few cores in Pong, taught by an expert that reads the game's memory",
            agent: "s3ta",
            open: false,
            text: include_str!("../presets/s3ta-pong.toml"),
        },
        &Preset {
            name: "s3ta-pong-rewards",
            summary: "S3TA for few cores in Pong, from its rewards alone, by V-trace",
            agent: "s3ta",
            open: false,
            text: include_str!("../presets/s3ta-pong-rewards.toml"),
        },
        &Preset {
            name: "s3ta-pong-sticky",
            summary: "S3TA for few cores in Pong with sticky actions, taught by an expert",
            agent: "s3ta",
            open: false,
            text: include_str!("../presets/s3ta-pong-sticky.toml"),
        },
        &Preset {
            name: "s3ta-breakout",
            summary: "S3TA for few cores in Breakout with sticky actions, taught by an expert",
            agent: "s3ta",
            open: false,
            text: include_str!("../presets/s3ta-breakout.toml"),
        },
        &Preset {
            name: "s3ta-door",
            summary: "S3TA in grid worlds from pixels, taught by an expert that sees the whole grid",
            agent: "s3ta",
            open: true,
            text: include_str!("../presets/s3ta-door.toml"),
        },
        &Preset {
            name: "relational",
            summary: "grid worlds: cells attend to each other, deep Q-learning",
            agent: "relational",
            open: true,
            text: include_str!("../presets/relational.toml"),
        },
        &Preset {
            name: "relational-imitation",
            summary: "grid worlds: cells attend to each other, the agent learns from an expert that sees the whole grid",
            agent: "relational",
            open: true,
            text: include_str!("../presets/relational-imitation.toml"),
        },
        &Preset {
            name: "relational-ppo",
            summary: "grid worlds: cells attend to each other, the agent learns by policy gradients and draws its actions",
            agent: "relational",
            open: true,
            text: include_str!("../presets/relational-ppo.toml"),
        },
        &Preset {
            name: "relational-book",
            summary: "the same as \"Deep Reinforcement Learning in Action\", chapter 10, trains it",
            agent: "relational",
            open: true,
            text: include_str!("../presets/relational-book.toml"),
        },
        &Preset {
            name: "car-racing-ppo",
            summary: "car-racing by policy gradients (PPO): a plain convolutional network, the baseline that papers quote",
            agent: "actor-critic",
            open: false,
            text: include_str!("../presets/car-racing-ppo.toml"),
        },
        &Preset {
            name: "door-key-ppo",
            summary: "door-key-5x5: a plain network that draws its actions, by policy gradients",
            agent: "actor-critic",
            open: false,
            text: include_str!("../presets/door-key-ppo.toml"),
        },
        &Preset {
            name: "ant-ppo",
            summary: "the ant: a plain network that draws its actions, by policy gradients",
            agent: "actor-critic",
            open: false,
            text: include_str!("../presets/ant-ppo.toml"),
        },
        &Preset {
            name: "ant-neuron",
            summary: "the ant with its sensors in any order: AttentionNeuron learns their names, then from a teacher that knows them",
            agent: "attention-neuron",
            open: false,
            text: include_str!("../presets/ant-neuron.toml"),
        },
        &Preset {
            name: "control-ppo",
            summary: "DeepMind Control from numbers: a plain network, by policy gradients",
            agent: "actor-critic",
            open: true,
            text: include_str!("../presets/control-ppo.toml"),
        },
        &Preset {
            name: "control-iap",
            summary: "DeepMind Control from distracting pixels: IAP with ReLU attention; it needs a teacher that sees numbers, and control-ppo trains one",
            agent: "iap",
            open: true,
            text: include_str!("../presets/control-iap.toml"),
        },
        &Preset {
            name: "quadruped-iap",
            summary: "quadruped-walls from its camera: IAP with ReLU attention, taught by a guide that knows the walls",
            agent: "iap",
            open: true,
            text: include_str!("../presets/quadruped-iap.toml"),
        },
        &Preset {
            name: "quadruped-cnn",
            summary: "quadruped-walls from its camera: a plain convolutional network, taught by a guide that knows the walls",
            agent: "actor-critic",
            open: true,
            text: include_str!("../presets/quadruped-cnn.toml"),
        },
        &Preset {
            name: "quadruped-evolution",
            summary: "quadruped-walls by evolution alone: IAP commands, a linear layer walks",
            agent: "iap-hierarchical",
            open: true,
            text: include_str!("../presets/quadruped-evolution.toml"),
        },
        &Preset {
            name: "gymnasium",
            summary: "any world that shows numbers: a plain controller, evolved by CMA-ES",
            agent: "controller",
            open: true,
            text: include_str!("../presets/gymnasium.toml"),
        },
        &Preset {
            name: "gymnasium-pictures",
            summary: "any world that shows a picture: AttentionAgent, by evolution alone",
            agent: "attention-agent",
            open: true,
            text: include_str!("../presets/gymnasium-pictures.toml"),
        },
    ],
);
