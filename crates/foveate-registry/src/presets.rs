//! Training configurations included in Foveate.

use foveate_core::{Descriptor, Registry};

use crate::WorldDescriptor;

/// A base training configuration; other options override it.
#[derive(Debug, Clone, Copy)]
pub struct Preset {
    /// Its name, as used in `--preset`.
    pub name: &'static str,
    /// Its purpose, in one line.
    pub summary: &'static str,
    /// The agent it trains.
    pub agent: &'static str,
    /// The worlds that it suits, by name or by suite; [`OTHERS`] are those that no preset names.
    pub worlds: &'static [&'static str],
    /// True if the preset takes world-specific settings of agent and recipe from the world, and thus fits
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

impl Preset {
    /// Returns whether it suits `world`.
    pub fn suits(&self, world: &WorldDescriptor) -> bool {
        self.names(world)
            || self.worlds.contains(&OTHERS) && !PRESETS.iter().any(|preset| preset.names(world))
    }

    fn names(&self, world: &WorldDescriptor) -> bool {
        self.worlds.iter().any(|named| *named == world.name || Some(*named) == world.suite)
    }
}

/// The presets that suit `world`, the default first.
///
/// ```
/// let world = foveate_registry::world("car-racing")?;
/// assert_eq!(foveate_registry::presets_of(world)[0].name, "laptop-relu");
/// # Ok::<(), foveate_core::EnvError>(())
/// ```
pub fn presets_of(world: &WorldDescriptor) -> Vec<&'static Preset> {
    PRESETS.iter().filter(|preset| preset.suits(world)).collect()
}

/// All worlds that no preset names, in [`Preset::worlds`].
pub const OTHERS: &str = "others";

/// All presets. Of those that suit a world, the first is its default.
pub static PRESETS: Registry<Preset> = Registry::new(
    "preset",
    &[
        &Preset {
            name: "laptop-relu",
            summary: "car-racing with ReLU attention: as laptop, in half of its time",
            agent: "attention-agent",
            worlds: &["car-racing"],
            open: false,
            text: include_str!("../presets/laptop-relu.toml"),
        },
        &Preset {
            name: "laptop",
            summary: "car-racing in minutes: evolution finds where to look, then the controller learns from an expert",
            agent: "attention-agent",
            worlds: &["car-racing"],
            open: false,
            text: include_str!("../presets/laptop.toml"),
        },
        &Preset {
            name: "paper",
            summary: "AttentionAgent's published training; days on a cluster",
            agent: "attention-agent",
            worlds: &["car-racing"],
            open: false,
            text: include_str!("../presets/paper.toml"),
        },
        &Preset {
            name: "attention-neuron",
            summary: "car-racing with patches in any order: all of an AttentionNeuron learns from an expert, by gradients",
            agent: "attention-neuron",
            worlds: &["car-racing"],
            open: false,
            text: include_str!("../presets/attention-neuron.toml"),
        },
        &Preset {
            name: "car-racing-ppo",
            summary: "car-racing by policy gradients (PPO): a plain convolutional network, the baseline that papers quote",
            agent: "actor-critic",
            worlds: &["car-racing"],
            open: false,
            text: include_str!("../presets/car-racing-ppo.toml"),
        },
        &Preset {
            name: "take-cover",
            summary: "DoomTakeCover on one computer: evolution, then an expert, then evolution of both",
            agent: "attention-agent",
            worlds: &["take-cover"],
            open: false,
            text: include_str!("../presets/take-cover.toml"),
        },
        &Preset {
            name: "take-cover-gaze",
            summary: "DoomTakeCover without evolution: attention and controller learn from an expert",
            agent: "attention-agent",
            worlds: &["take-cover"],
            open: false,
            text: include_str!("../presets/take-cover-gaze.toml"),
        },
        &Preset {
            name: "take-cover-iap",
            summary: "DoomTakeCover without evolution: IAP, which sees what is in the patches that it looks at, learns from an expert",
            agent: "iap",
            worlds: &["take-cover"],
            open: false,
            text: include_str!("../presets/take-cover-iap.toml"),
        },
        &Preset {
            name: "cartpole-swingup-wide",
            summary: "cartpole-swingup-harder with sensors in any order: as cartpole-swingup, with 3,201 parameters",
            agent: "attention-neuron",
            worlds: &["cartpole-swingup-harder"],
            open: false,
            text: include_str!("../presets/cartpole-swingup-wide.toml"),
        },
        &Preset {
            name: "cartpole-swingup",
            summary: "cartpole-swingup-harder with sensors in any order: AttentionNeuron of the published architecture learns from an expert, then from its return",
            agent: "attention-neuron",
            worlds: &["cartpole-swingup-harder"],
            open: false,
            text: include_str!("../presets/cartpole-swingup.toml"),
        },
        &Preset {
            name: "pong",
            summary: "pong with patches in any order: all of an AttentionNeuron learns from an expert, by gradients",
            agent: "attention-neuron",
            worlds: &["pong"],
            open: false,
            text: include_str!("../presets/pong.toml"),
        },
        &Preset {
            name: "s3ta-pong",
            summary: "S3TA for few cores in Pong, taught by an expert that reads the game's memory",
            agent: "s3ta",
            worlds: &["pong"],
            open: false,
            text: include_str!("../presets/s3ta-pong.toml"),
        },
        &Preset {
            name: "s3ta-pong-rewards",
            summary: "S3TA for few cores in Pong, from its rewards alone, by V-trace",
            agent: "s3ta",
            worlds: &["pong"],
            open: false,
            text: include_str!("../presets/s3ta-pong-rewards.toml"),
        },
        &Preset {
            name: "s3ta-small",
            summary: "worlds that show pictures: a small S3TA, whose heads ask the picture's cells, by V-trace",
            agent: "s3ta",
            worlds: &["pong", "atari"],
            open: true,
            text: include_str!("../presets/s3ta-small.toml"),
        },
        &Preset {
            name: "s3ta",
            summary: "S3TA as published, 500,000,000 steps by V-trace; for machines with many cores",
            agent: "s3ta",
            worlds: &["atari"],
            open: true,
            text: include_str!("../presets/s3ta.toml"),
        },
        &Preset {
            name: "s3ta-population",
            summary: "several Atari games at once: S3TA for few cores by population-based training",
            agent: "s3ta",
            worlds: &["atari"],
            open: false,
            text: include_str!("../presets/s3ta-population.toml"),
        },
        &Preset {
            name: "s3ta-breakout",
            summary: "S3TA for few cores in Breakout with sticky actions, taught by an expert",
            agent: "s3ta",
            worlds: &["atari"],
            open: false,
            text: include_str!("../presets/s3ta-breakout.toml"),
        },
        &Preset {
            name: "s3ta-pong-sticky",
            summary: "S3TA for few cores in Pong with sticky actions, taught by an expert",
            agent: "s3ta",
            worlds: &["atari"],
            open: false,
            text: include_str!("../presets/s3ta-pong-sticky.toml"),
        },
        &Preset {
            name: "relational",
            summary: "grid worlds: cells attend to each other, deep Q-learning",
            agent: "relational",
            worlds: &["minigrid"],
            open: true,
            text: include_str!("../presets/relational.toml"),
        },
        &Preset {
            name: "relational-imitation",
            summary: "grid worlds: cells attend to each other, the agent learns from an expert that sees the whole grid",
            agent: "relational",
            worlds: &["minigrid"],
            open: true,
            text: include_str!("../presets/relational-imitation.toml"),
        },
        &Preset {
            name: "relational-ppo",
            summary: "grid worlds: cells attend to each other, the agent learns by policy gradients and draws its actions",
            agent: "relational",
            worlds: &["minigrid"],
            open: true,
            text: include_str!("../presets/relational-ppo.toml"),
        },
        &Preset {
            name: "relational-book",
            summary: "the same as \"Deep Reinforcement Learning in Action\", chapter 10, trains it",
            agent: "relational",
            worlds: &["minigrid"],
            open: true,
            text: include_str!("../presets/relational-book.toml"),
        },
        &Preset {
            name: "s3ta-door",
            summary: "S3TA in grid worlds from pixels, taught by an expert that sees the whole grid",
            agent: "s3ta",
            worlds: &["minigrid"],
            open: true,
            text: include_str!("../presets/s3ta-door.toml"),
        },
        &Preset {
            name: "door-key-ppo",
            summary: "door-key-5x5: a plain network that draws its actions, by policy gradients",
            agent: "actor-critic",
            worlds: &["minigrid"],
            open: false,
            text: include_str!("../presets/door-key-ppo.toml"),
        },
        &Preset {
            name: "control-ppo",
            summary: "DeepMind Control from numbers: a plain network, by policy gradients",
            agent: "actor-critic",
            worlds: &["control"],
            open: true,
            text: include_str!("../presets/control-ppo.toml"),
        },
        &Preset {
            name: "control-iap",
            summary: "DeepMind Control from distracting pixels: IAP with ReLU attention; it needs a teacher that sees numbers, and control-ppo trains one",
            agent: "iap",
            worlds: &["control"],
            open: true,
            text: include_str!("../presets/control-iap.toml"),
        },
        &Preset {
            name: "quadruped-iap",
            summary: "quadruped-walls from its camera: IAP with ReLU attention, taught by a guide that knows the walls",
            agent: "iap",
            worlds: &["quadruped-walls"],
            open: true,
            text: include_str!("../presets/quadruped-iap.toml"),
        },
        &Preset {
            name: "quadruped-cnn",
            summary: "quadruped-walls from its camera: a plain convolutional network, taught by a guide that knows the walls",
            agent: "actor-critic",
            worlds: &["quadruped-walls"],
            open: true,
            text: include_str!("../presets/quadruped-cnn.toml"),
        },
        &Preset {
            name: "quadruped-evolution",
            summary: "quadruped-walls by evolution alone: IAP commands, a linear layer walks",
            agent: "iap-hierarchical",
            worlds: &["quadruped-walls"],
            open: true,
            text: include_str!("../presets/quadruped-evolution.toml"),
        },
        &Preset {
            name: "ant-ppo",
            summary: "the ant: a plain network that draws its actions, by policy gradients",
            agent: "actor-critic",
            worlds: &["ant"],
            open: false,
            text: include_str!("../presets/ant-ppo.toml"),
        },
        &Preset {
            name: "ant-neuron",
            summary: "the ant with its sensors in any order: AttentionNeuron learns their names, then from a teacher that knows them",
            agent: "attention-neuron",
            worlds: &["ant"],
            open: false,
            text: include_str!("../presets/ant-neuron.toml"),
        },
        &Preset {
            name: "digits",
            summary: "handwritten digits: the relational module learns labels, by gradients",
            agent: "classifier",
            worlds: &["digits"],
            open: false,
            text: include_str!("../presets/digits.toml"),
        },
        &Preset {
            name: "digits-baseline",
            summary: "handwritten digits: the convolutional network that the relational module is compared with",
            agent: "classifier",
            worlds: &["digits"],
            open: false,
            text: include_str!("../presets/digits-baseline.toml"),
        },
        &Preset {
            name: "gymnasium",
            summary: "any world that shows numbers: a plain controller, evolved by CMA-ES",
            agent: "controller",
            worlds: &["cartpole-swingup-harder", OTHERS, "control", "quadruped-walls", "ant"],
            open: true,
            text: include_str!("../presets/gymnasium.toml"),
        },
        &Preset {
            name: "gymnasium-pictures",
            summary: "any world that shows a picture: AttentionAgent, by evolution alone",
            agent: "attention-agent",
            worlds: &["minigrid", OTHERS, "control", "quadruped-walls", "pong", "atari"],
            open: true,
            text: include_str!("../presets/gymnasium-pictures.toml"),
        },
        &Preset {
            name: "evolution",
            summary: "car-racing by evolution alone, without an expert",
            agent: "attention-agent",
            worlds: &["car-racing", OTHERS],
            open: false,
            text: include_str!("../presets/evolution.toml"),
        },
    ],
);
