//! Materials in other colours.

use foveate_core::{Rng, Seed};
use foveate_render::Scene;

use super::Strength;

/// Colours of the suite's materials, in their order in every model; the first is the floor.
const MATERIALS: [[f64; 3]; 13] = [
    [1.0, 1.0, 1.0],
    [0.7, 0.5, 0.3],
    [0.7, 0.5, 0.3],
    [0.0, 0.5, 0.3],
    [0.7, 0.4, 0.2],
    [0.7, 0.4, 0.2],
    [0.0, 0.5, 0.3],
    [0.3, 0.5, 0.7],
    [0.0, 0.2, 1.0],
    [0.6, 0.3, 0.3],
    [0.6, 0.3, 0.3],
    [0.6, 0.3, 0.3],
    [0.5, 0.5, 0.5],
];

/// A step's change of a colour, in scales: its standard deviation.
const STEP: f64 = 0.03;

/// The colours of an episode: drawn at its start within a box around the original ones, and moving at random within it when they
/// are dynamic.
#[derive(Debug, Clone)]
pub(crate) struct Colors {
    pub(super) random: Rng,
    strength: Strength,
    now: [[f64; 3]; MATERIALS.len()],
}

impl Colors {
    pub(super) fn new(strength: Strength) -> Self {
        Colors { random: Seed::root(0).rng(), strength, now: MATERIALS }
    }

    /// The range of a channel whose original value is `original`.
    fn range(&self, original: f64) -> [f64; 2] {
        [original - self.strength.scale, original + self.strength.scale].map(|x| x.clamp(0.0, 1.0))
    }

    pub(super) fn begin(&mut self) {
        for (material, originals) in MATERIALS.iter().enumerate() {
            for (channel, &original) in originals.iter().enumerate() {
                let [low, high] = self.range(original);
                self.now[material][channel] = self.random.uniform(low, high);
            }
        }
    }

    pub(super) fn advance(&mut self) {
        if !self.strength.dynamic {
            return;
        }
        for (material, originals) in MATERIALS.iter().enumerate() {
            for (channel, &original) in originals.iter().enumerate() {
                let [low, high] = self.range(original);
                let moved = self.now[material][channel] + STEP * self.strength.scale * self.random.normal();
                self.now[material][channel] = moved.clamp(low, high);
            }
        }
    }

    pub(super) fn change(&self, scene: &mut Scene) {
        for geom in &mut scene.geoms {
            if let Some(color) = geom.material.and_then(|material| self.now.get(material as usize)) {
                geom.rgba[..3].copy_from_slice(&color.map(|x| x as f32));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TASKS;

    #[test]
    fn the_materials_are_those_of_every_model() {
        for task in TASKS {
            let lines: Vec<&str> =
                task.xml.lines().map(str::trim).filter(|line| line.starts_with("<material ")).collect();
            let colors: Vec<[f64; 3]> = lines
                .iter()
                .map(|line| match line.split_once("rgba=\"") {
                    None => [1.0; 3],
                    Some((_, rest)) => {
                        let numbers = rest.split('"').next().expect("a quote").split_whitespace();
                        let numbers: Vec<f64> = numbers.map(|x| x.parse().expect("a number")).collect();
                        [numbers[0], numbers[1], numbers[2]]
                    }
                })
                .collect();
            assert_eq!(colors, MATERIALS, "{}", task.name);
            assert!(lines[0].contains("name=\"grid\""), "{}", task.name);
        }
    }
}
