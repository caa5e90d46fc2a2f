//! Time of the bundled agent's decisions on frames of a lap.

use std::path::Path;

use foveate_agents::{AttentionAgent, AttentionAgentConfig, Level};
use foveate_core::{ActContext, Agent, ImageBuf, Observation, Policy, PolicyAgent, episode_seed};
use serde::Serialize;

use crate::champion::champion;
use crate::clock::ThreadCpu;
use crate::{RunError, atomic};

use super::{drives, frames};

const WORLD: &str = "car-racing";
/// Steps between two frames of a lap, and the largest number of frames.
const EVERY: usize = 15;
const FRAMES: usize = 60;

/// Inputs of the measurement: the bundled agent's weights and frames of a lap of the world's own expert, in
/// the picture `exact`.
#[derive(Debug, Clone)]
pub struct Decisions {
    config: AttentionAgentConfig,
    params: Vec<f32>,
    frames: Vec<ImageBuf>,
}

/// CPU time of `AttentionAgent`'s forward pass on one instruction set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ForwardTiming {
    /// The instruction set.
    pub level: String,
    /// Microseconds of CPU per decision, one thread, the fastest of several passes.
    pub us: f64,
    /// Frames in a pass.
    pub frames: usize,
    /// The sum of the indices of all patches that a pass selected: two programs with equal sums selected the
    /// same patches.
    pub chosen_sum: u64,
}

impl Decisions {
    /// Runs the lap and keeps its frames.
    ///
    /// # Errors
    /// When the bundled agent is not an `AttentionAgent`.
    pub fn of_the_champion() -> Result<Self, RunError> {
        let (file, title) = champion(WORLD)?;
        let config: AttentionAgentConfig = serde_json::from_value(file.config().clone())
            .map_err(|error| RunError::BadRequest { why: format!("{title}: {error}") })?;
        let lap = drives(WORLD, "exact", EVERY * FRAMES)?;
        let frames = frames(WORLD, "exact", &lap[0], EVERY, FRAMES)?;
        Ok(Decisions { config, params: file.params().to_vec(), frames })
    }

    /// Writes `frames.u8` (`[frames, 96, 96, 3]`) and `params.f32` (little-endian, in the order of the weight
    /// file) into `folder`, as inputs for another program.
    ///
    /// # Errors
    /// When the folder does not exist or is not writable.
    pub fn write(&self, folder: &Path) -> Result<(), RunError> {
        let pixels: Vec<u8> = self.frames.iter().flat_map(|frame| frame.as_image().rgb()).copied().collect();
        let params: Vec<u8> = self.params.iter().flat_map(|param| param.to_le_bytes()).collect();
        atomic::write(folder.join("frames.u8"), pixels)?;
        atomic::write(folder.join("params.f32"), params)
    }

    /// Measures the time of the decisions on every instruction set of this machine, `passes` times over all
    /// frames.
    ///
    /// # Errors
    /// When the frames have another size than the agent was built for.
    pub fn time(&self, passes: usize) -> Result<Vec<ForwardTiming>, RunError> {
        let mut timings = Vec::new();
        for level in Level::available() {
            let mut policy = AttentionAgent::new(self.config.clone())?.with_level(level);
            policy.set_params(&self.params)?;
            let mut agent = PolicyAgent::new(policy);
            let mut context = ActContext::default();
            let (mut best, mut chosen_sum) = (f64::INFINITY, 0);
            for pass in 0..=passes.max(1) {
                agent.begin_episode(episode_seed(0, 0));
                let clock = ThreadCpu::start();
                for frame in &self.frames {
                    let decision = agent.act(Observation::rgb(frame.as_image()), &mut context)?;
                    std::hint::black_box(decision.action);
                    if pass == 0 {
                        let selected = decision.attention.and_then(|attention| attention.selected());
                        let selected = selected.map_or(&[][..], |selected| selected.tokens);
                        chosen_sum += selected.iter().map(|&patch| u64::from(patch)).sum::<u64>();
                    }
                }
                if pass > 0 {
                    best = best.min(clock.elapsed().as_secs_f64());
                }
            }
            let us = best * 1e6 / self.frames.len().max(1) as f64;
            timings.push(ForwardTiming {
                level: level.name().into(),
                us,
                frames: self.frames.len(),
                chosen_sum,
            });
        }
        Ok(timings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instruction_set_decides_the_same_on_frames_that_others_can_read() {
        let mut decisions = Decisions::of_the_champion().expect("it comes with Foveate");
        assert_eq!(decisions.frames.len(), FRAMES, "a lap is long enough");
        let folder = tempfile::tempdir().expect("a folder");
        decisions.write(folder.path()).expect("it is writable");
        let length = |name: &str| std::fs::metadata(folder.path().join(name)).expect("it is there").len();
        assert_eq!(length("frames.u8"), FRAMES as u64 * 96 * 96 * 3);
        assert_eq!(length("params.f32"), 4 * decisions.params.len() as u64);
        decisions.frames.truncate(6);
        let timings = decisions.time(1).expect("it decides");
        // 10 patches of 529 in each of 6 frames.
        assert!((60..60 * 528).contains(&timings[0].chosen_sum), "{timings:?}");
        assert!(timings.iter().all(|timing| timing.chosen_sum == timings[0].chosen_sum), "{timings:?}");
        assert!(timings.iter().all(|timing| timing.us > 0.0 && timing.frames == 6), "{timings:?}");
    }
}
