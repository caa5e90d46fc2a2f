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
    /// The number of clips to choose from.
    choice: usize,
    source: Source,
    /// The user's clips, in place of generated ones; at least one.
    given: Option<Arc<[Arc<Clip>]>>,
    clip: Option<Arc<Clip>>,
    frame: usize,
    forwards: bool,
    floor_opacity: f32,
}

impl Background {
    pub(super) fn new(config: &BackgroundConfig, scenery: &Scenery) -> Self {
        let given = config.clips.clone().filter(|clips| !clips.is_empty());
        let all = given.as_ref().map_or_else(|| clips::count(config.source), |clips| clips.len());
        Background {
            random: Seed::root(0).rng(),
            dynamic: config.strength.dynamic,
            choice: config.strength.clips().min(all),
            source: config.source,
            given,
            clip: None,
            frame: 0,
            forwards: true,
            floor_opacity: scenery.floor_opacity,
        }
    }

    pub(super) fn begin(&mut self) {
        let number = self.random.below(self.choice as u64) as usize;
        let clip = match &self.given {
            Some(clips) => Arc::clone(&clips[number]),
            None => clips::generated(self.source, number),
        };
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
