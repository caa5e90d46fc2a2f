//! Another background than the sky.

use std::sync::Arc;

use foveate_core::{Rng, Seed};
use foveate_render::Scene;

use super::clips::{self, Clip};
use super::{BackgroundConfig, Source};
use crate::task::Scenery;

/// The background of an episode: a picture of a random clip, or the whole clip, which runs to its end and back.
#[derive(Debug, Clone)]
pub(crate) struct Background {
    pub(super) random: Rng,
    dynamic: bool,
    /// How many generated clips there are to choose from.
    choice: usize,
    source: Source,
    /// The only clip there is, when the user named one.
    given: Option<Arc<Clip>>,
    clip: Option<Arc<Clip>>,
    frame: usize,
    forwards: bool,
    floor_opacity: f32,
}

impl Background {
    pub(super) fn new(config: &BackgroundConfig, scenery: &Scenery) -> Self {
        let choice = match config.strength.scale {
            scale if scale <= 0.1 => 4,
            scale if scale <= 0.2 => 8,
            _ => usize::MAX,
        };
        Background {
            random: Seed::root(0).rng(),
            dynamic: config.strength.dynamic,
            choice: choice.min(clips::count(config.source)),
            source: config.source,
            given: config.clip.clone(),
            clip: None,
            frame: 0,
            forwards: true,
            floor_opacity: scenery.floor_opacity,
        }
    }

    pub(super) fn begin(&mut self) {
        let number = self.random.below(self.choice as u64) as usize;
        let clip = self.given.clone().unwrap_or_else(|| clips::generated(self.source, number));
        self.frame = self.random.below(clip.frames().len() as u64) as usize;
        self.forwards = self.random.below(2) == 1;
        self.clip = Some(clip);
    }

    pub(super) fn advance(&mut self) {
        let last = self.clip.as_ref().map_or(0, |clip| clip.frames().len() - 1);
        if !self.dynamic || last == 0 {
            return;
        }
        match (self.forwards, self.frame) {
            (true, frame) if frame == last => (self.forwards, self.frame) = (false, last - 1),
            (true, _) => self.frame += 1,
            (false, 0) => (self.forwards, self.frame) = (true, 1),
            (false, _) => self.frame -= 1,
        }
    }

    pub(super) fn change(&self, scene: &mut Scene) {
        scene.sky = self.clip.as_ref().map(|clip| Arc::clone(&clip.frames()[self.frame]));
        for geom in scene.geoms.iter_mut().filter(|geom| geom.material == Some(0)) {
            geom.rgba[3] = self.floor_opacity;
        }
    }
}
