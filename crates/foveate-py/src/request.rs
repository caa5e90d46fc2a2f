//! Worlds as Python describes them.

use std::collections::BTreeMap;

use foveate::EnvRequest;
use foveate::run::trust::{Trust, WorldFlags};
use pyo3::prelude::*;

/// A description of a world: keyword arguments of `foveate._native`.
#[derive(Debug, Clone, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct WorldArgs {
    world: Option<String>,
    picture: Option<String>,
    variants: Vec<String>,
    options: BTreeMap<String, String>,
    shifts: Vec<String>,
    trust: bool,
}

impl WorldArgs {
    /// The description as the command's flags are.
    pub(crate) fn flags(self) -> WorldFlags {
        let WorldArgs { world, picture, variants, options, shifts, trust } = self;
        let trust = if trust { Trust::AnyWorld } else { Trust::NativeWorlds };
        WorldFlags { id: world, picture, variants, options, shifts, trust, ..WorldFlags::default() }
    }

    /// The world, without a weight file that could complete it.
    pub(crate) fn request(self) -> EnvRequest {
        self.flags().request()
    }
}
