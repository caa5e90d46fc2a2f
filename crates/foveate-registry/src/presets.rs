//! Training configurations that come with Foveate.

use foveate_core::{Descriptor, Registry};

/// A training configuration that others lie on top of.
#[derive(Debug, Clone, Copy)]
pub struct Preset {
    /// Its name, as in `--preset`.
    pub name: &'static str,
    /// What it is for, in one line.
    pub summary: &'static str,
    /// The agent that it trains.
    pub agent: &'static str,
    /// Whether it leaves to the world what agent and recipe must know of it, and so suits many worlds.
    pub open: bool,
    /// The configuration, as TOML.
    pub text: &'static str,
}

impl Descriptor for Preset {
    fn name(&self) -> &'static str {
        self.name
    }
}

/// Every preset; which of them suit a world is in its [descriptor](crate::WorldDescriptor::presets).
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
            summary: "the same in half of its time, with ReLU attention",
            agent: "iap",
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
